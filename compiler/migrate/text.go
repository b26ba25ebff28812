package migrate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"shunt/compiler/diag"
)

// title says what an outcome means, for people in a hurry.
func (o Outcome) title() string {
	switch o {
	case Rejected:
		return "not in the configuration; each says the way out"
	case NeedsDecision:
		return "not in the configuration before you decide"
	case Changed:
		return "in the configuration, with another meaning; read these"
	case Renamed:
		return "in the configuration under another name or place"
	case Carried:
		return "same meaning"
	case Defaulted:
		return "not given; the older router's default is retained"
	}
	return ""
}

// headline is the result in one line.
func (r *Report) headline() string {
	var parts []string
	for _, o := range Outcomes() {
		if n := r.Count(o); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	state := "complete"
	switch {
	case r.Written && r.Partial:
		state = "written in part, with marks TODO(shunt)"
	case !r.Written:
		state = "not written"
	}
	if len(parts) == 0 {
		return "migration " + state
	}
	return fmt.Sprintf("migration %s: %s", state, strings.Join(parts, ", "))
}

// clean takes control characters out of a line of text.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// Text writes the report for people: what stands in the way first.
func (r *Report) Text(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, clean(r.headline()))
	for _, f := range r.Findings {
		fmt.Fprintf(w, "\n%s: %s [%s]\n", f.Severity, clean(prefix(f.Pos)+f.Message), f.Code)
		if f.Hint != "" {
			fmt.Fprintf(w, "    do: %s\n", clean(f.Hint))
		}
	}
	for _, o := range Outcomes() {
		lines := r.sorted(o)
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", strings.ToUpper(string(o)), o.title())
		for _, l := range equal(w, lines) {
			l.text(w)
		}
	}
	r.swapText(w)
	return w.Flush()
}

// equal writes together what needs no attention of its own: defaults that are the
// same here, and fields that wait for others. It returns the other lines.
func equal(w io.Writer, lines []*Line) (others []*Line) {
	var same, waiting []string
	for _, l := range lines {
		switch {
		case l.only(Defaulted, sameDefault):
			same = append(same, strings.TrimSuffix(strings.Replace(l.Source, " (not given", "", 1), ")"))
		case l.only(NeedsDecision, waits):
			waiting = append(waiting, prefix(l.Pos)+l.Source)
		default:
			others = append(others, l)
		}
	}
	for _, part := range []struct {
		title string
		list  []string
	}{{"the same here, so nothing is written:", same}, {"these depend on the open questions and mistakes of the bucket file:", waiting}} {
		if len(part.list) > 0 {
			fmt.Fprintf(w, "  %s\n", part.title)
		}
		for _, s := range part.list {
			fmt.Fprintf(w, "      %s\n", clean(s))
		}
	}
	return others
}

// only reports whether all there is to say about a line is one note.
func (l *Line) only(o Outcome, note string) bool {
	return l.Outcome == o && len(l.Targets) == 0 && len(l.Findings) == 0 && len(l.Changes) == 0 && len(l.Notes) == 1 && l.Notes[0] == note
}

func prefix(p diag.Pos) string {
	if p.File == "" {
		return ""
	}
	return p.String() + ": "
}

func (l *Line) text(w io.Writer) {
	fmt.Fprintf(w, "  %s%s%s\n", clean(prefix(l.Pos)), clean(l.Source), clean(arrow(l.Targets)))
	for _, f := range l.Findings {
		word := ""
		if f.Severity != diag.Error {
			word = f.Severity.String() + ": "
		}
		fmt.Fprintf(w, "      %s%s [%s]\n", word, clean(f.Message), f.Code)
		if f.Hint != "" {
			fmt.Fprintf(w, "      do: %s\n", clean(f.Hint))
		}
	}
	for _, c := range l.Changes {
		fmt.Fprintf(w, "      %s: %s\n", c.Row, clean(c.Text))
	}
	for _, n := range l.Notes {
		fmt.Fprintf(w, "      %s\n", clean(n))
	}
}

// arrow names where a value went.
func arrow(targets []string) string {
	const most = 3
	if len(targets) == 0 {
		return ""
	}
	if n := len(targets) - most; n > 0 {
		return fmt.Sprintf(" -> %s and %d more", strings.Join(targets[:most], ", "), n)
	}
	return " -> " + strings.Join(targets, ", ")
}

func (r *Report) swapText(w io.Writer) {
	if len(r.Swaps) == 0 {
		return
	}
	fmt.Fprintf(w, "\nORDER OF BUCKETS: pairs that change places, for requests that fit both\n")
	for _, s := range r.Swaps {
		fmt.Fprintf(w, "  %s is now tried before %s; the %s stage tried it after\n", clean(s.First), clean(s.Second), s.Stage)
	}
	if r.MoreSwaps > 0 {
		fmt.Fprintf(w, "  and %d more pairs\n", r.MoreSwaps)
	}
}

// The format of the report for programs.
const (
	JSONFormat  = "shunt.migration"
	JSONVersion = 1
)

// The document for programs. Its names are a contract: fields are added, never
// renamed or removed, within a version.
type (
	document struct {
		Format    string          `json:"format"`
		Version   int             `json:"version"`
		Program   string          `json:"program,omitempty"`
		Container string          `json:"container,omitempty"`
		Complete  bool            `json:"complete"`
		Written   bool            `json:"written"`
		Counts    map[Outcome]int `json:"counts"`
		Lines     []entry         `json:"lines"`
		Swaps     []Swap          `json:"order_changes"`
		MoreSwaps int             `json:"order_changes_left_out,omitempty"`
		Findings  []finding       `json:"findings"`
	}
	entry struct {
		Outcome Outcome `json:"outcome"`
		Source  string  `json:"source"`
		File    string  `json:"file,omitempty"`
		Line    int     `json:"line,omitempty"`
		Column  int     `json:"column,omitempty"`
		// Elements count from 1.
		Elements []int     `json:"elements,omitempty"`
		Field    string    `json:"field,omitempty"`
		Targets  []string  `json:"targets"`
		Changes  []Change  `json:"changes,omitempty"`
		Notes    []string  `json:"notes,omitempty"`
		Findings []finding `json:"findings,omitempty"`
	}
	finding struct {
		Code     diag.Code `json:"code"`
		Severity string    `json:"severity"`
		File     string    `json:"file,omitempty"`
		Line     int       `json:"line,omitempty"`
		Column   int       `json:"column,omitempty"`
		Message  string    `json:"message"`
		Do       string    `json:"do,omitempty"`
	}
)

func findings(list diag.List) []finding {
	out := make([]finding, 0, len(list))
	for _, f := range list {
		out = append(out, finding{f.Code, f.Severity.String(), f.Pos.File, f.Pos.Line, f.Pos.Column, f.Message, f.Hint})
	}
	return out
}

// JSON writes the report for programs.
func (r *Report) JSON(out io.Writer) error {
	d := document{
		Format: JSONFormat, Version: JSONVersion, Program: r.Program, Container: r.Container,
		Complete: r.Fine() && r.Written && !r.Partial, Written: r.Written, Counts: make(map[Outcome]int),
		Lines: make([]entry, 0, len(r.Lines)), Swaps: append([]Swap{}, r.Swaps...), MoreSwaps: r.MoreSwaps, Findings: findings(r.Findings),
	}
	for _, o := range Outcomes() {
		d.Counts[o] = r.Count(o)
	}
	for _, l := range r.Lines {
		e := entry{
			Outcome: l.Outcome, Source: l.Source, File: l.Pos.File, Line: l.Pos.Line, Column: l.Pos.Column,
			Field: l.Field, Targets: append([]string{}, l.Targets...), Changes: l.Changes, Notes: l.Notes, Findings: findings(l.Findings),
		}
		for _, i := range l.Elements {
			e.Elements = append(e.Elements, i+1)
		}
		d.Lines = append(d.Lines, e)
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// Markdown writes the report for a review.
func (r *Report) Markdown(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "# Migration\n\n%s.\n", escape(r.headline()))
	if len(r.Findings) > 0 {
		fmt.Fprintf(w, "\n## As a whole\n\n")
		for _, f := range r.Findings {
			fmt.Fprintf(w, "- %s `%s`: %s\n", f.Severity, f.Code, escape(sentence(prefix(f.Pos)+f.Message, f.Hint)))
		}
	}
	for _, o := range Outcomes() {
		lines := r.sorted(o)
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n## %s\n\n%s.\n\n| source | place | in the configuration | what to know |\n|---|---|---|---|\n", o, o.title())
		for _, l := range lines {
			at := ""
			if l.Pos.File != "" {
				at = l.Pos.String()
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", code(l.Source), escape(at), escape(strings.TrimPrefix(arrow(l.Targets), " -> ")), l.markdown())
		}
	}
	if len(r.Swaps) > 0 {
		fmt.Fprintf(w, "\n## Order of buckets\n\nPairs that change places, for requests that fit both.\n\n| tried first now | tried first before | stage |\n|---|---|---|\n")
		for _, s := range r.Swaps {
			fmt.Fprintf(w, "| %s | %s | %s |\n", code(s.First), code(s.Second), s.Stage)
		}
		if r.MoreSwaps > 0 {
			fmt.Fprintf(w, "\nAnd %d more pairs.\n", r.MoreSwaps)
		}
	}
	return w.Flush()
}

// markdown is what is to know about a line, in one cell.
func (l *Line) markdown() string {
	var parts []string
	for _, f := range l.Findings {
		parts = append(parts, fmt.Sprintf("`%s` %s", f.Code, escape(sentence(f.Message, f.Hint))))
	}
	for _, c := range l.Changes {
		parts = append(parts, "**"+string(c.Row)+"**: "+escape(c.Text))
	}
	for _, n := range l.Notes {
		parts = append(parts, escape(n))
	}
	return strings.Join(parts, "<br>")
}

func sentence(message, hint string) string {
	if hint == "" {
		return message
	}
	return message + ". Do: " + hint
}

// escape makes text of what Markdown would take for something else.
func escape(s string) string {
	var b strings.Builder
	for _, r := range clean(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// code writes a text as code in a cell.
func code(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(clean(s), "`", "'"), "|", `\|`)
	return "`" + s + "`"
}
