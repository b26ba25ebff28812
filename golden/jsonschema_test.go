package golden_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"shunt/compiler/check"
	"shunt/compiler/source"
	"shunt/golden"
	"shunt/schema"
)

const editorSchemaFile = "../schema/config.schema.json"

// TestReferenceEditorSchema: the published JSON Schema is what the CUE schema says.
func TestReferenceEditorSchema(t *testing.T) {
	r, _ := makeReference(t)
	want, err := r.jsonSchema(referenceDefaults())
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(editorSchemaFile)
	if golden.Update() {
		if err != nil || !bytes.Equal(old, want) {
			err = os.WriteFile(editorSchemaFile, want, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := diff.Diff(editorSchemaFile, old, "wanted", want); d != nil {
		t.Errorf("%s\nrun the tests with UPDATE=1 to accept it", d)
	}
}

// editorSchema compiles the schema with a validator that this project did not
// write.
func editorSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// agree holds one document, as JSON, against both schemas. What it reports has
// the document.
func agree(t *testing.T, s *jsonschema.Schema, what string, document []byte) {
	t.Helper()
	document = escaped(document)
	tree, list := source.Read(t.Context(), source.Options{}, []source.Input{{Name: "a.json", Reader: bytes.NewReader(document)}})
	if list.HasErrors() {
		t.Fatalf("%s: %v\n%s", what, list, document)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, document)
	}
	shape, err := check.Shape(t.Context(), tree), s.Validate(value)
	if shape.HasErrors() != (err != nil) {
		t.Errorf("%s: the CUE schema says: %v\nthe JSON Schema says: %v", what, shape, err)
	}
}

// escaped is JSON without the characters that inputs may not have as they are.
func escaped(document []byte) []byte {
	var out []byte
	for _, c := range string(document) {
		if c < 0x7f {
			out = append(out, byte(c))
			continue
		}
		for _, half := range utf16.AppendRune(nil, c) {
			out = fmt.Appendf(out, "\\u%04x", half)
		}
	}
	return out
}

// TestEditorSchemaAgreesOnCases holds every configuration of the examples and of
// the golden cases against both schemas.
func TestEditorSchemaAgreesOnCases(t *testing.T) {
	s := editorSchema(t)
	count, invalid := 0, 0
	each := func(name string, text []byte) {
		tree, list := source.Read(t.Context(), source.Options{}, []source.Input{{Name: filepath.Base(name), Reader: bytes.NewReader(text)}})
		if tree == nil || list.HasErrors() || wholeNumberWithFraction(tree.JSON()) || bytes.HasPrefix(tree.JSON(), []byte(`{"format"`)) {
			return
		}
		count++
		if check.Shape(t.Context(), tree).HasErrors() {
			invalid++
		}
		agree(t, s, name, tree.JSON())
	}
	examples, err := filepath.Glob("../examples/*/routing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		each(name, text)
	}
	for _, pattern := range []string{"check/*.txtar", "compile/*.txtar", "forms/*.txtar"} {
		golden.Each(t, pattern, func(c *golden.Case) {
			for _, name := range c.Inputs {
				if slices.Contains([]string{".yaml", ".yml", ".json", ".cue"}, filepath.Ext(name)) && name != optionsFile {
					each(name, c.Input(name))
				}
			}
		})
	}
	if count < 90 || invalid < 30 {
		t.Errorf("only %d documents, %d of them invalid", count, invalid)
	}
}

// wholeNumberWithFraction reports whether a document writes a whole number as 1.0
// or 1e3. JSON Schema sees the value and not how it is written, and calls it an
// integer; the CUE schema does not. This is the only disagreement.
func wholeNumberWithFraction(document []byte) bool {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if n, ok := token.(json.Number); ok && strings.ContainsAny(n.String(), ".eE") {
			if f, err := n.Float64(); err == nil && f == float64(int64(f)) {
				return true
			}
		}
	}
}

// probes are values that one field accepts and another refuses.
func probes() []any {
	return []any{
		nil, true, 0, -1, 1, -3, 0.5, 1.5, 65536, json.Number("4294967296"), json.Number("9007199254740992"), json.Number("1" + strings.Repeat("0", 400)),
		"", "x", "x y", "off", "1s", "1234567890123456s", "1KiB", "h:1", "h:123456", "[::1]:1", "http://h:1", "ftp://h", "http://", "http:// ",
		"env:X", "env:1", "file:", "file:\r", "x\n", "\u00a0:1", "\u2028", "\x7f", "ä", "random", "plain", "power_of_two",
		[]any{}, []any{"x"}, []any{1}, map[string]any{}, map[string]any{"zzz": 1}, map[string]any{"min": 1, "max": 2}, map[string]any{"type": "random"},
	}
}

// TestEditorSchemaAgreesOnMutations changes each field that the schema has, in a
// document with that field and what is required.
func TestEditorSchemaAgreesOnMutations(t *testing.T) {
	s := editorSchema(t)
	r, _ := makeReference(t)
	count := 0
	for _, o := range r.objects {
		if o.open != nil {
			continue
		}
		words := []string{""}
		for _, v := range o.variants {
			words = append(words, v.word)
		}
		for _, word := range words {
			for _, target := range o.ofWord(word) {
				count++
				f := &filler{reference: r, t: t, of: o, word: word, target: target}
				probe(t, s, f.object(r.byKey["#Config"]), f, count)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d fields", count)
	}
}

// probe tries probes at the place that was filled.
func probe(t *testing.T, s *jsonschema.Schema, document map[string]any, f *filler, turn int) {
	t.Helper()
	if f.in == nil {
		t.Fatalf("no document has %s.%s", f.of.key, f.target.name)
	}
	path, name := f.of.key+"("+f.word+")."+f.target.name, f.target.name
	try := func(what string) []byte {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, s, path+what, data)
		return data
	}
	data := try("")
	if value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data)); err != nil || s.Validate(value) != nil {
		t.Fatalf("%s is refused: %v\n%s", path, s.Validate(value), data)
	}
	old := f.in[name]
	for i, p := range probes() {
		// A third of all pairs is quick, and still has each field and each probe
		// many times. make golden tries all.
		if (i+turn)%3 != 0 && !golden.Update() {
			continue
		}
		f.in[name] = p
		try(fmt.Sprintf(" = %.40v", p))
	}
	delete(f.in, name)
	try(" absent")
	f.in["zzz"+name] = old
	try(" renamed")
}

// ofWord are the fields of an object, or those that it has for a word of its type.
func (o *object) ofWord(word string) []*field {
	if word == "" {
		return o.fields
	}
	for _, v := range o.variants {
		if v.word == word {
			return v.fields
		}
	}
	return nil
}

// filler makes a document with what is required, and one field more.
type filler struct {
	*reference
	t *testing.T
	// The field is target of the object of, for a word of its type if that is
	// not empty.
	of     *object
	word   string
	target *field
	// in is the object that got the field.
	in map[string]any
}

// leads reports whether the object with the field is at an object or below.
func (f *filler) leads(o *object) bool {
	return o == f.of || slices.ContainsFunc(o.all(), func(one *field) bool { return one.child != nil && f.leads(one.child) })
}

func (f *filler) object(o *object) map[string]any {
	out := map[string]any{}
	if o.open != nil {
		return out
	}
	here := o == f.of && f.in == nil
	if here {
		f.in = out
	}
	fields := slices.Clone(o.fields)
	if here {
		fields = append(fields, o.ofWord(f.word)...)
	}
	for _, one := range fields {
		below := !here && f.in == nil && one.child != nil && f.leads(one.child)
		if one.required || below || here && one == f.target {
			out[one.name] = f.value(one.expr, one)
		}
	}
	if here && f.word != "" {
		out["type"] = f.word
	}
	return out
}

// value is one that an expression accepts.
func (f *filler) value(e ast.Expr, of *field) any {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.value(e.X, of)
	case *ast.StructLit:
		return f.object(of.child)
	case *ast.ListLit:
		return []any{f.value(elementOf(e), of)}
	case *ast.BasicLit:
		v, err := literalValue(e)
		if err != nil {
			f.t.Fatal(err)
		}
		return v
	case *ast.UnaryExpr:
		pattern, err := patternText(e.X)
		if err != nil {
			f.t.Fatal(err)
		}
		return f.text(pattern)
	case *ast.BinaryExpr:
		if e.Op != token.AND {
			return f.union(e, of)
		}
		for _, p := range conjuncts(e) {
			if u, ok := p.(*ast.UnaryExpr); ok && u.Op == token.GTR && wordOf(u.X) == "1" {
				return 2
			}
		}
		return 1
	case *ast.Ident:
		return f.named(e.Name, of)
	}
	f.t.Fatalf("no value for a %T", e)
	return nil
}

// union takes the side that leads to the field, or the first.
func (f *filler) union(e ast.Expr, of *field) any {
	sides := alternatives(e)
	for _, side := range sides {
		if o := f.byKey[nameOfIdent(side)]; o != nil && f.in == nil && f.leads(o) {
			return f.object(o)
		}
	}
	return f.value(sides[0], of)
}

func (f *filler) named(name string, of *field) any {
	switch name {
	case "bool":
		return true
	case "string":
		return "x"
	case "int", "number":
		return 1
	}
	if o := f.byKey[name]; o != nil {
		return f.object(o)
	}
	return f.value(f.defs[name].Value, of)
}

// text is one that a pattern accepts.
func (f *filler) text(pattern string) string {
	re := regexp.MustCompile(pattern)
	for _, p := range probes() {
		if s, ok := p.(string); ok && re.MatchString(s) {
			return s
		}
	}
	f.t.Fatalf("no probe matches the pattern %s; add one to probes", pattern)
	return ""
}

// TestEditorSchemaCanFail has what a JSON Schema could not say.
func TestEditorSchemaCanFail(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		r, err := parseReference([]schema.File{{Name: "x.cue", Text: "package x\n#Config: {\n\t// A.\n\ta?: " + text + "\n}\n"}})
		if err == nil {
			_, err = r.jsonSchema(nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	f(`=~"\\s"`, `cannot express \s`)
	f(`=~"(?i)x"`, "cannot express (?")
	f(`!~"x"`, "cannot express the operator")
	f("int & !=3", "cannot express the bound")
	f("nosuch", "cannot express nosuch")
	f("a.b", "cannot express a *ast.SelectorExpr")
}
