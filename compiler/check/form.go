package check

import (
	"slices"
	"strconv"

	"shunt/compiler/source"
)

// former finds the forms of values: which fields they have, how many elements,
// and the words that decide what else they may have. The schema has no rule
// between two scalars (a test holds it to that), so the values of one form are
// valid together, when one of them is and when every scalar is. This is what
// makes ten thousand buckets affordable: CUE judges each form once, and the
// scalars of many values as one list.
type former struct {
	*builder
	// forms has one value for each form.
	forms map[string]*source.Node
	// scalars are those of all values, by place.
	scalars map[*place]map[scalarKey]struct{}
	text    []byte
}

// add adds a value. It returns false when the value has something that the
// schema does not know, and so has no form.
func (f *former) add(n *source.Node, p *place) bool {
	f.text = f.text[:0]
	if !f.value(n, p) {
		return false
	}
	if _, ok := f.forms[string(f.text)]; !ok {
		f.forms[string(f.text)] = n
	}
	return true
}

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
		for _, c := range f.elems(n) {
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
		return true
	}
	set := f.scalars[p]
	if set == nil {
		set = make(map[scalarKey]struct{})
		f.scalars[p] = set
	}
	set[scalarKey{n.Kind, n.Text}] = struct{}{}
	return true
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

// valid reports whether CUE accepts every form and every scalar that was added.
func (f *former) valid(d *definitions, p *place) bool {
	for _, n := range f.forms {
		if len(f.verdict(d, p, n)) > 0 {
			return false
		}
	}
	for at, set := range f.scalars {
		keys := make([]scalarKey, 0, len(set))
		for k := range set {
			keys = append(keys, k)
		}
		if !at.acceptAll(d, keys) {
			return false
		}
	}
	return true
}

// allValid judges many values of one place by their forms. It answers no when
// one of them is not valid or has no form.
func allValid(b *builder, d *definitions, p *place, parts []part) bool {
	f := &former{builder: b, forms: make(map[string]*source.Node), scalars: make(map[*place]map[scalarKey]struct{})}
	return !slices.ContainsFunc(parts, func(one part) bool { return !f.add(one.node, p) }) && f.valid(d, p)
}
