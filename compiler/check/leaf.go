package check

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// null reports a null, which no field takes.
func (w *walker) null(n *source.Node, s cue.Value, path []string) {
	d := w.report(diag.NullValue, n, path, fmt.Sprintf("%s is null", nameOf(path)))
	d.Hint = "remove the field, or write " + expected(s)
	if s.IncompleteKind() == cue.ListKind {
		d.Hint += "; [] is an empty one"
	}
}

// wrongType reports a value of a kind that its field does not take.
func (w *walker) wrongType(n *source.Node, s cue.Value, path []string) {
	got := n.Kind.String()
	if n.Kind == source.Number || n.Kind == source.Bool {
		got = n.Text
	}
	d := w.report(diag.WrongType, n, path, fmt.Sprintf("%s must be %s, not %s", nameOf(path), expected(s), got))
	kind := s.IncompleteKind()
	switch {
	case kind == cue.BoolKind && n.Kind == source.String:
		d.Hint = boolHint(n.Text)
	case kind&cue.NumberKind != 0 && n.Kind == source.String && isNumber(n.Text):
		d.Hint = "remove the quotes"
	case kind == cue.IntKind && n.Kind == source.Number:
		d.Hint = "write the number without a point or an exponent"
	case kind == cue.StringKind && n.Kind == source.Number && formOf(s) == "":
		d.Hint = "quote it to make it a string"
	case kind == cue.ListKind:
		d.Hint = "write a list, such as [ ... ], even for one element"
	}
}

func boolHint(text string) string {
	switch strings.ToLower(text) {
	case "yes", "on", "y", "true":
		return "write true, without quotes"
	case "no", "off", "n", "false":
		return "write false, without quotes"
	}
	return ""
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// scalar holds a scalar of the right kind against its schema.
func (w *walker) scalar(n *source.Node, s cue.Value, path []string) {
	v := s.Unify(w.defs.context.BuildExpr(scalar(n.Kind, n.Text)))
	if v.Validate(cue.Concrete(true), cue.Final()) == nil {
		return
	}
	if words := wordsOf(s); len(words) > 0 {
		w.unknownWord(n, words, path)
		return
	}
	switch n.Kind {
	case source.Number:
		code := diag.OutOfRange
		if s.IsConcrete() {
			code = diag.UnknownValue
		}
		w.report(code, n, path, fmt.Sprintf("%s must be %s, not %s", nameOf(path), bounds(s, n.Text, expected(s)), shorten(n.Text)))
	case source.String:
		w.report(diag.BadSpelling, n, path, fmt.Sprintf("%s must be %s, not %s", nameOf(path), expected(s), strconv.Quote(shorten(n.Text))))
	default:
		w.report(diag.OtherShape, n, path, fmt.Sprintf("%s cannot be %s", nameOf(path), n.Text))
	}
}

// unknownWord reports a word that is not among those of its field.
func (w *walker) unknownWord(n *source.Node, words []string, path []string) {
	if hint, ok := w.defs.legacy("policies", n.Text); ok && words[0] != "" {
		d := w.report(diag.DroppedPolicy, n, path, fmt.Sprintf("policy type %q of older routers is not accepted", n.Text))
		d.Hint = hint
		return
	}
	d := w.report(diag.UnknownValue, n, path, fmt.Sprintf("%s cannot be %s", nameOf(path), strconv.Quote(shorten(n.Text))))
	d.Hint = "known values: " + strings.Join(words, ", ")
	if near := nearest(n.Text, words); near != "" {
		d.Hint = didYouMean(near)
	}
}

// wordsOf lists the strings of an enumeration, and nothing for other schemas.
func wordsOf(s cue.Value) []string {
	op, alternatives := s.Expr()
	if op != cue.OrOp {
		op, alternatives = cue.Dereference(s).Expr()
	}
	if op != cue.OrOp {
		return nil
	}
	var out []string
	for _, a := range alternatives {
		text, err := a.String()
		if err != nil {
			return nil
		}
		out = append(out, text)
	}
	return out
}

// expected says what a schema takes, as the object of a sentence.
func expected(s cue.Value) string {
	if form := formOf(s); form != "" {
		return form
	}
	if words := wordsOf(s); len(words) > 0 {
		return "one of " + strings.Join(words, ", ")
	}
	if s.IsConcrete() && s.IncompleteKind()&cue.NumberKind != 0 {
		return fmt.Sprint(s)
	}
	switch k := s.IncompleteKind(); {
	case k == cue.BoolKind:
		return "true or false"
	case k == cue.IntKind:
		return "a whole number"
	case k&cue.NumberKind != 0:
		return "a number"
	case k == cue.StringKind:
		return "a string"
	case k == cue.ListKind:
		return "a list"
	}
	return "an object"
}

// formOf returns the form that the definition of a value names, or nothing.
func formOf(s cue.Value) string {
	a := cue.Dereference(s).Attribute("form")
	text, err := a.String(0)
	if err != nil {
		return ""
	}
	return text
}

// maxCount is the bound of counts that have no other. Nobody runs into it by
// accident, so it is named only to who exceeds it.
const maxCount = "9007199254740991"

// bounds says what numbers a schema takes; otherwise stands for a schema
// without bounds.
func bounds(s cue.Value, got, otherwise string) string {
	b := map[cue.Op]string{}
	collectBounds(cue.Dereference(s), b)
	var out []string
	for _, k := range [...]struct {
		op   cue.Op
		text string
	}{
		{cue.GreaterThanEqualOp, "at least "},
		{cue.GreaterThanOp, "more than "},
		{cue.LessThanEqualOp, "at most "},
		{cue.LessThanOp, "less than "},
	} {
		if v, ok := b[k.op]; ok && (v != maxCount || len(got) >= len(maxCount)) {
			out = append(out, k.text+v)
		}
	}
	if len(out) == 0 {
		return otherwise
	}
	return strings.Join(out, " and ")
}

func collectBounds(s cue.Value, into map[cue.Op]string) {
	op, args := s.Expr()
	switch op {
	case cue.AndOp:
		for _, a := range args {
			collectBounds(a, into)
		}
	case cue.GreaterThanEqualOp, cue.GreaterThanOp, cue.LessThanEqualOp, cue.LessThanOp:
		into[op] = fmt.Sprint(args[0])
	}
}
