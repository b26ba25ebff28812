package golden_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"shunt/schema"
)

// reference is the schema as its reference shows it: the objects in the order
// of the schema's files, and the values that are no objects.
type reference struct {
	objects []*object
	values  []*value
	legacy  map[string][]renamed

	// root is the definition of a whole document.
	root string
	defs map[string]*ast.Field
	// byKey finds the objects of definitions; those without a name are known by
	// the field that has them.
	byKey map[string]*object
}

// object is a struct of the schema. Its key is the name of its definition, or
// that of the parent with the name of the field.
type object struct {
	key, doc string
	fields   []*field
	variants []*variant
	// open is what every other field holds, nil where there are none, and below
	// the object that this is.
	open  ast.Expr
	below *object
	// places are all paths that lead here, such as models[].breaker.
	places []string
}

// variant is what an object has when its type is a certain word.
type variant struct {
	word   string
	fields []*field
}

type field struct {
	name, doc string
	required  bool
	expr      ast.Expr
	// child is the object that the field holds or lists.
	child *object
	list  bool
}

// value is a definition that is no object.
type value struct{ key, name, form, doc string }

// renamed is a dropped name and what to write instead.
type renamed struct{ name, hint string }

// parseReference reads CUE files. It fails on anything that it would not show.
func parseReference(files []schema.File) (*reference, error) {
	return parseLanguage(files, "#Config")
}

// parseLanguage reads what leads from a root. Definitions beside it are only
// allowed in the files of test files, which have those of configurations too.
func parseLanguage(files []schema.File, root string) (*reference, error) {
	r := &reference{root: root, defs: map[string]*ast.Field{}, byKey: map[string]*object{}, legacy: map[string][]renamed{}}
	var order []string
	for _, f := range files {
		parsed, err := parser.ParseFile(f.Name, f.Text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			def, ok := d.(*ast.Field)
			if !ok {
				continue // the package clause and free comments
			}
			name := labelOf(def)
			if name == "#Legacy" {
				r.addLegacy(def)
				continue
			}
			r.defs[name] = def
			order = append(order, name)
		}
	}
	for _, name := range order {
		if err := r.define(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, r.link()
}

func labelOf(f *ast.Field) string {
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return ""
	}
	return name
}

// docOf is the comment above a declaration in one line.
func docOf(n ast.Node) string {
	var words []string
	for _, g := range ast.Comments(n) {
		if g.Doc {
			words = append(words, strings.Fields(g.Text())...)
		}
	}
	return strings.Join(words, " ")
}

// addLegacy reads #Legacy: SECTION: {NAME: "what to write"}.
func (r *reference) addLegacy(def *ast.Field) {
	outer, ok := def.Value.(*ast.StructLit)
	if !ok {
		return
	}
	for _, d := range outer.Elts {
		section, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		inner, ok := section.Value.(*ast.StructLit)
		if !ok {
			continue
		}
		for _, d := range inner.Elts {
			if f, ok := d.(*ast.Field); ok && labelOf(f) != "" {
				r.legacy[labelOf(section)] = append(r.legacy[labelOf(section)], renamed{labelOf(f), wordOf(f.Value)})
			}
		}
	}
}

// define makes a definition an object or a value.
func (r *reference) define(name string) error {
	def := r.defs[name]
	body, ok := def.Value.(*ast.StructLit)
	if !ok {
		text, err := r.form(def.Value)
		for _, a := range def.Attrs {
			if key, arg := a.Split(); key == "form" {
				text, err = strconv.Unquote(arg)
			}
		}
		r.values = append(r.values, &value{name, spoken(name), text, docOf(def)})
		return err
	}
	return r.object(name, docOf(def), body)
}

// object adds the object of a struct and those of the structs inside it.
func (r *reference) object(key, doc string, body *ast.StructLit) error {
	o := &object{key: key, doc: doc}
	r.objects = append(r.objects, o)
	r.byKey[key] = o
	for _, d := range body.Elts {
		switch d := d.(type) {
		case *ast.Field:
			if _, ok := d.Label.(*ast.ListLit); ok {
				o.open = d.Value
				continue
			}
			f, err := newField(d)
			if err != nil {
				return err
			}
			o.fields = append(o.fields, f)
		case *ast.Comprehension:
			v, err := newVariant(d)
			if err != nil {
				return err
			}
			o.variants = append(o.variants, v)
		case *ast.CommentGroup:
		default:
			return fmt.Errorf("cannot show a %T", d)
		}
	}
	for _, f := range o.fields {
		if inner, ok := f.expr.(*ast.StructLit); ok {
			if err := r.object(key+"."+f.name, f.doc, inner); err != nil {
				return err
			}
			f.child = r.byKey[key+"."+f.name]
		}
	}
	return nil
}

func newField(d *ast.Field) (*field, error) {
	f := &field{name: labelOf(d), doc: docOf(d), required: d.Constraint == token.NOT, expr: d.Value}
	if f.name == "" || f.doc == "" || !f.required && d.Constraint != token.OPTION {
		return nil, fmt.Errorf("field %q lacks a name, a comment, or one of ? and !", f.name)
	}
	return f, nil
}

// newVariant reads: if type == "word" {fields}.
func newVariant(c *ast.Comprehension) (*variant, error) {
	body, isStruct := c.Value.(*ast.StructLit)
	if len(c.Clauses) != 1 || !isStruct {
		return nil, fmt.Errorf("cannot show a comprehension of %d clauses", len(c.Clauses))
	}
	clause, ok := c.Clauses[0].(*ast.IfClause)
	if !ok {
		return nil, fmt.Errorf("cannot show a %T", c.Clauses[0])
	}
	cond, ok := clause.Condition.(*ast.BinaryExpr)
	if !ok || cond.Op != token.EQL || nameOfIdent(cond.X) != "type" {
		return nil, fmt.Errorf("cannot show a condition that is not type == \"word\"")
	}
	v := &variant{word: wordOf(cond.Y)}
	for _, d := range body.Elts {
		inner, ok := d.(*ast.Field)
		if !ok {
			return nil, fmt.Errorf("cannot show a %T", d)
		}
		f, err := newField(inner)
		if err != nil {
			return nil, err
		}
		v.fields = append(v.fields, f)
	}
	return v, nil
}

func nameOfIdent(e ast.Expr) string {
	if i, ok := e.(*ast.Ident); ok {
		return i.Name
	}
	return ""
}

// wordOf is the text of a literal: a string without its quotes, or a number.
func wordOf(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	if s, err := strconv.Unquote(l.Value); err == nil {
		return s
	}
	return l.Value
}

// link finds the child of every field and the places of every object.
func (r *reference) link() error {
	for _, o := range r.objects {
		o.below = r.byKey[nameOfIdent(o.open)]
		for _, f := range o.all() {
			e := f.expr
			if l, ok := e.(*ast.ListLit); ok {
				f.list, e = true, elementOf(l)
			}
			if name := nameOfIdent(e); strings.HasPrefix(name, "#") {
				if r.defs[name] == nil {
					return fmt.Errorf("%s.%s: no definition %s", o.key, f.name, name)
				}
				f.child = r.objectBelow(name)
			}
		}
	}
	root := r.byKey[r.root]
	if root == nil {
		return fmt.Errorf("no definition %s", r.root)
	}
	root.place("")
	if r.root != "#Config" {
		r.objects = slices.DeleteFunc(r.objects, func(o *object) bool { return len(o.places) == 0 })
	}
	for _, o := range r.objects {
		if len(o.places) == 0 {
			return fmt.Errorf("nothing leads to %s", o.key)
		}
	}
	return nil
}

// objectBelow is the object of a definition, or the one among the alternatives
// that it is.
func (r *reference) objectBelow(name string) *object {
	if o := r.byKey[name]; o != nil {
		return o
	}
	for _, e := range alternatives(r.defs[name].Value) {
		if o := r.byKey[nameOfIdent(e)]; o != nil {
			return o
		}
	}
	return nil
}

// all are the fields of an object and of its variants.
func (o *object) all() []*field {
	out := slices.Clone(o.fields)
	for _, v := range o.variants {
		out = append(out, v.fields...)
	}
	return out
}

// place notes a path to the object and to all below it.
func (o *object) place(path string) {
	o.places = append(o.places, path)
	for _, f := range o.all() {
		if f.child != nil {
			f.child.place(f.below(path))
		}
	}
	if o.below != nil {
		o.below.place(path + ".*")
	}
}

// below is the path of a field, with the mark of a list.
func (f *field) below(path string) string {
	if path != "" {
		path += "."
	}
	path += f.name
	if f.list {
		path += "[]"
	}
	return path
}

func elementOf(l *ast.ListLit) ast.Expr {
	for _, e := range l.Elts {
		if rest, ok := e.(*ast.Ellipsis); ok {
			return rest.Type
		}
	}
	return nil
}

// alternatives are the sides of a disjunction.
func alternatives(e ast.Expr) []ast.Expr {
	if p, ok := e.(*ast.ParenExpr); ok {
		return alternatives(p.X)
	}
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.OR {
		return append(alternatives(b.X), alternatives(b.Y)...)
	}
	return []ast.Expr{e}
}

// conjuncts are the sides of a conjunction.
func conjuncts(e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.AND {
		return append(conjuncts(b.X), conjuncts(b.Y)...)
	}
	return []ast.Expr{e}
}

// words are the texts of an enumeration, nil for anything else.
func (r *reference) enumeration(e ast.Expr) (words []string) {
	if def := r.defs[nameOfIdent(e)]; def != nil {
		return r.enumeration(def.Value)
	}
	for _, a := range alternatives(e) {
		l, ok := a.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return nil
		}
		words = append(words, wordOf(a))
	}
	return words
}

// spoken is the name of a definition as people say it: #HeaderName is header
// name, #URL stays.
func spoken(name string) string {
	name = strings.TrimPrefix(name, "#")
	if strings.ToUpper(name) == name {
		return name
	}
	// A word is one capital with what follows it, or the capitals before it.
	gap := regexp.MustCompile("([a-z])([A-Z])|([A-Z])([A-Z][a-z])")
	return strings.ToLower(gap.ReplaceAllString(name, "$1$3 $2$4"))
}
