package argv

import (
	"bytes"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"shunt/compiler/diag"
)

// span says where a part of a text stands: the bytes from one offset up to the
// next span. In a fixed span all bytes have the same place, because they are not
// written out there.
type span struct {
	from  int
	pos   diag.Pos
	fixed bool
}

// text is a string with the place of each of its bytes. Its zero value is the
// empty text. A text is not changed once it is built.
type text struct {
	value string
	spans []span
}

// pos returns the place of the byte at an offset; the end has one too.
func (t *text) pos(offset int) diag.Pos {
	if len(t.spans) == 0 {
		return diag.Pos{}
	}
	i := sort.Search(len(t.spans), func(i int) bool { return t.spans[i].from > offset })
	s := t.spans[max(i-1, 0)]
	if s.fixed || !s.pos.Known() {
		return s.pos
	}
	n := max(offset-s.from, 0)
	s.pos.Column += n
	s.pos.Offset += n
	return s.pos
}

// builder makes a text.
type builder struct {
	buf   []byte
	spans []span
}

func (b *builder) text() *text { return &text{value: string(b.buf), spans: b.spans} }

// add appends a string that is written as it is from a place on. Line feeds in it
// begin new lines at column 1.
func (b *builder) add(s string, at diag.Pos) {
	for s != "" {
		b.spans = append(b.spans, span{from: len(b.buf), pos: at})
		i := strings.IndexByte(s, '\n') + 1
		if i == 0 {
			i = len(s)
		}
		b.buf = append(b.buf, s[:i]...)
		s = s[i:]
		at = diag.Pos{File: at.File, Line: at.Line + 1, Column: 1, Offset: at.Offset + i}
	}
}

// addFixed appends a string that stands for something written at a place.
func (b *builder) addFixed(s string, at diag.Pos) {
	b.spans = append(b.spans, span{from: len(b.buf), pos: at, fixed: true})
	b.buf = append(b.buf, s...)
}

// addText appends a part of a text.
func (b *builder) addText(from *text, start, end int) {
	if start >= end {
		return
	}
	base := len(b.buf)
	i := sort.Search(len(from.spans), func(i int) bool { return from.spans[i].from > start })
	for i = max(i-1, 0); i < len(from.spans) && from.spans[i].from < end; i++ {
		s := from.spans[i]
		if s.from < start {
			s.pos = from.pos(start)
			s.from = start
		}
		s.from += base - start
		b.spans = append(b.spans, s)
	}
	b.buf = append(b.buf, from.value[start:end]...)
}

// slice returns a part of the text.
func (t *text) slice(start, end int) *text {
	var b builder
	b.addText(t, start, end)
	if len(b.spans) == 0 {
		b.spans = []span{{pos: t.pos(start)}}
	}
	return b.text()
}

// fileText is the text of a whole file.
func fileText(name string, data []byte) *text {
	t := &text{value: string(data), spans: []span{{pos: diag.Pos{File: name, Line: 1, Column: 1}}}}
	line := 1
	for i, c := range data {
		if c == '\n' {
			line++
			t.spans = append(t.spans, span{from: i + 1, pos: diag.Pos{File: name, Line: line, Column: 1, Offset: i + 1}})
		}
	}
	return t
}

// inPlace returns the text as a file in which it stands where it stands in the
// whole, everything else being blank. When the text is not written line by line
// in the whole, it is the text alone.
func (t *text) inPlace(whole []byte) []byte {
	out := bytes.Repeat([]byte{' '}, len(whole))
	for i, c := range whole {
		if c == '\n' {
			out[i] = c
		}
	}
	end := 0
	for i, s := range t.spans {
		next := len(t.value)
		if i+1 < len(t.spans) {
			next = t.spans[i+1].from
		}
		part := strings.TrimSuffix(t.value[s.from:next], "\n")
		at := s.pos.Offset
		if s.fixed || !s.pos.Known() || at < end || at+len(part) > len(whole) || string(whole[at:at+len(part)]) != part {
			return []byte(t.value)
		}
		copy(out[at:], part)
		end = at + len(part)
	}
	return bytes.TrimRight(out[:end], " ")
}

// word is an element of a command line while it is made.
type word struct {
	builder
	at   diag.Pos
	open []string
	// some says that the word exists even if it is empty, because it was quoted.
	some bool
	// notes are findings that count when the word becomes an argument.
	notes diag.List
}

func (w *word) leaveOpen(name string) {
	if !slices.Contains(w.open, name) {
		w.open = append(w.open, name)
	}
}

// inherit takes over what is open in another word and what is said about it.
func (w *word) inherit(from *word) {
	for _, name := range from.open {
		w.leaveOpen(name)
	}
	if len(w.notes) < maxNotes {
		w.notes = append(w.notes, from.notes...)
	}
}

// maxNotes bounds what is said about one word.
const maxNotes = 20

func (w *word) arg() Arg { return Arg{Text: string(w.buf), Pos: w.at, Open: w.open} }

// invalidUTF8 returns the offset of the first byte that is no UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}
