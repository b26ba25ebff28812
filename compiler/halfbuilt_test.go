package compiler_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// odd are values that take the place of others.
func odd() []any {
	return []any{
		nil, "", "x", " ", true, -1, 0, 1, 9007199254740991, 0.5, 1e300,
		[]any{}, []any{nil}, []any{"A", 1, map[string]any{}}, map[string]any{}, map[string]any{"id": "A"}, map[string]any{"": nil},
		"http://127.0.0.1:30000", "0s", "999999999999999h",
	}
}

// survives compiles a document, once or several times. Whatever is wrong with it,
// there is no panic, no internal error, and all runs say the same.
func survives(t *testing.T, document any, runs int) {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v\n%s", p, data)
		}
	}()
	var first string
	for i := range runs {
		r := compiler.Compile(context.Background(), compiler.Options{}, []source.Input{{Name: "a.json", Reader: strings.NewReader(string(data))}})
		if slices.ContainsFunc(r.Findings, func(f diag.Finding) bool { return f.Code.Failure() }) || (r.Plan == nil) != r.Findings.HasErrors() {
			t.Fatalf("plan %t, %s\n%s", r.Plan != nil, r.Findings, data)
		}
		if i == 0 {
			first = r.Findings.String()
		} else if got := r.Findings.String(); got != first {
			t.Fatalf("another run says\n%s\nafter\n%s\n%s", got, first, data)
		}
	}
}

// mutate puts an odd value at a spot, or removes it, and returns what restores it.
func mutate(random *rand.Rand, s spot) func() {
	old := s.in[s.key]
	values := odd()
	if i := random.IntN(len(values) + 2); i < len(values) {
		s.in[s.key] = values[i]
	} else {
		delete(s.in, s.key)
	}
	return func() { s.in[s.key] = old }
}

// asDocument reads YAML as what JSON decodes to.
func asDocument(t *testing.T, text string) (document any, ok bool) {
	t.Helper()
	tree, _ := source.Read(context.Background(), source.Options{}, []source.Input{{Name: "a.yaml", Reader: strings.NewReader(text)}})
	if tree == nil {
		return nil, false
	}
	return document, json.Unmarshal(tree.JSON(), &document) == nil
}

// TestHalfBuilt spoils the examples of all pages, which together have every
// setting that a rule looks at, at one and at two places.
func TestHalfBuilt(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	n := 0
	for _, e := range diag.Table() {
		page, _ := diag.PageOf(e.Code)
		for _, f := range slices.Concat(page.Bad, page.Good) {
			document, ok := asDocument(t, f.Data)
			if !ok || !strings.HasSuffix(f.Name, ".yaml") {
				continue
			}
			all := spots(document, "", nil)
			for i := range min(6, len(all)) {
				restore := mutate(random, all[random.IntN(len(all))])
				if i%2 == 1 {
					restoreFirst, s := restore, all[random.IntN(len(all))]
					restoreSecond := mutate(random, s)
					restore = func() { restoreSecond(); restoreFirst() }
				}
				survives(t, document, 2)
				restore()
				n++
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d mutations", n)
	}
}

// TestEveryOddValue puts odd values at every place of one configuration that has
// most settings, a third of them at each.
func TestEveryOddValue(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles thousands of configurations")
	}
	document, ok := asDocument(t, string(example(t, "cache-aware-pd")))
	if !ok {
		t.Fatal("the example cannot be read")
	}
	values := odd()
	for i, s := range spots(document, "", nil) {
		old := s.in[s.key]
		for j := i; j < i+len(values); j += 3 {
			s.in[s.key] = values[j%len(values)]
			survives(t, document, 1)
		}
		delete(s.in, s.key)
		survives(t, document, 1)
		s.in[s.key] = old
	}
}
