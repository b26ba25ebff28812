package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"shunt/compiler/diag"
)

// Escape sequences of ANSI terminals.
const (
	reset = "\x1b[0m"
	bold  = "\x1b[1m"
	red   = "\x1b[1;31m"
	amber = "\x1b[1;33m"
	blue  = "\x1b[1;34m"
	faint = "\x1b[2m"
)

// excerptWidth is how many characters of a long line an excerpt shows. A whole
// configuration may stand on one line of JSON.
const excerptWidth = 120

// windowBytes is more bytes than the characters of an excerpt may have.
const windowBytes = 8 * excerptWidth

// textWriter writes text, with or without colour.
type textWriter struct {
	*bufio.Writer
	color bool
}

// paint puts text in a colour, when colours are on.
func (w textWriter) paint(color, text string) string {
	if !w.color || text == "" {
		return text
	}
	return color + text + reset
}

func (r *Report) writeText(out io.Writer, color bool) error {
	w := textWriter{bufio.NewWriter(out), color}
	list, left := r.shown(func(f *diag.Finding) bool {
		return active(f) && (!r.Quiet || f.Severity.AtLeast(r.FailOn))
	})
	lines := r.excerpts()
	for _, i := range list {
		lines.finding(w, &r.Findings[i])
	}
	if left > 0 {
		fmt.Fprintln(w, notShown(left))
	}
	if len(r.Findings) > 0 && !r.Quiet {
		fmt.Fprintln(w, counts(r.Findings))
	}
	return w.Flush()
}

// finding writes the line of a finding, its excerpt, hint and related places.
func (e *excerpts) finding(w textWriter, f *diag.Finding) {
	fmt.Fprintf(w, "%s: %s: %s %s\n", w.paint(bold, Clean(f.Pos.String())), w.paint(severityColor(f.Severity), f.Severity.String()),
		w.paint(bold, Clean(f.Message)), w.paint(faint, "["+string(f.Code)+"]"))
	e.excerpt(w, f.Pos, f.End, severityColor(f.Severity))
	if f.Hint != "" {
		fmt.Fprintf(w, "  %s %s\n", w.paint(blue, "hint:"), Clean(diag.Shorten(f.Hint)))
	}
	for _, other := range f.Related {
		fmt.Fprintf(w, "  %s %s: %s\n", w.paint(blue, "see:"), Clean(other.Pos.String()), Clean(diag.Shorten(other.Message)))
	}
}

func severityColor(s diag.Severity) string {
	switch s {
	case diag.Error:
		return red
	case diag.Warning:
		return amber
	}
	return blue
}

// excerpt writes the line of a place and underlines it.
func (e *excerpts) excerpt(w textWriter, pos, end diag.Pos, color string) {
	line, ok := e.line(pos)
	if !ok || pos.Column < 1 || pos.Column > len(line)+1 {
		return
	}
	from, to := pos.Column-1, pos.Column
	if end.Line == pos.Line && end.Column > pos.Column {
		to = min(end.Column-1, len(line))
	}
	before, marked, after := window(line[:from], line[from:min(to, len(line))], line[min(to, len(line)):])
	number := fmt.Sprint(pos.Line)
	fmt.Fprintf(w, "  %s %s%s%s\n", w.paint(faint, number+" |"), before, marked, after)
	mark := "^" + strings.Repeat("~", max(columns(marked)-1, 0))
	fmt.Fprintf(w, "  %s %s%s\n", w.paint(faint, strings.Repeat(" ", len(number))+" |"), indent(before), w.paint(color, mark))
}

// window cleans the parts of a line and shortens a long line around the marked
// part.
func window(before, marked, after string) (string, string, string) {
	// What is far beyond the window is not cleaned, character by character, for
	// each of many findings.
	before = Clean(before[max(len(before)-windowBytes, 0):])
	marked = Clean(marked[:min(len(marked), windowBytes)])
	after = Clean(after[:min(len(after), windowBytes)])
	if n := utf8.RuneCountInString(marked); n > excerptWidth {
		marked, after = firstRunes(marked, excerptWidth), "..."
	}
	room := max(excerptWidth-utf8.RuneCountInString(marked), 20)
	if n := utf8.RuneCountInString(before); n > room*2/3 && n+utf8.RuneCountInString(after) > room {
		before = "..." + lastRunes(before, room*2/3)
	}
	if rest := max(room-utf8.RuneCountInString(before), 10); utf8.RuneCountInString(after) > rest {
		after = firstRunes(after, rest) + "..."
	}
	return before, marked, after
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	return s[len(firstRunes(s, utf8.RuneCountInString(s)-n)):]
}

// indent is the white space below a text; tabs stay, so that they stay as wide.
func indent(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' {
			return c
		}
		return ' '
	}, strings.Repeat(" ", columns(text)-utf8.RuneCountInString(text))+text)
}

// columns is how many columns of a terminal a text takes; characters of East
// Asian scripts and emoji take two.
func columns(text string) int {
	n := 0
	for _, c := range text {
		n++
		if c >= 0x1100 && (c <= 0x115f || c >= 0x2e80 && c <= 0xa4cf || c >= 0xac00 && c <= 0xd7a3 ||
			c >= 0xf900 && c <= 0xfaff || c >= 0xfe30 && c <= 0xfe6f || c >= 0xff00 && c <= 0xff60 || c >= 0x1f300 && c <= 0x1faff) {
			n++
		}
	}
	return n
}

// Clean replaces what a terminal could act on: control characters other than tab
// and bytes that are not UTF-8. Text that comes from inputs goes through it.
func Clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || c != utf8.RuneError && (unicode.IsPrint(c) || unicode.Is(unicode.Zs, c)) {
			return c
		}
		return '\uFFFD'
	}, s)
}
