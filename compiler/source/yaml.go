package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"shunt/compiler/diag"
)

// severalHint says what to do with a stream whose first document is doc.
func severalHint(doc *yaml.Node) string {
	if root := doc.Content[0]; root.Kind == yaml.MappingNode {
		for i := 0; i < len(root.Content); i += 2 {
			if root.Content[i].Value == "apiVersion" {
				return "these are manifests of Kubernetes; shunt migrate reads those that start sgl-router"
			}
		}
	}
	return "a configuration is one document; give each a file of its own, and they are unified"
}

// yaml parses the file as one YAML document.
func (b *builder) yaml() *Node {
	d := yaml.NewDecoder(bytes.NewReader(b.file.data))
	var doc, next yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		b.empty()
		return nil
	case err != nil:
		b.yamlError(err)
		return nil
	}
	if err := d.Decode(&next); err == nil {
		b.stop(diag.ManyDocuments, b.file.offsetAt(next.Line, next.Column), "a second YAML document starts here").Hint = severalHint(&doc)
		return nil
	} else if !errors.Is(err, io.EOF) {
		b.yamlError(err)
		return nil
	}
	y := &yamlBuilder{builder: b, done: make(map[*yaml.Node]measured), open: make(map[*yaml.Node]bool)}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		b.empty()
		return nil
	}
	m := y.build(root, 1)
	if b.stopped {
		return nil
	}
	return m.node
}

func (b *builder) empty() {
	f := b.stop(diag.EmptyInput, 0, "the file holds no configuration")
	f.Pos, f.Hint = b.file.pos(0), "write at least version and models"
}

// The parser puts the line of an error into its text, and leaves it out for
// unknown anchors.
var (
	yamlErrorLine   = regexp.MustCompile(`^yaml: (?:.*?)line (\d+): (?s:(.*))$`)
	yamlErrorAnchor = regexp.MustCompile(`unknown anchor '([^']+)' referenced`)
)

// yamlError turns an error of the parser into a finding. The parser knows no
// columns, so the finding is at the first character of the line.
func (b *builder) yamlError(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlErrorLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if m := findMistake(b.file.data); m != nil {
		b.stop(diag.Syntax, m.offset, "YAML syntax: "+m.message).Hint = m.hint
		return
	}
	offset := b.file.offsetAt(line, 1)
	if m := yamlErrorAnchor.FindStringSubmatch(text); m != nil {
		offset = max(bytes.Index(b.file.data, []byte("*"+m[1])), 0)
	}
	start := offset
	for offset < len(b.file.data) && (b.file.data[offset] == ' ' || b.file.data[offset] == '\t') {
		offset++
	}
	f := b.stop(diag.Syntax, offset, "YAML syntax: "+text)
	if bytes.IndexByte(b.file.data[start:offset], '\t') >= 0 {
		f.Hint = "YAML is indented with spaces, and this line starts with a tab"
	}
}

// measured is a built node with what it costs where an alias repeats it.
type measured struct {
	node   *Node
	height int
	weight int
}

// yamlBuilder builds the nodes of a YAML document. An alias becomes the node of
// its anchor, so that a bomb of aliases takes no memory, and is charged in full,
// so that nothing that later walks the tree meets one.
type yamlBuilder struct {
	*builder
	done map[*yaml.Node]measured
	open map[*yaml.Node]bool
}

func (y *yamlBuilder) offset(n *yaml.Node) int { return y.file.offsetAt(n.Line, n.Column) }

// build returns the node for n, which is at the given depth.
func (y *yamlBuilder) build(n *yaml.Node, depth int) measured {
	offset := y.offset(n)
	if !y.deeper(depth, offset) {
		return measured{}
	}
	if m, ok := y.done[n]; ok {
		// An alias came before its turn.
		y.deeper(depth+m.height-1, offset)
		return m
	}
	before := y.weight
	m := measured{height: 1}
	switch n.Kind {
	case yaml.ScalarNode:
		m.node = y.scalar(n, offset)
	case yaml.SequenceNode:
		y.tagged(n, offset, "!!seq")
		y.open[n] = true
		m.node = y.node(List, offset, "")
		for _, c := range n.Content {
			e := y.build(c, depth+1)
			m.node.Elems = append(m.node.Elems, e.node)
			m.height = max(m.height, e.height+1)
		}
		delete(y.open, n)
	case yaml.MappingNode:
		y.tagged(n, offset, "!!map")
		y.open[n] = true
		m.node = y.node(Struct, offset, "")
		m.height = y.mapping(n, m.node, depth)
		delete(y.open, n)
	case yaml.AliasNode:
		return y.alias(n, depth, offset)
	default:
		y.stop(diag.Internal, offset, fmt.Sprintf("the YAML parser gave a node of kind %d", n.Kind))
	}
	m.weight = y.weight - before
	if n.Anchor != "" {
		y.done[n] = m
	}
	return m
}

// alias returns the node of an anchor, charged again. The anchor may be one that
// was not built: keys are not, and what << merges is built last. A scalar is
// where its alias is, for that is the place to correct.
func (y *yamlBuilder) alias(n *yaml.Node, depth, offset int) measured {
	if y.open[n.Alias] {
		y.stop(diag.Syntax, offset, fmt.Sprintf("the value of anchor %q contains itself", n.Value))
		return measured{}
	}
	m, ok := y.done[n.Alias]
	if !ok {
		m = y.build(n.Alias, depth)
	}
	y.charge(m.weight, offset)
	if !y.deeper(depth+m.height-1, offset) || m.node == nil {
		return measured{}
	}
	if m.node.Kind != Struct && m.node.Kind != List {
		own := *m.node
		own.at = y.place(offset)
		m.node = &own
	}
	return m
}

// mapping fills an object and returns its height. Keys that are merged in
// yield to keys that are written, wherever they stand, and an earlier source of
// a merge wins over a later one.
func (y *yamlBuilder) mapping(n *yaml.Node, into *Node, depth int) int {
	o := &object{b: y.builder, node: into}
	height := 1
	var merges []*yaml.Node
	merged := -1 // the offset of the first <<
	for i := 0; i+1 < len(n.Content) && !y.stopped; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" {
			if merges = append(merges, v); merged < 0 {
				merged = y.offset(k)
			} else {
				y.repeated("<<", merged, y.offset(k)).Hint = "write one << with a list, as in <<: [*a, *b]"
			}
			continue
		}
		at := y.offset(k)
		name, ok := y.key(k)
		if !ok {
			continue
		}
		m := y.build(v, depth+1)
		height = max(height, m.height+1)
		o.add(name, at, m.node)
	}
	for _, v := range merges {
		height = max(height, y.merge(o, v, depth))
	}
	return height
}

// key returns the name that a key stands for.
func (y *yamlBuilder) key(k *yaml.Node) (string, bool) {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		y.stop(diag.Syntax, y.offset(k), "a key is a list or an object")
		return "", false
	}
	y.tagged(k, y.offset(k), "!!str")
	return k.Value, true
}

// merge adds the fields of a merged object, or of several, that are not there.
func (y *yamlBuilder) merge(o *object, v *yaml.Node, depth int) int {
	if v.Kind == yaml.SequenceNode {
		height := 1
		for _, c := range v.Content {
			if c.Kind == yaml.SequenceNode {
				y.stop(diag.Syntax, y.offset(c), "<< merges a list in a list")
				break
			}
			height = max(height, y.merge(o, c, depth))
		}
		return height
	}
	m := y.build(v, depth)
	if m.node == nil {
		return 1
	}
	if m.node.Kind != Struct {
		y.stop(diag.Syntax, y.offset(v), "<< merges "+m.node.Kind.String()+", not an object")
		return 1
	}
	for _, f := range m.node.Fields {
		if o.find(f.Name) < 0 {
			o.append(f)
		}
	}
	return m.height
}

// plainNumber is a number whose value all readers agree on. YAML 1.1 reads a
// leading zero as octal, and 1.2 does not.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// octalLook is what YAML takes for a string because it has an 8 or a 9.
var octalLook = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

func (y *yamlBuilder) scalar(n *yaml.Node, offset int) *Node {
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
	y.tagged(n, offset, "!!str")
	switch n.ShortTag() {
	case "!!null":
		return y.node(Null, offset, "null")
	case "!!bool":
		return y.node(Bool, offset, strconv.FormatBool(strings.EqualFold(n.Value, "true")))
	case "!!int", "!!float":
		if plainNumber.MatchString(n.Value) {
			return y.node(Number, offset, n.Value)
		}
		return y.notPlain(n, offset, "is a number that does not read as it looks")
	}
	if plain && octalLook.MatchString(n.Value) {
		return y.notPlain(n, offset, "looks like a number and is read as a string")
	}
	return y.node(String, offset, n.Value)
}

// bareTag is a tag without a name, which makes a string of any scalar; the
// parser drops it.
var bareTag = regexp.MustCompile(`^(&[^\s]+\s+)?!\s`)

// tagged reports a tag, unless it says what the value is without it.
func (y *yamlBuilder) tagged(n *yaml.Node, offset int, harmless string) {
	tag := n.ShortTag()
	switch {
	case n.Style&yaml.TaggedStyle != 0 && tag != harmless:
	case n.Kind == yaml.ScalarNode && bareTag.Match(y.file.data[offset:]):
		tag = "!"
	default:
		return
	}
	y.surprise(offset, fmt.Sprintf("the tag %s gives the value a type", tag), "write the value without a tag")
}

func (y *yamlBuilder) notPlain(n *yaml.Node, offset int, what string) *Node {
	y.surprise(offset, fmt.Sprintf("%q %s", n.Value, what),
		"write a plain decimal number, or quote the value if it is a string")
	v := y.node(Number, offset, "1")
	v.Reported = true
	return v
}

// surprise reports a value that reads differently from how it looks. The tree
// is still built, so that the mistakes of shape are reported in the same run.
func (y *yamlBuilder) surprise(offset int, message, hint string) {
	f := y.add(diag.SurprisingValue, y.file.pos(offset), message)
	f.Hint = hint
	f.End = y.file.pos(y.file.tokenEnd(offset))
}
