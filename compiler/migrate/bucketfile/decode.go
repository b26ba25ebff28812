package bucketfile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// maxRaw bounds the text of a field.
const maxRaw = 200

// decoder turns the tree of a file into values and reports what is wrong with
// their shape, in the manner of the routers: unknown fields are mistakes, null is
// the same as absent, and whole numbers have no fraction and no exponent.
type decoder struct {
	tree   *source.Tree
	out    diag.List
	fields []Field
}

func (d *decoder) add(code diag.Code, pos diag.Pos, pointer, message, hint string) *diag.Finding {
	f := d.out.Add(diag.New(code, pos, pointer, message))
	f.Hint = hint
	f.End = d.tree.End(pos)
	return f
}

func (d *decoder) origin(n *source.Node, pointer string) Origin {
	return Origin{Pointer: pointer, Pos: d.tree.NodePos(n)}
}

// collect lists the scalars and the lists of scalars of the file.
func (d *decoder) collect(n *source.Node, pointer string) {
	switch {
	case n == nil:
	case n.Kind == source.Struct:
		for i := range n.Fields {
			d.collect(n.Fields[i].Value, source.Join(pointer, n.Fields[i].Name))
		}
	case n.Kind == source.List && slices.ContainsFunc(n.Elems, func(e *source.Node) bool {
		return e != nil && (e.Kind == source.Struct || e.Kind == source.List)
	}):
		for i, e := range n.Elems {
			d.collect(e, source.Join(pointer, strconv.Itoa(i)))
		}
	default:
		f := Field{Pointer: pointer, Pos: d.tree.NodePos(n), Raw: raw(n)}
		if slices.ContainsFunc(source.Split(pointer), diag.SecretName) {
			f.Raw = "***"
		}
		d.fields = append(d.fields, f)
	}
}

// raw is the text of a scalar or of a list of them.
func raw(n *source.Node) string {
	var b strings.Builder
	write := func(n *source.Node) {
		if n.Kind == source.String {
			b.WriteString(strconv.Quote(n.Text))
		} else {
			b.WriteString(n.Text)
		}
	}
	if n.Kind != source.List {
		write(n)
	} else {
		b.WriteByte('[')
		for i, e := range n.Elems {
			if i > 0 {
				b.WriteString(", ")
			}
			if b.Len() > maxRaw {
				b.WriteString("...")
				break
			}
			write(e)
		}
		b.WriteByte(']')
	}
	return cut(diag.Mask(b.String()), maxRaw)
}

// cut shortens a text.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// quote shows text of the user in a message, shortened and without secrets.
func quote(s string) string { return strconv.Quote(cut(diag.Mask(s), 60)) }

// object is an object whose fields are being read.
type object struct {
	*decoder
	node    *source.Node
	pointer string
}

// object reads an object that may have the given fields only. It is usable, and
// has no fields, when the value is something else.
func (d *decoder) object(n *source.Node, pointer string, known ...string) object {
	o := object{d, n, pointer}
	if n == nil {
		return o
	}
	if n.Kind != source.Struct {
		d.wrongType(n, pointer, "an object")
		o.node = nil
		return o
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		if slices.Contains(known, f.Name) {
			continue
		}
		hint := "the fields here are " + strings.Join(known, ", ")
		if near := diag.Nearest(f.Name, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		d.add(diag.UnknownField, d.tree.FieldPos(f), source.Join(pointer, f.Name), "unknown field "+quote(f.Name), hint)
	}
	return o
}

func (d *decoder) wrongType(n *source.Node, pointer, want string) {
	if !n.Reported {
		d.add(diag.WrongType, d.tree.NodePos(n), pointer, fmt.Sprintf("%s is %s, not %s", nameOf(pointer), n.Kind, want), "write "+want)
	}
}

// nameOf names a value by the end of its pointer.
func nameOf(pointer string) string {
	tokens := source.Split(pointer)
	if len(tokens) == 0 {
		return "the file"
	}
	last := tokens[len(tokens)-1]
	if _, err := strconv.Atoi(last); err == nil && len(tokens) > 1 {
		return cut(tokens[len(tokens)-2], 60) + "[" + last + "]"
	}
	return cut(last, 60)
}

// field returns the value of a field, nil when it is absent or null.
func (o object) field(name string) *source.Node {
	if o.node == nil {
		return nil
	}
	if n := o.node.Lookup(name); n != nil && n.Kind != source.Null {
		return n
	}
	return nil
}

func (o object) at(name string) string { return source.Join(o.pointer, name) }

// need reports fields that are absent or null and may not be.
func (o object) need(names ...string) {
	if o.node == nil {
		return
	}
	for _, name := range names {
		if o.field(name) != nil {
			continue
		}
		if n := o.node.Lookup(name); n != nil {
			o.add(diag.NullValue, o.tree.NodePos(n), o.at(name), name+" is null, and it is required", "write its value")
			continue
		}
		o.add(diag.MissingField, o.tree.NodePos(o.node), o.at(name), fmt.Sprintf("%s has no field %q", nameOf(o.pointer), name), "add it")
	}
}

func (o object) text(name string) *Value[string] {
	n := o.field(name)
	if n == nil {
		return nil
	}
	if n.Kind != source.String {
		o.wrongType(n, o.at(name), "a string")
		return nil
	}
	return &Value[string]{n.Text, []Origin{o.origin(n, o.at(name))}}
}

// word reads a string that is one of a few, in their exact case.
func (o object) word(name string, known ...string) *Value[string] {
	v := o.text(name)
	if v == nil || slices.Contains(known, v.Value) {
		return v
	}
	hint := "write one of " + strings.Join(known, ", ")
	if near := diag.Nearest(v.Value, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	o.add(diag.UnknownValue, v.Origins[0].Pos, o.at(name), fmt.Sprintf("%s has no value %s", name, quote(v.Value)), hint)
	return nil
}

// whole reads a whole number up to a bound.
func (o object) whole(name string, most uint64) *Value[uint64] {
	n := o.field(name)
	if n == nil {
		return nil
	}
	if n.Kind != source.Number {
		o.wrongType(n, o.at(name), "a whole number")
		return nil
	}
	v, err := strconv.ParseUint(n.Text, 10, 64)
	pos := o.tree.NodePos(n)
	switch {
	case n.Reported:
		return nil
	case err != nil && strings.ContainsAny(n.Text, ".eE"):
		o.add(diag.WrongType, pos, o.at(name), fmt.Sprintf("%s is %s, and must be a whole number without fraction and exponent", name, cut(n.Text, 40)), "write it in digits alone")
		return nil
	case err != nil || v > most:
		o.add(diag.OutOfRange, pos, o.at(name), fmt.Sprintf("%s is %s, and must be from 0 to %d", name, cut(n.Text, 40), most), "write a number in this range")
		return nil
	}
	return &Value[uint64]{v, []Origin{o.origin(n, o.at(name))}}
}

func (o object) u64(name string) *Value[uint64] { return o.whole(name, math.MaxUint64) }

// number reads a finite number.
func (o object) number(name string) *Value[float64] {
	n := o.field(name)
	if n == nil {
		return nil
	}
	if n.Kind != source.Number {
		o.wrongType(n, o.at(name), "a number")
		return nil
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil {
		o.add(diag.OutOfRange, o.tree.NodePos(n), o.at(name), fmt.Sprintf("%s is %s, which is not finite", name, cut(n.Text, 40)), "write a finite number")
		return nil
	}
	return &Value[float64]{v, []Origin{o.origin(n, o.at(name))}}
}

// texts reads a list of strings.
func (o object) texts(name string) *Value[[]string] {
	n := o.field(name)
	if n == nil {
		return nil
	}
	if n.Kind != source.List {
		o.wrongType(n, o.at(name), "a list of strings")
		return nil
	}
	v := &Value[[]string]{[]string{}, []Origin{o.origin(n, o.at(name))}}
	for i, e := range n.Elems {
		if e.Kind != source.String {
			o.wrongType(e, source.Join(o.at(name), strconv.Itoa(i)), "a string")
			continue
		}
		v.Value = append(v.Value, e.Text)
	}
	return v
}

// list returns the elements of a list with their pointers.
func (o object) list(name string, f func(n *source.Node, pointer string)) {
	n := o.field(name)
	if n == nil {
		return
	}
	if n.Kind != source.List {
		o.wrongType(n, o.at(name), "a list")
		return
	}
	for i, e := range n.Elems {
		f(e, source.Join(o.at(name), strconv.Itoa(i)))
	}
}

// posOf is the place of a value.
func posOf[T any](v *Value[T]) diag.Pos { return v.Origins[0].Pos }

// positive reports a number that must not be 0.
func (o object) positive(v *Value[uint64], name string) {
	if v != nil && v.Value == 0 {
		o.add(diag.BucketNumber, posOf(v), o.at(name), name+" is 0, and must be positive", "write a positive number, or remove the field")
	}
}
