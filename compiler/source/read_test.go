package source_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// brief lists findings as "line:column code", one after the other.
func brief(l diag.List) string {
	var out []string
	for _, f := range l {
		pos := strings.TrimPrefix(strings.TrimPrefix(f.Pos.String(), f.Pos.File), ":")
		out = append(out, strings.TrimSpace(pos+" "+string(f.Code)))
	}
	return strings.Join(out, ", ")
}

func TestPositionsAreTheSameInAllSyntaxes(t *testing.T) {
	f := func(name, text, pointer, wantKey, wantValue, wantEnd string) {
		t.Helper()
		tree, l := read(t, name, text)
		if len(l) > 0 {
			t.Fatal(l)
		}
		value := tree.Pos(pointer)
		got := [3]string{tree.KeyPos(pointer).String(), value.String(), tree.End(value).String()}
		want := [3]string{name + ":" + wantKey, name + ":" + wantValue, name + ":" + wantEnd}
		if got != want {
			t.Errorf("%s of %s: got %v, want %v", pointer, name, got, want)
		}
	}
	yaml := "version: 1\nmodels:\n  - id: \"m,x\" # c\n    ünit: [a, {b: 2}]\n"
	f("a.yaml", yaml, "/version", "1:1", "1:10", "1:11")
	f("a.yaml", yaml, "/models/0/id", "3:5", "3:9", "3:14")
	f("a.yaml", yaml, "/models/0/ünit/1/b", "4:17", "4:20", "4:21")
	f("a.yaml", yaml, "/models/0/ünit/0", "4:13", "4:13", "4:14")
	json := "{\n  \"version\": 1,\n  \"models\": [ {\"id\" : \"m,x\"} , -2.5]\n}"
	f("a.json", json, "/version", "2:3", "2:14", "2:15")
	f("a.json", json, "/models/0/id", "3:16", "3:23", "3:28")
	f("a.json", json, "/models/1", "3:32", "3:32", "3:36")
	cue := "package p\nversion: 1 // c\nmodels: [{id: \"m,x\", \"a b\": c: d: -2}]\n"
	f("a.cue", cue, "/version", "2:1", "2:10", "2:11")
	f("a.cue", cue, "/models/0/id", "3:11", "3:15", "3:20")
	f("a.cue", cue, "/models/0/a b/c/d", "3:32", "3:35", "3:37")
}

func TestPosOfWhatIsMissing(t *testing.T) {
	tree, _ := read(t, "a.yaml", "a:\n  b: [{c: 1}]\n")
	for pointer, want := range map[string]string{
		"":             "a.yaml:1:1",
		"/x":           "a.yaml:1:1",
		"/a/b/0/x/y":   "a.yaml:2:7",
		"/a/b/7":       "a.yaml:2:6",
		"/a/b/01x":     "a.yaml:2:6",
		"/a/b/0/c/d":   "a.yaml:2:11",
		"/a/b/-1":      "a.yaml:2:6",
		"no-slash":     "a.yaml:1:1",
		"/a~1b/~0/x~2": "a.yaml:1:1",
	} {
		if got := tree.Pos(pointer).String(); got != want {
			t.Errorf("Pos(%q) = %s, want %s", pointer, got, want)
		}
	}
}

func TestPointers(t *testing.T) {
	for _, tokens := range [][]string{{"a"}, {"a/b", "~", "~1", ""}, {"", ""}} {
		p := ""
		for _, s := range tokens {
			p = source.Join(p, s)
		}
		if got := source.Split(p); strings.Join(got, "\x00") != strings.Join(tokens, "\x00") {
			t.Errorf("Split(%q) = %q, want %q", p, got, tokens)
		}
	}
}

func TestLinesAndSources(t *testing.T) {
	tree, _ := read(t, "a.yaml", "a: 1\r\nb: 2\nc: 3")
	if got := strings.Join(tree.Lines("a.yaml", 0, 9), "|"); got != "a: 1|b: 2|c: 3" {
		t.Errorf("lines %q", got)
	}
	if got := tree.Lines("b.yaml", 1, 1); got != nil {
		t.Errorf("lines of an unknown file: %q", got)
	}
	sum := sha256.Sum256([]byte("a: 1\r\nb: 2\nc: 3"))
	if s := tree.Sources(); len(s) != 1 || s[0] != (source.Source{Path: "a.yaml", SHA256: hex.EncodeToString(sum[:])}) {
		t.Errorf("sources %v", s)
	}
}

// TestValues compares the JSON of what was read.
func TestValues(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		tree, l := read(t, name, text)
		if len(l) > 0 {
			t.Errorf("%q: %v", text, l)
			return
		}
		if got := string(tree.JSON()); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	f("a.yaml", "a: yes\nb: true\nc: ~\nd: 2001-01-01\ne: 1e3\nf: '012'\ng: 0\nh: -1.50", `{"a":"yes","b":true,"c":null,"d":"2001-01-01","e":1e3,"f":"012","g":0,"h":-1.50}`)
	f("a.yaml", "_x: 1\n\"#X\": 2\n1: 3\ntrue: 4", `{"_x":1,"#X":2,"1":3,"true":4}`)
	f("a.yaml", "a: &x {b: 1, c: 2}\nd: *x\ne:\n  c: 4\n  <<: *x\n", `{"a":{"b":1,"c":2},"d":{"b":1,"c":2},"e":{"c":4,"b":1}}`)
	f("a.yaml", "a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}\n", `{"a":{"b":1},"c":{"b":2,"d":3},"e":{"b":1,"d":3}}`)
	f("a.yaml", "a: |\n  x\n  y\nb: >\n  x\n  y\n", `{"a":"x\ny\n","b":"x y\n"}`)
	f("a.yaml", "\ufeffa: 1\r\nb: 2\r\n", `{"a":1,"b":2}`)
	f("a.json", `{"a":12345678901234567890123,"b":1e400,"c":"\u00e9\n"}`, `{"a":12345678901234567890123,"b":1e400,"c":"é\n"}`)
	f("a.cue", "a: 1Ki, b: 0x1f, c: .5, d: 1_000, e: 1., f: -0b11, g: 2M", `{"a":1024,"b":31,"c":0.5,"d":1000,"e":1.0,"f":-3,"g":2000000}`)
	f("a.cue", "a: b: c: 1\na: b: d: \"x\\n\"\na: b: c: 1\n{e: #\"\\x\"#}", `{"a":{"b":{"c":1,"d":"x\n"}},"e":"\\x"}`)
	f("a.cue", "a: \"\"\"\n\tx\n\ty\n\t\"\"\"", `{"a":"x\ny"}`)
}

// TestMistakes names the place and code of each finding, and whether there is a
// tree left to judge.
func TestMistakes(t *testing.T) {
	f := func(name, text, want string, wantTree bool) {
		t.Helper()
		tree, l := read(t, name, text)
		if got := brief(l); got != want || (tree != nil) != wantTree {
			t.Errorf("%s %.80q: got %q, tree %v, want %q, tree %v\n%s", name, text, got, tree != nil, want, wantTree, l)
		}
	}
	// Numbers that do not read as they look.
	for _, n := range [...]string{"012", "-012", "089", "1_000", "0x10", "0o17", "0b1", "+1", ".5", "1.", ".inf", ".nan", "!!int \"5\"", "!!float 3"} {
		f("a.yaml", "a: "+n, "1:4 SH0114", true)
	}
	// Repeated keys, all of them.
	f("a.yaml", "a: {x: 1}\na: {y: 2}\nb: 1\n\"b\": 1\n", "2:1 SH0108, 4:1 SH0108", true)
	f("a.json", `{"a": 1, "a": {"b": 1, "b": 2}}`, "1:10 SH0108, 1:24 SH0108", true)
	f("a.json", `{"a": 1, "\u0061": 1}`, "1:10 SH0108", true)
	// Several documents, nothing, another root.
	f("a.yaml", "a: 1\n---\na: 2\n", "2:1 SH0111", false)
	f("a.yaml", "a: 1\n---\n", "2:1 SH0111", false)
	for _, text := range [...]string{"", "\n", "# c\n", "---\n", "null"} {
		f("a.yaml", text, "1:1 SH0112", false)
	}
	f("a.json", " \n", "1:1 SH0112", false)
	f("a.cue", "// c\npackage p\n", "1:1 SH0112", false)
	f("a.yaml", "- 1\n", "1:1 SH0104", false)
	f("a.json", "[1]", "1:1 SH0104", false)
	f("a.json", "null", "1:1 SH0104", false)
	// Syntax.
	f("a.yaml", "a:\n\tb: 1\n", "2:1 SH0101", false)
	f("a.yaml", "a: \"b\n  c\"\nd: [1\n", "3:4 SH0101", false)
	f("a.yaml", "a: b: c\n", "1:4 SH0101", false)
	f("a.yaml", "a: 1\nb: *nope\n", "2:4 SH0101", false)
	f("a.yaml", "a: &x {b: *x}\n", "1:11 SH0101", false)
	f("a.yaml", "? {a: 1}\n: 2\n", "1:3 SH0101", false)
	f("a.yaml", "a: 1\n<<: 3\n", "2:5 SH0101", false)
	f("a.json", `{"a": 1,}`, "1:8 SH0101", false)
	f("a.json", `{"a": 1} {}`, "1:10 SH0101", false)
	f("a.json", `{"a": 1`, "1:8 SH0101", false)
	f("a.json", `{'a': 1}`, "1:2 SH0101", false)
	f("a.json", `{"a": 012}`, "1:8 SH0101", false)
	f("a.json", `{"a": "\ud800"}`, "1:8 SH0101", false)
	f("a.cue", "a: {\n", "2:1 SH0101", false)
	f("a.cue", "a: 012\n", "1:4 SH0101", false)
	f("a.cue", "a: 'x'\n", "1:4 SH0104", false)
	f("a.cue", "a: 1\na: 2\nb: c: [1]\nb: c: [1, 2]\n", "2:4 SH0109, 4:7 SH0109", true)
	// Text that hides something.
	f("a.yaml", "a: 1\nb: \x00\n", "2:4 SH0113", false)
	f("a.yaml", "a: \xff\n", "1:4 SH0113", false)
	f("a.yaml", "a: 1\rb: 2\n", "1:5 SH0113", false)
	f("a.json", "{\"a\": \"\u202e\"}", "1:8 SH0113", false)
	f("a.cue", "a: \"\u2028\"", "1:5 SH0113", false)
	f("a.yaml", "a: \"x\ufeff\"", "1:6 SH0113", false)
	f("a.yaml", "\xff\xfea\x00:\x00", "1:1 SH0113", false)
	// Names.
	f("a.toml", "a = 1", "SH0006", false)
	f("-", "a: 1", "SH0006", false)
}

// TestYAMLAliases reads anchors wherever they may stand: at keys, at what << merges
// and inside a list of merges.
func TestYAMLAliases(t *testing.T) {
	f := func(text, want, wantFindings string) {
		t.Helper()
		tree, l := read(t, "a.yaml", text)
		got := ""
		if tree != nil {
			got = string(tree.JSON())
		}
		if got != want || brief(l) != wantFindings {
			t.Errorf("%q: got %s with %q, want %s with %q", text, got, brief(l), want, wantFindings)
		}
	}
	f("&k a: 1\nb: *k\n", `{"a":1,"b":"a"}`, "")
	f("&k a: 1\n*k : 2\n", `{"a":1}`, "2:1 SH0108")
	f("<<: &m {a: 1}\nb: *m\n", `{"b":{"a":1},"a":1}`, "")
	f("<<: [&m {a: 1}, {c: 2}]\nb: *m\n", `{"b":{"a":1},"a":1,"c":2}`, "")
	f("<<: &m [{a: 1}]\nb: *m\n", `{"b":[{"a":1}],"a":1}`, "")
	f("a: {<<: &q [{b: 1}, *q]}\n", "", "1:21 SH0101")
	f("a: {<<: {b: 1}, <<: {c: 1}}\n", `{"a":{"b":1,"c":1}}`, "1:17 SH0108")
	f("a: &x 012\nb: *x\n", `{"a":1,"b":1}`, "1:4 SH0114")
	f("<<: &m {a: 012}\nb: *m\n", `{"b":{"a":1},"a":1}`, "1:12 SH0114")
	tree, _ := read(t, "a.yaml", "a: &x 1\nb: [*x, *x]\n")
	if got := tree.Pos("/b/1").String(); got != "a.yaml:2:9" {
		t.Errorf("an aliased scalar is at %s", got)
	}
}

// TestYAMLTags refuses what would change the type or be ignored.
func TestYAMLTags(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, l := read(t, "a.yaml", text); brief(l) != want {
			t.Errorf("%q: got %q, want %q", text, brief(l), want)
		}
	}
	f("a: !!str 012\nb: !!map {c: !!seq [!!str d]}\n!!str e: 1\n", "")
	f("a: !!set {x, y}\n", "1:4 SH0114")
	f("a: !foo {x: 1}\nb: !foo [1]\nc: !foo 1\n", "1:4 SH0114, 2:4 SH0114, 3:4 SH0114")
	f("a: !!omap [x: 1]\n", "1:4 SH0114")
	f("!!int \"1\": 1\n!foo b: 1\n", "1:1 SH0114, 2:1 SH0114")
	f("a: ! 1\nb: &x ! 2\nc: !!binary eA==\n", "1:4 SH0114, 2:4 SH0114, 3:4 SH0114")
	f("!foo\na: 1\n", "1:1 SH0114")
}

// TestColumnsOfLongLines holds columns behind the first steps to those that
// counting from the start gives.
func TestColumnsOfLongLines(t *testing.T) {
	text := "x: 1\na: [" + strings.Repeat("ä, \"€\", b, ", 400) + "end]\ny: 1\n"
	tree, l := read(t, "a.yaml", text)
	if len(l) > 0 {
		t.Fatal(l)
	}
	from := strings.Index(text, "[") + 1
	for i, word := range strings.Split(text[from:strings.Index(text, "]")], ", ") {
		pos := tree.Pos(fmt.Sprintf("/a/%d", i))
		if got := text[pos.Offset:tree.End(pos).Offset]; got != word || pos.Line != 2 {
			t.Fatalf("element %d is %q at %s, want %q", i, got, pos, word)
		}
	}
}

func TestCUECodeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"import \"strings\"\na: 1": "1:8 SH0110",
		"a: b\nb: 1":               "1:4 SH0110",
		"a: 1 + 1":                 "1:6 SH0110",
		"a: 1 & int":               "1:6 SH0110",
		"a: *1 | 2":                "1:4 SH0110",
		"a: >=1":                   "1:4 SH0110",
		"a: int":                   "1:4 SH0110",
		"a: _":                     "1:4 SH0110",
		"a: _|_":                   "1:4 SH0110",
		"a: len(\"x\")":            "1:7 SH0110",
		"a: \"\\(b)\"":             "1:4 SH0110",
		"a: [for x in [1] {x}]":    "1:5 SH0110",
		"if true {a: 1}":           "1:1 SH0110",
		"let x = 1":                "1:1 SH0110",
		"#D: 1":                    "1:1 SH0110",
		"_h: 1":                    "1:1 SH0110",
		"a?: 1":                    "1:2 SH0110",
		"a!: 1":                    "1:2 SH0110",
		"[string]: 1":              "1:1 SH0110",
		"(\"a\"): 1":               "1:1 SH0110",
		"a: 1 @tag(x)":             "1:6 SH0110",
		"@experiment(try)\na: 1":   "1:1 SH0110",
		"a: [1, ...]":              "1:8 SH0110",
		"a: {...}":                 "1:5 SH0110",
		"a: -b":                    "1:5 SH0110",
		"a: - - 1":                 "1:6 SH0110",
		"a: !true":                 "1:4 SH0110",
		"a: [1][0]":                "1:4 SH0110",
		"X=a: 1":                   "1:2 SH0110",
		"a: {b: 1, 3}":             "1:11 SH0110",
		"3":                        "1:1 SH0110",
	} {
		tree, l := read(t, "a.cue", text)
		if got := brief(l); got != want || tree != nil {
			t.Errorf("%q: got %q, want %q\n%s", text, got, want, l)
		} else if !strings.Contains(l[0].Hint, "--allow-cue-code") {
			t.Errorf("%q: hint %q does not name the way out", text, l[0].Hint)
		}
	}
}

func TestInputsUnify(t *testing.T) {
	f := func(want, wantJSON string, texts ...string) {
		t.Helper()
		var in []source.Input
		for i := 0; i < len(texts); i += 2 {
			in = append(in, source.Input{Name: texts[i], Reader: strings.NewReader(texts[i+1])})
		}
		tree, l := source.Read(context.Background(), source.Options{}, in)
		if got := brief(l); got != want {
			t.Errorf("got %q, want %q\n%s", got, want, l)
		}
		if tree != nil && string(tree.JSON()) != wantJSON {
			t.Errorf("got %s, want %s", tree.JSON(), wantJSON)
		}
		for _, d := range l {
			if d.Code == diag.Conflict && (len(d.Related) != 1 || d.Related[0].Pos.File != "a.yaml" || d.Path == "") {
				t.Errorf("a conflict names both places and the path: %+v", d)
			}
		}
	}
	f("", `{"a":{"b":1,"c":2,"d":3},"e":[1]}`, "a.yaml", "a: {b: 1}\ne: [1]", "b.json", `{"a": {"b": 1, "c": 2}}`, "c.cue", "a: d: 3")
	f("1:13 SH0109", `{"a":{"b":1}}`, "a.yaml", "a: {b: 1}", "b.json", `{"a": {"b": 2}}`)
	f("1:4 SH0109", `{"a":1}`, "a.yaml", "a: 1", "b.cue", "a: 1.0")
	f("1:4 SH0109", `{"a":[1]}`, "a.yaml", "a: [1]", "b.cue", "a: [1, 2]")
	f("1:4 SH0109", `{"a":[1]}`, "a.yaml", "a: [1]", "b.cue", "a: {}")
	f("1:1 SH0112", "", "a.yaml", "a: [1]", "b.yaml", "")
}

// TestPackages reads CUE files of one package, of two, and without one.
func TestPackages(t *testing.T) {
	f := func(want string, texts ...string) {
		t.Helper()
		var in []source.Input
		for i, text := range texts {
			in = append(in, source.Input{Name: fmt.Sprintf("%c.cue", 'a'+i), Reader: strings.NewReader(text)})
		}
		if _, l := source.Read(context.Background(), source.Options{}, in); brief(l) != want {
			t.Errorf("%q: got %q, want %q", texts, brief(l), want)
		}
	}
	f("", "package p\na: 1", "package p\nb: 1", "c: 1")
	f("1:9 SH0109", "package p\na: 1", "c: 1", "package q\nb: 1")
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "d.yaml")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range [...]string{folder, filepath.Join(dir, "none.yaml"), filepath.Join(dir, "\x00.yaml")} {
		tree, l := source.Read(context.Background(), source.Options{}, []source.Input{{Name: name}})
		if tree != nil || len(l) != 1 || l[0].Code != diag.Unreadable || l[0].Pos.File != name || !l.Failed() {
			t.Errorf("%q: %v", name, l)
		}
	}
	if _, l := source.Read(context.Background(), source.Options{}, nil); !l.Failed() {
		t.Error("no input is not a failure")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if tree, l := source.Read(ctx, source.Options{}, []source.Input{{Name: "a.yaml", Reader: strings.NewReader("a: 1")}}); tree != nil || l[0].Code != diag.Interrupted {
		t.Errorf("cancelled: %v", l)
	}
}

func TestByteLimits(t *testing.T) {
	in := func(name, text string) source.Input {
		return source.Input{Name: name, Reader: strings.NewReader(text)}
	}
	f := func(want string, o source.Options, inputs ...source.Input) {
		t.Helper()
		if _, l := source.Read(context.Background(), o, inputs); brief(l) != want {
			t.Errorf("got %v, want %q", l, want)
		}
	}
	f("", source.Options{MaxBytes: 8}, in("a.yaml", "a: 1"), in("b.yaml", "b: 1"))
	f("SH0002", source.Options{MaxBytes: 7}, in("a.yaml", "a: 1"), in("b.yaml", "b: 1"))
	f("SH0002", source.Options{}, in("a.cue", "a: 1 //"+strings.Repeat("x", source.MaxCUEBytes)))
	f("", source.Options{}, in("a.yaml", "a: 1 #"+strings.Repeat("x", source.MaxCUEBytes)))
	f("SH0002", source.Options{}, in("a.yaml", "a: 1 #"+strings.Repeat("x", source.DefaultMaxBytes)))
}

// TestHostileInputs reads what would take for ever or all memory without the
// bounds. The test's own time limit is the assertion.
func TestHostileInputs(t *testing.T) {
	many := func(unit string, n int) string { return strings.Repeat(unit, n) }
	bomb := "a0: &a0 [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, many(fmt.Sprintf("*a%d, ", i), 8))
	}
	for name, in := range map[string]struct{ file, text, want string }{
		"yaml nesting":      {"a.yaml", "a: " + many("[", 200) + many("]", 200), "SH0005"},
		"yaml deep nesting": {"a.yaml", "a: " + many("[", 200_000), "SH0101"},
		"json nesting":      {"a.json", `{"a": ` + many("[", 200_000) + many("]", 200_000) + "}", "SH0005"},
		"cue braces":        {"a.cue", many("a: {", 50_000) + many("}", 50_000), "SH0005"},
		"cue path":          {"a.cue", many("a: ", 300_000) + "1", "SH0005"},
		"cue lists":         {"a.cue", "a: " + many("[", 300_000), "SH0005"},
		"cue sum":           {"a.cue", "a: 1" + many("+1", 500_000), "SH0110"},
		"cue minus":         {"a.cue", "a: " + many("-", 1_000_000) + "1", "SH0110"},
		"cue parentheses":   {"a.cue", "a: " + many("(", 1_000_000), "SH0110"},
		"alias bomb":        {"a.yaml", bomb, "SH0005"},
		"text bomb":         {"a.yaml", "a: &a " + many("x", 16_000) + "\nb: [" + many("*a, ", 10_000) + "]", "SH0005"},
		"long text":         {"a.yaml", "a: " + many("x", 20_000), "SH0002"},
		"long key":          {"a.yaml", "? " + many("x", 20_000) + "\n: 1", "SH0002"},
		"long json text":    {"a.json", `{"a": "` + many("x", 20_000) + `"}`, "SH0002"},
		"long json key":     {"a.json", `{"` + many("x", 20_000) + `": 1}`, "SH0002"},
		"long cue text":     {"a.cue", `a: "` + many("x", 20_000) + `"`, "SH0002"},
		"merged lists":      {"a.yaml", "a: {<<: " + many("[", 90) + many("]", 90) + "}", "SH0101"},
		"many values":       {"a.json", `{"a": [` + many("0,", 3_000_000) + "0]}", "SH0005"},
		"alias depth":       {"a.yaml", "a: &a " + many("[", 60) + many("]", 60) + "\nb: " + many("[", 60) + "*a" + many("]", 60), "SH0005"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			tree, l := source.Read(ctx, source.Options{}, []source.Input{{Name: in.file, Reader: strings.NewReader(in.text)}})
			if tree != nil || len(l) != 1 || string(l[0].Code) != in.want {
				t.Errorf("got %d findings, first %.300v, want %s", len(l), l, in.want)
			}
		})
	}
	t.Run("many fields", func(t *testing.T) {
		var b strings.Builder
		for i := range source.MaxFields + 1 {
			fmt.Fprintf(&b, "k%d: 1\n", i)
		}
		if _, l := read(t, "a.yaml", b.String()); len(l) == 0 || !l.Failed() {
			t.Errorf("got %d findings", len(l))
		}
	})
}
