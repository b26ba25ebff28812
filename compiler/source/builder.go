package source

import (
	"fmt"
	"math"

	"shunt/compiler/diag"
)

// builder makes the nodes of one file and holds it to the bounds.
type builder struct {
	*reader
	file *file
	id   uint32
	// stopped is set at the first mistake after which parsing is pointless.
	stopped bool
	// path is where the CUE reader is, for findings about conflicts.
	path []string
}

// textWeight is how many bytes of text weigh as much as a node.
const textWeight = 64

// node returns a new node. It fails the file when there are too many.
func (b *builder) node(k Kind, offset int, text string) *Node {
	b.charge(1+len(text)/textWeight, offset)
	b.short(text, offset)
	return &Node{Kind: k, Text: text, at: b.place(offset)}
}

// short holds a text to MaxText.
func (b *builder) short(text string, offset int) {
	if len(text) > MaxText {
		b.stop(diag.TooLarge, offset, fmt.Sprintf("a text may have %d bytes, and this one has %d", MaxText, len(text)))
	}
}

// charge counts weight against MaxNodes.
func (b *builder) charge(weight, offset int) {
	b.weight = min(b.weight+weight, math.MaxInt32)
	if b.weight > MaxNodes {
		b.stop(diag.TooDeep, offset, fmt.Sprintf("the inputs have more than %d values", MaxNodes))
	}
}

// deeper reports whether one more level of nesting is allowed.
func (b *builder) deeper(depth, offset int) bool {
	if depth > MaxDepth {
		b.stop(diag.TooDeep, offset, fmt.Sprintf("values are nested more than %d deep", MaxDepth))
	}
	return !b.stopped
}

// stop ends the parsing of the file with a finding. Only the first one counts,
// for the later ones follow from it.
func (b *builder) stop(code diag.Code, offset int, message string) *diag.Finding {
	if b.stopped {
		return new(diag.Finding)
	}
	b.stopped = true
	return b.fail(code, b.file.pos(offset), message)
}

func (b *builder) place(offset int) place { return place{b.id, uint32(offset)} }

// object collects the fields of a Struct and refuses repeated names.
type object struct {
	b    *builder
	node *Node
	// names has the index of each field; nil while a linear search is cheaper.
	names map[string]int
}

// linearFields is the number of fields up to which they are searched linearly.
const linearFields = 16

func (o *object) find(name string) int {
	if o.names != nil {
		if i, ok := o.names[name]; ok {
			return i
		}
		return -1
	}
	for i := range o.node.Fields {
		if o.node.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

func (o *object) append(f Field) {
	o.b.short(f.Name, int(f.at.offset))
	if len(o.node.Fields) >= MaxFields {
		o.b.stop(diag.TooDeep, int(f.at.offset), fmt.Sprintf("an object has more than %d fields", MaxFields))
	}
	o.node.Fields = append(o.node.Fields, f)
	switch n := len(o.node.Fields); {
	case o.names != nil:
		o.names[f.Name] = n - 1
	case n > linearFields:
		o.names = make(map[string]int, 2*n)
		for i := range o.node.Fields {
			o.names[o.node.Fields[i].Name] = i
		}
	}
}

// add appends a field. A repeated name is reported, and the first one counts.
func (o *object) add(name string, offset int, value *Node) {
	f := Field{Name: name, Value: value, at: o.b.place(offset)}
	i := o.find(name)
	if i < 0 {
		o.append(f)
		return
	}
	o.b.repeated(name, int(o.node.Fields[i].at.offset), offset)
}

// repeated reports a key that an object has twice.
func (b *builder) repeated(name string, first, again int) *diag.Finding {
	pos := b.file.pos(first)
	d := b.add(diag.RepeatedKey, b.file.pos(again), fmt.Sprintf("key %q is repeated in the same object", name))
	d.Hint = fmt.Sprintf("it is already at line %d; remove or rename one of the two", pos.Line)
	d.End = b.file.pos(b.file.tokenEnd(again))
	d.Related = []diag.Related{{Pos: pos, Message: "the first one is here"}}
	return d
}
