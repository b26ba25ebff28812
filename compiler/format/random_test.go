package format_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"shunt/compiler/format"
	"shunt/compiler/source"
)

// scribe writes the same kind of document in as many ways as YAML has: any
// indent, comments at any column, empty lines, flow and block, all quotes.
type scribe struct {
	*rand.Rand
	out strings.Builder
	n   int
}

func (s *scribe) pad() string { return strings.Repeat(" ", 1+s.IntN(3)) }

func (s *scribe) name() string {
	s.n++
	switch s.IntN(6) {
	case 0:
		return fmt.Sprintf("%q", fmt.Sprintf("k  %d: #", s.n))
	case 1:
		return fmt.Sprintf("'k''  %d'", s.n)
	}
	return fmt.Sprintf("k%d", s.n)
}

// end ends a line, perhaps with a comment, and with lines that mean nothing.
func (s *scribe) end() {
	if s.IntN(4) == 0 {
		s.out.WriteString(s.pad() + "# it's \"a\" {comment}: [" + s.pad())
	} else if s.IntN(6) == 0 {
		s.out.WriteString(s.pad())
	}
	s.out.WriteString("\n")
	for s.IntN(5) == 0 {
		if s.IntN(2) == 0 {
			s.out.WriteString(strings.Repeat(" ", s.IntN(4)) + "\n")
		} else {
			s.out.WriteString(strings.Repeat(" ", s.IntN(12)) + "#- a: b # c\n")
		}
	}
}

// flow writes a value in brackets, over several lines where the indent says how
// far these must be in.
func (s *scribe) flow(indent, depth int) string {
	space := func() string {
		if s.IntN(8) == 0 {
			return "   # in, {here}\n" + strings.Repeat(" ", indent+s.IntN(6))
		}
		if s.IntN(8) == 0 {
			return "\n" + strings.Repeat(" ", indent+s.IntN(6))
		}
		return strings.Repeat(" ", s.IntN(3))
	}
	if depth == 0 || s.IntN(3) == 0 {
		return []string{"1", "a  b", "'x, y'", `"{ # }"`, "http://a:1/#b", "-x", "0.5", "two\n\n\n" + strings.Repeat(" ", indent) + "lines"}[s.IntN(8)]
	}
	var parts []string
	object := s.IntN(2) == 0
	for range s.IntN(4) {
		part := s.flow(indent, depth-1)
		if object {
			part = s.name() + ":" + s.pad() + part
		}
		parts = append(parts, part)
	}
	text := space() + strings.Join(parts, space()+","+space()) + space()
	if object {
		return "{" + text + "}"
	}
	return "[" + text + "]"
}

// value writes what follows a colon or a dash of a block at an indent.
func (s *scribe) value(indent, depth int, dash bool) {
	in := strings.Repeat(" ", indent+1+s.IntN(4))
	switch s.IntN(9) {
	case 0:
		s.out.WriteString(" " + []string{"plain  text", "http://x:1/#y", "1.50", "~", "yes", "*no"}[s.IntN(5)])
	case 1:
		s.out.WriteString(s.pad() + "\"two\n" + in + "lines   \\\n\n" + in + "# three\"")
	case 2:
		s.out.WriteString(s.pad() + "plain\n" + strings.Repeat("\n", s.IntN(4)) + in + "- goes on\n" + strings.Repeat(" \n", s.IntN(4)) + in + "  and on")
	case 3:
		head := []string{"|", ">", "|-", ">+", "|+"}[s.IntN(5)]
		s.out.WriteString(s.pad() + head + "\n" + in + "text  # text\n\n" + in + "   more: [\n" + strings.Repeat("\n", s.IntN(3)))
		if !strings.HasSuffix(head, "+") {
			for s.IntN(3) == 0 {
				s.out.WriteString("\n")
			}
		}
		return
	case 4:
		s.out.WriteString(s.pad() + s.flow(indent+1, 3))
	default:
		if depth == 0 {
			s.out.WriteString(s.pad() + "1")
			break
		}
		if s.IntN(2) == 0 {
			s.end()
			s.object(indent+1+s.IntN(4), depth-1, false)
		} else {
			s.end()
			step := s.IntN(4)
			if dash {
				step++
			}
			s.list(indent+step, depth-1)
		}
		return
	}
	s.end()
}

func (s *scribe) object(indent, depth int, started bool) {
	for range 1 + s.IntN(3) {
		if !started {
			s.out.WriteString(strings.Repeat(" ", indent))
		}
		started = false
		s.out.WriteString(s.name() + ":")
		s.value(indent, depth, false)
	}
}

func (s *scribe) list(indent, depth int) {
	for range 1 + s.IntN(3) {
		s.out.WriteString(strings.Repeat(" ", indent) + "-")
		if depth > 0 && s.IntN(3) == 0 {
			pad := s.pad()
			s.out.WriteString(pad)
			s.object(indent+1+len(pad), depth-1, true)
			continue
		}
		s.value(indent, depth, true)
	}
}

// TestRandomDocuments lays random documents out: only space changes, nothing
// changes the second time, and none is beyond it.
func TestRandomDocuments(t *testing.T) {
	count := 0
	for seed := range uint64(3000) {
		s := &scribe{Rand: rand.New(rand.NewPCG(seed, 1))}
		s.end()
		s.object(0, 4, false)
		text := s.out.String()
		out, findings := format.File(t.Context(), source.Options{}, "a.yaml", []byte(text))
		if len(findings) > 0 {
			if findings[0].Code == "SH0004" {
				t.Fatalf("seed %d: %v\n%s", seed, findings, text)
			}
			continue // not every document is one
		}
		count++
		if bare(out) != bare([]byte(text)) {
			t.Fatalf("seed %d: more than space changed\n%s\nbecame\n%s", seed, text, out)
		}
		if again := lay(t, "a.yaml", string(out)); again != string(out) {
			t.Fatalf("seed %d\n%s\nbecame\n%s\nbecame\n%s", seed, text, out, again)
		}
	}
	if count < 1500 {
		t.Errorf("only %d documents", count)
	}
}
