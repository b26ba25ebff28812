package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"shunt/compiler/diag"
)

// writeGitHub writes workflow commands, one line for each finding, and a line
// for the log that counts them: annotations beyond the first few of a step are
// not shown.
func (r *Report) writeGitHub(out io.Writer) error {
	w := bufio.NewWriter(out)
	list, left := r.shown(active)
	lines := r.excerpts()
	for _, i := range list {
		f := &r.Findings[i]
		fmt.Fprintf(w, "::%s %s::%s\n", gitHubCommand(f.Severity), r.gitHubProperties(lines, f), gitHubData(gitHubText(f)))
	}
	if left > 0 {
		fmt.Fprintf(w, "::notice title=%s::%s\n", gitHubProperty(r.Tool), gitHubData(notShown(left)))
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(w, counts(r.Findings))
	}
	return w.Flush()
}

func gitHubCommand(s diag.Severity) string {
	if s == diag.Note {
		return "notice"
	}
	return s.String()
}

// gitHubProperties says where a finding is. An end on the same line needs a
// column, and an end on another line may not have one.
func (r *Report) gitHubProperties(lines *excerpts, f *diag.Finding) string {
	var out []string
	add := func(name, value string) { out = append(out, name+"="+gitHubProperty(value)) }
	if f.Pos.File != "" {
		add("file", Clean(r.fileName(f.Pos.File)))
	}
	if at := lines.region(f); at.line > 0 {
		add("line", fmt.Sprint(at.line))
		if at.column > 0 && at.endLine == at.line {
			add("col", fmt.Sprint(at.column))
			add("endLine", fmt.Sprint(at.endLine))
			add("endColumn", fmt.Sprint(at.endColumn))
		}
	}
	e, _ := diag.Lookup(f.Code)
	add("title", strings.TrimSpace(string(f.Code)+" "+e.Title))
	return strings.Join(out, ",")
}

// gitHubText is the message with hint and related places, on lines of their own.
func gitHubText(f *diag.Finding) string {
	lines := []string{Clean(f.Message)}
	if f.Hint != "" {
		lines = append(lines, "hint: "+Clean(diag.Shorten(f.Hint)))
	}
	for _, other := range f.Related {
		lines = append(lines, fmt.Sprintf("see: %s: %s", Clean(other.Pos.String()), Clean(diag.Shorten(other.Message))))
	}
	return strings.Join(lines, "\n")
}

// gitHubData escapes the text of a command.
func gitHubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// gitHubProperty escapes the value of a property of a command.
func gitHubProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
