package report

import (
	"fmt"
	"io"
	"strings"

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

// line returns one line of an input.
func (r *Report) line(p diag.Pos) (string, bool) {
	if r.Lines == nil || !p.Known() {
		return "", false
	}
	lines := r.Lines(p.File, p.Line, p.Line)
	if len(lines) != 1 {
		return "", false
	}
	return masked(lines[0]), true
}

// masked hides user information in the URLs of a line, byte for byte, so that
// passwords do not get into the logs of a build. Places stay what they are.
func masked(line string) string {
	out := []byte(line)
	for from := 0; ; {
		i := strings.Index(line[from:], "://")
		if i < 0 {
			return string(out)
		}
		from += i + len("://")
		end := strings.IndexAny(line[from:], "@/?# \t\"'")
		if end < 0 || line[from+end] != '@' {
			continue
		}
		for ; end > 0; end-- {
			out[from] = '*'
			from++
		}
	}
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
