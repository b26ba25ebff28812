package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"shunt/compiler/diag"
)

// place is where something is written: a byte offset in a file of the tree.
// Four bytes hold every offset, since inputs are bounded far below 4 GiB.
type place struct {
	file   uint32
	offset uint32
}

// file is one input with what is needed to turn offsets into positions.
type file struct {
	name  string
	data  []byte
	lines []int // offsets of line starts, ascending, the first is 0
	sum   string
	// steps has, for each line that was asked for beyond columnStep, the
	// offsets of every columnStep-th character.
	steps map[int][]int
}

// columnStep is how many characters are counted for one column at most.
const columnStep = 256

func newFile(name string, data []byte) *file {
	f := &file{name: name, data: data, lines: []int{0}}
	sum := sha256.Sum256(data)
	f.sum = hex.EncodeToString(sum[:])
	for i, c := range data {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// pos turns an offset into a position; offsets behind the end are its end.
func (f *file) pos(offset int) diag.Pos {
	offset = min(max(offset, 0), len(f.data))
	line, found := slices.BinarySearch(f.lines, offset)
	if !found {
		line--
	}
	return diag.Pos{File: f.name, Line: line + 1, Column: offset - f.lines[line] + 1, Offset: offset}
}

// offsetAt turns a line and a column in characters, both from 1, into an
// offset. A place outside the file becomes the nearest one inside.
func (f *file) offsetAt(line, column int) int {
	line = min(max(line, 1), len(f.lines))
	offset := f.lines[line-1]
	column--
	if column >= columnStep {
		steps := f.stepsOf(line)
		i := min(column/columnStep, len(steps)) - 1
		offset, column = steps[i], column-(i+1)*columnStep
	}
	return f.skip(offset, column)
}

// skip returns the offset of the character that is some characters further on
// the line, or its end.
func (f *file) skip(offset, characters int) int {
	for ; characters > 0 && offset < len(f.data) && f.data[offset] != '\n'; characters-- {
		_, size := utf8.DecodeRune(f.data[offset:])
		offset += size
	}
	return offset
}

// stepsOf returns the steps of a line, at least one. A whole configuration may
// stand on one line, which is then counted once and not for each value.
func (f *file) stepsOf(line int) []int {
	if steps, ok := f.steps[line]; ok {
		return steps
	}
	if f.steps == nil {
		f.steps = make(map[int][]int)
	}
	end := f.lineEnd(f.lines[line-1])
	steps := []int{f.skip(f.lines[line-1], columnStep)}
	for last := steps[0]; last < end; {
		last = f.skip(last, columnStep)
		steps = append(steps, last)
	}
	f.steps[line] = steps
	return steps
}

// lineEnd returns the end of the line of an offset, without its line feed.
func (f *file) lineEnd(offset int) int {
	next, found := slices.BinarySearch(f.lines, offset)
	if found {
		next++
	}
	if next == len(f.lines) {
		return len(f.data)
	}
	return f.lines[next] - 1
}

// tokenEnd returns the end of the key or scalar at an offset: the closing quote
// of a quoted one, else the last character before a delimiter or a comment.
func (f *file) tokenEnd(offset int) int {
	offset = min(max(offset, 0), len(f.data))
	rest := f.data[offset:f.lineEnd(offset)]
	if len(rest) == 0 {
		return offset
	}
	if q := rest[0]; q == '"' || q == '\'' {
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\\' && q == '"' {
				i++
			} else if rest[i] == q {
				return offset + i + 1
			}
		}
		return offset + len(rest)
	}
	end := len(rest)
	for i, c := range rest {
		next := byte(' ')
		if i+1 < len(rest) {
			next = rest[i+1]
		}
		comment := (c == ' ' || c == '\t') && (next == '#' || next == '/')
		if c == ',' || c == '}' || c == ']' || c == '\r' || comment || c == ':' && (next == ' ' || next == '\r') {
			end = i
			break
		}
	}
	return offset + max(len(bytes.TrimRight(rest[:end], " \t")), 1)
}

// linesOf returns lines first to last of the file of that name.
func linesOf(files []*file, name string, first, last int) []string {
	for _, f := range files {
		if f.name != name {
			continue
		}
		var out []string
		for n := max(first, 1); n <= min(last, len(f.lines)); n++ {
			line := f.data[f.lines[n-1]:]
			if i := bytes.IndexByte(line, '\n'); i >= 0 {
				line = line[:i]
			}
			out = append(out, strings.TrimSuffix(string(line), "\r"))
		}
		return out
	}
	return nil
}

func sourcesOf(files []*file) []Source {
	out := make([]Source, 0, len(files))
	for _, f := range files {
		out = append(out, Source{Path: f.name, SHA256: f.sum})
	}
	slices.SortFunc(out, func(a, b Source) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(out)
}
