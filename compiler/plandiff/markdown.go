package plandiff

import (
	"fmt"
	"io"
	"strings"
)

// Bounds of Markdown: a section with more lines is collapsed, and a comment of a
// pull request may have 65,536 characters.
const (
	openLines   = 20
	maxMarkdown = 60_000
)

// WriteMarkdown writes the difference as the comment of a pull request.
func (d *Diff) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### Routing: %s\n\n", d.summary())
	fmt.Fprintf(&b, "%s `%s` to %s `%s`\n", escape(clean(d.Old.Name)), short(d.Old.Digest), escape(clean(d.New.Name)), short(d.New.Digest))
	for _, s := range d.sections() {
		text := s.markdown()
		if b.Len()+len(text) > maxMarkdown {
			b.WriteString("\nMore does not fit into a comment; see `shunt diff`.\n")
			break
		}
		b.WriteString(text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func short(digest string) string {
	const most = len("sha256:") + 12
	return digest[:min(len(digest), most)]
}

// markdown is a section as a table, collapsed if it is long. What does not fit is
// counted.
func (s *section) markdown() string {
	lines := s.lines()
	var b strings.Builder
	long := len(lines) > openLines
	if long {
		fmt.Fprintf(&b, "\n<details><summary><b>%s</b>: %d differences</summary>\n", escape(s.title()), len(lines))
	} else {
		fmt.Fprintf(&b, "\n**%s**\n", escape(s.title()))
	}
	b.WriteString("\n| class | change |\n|---|---|\n")
	for i, l := range lines {
		row := fmt.Sprintf("| %s | %s |\n", mark(l.class), escape(l.text))
		if b.Len()+len(row) > maxMarkdown*3/4 {
			fmt.Fprintf(&b, "| | %d more |\n", len(lines)-i)
			break
		}
		b.WriteString(row)
	}
	if long {
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

func mark(c Class) string {
	if c == Breaking {
		return "**breaking**"
	}
	return string(c)
}

// escape keeps names from being read as Markdown or HTML.
func escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch c {
		case '&':
			b.WriteString("&amp;")
			continue
		case '<':
			b.WriteString("&lt;")
			continue
		case '>':
			b.WriteString("&gt;")
			continue
		case '@': // nobody is to be notified
			b.WriteString("&#64;")
			continue
		case '\\', '`', '*', '_', '[', ']', '|', '#', '~', '!', '$':
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
