package golden_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shunt/compiler"
	"shunt/compiler/source"
	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/routing"
	"shunt/schema/plan"
)

// configOf is a configuration of one model and one plain engine, in JSON.
func configOf(t *testing.T, buckets any) string {
	t.Helper()
	type object = map[string]any
	engine := object{"id": "e", "url": "http://10.0.0.1:30000", "role": "plain"}
	model := object{"id": "m", "discovery": object{"static": object{"engines": []any{engine}}}, "buckets": buckets}
	data, err := json.Marshal(object{"version": 1, "models": []any{model}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func compileText(t *testing.T, text string) compiler.Result {
	t.Helper()
	in := []source.Input{{Name: "config.json", Reader: strings.NewReader(text)}}
	return compiler.Compile(t.Context(), compiler.Options{}, in)
}

// runConfigs runs vectors/config.json.
func runConfigs(t *testing.T, data []byte) (ran []string) {
	var file struct {
		About string       `json:"about"`
		Cases []configCase `json:"cases"`
	}
	decode(t, data, &file)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
		ran = append(ran, c.ID)
	}
	return ran
}

type configCase struct {
	ID        string          `json:"id"`
	Note      string          `json:"note"`
	Admission json.RawMessage `json:"admission"`
	Want      *plan.Admission `json:"want"`
	Refused   string          `json:"refused"`
}

func (c *configCase) run(t *testing.T) {
	t.Helper()
	type object = map[string]any
	policy := object{"type": "random", "admission": c.Admission}
	r := compileText(t, configOf(t, []any{object{"id": "x", "groups": object{"plain": object{"policy": policy}}}}))
	if c.Refused != "" {
		if r.Plan != nil || len(r.Findings) == 0 || string(r.Findings[0].Code) != c.Refused {
			t.Errorf("got %s, want %s", r.Findings, c.Refused)
		}
		return
	}
	if r.Plan == nil {
		t.Fatalf("no plan: %s", r.Findings)
	}
	if d := cmp.Diff(*c.Want, r.Plan.Body.Models[0].Buckets[0].Groups.Plain.Policy.Admission); d != "" {
		t.Errorf("admission in the plan differs: -want +got\n%s", d)
	}
}

// throughPlan makes the resolver of declared buckets by way of a compiled,
// encoded and loaded plan. It is nil for no buckets, since no configuration
// gives a plan without.
func throughPlan(t *testing.T, declared []bucketSpec) *routing.Resolver {
	t.Helper()
	if len(declared) == 0 {
		return nil
	}
	type object = map[string]any
	var buckets []any
	for _, b := range declared {
		o := object{"id": b.ID, "rank": b.Rank, "groups": object{"plain": object{}}}
		limits := object{}
		for name, n := range map[string]*int64{"min": b.Min, "max": b.Max} {
			if n != nil {
				limits[name] = *n
			}
		}
		o["limits"] = limits
		if b.Context != nil {
			o["max_context_tokens"] = *b.Context
		}
		buckets = append(buckets, o)
	}
	compiled := compileText(t, configOf(t, buckets))
	if compiled.Plan == nil {
		t.Fatalf("no plan: %s", compiled.Findings)
	}
	data, err := plan.Encode(compiled.Plan)
	if err != nil {
		t.Fatal(err)
	}
	document, err := plan.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	f := new(fleet.Fleet)
	t.Cleanup(f.Close)
	r, err := assemble.Build(&document.Body, assemble.State{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Resolvers["m"]
}

// TestSeedPairs picks through the compiled plan of the seed's example: each
// request stays within the engines of its bucket, and the pair is of one bucket.
func TestSeedPairs(t *testing.T) {
	r := compileFiles(t.Context(), compiler.Options{}, "../examples/pd-two-buckets/routing.yaml")
	if r.Plan == nil {
		t.Fatalf("no plan: %s", r.Findings)
	}
	f := new(fleet.Fleet)
	defer f.Close()
	if err := assemble.Engines(&r.Plan.Body, f); err != nil {
		t.Fatal(err)
	}
	built, err := assemble.Build(&r.Plan.Body, assemble.State{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	pick := func(input, peak int64, bucket string, engines ...string) {
		t.Helper()
		for range 50 {
			req := &routing.Request{}
			req.Model, req.Input, req.Peak = "qwen3-32b", input, peak
			s, err := built.Resolvers["qwen3-32b"].Route(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if s.Bucket.ID != bucket || !slices.Contains(engines, s.Prefill.Engine.ID()) || !slices.Contains(engines, s.Decode.Engine.ID()) {
				t.Fatalf("input %d, peak %d: picked %s in %s", input, peak, selected(&s), s.Bucket.ID)
			}
		}
	}
	pick(4096, 8192, "short-context", "P1", "P2", "D1", "D2")
	pick(4096, 16384, "long-context", "P3", "P4", "D3", "D4")
	pick(4097, 0, "long-context", "P3", "P4", "D3", "D4")
}
