package check

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"shunt/compiler/source"
)

// place is one place of the schema with what was learnt about it. Asking CUE is
// dear, and a list of ten thousand elements asks the same ten thousand times.
type place struct {
	schema cue.Value
	// kind is what the place takes. An object whose conditions are open has no
	// kind in CUE yet; it is an object here.
	kind cue.Kind
	// needed says that it is a field that must be there.
	needed bool

	fields   *object
	elements *place
	least    int
	listed   bool

	words   []string
	worded  bool
	forms   [2]*place // for a list, for an object
	formed  bool
	variant map[string]*place
	union   *object
	verdict map[scalarKey]bool
}

type scalarKey struct {
	kind source.Kind
	text string
}

// object is the schema of an object.
type object struct {
	fields []fieldSchema
	// common is how many of the first fields are listed as the known ones:
	// all, except where the fields of several variants are together.
	common int
	// rest is the schema of all other fields, nil where there are none.
	rest *place
}

type fieldSchema struct {
	*place
	name string
}

func newPlace(s cue.Value) *place {
	p := &place{schema: s, kind: s.IncompleteKind()}
	if p.kind == cue.BottomKind {
		p.kind = cue.StructKind
	}
	return p
}

func (o *object) find(name string) *fieldSchema {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	return nil
}

// of returns the schema of the field with that name, nil when none is allowed.
func (o *object) of(name string) *place {
	if f := o.find(name); f != nil {
		return f.place
	}
	return o.rest
}

// object returns the fields of a place that takes an object.
func (p *place) object() *object {
	if p.fields != nil {
		return p.fields
	}
	p.fields = &object{}
	if it, err := p.schema.Fields(cue.Optional(true)); err == nil {
		for it.Next() {
			f := fieldSchema{place: newPlace(it.Value()), name: it.Selector().Unquoted()}
			f.needed = it.FieldType()&cue.RequiredConstraint != 0
			p.fields.fields = append(p.fields.fields, f)
		}
	}
	p.fields.common = len(p.fields.fields)
	if rest := p.schema.LookupPath(cue.MakePath(cue.AnyString)); rest.Exists() {
		p.fields.rest = newPlace(rest)
	}
	return p.fields
}

// element returns the schema of the elements of a list, nil where the place
// takes no list.
func (p *place) element() *place {
	if !p.listed {
		p.listed = true
		for p.schema.LookupPath(cue.MakePath(cue.Index(p.least))).Exists() {
			p.least++
		}
		if e := p.schema.LookupPath(cue.MakePath(cue.AnyIndex)); e.Exists() {
			p.elements = newPlace(cue.Dereference(e))
		}
	}
	return p.elements
}

// enumeration returns the strings that the place takes, nil where it is no
// enumeration.
func (p *place) enumeration() []string {
	if !p.worded {
		p.worded = true
		for _, a := range alternatives(p.schema) {
			text, err := a.String()
			if err != nil {
				p.words = nil
				break
			}
			p.words = append(p.words, text)
		}
	}
	return p.words
}

// alternatives returns the operands of a disjunction, nil for other schemas.
func alternatives(s cue.Value) []cue.Value {
	op, out := s.Expr()
	if op != cue.OrOp {
		op, out = cue.Dereference(s).Expr()
	}
	if op != cue.OrOp {
		return nil
	}
	return out
}

// narrow returns the alternative of the place that takes a list or an object,
// such as the object of "a number or an object", and else the place itself.
func (p *place) narrow(k source.Kind) *place {
	if k != source.Struct && k != source.List || p.kind == cue.StructKind || p.kind == cue.ListKind {
		return p
	}
	if !p.formed {
		p.formed = true
		for _, a := range alternatives(p.schema) {
			switch a.IncompleteKind() {
			case cue.ListKind:
				p.forms[0] = newPlace(a)
			case cue.StructKind:
				p.forms[1] = newPlace(a)
			}
		}
	}
	form := p.forms[0]
	if k == source.Struct {
		form = p.forms[1]
	}
	if form == nil {
		return p
	}
	return form
}

// variants lists the types of an object whose field "type" opens further
// fields, nil for other objects.
func (p *place) variants() []string {
	if t := p.object().find("type"); t != nil && t.needed {
		return t.enumeration()
	}
	return nil
}

// ofType returns the schema of one variant, nil for an unknown one.
func (p *place) ofType(name string) *place {
	if v, ok := p.variant[name]; ok {
		return v
	}
	if !slices.Contains(p.variants(), name) {
		return nil
	}
	if p.variant == nil {
		p.variant = make(map[string]*place)
	}
	v := newPlace(p.schema.FillPath(cue.MakePath(cue.Str("type")), name))
	p.variant[name] = v
	return v
}

// anyType returns the fields of all variants together, for an object that does
// not say which it is.
func (p *place) anyType() *object {
	if p.union != nil {
		return p.union
	}
	base := p.object()
	p.union = &object{fields: slices.Clone(base.fields), common: base.common}
	for _, name := range p.variants() {
		for _, f := range p.ofType(name).object().fields {
			if p.union.find(f.name) == nil {
				p.union.fields = append(p.union.fields, f)
			}
		}
	}
	return p.union
}

// accepts reports CUE's verdict on a scalar.
func (p *place) accepts(d *definitions, n *source.Node) bool {
	key := scalarKey{n.Kind, n.Text}
	if ok, known := p.verdict[key]; known {
		return ok
	}
	if p.verdict == nil {
		p.verdict = make(map[scalarKey]bool)
	}
	ok := valid(p.schema, d, scalar(n.Kind, n.Text))
	d.spent++
	p.verdict[key] = ok
	return ok
}

// acceptAll reports CUE's verdict on many scalars together, as a list of what
// the place takes, which is cheaper than one by one.
func (p *place) acceptAll(d *definitions, keys []scalarKey) bool {
	list := &ast.ListLit{Elts: make([]ast.Expr, len(keys))}
	for i, k := range keys {
		list.Elts[i] = scalar(k.kind, k.text)
	}
	d.spent += len(keys)
	all := d.list.FillPath(cue.MakePath(cue.Def("Element")), p.schema)
	return valid(all.LookupPath(cue.MakePath(cue.Str("all"))), d, list)
}

func valid(s cue.Value, d *definitions, expr ast.Expr) bool {
	return s.Unify(d.context.BuildExpr(expr)).Validate(cue.Concrete(true), cue.Final()) == nil
}

// takes reports whether the place takes values of the kind of a node.
func (p *place) takes(n *source.Node) bool { return p.kind&kindOf(n) != 0 }

// kindOf returns the CUE kind of a node.
func kindOf(n *source.Node) cue.Kind {
	switch n.Kind {
	case source.Bool:
		return cue.BoolKind
	case source.String:
		return cue.StringKind
	case source.List:
		return cue.ListKind
	case source.Struct:
		return cue.StructKind
	case source.Number:
		if isWhole(n.Text) {
			return cue.IntKind
		}
		return cue.FloatKind
	}
	return cue.NullKind
}
