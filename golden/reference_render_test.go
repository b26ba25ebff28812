package golden_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// largest is the largest whole number of the language; it goes without saying.
const largest = "9007199254740991"

// form says what an expression accepts.
func (r *reference) form(e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.Ident:
		return r.named(e.Name)
	case *ast.ListLit:
		element, err := r.form(elementOf(e))
		if len(e.Elts) > 1 {
			element += ", at least one"
		}
		return "list: " + element, err
	case *ast.BasicLit:
		return "`" + wordOf(e) + "`", nil
	case *ast.StructLit:
		return "object", nil
	case *ast.ParenExpr:
		return r.form(e.X)
	case *ast.UnaryExpr:
		return "text of the form `" + strings.ReplaceAll(wordOf(e.X), "|", `\|`) + "`", nil
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			return numberText(conjuncts(e))
		}
		var out []string
		for _, a := range alternatives(e) {
			text, err := r.form(a)
			if err != nil {
				return "", err
			}
			out = append(out, text)
		}
		return strings.Join(out, ", "), nil
	}
	return "", fmt.Errorf("cannot show a %T", e)
}

// named is the form of a name: a type of CUE, a value or an object.
func (r *reference) named(name string) (string, error) {
	switch name {
	case "bool":
		return "`true`, `false`", nil
	case "int":
		return "whole number", nil
	case "string":
		return "text", nil
	}
	switch def := r.defs[name]; {
	case def == nil:
		return "", fmt.Errorf("cannot show %s", name)
	case r.byKey[name] != nil && r.byKey[name].open == nil:
		return "[" + r.byKey[name].noun() + "](#" + anchor(r.byKey[name].title()) + ")", nil
	case r.enumeration(def.Value) != nil:
		return r.form(def.Value)
	}
	return "[" + spoken(name) + "](#" + anchor(valuesTitle) + ")", nil
}

// number is the form of a number with bounds.
func numberText(parts []ast.Expr) (string, error) {
	out := "number"
	if nameOfIdent(parts[0]) == "int" {
		out = "whole number"
	}
	low, high := "", ""
	for _, p := range parts[1:] {
		u, ok := p.(*ast.UnaryExpr)
		if !ok {
			return "", fmt.Errorf("cannot show a bound that is a %T", p)
		}
		bound := wordOf(u.X)
		if minus, ok := u.X.(*ast.UnaryExpr); ok {
			bound = minus.Op.String() + wordOf(minus.X)
		}
		switch u.Op {
		case token.GEQ:
			low = bound + " or more"
		case token.GTR:
			low = "above " + bound
		case token.LEQ:
			high = bound
		default:
			return "", fmt.Errorf("cannot show the bound %s", u.Op)
		}
	}
	if high != "" && high != largest {
		return out + ", " + strings.TrimSuffix(low, " or more") + " to " + high, nil
	}
	return out + ", " + low, nil
}

// noun is what one value of the object is called.
func (o *object) noun() string {
	if name := o.key[strings.LastIndexByte(o.key, '.')+1:]; name != o.key {
		return name
	}
	return spoken(o.key)
}

// title is the path of an object that has one place, and its noun otherwise.
func (o *object) title() string {
	switch {
	case len(o.places) > 1:
		return o.noun()
	case o.places[0] == "":
		return "Top level"
	}
	return o.places[0]
}

// anchor is the name that Markdown gives to a heading.
func anchor(title string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c):
			return unicode.ToLower(c)
		}
		return -1
	}, title)
}

const (
	valuesTitle = "Values"
	legacyTitle = "Names of older routers"
)

const head = `<!-- Made from schema/*.cue and compiler/config/defaults.go by golden/reference_test.go; UPDATE=1 go test ./golden rewrites it. -->

# Configuration reference

A configuration is one YAML, JSON or CUE document. It has the fields below and no others, and none of them may be null. Required fields are marked; everything else may be absent, and then has the default that is shown, or no effect; state of policies and headers exist only where a policy needs them. ` + "`shunt show --origin`" + ` prints the values of a configuration with what was filled in. Whole numbers are at most ` + largest + `. Codes such as SH0206 are explained by ` + "`shunt explain CODE`" + `.

## Nesting

`

// render writes the reference. Defaults are by object and field.
func (r *reference) render(defaults map[string]shown) (string, error) {
	var b strings.Builder
	b.WriteString(head)
	r.byKey["#Config"].outline(&b, "", 0)
	for _, o := range r.objects {
		if len(o.places) > 1 && o.open == nil {
			fmt.Fprintf(&b, "- [%s](#%s)\n", o.title(), anchor(o.title()))
			o.outline(&b, o.places[0], 1)
		}
	}
	for _, o := range r.objects {
		if o.open == nil {
			if err := r.section(&b, o, defaults); err != nil {
				return "", fmt.Errorf("%s: %w", o.key, err)
			}
		}
	}
	if err := r.writeValues(&b); err != nil {
		return "", err
	}
	r.writeLegacy(&b)
	return b.String(), nil
}

// outline lists the objects below an object; those with several places are
// links there.
func (o *object) outline(b *strings.Builder, path string, depth int) {
	for _, f := range o.all() {
		c := f.child
		if c == nil || c.open != nil {
			continue
		}
		text := f.name
		if f.list {
			text += "[]"
		}
		if len(c.places) > 1 {
			fmt.Fprintf(b, "%s- %s: [%s](#%s)\n", strings.Repeat("  ", depth), text, c.title(), anchor(c.title()))
			continue
		}
		fmt.Fprintf(b, "%s- [%s](#%s)\n", strings.Repeat("  ", depth), text, anchor(c.title()))
		c.outline(b, f.below(path), depth+1)
	}
}

func (r *reference) section(b *strings.Builder, o *object, defaults map[string]shown) error {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", o.title(), prose(o.doc))
	if len(o.places) > 1 {
		fmt.Fprintf(b, "\nFound at `%s`.\n", strings.Join(o.places, "`, `"))
	}
	if err := r.table(b, rows{o.key, o.fields}, defaults); err != nil {
		return err
	}
	for _, v := range o.variants {
		fmt.Fprintf(b, "\n### %s of type %s\n\nThese fields are part of a %s with `type: %s`, beside those above.\n", o.noun(), v.word, o.noun(), v.word)
		if err := r.table(b, rows{o.key + "(" + v.word + ")", v.fields}, defaults); err != nil {
			return err
		}
	}
	return nil
}

// rows are the fields of an object or of a variant. The key is that of the
// defaults.
type rows struct {
	key    string
	fields []*field
}

func (r *reference) table(b *strings.Builder, of rows, defaults map[string]shown) error {
	b.WriteString("\n| field | form | default | meaning |\n|---|---|---|---|\n")
	for _, f := range of.fields {
		form, err := r.form(f.expr)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if inner, ok := f.expr.(*ast.StructLit); ok && inner != nil {
			form = "[" + f.child.noun() + "](#" + anchor(f.child.title()) + ")"
		}
		def := "none"
		d, ok := defaults[of.key+"."+f.name]
		switch {
		case ok:
			def = d.text
		case f.required:
			def = "**required**"
		case f.child != nil && !f.list && f.child.filled(defaults):
			def = "those of its fields"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.name, form, def, prose(f.doc))
	}
	return nil
}

// filled reports whether the object has a default somewhere, though other
// objects that it shares do not count. Nobody fills in an object with required
// fields.
func (o *object) filled(defaults map[string]shown) bool {
	required := func(f *field) bool { return f.required }
	return len(o.places) == 1 && !slices.ContainsFunc(o.fields, required) && slices.ContainsFunc(o.fields, func(f *field) bool {
		_, ok := defaults[o.key+"."+f.name]
		return ok || f.child != nil && f.child.filled(defaults)
	})
}

func (r *reference) writeValues(b *strings.Builder) error {
	fmt.Fprintf(b, "\n## %s\n\nForms of values that several fields share.\n\n| value | form | meaning |\n|---|---|---|\n", valuesTitle)
	for _, v := range r.values {
		fmt.Fprintf(b, "| %s | %s | %s |\n", v.name, v.form, prose(v.doc))
	}
	for _, o := range r.objects {
		if o.open == nil {
			continue
		}
		text, err := r.form(o.open)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| %s | object of any names, each with a %s | %s |\n", o.noun(), text, prose(o.doc))
	}
	return nil
}

func (r *reference) writeLegacy(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\nThese are refused, except where the tables above have a field of that name.\n", legacyTitle)
	for _, section := range slices.Sorted(keys(r.legacy)) {
		fmt.Fprintf(b, "\n| %s | instead |\n|---|---|\n", section)
		for _, n := range r.legacy[section] {
			fmt.Fprintf(b, "| `%s` | %s |\n", n.name, prose(n.hint))
		}
	}
}

// codeWords is what is set as code in a text: words with an underscore, objects and
// lists of CUE, and what is so already.
func codeWords() *regexp.Regexp {
	return regexp.MustCompile("`[^`]*`|\\b[a-z.]+: \\{[^}]*\\}|\\{[^}]*\\}|\\[\\]|/readyz|\\b[a-z.0-9]*[a-z0-9](?:_[a-z0-9]+)+(?:\\.[a-z_]+)*(?:: (?:true|false))?\\b|\\bx-[a-z-]+\\b|\\b[a-z]+\\.(?:min|max|pd|plain|decode|prefill)(?:\\.[a-z]+)?\\b")
}

// prose makes a comment a cell of a table.
func prose(text string) string {
	text = codeWords().ReplaceAllStringFunc(text, func(s string) string { return "`" + strings.Trim(s, "`") + "`" })
	return strings.ReplaceAll(text, "|", `\|`)
}
