package golden_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"github.com/rogpeppe/go-internal/diff"

	conf "shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/golden"
	"shunt/schema"
)

const referenceFile = "../schema/REFERENCE.md"

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// shown is a default: the value as a configuration writes it, and the text of
// the reference. At is where a test writes it, nil where it is another field.
type shown struct {
	at    []any
	value any
	text  string
}

// referenceDefaults has the default of each field that has one. Their values are
// those of compiler/config.
func referenceDefaults() map[string]shown {
	ms := func(n int64) string {
		if n%1000 != 0 {
			return fmt.Sprintf("%dms", n)
		}
		return fmt.Sprintf("%ds", n/1000)
	}
	m := map[string]shown{}
	add := func(name string, value any, at ...any) {
		m[name] = shown{at, value, fmt.Sprintf("`%v`", value)}
	}
	server := func(name string, value any) { add("#Server."+name, value, "server", name) }
	server("listen", conf.DefaultListen)
	server("admin", conf.DefaultAdmin)
	server("max_body", fmt.Sprintf("%dMiB", conf.DefaultMaxBodyBytes>>20))
	server("request_timeout", ms(conf.DefaultRequestTimeoutMS))
	server("connect_timeout", ms(conf.DefaultConnectTimeoutMS))
	server("stream_idle_timeout", ms(conf.DefaultStreamIdleTimeoutMS))
	server("stale_timeout", ms(conf.DefaultStaleTimeoutMS))
	server("drain_delay", ms(conf.DefaultDrainDelayMS))
	server("drain_timeout", ms(conf.DefaultDrainTimeoutMS))
	server("expose_decision", conf.DefaultExposeDecision)
	m["#Server.header_timeout"] = shown{[]any{"server", "header_timeout"}, ms(conf.DefaultRequestTimeoutMS), "that of `request_timeout`"}
	add("#Log.level", conf.DefaultLogLevel, "server", "log", "level")
	add("#Log.format", conf.DefaultLogFormat, "server", "log", "format")
	add("#Breaker.threshold", conf.DefaultBreakerThreshold, "models", 0, "breaker", "threshold")
	add("#Breaker.cool_down", ms(conf.DefaultBreakerCoolDownMS), "models", 0, "breaker", "cool_down")
	add("#Bucket.rank", conf.DefaultRank, "models", 0, "buckets", 0, "rank")
	add("#LoadState.freshness", ms(conf.DefaultFreshnessMS), "state", "load", "freshness")
	policy, text := map[string]any{"type": conf.DefaultPolicyType}, "`{type: "+conf.DefaultPolicyType+"}`"
	m["#Defaults.policy"] = shown{[]any{"models", 0, "defaults", "policy"}, policy, text}
	m["#Defaults.decode_policy"] = shown{[]any{"models", 1, "defaults", "decode_policy"}, policy, text}
	tuned := map[string]any{"type": conf.DefaultPolicyType, "choices": conf.DefaultChoices}
	m["#Policy(power_of_two).choices"] = shown{[]any{"models", 0, "defaults", "policy"}, tuned, fmt.Sprintf("`%d`", conf.DefaultChoices)}
	m["#Group.policy"] = shown{text: "that of the model's [defaults](#modelsdefaults)"}
	m["#Model.buckets"] = shown{[]any{"models", 1, "buckets"}, []any{map[string]any{"id": conf.CatchAllPD, "groups": map[string]any{
		"pd": map[string]any{"prefill": map[string]any{}, "decode": map[string]any{}}}}},
		fmt.Sprintf("one bucket, `%s` or `%s`", conf.CatchAllPlain, conf.CatchAllPD)}
	return m
}

// makeReference is the whole reference as it should be.
func makeReference(t *testing.T) (*reference, string) {
	t.Helper()
	r, err := parseReference(schema.Files())
	if err != nil {
		t.Fatal(err)
	}
	p := &prober{t: t, reference: r, done: map[*object]bool{}}
	p.object(r.byKey["#Config"], nil, "")
	text, err := r.render(referenceDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return r, text
}

// TestReference: the reference of the configuration is what the schema, the
// defaults and the compiler say.
func TestReference(t *testing.T) {
	_, text := makeReference(t)
	old, err := os.ReadFile(referenceFile)
	if golden.Update() {
		if err != nil || string(old) != text {
			err = os.WriteFile(referenceFile, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(referenceFile, old, "wanted", []byte(text)); d != nil {
		t.Errorf("%s\nrun the tests with UPDATE=1 to accept it", d)
	}
}

// TestReferenceIsComplete counts the fields of the schema in another way, and
// follows the links.
func TestReferenceIsComplete(t *testing.T) {
	r, text := makeReference(t)
	body, _, _ := strings.Cut(text, "## "+legacyTitle)
	rows := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(body, -1) {
		rows[m[1]]++
	}
	for name, n := range schemaFields(t) {
		if rows[name] != n {
			t.Errorf("field %s is %d times in the schema, %d times in the reference", name, n, rows[name])
		}
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##+ (.*)$`).FindAllStringSubmatch(text, -1) {
		if anchors[anchor(m[1])] {
			t.Errorf("two headings %q", m[1])
		}
		anchors[anchor(m[1])] = true
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if !anchors[m[1]] {
			t.Errorf("no heading for the link %s", m[1])
		}
	}
	names := map[string]bool{}
	for _, o := range r.objects {
		for _, f := range o.fields {
			names[o.key+"."+f.name] = true
		}
		for _, v := range o.variants {
			for _, f := range v.fields {
				names[o.key+"("+v.word+")."+f.name] = true
			}
		}
	}
	for name := range referenceDefaults() {
		if !names[name] {
			t.Errorf("the default of %s belongs to no field", name)
		}
	}
}

// schemaFields counts the fields of the schema by name.
func schemaFields(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, f := range schema.Files() {
		parsed, err := parser.ParseFile(f.Name, f.Text)
		if err != nil {
			t.Fatal(err)
		}
		ast.Walk(parsed, func(n ast.Node) bool {
			if d, ok := n.(*ast.Field); ok && (d.Constraint == token.OPTION || d.Constraint == token.NOT) {
				out[labelOf(d)]++
			}
			return true
		}, nil)
	}
	return out
}

// minimal is a configuration of required fields: a model of plain engines with a
// bucket, and a model of pairs without.
func minimal() map[string]any {
	engine := func(id, role string) map[string]any {
		return map[string]any{"id": id, "url": "http://" + id, "role": role}
	}
	model := func(id string, engines ...any) map[string]any {
		return map[string]any{"id": id, "discovery": map[string]any{"static": map[string]any{"engines": engines}}}
	}
	plain := model("plain", engine("e", "plain"))
	plain["buckets"] = []any{map[string]any{"id": "b", "groups": map[string]any{"plain": map[string]any{}}}}
	return map[string]any{"version": 1, "models": []any{plain, model("pd", engine("p", "prefill"), engine("d", "decode"))}}
}

// put writes a value at a path, making the objects on the way.
func put(in any, at []any, value any) {
	last := at[len(at)-1].(string)
	for _, name := range at[:len(at)-1] {
		if i, ok := name.(int); ok {
			in = in.([]any)[i]
			continue
		}
		m, key := in.(map[string]any), name.(string)
		if m[key] == nil {
			m[key] = map[string]any{}
		}
		in = m[key]
	}
	in.(map[string]any)[last] = value
}

// values are what shunt show --origin says, by pointer.
func values(t *testing.T, config any) map[string]report.Value {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	r := compileText(t, string(data))
	if r.Plan == nil {
		t.Fatalf("no plan of %s: %v", data, r.Findings)
	}
	list, err := report.Values(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]report.Value{}
	for _, v := range list {
		out[v.Pointer] = v
	}
	return out
}

// TestReferenceDefaults writes each default where it is absent otherwise: what
// shunt show calls a default must then be written, with the same value. And
// everything that it calls a default must be in the reference.
func TestReferenceDefaults(t *testing.T) {
	base := values(t, minimal())
	open := map[string]bool{}
	for pointer, v := range base {
		if v.Origin == "default" {
			open[anyOf(pointer)] = true
		}
	}
	if len(open) == 0 {
		t.Fatal("nothing is a default")
	}
	for name, d := range referenceDefaults() {
		if d.at == nil {
			continue
		}
		c := minimal()
		put(c, d.at, d.value)
		hit := false
		for pointer, v := range values(t, c) {
			was := base[pointer]
			if string(v.Value) != string(was.Value) {
				t.Errorf("%s: writing %s makes %s %s, by default it is %s", name, d.text, pointer, v.Value, was.Value)
			}
			if v.Origin != was.Origin && was.Origin == "default" && v.Origin != "derived" {
				hit = true
				delete(open, anyOf(pointer))
			}
		}
		if !hit {
			t.Errorf("%s: writing %s replaces no default", name, d.text)
		}
	}
	for pointer := range open {
		t.Errorf("the default of %s is not in the reference", pointer)
	}
	// Defaults that are other fields.
	c := minimal()
	put(c, []any{"server", "request_timeout"}, "7s")
	put(c, []any{"models", 0, "defaults", "policy"}, map[string]any{"type": "random"})
	v := values(t, c)
	if got := v["/server/header_timeout_ms"].Value; string(got) != "7000" {
		t.Errorf("header_timeout is %s with a request_timeout of 7s", got)
	}
	if got := v["/models/0/buckets/0/groups/plain/policy/type"].Value; string(got) != `"random"` {
		t.Errorf("the group's policy is %s, that of the defaults random", got)
	}
}

// anyOf is a pointer without the numbers of its lists and the stage of its group:
// what is a default of one is so of all.
func anyOf(pointer string) string {
	return regexp.MustCompile("/[0-9]+/|/(?:plain|pd/prefill|pd/decode)/").ReplaceAllString(pointer, "/*/")
}

// TestReferenceDefaultsOnce: comments of what is available leave defaults to the
// column, whose values are checked.
func TestReferenceDefaultsOnce(t *testing.T) {
	r, _ := makeReference(t)
	told := regexp.MustCompile(`[;,(] default `)
	for _, o := range r.objects {
		codes := map[*field]string{}
		for _, v := range o.variants {
			for _, f := range v.fields {
				codes[f] = v.code
			}
		}
		for _, f := range o.all() {
			if told.MatchString(f.doc) && o.code+codes[f]+f.code == "" {
				t.Errorf("the comment of %s.%s has a default", o.key, f.name)
			}
		}
	}
}

// prober writes each field once and looks what the compiler finds.
type prober struct {
	t         *testing.T
	reference *reference
	done      map[*object]bool
}

// hop leads to a field of an object, which may need a word as its type.
type hop struct {
	field *field
	word  string
}

// object probes the fields of an object and below. What a code refuses as a
// whole is not looked into.
func (p *prober) object(o *object, steps []hop, code string) {
	if p.done[o] {
		return
	}
	p.done[o], o.code = true, code
	for _, f := range o.fields {
		p.field(f, append(steps[:len(steps):len(steps)], hop{field: f}), code)
	}
	for _, v := range o.variants {
		v.code = code
		for _, f := range o.fields {
			if f.name == "type" && code == "" {
				v.code = f.words[v.word]
			}
		}
		for _, f := range v.fields {
			p.field(f, append(steps[:len(steps):len(steps)], hop{f, v.word}), v.code)
		}
	}
}

func (p *prober) field(f *field, steps []hop, code string) {
	if code == "" {
		p.words(f, steps)
		if f.words == nil {
			f.code = p.find(steps, p.reference.sample(f.expr))
			code = f.code
		}
	}
	if f.child != nil {
		p.object(f.child, steps, code)
	}
}

// words probes each word of an enumeration.
func (p *prober) words(f *field, steps []hop) {
	list := p.reference.enumeration(f.expr)
	for _, w := range list {
		if code := p.find(steps, w); code != "" {
			if f.words == nil {
				f.words = map[string]string{}
			}
			f.words[w] = code
		}
	}
}

// find is the code of a finding that says that the value of a field is not
// available, or has no effect yet.
func (p *prober) find(steps []hop, value any) string {
	p.t.Helper()
	root := p.reference.sampleObject(p.reference.byKey["#Config"])
	in, pointer := root, ""
	for i, s := range steps {
		if s.word != "" {
			in["type"] = s.word
		}
		pointer += "/" + s.field.name
		if i == len(steps)-1 {
			in[s.field.name] = value
			break
		}
		next := p.reference.sampleObject(s.field.child)
		if s.field.list {
			in[s.field.name], pointer = []any{next}, pointer+"/0"
		} else {
			in[s.field.name] = next
		}
		in = next
	}
	data, err := json.Marshal(root)
	if err != nil {
		p.t.Fatal(err)
	}
	code := ""
	for _, f := range compileText(p.t, string(data)).Findings {
		if f.Code < "SH0200" {
			p.t.Fatalf("the probe %s has no good shape: %v", data, f)
		}
		if f.Path == pointer && unavailable(f.Code) {
			code = string(f.Code)
		}
	}
	return code
}

// unavailable reports whether a code is about what does not work yet.
func unavailable(c diag.Code) bool {
	e, _ := diag.Lookup(c)
	return strings.HasSuffix(e.Title, "not available yet")
}

// status says in words what a code of unavailable means.
func status(code string) string {
	return "not available yet (" + code + ")."
}

// sampleObject is an object with its required fields.
func (r *reference) sampleObject(o *object) map[string]any {
	out := map[string]any{}
	for _, f := range o.fields {
		if f.required {
			out[f.name] = r.sample(f.expr)
		}
	}
	return out
}

// sample is a value that the schema accepts; a probe fails on one that it does
// not.
func (r *reference) sample(e ast.Expr) any {
	switch e := e.(type) {
	case *ast.Ident:
		return r.sampleNamed(e.Name)
	case *ast.ListLit:
		return []any{r.sample(elementOf(e))}
	case *ast.BasicLit:
		if n, err := strconv.Atoi(e.Value); err == nil {
			return n
		}
		return wordOf(e)
	case *ast.ParenExpr:
		return r.sample(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.OR {
			return r.sample(alternatives(e)[0])
		}
		if bound, ok := conjuncts(e)[1].(*ast.UnaryExpr); ok && bound.Op == token.GTR {
			return 2
		}
		return 1
	}
	return map[string]any{}
}

func (r *reference) sampleNamed(name string) any {
	known := map[string]any{
		"bool": true, "string": "x", "#Name": "x", "#HeaderName": "x", "#Duration": "1s", "#Size": "1MiB",
		"#Address": "127.0.0.1:1", "#AddressOrOff": "127.0.0.1:2", "#URL": "http://x", "#Secret": "env:X",
	}
	if v, ok := known[name]; ok {
		return v
	}
	if o := r.byKey[name]; o != nil {
		return r.sampleObject(o)
	}
	if def := r.defs[name]; def != nil {
		return r.sample(def.Value)
	}
	return nil
}

// TestReferenceCanFail has schemas with something that a reference would miss.
func TestReferenceCanFail(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := parseReference([]schema.File{{Name: "x.cue", Text: "package x\n" + text}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("#Config: {\n\ta?: int\n}\n", "lacks a name, a comment")
	f("#Config: {\n\t// A.\n\ta: int\n}\n", "one of ? and !")
	f("#Config: {}\n#Other: {}\n", "nothing leads to #Other")
	f("#Config: {\n\t// A.\n\ta?: #Other\n}\n", "no definition #Other")
	f("#Config: {\n\tfor x in [1] {}\n}\n", "cannot show")
	f("#Config: {\n\tif a == \"b\" {}\n}\n", "cannot show")
}
