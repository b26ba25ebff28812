package diag

import (
	"embed"
	"strconv"
	"strings"
)

//go:embed examples
var exampleFiles embed.FS

// Page is all there is to say about a code.
type Page struct {
	Entry
	// Commands are command lines that have to do with the finding; mostly none.
	Commands []string
	// Note is a sentence about the examples, or empty.
	Note string
	// Bad gives the finding and Good does not. Both are empty where no
	// configuration leads to the code, or none that fits on a page. The files of
	// one example are unified; those with a slash in their name lie beside them.
	Bad, Good []File
}

// File is a named text.
type File struct{ Name, Data string }

// Quoted reports whether each line of the text is a Go string literal, because
// it has bytes that text cannot show.
func (f File) Quoted() bool { return strings.HasSuffix(f.Name, ".quoted") }

// Raw returns the name and the bytes of the file that the text stands for.
func (f File) Raw() (name, data string) {
	if !f.Quoted() {
		return f.Name, f.Data
	}
	var b strings.Builder
	for line := range strings.Lines(f.Data) {
		if s, err := strconv.Unquote(strings.TrimSuffix(line, "\n")); err == nil {
			b.WriteString(s)
		}
	}
	return strings.TrimSuffix(f.Name, ".quoted"), b.String()
}

// PageOf returns the page of a code, and false when there is no such code.
func PageOf(code Code) (Page, bool) {
	e, ok := Lookup(code)
	if !ok {
		return Page{}, false
	}
	p := Page{Entry: e}
	data, err := exampleFiles.ReadFile("examples/" + string(code) + ".txtar")
	if err != nil {
		return p, true // it has none
	}
	comment, files := archive(string(data))
	for line := range strings.Lines(comment) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			p.Commands = append(p.Commands, strings.TrimSpace(command))
		} else {
			p.Note = strings.TrimSpace(p.Note + " " + strings.TrimSpace(line))
		}
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name, "bad") {
			p.Bad = append(p.Bad, f)
		} else {
			p.Good = append(p.Good, f)
		}
	}
	return p, true
}

// archive splits a text in the format txtar: a comment, then files, each behind
// a line with its name between "-- " and " --".
func archive(text string) (comment string, files []File) {
	var b strings.Builder
	name := ""
	flush := func() {
		if name == "" {
			comment = b.String()
		} else {
			files = append(files, File{name, b.String()})
		}
		b.Reset()
	}
	for line := range strings.Lines(text) {
		head, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- ")
		if next, end := strings.CutSuffix(head, " --"); ok && end {
			flush()
			name = next
			continue
		}
		b.WriteString(line)
	}
	flush()
	return comment, files
}
