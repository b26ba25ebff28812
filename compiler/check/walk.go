package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// walker goes over data and schema together and explains what CUE refuses. CUE
// leaves errors out when there are others nearby, and the walk does not.
type walker struct {
	*builder
	tree *source.Tree
	defs *definitions
	out  diag.List
	// objects has what was learnt about the schema of each place.
	objects map[string]*object
}

func newWalker(t *source.Tree, d *definitions, p piece) *walker {
	return &walker{builder: &builder{kept: p.kept}, tree: t, defs: d, objects: make(map[string]*object)}
}

// object is the schema of an object as the walk needs it.
type object struct {
	fields []fieldSchema
	// common is how many of the first fields are listed as the known ones:
	// all, except where the fields of several variants are together.
	common int
	// rest is the schema of all other fields, for objects that allow any.
	rest    cue.Value
	hasRest bool
}

type fieldSchema struct {
	name     string
	value    cue.Value
	required bool
}

func (o *object) find(name string) *fieldSchema {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	return nil
}

// nearest names the field that was meant, or lists the fields.
func (o *object) nearest(wrong string) string {
	names := make([]string, len(o.fields))
	for i := range o.fields {
		names[i] = o.fields[i].name
	}
	if near := nearest(wrong, names); near != "" {
		return didYouMean(near)
	}
	return "known fields: " + strings.Join(names[:o.common], ", ")
}

// value holds a value against its schema. key names the schema's place.
func (w *walker) value(n *source.Node, s cue.Value, path []string, key string) {
	if n.Kind == source.Null {
		w.null(n, s, path)
		return
	}
	s = narrow(s, n.Kind)
	kind := s.IncompleteKind()
	if kind == cue.BottomKind {
		// An object whose conditions are open has no kind yet.
		kind = cue.StructKind
	}
	if kind&kindOf(n) == 0 {
		if !n.Reported {
			w.wrongType(n, s, path)
		}
		return
	}
	switch n.Kind {
	case source.Struct:
		w.structure(n, s, path, key)
	case source.List:
		w.list(n, s, path, key)
	default:
		if !n.Reported {
			w.scalar(n, s, path)
		}
	}
}

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

// narrow returns the one alternative of a schema that has the kind of the data,
// such as the object of "a number or an object", and else the schema itself.
func narrow(s cue.Value, k source.Kind) cue.Value {
	if k != source.Struct && k != source.List {
		return s
	}
	op, alternatives := s.Expr()
	if op != cue.OrOp {
		op, alternatives = cue.Dereference(s).Expr()
	}
	if op != cue.OrOp {
		return s
	}
	want := cue.StructKind
	if k == source.List {
		want = cue.ListKind
	}
	for _, a := range alternatives {
		if a.IncompleteKind()&want != 0 {
			return a
		}
	}
	return s
}

func (w *walker) list(n *source.Node, s cue.Value, path []string, key string) {
	least := 0
	for s.LookupPath(cue.MakePath(cue.Index(least))).Exists() {
		least++
	}
	if len(n.Elems) < least {
		w.report(diag.ListLength, n, path, fmt.Sprintf("%s needs at least %d %s", nameOf(path), least, plural("element", least)))
	}
	element := s.LookupPath(cue.MakePath(cue.AnyIndex))
	if !element.Exists() {
		return
	}
	for i, e := range w.elems(n) {
		w.value(e, element, extend(path, strconv.Itoa(i)), key+"[]")
	}
}

func (w *walker) structure(n *source.Node, s cue.Value, path []string, key string) {
	o := w.object(s, key)
	variant := ""
	known := true // whether the fields of the object are known
	if t := o.find("type"); t != nil && t.required {
		words := wordsOf(t.value)
		variant = textOf(n.Lookup("type"))
		if known = slices.Contains(words, variant); known {
			key += "=" + variant
			s = s.FillPath(cue.MakePath(cue.Str("type")), variant)
			o = w.object(s, key)
		} else {
			o = w.union(s, key, words)
		}
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		at := extend(path, f.Name)
		switch fs := o.find(f.Name); {
		case fs != nil:
			w.value(f.Value, fs.value, at, key+"/"+f.Name)
		case o.hasRest:
			w.value(f.Value, o.rest, at, key+"/*")
		default:
			w.unknownField(f, o, at, s, variant)
		}
	}
	for i := range o.fields {
		if f := &o.fields[i]; f.required && n.Lookup(f.name) == nil {
			w.missing(n, f, extend(path, f.name))
		}
	}
}

// object returns what the walk needs of the schema of an object.
func (w *walker) object(s cue.Value, key string) *object {
	if o, ok := w.objects[key]; ok {
		return o
	}
	o := &object{}
	if it, err := s.Fields(cue.Optional(true)); err == nil {
		for it.Next() {
			o.fields = append(o.fields, fieldSchema{
				name:     it.Selector().Unquoted(),
				value:    it.Value(),
				required: it.FieldType()&cue.RequiredConstraint != 0,
			})
		}
	}
	o.common = len(o.fields)
	o.rest = s.LookupPath(cue.MakePath(cue.AnyString))
	o.hasRest = o.rest.Exists()
	w.objects[key] = o
	return o
}

// union returns the fields of all variants together, for an object that does
// not say which it is.
func (w *walker) union(s cue.Value, key string, words []string) *object {
	if o, ok := w.objects[key+"=?"]; ok {
		return o
	}
	base := w.object(s, key)
	o := &object{fields: slices.Clone(base.fields), common: base.common}
	for _, word := range words {
		variant := w.object(s.FillPath(cue.MakePath(cue.Str("type")), word), key+"="+word)
		for _, f := range variant.fields {
			if o.find(f.name) == nil {
				o.fields = append(o.fields, f)
			}
		}
	}
	w.objects[key+"=?"] = o
	return o
}

// ownersOf lists the variants that have a field of that name.
func (w *walker) ownersOf(s cue.Value, words []string, name string) []string {
	var out []string
	for _, word := range words {
		if field(s.FillPath(cue.MakePath(cue.Str("type")), word), name).Exists() {
			out = append(out, word)
		}
	}
	return out
}

// unknownField reports a field that the schema does not know: by the name of an
// older router, of another variant, or a nearly right one.
func (w *walker) unknownField(f *source.Field, o *object, path []string, s cue.Value, variant string) {
	at := pointer(path)
	d := diag.New(diag.UnknownField, w.tree.FieldPos(f), at, fmt.Sprintf("unknown field %q", f.Name))
	d.End = w.tree.End(d.Pos)
	hint, dropped := w.defs.legacy("fields", f.Name)
	var owners []string
	if policy := w.defs.all.LookupPath(cue.MakePath(cue.Def("Policy"))); variant != "" {
		owners = w.ownersOf(policy, wordsOf(field(policy, "type")), f.Name)
	}
	switch {
	case len(owners) > 0:
		d.Message = fmt.Sprintf("field %q is no setting of type %s", f.Name, variant)
		d.Hint = "it belongs to type " + strings.Join(owners, " or ")
	case dropped:
		d.Code = diag.DroppedField
		d.Message = fmt.Sprintf("field %q of older routers is not accepted here", f.Name)
		d.Hint = hint
	default:
		d.Hint = o.nearest(f.Name)
	}
	w.out.Add(d)
}

func (w *walker) missing(n *source.Node, f *fieldSchema, path []string) {
	d := diag.New(diag.MissingField, w.tree.NodePos(n), pointer(path),
		fmt.Sprintf("%s lacks the field %q", nameOf(path[:len(path)-1]), f.name))
	d.Hint = f.name + ": " + describe(f.value)
	w.out.Add(d)
}

// report adds a finding about a value.
func (w *walker) report(code diag.Code, n *source.Node, path []string, message string) *diag.Finding {
	d := diag.New(code, w.tree.NodePos(n), pointer(path), message)
	if n.Kind != source.Struct && n.Kind != source.List {
		d.End = w.tree.End(d.Pos)
	}
	return w.out.Add(d)
}

func textOf(n *source.Node) string {
	if n == nil || n.Kind != source.String {
		return ""
	}
	return n.Text
}
