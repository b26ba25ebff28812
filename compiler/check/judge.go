package check

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// judge gives verdicts, one piece after the other. It belongs to one goroutine.
type judge struct {
	tree     *source.Tree
	language language
	defs     *definitions
}

// renewAfter is how many values are judged in one CUE context. The memory of a
// context grows with what is judged in it, by about 3 KiB a value, and a new
// one costs about as much as a hundred values.
const renewAfter = 4000

// piece gives the verdict on a piece. Only when CUE refuses a part of it, the
// part is walked for an explanation.
func (j *judge) piece(p piece) (out diag.List) {
	defer func() {
		if r := recover(); r != nil {
			j.defs = nil
			at := pointer(p.parts[0].path)
			out.Add(diag.New(diag.Internal, j.tree.Pos(at), at, fmt.Sprintf("the schema check failed: %v", r)))
		}
	}()
	b := &builder{kept: p.kept}
	for i, one := range p.parts {
		if err := j.renew(); err != nil {
			return diag.List{diag.New(diag.Internal, diag.Pos{}, "", err.Error())}
		}
		s := j.defs.at(p.steps)
		if s == nil {
			// The piece that holds the list refuses it as a whole.
			return nil
		}
		if i == 0 && len(p.parts) > 1 && allValid(b, j.defs, s, p.parts) {
			return nil
		}
		if errs := b.verdict(j.defs, s, one.node); len(errs) > 0 {
			w := &walker{builder: b, tree: j.tree, defs: j.defs}
			w.value(one.node, s, one.path)
			w.uncovered(errs, len(s.schema.Path().Selectors()), one.path)
			out = append(out, w.out...)
		}
	}
	return out
}

// renew makes a new context when the old one is used up.
func (j *judge) renew() error {
	if j.defs != nil && j.defs.spent < renewAfter {
		return nil
	}
	d, err := newDefinitions(j.language)
	if err != nil {
		return err
	}
	j.defs = d
	return nil
}

// verdict returns CUE's errors about a value, none if it is valid.
func (b *builder) verdict(d *definitions, s *place, n *source.Node) []errors.Error {
	expr := b.expr(n)
	d.spent += b.built
	b.built = 0
	err := s.schema.Unify(d.context.BuildExpr(expr)).Validate(cue.Concrete(true), cue.Final())
	if err == nil {
		return nil
	}
	return errors.Errors(errors.Sanitize(errors.Promote(err, "")))
}

// builder turns nodes into CUE syntax.
type builder struct {
	kept map[*source.Node]int
	// built counts the values since it was last reset.
	built int
}

// expr returns a node as a CUE expression that is only data.
func (b *builder) expr(n *source.Node) ast.Expr {
	b.built++
	switch n.Kind {
	case source.Struct:
		s := &ast.StructLit{Elts: make([]ast.Decl, len(n.Fields))}
		for i := range n.Fields {
			f := &n.Fields[i]
			s.Elts[i] = &ast.Field{Label: ast.NewStringLabel(f.Name), Value: b.expr(f.Value)}
		}
		return s
	case source.List:
		elems := b.elems(n)
		l := &ast.ListLit{Elts: make([]ast.Expr, len(elems))}
		for i, e := range elems {
			l.Elts[i] = b.expr(e)
		}
		return l
	}
	return scalar(n.Kind, n.Text)
}

// elems returns the elements of a list that belong to its piece.
func (b *builder) elems(n *source.Node) []*source.Node {
	if k, ok := b.kept[n]; ok {
		return n.Elems[:k]
	}
	return n.Elems
}

// scalar returns a scalar as a CUE literal.
func scalar(k source.Kind, text string) ast.Expr {
	switch k {
	case source.Null:
		return ast.NewNull()
	case source.Bool:
		return ast.NewBool(text == "true")
	case source.String:
		return &ast.BasicLit{Kind: token.STRING, Value: literal.String.Quote(text)}
	}
	digits, negative := strings.CutPrefix(text, "-")
	lit := &ast.BasicLit{Kind: token.INT, Value: digits}
	if !isWhole(text) {
		lit.Kind = token.FLOAT
	}
	if negative {
		return &ast.UnaryExpr{Op: token.SUB, X: lit}
	}
	return lit
}

// isWhole reports whether a number is written as an integer, which is what
// makes it one: 1.0 and 1e3 are not.
func isWhole(text string) bool { return !strings.ContainsAny(text, ".eE") }

// uncovered adds CUE's errors that no finding of the walk explains. skip is the
// length of the schema's own path, with which the paths of errors begin.
func (w *walker) uncovered(errs []errors.Error, skip int, base []string) {
	known := w.explained()
	for _, e := range errs {
		path := base[:len(base):len(base)]
		if p := e.Path(); len(p) > skip {
			for _, label := range p[skip:] {
				path = append(path, unquoted(label))
			}
		}
		at := pointer(path)
		if known.covers(at) {
			continue
		}
		text := errors.StringWithConfig(e, &errors.Config{OmitPath: true})
		w.out.Add(diag.New(diag.OtherShape, w.tree.Pos(at), at, strings.Join(strings.Fields(text), " ")))
	}
	if len(w.out) == 0 && len(w.reported) == 0 {
		at := pointer(base)
		w.out.Add(diag.New(diag.OtherShape, w.tree.Pos(at), at, "the schema refuses the value"))
	}
}

// unquoted returns the name of a label as CUE writes it in the path of an error:
// one that is no identifier is quoted.
func unquoted(label string) string {
	if name, err := literal.Unquote(label); err == nil {
		return name
	}
	return label
}

// explained is the paths of findings, true, and of what encloses them, false.
type explained map[string]bool

// explained collects what the walk explained, and what was reported before.
func (w *walker) explained() explained {
	out := make(explained, len(w.out))
	add := func(path string) {
		out[path] = true
		for i := strings.LastIndexByte(path, '/'); i >= 0; i = strings.LastIndexByte(path[:i], '/') {
			if _, seen := out[path[:i]]; seen {
				return
			}
			out[path[:i]] = false
		}
	}
	for i := range w.out {
		add(w.out[i].Path)
	}
	for _, path := range w.reported {
		add(path)
	}
	return out
}

// covers reports whether a finding is at a path, above it or below it.
func (e explained) covers(path string) bool {
	if _, ok := e[path]; ok {
		return true
	}
	for i := strings.LastIndexByte(path, '/'); i >= 0; i = strings.LastIndexByte(path[:i], '/') {
		if e[path[:i]] {
			return true
		}
	}
	return false
}

func pointer(path []string) string {
	p := ""
	for _, token := range path {
		p = source.Join(p, token)
	}
	return p
}
