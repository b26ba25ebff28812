package format_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/format"
	"shunt/compiler/source"
)

func lay(t testing.TB, name, text string) string {
	t.Helper()
	out, findings := format.File(t.Context(), source.Options{}, name, []byte(text))
	if len(findings) > 0 {
		t.Fatalf("%s\n%s", findings, text)
	}
	return string(out)
}

// TestYAML has what a layout has to get right, each in a few lines.
func TestYAML(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		got := lay(t, "a.yaml", text)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if again := lay(t, "a.yaml", got); again != got {
			t.Errorf("%s: laid out twice: %s", name, cmp.Diff(got, again))
		}
	}
	f("indent", "a:\n     b:\n      c: 1\n     d: 2\n", "a:\n  b:\n    c: 1\n  d: 2\n")
	f("lists at the column of their key", "a:\n- b: 1\n  c: 2\n- d\ne: 1\n", "a:\n  - b: 1\n    c: 2\n  - d\ne: 1\n")
	f("wide dashes", "a:\n  -   b: 1\n      c: 2\n", "a:\n  - b: 1\n    c: 2\n")
	f("lists in lists", "a:\n-  - 1\n   - 2\n- - 3\n", "a:\n  - - 1\n    - 2\n  - - 3\n")
	f("a dash alone", "a:\n-\n    b: 1\n    c: 2\n", "a:\n  -\n    b: 1\n    c: 2\n")
	f("space", "a:   1\nb :  x y\nc:\t{ x: 1,y:  2 , z: [ 1,2 ] }   \n", "a: 1\nb : x y\nc: {x: 1, y: 2, z: [1, 2]}\n")
	f("comments", "#h\na: 1   # one\n\n\n\n    # deep\nb:   # two\n      # in b\n      c: 1\n  # after c\n# end\n",
		"#h\na: 1 # one\n\n# deep\nb: # two\n  # in b\n  c: 1\n# after c\n# end\n")
	f("a comment after a list", "a:\n- b: 1\n  # of b\n# of the list\n- c: 1\n  # of c\n# end\n", "a:\n  - b: 1\n    # of b\n  # of the list\n  - c: 1\n    # of c\n# end\n")
	f("quotes", "a: 'x   # y'\nb: \"{ a,b }  # c\"\nc: \"it\\\"s,  x\"\nd: 'it''s,  x'\n\"e  f\":   1\n",
		"a: 'x   # y'\nb: \"{ a,b }  # c\"\nc: \"it\\\"s,  x\"\nd: 'it''s,  x'\n\"e  f\": 1\n")
	f("plain text", "a: x   y  z#w\nb: http://a:1/#x\nc: [a  b, c#d,x]\n", "a: x   y  z#w\nb: http://a:1/#x\nc: [a  b, c#d, x]\n")
	f("text over lines", "a:\n    b: \"one\n      two   \\\n\n      # three\"   # c\n    c: d\n", "a:\n  b: \"one\n    two   \\\n\n    # three\" # c\n  c: d\n")
	f("plain text over lines", "a:\n    b: one\n      - two\n    c: x\n", "a:\n  b: one\n    - two\n  c: x\n")
	f("block scalars", "a:\n    b: |\n      x   # y\n\n\n        z  \n    c: >-\n         folded\n         text\n    d: |2\n         y\n",
		"a:\n  b: |\n    x   # y\n\n\n      z  \n  c: >-\n       folded\n       text\n  d: |2\n       y\n")
	f("kept lines", "a:\n- |+\n  x\n\n\n- b\n", "a:\n  - |+\n    x\n\n\n  - b\n")
	f("kept lines at the end", "a: |+\n  x\n\n\n", "a: |+\n  x\n\n\n")
	f("lines at the end", "\n\na: |\n  x\n\n\n", "a: |\n  x\n")
	f("flow over lines", "a:\n    b: [\n      # in\n      {x: 1}, # after\n      \"two\n         lines\",\n    ]\n    c: {a: 1,\n        b: 2}\n",
		"a:\n  b: [\n    # in\n    {x: 1}, # after\n    \"two\n       lines\",\n  ]\n  c: {a: 1,\n      b: 2}\n")
	f("anchors", "a:   &x\n    b:  1\nc:\n- <<:   *x\n  d: &y 2\n- &z\n  e:   *y\n- !!map\n  f: 1\n",
		"a: &x\n  b: 1\nc:\n  - <<: *x\n    d: &y 2\n  - &z\n    e: *y\n  - !!map\n    f: 1\n")
	f("values below", "a:\n      x\nb:\n   {c: 1}\nd:\n        - 1\n", "a:\n  x\nb:\n  {c: 1}\nd:\n  - 1\n")
	f("empty values", "a:\nb: ~\nc:\n- \n- x\n-\n", "a:\nb: ~\nc:\n  -\n  - x\n  -\n")
	f("documents", "%YAML 1.1\n---   \na:\n    b: 1\n...   \n", "%YAML 1.1\n---\na:\n  b: 1\n...\n")
	f("marks", "\xef\xbb\xbfa: 1\r\nb:\r\n    c: 2", "a: 1\nb:\n  c: 2\n")
	f("explicit keys stay", "? a\n:    1\n\n\n", "? a\n:    1\n")
	f("words", "a: yes\nb: \"012\"\nc: '1_000'\nd: 1.50\ne: on\n", "a: yes\nb: \"012\"\nc: '1_000'\nd: 1.50\ne: on\n")
	f("wide characters", "\"ä\":   {ö: ü,ß: 1}\n", "\"ä\": {ö: ü, ß: 1}\n")
}

// TestRefused: what cannot be read is not laid out, and says why.
func TestRefused(t *testing.T) {
	f := func(name, text string, want diag.Code) {
		t.Helper()
		out, findings := format.File(t.Context(), source.Options{}, name, []byte(text))
		if out != nil || len(findings) == 0 || findings[0].Code != want {
			t.Errorf("%q: %q, %v", text, out, findings)
		}
	}
	f("a.yaml", "a: [\n", diag.Syntax)
	f("a.yaml", "a: 1\na: 2\n", diag.RepeatedKey)
	f("a.yaml", "a: 012\n", diag.SurprisingValue)
	f("a.yaml", "a: 1\n---\nb: 1\n", diag.ManyDocuments)
	f("a.json", "{\"a\": 1,}", diag.Syntax)
	f("a.cue", "a: {\n", diag.Syntax)
	f("a.txt", "a", diag.UnknownFileType)
	f("a.yaml", "", diag.EmptyInput)
}

// TestOtherSyntaxes lays out JSON, and CUE that is a program.
func TestOtherSyntaxes(t *testing.T) {
	if got, want := lay(t, "a.json", "{\"b\":1.50,\"a\":[],\n\"c\":[1,{\"d\":\"<&>\"}]}"), "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"<&>\"\n    }\n  ]\n}\n"; got != want {
		t.Error(got)
	}
	got := lay(t, "a.cue", "// c\na:   1 // d\nb: [ for x in [1,2] {x} ]\n")
	if !strings.Contains(got, "// c\na: 1 // d\n") || !strings.Contains(got, "for x in [1, 2] {x}") {
		t.Error(got)
	}
}

// corpus calls f for every configuration of the examples and of the golden cases.
func corpus(t testing.TB, f func(name string, text []byte)) {
	t.Helper()
	for _, root := range []string{"../../examples", "../../golden"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			switch filepath.Ext(path) {
			case ".yaml":
				f(path, data)
			case ".txtar":
				for _, one := range txtar.Parse(data).Files {
					switch filepath.Ext(one.Name) {
					case ".yaml", ".yml", ".json", ".cue":
						f(path+"/"+one.Name, one.Data)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bare is a text without space.
func bare(text []byte) string {
	return strings.Join(strings.FieldsFunc(string(text), unicode.IsSpace), "")
}

// digest is that of the plan, empty when there is none.
func digest(name string, text []byte) string {
	r := compiler.Compile(context.Background(), compiler.Options{}, []source.Input{{Name: name, Reader: bytes.NewReader(text)}})
	if r.Plan == nil {
		return ""
	}
	return r.Plan.Digest
}

// TestCorpus lays out everything there is: it must mean the same, keep all but
// space, and be stable.
func TestCorpus(t *testing.T) {
	count, plans := 0, 0
	corpus(t, func(name string, text []byte) {
		out, findings := format.File(t.Context(), source.Options{}, filepath.Base(name), text)
		if out == nil {
			if len(findings) == 0 || findings[0].Code == diag.Internal {
				t.Errorf("%s: %v", name, findings)
			}
			return
		}
		count++
		if again := lay(t, filepath.Base(name), string(out)); again != string(out) {
			t.Errorf("%s: laid out twice: %s", name, cmp.Diff(string(out), again))
		}
		if filepath.Ext(name) != ".cue" && bare(out) != bare(text) {
			t.Errorf("%s: more than space changed: %s", name, cmp.Diff(string(text), string(out)))
		}
		base := filepath.Base(name)
		if before := digest(base, text); before != "" {
			plans++
			if after := digest(base, out); after != before {
				t.Errorf("%s: digest %s, was %s", name, after, before)
			}
		}
		if strings.HasPrefix(name, "../../examples") && string(out) != string(text) {
			t.Errorf("%s is not laid out: %s", name, cmp.Diff(string(text), string(out)))
		}
	})
	if count < 60 || plans < 20 {
		t.Errorf("only %d texts and %d plans", count, plans)
	}
}

// FuzzYAML: any text that is read keeps its meaning and everything but space.
func FuzzYAML(f *testing.F) {
	corpus(f, func(name string, text []byte) {
		// A bomb takes seconds to refuse, and so would all that is made of it.
		if filepath.Ext(name) == ".yaml" && len(text) < 3000 && !strings.Contains(name, "bomb") {
			f.Add(text)
		}
	})
	f.Add([]byte("a:\n- &x |+\n  b\n\n- *x\n# c\n"))
	f.Add([]byte("version: 1\nmodels: [{id: ,y rank: 1}, {a: }]\n"))
	f.Add([]byte("version: 1\nmodels: >\n te"))
	f.Add([]byte("? a\n: {b: 'c\n  d', e: \"f\\\n  g\"}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, findings := format.File(t.Context(), source.Options{MaxBytes: 1 << 16}, "a.yaml", text)
		if out == nil {
			if len(findings) == 0 || findings[0].Code == diag.Internal {
				t.Fatalf("%q: %v", text, findings)
			}
			return
		}
		if bare(out) != bare(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))) {
			t.Fatalf("more than space changed:\n%q\n%q", text, out)
		}
		again, findings := format.File(t.Context(), source.Options{MaxBytes: 1 << 20}, "a.yaml", out)
		if len(findings) > 0 || !bytes.Equal(again, out) {
			t.Fatalf("laid out twice: %v\n%q\n%q\n%q", findings, text, out, again)
		}
	})
}
