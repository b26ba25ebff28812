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
	f, err := h.root.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		return f, nil
	}
	defer f.Close()
	switch {
	case err != nil:
	case path.Ext(name) != ".cue" || !info.Mode().IsRegular():
		err = errNotCUE
	default:
		var data []byte
		data, err = io.ReadAll(io.LimitReader(f, MaxCUEBytes+1))
		if err == nil && len(data) > MaxCUEBytes {
			err = errTooLarge
		}
		if err == nil {
			return h.record(name, data), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
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
