package source

import (
	"bytes"
	"slices"
	"strings"

	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"
	"go.yaml.in/yaml/v3"

	"shunt/compiler/diag"
)

// Directive is a comment of an input that speaks to the tool, which one that
// starts with "shunt:" does.
type Directive struct {
	// Pos is where the comment starts, and End where its line does end.
	Pos, End diag.Pos
	// Line is the line that it is about: its own, or the next one that is
	// neither blank nor a comment when it has its line to itself.
	Line int
	// Text is what follows "shunt:", without the space around it.
	Text string
}

// directiveMark starts a directive.
const directiveMark = "shunt:"

// Directives lists the comments in all inputs that speak to the tool, by file
// and line.
func (t *Tree) Directives() []Directive {
	var out []Directive
	for _, f := range t.files {
		if !bytes.Contains(f.data, []byte(directiveMark)) {
			continue
		}
		switch s, _ := syntaxOf(f.name); s {
		case syntaxYAML:
			out = append(out, f.yamlDirectives()...)
		case syntaxCUE:
			out = append(out, f.cueDirectives()...)
		}
	}
	return out
}

// directives collects the directives of a file in the order of their lines.
type directives struct {
	*file
	// mark is what starts comments.
	mark string
	list []Directive
	// next is the line that the last search for one ended at, so that each line
	// is looked at once, however many comments stand above one another.
	next int
}

// comment adds the directive in the comment that starts at an offset, if it is
// one.
func (d *directives) comment(offset int) {
	end := d.lineEnd(offset)
	text := strings.TrimSpace(strings.TrimLeft(string(d.data[offset:end]), d.mark[:1]))
	text, ok := strings.CutPrefix(text, directiveMark)
	if !ok {
		return
	}
	pos := d.pos(offset)
	line := pos.Line
	if len(bytes.TrimSpace(d.data[d.lines[line-1]:offset])) == 0 {
		if next := d.after(line); next <= len(d.lines) {
			line = next
		}
	}
	d.list = append(d.list, Directive{Pos: pos, End: d.file.pos(end), Line: line, Text: strings.TrimSpace(text)})
}

// after returns the first line behind one that is neither blank nor a comment,
// and the number behind the last line when there is none.
func (d *directives) after(line int) int {
	if d.next > line {
		return d.next
	}
	for d.next = line + 1; d.next <= len(d.lines); d.next++ {
		start := d.lines[d.next-1]
		rest := bytes.TrimSpace(d.data[start:d.lineEnd(start)])
		if len(rest) > 0 && !bytes.HasPrefix(rest, []byte(d.mark)) {
			break
		}
	}
	return d.next
}

// cueDirectives finds the directives of a CUE file that was parsed before.
func (f *file) cueDirectives() []Directive {
	out := directives{file: f, mark: "//"}
	var s scanner.Scanner
	s.Init(token.NewFile(f.name, -1, len(f.data)), f.data, func(token.Pos, string, []any) {}, scanner.ScanComments)
	// How many parentheses are open in each string that is being interpolated.
	var open []int
	for {
		pos, tok, _ := s.Scan()
		last := len(open) - 1
		switch {
		case tok == token.EOF:
			return out.list
		case tok == token.COMMENT:
			out.comment(pos.Offset())
		case tok == token.INTERPOLATION:
			open = append(open, 0)
		case tok == token.LPAREN && last >= 0:
			open[last]++
		case tok == token.RPAREN && last >= 0:
			if open[last]--; open[last] == 0 && !strings.HasSuffix(s.ResumeInterpolation(), "(") {
				open = open[:last]
			}
		}
	}
}

// yamlDirectives finds the directives of a YAML file that was parsed before. It
// is parsed again, for the places of the strings that may look like comments.
func (f *file) yamlDirectives() []Directive {
	out := directives{file: f, mark: "#"}
	var doc yaml.Node
	if err := yaml.Unmarshal(f.data, &doc); err != nil {
		return nil // which was reported when it was read
	}
	o := opaque{file: f}
	o.visit(&doc)
	slices.SortFunc(o.spans, func(a, b span) int { return a.from - b.from })
	for _, start := range f.lines {
		end := f.lineEnd(start)
		if !bytes.Contains(f.data[start:end], []byte(directiveMark)) {
			continue
		}
		for i := start; i < end; i++ {
			if f.data[i] != '#' || i > start && f.data[i-1] != ' ' && f.data[i-1] != '\t' || o.hides(i) {
				continue
			}
			out.comment(i)
			break // the rest of the line is this comment
		}
	}
	return out.list
}

// span is a range of bytes.
type span struct{ from, to int }

// opaque collects the strings of a YAML document in which # starts no comment:
// quoted ones and blocks.
type opaque struct {
	*file
	spans []span
}

func (o *opaque) hides(offset int) bool {
	i, found := slices.BinarySearchFunc(o.spans, offset, func(s span, at int) int { return s.from - at })
	return found || i > 0 && offset < o.spans[i-1].to
}

func (o *opaque) visit(n *yaml.Node) {
	for _, c := range n.Content {
		o.visit(c)
	}
	if n.Kind != yaml.ScalarNode {
		return
	}
	at := o.skipProperties(o.offsetAt(n.Line, n.Column))
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		o.block(at, n.Value)
	case n.Style&yaml.DoubleQuotedStyle != 0:
		o.spans = append(o.spans, span{at, o.closing(at, '"')})
	case n.Style&yaml.SingleQuotedStyle != 0:
		o.spans = append(o.spans, span{at, o.closing(at, '\'')})
	}
}

// skipProperties returns the offset behind the tag, the anchor and the comments
// that a scalar may have in front.
func (o *opaque) skipProperties(at int) int {
	for at < len(o.data) {
		switch c := o.data[at]; {
		case c == '&' || c == '!':
			for at < len(o.data) && !bytes.ContainsRune([]byte(" \t\r\n"), rune(o.data[at])) {
				at++
			}
		case c == '#':
			at = o.lineEnd(at)
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			at++
		default:
			return at
		}
	}
	return at
}

// closing returns the offset behind the quote that ends the string at an offset.
// A backslash protects what follows it in double quotes; in single quotes a
// quote is doubled, which reads as one string that ends and another that starts.
func (o *opaque) closing(at int, quote byte) int {
	for i := at + 1; i < len(o.data); i++ {
		switch {
		case quote == '"' && o.data[i] == '\\':
			i++
		case o.data[i] == quote && quote == '\'' && i+1 < len(o.data) && o.data[i+1] == quote:
			i++
		case o.data[i] == quote:
			return i + 1
		}
	}
	return len(o.data)
}

// block adds the lines of a block whose header is at an offset. They are those
// that are indented as its first line is, less what is part of its value.
func (o *opaque) block(at int, value string) {
	if strings.TrimSpace(value) == "" {
		return
	}
	line, _ := slices.BinarySearch(o.lines, at+1)
	first, indent := -1, 0
	for ; line < len(o.lines); line++ {
		start := o.lines[line]
		text := o.data[start:o.lineEnd(start)]
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		if first < 0 {
			body := strings.TrimLeft(value, "\n")
			first, indent = start, spaces-(len(body)-len(strings.TrimLeft(body, " ")))
		}
		if spaces < indent {
			break
		}
		o.spans = append(o.spans, span{start, o.lineEnd(start)})
	}
}
