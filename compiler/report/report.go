package report

import (
	"fmt"
	"io"
	"math"

	"shunt/compiler/diag"
)

// Report is a run whose findings are to be written.
type Report struct {
	// Tool and Version name the program.
	Tool, Version string
	// Findings are sorted.
	Findings diag.List
	// Max bounds how many findings are written; 0 writes all. Counts are those
	// of all findings.
	Max int
	// Lines gives lines of an input for excerpts, first and last inclusive from
	// 1. It may return fewer lines, and may be nil.
	Lines func(file string, first, last int) []string
}

// Format is a way to write findings.
type Format string

// The formats of findings.
const (
	Text      Format = "text"
	TextColor Format = "text with colour"
	JSON      Format = "json"
)

// Write writes the report in a format.
func (r *Report) Write(w io.Writer, f Format) error {
	switch f {
	case Text:
		return r.writeText(w, false)
	case TextColor:
		return r.writeText(w, true)
	case JSON:
		return r.writeJSON(w)
	}
	return fmt.Errorf("unknown format %q", f)
}

// shown lists the findings to write and how many are left out.
func (r *Report) shown() (list diag.List, left int) {
	if r.Max > 0 && len(r.Findings) > r.Max {
		return r.Findings[:r.Max], len(r.Findings) - r.Max
	}
	return r.Findings, 0
}

// excerpts gives the lines of inputs without their secrets.
type excerpts struct {
	lines func(file string, first, last int) []string
	// secrets are the places of all findings of the report, since the line of
	// one may hold the secret of another.
	secrets map[lineAt][][2]int
	// The last line that was asked for. A whole configuration may stand on one
	// line, with thousands of mistakes.
	last lineAt
	text string
	ok   bool
}

type lineAt struct {
	file string
	line int
}

func (r *Report) excerpts() *excerpts {
	e := &excerpts{lines: r.Lines, secrets: make(map[lineAt][][2]int)}
	for i := range r.Findings {
		from, to := r.Findings[i].Secret, r.Findings[i].SecretEnd
		if !from.Known() {
			continue
		}
		end := math.MaxInt
		if to.Line == from.Line {
			end = to.Column - 1
		}
		at := lineAt{from.File, from.Line}
		e.secrets[at] = append(e.secrets[at], [2]int{from.Column - 1, end})
	}
	return e
}

// line returns the line of a place.
func (e *excerpts) line(p diag.Pos) (string, bool) {
	if e.lines == nil || !p.Known() {
		return "", false
	}
	if at := (lineAt{p.File, p.Line}); at != e.last {
		e.last, e.text, e.ok = at, "", false
		if lines := e.lines(p.File, p.Line, p.Line); len(lines) == 1 {
			e.text, e.ok = e.masked(lines[0]), true
		}
	}
	return e.text, e.ok
}

// masked hides the secrets of the line at hand, byte for byte.
func (e *excerpts) masked(line string) string {
	out := []byte(diag.Mask(line))
	for _, s := range e.secrets[e.last] {
		for i := max(s[0], 0); i < min(s[1], len(out)); i++ {
			if out[i] != '"' && out[i] != '\'' {
				out[i] = '*'
			}
		}
	}
	return string(out)
}

// counts names the numbers of findings by severity, for a summary line.
func counts(l diag.List) string {
	one := func(n int, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	text := one(l.Count(diag.Error), "error") + ", " + one(l.Count(diag.Warning), "warning")
	if n := l.Count(diag.Note); n > 0 {
		text += ", " + one(n, "note")
	}
	return text
}
