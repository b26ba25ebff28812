package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"
)

// hermeticFS is what a CUE program can see: the folders and CUE files below one
// root. The inputs come from memory, so that what is evaluated is what was
// hashed. Every file that is read is recorded.
type hermeticFS struct {
	root   fs.FS
	memory []namedText
	read   []namedText
}

func newHermeticFS(root fs.FS, memory []namedText) *hermeticFS {
	return &hermeticFS{root: root, memory: memory}
}

var errNotCUE = errors.New("a CUE program may read CUE files only")

// Open opens a folder or a CUE file. Symbolic links that lead out of the root
// are refused by the root itself.
func (h *hermeticFS) Open(name string) (fs.File, error) {
	if i := slices.IndexFunc(h.memory, func(f namedText) bool { return f.Path == name }); i >= 0 {
		return h.record(name, h.memory[i].Data), nil
	}
	// Looked at before it is opened, since a pipe would block.
	info, err := fs.Stat(h.root, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !visible(name, info.Mode()) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotCUE}
	}
	f, err := h.root.Open(name)
	if err != nil || info.IsDir() {
		return f, err
	}
	defer f.Close() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, MaxCUEBytes+1))
	if err == nil && len(data) > MaxCUEBytes {
		err = errTooLarge
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return h.record(name, data), nil
}

// ReadDir lists a folder without the files that a program cannot see: the loader
// opens all that it finds there, and a compiled plan often stands beside its
// configuration.
func (h *hermeticFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(h.root, name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := fs.Stat(h.root, path.Join(name, e.Name()))
			if err != nil {
				// One that leads nowhere is a mistake only where it could be meant.
				return path.Ext(e.Name()) != ".cue" && path.Ext(e.Name()) != ""
			}
			mode = info.Mode()
		}
		return !mode.IsDir() && !visible(e.Name(), mode)
	}), nil
}

// visible reports whether a file is one that a program may read.
func visible(name string, mode fs.FileMode) bool {
	return path.Ext(name) == ".cue" && mode.IsRegular()
}

func (h *hermeticFS) record(name string, data []byte) fs.File {
	if !slices.ContainsFunc(h.read, func(f namedText) bool { return f.Path == name }) {
		h.read = append(h.read, namedText{name, data})
	}
	return &memoryFile{Reader: bytes.NewReader(data), name: path.Base(name)}
}

// memoryFile is an open file whose content is in memory.
type memoryFile struct {
	*bytes.Reader
	name string
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *memoryFile) Close() error               { return nil }
func (f *memoryFile) Name() string               { return f.name }
func (f *memoryFile) Mode() fs.FileMode          { return 0o444 }
func (f *memoryFile) ModTime() time.Time         { return time.Time{} }
func (f *memoryFile) IsDir() bool                { return false }
func (f *memoryFile) Sys() any                   { return nil }
