package check

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"shunt/compiler/source"
	"shunt/schema"
)

// compare holds everything that Shape takes short cuts for against the plain
// question to CUE: the verdict on the whole configuration, the walk, and the
// forms of the elements of every list.
func compare(t *testing.T, tree *source.Tree) {
	t.Helper()
	d, err := newDefinitions(configurations())
	if err != nil {
		t.Fatal(err)
	}
	whole := &builder{}
	errs := whole.verdict(d, d.root, tree.Root())
	w := &walker{builder: whole, tree: tree, defs: d}
	w.value(tree.Root(), d.root, nil)
	if len(w.out) > 0 && len(errs) == 0 {
		t.Errorf("the walk refuses what CUE accepts:\n%s", w.out)
	}
	if allValid(whole, d, d.root, []part{{node: tree.Root()}}) && len(errs) > 0 {
		t.Errorf("the forms accept what CUE refuses: %v", errs)
	}
	shape := Shape(context.Background(), tree)
	if (len(shape) == 0) != (len(errs) == 0) && !reported(tree.Root()) {
		t.Errorf("Shape and CUE disagree: CUE %v, Shape\n%s", errs, shape)
	}
	for _, f := range shape {
		if f.Code == "SH0004" || f.Message == "" || !f.Pos.Known() {
			t.Errorf("finding %+v", f)
		}
	}
}

// reported reports whether reading already reported a value of the tree.
func reported(n *source.Node) bool {
	return n.Reported || slices.ContainsFunc(n.Elems, reported) ||
		slices.ContainsFunc(n.Fields, func(f source.Field) bool { return reported(f.Value) })
}

func FuzzShape(f *testing.F) {
	for _, s := range [...]string{
		"version: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [{id: a, url: \"http://a:1\", role: plain}]}}\n",
		"version: 1\nmodels: [{id: m, discovery: {static: {engines: []}}, buckets: [{id: b, rank: 1.0, groups: {plain: {worker_ids: [a, ''], policy: {type: random, choices: 2}}}}]}]\n",
		"version: 1\nmodels: [{id: m, discovery: {static: {engines: []}}, sampling: {params: {top_k: {min: 1, max: -3}, n: 1e9}}, defaults: {policy: {type: sticky, fallback: x}}}]\nstate: {prefix: {remote: {endpoint: \"http://x\"}}}\n",
		"version: 2\nserver: {listen: 3, max_body: 1MB, log: {level: x}}\nmodels: []\n",
		"version: null\nmodels: {}\nx: {}\n",
		"models: [{buckets: [{groups: {pd: {prefill: {policy: {type: cache_aware, min_match_ratio: 2, admission: {max_kv_tokens: -1}}}}}}]}]\n",
		"models: [1, [], {id: 1, policy: {}, defaults: {policy: {}, decode_policy: {type: 3}}}]\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, _ := source.Read(context.Background(), source.Options{MaxBytes: 20_000}, []source.Input{{Name: "a.yaml", Reader: bytes.NewReader(text)}})
		if tree != nil {
			compare(t, tree)
		}
	})
}

// TestEveryLine drops, breaks and renames each line of a configuration, which
// gives hundreds of wrong ones, and holds all short cuts against CUE.
func TestEveryLine(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(`version: 1
server:
  listen: "0.0.0.0:30000"
  max_body: 32MiB
  expose_decision: false
  log: {level: info, format: text}
models:
  - id: m
    sampling: {params: {temperature: 0.6, top_k: {min: 1, max: 50}}, conflict: reject}
    discovery:
      static:
        engines:
          - {id: P1, url: "http://10.0.0.1:30000", role: prefill, bootstrap_port: 8998, labels: {zone: a}}
    defaults: {policy: {type: round_robin}, decode_policy: {type: load_based}}
    buckets:
      - id: short
        rank: 10
        limits: {min: 0, max: 4096}
        groups:
          pd:
            prefill:
              worker_ids: [P1]
              policy:
                type: cache_aware
                min_match_ratio: 0.5
                admission:
                  max_running_requests: 64
            decode: {worker_ids: [], policy: {type: power_of_two, choices: 3}}
            match_labels: [zone]
state:
  affinity:
    redis: {url: "env:REDIS_URL"}`), "\n")
	for i, line := range lines {
		key, value, _ := strings.Cut(line, ":")
		for _, changed := range [...]string{"", key + "x:" + value, key + ": -1", key + ": [3]", key + ": {a: b}"} {
			text := strings.Join(slices.Concat(lines[:i], []string{changed}, lines[i+1:]), "\n")
			tree, _ := source.Read(context.Background(), source.Options{}, []source.Input{{Name: "a.yaml", Reader: strings.NewReader(text)}})
			if tree != nil {
				compare(t, tree)
			}
		}
	}
}

// TestSchemaHasNoRuleBetweenScalars holds the schema to what the forms rely on:
// the only field that another one can depend on is "type", in a condition that
// compares it with a word.
func TestSchemaHasNoRuleBetweenScalars(t *testing.T) {
	for _, file := range schema.TestFiles() {
		parsed, err := parser.ParseFile(file.Name, file.Text)
		if err != nil {
			t.Fatal(err)
		}
		ast.Walk(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Comprehension:
				clause, ok := n.Clauses[0].(*ast.IfClause)
				if !ok || len(n.Clauses) != 1 || !comparesType(clause.Condition) {
					t.Errorf("%s: a comprehension that is not: if type == \"word\"", n.Pos())
				}
				ast.Walk(n.Value, func(ast.Node) bool { return true }, nil)
			case *ast.Ident:
				if c := n.Name[0]; c != '#' && !slices.Contains([]string{"int", "number", "string", "bool", "type", "schema", "version", "_"}, n.Name) && isReference(parsed, n) {
					t.Errorf("%s: a reference to the field %s", n.Pos(), n.Name)
				}
			case *ast.SelectorExpr, *ast.IndexExpr, *ast.CallExpr, *ast.LetClause, *ast.Interpolation:
				t.Errorf("%s: an expression of kind %T", n.Pos(), n)
			}
			return true
		}, nil)
	}
}

func comparesType(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.EQL {
		return false
	}
	x, isIdent := b.X.(*ast.Ident)
	_, isWord := b.Y.(*ast.BasicLit)
	return isIdent && isWord && x.Name == "type"
}

// isReference reports whether an identifier is used as a value and is not the
// name of a field or a package.
func isReference(f *ast.File, id *ast.Ident) bool {
	label := false
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			label = label || n.Label == ast.Label(id)
		case *ast.Package:
			label = label || n.Name == id
		}
		return !label
	}, nil)
	return !label
}
