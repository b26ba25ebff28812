package golden_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// member is one of an object in JSON whose order counts for readers.
type member struct {
	name  string
	value any
}

// ordered is an object in JSON.
type ordered []member

// MarshalJSON writes the members in their order.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON leaves < and > as they are, which patterns have.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// jsonSchema is the schema for editors. It is of draft 7, which all of them
// know; there, what stands beside a $ref is for people only.
func (r *reference) jsonSchema(title, sources string, defaults map[string]shown) ([]byte, error) {
	g := &schemaMaker{reference: r, defaults: defaults, used: make(map[string]bool)}
	root, err := g.object(r.byKey[r.root])
	if err != nil {
		return nil, err
	}
	var definitions ordered
	for _, o := range r.objects {
		if name, ok := strings.CutPrefix(o.key, "#"); ok && o.key != r.root && !strings.Contains(name, ".") {
			made, err := g.object(o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.key, err)
			}
			definitions = append(definitions, member{name, made})
		}
	}
	values, err := g.usedValues()
	if err != nil {
		return nil, err
	}
	definitions = append(definitions, values...)
	all := append(ordered{
		{"$schema", "http://json-schema.org/draft-07/schema#"},
		{"$comment", "Made from " + sources + " by golden/jsonschema_test.go; UPDATE=1 go test ./golden rewrites it."},
		{"title", title},
	}, root...)
	flat, err := plainJSON(append(all, member{"definitions", definitions}))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, flat, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// schemaMaker turns definitions of CUE into those of JSON Schema.
type schemaMaker struct {
	*reference
	defaults map[string]shown
	// used are the definitions that something refers to.
	used map[string]bool
}

// usedValues are the definitions that are no objects, without those that nothing
// refers to.
func (g *schemaMaker) usedValues() (ordered, error) {
	made := make(map[string]ordered)
	for more := true; more; {
		more = false
		for _, v := range g.values {
			if made[v.key] != nil || !g.used[v.key] {
				continue
			}
			one, err := g.value(v) // may use others
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.key, err)
			}
			made[v.key], more = one, true
		}
	}
	var out ordered
	for _, v := range g.values {
		if made[v.key] != nil {
			out = append(out, member{strings.TrimPrefix(v.key, "#"), made[v.key]})
		}
	}
	return out, nil
}

// value is a definition that is no object. Editors show the words of its form
// instead of its pattern.
func (g *schemaMaker) value(v *value) (ordered, error) {
	def := g.defs[v.key]
	made, err := g.typed(def.Value)
	if err != nil {
		return nil, err
	}
	_, isText := def.Value.(*ast.UnaryExpr)
	for _, a := range def.Attrs {
		if key, arg := a.Split(); key == "form" && isText {
			text, err := strconv.Unquote(arg)
			if err != nil {
				return nil, err
			}
			made = append(made, member{"patternErrorMessage", "must be " + text})
		}
	}
	return append(ordered{{"description", strings.ReplaceAll(v.doc, "`", "")}}, made...), nil
}

// object is a closed object.
func (g *schemaMaker) object(o *object) (ordered, error) {
	out := ordered{{"description", strings.ReplaceAll(o.doc, "`", "")}, {"type", "object"}}
	if o.open != nil {
		values, err := g.typed(o.open)
		return append(out, member{"additionalProperties", values}), err
	}
	properties, required, err := g.fields(o.key, o.fields)
	if err != nil {
		return nil, err
	}
	out = append(out, member{"properties", properties})
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	if len(o.variants) == 0 {
		return append(out, member{"additionalProperties", false}), nil
	}
	variants, err := g.variants(o)
	return append(out, member{"allOf", variants}), err
}

func (g *schemaMaker) fields(key string, fields []*field) (properties ordered, required []string, err error) {
	properties = ordered{}
	for _, f := range fields {
		var made ordered
		if inner, ok := f.expr.(*ast.StructLit); ok && inner != nil {
			made, err = g.object(f.child)
		} else if made, err = g.typed(f.expr); err == nil {
			made = append(ordered{{"description", f.doc}}, made...)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if d, ok := g.defaults[key+"."+f.name]; ok {
			made[0].value = f.doc + " Default: " + linkText().ReplaceAllString(d.text, "$1") + "."
			switch d.value.(type) {
			case map[string]any, []any, nil:
			default:
				if d.text == fmt.Sprintf("`%v`", d.value) {
					made = append(made, member{"default", d.value})
				}
			}
		}
		if f.required {
			required = append(required, f.name)
		}
		made[0].value = strings.ReplaceAll(fmt.Sprint(made[0].value), "`", "") // editors show plain text
		properties = append(properties, member{f.name, made})
	}
	return properties, required, nil
}

func linkText() *regexp.Regexp { return regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`) }

// variants closes an object for each word of its type: the fields of all, and
// those of the word.
func (g *schemaMaker) variants(o *object) ([]any, error) {
	var words []string
	for _, f := range o.fields {
		if f.name == "type" && f.required {
			words = g.enumeration(f.expr)
		}
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("the variants have no type that is one of some words")
	}
	var out []any
	for _, w := range words {
		properties := ordered{}
		for _, f := range o.fields {
			properties = append(properties, member{f.name, true})
		}
		var required []string
		for _, v := range o.variants {
			if v.word != w {
				continue
			}
			own, needed, err := g.fields(o.key+"("+w+")", v.fields)
			if err != nil {
				return nil, err
			}
			properties, required = append(properties, own...), append(required, needed...)
		}
		then := ordered{{"properties", properties}, {"additionalProperties", false}}
		if len(required) > 0 {
			then = append(then, member{"required", required})
		}
		out = append(out, ordered{
			{"if", ordered{{"properties", ordered{{"type", ordered{{"const", w}}}}}, {"required", []string{"type"}}}},
			{"then", then},
		})
	}
	return out, nil
}

// typed is what an expression accepts.
func (g *schemaMaker) typed(e ast.Expr) (ordered, error) {
	switch e := e.(type) {
	case *ast.Ident:
		return g.typeNamed(e.Name)
	case *ast.ParenExpr:
		return g.typed(e.X)
	case *ast.BasicLit:
		value, err := literalValue(e)
		return ordered{{"const", value}}, err
	case *ast.ListLit:
		items, err := g.typed(elementOf(e))
		out := ordered{{"type", "array"}, {"items", items}}
		if len(e.Elts) > 1 {
			out = append(out, member{"minItems", len(e.Elts) - 1})
		}
		return out, err
	case *ast.UnaryExpr:
		if e.Op != token.MAT {
			return nil, fmt.Errorf("cannot express the operator %s", e.Op)
		}
		text, err := patternText(e.X)
		if err != nil {
			return nil, err
		}
		pattern, err := editorPattern(text)
		return ordered{{"type", "string"}, {"pattern", pattern}}, err
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			return g.bounded(conjuncts(e))
		}
		return g.union(e)
	}
	return nil, fmt.Errorf("cannot express a %T", e)
}

// patternText is the text of a pattern, which may be in raw quotes.
func patternText(e ast.Expr) (string, error) {
	l, ok := e.(*ast.BasicLit)
	if !ok {
		return "", fmt.Errorf("cannot express a pattern that is a %T", e)
	}
	return literal.Unquote(l.Value)
}

func (g *schemaMaker) typeNamed(name string) (ordered, error) {
	switch name {
	case "_":
		return ordered{}, nil
	case "bool":
		return ordered{{"type", "boolean"}}, nil
	case "int":
		return ordered{{"type", "integer"}}, nil
	case "string", "number":
		return ordered{{"type", name}}, nil
	}
	if g.defs[name] == nil {
		return nil, fmt.Errorf("cannot express %s", name)
	}
	g.used[name] = true
	return ordered{{"$ref", "#/definitions/" + strings.TrimPrefix(name, "#")}}, nil
}

func literalValue(l *ast.BasicLit) (any, error) {
	switch l.Kind {
	case token.STRING:
		return wordOf(l), nil
	case token.INT, token.FLOAT:
		return json.Number(l.Value), nil
	case token.TRUE, token.FALSE:
		return l.Kind == token.TRUE, nil
	}
	return nil, fmt.Errorf("cannot express %s", l.Value)
}

// union is an enumeration, or any of several forms.
func (g *schemaMaker) union(e ast.Expr) (ordered, error) {
	var values, forms []any
	for _, a := range alternatives(e) {
		if l, ok := a.(*ast.BasicLit); ok {
			v, err := literalValue(l)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
			continue
		}
		form, err := g.typed(a)
		if err != nil {
			return nil, err
		}
		forms = append(forms, form)
	}
	if len(forms) == 0 {
		return ordered{{"enum", values}}, nil
	}
	if len(values) > 0 {
		forms = append(forms, ordered{{"enum", values}})
	}
	return ordered{{"anyOf", forms}}, nil
}

// bounded is a number with bounds.
func (g *schemaMaker) bounded(parts []ast.Expr) (ordered, error) {
	out, err := g.typed(parts[0])
	if err != nil {
		return nil, err
	}
	for _, p := range parts[1:] {
		u, ok := p.(*ast.UnaryExpr)
		if !ok {
			return nil, fmt.Errorf("cannot express a bound that is a %T", p)
		}
		bound := wordOf(u.X)
		if minus, ok := u.X.(*ast.UnaryExpr); ok {
			bound = minus.Op.String() + wordOf(minus.X)
		}
		keyword, ok := map[token.Token]string{
			token.GEQ: "minimum", token.GTR: "exclusiveMinimum", token.LEQ: "maximum", token.LSS: "exclusiveMaximum",
		}[u.Op]
		if !ok || bound == "" {
			return nil, fmt.Errorf("cannot express the bound %s", u.Op)
		}
		out = append(out, member{keyword, json.Number(bound)})
	}
	return out, nil
}

// editorPattern writes a pattern so that the engines of editors, which are those
// of JavaScript, read it as CUE does: there, \s and the dot differ.
func editorPattern(pattern string) (string, error) {
	var out strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			switch n := pattern[i]; {
			case n == 's' && class:
				out.WriteString(`\t\n\f\r `)
			case strings.IndexByte(`[]\/.xtnrfd`, n) >= 0:
				out.WriteString(pattern[i-1 : i+1])
			default:
				return "", fmt.Errorf("cannot express \\%c in the pattern %s", n, pattern)
			}
			continue
		case c == '[' && !class:
			class = true
		case c == ']':
			class = false
		case c == '.' && !class:
			out.WriteString(`[^\n]`)
			continue
		case c == '(' && i+1 < len(pattern) && pattern[i+1] == '?':
			return "", fmt.Errorf("cannot express (? in the pattern %s", pattern)
		}
		out.WriteByte(c)
	}
	return out.String(), nil
}
