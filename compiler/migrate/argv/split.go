package argv

import (
	"fmt"
	"strings"

	"shunt/compiler/diag"
)

// quoting is how a text without a shell is split into words.
type quoting uint8

const (
	// plainQuoting knows quotes, and a backslash that takes the next character as
	// it is.
	plainQuoting quoting = iota
	// unitQuoting is that of systemd, with the escapes of C in quotes too.
	unitQuoting
)

// split splits a text at blanks outside of quotes. What is open in the whole is
// open in the words that contain it.
func (r *reader) split(whole *word, q quoting) []*word {
	s := &splitter{reader: r, text: whole.text(), quoting: q}
	s.run()
	for _, w := range s.out {
		w.inheritPart(whole, string(w.buf))
	}
	return s.out
}

type splitter struct {
	*reader
	text    *text
	quoting quoting
	cur     *word
	out     []*word
}

func (s *splitter) begin(i int) {
	if s.cur == nil {
		s.cur = &word{at: s.text.pos(i)}
	}
}

func (s *splitter) end() {
	if s.cur != nil {
		s.out = append(s.out, s.cur)
	}
	s.cur = nil
}

func (s *splitter) run() {
	v := s.text.value
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case isBlank(c) || c == '\r':
			s.end()
			i++
		case c == '"' || c == '\'':
			s.begin(i)
			s.cur.some = true
			i = s.quoted(i+1, c)
		case c == '\\' && i+1 < len(v):
			s.begin(i)
			i += s.escape(i, 0)
		default:
			s.begin(i)
			j := i + 1
			for j < len(v) && strings.IndexByte(" \t\r\n\"'\\", v[j]) < 0 {
				j++
			}
			s.cur.addText(s.text, i, j)
			i = j
		}
	}
	s.end()
}

// quoted adds what stands between quotes and returns the offset behind them.
func (s *splitter) quoted(i int, quote byte) int {
	v := s.text.value
	open := i - 1
	for i < len(v) && v[i] != quote {
		if v[i] == '\\' && i+1 < len(v) && (quote == '"' || s.quoting == unitQuoting) {
			i += s.escape(i, quote)
			continue
		}
		j := i + 1
		for j < len(v) && v[j] != quote && v[j] != '\\' {
			j++
		}
		s.cur.addText(s.text, i, j)
		i = j
	}
	if i >= len(v) {
		f := s.add(diag.Syntax, s.text.pos(open), fmt.Sprintf("the quote %c that opens here is not closed", quote))
		f.Hint = "close it, or put a backslash before it"
	}
	return i + 1
}

// escape adds what a backslash stands for with the character behind it, and
// returns the length of both.
func (s *splitter) escape(i int, quote byte) int {
	v := s.text.value
	if s.quoting == unitQuoting {
		value, size := unescapeC(v[i:min(i+10, len(v))])
		s.cur.addFixed(value, s.text.pos(i))
		return size
	}
	if quote == '"' && strings.IndexByte("\"\\$`", v[i+1]) < 0 {
		s.cur.addText(s.text, i, i+2)
		return 2
	}
	s.cur.addText(s.text, i+1, i+2)
	return 2
}
