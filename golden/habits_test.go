package golden_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// maxFunctionLines is the longest function that is still read as one thing.
const maxFunctionLines = 100

// checkHabits returns what breaks the habits of this code base: no init, no
// package-level variable that changes, no panic, no exit outside main, no
// function over the bound, and a doc.go in every package of several files.
func checkHabits(t *testing.T, root string) (problems []string) {
	t.Helper()
	files := goFiles(t, root, parser.ParseComments)
	vars := make(map[string]map[string]bool)
	documented, count := make(map[string]bool), make(map[string]int)
	for _, f := range files {
		if f.test {
			continue
		}
		count[f.pkg]++
		if vars[f.pkg] == nil {
			vars[f.pkg] = make(map[string]bool)
		}
		for _, name := range f.packageVars() {
			vars[f.pkg][name] = true
		}
		documented[f.pkg] = documented[f.pkg] || f.ast.Doc != nil && strings.HasSuffix(f.name, "/doc.go")
	}
	for _, f := range files {
		if alone := count[f.pkg] == 1; alone && f.ast.Doc != nil && !f.test {
			documented[f.pkg] = true
		}
	}
	for pkg := range vars {
		if !documented[pkg] {
			problems = append(problems, pkg+": no package comment in doc.go")
		}
	}
	for _, f := range files {
		if f.test || ast.IsGenerated(f.ast) {
			continue // generators have their own habits
		}
		h := habits{file: f, vars: vars[f.pkg]}
		ast.Inspect(f.ast, h.visit)
		h.lockedVars()
		problems = append(problems, h.problems...)
	}
	slices.Sort(problems)
	return problems
}

// packageVars are the names of the file's package-level variables.
func (f *file) packageVars() (names []string) {
	for _, d := range f.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			for _, n := range s.(*ast.ValueSpec).Names {
				if n.Name != "_" {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// habits looks at one file.
type habits struct {
	*file
	vars     map[string]bool
	problems []string
}

func (h *habits) report(n ast.Node, format string, args ...any) {
	line := h.fset.Position(n.Pos()).Line
	h.problems = append(h.problems, fmt.Sprintf("%s:%d: %s", h.name, line, fmt.Sprintf(format, args...)))
}

func (h *habits) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			h.report(n, "init function")
		}
		lines := h.fset.Position(n.End()).Line - h.fset.Position(n.Pos()).Line + 1
		if lines > maxFunctionLines {
			h.report(n, "function %s has %d lines, over %d", n.Name.Name, lines, maxFunctionLines)
		}
	case *ast.CallExpr:
		h.call(n)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, e := range n.Lhs {
				h.assigned(e)
			}
		}
	case *ast.IncDecStmt:
		h.assigned(n.X)
	}
	return true
}

func (h *habits) call(c *ast.CallExpr) {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		if fun.Name == "panic" && fun.Obj == nil && !cutsConnection(c) {
			h.report(c, "panic")
		}
	case *ast.SelectorExpr:
		x, ok := fun.X.(*ast.Ident)
		if ok && x.Obj == nil && x.Name == "os" && fun.Sel.Name == "Exit" && h.ast.Name.Name != "main" {
			h.report(c, "os.Exit outside a main package")
		}
	}
}

// cutsConnection knows the one panic that is an interface: net/http documents it
// as the way for a handler to cut its connection.
func cutsConnection(c *ast.CallExpr) bool {
	sel, ok := c.Args[0].(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "ErrAbortHandler"
}

// assigned reports an assignment to a package-level variable, also to a part of
// it. A name that a scope of the file declares has an object of its own.
func (h *habits) assigned(e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			if h.vars[x.Name] && (x.Obj == nil || h.ast.Scope.Lookup(x.Name) == x.Obj) {
				h.report(x, "assignment to package-level variable %s", x.Name)
			}
			return
		default:
			return
		}
	}
}

// lockedVars reports package-level variables whose type exists to be changed.
func (h *habits) lockedVars() {
	for _, d := range h.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			sel, ok := s.(*ast.ValueSpec).Type.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
				h.report(s, "package-level variable of type %s.%s", x.Name, sel.Sel.Name)
			}
		}
	}
}

func TestHabits(t *testing.T) {
	for _, p := range checkHabits(t, "..") {
		t.Error(p)
	}
}

func TestHabitsCanFail(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		root := t.TempDir()
		write(t, root, "p/doc.go", "// Package p is a test.\npackage p\n\nvar table = []int{1}\n")
		write(t, root, "p/p.go", "package p\n\nimport \"os\"\n\nvar _ = os.Args\n\n"+body+"\n")
		got := strings.Join(checkHabits(t, root), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngot %q, want %q", body, got, want)
		}
	}
	f("func ok() { table := []int{2}; table[0]++; table = nil }", "")
	f("func ok(panic func()) { panic() }", "")
	f("func init() {}", "init function")
	f("func ok() { panic(http.ErrAbortHandler) }", "")
	f("func bad() { panic(1) }", "p.go:7: panic")
	f("func bad() { os.Exit(1) }", "os.Exit")
	f("func bad() { table[0] = 2 }", "assignment to package-level variable table")
	f("var n int\n\nfunc bad() { n++ }", "assignment to package-level variable n")
	f("func long() {"+strings.Repeat("\n", 100)+"}", "function long has 101 lines")

	root := t.TempDir()
	write(t, root, "q/q.go", "package q\n\nimport \"sync\"\n\nvar mu sync.Mutex\n")
	got := strings.Join(checkHabits(t, root), "\n")
	for _, want := range []string{"no package comment", "package-level variable of type sync.Mutex"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
