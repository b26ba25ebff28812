package format

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// indentStep is the number of spaces of one level.
const indentStep = 2

// layOutYAML sets the indent of every line from the structure that the parser
// sees, and tidies the space between tokens. The text is valid YAML without
// carriage returns.
func layOutYAML(text []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	m := newMap(text)
	if !m.node(&root, -1) {
		return tidied(text), nil
	}
	w := &layout{textMap: m}
	for i := 0; i < len(m.lines); {
		i = w.line(i)
	}
	return w.finish(), nil
}

// tidied only removes space at the end of the text, which is all that is done to
// a text with explicit keys ("? key").
func tidied(text []byte) []byte {
	return append(bytes.TrimRight(text, "\n"), '\n')
}

// at is a place: a line from 0 and a byte in it.
type at struct{ line, column int }

// textMap says what stands where in a text.
type textMap struct {
	lines []string
	// keys and dashes start entries of blocks. Others start values in blocks.
	keys, dashes, values map[at]bool
	// inside is true for the lines that go on with a quoted text, and flowing
	// for those that go on with a flow collection.
	inside, flowing map[int]bool
	// quotes are the quoted texts by their start, with their ends, and ends the
	// columns where those of several lines end, by their last line.
	quotes map[at]at
	ends   map[int]int
	// blocks are the block scalars by the line that introduces them.
	blocks map[int]block
	// flows are the starts of the outermost flow collections.
	flows map[at]bool
	// The last place that was converted, from which the next one on the same
	// line is counted: a whole document may stand on one.
	last          at
	lastCharacter int
}

// block is a block scalar.
type block struct {
	// end is the line after its last one, and parent the column that its text
	// must exceed.
	end, parent int
	// keep says that the empty lines at its end are part of it.
	keep bool
}

func newMap(text []byte) *textMap {
	return &textMap{
		lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"),
		keys:  map[at]bool{}, dashes: map[at]bool{}, values: map[at]bool{},
		inside: map[int]bool{}, flowing: map[int]bool{}, quotes: map[at]at{}, ends: map[int]int{},
		blocks: map[int]block{}, flows: map[at]bool{},
	}
}

// place converts the position of a node, which counts characters.
func (m *textMap) place(n *yaml.Node) at {
	line := min(max(n.Line-1, 0), len(m.lines)-1)
	column, text := 0, m.lines[line]
	character := 1
	if m.last.line == line && m.lastCharacter > 0 && m.lastCharacter <= n.Column {
		column, character = m.last.column, m.lastCharacter
	}
	for ; character < n.Column && column < len(text); character++ {
		_, size := utf8.DecodeRuneInString(text[column:])
		column += size
	}
	m.last, m.lastCharacter = at{line, column}, character
	return m.last
}

// node notes a node in block context. The parent is the column of the block that
// holds it. It reports whether the structure is one that can be laid out.
func (m *textMap) node(n *yaml.Node, parent int) bool {
	p := m.place(n)
	switch {
	case n.Kind == yaml.DocumentNode:
		for _, c := range n.Content {
			if !m.node(c, parent) {
				return false
			}
		}
		return true
	case n.Kind == yaml.ScalarNode:
		m.values[p] = true
		m.scalar(n, parent)
		return true
	case n.Kind == yaml.AliasNode:
		m.values[p] = true
		return true
	case n.Style&yaml.FlowStyle != 0 || len(n.Content) == 0:
		m.values[p] = true
		return m.flow(n)
	case n.Kind == yaml.MappingNode:
		return m.mapping(n)
	}
	return m.sequence(n, parent)
}

func (m *textMap) mapping(n *yaml.Node) bool {
	column := m.place(n.Content[0]).column
	if p := m.place(n); p != m.place(n.Content[0]) {
		m.values[p] = true // an anchor or tag before the block
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		p := m.place(k)
		// A block of this kind is one column of keys; with "? key" it is not.
		if p.column != column || !m.startsEntry(p) || k.Kind != yaml.ScalarNode && k.Kind != yaml.AliasNode {
			return false
		}
		m.keys[p] = true
		if k.Kind == yaml.ScalarNode {
			m.scalar(k, column)
		}
		if !m.node(v, column) {
			return false
		}
	}
	return true
}

// startsEntry reports whether only space and dashes stand before a place.
func (m *textMap) startsEntry(p at) bool {
	return strings.Trim(m.lines[p.line][:p.column], " -\t") == ""
}

func (m *textMap) sequence(n *yaml.Node, parent int) bool {
	p := m.place(n)
	column, from := p.column, p.line
	if m.lines[p.line][p.column] != '-' {
		m.values[p] = true // an anchor or tag before the block
		column = -1
	}
	for _, c := range n.Content {
		q := m.place(c)
		dash, ok := m.dash(q, from, column, parent)
		if !ok {
			return false
		}
		column, from = dash.column, dash.line
		m.dashes[dash] = true
		if !m.node(c, dash.column) {
			return false
		}
	}
	return true
}

// dash finds the dash of an item that starts at q: at the column of its
// sequence, on the line of the item or on the nearest one above.
func (m *textMap) dash(q at, from, column, parent int) (at, bool) {
	for line := q.line; line >= from; line-- {
		text := m.lines[line]
		c := column
		if c < 0 {
			c = len(text) - len(strings.TrimLeft(text, " "))
			if c <= parent && c+1 < parent {
				continue
			}
		}
		if c < len(text) && text[c] == '-' && strings.Trim(text[:c], " -\t") == "" && !m.dashes[at{line, c}] &&
			(c+1 == len(text) || text[c+1] == ' ' || text[c+1] == '\t') {
			return at{line, c}, true
		}
	}
	return at{}, false
}

// scalar notes a quoted text or a block scalar.
func (m *textMap) scalar(n *yaml.Node, parent int) {
	p := m.place(n)
	text := m.lines[p.line]
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		header, _, _ := strings.Cut(text[p.column:], " #")
		keep := strings.HasSuffix(strings.TrimRight(header, "0123456789 \t"), "+")
		m.blocks[p.line] = block{m.blockEnd(p.line+1, parent, keep), parent, keep}
	case n.Style&yaml.SingleQuotedStyle != 0:
		if i := strings.IndexByte(text[p.column:], '\''); i >= 0 {
			m.quote(at{p.line, p.column + i}, '\'')
		}
	case n.Style&yaml.DoubleQuotedStyle != 0:
		if i := strings.IndexByte(text[p.column:], '"'); i >= 0 {
			m.quote(at{p.line, p.column + i}, '"')
		}
	}
}

// blockEnd is the line after a block scalar whose text starts on the given line.
func (m *textMap) blockEnd(line, parent int, keep bool) int {
	first := line
	for ; line < len(m.lines); line++ {
		text := m.lines[line]
		if indent := indentOf(text); strings.TrimSpace(text) != "" && indent <= parent {
			break
		}
		if parent < 0 && (strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...")) {
			break
		}
	}
	for !keep && line > first && strings.TrimSpace(m.lines[line-1]) == "" {
		line--
	}
	return line
}

func indentOf(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

// quote notes a quoted text that starts at p.
func (m *textMap) quote(p at, mark byte) {
	line, i := p.line, p.column+1
	for ; line < len(m.lines); line, i = line+1, 0 {
		text := m.lines[line]
		if line > p.line {
			m.inside[line] = true
		}
		for ; i < len(text); i++ {
			switch {
			case mark == '"' && text[i] == '\\':
				i++
			case text[i] != mark:
			case mark == '\'' && i+1 < len(text) && text[i+1] == mark:
				i++
			default:
				m.quotes[p] = at{line, i + 1}
				if line > p.line {
					m.ends[line] = i + 1
				}
				return
			}
		}
	}
}

// flow notes a flow collection: first the quoted texts in it, then its lines.
func (m *textMap) flow(n *yaml.Node) bool {
	m.flowQuotes(n)
	p := m.place(n)
	text := m.lines[p.line]
	i := strings.IndexAny(text[p.column:], "[{")
	if i < 0 {
		return n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode
	}
	start := at{p.line, p.column + i}
	m.flows[start] = true
	depth := 0
	for p := start; p.line < len(m.lines); p = (at{p.line + 1, 0}) {
		if p.line > start.line {
			m.flowing[p.line] = true
		}
		for p.column < len(m.lines[p.line]) {
			if end, ok := m.quotes[p]; ok {
				for l := p.line + 1; l <= end.line; l++ {
					m.flowing[l] = true
				}
				p = end
				continue
			}
			switch text := m.lines[p.line]; text[p.column] {
			case '[', '{':
				depth++
			case ']', '}':
				if depth--; depth == 0 {
					return true
				}
			case '#':
				if isComment(text, p.column) {
					p.column = len(text)
				}
			}
			p.column++
		}
	}
	return false
}

func (m *textMap) flowQuotes(n *yaml.Node) {
	for _, c := range n.Content {
		if c.Kind == yaml.ScalarNode {
			m.scalar(c, -1)
		}
		m.flowQuotes(c)
	}
}

// isComment reports whether a # outside of quotes starts a comment.
func isComment(text string, i int) bool {
	return text[i] == '#' && (i == 0 || text[i-1] == ' ' || text[i-1] == '\t')
}
