package check

import (
	"fmt"
	"strconv"
	"strings"

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
	// reported lists the values that were reported when they were read.
	reported []string
}

// value holds a value against its schema.
func (w *walker) value(n *source.Node, p *place, path []string) {
	p = p.narrow(n.Kind)
	if n.Reported {
		w.reported = append(w.reported, pointer(path))
		return
	}
	switch {
	case n.Kind == source.Null:
		w.null(n, p, path)
	case !p.takes(n):
		w.wrongType(n, p, path)
	case n.Kind == source.Struct:
		w.structure(n, p, path)
	case n.Kind == source.List:
		w.list(n, p, path)
	case !p.accepts(w.defs, n):
		w.scalar(n, p, path)
	}
}

func (w *walker) list(n *source.Node, p *place, path []string) {
	element := p.element()
	if len(n.Elems) < p.least {
		w.report(diag.ListLength, n, path, fmt.Sprintf("%s needs at least %d %s", nameOf(path), p.least, plural("element", p.least)))
	}
	if element == nil {
		return
	}
	for i, e := range w.elems(n) {
		w.value(e, element, extend(path, strconv.Itoa(i)))
	}
}

func (w *walker) structure(n *source.Node, p *place, path []string) {
	o, variant := p.object(), ""
	if p.variants() != nil {
		variant = textOf(n.Lookup("type"))
		if v := p.ofType(variant); v != nil {
			o = v.object()
		} else {
			o, variant = p.anyType(), ""
		}
	}
	meant := make(map[string]bool)
	for i := range n.Fields {
		f := &n.Fields[i]
		at := extend(path, f.Name)
		if s := o.of(f.Name); s != nil {
			w.value(f.Value, s, at)
		} else {
			meant[w.unknownField(f, o, at, variant)] = true
		}
	}
	for i := range o.fields {
		f := &o.fields[i]
		switch {
		case !f.needed || n.Lookup(f.name) != nil:
		case meant[f.name]:
			// The unknown field explains that this one is missing.
			w.reported = append(w.reported, pointer(extend(path, f.name)))
		default:
			w.missing(n, f, extend(path, f.name))
		}
	}
}

// unknownField reports a field that the schema does not know: by the name of an
// older router, of another variant, or a nearly right one. It returns the name of
// the field that was meant, if it knows.
func (w *walker) unknownField(f *source.Field, o *object, path []string, variant string) (meant string) {
	d := diag.New(diag.UnknownField, w.tree.FieldPos(f), pointer(path), fmt.Sprintf("unknown field %q", shorten(f.Name)))
	d.End = w.tree.End(d.Pos)
	hint, dropped := w.defs.legacy("fields", strings.ReplaceAll(f.Name, "-", "_"))
	var owners []string
	if variant != "" {
		owners = w.ownersOf(f.Name)
	}
	switch {
	case len(owners) > 0:
		d.Message = fmt.Sprintf("field %q is no setting of type %s", f.Name, variant)
		d.Hint = "it belongs to type " + strings.Join(owners, " or ")
	case dropped:
		d.Code = diag.DroppedField
		d.Message = fmt.Sprintf("field %q of older routers is not accepted here", f.Name)
		d.Hint = hint + migration
	case f.Name == "apiVersion" && len(path) == 1:
		d.Hint = "this is a manifest of Kubernetes; shunt migrate reads those that start sgl-router"
	case isNumber(f.Name) && f.Value.Kind == source.Null:
		d.Hint = "write numbers without commas inside"
	default:
		meant, d.Hint = o.meant(f.Name)
	}
	if diag.SecretName(f.Name) {
		w.hide(&d, f.Value)
	}
	w.out.Add(d)
	return meant
}

// migration ends the hints about options of older routers, of which there are
// mostly more in the place that one was copied from.
const migration = "; shunt migrate takes a whole command line over"

// hide keeps a value out of excerpts.
func (w *walker) hide(d *diag.Finding, n *source.Node) {
	d.Secret = w.tree.NodePos(n)
	if n.Kind != source.Struct && n.Kind != source.List {
		d.SecretEnd = w.tree.End(d.Secret)
	}
}

// ownersOf lists the policy types that have a setting of that name.
func (w *walker) ownersOf(name string) []string {
	var out []string
	for _, t := range w.defs.policy.variants() {
		if w.defs.policy.ofType(t).object().find(name) != nil {
			out = append(out, t)
		}
	}
	return out
}

func (w *walker) missing(n *source.Node, f *fieldSchema, path []string) {
	d := diag.New(diag.MissingField, w.tree.NodePos(n), pointer(path),
		fmt.Sprintf("%s lacks the field %q", nameOf(path[:len(path)-1]), f.name))
	d.Hint = f.name + ": " + describe(f.place)
	if words := f.enumeration(); len(words) > 0 {
		d.Hint = f.name + " is one of " + strings.Join(words, ", ")
	}
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
