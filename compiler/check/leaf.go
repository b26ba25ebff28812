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
func (w *walker) null(n *source.Node, p *place, path []string) {
	d := w.report(diag.NullValue, n, path, fmt.Sprintf("%s is null", nameOf(path)))
	d.Hint = p.empty()
}

// wrongType reports a value of a kind that its field does not take.
func (w *walker) wrongType(n *source.Node, p *place, path []string) {
	got := n.Kind.String()
	secret := p.secret()
	if !secret && (n.Kind == source.Number || n.Kind == source.Bool) {
		got = shorten(n.Text)
	}
	d := w.report(diag.WrongType, n, path, fmt.Sprintf("%s must be %s, not %s", nameOf(path), p.expected(), got))
	if secret {
		w.hide(d, n)
	}
	kind := p.kind
	switch {
	case kind == cue.BoolKind && n.Kind == source.String:
		d.Hint = boolHint(n.Text)
	case kind&cue.NumberKind != 0 && n.Kind == source.String:
		d.Hint = plainNumber(n.Text)
	case kind == cue.IntKind && n.Kind == source.Number:
		d.Hint = "write the number without a point or an exponent"
	case kind == cue.StringKind && (n.Kind == source.Number || n.Kind == source.Bool) && !secret:
		if text := (source.Node{Kind: source.String, Text: n.Text}); p.accepts(w.defs, &text) {
			d.Hint = "quote it to make it a string"
		} else if n.Kind == source.Number && isWhole(n.Text) && p.definition() == "#Duration" {
			d.Hint = fmt.Sprintf("add the unit: %ss are seconds, %[1]sms milliseconds", shorten(n.Text))
		}
	case kind == cue.ListKind:
		d.Hint = "write a list, such as [ ... ], even for one element"
	case kind == cue.StructKind:
		d.Hint = p.asObject(n)
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

// scalar reports a scalar of the right kind that CUE refuses.
func (w *walker) scalar(n *source.Node, p *place, path []string) {
	if words := p.enumeration(); len(words) > 0 {
		w.unknownWord(n, words, path)
		return
	}
	switch n.Kind {
	case source.Number:
		code := diag.OutOfRange
		if p.schema.IsConcrete() {
			code = diag.UnknownValue
		}
		w.report(code, n, path, fmt.Sprintf("%s must be %s, not %s", nameOf(path), p.bounds(n.Text), shorten(n.Text)))
	case source.String:
		d := w.report(diag.BadSpelling, n, path, "")
		d.Message = fmt.Sprintf("%s must be %s", nameOf(path), p.expected())
		if p.secret() || strings.Contains(n.Text, "@") {
			// It may be or hold a secret, which does not belong in the log of
			// a build.
			if p.secret() || !strings.Contains(n.Text, "://") {
				w.hide(d, n) // what is secret in a URL is hidden anyway
			}
		} else {
			d.Message += ", not " + strconv.Quote(shorten(n.Text))
			d.Hint = p.respelled(n.Text)
		}
	default:
		w.report(diag.OtherShape, n, path, fmt.Sprintf("%s cannot be %s", nameOf(path), n.Text))
	}
}

// secret reports whether a place takes references to secrets only.
func (p *place) secret() bool {
	a := cue.Dereference(p.schema).Attribute("secret")
	return a.Err() == nil
}

// unknownWord reports a word that is not among those of its field.
func (w *walker) unknownWord(n *source.Node, words []string, path []string) {
	if hint, ok := w.defs.legacy("policies", n.Text); ok && words[0] != "" {
		d := w.report(diag.DroppedPolicy, n, path, fmt.Sprintf("policy type %q of older routers is not accepted", n.Text))
		d.Hint = hint + migration
		return
	}
	d := w.report(diag.UnknownValue, n, path, fmt.Sprintf("%s cannot be %s", nameOf(path), strconv.Quote(shorten(n.Text))))
	d.Hint = "known values: " + strings.Join(words, ", ")
	if near := nearest(n.Text, words); near != "" {
		d.Hint = didYouMean(near)
	}
}

// expected says what a place takes, as the object of a sentence.
func (p *place) expected() string {
	if form := p.form(); form != "" {
		return form
	}
	if words := p.enumeration(); len(words) > 0 {
		return "one of " + strings.Join(words, ", ")
	}
	switch {
	case p.kind&cue.NumberKind != 0 && p.schema.IsConcrete():
		return fmt.Sprint(p.schema)
	case p.kind == cue.BoolKind:
		return "true or false"
	case p.kind == cue.IntKind:
		return "a whole number"
	case p.kind&cue.NumberKind != 0:
		return "a number"
	case p.kind == cue.StringKind:
		return "a string"
	case p.kind == cue.ListKind:
		return "a list"
	}
	return "an object"
}

// form returns the form that the definition of a value names, or nothing.
func (p *place) form() string {
	a := cue.Dereference(p.schema).Attribute("form")
	text, err := a.String(0)
	if err != nil {
		return ""
	}
	return text
}

// maxCount is the bound of counts that have no other. Nobody runs into it by
// accident, so it is named only to who exceeds it.
const maxCount = "9007199254740991"

// bounds says what numbers a place takes.
func (p *place) bounds(got string) string {
	b := map[cue.Op]string{}
	collectBounds(cue.Dereference(p.schema), b)
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
		return p.expected()
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
