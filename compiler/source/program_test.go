package source_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// evaluate writes files below a new folder and reads one of them as a program.
func evaluate(t *testing.T, main string, files map[string]string) (*source.Tree, diag.List, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, l := source.Read(context.Background(), source.Options{AllowCUECode: true},
		[]source.Input{{Name: filepath.Join(dir, filepath.FromSlash(main))}})
	return tree, l, dir
}

func TestProgramsAreEvaluated(t *testing.T) {
	program := "import \"strings\"\n#D: {n: int}\n_n: 2\na: strings.ToUpper(\"x\")\nb: [for i in [1, _n] {#D & {n: i}}]\nc: {d: 1.5, e: null, f: true}\n"
	tree, l, dir := evaluate(t, "a.cue", map[string]string{"a.cue": program})
	if tree == nil {
		t.Fatal(l)
	}
	if got, want := string(tree.JSON()), `{"a":"X","b":[{"n":1},{"n":2}],"c":{"d":1.5,"e":null,"f":true}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for pointer, want := range map[string]string{"/a": "4:1", "/c/d": "6:5", "/b": "5:1"} {
		if got := tree.KeyPos(pointer).String(); got != filepath.Join(dir, "a.cue")+":"+want {
			t.Errorf("%s is at %s, want %s", pointer, got, want)
		}
	}
}

// TestProgramsAmongOtherFiles has what is no CUE beside the packages of a
// program, such as a plan.
func TestProgramsAmongOtherFiles(t *testing.T) {
	tree, l, _ := evaluate(t, "a.cue", map[string]string{
		"cue.mod/module.cue": "module: \"example.com/m@v0\"\nlanguage: version: \"v0.17.0\"\n",
		"defs/defs.cue":      "package defs\nbase: 40\n", "defs/README.md": "x", "defs/x.json": "{}",
		"a.cue": "package conf\nimport \"example.com/m/defs\"\na: defs.base\n", "plan.json": "{}", "b.yaml": "a: [",
	})
	if tree == nil {
		t.Fatal(l)
	}
	if got := string(tree.JSON()); got != `{"a":40}` {
		t.Errorf("got %s", got)
	}
}

func TestProgramsOfSeveralFiles(t *testing.T) {
	files := map[string]string{
		"cue.mod/module.cue": "module: \"example.com/m@v0\"\nlanguage: version: \"v0.17.0\"\n",
		"defs/defs.cue":      "package defs\n#Port: int & <100\nbase: 40\n",
		"conf/a.cue":         "package conf\nimport \"example.com/m/defs\"\na: defs.base + 1\n",
	}
	tree, l, dir := evaluate(t, "conf/a.cue", files)
	if tree == nil {
		t.Fatal(l)
	}
	if got := string(tree.JSON()); got != `{"a":41}` {
		t.Errorf("got %s", got)
	}
	var paths []string
	for _, s := range tree.Sources() {
		rel, _ := filepath.Rel(dir, s.Path)
		paths = append(paths, filepath.ToSlash(rel))
	}
	if got := strings.Join(paths, " "); !strings.Contains(got, "conf/a.cue") || !strings.Contains(got, "defs/defs.cue") {
		t.Errorf("sources %s lack an imported file", got)
	}
	// Two inputs of one package see each other, YAML is unified with them.
	dir = t.TempDir()
	for name, text := range map[string]string{"a.cue": "package p\na: b + 1\n", "b.cue": "package p\nb: 1\n", "c.yaml": "a: 2\nc: 3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, l = source.Read(context.Background(), source.Options{AllowCUECode: true}, []source.Input{
		{Name: filepath.Join(dir, "a.cue")}, {Name: filepath.Join(dir, "c.yaml")}, {Name: filepath.Join(dir, "b.cue")}})
	if tree == nil || len(l) > 0 || len(tree.Root().Fields) != 3 {
		t.Errorf("%v %v", tree, l)
	}
}

func TestProgramMistakes(t *testing.T) {
	f := func(want, message string, files map[string]string) {
		t.Helper()
		tree, l, _ := evaluate(t, "a.cue", files)
		if got := brief(l); got != want || tree != nil || !strings.Contains(l.String(), message) {
			t.Errorf("%q: got %q, want %q and %q\n%s", files["a.cue"], got, want, message, l)
		}
	}
	f("2:4 SH0115", "a: incomplete value int", map[string]string{"a.cue": "_x: 1\na: int\n"})
	f("2:4 SH0115", "conflicting values", map[string]string{"a.cue": "b: 1 + 1\na: 1 & 2\n"})
	f("1:1 SH0104", "bytes", map[string]string{"a.cue": "a: '\\(1)'\n"})
	f("1:8 SH0115", "not fetched", map[string]string{
		"a.cue":              "import \"example.com/other@v0\"\na: other.x\n",
		"cue.mod/module.cue": "module: \"example.com/m@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"example.com/other@v0\": v: \"v0.0.1\"\n",
	})
}

// TestProgramsReadNothingElse tries the ways out of the folder.
func TestProgramsReadNothingElse(t *testing.T) {
	module := "module: \"example.com/m@v0\"\nlanguage: version: \"v0.17.0\"\n"
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.cue"), []byte("package x\nsecret: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(name string, files map[string]string, link string) {
		t.Helper()
		dir := t.TempDir()
		for path, text := range files {
			_ = os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755)
			if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if link != "" {
			if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		tree, l := source.Read(context.Background(), source.Options{AllowCUECode: true}, []source.Input{{Name: filepath.Join(dir, "a.cue")}})
		if tree != nil || len(l) == 0 || l[0].Code != diag.Evaluation {
			t.Errorf("%s: tree %v, findings %v", name, tree != nil, l)
		}
	}
	f("embed", map[string]string{"a.cue": "@extern(embed)\npackage a\na: _ @embed(file=\"b.json\")\n", "b.json": "1", "cue.mod/module.cue": module}, "")
	f("embed text", map[string]string{"a.cue": "@extern(embed)\npackage a\na: _ @embed(file=\"b.txt\",type=text)\n", "b.txt": "1", "cue.mod/module.cue": module}, "")
	f("symbolic link", map[string]string{"a.cue": "package a\nimport \"example.com/m/x\"\na: x.secret\n", "cue.mod/module.cue": module}, "x")
	f("tool package", map[string]string{"a.cue": "import \"tool/file\"\na: file.Read & {filename: \"/etc/passwd\"}\n"}, "")
}

func TestProgramsStayInRoot(t *testing.T) {
	root, other := t.TempDir(), filepath.Join(t.TempDir(), "a.cue")
	if err := os.WriteFile(other, []byte("a: 1 + 1"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, l := source.Read(context.Background(), source.Options{AllowCUECode: true, Root: root}, []source.Input{{Name: other}})
	if brief(l) != "SH0001" {
		t.Errorf("got %v", l)
	}
}

// TestBombs runs programs that do not end or take all memory.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds by design")
	}
	doubling := "a0: \"xxxxxxxxxxxxxxxx\"\n"
	for i := range 40 {
		n, m := string(rune('A'+i%26))+strings.Repeat("x", i/26), ""
		if i > 0 {
			m = string(rune('A'+(i-1)%26)) + strings.Repeat("x", (i-1)/26)
		} else {
			m = "a0"
		}
		doubling += n + ": " + m + " + " + m + "\n"
	}
	for name, text := range map[string]string{
		"loop":     "import \"list\"\nl: list.Range(0, 1000, 1)\na: [for x in l for y in l {x + y}]\n",
		"doubling": doubling,
		"sum":      "a: 1" + strings.Repeat("+1", 400_000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			tree, l := source.Read(context.Background(), source.Options{AllowCUECode: true, EvalTimeout: time.Second},
				[]source.Input{{Name: filepath.Join(t.TempDir(), "a.cue"), Reader: strings.NewReader(text)}})
			if tree != nil || len(l) != 1 || l[0].Code != diag.EvaluationLimit || !l.Failed() {
				t.Errorf("tree %v, findings %.500v", tree != nil, l)
			}
			t.Logf("stopped after %s: %v", time.Since(start), l)
		})
	}
}

func TestScrubEnvironment(t *testing.T) {
	t.Setenv("CUE_DEBUG", "opendef")
	t.Setenv("CUE_EXPERIMENT", "x")
	source.ScrubEnvironment()
	for _, name := range [...]string{"CUE_DEBUG", "CUE_EXPERIMENT"} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("%s is still %q", name, v)
		}
	}
}

// TestChildMainIsOnlyForChildren keeps ordinary command lines out of it, and a
// child that is fed nonsense from pretending success.
func TestChildMainIsOnlyForChildren(t *testing.T) {
	for _, args := range [][]string{nil, {"shunt"}, {"shunt", "check"}, {"shunt", "check", "a.yaml"}} {
		if _, ok := source.ChildMain(args, strings.NewReader(""), os.Stdout); ok {
			t.Errorf("%q ran as a child", args)
		}
	}
	cmd := exec.Command(os.Args[0], source.ChildArgument)
	cmd.Stdin = strings.NewReader("nonsense")
	if out, err := cmd.Output(); err == nil || len(out) > 0 {
		t.Errorf("a child without a request gave %q, %v", out, err)
	}
}
