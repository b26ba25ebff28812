package source_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"shunt/compiler/source"
)

// directives reads one input and lists its directives as line, line meant and
// text.
func directives(t *testing.T, name, text string) []string {
	t.Helper()
	tree, l := source.Read(context.Background(), source.Options{AllowCUECode: true}, []source.Input{{Name: name, Reader: strings.NewReader(text)}})
	if tree == nil {
		t.Fatalf("%q: %s", text, l)
	}
	var out []string
	for _, d := range tree.Directives() {
		out = append(out, fmt.Sprintf("%d:%d>%d %s", d.Pos.Line, d.Pos.Column, d.Line, d.Text))
	}
	return out
}

func TestDirectives(t *testing.T) {
	f := func(name, text string, want ...string) {
		t.Helper()
		if got := directives(t, name, text); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s\n%s\ngot %q, want %q", name, text, got, want)
		}
	}
	yaml := func(text string, want ...string) { t.Helper(); f("c.yaml", text, want...) }
	yaml("a: 1 # shunt:ignore X y", "1:6>1 ignore X y")
	yaml("# shunt:ignore X y\r\na: 1\r\n", "1:1>2 ignore X y")
	yaml("##  shunt: ignore\n\n# other\n  # shunt:b\na: 1\n", "1:1>5 ignore", "4:3>5 b")
	yaml("a: 1\n# shunt:ignore at the end\n", "2:1>2 ignore at the end")
	yaml("a: x#shunt:ignore\n")
	yaml("a: \"x # shunt:ignore\"\n")
	yaml("a: \"x \\\" # shunt:ignore\" # shunt:b\n", "1:26>1 b")
	yaml("a: 'x '' # shunt:ignore' # shunt:b\n", "1:26>1 b")
	yaml("a: it's # shunt:b's\n", "1:9>1 b's")
	yaml("a: \"x\n  # shunt:ignore\n  \" # shunt:b\n", "3:5>3 b")
	yaml("'# shunt:k': {'# shunt:l': [\"# shunt:m\"]} # shunt:b\n", "1:43>1 b")
	yaml("a: &x !!str 'y # shunt:no' # shunt:b\nb: *x # shunt:c\n", "1:28>1 b", "2:7>2 c")
	yaml("a: | # shunt:b\n  # shunt:no\n\n  x # shunt:no\n# shunt:c\nb: 1\n", "1:6>1 b", "5:1>6 c")
	yaml("a: >2-\n\n    # shunt:no\n  # shunt:no\n # shunt:c\nb: 1\n", "5:2>6 c")
	yaml("a: |\n\n# shunt:c\nb: 1\n", "3:1>4 c")
	yaml("a:\n- |\n # shunt:no\n- # shunt:b\n  c: 1\n", "4:3>4 b")
	yaml("名: \"😀\" # shunt:b\n", "1:13>1 b")
	yaml("a: see shunt:ignore # see shunt:ignore\n")

	cue := func(text string, want ...string) { t.Helper(); f("c.cue", text, want...) }
	cue("a: 1 // shunt:ignore X y\n", "1:6>1 ignore X y")
	cue("// shunt:ignore X y\n\n// more\na: 1\n", "1:1>4 ignore X y")
	cue("a: \"// shunt:no\"\nb: \"\"\"\n\t// shunt:no\n\t\"\"\"\n")
	cue("b: 1\na: \"x\\(b)y\\((b)) // shunt:no\" // shunt:b\nc: \"\\(\"\\(b)\")\" // shunt:c\n", "2:31>2 b", "3:16>3 c")
	f("c.json", "{\"a\": \"# shunt:ignore\"}")
}

// FuzzDirectives: no text that is a configuration breaks the search, and what it
// finds is where it says.
func FuzzDirectives(f *testing.F) {
	for _, text := range []string{"a: 1 # shunt:ignore X y", "a: |2\n   # shunt:x\n # shunt:y", "a: \"\\\" # shunt:x\" # shunt:y", "a: &b !c 'd' # shunt:x", "b: 1, a: \"\\(b)\" // shunt:x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"c.yaml", "c.cue"} {
			tree, _ := source.Read(context.Background(), source.Options{}, []source.Input{{Name: name, Reader: strings.NewReader(text)}})
			if tree == nil {
				continue
			}
			text := strings.TrimPrefix(text, "\xef\xbb\xbf")
			for _, d := range tree.Directives() {
				if c := text[d.Pos.Offset]; c != '#' && c != '/' || !strings.Contains(text[d.Pos.Offset:d.End.Offset], "shunt:") || d.Line < d.Pos.Line {
					t.Errorf("%s: %+v", name, d)
				}
			}
		}
	})
}

func TestNamed(t *testing.T) {
	tree, l := source.Read(context.Background(), source.Options{}, []source.Input{{Name: "c.yaml", Reader: strings.NewReader("a: [{id: x/y, b: [1]}, {c: [{id: 5}]}]\n")}})
	if tree == nil {
		t.Fatal(l)
	}
	f := func(pointer, want string) {
		t.Helper()
		if got := tree.Named(pointer); got != want {
			t.Errorf("%s: got %s, want %s", pointer, got, want)
		}
	}
	f("", "")
	f("/a/0/b/0", "/a/{x~1y}/b/0")
	f("/a/1/c/0/id", "/a/1/c/0/id")
	f("/a/0/b/nothing/0", "/a/{x~1y}/b/nothing/0")
	f("/a/7/x", "/a/7/x")
}
