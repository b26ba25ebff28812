package report

import (
	"fmt"
	"io"
	"strings"

	"shunt/compiler/diag"
)

// Page writes the page of a code as text for a terminal.
func Page(w io.Writer, p diag.Page) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n\n%s\n\n%s\n", p.Code, p.Severity, p.Title, wrap(p.Explanation), wrap(p.Hint))
	if a := acceptance(p.Entry); a != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap(a))
	}
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "\n   $ %s\n", c)
	}
	if p.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap(p.Note))
	}
	for _, part := range examplesOf(p) {
		fmt.Fprintf(&b, "\n%s\n", part.title)
		for _, f := range part.files {
			if len(part.files) > 1 {
				fmt.Fprintf(&b, "\n   %s\n", f.Name)
			}
			b.WriteByte('\n')
			for line := range strings.Lines(f.Data) {
				b.WriteString("   " + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// acceptance says how a finding of the static analysis is accepted; errors and
// what other commands report never are.
func acceptance(e diag.Entry) string {
	if !strings.HasPrefix(string(e.Code), "SH03") || e.Severity == diag.Error {
		return ""
	}
	return fmt.Sprintf("Where it is meant, write # shunt:ignore %s and the reason as a comment on its line or above.", e.Code)
}

type examplePart struct {
	title string
	files []diag.File
}

func examplesOf(p diag.Page) (out []examplePart) {
	if len(p.Bad) > 0 {
		out = append(out, examplePart{"Bad:", p.Bad})
	}
	if len(p.Good) > 0 {
		out = append(out, examplePart{"Good:", p.Good})
	}
	return out
}

// Pages writes the pages of all codes as one Markdown document.
func Pages(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Findings\n\n" +
		"Every code that `shunt` reports, with an example that gives the finding and one that does not. `shunt explain\n" +
		"CODE` prints one page, `shunt rules` lists them. This file is generated; `UPDATE=1 go test ./golden` rewrites it.\n\n" +
		"| code | severity | finding |\n|---|---|---|\n")
	table := diag.Table()
	for _, e := range table {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", e.Code, strings.ToLower(string(e.Code)), e.Severity, strings.ReplaceAll(e.Title, "|", `\|`))
	}
	for _, e := range table {
		p, ok := diag.PageOf(e.Code)
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n**%s: %s.** %s\n\n%s\n", p.Code, p.Severity, p.Title, p.Explanation, p.Hint)
		if a := acceptance(p.Entry); a != "" {
			fmt.Fprintf(&b, "\n%s\n", a)
		}
		if len(p.Commands) > 0 {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.Join(p.Commands, "\n"))
		}
		if p.Note != "" {
			fmt.Fprintf(&b, "\n%s\n", p.Note)
		}
		for _, part := range examplesOf(p) {
			for i, f := range part.files {
				title := part.title
				if i > 0 {
					title = fmt.Sprintf("With `%s`:", f.Name)
				}
				fmt.Fprintf(&b, "\n%s\n\n```%s\n%s```\n", title, language(f), f.Data)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// language is the name of the syntax of a file.
func language(f diag.File) string {
	switch {
	case f.Quoted():
		return "text"
	case strings.HasSuffix(f.Name, ".json"):
		return "json"
	case strings.HasSuffix(f.Name, ".cue"):
		return "cue"
	}
	return "yaml"
}

// wrap breaks a paragraph into lines of at most 80 characters.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > 80:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
