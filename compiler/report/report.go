package report

import (
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"
	"slices"

	"shunt/compiler/diag"
)

// Report is a run whose findings are to be written.
type Report struct {
	// Tool and Version name the program.
	Tool, Version string
	// Findings are sorted.
	Findings diag.List
	// Max bounds how many findings are written, the worst first; 0 writes all.
	// Counts are those of all findings.
	Max int
	// Lines gives lines of an input for excerpts, first and last inclusive from
	// 1. It may return fewer lines, and may be nil.
	Lines func(file string, first, last int) []string
	// FailOn is the least severity that fails the run; the zero value is Error.
	FailOn diag.Severity
	// ExitStatus is that of the run.
	ExitStatus int
	// Quiet leaves everything out of texts that does not fail the run.
	Quiet bool
	// Inputs are the files that were read, so that formats can name those
	// without findings. It may be nil.
	Inputs []string
	// Dir is the folder that absolute names of files are made relative to where
	// they are below it, empty for none.
	Dir string
	// Named gives a JSON pointer of a file with names in the place of indices,
	// so that a finding is known again when elements are added before its own.
	// Nil leaves pointers as they are.
	Named func(file, pointer string) string
}

// Format is a way to write findings.
type Format string

// The formats of findings.
const (
	Text       Format = "text"
	TextColor  Format = "text with colour"
	JSON       Format = "json"
	SARIF      Format = "sarif"
	GitHub     Format = "github"
	JUnit      Format = "junit"
	Checkstyle Format = "checkstyle"
	GitLab     Format = "gitlab"
)

// Formats lists the formats that a user can name.
func Formats() []Format {
	return []Format{Text, JSON, SARIF, GitHub, JUnit, Checkstyle, GitLab}
}

// Document reports whether a report in this format is one document, so that
// nothing else may be on its stream.
func (f Format) Document() bool { return f != Text && f != TextColor && f != GitHub }

// Write writes the report in a format.
func (r *Report) Write(w io.Writer, f Format) error {
	switch f {
	case Text:
		return r.writeText(w, false)
	case TextColor:
		return r.writeText(w, true)
	case JSON:
		return r.writeJSON(w)
	case SARIF:
		return r.writeSARIF(w)
	case GitHub:
		return r.writeGitHub(w)
	case JUnit:
		return r.writeJUnit(w)
	case Checkstyle:
		return r.writeCheckstyle(w)
	case GitLab:
		return r.writeGitLab(w)
	}
	return fmt.Errorf("unknown format %q", f)
}

// active selects the findings that count.
func active(f *diag.Finding) bool { return f.Suppressed == nil }

// every selects all findings.
func every(*diag.Finding) bool { return true }

// shown lists the indices of the findings to write out of those that are wanted,
// in their order, and how many are left out. Those that do not fit are the least
// severe ones, and suppressed ones before all others.
func (r *Report) shown(wanted func(*diag.Finding) bool) (index []int, left int) {
	for i := range r.Findings {
		if wanted(&r.Findings[i]) {
			index = append(index, i)
		}
	}
	if r.Max <= 0 || len(index) <= r.Max {
		return index, 0
	}
	rank := func(i int) int {
		if r.Findings[i].Suppressed != nil {
			return int(diag.Note) + 1
		}
		return int(r.Findings[i].Severity)
	}
	slices.SortStableFunc(index, func(a, b int) int { return rank(a) - rank(b) })
	left = len(index) - r.Max
	index = index[:r.Max]
	slices.Sort(index)
	return index, left
}

// notShown says how many findings are left out.
func notShown(left int) string {
	return fmt.Sprintf("%d more findings are not shown; see --max-findings", left)
}

// fileName is the name of a file for programs: with forward slashes, relative
// where that is possible, and without a leading "./".
func (r *Report) fileName(name string) string {
	if name == "" {
		return ""
	}
	if r.Dir != "" && filepath.IsAbs(name) {
		if rel, err := filepath.Rel(r.Dir, name); err == nil && filepath.IsLocal(rel) {
			name = rel
		}
	}
	return path.Clean(filepath.ToSlash(name))
}

// excerpts gives the lines of inputs without their secrets.
type excerpts struct {
	lines func(file string, first, last int) []string
	// secrets are the places of all findings of the report, since the line of
	// one may hold the secret of another.
	secrets map[lineAt][][2]int
	// The last line that was asked for, and all long ones: a whole configuration
	// may stand on one line, with thousands of mistakes.
	last excerpt
	long map[lineAt]excerpt
}

// excerpt is a line of an input.
type excerpt struct {
	at lineAt
	ok bool
	// raw is the line as it is, and masked what may be shown of it, which has
	// the same length.
	raw, masked string
	// steps count the code units of a long line, one about every unitStep bytes.
	steps []step
}

// Lines of more than longLine bytes are kept.
const (
	longLine = 4096
	unitStep = 1024
)

type lineAt struct {
	file string
	line int
}

func (r *Report) excerpts() *excerpts {
	e := &excerpts{lines: r.Lines, secrets: make(map[lineAt][][2]int), long: make(map[lineAt]excerpt)}
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

// line returns what may be shown of the line of a place.
func (e *excerpts) line(p diag.Pos) (string, bool) {
	x := e.look(p)
	return x.masked, x.ok
}

// look returns the line of a place. It is valid until the next one.
func (e *excerpts) look(p diag.Pos) *excerpt {
	if e.lines == nil || !p.Known() {
		return &excerpt{}
	}
	at := lineAt{p.File, p.Line}
	if at == e.last.at {
		return &e.last
	}
	if x, ok := e.long[at]; ok {
		e.last = x
		return &e.last
	}
	e.last = excerpt{at: at}
	if lines := e.lines(p.File, p.Line, p.Line); len(lines) == 1 {
		e.last = excerpt{at: at, ok: true, raw: lines[0], masked: e.masked(at, lines[0])}
	}
	if len(e.last.raw) > longLine {
		e.last.count()
		e.long[at] = e.last
	}
	return &e.last
}

// masked hides the secrets of a line, byte for byte.
func (e *excerpts) masked(at lineAt, line string) string {
	out := []byte(diag.Mask(line))
	for _, s := range e.secrets[at] {
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
	if n := l.Suppressed(); n > 0 {
		text += fmt.Sprintf(", %d suppressed", n)
	}
	return text
}
