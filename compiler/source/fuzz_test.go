package source_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"shunt/compiler/source"
)

// fuzz reads any bytes under a name. Whatever they are, Read ends, and it gives
// either a finding of severity error or a tree, whose JSON is valid and which
// reads back as the same JSON.
func fuzz(t *testing.T, name string, text []byte) {
	tree, l := source.Read(context.Background(), source.Options{}, []source.Input{{Name: name, Reader: bytes.NewReader(text)}})
	if tree == nil {
		if !l.HasErrors() {
			t.Fatal("neither a tree nor a finding")
		}
		return
	}
	for _, f := range l {
		if f.Pos.File != name || !f.Pos.Known() {
			t.Errorf("finding without a place: %+v", f)
		}
	}
	out := tree.JSON()
	if !json.Valid(out) {
		t.Fatalf("JSON is not valid: %s", out)
	}
	again, l := source.Read(context.Background(), source.Options{MaxBytes: 1 << 30}, []source.Input{{Name: "again.json", Reader: bytes.NewReader(out)}})
	if again == nil || len(l) > 0 {
		// Escapes can smuggle characters into a string that a file may not
		// hold raw; they are the one reason.
		if !strings.Contains(l.String(), "SH0113") {
			t.Fatalf("%s does not read back: %v", out, l)
		}
		return
	}
	if !bytes.Equal(again.JSON(), out) {
		t.Fatalf("read back as %s, not %s", again.JSON(), out)
	}
	check(t, tree, tree.Root(), "")
}

// check asserts that every value has a place.
func check(t *testing.T, tree *source.Tree, n *source.Node, pointer string) {
	if p := tree.NodePos(n); !p.Known() || !tree.End(p).Known() {
		t.Fatalf("%q has no place", pointer)
	}
	for i := range n.Fields {
		check(t, tree, n.Fields[i].Value, source.Join(pointer, n.Fields[i].Name))
	}
	for _, e := range n.Elems {
		check(t, tree, e, pointer+"/-")
	}
}

func FuzzReadYAML(f *testing.F) {
	for _, s := range [...]string{"", "a: 1", "a: 012\nb: [x, {y: 'z'}]\n", "a: &x {b: 1}\nc: {<<: *x}\n", "a: 1\n---\nb: 2", "a: |\n  x\n", "a:\n\tb: 1",
		"a: !!binary eA==", "? a\n: b\n", "\"a\\u2028\": 1", "a: *a", "é: {ü: [ß]}", "a: {x: 1}\na: {y: 2}", "%YAML 1.1\n---\na: 1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { fuzz(t, "a.yaml", text) })
}

func FuzzReadJSON(f *testing.F) {
	for _, s := range [...]string{"", "{}", `{"a": [1, -2.5e3, true, null, "x"]}`, `{"a":1,"a":2}`, `{"a":{}} x`, "[", `{"\ud83d\ude00":1}`, `{"a":1,}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { fuzz(t, "a.json", text) })
}

func FuzzReadCUE(f *testing.F) {
	for _, s := range [...]string{"", "a: 1", "package p\na: b: [1, -2.5, \"x\\n\"]\n", "a: 1Ki, b: 0x1f, c: .5e3", "a: #\"\\x\"#", "a: \"\"\"\n\tx\n\t\"\"\"",
		"import \"x\"", "a: b", "a: 1\na: 2", "{a: 1}", "a: '\\x00'", "\"a b\": null", "a: 1_000.5M", "// c\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { fuzz(t, "a.cue", text) })
}
