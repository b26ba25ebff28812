package golden_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is what a package, or a tree of packages when the path ends in a slash,
// may import of this module. The longest match counts; a package without a row
// fails, so nobody adds one without deciding where it belongs. That also keeps
// Go files out of the folder runtime itself.
type layer struct {
	path string
	may  []string
}

func layers() []layer {
	const (
		state  = "runtime/state/"
		prefix = state + "prefix"
		feeds  = state + "zmtp " + state + "engineinfo " + state + "tasks"
	)
	return []layer{
		{"schema", nil},
		{"schema/plan", nil},

		{"compiler/diag", nil},
		{"compiler/config", nil},
		{"compiler/source", []string{"compiler/diag"}},
		{"compiler/check", []string{"schema", "schema/plan", "compiler/source", "compiler/config", "compiler/diag"}},
		{"compiler/format", []string{"compiler/source", "compiler/diag"}},
		{"compiler/lower", []string{"schema/plan", "compiler/config", "compiler/diag", "compiler/source"}},
		{"compiler/migrate/argv", []string{"compiler/diag"}},
		{"compiler/migrate/bucketfile", []string{"compiler/source", "compiler/diag"}},
		{"compiler/migrate/flags", []string{"schema/plan", "compiler/migrate/argv", "compiler/diag"}},
		{"compiler/migrate", []string{"schema/plan", "compiler", "compiler/"}},
		{"compiler/plandiff", []string{"schema/plan"}},
		{"compiler/report", []string{"schema/plan", "compiler/diag"}},
		{"compiler/report/page", []string{"schema/plan", "compiler/diag", "compiler/report", "compiler/plandiff"}},
		{"compiler/suppress", []string{"compiler/diag", "compiler/source"}},
		{"compiler", []string{"schema/", "compiler/"}},

		{"runtime/fleet", nil},
		{"runtime/tokens/", []string{"runtime/tokens/"}},
		{"runtime/enginetest", nil},
		{state + "zmtp", nil},
		{state + "engineinfo", nil},
		{state + "tasks", []string{"runtime/fleet"}},
		{state + "affinity", []string{"runtime/fleet"}},
		{state + "load", append(strings.Fields(feeds), "runtime/fleet")},
		{prefix + "/wire", nil},
		{prefix, []string{prefix + "/wire"}},
		{prefix + "/feed", append(strings.Fields(feeds), prefix, prefix+"/wire", "runtime/fleet")},
		{prefix + "/indexer/", []string{prefix, prefix + "/indexer/"}},
		{"runtime/discover", []string{"runtime/fleet"}},
		{"runtime/policy", []string{state + "affinity", state + "load", prefix, "runtime/fleet"}},
		{"runtime/routing", []string{"runtime/policy", state, "runtime/fleet"}},
		{"runtime/prepare", []string{"runtime/tokens/"}},
		{"runtime/forward", []string{"runtime/prepare", "runtime/routing", "runtime/policy", "runtime/fleet"}},
		{"runtime/assemble", []string{"schema/plan", "runtime/prepare", "runtime/routing", "runtime/policy", state, "runtime/fleet"}},
		{"runtime/server", []string{"runtime/forward", "runtime/prepare", "runtime/routing", "runtime/policy", state, "runtime/fleet"}},
		{"runtime/simulate", []string{
			"schema/plan", "runtime/assemble", "runtime/prepare", "runtime/tokens/",
			"runtime/routing", "runtime/policy", state, "runtime/fleet",
		}},
		{"runtime/simulate/suite", []string{"schema/plan", "runtime/simulate", "runtime/routing", "runtime/policy"}},
		{"runtime/app", []string{"schema/plan", "runtime/"}},

		{"cmd/shunt", []string{"schema/", "compiler/", "runtime/simulate", "runtime/simulate/suite", "runtime/tokens"}},
		{"cmd/shuntd", []string{"runtime/app", "schema/plan"}},
		{"cmd/enginesim", []string{"runtime/enginetest"}},
		{"examples/", nil},
		{"golden", nil},
		{"golden/", []string{"runtime/enginetest"}},
	}
}

// outside says which packages may import another module. A module without a row
// may be imported by nobody. Tests are bound by the first row only.
func outside() []layer {
	return []layer{
		{"cuelang.org/go", []string{"compiler/", "cmd/shunt"}},
		{"github.com/cockroachdb/apd", []string{"compiler/source"}},
		{"go.yaml.in/yaml", []string{"compiler/source", "compiler/format", "compiler/migrate/", "cmd/shunt"}},
		{"mvdan.cc/sh", []string{"compiler/migrate/argv"}},
		{"github.com/bmatcuk/doublestar", []string{"compiler/suppress"}},
		{"github.com/go-json-experiment/json", []string{
			"compiler/source", "runtime/prepare", "runtime/forward", "runtime/server", "runtime/simulate", "runtime/enginetest",
		}},
		{"github.com/julienschmidt/httprouter", []string{"runtime/server"}},
		{"github.com/redis/go-redis", []string{"runtime/state/affinity"}},
		{"github.com/tinylib/msgp", []string{"runtime/state/load", "runtime/state/prefix/wire", "runtime/enginetest"}},
		{"google.golang.org/grpc", []string{"runtime/state/prefix/indexer/", "runtime/app"}},
		{"google.golang.org/protobuf", []string{"runtime/state/prefix/indexer/"}},
		{"github.com/VictoriaMetrics/metrics", []string{"runtime/server", "runtime/forward", "runtime/app", "runtime/state/"}},
		{"github.com/urfave/cli", []string{"cmd/"}},
		{"golang.org/x/sys", []string{"compiler/source", "cmd/", "golden/"}},
		{"github.com/rogpeppe/go-internal", []string{"golden", "cmd/shunt"}},
	}
}

const module = "shunt/"

// covers reports whether a row's path is a package or a tree that holds it.
func covers(row, pkg string) bool {
	if tree, ok := strings.CutSuffix(row, "/"); ok {
		return pkg == tree || strings.HasPrefix(pkg, row)
	}
	return row == pkg
}

func within(rows []string, pkg string) bool {
	return slices.ContainsFunc(rows, func(r string) bool { return covers(r, pkg) })
}

// file is one parsed Go file of a tree; pkg is its folder.
type file struct {
	pkg, name string
	test      bool
	fset      *token.FileSet
	ast       *ast.File
}

func (f *file) imports() []string {
	var out []string
	for _, i := range f.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// goFiles parses all Go files below a root, reading them itself: the test cache
// notices files that the test opens, not those that a child process opens.
func goFiles(t *testing.T, root string, mode parser.Mode) []*file {
	t.Helper()
	var files []*file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && outOfModule(p, d.Name()) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(p) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		f := &file{pkg: path.Dir(rel), name: rel, test: strings.HasSuffix(rel, "_test.go"), fset: token.NewFileSet()}
		if f.ast, err = parser.ParseFile(f.fset, p, nil, mode); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// outOfModule reports whether a folder is no part of the module: hidden, test
// data, packages of npm, or a module of its own.
func outOfModule(p, name string) bool {
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	return err == nil
}

// checkLayers returns what is wrong with the imports of a tree.
func checkLayers(t *testing.T, root string) (problems []string) {
	t.Helper()
	for _, f := range goFiles(t, root, parser.ImportsOnly) {
		row := rowOf(f.pkg)
		if row == nil {
			problems = append(problems, f.name+": package has no row in layers")
			continue
		}
		for _, imported := range f.imports() {
			if p := f.judge(row, imported); p != "" {
				problems = append(problems, fmt.Sprintf("%s: must not import %s: %s", f.name, imported, p))
			}
		}
	}
	return problems
}

func rowOf(pkg string) *layer {
	var best *layer
	rows := layers()
	for i := range rows {
		if r := &rows[i]; covers(r.path, pkg) && (best == nil || len(r.path) > len(best.path)) {
			best = r
		}
	}
	return best
}

// judge says why a file must not import a package, or nothing.
func (f *file) judge(row *layer, imported string) string {
	if ours, ok := strings.CutPrefix(imported, module); ok {
		if f.test {
			return judgeTest(f.pkg, ours)
		}
		if !within(row.may, ours) {
			return "not below it"
		}
		return ""
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for i, o := range outside() {
		if imported != o.path && !strings.HasPrefix(imported, o.path+"/") {
			continue
		}
		if within(o.may, f.pkg) || f.test && (i > 0 || f.pkg == "golden") {
			return ""
		}
		return "only for " + strings.Join(o.may, ", ")
	}
	if f.test {
		return ""
	}
	return "module has no row in outside"
}

// judgeTest holds the two halves apart in tests too; only golden and the tools
// see both.
func judgeTest(pkg, ours string) string {
	halves := [...]string{"compiler/", "runtime/"}
	for i, half := range halves {
		if covers(half, pkg) && covers(halves[1-i], ours) {
			return "compiler and runtime meet in schema/plan only"
		}
	}
	return ""
}

// reach lists everything outside the standard library that a package imports,
// directly or through packages of this module.
func reach(t *testing.T, root, pkg string) []string {
	t.Helper()
	imports := make(map[string][]string)
	for _, f := range goFiles(t, root, parser.ImportsOnly) {
		if !f.test {
			imports[f.pkg] = append(imports[f.pkg], f.imports()...)
		}
	}
	seen, queue := map[string]bool{}, []string{pkg}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, p := range imports[next] {
			if seen[p] {
				continue
			}
			seen[p] = true
			if ours, ok := strings.CutPrefix(p, module); ok {
				queue = append(queue, ours)
			}
		}
	}
	var out []string
	for p := range seen {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// checkServer returns what cmd/shuntd reaches and must not.
func checkServer(t *testing.T, root string) (problems []string) {
	t.Helper()
	for _, p := range reach(t, root, "cmd/shuntd") {
		if strings.HasPrefix(p, "cuelang.org/") || strings.HasPrefix(p, module+"compiler") || p == module+"schema" {
			problems = append(problems, "cmd/shuntd reaches "+p)
		}
	}
	return problems
}

func TestLayers(t *testing.T) {
	for _, p := range append(checkLayers(t, ".."), checkServer(t, "..")...) {
		t.Error(p)
	}
}

// TestLayersCanFail breaks one rule at a time in a tree of its own.
func TestLayersCanFail(t *testing.T) {
	f := func(name, imported, want string) {
		t.Helper()
		root := t.TempDir()
		write(t, root, name, "package p\n\nimport _ \""+imported+"\"\n")
		got := append(checkLayers(t, root), checkServer(t, root)...)
		if want == "" && len(got) > 0 || want != "" && !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%s importing %s: got %q, want %q", name, imported, got, want)
		}
	}
	f("runtime/policy/x.go", "shunt/runtime/state/load", "")
	f("runtime/state/load/x.go", "shunt/runtime/policy", "not below it")
	f("runtime/policy/x.go", "shunt/runtime/routing", "not below it")
	f("runtime/routing/x.go", "shunt/schema/plan", "not below it")
	f("compiler/lower/x.go", "shunt/runtime/fleet", "not below it")
	f("compiler/x_test.go", "shunt/runtime/fleet", "meet in schema/plan only")
	f("runtime/app/x_test.go", "shunt/compiler", "meet in schema/plan only")
	f("schema/plan/x.go", "shunt/compiler/diag", "not below it")
	f("runtime/fleet/x.go", "cuelang.org/go/cue", "only for compiler/")
	f("runtime/app/x_test.go", "cuelang.org/go/cue", "only for compiler/")
	f("runtime/forward/x.go", "github.com/julienschmidt/httprouter", "only for runtime/server")
	f("runtime/server/x.go", "example.com/other", "module has no row")
	f("runtime/x.go", "fmt", "no row in layers")
	f("runtime/state/newcomer/x.go", "fmt", "no row in layers")
	f("runtime/state/prefix/x.go", "shunt/runtime/fleet", "not below it")
	f("runtime/state/prefix/feed/x.go", "shunt/runtime/state/prefix/indexer", "not below it")
	f("runtime/policy/x.go", "google.golang.org/grpc", "only for runtime/state/prefix/indexer/")
	f("runtime/newcomer/x.go", "fmt", "no row in layers")
	f("compiler/newcomer/x.go", "fmt", "no row in layers")
	f("cmd/shuntd/main.go", "cuelang.org/go/cue", "cmd/shuntd reaches cuelang.org/go/cue")
}

// TestServerReachIsTransitive has CUE two packages away from the server.
func TestServerReachIsTransitive(t *testing.T) {
	root := t.TempDir()
	write(t, root, "cmd/shuntd/main.go", "package main\n\nimport _ \"shunt/runtime/app\"\n")
	write(t, root, "runtime/app/app.go", "package app\n\nimport _ \"shunt/runtime/fleet\"\n")
	write(t, root, "runtime/fleet/fleet.go", "package fleet\n\nimport _ \"cuelang.org/go/cue\"\n")
	if got := checkServer(t, root); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	p := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
