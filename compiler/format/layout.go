package format

import (
	"strings"
)

// level is an open block: its column before and after.
type level struct {
	was, is int
	list    bool
}

// layout writes the lines of a text anew.
type layout struct {
	*textMap
	open []level
	out  []string
	// shift is what was added to the indent of the last line that starts
	// something; lines that go on with it move along.
	shift int
	// texts and entries are the next lines with anything on them, and with more than
	// a comment; they hold until they are reached.
	texts, entries int
	// kept is the length of out up to which empty lines at its end are text.
	kept int
}

// line writes the line i and those that belong to it, and returns the next.
func (w *layout) line(i int) int {
	text := w.lines[i]
	switch content := strings.TrimLeft(text, " \t"); {
	case w.inside[i] || w.flowing[i] || content == "" && w.inPlain(i):
		w.goesOn(i)
	case content == "":
		w.empty()
	case content[0] == '#':
		w.comment(i, content)
	case isMarker(text):
		w.open = w.open[:0]
		w.out = append(w.out, strings.TrimRight(text, " \t"))
	default:
		w.entry(i)
	}
	if b, ok := w.blocks[i]; ok {
		w.block(i+1, b)
		return b.end
	}
	return i + 1
}

// inPlain reports whether an empty line is inside a plain text: what comes after
// it goes on with one.
func (w *layout) inPlain(i int) bool {
	for w.texts = max(w.texts, i+1); w.texts < len(w.lines); w.texts++ {
		content := strings.TrimLeft(w.lines[w.texts], " \t")
		if content == "" {
			continue
		}
		p := at{w.texts, len(w.lines[w.texts]) - len(content)}
		return content[0] != '#' && !isMarker(w.lines[w.texts]) && !w.keys[p] && !w.dashes[p] && !w.values[p]
	}
	return false
}

// isMarker knows the start and the end of a document, and directives.
func isMarker(text string) bool {
	return strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") || strings.HasPrefix(text, "%")
}

// empty writes an empty line, never two in a row and none at the start.
func (w *layout) empty() {
	if len(w.out) > 0 && w.out[len(w.out)-1] != "" {
		w.out = append(w.out, "")
	}
}

// goesOn moves a line inside a value along with the line where it starts.
func (w *layout) goesOn(i int) {
	text := w.lines[i]
	content := strings.TrimLeft(text, " \t")
	if content == "" {
		w.out = append(w.out, "") // it is a line break of a text
		return
	}
	indent := len(text) - len(content)
	line := w.spaced(i, indent)
	w.out = append(w.out, strings.Repeat(" ", max(indent+w.shift, 0))+line)
}

// comment indents a comment as the entries of the block that it is written at:
// the deepest one, among the open ones and that of the next entry, that starts
// at its column or before.
func (w *layout) comment(i int, content string) {
	column := len(w.lines[i]) - len(content)
	best := level{was: -1}
	next, ok := w.next(i)
	if ok && next.was <= column {
		best = next
	}
	if !ok && column == 0 {
		best = level{}
	}
	for _, l := range w.open {
		if l.was <= column && (l.was > best.was || l.was == best.was && !ok && column > 0) {
			best = l
		}
	}
	w.out = append(w.out, strings.Repeat(" ", best.is)+strings.TrimRight(content, " \t"))
}

// next is the level of the next line after i that is no comment, as it will be.
func (w *layout) next(i int) (level, bool) {
	for w.entries = max(w.entries, i+1); w.entries < len(w.lines); w.entries++ {
		content := strings.TrimLeft(w.lines[w.entries], " \t")
		if content == "" || content[0] == '#' {
			continue
		}
		if isMarker(w.lines[w.entries]) {
			break
		}
		column := len(w.lines[w.entries]) - len(content)
		p := at{w.entries, column}
		if !w.dashes[p] && !w.keys[p] {
			return level{was: column, is: w.valueIndent(column)}, true
		}
		copied := layout{textMap: w.textMap, open: append([]level(nil), w.open...)}
		return copied.enter(column, w.dashes[p]), true
	}
	return level{}, false
}

// enter opens the block of an entry, or returns to it.
func (w *layout) enter(column int, list bool) level {
	for len(w.open) > 0 {
		top := w.open[len(w.open)-1]
		if top.was < column || top.was == column && (!top.list || list) {
			break
		}
		w.open = w.open[:len(w.open)-1]
	}
	is := 0
	if n := len(w.open); n > 0 {
		top := w.open[n-1]
		if top.was == column && top.list == list {
			return top
		}
		is = top.is + indentStep
	}
	l := level{was: column, is: is, list: list}
	w.open = append(w.open, l)
	return l
}

// entry writes a line that starts an entry or a value.
func (w *layout) entry(i int) {
	text := w.lines[i]
	column := len(text) - len(strings.TrimLeft(text, " \t"))
	p := at{i, column}
	if !w.dashes[p] && !w.keys[p] {
		w.value(i, column)
		return
	}
	var line strings.Builder
	for {
		l := w.enter(p.column, w.dashes[p])
		if line.Len() == 0 {
			line.WriteString(strings.Repeat(" ", l.is))
			w.shift = l.is - l.was
		}
		if !w.dashes[p] {
			break
		}
		rest := strings.TrimLeft(text[p.column+1:], " \t")
		next := at{i, len(text) - len(rest)}
		line.WriteByte('-')
		if rest == "" {
			break
		}
		line.WriteByte(' ')
		p = next
		if !w.dashes[p] && !w.keys[p] {
			break
		}
	}
	if !w.dashes[p] {
		w.shift = line.Len() - p.column
		line.WriteString(w.spaced(i, p.column))
	}
	w.out = append(w.out, strings.TrimRight(line.String(), " \t"))
}

// value writes a line with the start of a value on a line of its own, or the rest
// of a plain text.
func (w *layout) value(i, column int) {
	is := w.valueIndent(column)
	w.shift = is - column
	w.out = append(w.out, strings.Repeat(" ", is)+w.spaced(i, column))
}

// valueIndent is the indent of a value at a column: one step into the block that
// it is in.
func (w *layout) valueIndent(column int) int {
	is := 0
	for _, l := range w.open {
		if l.was < column || is == 0 {
			is = l.is + indentStep
		}
	}
	return is
}

// block writes the text of a block scalar, moved as the block that holds it.
func (w *layout) block(from int, b block) {
	shift := 0
	for _, l := range w.open {
		if l.was == b.parent {
			shift = l.is - l.was
		}
	}
	indent := 0
	for i := from; i < b.end; i++ {
		if strings.TrimSpace(w.lines[i]) != "" {
			indent = indentOf(w.lines[i])
			break
		}
	}
	for i := from; i < b.end; i++ {
		text := w.lines[i]
		switch {
		case strings.Trim(text, " ") == "" && len(text) <= indent:
			text = ""
		case shift > 0:
			text = strings.Repeat(" ", shift) + text
		default:
			text = text[min(-shift, indentOf(text)):]
		}
		w.out = append(w.out, text)
	}
	if b.keep {
		w.kept = len(w.out)
	}
}

// finish joins the lines with one line break at the end.
func (w *layout) finish() []byte {
	for len(w.out) > w.kept && w.out[len(w.out)-1] == "" {
		w.out = w.out[:len(w.out)-1]
	}
	return []byte(strings.Join(w.out, "\n") + "\n")
}
