package argv

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"shunt/compiler/diag"
)

// Bounds of YAML inputs. Aliases are followed one at a time and only where the
// reader looks, so that a bomb of them is never unfolded.
const (
	maxDocuments = 10_000
	// maxVisits bounds the values that the search for containers looks at.
	maxVisits = 200_000
	maxDepth  = 40
)

// document is a YAML document with what turns its lines and columns into places.
type document struct {
	*reader
	whole *text
	// steps has, for lines that were asked for far beyond their start, the offset
	// of every columnStep-th character. A whole manifest may stand on one line.
	steps map[int][]int
}

// columnStep is how many characters are counted for one place at most.
const columnStep = 256

// documents parses the input as a stream of YAML documents. Documents without
// content, which Helm renders, are left out.
func (r *reader) documents() (*document, []*yaml.Node) {
	d := &document{reader: r, whole: fileText(r.name, r.data)}
	decoder := yaml.NewDecoder(bytes.NewReader(r.data))
	var out []*yaml.Node
	for range maxDocuments {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
			return d, out
		case err != nil:
			d.syntaxError(err)
			return d, nil
		}
		if len(doc.Content) > 0 && doc.Content[0].ShortTag() != "!!null" {
			out = append(out, doc.Content[0])
		}
	}
	r.add(diag.TooLarge, diag.Pos{File: r.name}, "the stream has more than "+strconv.Itoa(maxDocuments)+" documents")
	return d, nil
}

// yamlLine finds the line in an error of the parser.
var yamlLine = regexp.MustCompile(`^yaml: (?:.*?)line (\d+): (?s:(.*))$`)

func (d *document) syntaxError(err error) {
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = m[2]
	}
	if i := bytes.Index(d.data, []byte("{{")); i >= 0 {
		f := d.add(diag.NotAnInvocation, d.whole.pos(i), "the input is a template that is not rendered yet")
		f.Hint = "render it first, as with helm template, and give the result"
		return
	}
	f := d.add(diag.Syntax, d.whole.pos(d.offset(line, 1)), "YAML syntax: "+message)
	f.Hint = "the mistake is on this line or shortly before it"
}

// offset turns a line and a column in characters into an offset.
func (d *document) offset(line, column int) int {
	line = min(max(line, 1), len(d.whole.spans))
	at := d.whole.spans[line-1].from
	column = max(column-1, 0)
	if column >= columnStep {
		steps := d.stepsOf(line, at)
		i := min(column/columnStep, len(steps)-1)
		at, column = steps[i], column-i*columnStep
	}
	return d.skip(at, column)
}

// skip returns the offset some characters further on the line, or its end.
func (d *document) skip(at, characters int) int {
	for ; characters > 0 && at < len(d.data) && d.data[at] != '\n'; characters-- {
		_, size := utf8.DecodeRune(d.data[at:])
		at += size
	}
	return at
}

func (d *document) stepsOf(line, start int) []int {
	if steps, ok := d.steps[line]; ok {
		return steps
	}
	if d.steps == nil {
		d.steps = make(map[int][]int)
	}
	steps := []int{start}
	for at := start; ; {
		next := d.skip(at, columnStep)
		if next == at {
			break
		}
		steps = append(steps, next)
		at = next
	}
	d.steps[line] = steps
	return steps
}

func (d *document) pos(n *yaml.Node) diag.Pos {
	if n == nil {
		return diag.Pos{File: d.name}
	}
	return d.whole.pos(d.offset(n.Line, n.Column))
}

// resolve follows aliases.
func resolve(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode && i < maxDepth; i++ {
		n = n.Alias
	}
	if n != nil && n.Kind == yaml.AliasNode {
		return nil
	}
	return n
}

// field returns the value of a field of a mapping, nil if there is none. Merged
// mappings come after the fields that are written.
func field(n *yaml.Node, name string) *yaml.Node { return fieldIn(n, name, 0) }

func fieldIn(n *yaml.Node, name string, depth int) *yaml.Node {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode || depth > maxDepth {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return resolve(n.Content[i+1])
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		merged := resolve(n.Content[i+1])
		if merged == nil {
			continue
		}
		if merged.Kind != yaml.SequenceNode {
			return fieldIn(merged, name, depth+1)
		}
		for _, m := range merged.Content {
			if v := fieldIn(m, name, maxDepth); v != nil {
				return v
			}
		}
	}
	return nil
}

// at returns the value at the end of a way of fields.
func at(n *yaml.Node, way ...string) *yaml.Node {
	for _, name := range way {
		n = field(n, name)
	}
	return resolve(n)
}

// elems returns the elements of a sequence, and none for anything else.
func elems(n *yaml.Node) []*yaml.Node {
	n = resolve(n)
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// pairs calls f for the fields of a mapping.
func pairs(n *yaml.Node, f func(key, value *yaml.Node)) {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i], resolve(n.Content[i+1]))
	}
}

// str returns the text of a scalar, empty for anything else.
func str(n *yaml.Node) string {
	n = resolve(n)
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// scalar returns the text of a scalar with the places of its characters.
func (d *document) scalar(n *yaml.Node) *text {
	start := d.offset(n.Line, n.Column)
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return &text{spans: []span{{pos: d.whole.pos(start)}}}
	}
	raw := d.data[min(start, len(d.data)):]
	if len(raw) > 0 && raw[0] == '&' || len(raw) > 0 && raw[0] == '!' {
		// An anchor or a tag comes before the value, and the parser counts from it.
		skip := bytes.IndexAny(raw, " \n")
		for skip >= 0 && skip < len(raw) && raw[skip] == ' ' {
			skip++
		}
		if skip >= 0 {
			start += skip
			raw = raw[skip:]
		}
	}
	var t *text
	switch {
	case n.Style&yaml.LiteralStyle != 0:
		t = d.block(n, start)
	case n.Style&yaml.DoubleQuotedStyle != 0:
		t = d.doubleQuoted(n, start+1)
	case n.Style&yaml.SingleQuotedStyle != 0:
		t = d.singleQuoted(n, start+1)
	case n.Style&yaml.FoldedStyle != 0:
		t = d.folded(n, d.whole.pos(start).Line, 0)
	case bytes.IndexByte(raw, '\n') >= 0 && !bytes.HasPrefix(raw, []byte(n.Value)):
		t = d.folded(n, d.whole.pos(start).Line-1, start)
	case bytes.HasPrefix(raw, []byte(n.Value)):
		var b builder
		b.add(n.Value, d.whole.pos(start))
		t = b.text()
	}
	if t == nil || t.value != n.Value {
		t = &text{value: n.Value, spans: []span{{pos: d.whole.pos(start), fixed: true}}}
	}
	if len(t.spans) == 0 {
		t.spans = []span{{pos: d.whole.pos(start)}}
	}
	return t
}

// block returns the text of a literal block scalar, whose lines stand below its
// header without a common indent.
func (d *document) block(n *yaml.Node, header int) *text {
	lines := strings.SplitAfter(n.Value, "\n")
	first := d.whole.pos(header).Line // the index of the next line, from 0
	indent := -1
	t := &text{value: n.Value}
	from := 0
	for i, line := range lines {
		if line == "" || first+i >= len(d.whole.spans) {
			break
		}
		begin := d.whole.spans[first+i].from
		end := len(d.data)
		if first+i+1 < len(d.whole.spans) {
			end = d.whole.spans[first+i+1].from
		}
		raw := strings.TrimRight(string(d.data[begin:end]), "\r\n")
		content := strings.TrimRight(line, "\n")
		if indent < 0 && content != "" {
			indent = len(raw) - len(content)
		}
		pos := d.whole.pos(begin)
		if content != "" {
			if indent < 0 || len(raw) < indent || raw[indent:] != content {
				return nil
			}
			pos = d.whole.pos(begin + indent)
		}
		t.spans = append(t.spans, span{from: from, pos: pos})
		from += len(line)
	}
	return t
}

// folded returns the text of a scalar whose lines are joined by blanks, from the
// line of an index on. Its first line may start at an offset. Where blank lines
// or deeper indents change how lines are joined, it gives up.
func (d *document) folded(n *yaml.Node, line, start int) *text {
	t := &text{value: n.Value}
	for from := 0; from < len(n.Value) && line < len(d.whole.spans); line++ {
		begin, end := d.whole.spans[line].from, len(d.data)
		if line+1 < len(d.whole.spans) {
			end = d.whole.spans[line+1].from
		}
		begin = max(begin, start)
		raw := strings.TrimRight(string(d.data[begin:end]), " \r\n")
		content := strings.TrimLeft(raw, " ")
		rest := n.Value[from:]
		if content == "" || !strings.HasPrefix(rest, content) {
			// A plain scalar ends before a comment.
			if i := strings.Index(content, " #"); i < 0 || rest != strings.TrimRight(content[:i], " ") {
				return nil
			}
			content = rest
		}
		t.spans = append(t.spans, span{from: from, pos: d.whole.pos(begin + len(raw) - len(strings.TrimLeft(raw, " ")))})
		from += len(content)
		if from < len(n.Value) {
			if n.Value[from] != ' ' && n.Value[from] != '\n' {
				return nil
			}
			from++
		}
	}
	return t
}

// doubleQuoted returns the text of a double-quoted scalar that starts at an
// offset. Lines that are folded have the place of their fold.
func (d *document) doubleQuoted(n *yaml.Node, start int) *text {
	var b builder
	for i := start; i < len(d.data) && d.data[i] != '"'; {
		c := d.data[i]
		if c == '\n' || c == '\r' {
			return nil
		}
		if c != '\\' {
			j := i
			for j < len(d.data) && strings.IndexByte("\\\"\r\n", d.data[j]) < 0 {
				j++
			}
			b.add(string(d.data[i:j]), d.whole.pos(i))
			i = j
			continue
		}
		value, size := unescapeYAML(string(d.data[i:min(i+10, len(d.data))]))
		if size == 0 {
			return nil
		}
		b.addFixed(value, d.whole.pos(i))
		i += size
	}
	return b.text()
}

// unescapeYAML reads an escape of a double-quoted scalar; the length is 0 for
// one that is not known here.
func unescapeYAML(s string) (string, int) {
	if len(s) < 2 {
		return "", 0
	}
	switch s[1] {
	case '"', '\\', '/', ' ':
		return s[1:2], 2
	case '0':
		return "\x00", 2
	case 'N', '_', 'L', 'P', '\n', '\r':
		return "", 0
	case 'x', 'u', 'U':
		size := map[byte]int{'x': 4, 'u': 6, 'U': 10}[s[1]]
		if len(s) < size {
			return "", 0
		}
		n, err := strconv.ParseUint(s[2:size], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return "", 0
		}
		return string(rune(n)), size
	}
	return unescapeC(s)
}

// singleQuoted returns the text of a single-quoted scalar.
func (d *document) singleQuoted(n *yaml.Node, start int) *text {
	var b builder
	for i := start; i < len(d.data); {
		if d.data[i] == '\'' {
			if i+1 >= len(d.data) || d.data[i+1] != '\'' {
				break
			}
			b.add("'", d.whole.pos(i))
			i += 2
			continue
		}
		j := i
		for j < len(d.data) && d.data[j] != '\'' && d.data[j] != '\n' {
			j++
		}
		if j < len(d.data) && d.data[j] == '\n' {
			return nil
		}
		b.add(string(d.data[i:j]), d.whole.pos(i))
		i = j
	}
	return b.text()
}

// scalarWord makes a word of an element of a list of arguments.
func (d *document) scalarWord(n *yaml.Node) *word {
	w := &word{at: d.pos(n), some: true}
	n = resolve(n)
	if n == nil || n.Kind != yaml.ScalarNode {
		f := d.add(diag.WrongType, w.at, "an argument is a list or an object, not a text")
		f.Hint = "write each argument as a text of its own"
		return w
	}
	t := d.scalar(n)
	w.addText(t, 0, len(t.value))
	return w
}
