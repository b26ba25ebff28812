package format

import (
	"bytes"
	"strings"
)

// spaced is the text of a line from a column on, with one space where tokens are
// separated: after the colon of a key, before a comment, and after the commas of
// flow collections, which have none inside their brackets. Quoted and plain text
// keeps every byte.
func (w *layout) spaced(i, from int) string {
	s := spacer{layout: w, i: i, text: w.lines[i]}
	s.depth = w.depthAt(i)
	return s.run(from)
}

// depthAt is 1 on the lines that go on with a flow collection; how deep it is
// does not matter.
func (w *layout) depthAt(i int) int {
	if w.flowing[i] {
		return 1 << 20
	}
	return 0
}

// spacer writes one line.
type spacer struct {
	*layout
	i     int
	text  string
	out   []byte
	depth int
}

func (s *spacer) run(from int) string {
	j := from
	if s.inside[s.i] {
		end, ok := s.ends[s.i]
		if !ok {
			return s.text[from:]
		}
		s.out = append(s.out, s.text[from:end]...)
		j = end
	}
	for j < len(s.text) {
		if end, ok := s.quotes[at{s.i, j}]; ok {
			if end.line > s.i {
				return string(append(s.out, s.text[j:]...))
			}
			s.out = append(s.out, s.text[j:end.column]...)
			j = end.column
			continue
		}
		if isComment(s.text, j) {
			s.comment(j)
			break
		}
		j = s.token(j)
	}
	return strings.TrimRight(string(s.out), " \t")
}

// comment writes a comment that follows something.
func (s *spacer) comment(j int) {
	if s.out = bytes.TrimRight(s.out, " \t"); len(s.out) > 0 {
		s.out = append(s.out, ' ')
	}
	s.out = append(s.out, s.text[j:]...)
}

// token writes one character and the space after it, and returns what follows.
func (s *spacer) token(j int) int {
	c := s.text[j]
	next := j + 1 + spaceAt(s.text, j+1)
	last := next >= len(s.text)
	comment := !last && isComment(s.text, next)
	if q, ok := s.valueAfterKey(j); ok {
		s.out = append(s.out, ": "...)
		return q
	}
	if _, starts := s.flows[at{s.i, j}]; starts {
		s.depth = 0
	} else if s.depth == 0 {
		s.out = append(s.out, c)
		return j + 1
	}
	switch c {
	case '[', '{':
		s.depth++
		s.out = append(s.out, c)
		if comment {
			s.out = append(s.out, ' ')
		}
		return next
	case ']', '}':
		s.depth--
		s.trimBefore()
		s.out = append(s.out, c)
		return j + 1
	case ',':
		s.trimBefore()
		s.out = append(s.out, c)
		if !last {
			s.out = append(s.out, ' ')
		}
		return next
	case ':':
		if next > j+1 {
			s.out = append(s.out, ": "...)
			return next
		}
	}
	s.out = append(s.out, c)
	return j + 1
}

// trimBefore removes space before a token that wants none, unless the token is
// the first of the line. A colon without a value keeps one, because without it
// the colon would belong to the key.
func (s *spacer) trimBefore() {
	trimmed := bytes.TrimRight(s.out, " \t")
	if len(trimmed) == 0 || len(trimmed) == len(s.out) {
		return
	}
	if trimmed[len(trimmed)-1] == ':' {
		trimmed = append(trimmed, ' ')
	}
	s.out = trimmed
}

// valueAfterKey returns where the value starts when the colon of a block's key is
// at j and the value is on the same line.
func (s *spacer) valueAfterKey(j int) (int, bool) {
	if s.text[j] != ':' || s.depth > 0 {
		return 0, false
	}
	next := j + 1 + spaceAt(s.text, j+1)
	if next == j+1 || next >= len(s.text) {
		return 0, false
	}
	return next, s.values[at{s.i, next}] || s.flows[at{s.i, next}]
}

// spaceAt counts the spaces and tabs from i on.
func spaceAt(text string, i int) int {
	n := 0
	for i+n < len(text) && (text[i+n] == ' ' || text[i+n] == '\t') {
		n++
	}
	return n
}
