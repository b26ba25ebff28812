package golden_test

import (
	"errors"
	"slices"
	"testing"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/schema/plan"
)

// bucketSpec is a bucket of a resolution vector, with the bounds that matter to
// resolution.
type bucketSpec struct {
	ID      string `json:"id"`
	Rank    int64  `json:"rank"`
	Min     *int64 `json:"min"`
	Max     *int64 `json:"max"`
	Context *int64 `json:"max_context_tokens"`
}

// resolutionFile is vectors/resolution.json: sets of buckets as declared, and
// what resolves from them.
type resolutionFile struct {
	About string                  `json:"about"`
	Sets  map[string][]bucketSpec `json:"sets"`
	Cases []resolutionCase        `json:"cases"`
}

type resolutionCase struct {
	ID    string   `json:"id"`
	Note  string   `json:"note"`
	Set   string   `json:"set"`
	Input int64    `json:"input"`
	Peak  int64    `json:"peak"`
	Want  []string `json:"want"`
	Fails string   `json:"fails"`
}

func runResolution(t *testing.T, data []byte) (ran []string) {
	var file resolutionFile
	decode(t, data, &file)
	for _, c := range file.Cases {
		buckets, ok := file.Sets[c.Set]
		if !ok {
			t.Errorf("%s: no set %q", c.ID, c.Set)
			continue
		}
		t.Run(c.ID, func(t *testing.T) { resolveCase(t, tabulated(t, buckets), c) })
		t.Run(c.ID+"/compiled", func(t *testing.T) {
			if r := throughPlan(t, buckets); r != nil {
				resolveCase(t, r, c)
			}
		})
		ran = append(ran, c.ID)
	}
	return ran
}

func resolveCase(t *testing.T, r *routing.Resolver, c resolutionCase) {
	t.Helper()
	matches, err := r.Resolve(c.Input, c.Peak)
	if kind(err) != c.Fails {
		t.Fatalf("failed with %q, want %q (%v)", kind(err), c.Fails, err)
	}
	var got []string
	for b := matches.Next(); b != nil; b = matches.Next() {
		got = append(got, b.ID)
	}
	if !slices.Equal(got, c.Want) {
		t.Errorf("input %d, peak %d: got %v, want %v", c.Input, c.Peak, got, c.Want)
	}
}

// kind is the name of a selection failure, empty for none.
func kind(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*policy.Error](err); ok {
		return e.Kind.String()
	}
	return "other: " + err.Error()
}

// tabulated orders and tabulates declared buckets as the compiler does.
func tabulated(t *testing.T, declared []bucketSpec) *routing.Resolver {
	t.Helper()
	var buckets []plan.Bucket
	for _, s := range declared {
		buckets = append(buckets, plan.Bucket{ID: s.ID, Rank: s.Rank, Min: s.Min, Max: s.Max, MaxContextTokens: s.Context})
	}
	slices.SortFunc(buckets, plan.CompareBuckets)
	table, ok := plan.Breakpoints(buckets, plan.MaxRuns)
	if !ok {
		t.Fatal("too many breakpoints")
	}
	r := &routing.Resolver{Model: "m"}
	for _, b := range buckets {
		live := &routing.Bucket{ID: b.ID, Rank: b.Rank, Max: atMost(b.Max), Context: atMost(b.MaxContextTokens)}
		if b.Min != nil {
			live.Min = *b.Min
		}
		r.Buckets = append(r.Buckets, live)
	}
	for _, p := range table {
		live := routing.Breakpoint{From: p.From}
		for _, run := range p.Runs {
			live.Runs = append(live.Runs, routing.Run(run))
		}
		r.Breakpoints = append(r.Breakpoints, live)
	}
	return r
}

func atMost(n *int64) routing.Bound {
	if n == nil {
		return routing.Bound{}
	}
	return routing.AtMost(*n)
}
