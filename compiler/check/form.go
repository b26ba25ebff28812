package check

import (
	"strconv"

	"shunt/compiler/source"
)

// former finds the form of a value: which fields it has, how many elements, and
// the words that decide what else it may have. The schema has no rule between
// two scalars (a test holds it to that), so values of one form are valid
// together, when one of them is and when the scalars of each are. This is what
// makes ten thousand buckets affordable: CUE judges each form once and each
// scalar once.
type former struct {
	defs *definitions
	text []byte
}

// value appends the form of n. It returns false for a value that has to be
// judged as a whole, because it has something that the schema does not know or
// a scalar that CUE refuses.
func (f *former) value(n *source.Node, p *place) bool {
	p = p.narrow(n.Kind)
	if !p.takes(n) {
		return false
	}
	switch n.Kind {
	case source.Struct:
		return f.structure(n, p)
	case source.List:
		e := p.element()
		if e == nil {
			return false
		}
		f.text = append(f.text, '[')
		for _, c := range n.Elems {
			if !f.value(c, e) {
				return false
			}
		}
		f.text = append(f.text, ']')
		return true
	}
	f.text = append(f.text, '0'+byte(n.Kind))
	if p.enumeration() != nil || n.Kind == source.Bool {
		f.text = strconv.AppendQuote(f.text, n.Text)
	}
	return p.accepts(f.defs, n)
}

func (f *former) structure(n *source.Node, p *place) bool {
	if p.variants() != nil {
		if p = p.ofType(textOf(n.Lookup("type"))); p == nil {
			return false
		}
	}
	o := p.object()
	f.text = append(f.text, '{')
	for i := range n.Fields {
		c := o.of(n.Fields[i].Name)
		if c == nil {
			return false
		}
		f.text = strconv.AppendQuote(f.text, n.Fields[i].Name)
		if !f.value(n.Fields[i].Value, c) {
			return false
		}
	}
	f.text = append(f.text, '}')
	return true
}
