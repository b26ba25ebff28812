package source_test

import (
	"strings"
	"testing"

	"shunt/compiler/source"
)

func TestTOML(t *testing.T) {
	read := func(text string) (*source.Tree, string) {
		tree, findings := source.Read(t.Context(), source.Options{}, []source.Input{{Name: "w.toml", As: ".toml", Reader: strings.NewReader(text)}})
		return tree, findings.String()
	}
	tree, findings := read("# engines\n[[workers]]\nid = \"a\"\nport = 8_998\n\n[[workers]]\nid = 'b'\nmodel_ids = [\"m\"]\n[server]\nhost.name = \"h\"\n")
	if findings != "" {
		t.Fatal(findings)
	}
	f := func(pointer, text, pos string) {
		t.Helper()
		n := tree.Node(pointer)
		if n == nil {
			t.Fatalf("no %s", pointer)
		}
		if n.Text != text || tree.NodePos(n).String() != pos {
			t.Errorf("%s: got %q at %s, want %q at %s", pointer, n.Text, tree.NodePos(n), text, pos)
		}
	}
	f("/workers/0/id", "a", "w.toml:3:6")
	f("/workers/0/port", "8998", "w.toml:4:8")
	f("/workers/1/id", "b", "w.toml:7:6")
	f("/workers/1/model_ids/0", "m", "w.toml:8:14")
	f("/server/host/name", "h", "w.toml:10:13")
	for pointer, want := range map[string]string{"": "w.toml:2:3", "/workers/1": "w.toml:7:1", "/workers/1/model_ids": "w.toml:8:14"} {
		if got := tree.Pos(pointer).String(); got != want {
			t.Errorf("%q is at %s, want %s", pointer, got, want)
		}
	}
	bad := func(text, want string) {
		t.Helper()
		if tree, findings := read(text); tree != nil || !strings.Contains(findings, want) {
			t.Errorf("got %q, want %q", findings, want)
		}
	}
	bad("a = 1\na = 2\n", "w.toml:2:1: error: TOML syntax: ")
	bad("a = \n", "w.toml:1:")
	bad("", "holds no configuration")
	bad("a = "+strings.Repeat("[", 200), "nested more than")
	bad(strings.Repeat("a.", 200)+"a = 1", "nested more than")
	bad("# "+strings.Repeat("x", 200<<10), "TOML file may have")
}

// TestTOMLIsNoConfiguration: the extension alone does not do.
func TestTOMLIsNoConfiguration(t *testing.T) {
	_, findings := source.Read(t.Context(), source.Options{}, []source.Input{{Name: "w.toml", Reader: strings.NewReader("a = 1")}})
	if !strings.Contains(findings.String(), "SH0006") {
		t.Error(findings)
	}
}
