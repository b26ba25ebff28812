package golden_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"shunt/compiler/check"
	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/golden"
	"shunt/schema"
)

// published is a JSON Schema for editors, and the CUE schema that it is made from.
type published struct {
	name, title, sources string
	*reference
	// text is the published schema, want what it should be.
	text, want []byte
	*jsonschema.Schema
	// judge is what the toolchain says.
	judge func(context.Context, *source.Tree) diag.List
}

// configurationSchema is the schema of configurations.
func configurationSchema(t *testing.T) *published {
	t.Helper()
	r, _ := makeReference(t)
	p := &published{reference: r, name: "../schema/config.schema.json", title: "Configuration of shunt",
		sources: "schema/*.cue and compiler/config/defaults.go", text: schema.JSON(), judge: check.Shape}
	p.make(t, referenceDefaults())
	return p
}

// testSchema is the schema of files of tests.
func testSchema(t *testing.T) *published {
	t.Helper()
	r, err := parseLanguage(schema.TestFiles(), "#Tests")
	if err != nil {
		t.Fatal(err)
	}
	p := &published{reference: r, name: "../schema/test.schema.json", title: "Tests of routing decisions of shunt",
		sources: "schema/*.cue", text: schema.TestJSON(), judge: check.Tests}
	p.make(t, nil)
	return p
}

// make makes the wanted text, and compiles the published one with a validator that
// this project did not write.
func (p *published) make(t *testing.T, defaults map[string]shown) {
	t.Helper()
	var err error
	if p.want, err = p.jsonSchema(p.title, p.sources, defaults); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(p.text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	if p.Schema, err = c.Compile("schema.json"); err != nil {
		t.Fatal(err)
	}
}

// TestReferenceEditorSchema: the published JSON Schemas are what the CUE schema
// says.
func TestReferenceEditorSchema(t *testing.T) {
	for _, p := range []*published{configurationSchema(t), testSchema(t)} {
		if golden.Update() {
			if !bytes.Equal(p.text, p.want) {
				if err := os.WriteFile(p.name, p.want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		if d := diff.Diff(p.name, p.text, "wanted", p.want); d != nil {
			t.Errorf("%s\nrun the tests with UPDATE=1 to accept it", d)
		}
	}
}

// agree holds one document, as JSON, against both schemas. What it reports has
// the document.
func agree(t *testing.T, s *published, what string, document []byte) {
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
	shape, err := s.judge(t.Context(), tree), s.Validate(value)
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

// TestEditorSchemaAgreesOnCases holds every configuration and every file of tests
// of the examples and of the golden cases against both schemas.
func TestEditorSchemaAgreesOnCases(t *testing.T) {
	f := func(s *published, name string, count, invalid int, patterns ...string) {
		t.Helper()
		each := func(name string, text []byte) {
			tree, list := source.Read(t.Context(), source.Options{}, []source.Input{{Name: filepath.Base(name), Reader: bytes.NewReader(text)}})
			if tree == nil || list.HasErrors() || wholeNumberWithFraction(tree.JSON()) || bytes.HasPrefix(tree.JSON(), []byte(`{"format"`)) {
				return
			}
			count--
			if s.judge(t.Context(), tree).HasErrors() {
				invalid--
			}
			agree(t, s, name, tree.JSON())
		}
		examples, err := filepath.Glob("../examples/*/" + name)
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
		for _, pattern := range patterns {
			golden.Each(t, pattern, func(c *golden.Case) {
				for _, file := range c.Inputs {
					known := slices.Contains([]string{".yaml", ".yml", ".json", ".cue"}, filepath.Ext(file)) && file != optionsFile
					if known && strings.HasSuffix(file, "_test.yaml") == strings.HasSuffix(name, "_test.yaml") {
						each(file, c.Input(file))
					}
				}
			})
		}
		if count > 0 || invalid > 0 {
			t.Errorf("%s: %d documents and %d invalid ones are missing", name, count, invalid)
		}
	}
	f(configurationSchema(t), "routing.yaml", 90, 30, "check/*.txtar", "compile/*.txtar", "forms/*.txtar")
	f(testSchema(t), "routing_test.yaml", 20, 1, "cli/test*.txtar")
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

// TestEditorSchemaAgreesOnMutations changes each field that a schema has, in a
// document with that field and what is required.
func TestEditorSchemaAgreesOnMutations(t *testing.T) {
	for s, least := range map[*published]int{configurationSchema(t): 100, testSchema(t): 75} {
		count := 0
		for _, o := range s.objects {
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
					f := &filler{reference: s.reference, t: t, of: o, word: word, target: target}
					probe(t, s, f.object(s.byKey[s.root]), f, count)
				}
			}
		}
		if count < least {
			t.Errorf("%s: only %d fields", s.name, count)
		}
	}
}

// probe tries probes at the place that was filled.
func probe(t *testing.T, s *published, document map[string]any, f *filler, turn int) {
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
	return o == f.of || o.below != nil && f.leads(o.below) || slices.ContainsFunc(o.all(), func(one *field) bool { return one.child != nil && f.leads(one.child) })
}

func (f *filler) object(o *object) map[string]any {
	out := map[string]any{}
	if o.open != nil {
		if o.below != nil && f.in == nil && f.leads(o.below) {
			out["x"] = f.object(o.below)
		}
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
			u, ok := p.(*ast.UnaryExpr)
			if ok && u.Op == token.GTR && wordOf(u.X) == "1" {
				return 2
			}
			if n, err := strconv.Atoi(boundOf(u)); ok && u.Op == token.GEQ && err == nil && n > 1 {
				return n
			}
		}
		return 1
	case *ast.Ident:
		return f.named(e.Name, of)
	}
	f.t.Fatalf("no value for a %T", e)
	return nil
}

// boundOf is the number of a bound, empty where there is none.
func boundOf(u *ast.UnaryExpr) string {
	if u == nil {
		return ""
	}
	return wordOf(u.X)
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
	case "string", "_":
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
			_, err = r.jsonSchema("", "", nil)
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
