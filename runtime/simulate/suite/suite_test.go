package suite

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/runtime/routing"
	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

// candidatesOf lists the buckets that take an input and a peak, by definition.
func candidatesOf(m *plan.Model, input, peak int64) (out []string) {
	for i := range m.Buckets {
		b := &m.Buckets[i]
		if (b.Min == nil || input >= *b.Min) && (b.Max == nil || input <= *b.Max) &&
			(b.MaxContextTokens == nil || max(input, peak) <= *b.MaxContextTokens) {
			out = append(out, b.ID)
		}
	}
	return out
}

// TestPointsAreEnough: wherever the candidates of a length and the next differ,
// both are decided; also where an output of fixed size leads to the difference.
func TestPointsAreEnough(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	const longest = 40
	bound := func() *int64 {
		if random.IntN(3) == 0 {
			return nil
		}
		return new(random.Int64N(longest))
	}
	for range 500 {
		m := &plan.Model{ID: "m"}
		for i := range 1 + random.IntN(5) {
			m.Buckets = append(m.Buckets, plan.Bucket{ID: fmt.Sprint(i), Min: bound(), Max: bound(), MaxContextTokens: bound()})
		}
		r := Row{From: 1 + random.Int64N(10)}
		if random.IntN(2) == 0 {
			r.To = r.From + random.Int64N(longest)
		}
		var request Request
		output := bound()
		if output != nil && random.IntN(2) == 0 {
			request.MaxOutputTokens = output
		} else {
			r.MaxOutputTokens = output
		}
		got := points(m, &request, &r)
		if !slices.IsSorted(got) || got[0] != r.From || r.To != 0 && got[len(got)-1] != r.To {
			t.Fatalf("from %d to %d: points %v", r.From, r.To, got)
		}
		at := func(n int64) string {
			peak := int64(0)
			if output != nil {
				peak = n + *output
			}
			return fmt.Sprint(candidatesOf(m, n, peak))
		}
		to := r.To
		if to == 0 {
			to = 2 * longest
		}
		for n := r.From; n < to; n++ {
			if at(n) == at(n+1) {
				continue
			}
			for _, point := range [...]int64{n, n + 1} {
				if !slices.Contains(got, point) {
					t.Fatalf("from %d to %d, output %v: length %d is not among %v, although the candidates change", r.From, r.To, output, point, got)
				}
			}
		}
	}
}

// body is a plan of one bucket with two engines.
func body() *plan.Body {
	return &plan.Body{
		State: plan.State{Load: plan.LoadState{FreshnessMS: 5000}},
		Models: []plan.Model{{
			ID: "m", Breaker: plan.Breaker{Threshold: 3, CoolDownMS: 30000},
			Discovery: plan.Discovery{Static: &plan.StaticDiscovery{Engines: []plan.Engine{
				{ID: "a", URL: "http://a", Role: plan.Plain}, {ID: "b", URL: "http://b", Role: plan.Plain}}}},
			Buckets: []plan.Bucket{{ID: "x", Max: new(int64(100)), Groups: plan.Groups{Plain: &plan.Group{Policy: plan.Policy{
				Type: plan.RoundRobin, Admission: plan.Admission{MaxInflightRequests: new(int64(2))}}}}}},
			Breakpoints: []plan.Breakpoint{{From: 0, Runs: []plan.Run{{0, 0}}}, {From: 101, Runs: []plan.Run{}}},
		}},
	}
}

// TestEveryExpectationCanFail has one expectation of each kind that holds, and
// one that does not.
func TestEveryExpectationCanFail(t *testing.T) {
	f := func(request, holds, fails string) {
		t.Helper()
		for _, expect := range [...]string{holds, fails} {
			file, err := Decode([]byte(`{"tests": [{"name": "t", "request": ` + request + `, "repeat": 4, "expect": ` + expect + `}]}`))
			if err != nil {
				t.Fatal(err)
			}
			if p := Check(file, body()); len(p) > 0 {
				t.Fatalf("%s: %+v", expect, p)
			}
			got, err := Run(t.Context(), file, body(), func(string) bool { return true }, NewCoverage(body()))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0].Passed() != (expect == holds) || got[0].Decisions != 4 {
				t.Errorf("%s: %+v", expect, got)
			}
		}
	}
	const ok, long, unknown = `{"input_tokens": 1}`, `{"input_tokens": 101}`, `{"model": "n", "input_tokens": 1}`
	full := `{"input_tokens": 1}, "world": {"engines": [{"id": "a", "inflight": 2}, {"id": "b", "inflight": 2}]}`
	f(ok, `{"bucket": "x"}`, `{"error": "no_candidates"}`)
	f(long, `{"error": "no_matching_bucket"}`, `{"bucket": "x"}`)
	f(ok, `{"buckets": ["x"]}`, `{"buckets": []}`)
	f(long, `{"fates": {"x": "above_max"}}`, `{"fates": {"x": "picked"}}`)
	f(ok, `{"plain": ["a", "b"]}`, `{"plain": "a"}`) // they alternate
	f(ok, `{"reason": "round_robin"}`, `{"reason": "random"}`)
	f(long, `{"status": 400}`, `{"status": 200}`)
	f(unknown, `{"error": "model_not_found", "status": 404}`, `{"status": 400}`)
	f(long, `{"code": "bad_request"}`, `{"code": "internal_error"}`)
	f(full, `{"stage": "plain"}`, `{"stage": "decode"}`)
	f(full, `{"error": "no_admissible_engine"}`, `{"rejections": []}`)
	f(ok, `{"rejections": []}`, `{"rejections": [{"engine": "a", "limit": "max_inflight_requests"}]}`)
	f(ok, `{"distribution": {"a": {"min": 2, "max": 2}}}`, `{"distribution": {"a": {"min": 3}}}`)
}

// TestCoverage reaches one thing after the other.
func TestCoverage(t *testing.T) {
	c := NewCoverage(body())
	f := func(request string, percent float64, missed string) {
		t.Helper()
		file, err := Decode([]byte(`{"tests": [{"name": "t", "request": ` + request + `, "expect": {"status": 200}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), file, body(), func(string) bool { return true }, c); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, i := range c.Missed() {
			left = append(left, strings.TrimPrefix(i.String(), "m, ")+" ("+i.Kind+")")
		}
		if got := strings.Join(left, "; "); got != missed || c.Percent() != percent {
			t.Errorf("%s: %v%%, missed %q, want %v%%, %q", request, c.Percent(), got, percent, missed)
		}
	}
	if c.Percent() != 0 {
		t.Errorf("%v%% before anything was decided", c.Percent())
	}
	f(`{"input_tokens": 1}`, 40, "x: above_max (buckets skipped); x: failed (buckets skipped); x: max_inflight_requests (admission limits)")
	f(`{"input_tokens": 101}`, 60, "x: failed (buckets skipped); x: max_inflight_requests (admission limits)")
	f(`{"input_tokens": 1}, "world": {"engines": [{"id": "a", "inflight": 2}]}`, 100, "")
}

// TestCoverageOfTheStore: what follows from a store that is down counts where it
// can be down, and in the way that is configured.
func TestCoverageOfTheStore(t *testing.T) {
	f := func(kind plan.PolicyType, store *plan.AffinityState, want string) {
		t.Helper()
		b := body()
		b.Models[0].Buckets[0].Groups.Plain.Policy = plan.Policy{Type: kind}
		switch kind {
		case plan.SessionAware:
			b.Models[0].Buckets[0].Groups.Plain.Policy.SessionAware = &plan.SessionAwareTuning{Fallback: plan.FallbackPolicy{Type: plan.RoundRobin}}
		case plan.Sticky:
			b.Models[0].Buckets[0].Groups.Plain.Policy.Sticky = &plan.StickyTuning{Fallback: plan.FallbackPolicy{Type: plan.RoundRobin}}
		}
		b.State.Affinity = store
		reached := NewCoverage(b)
		file, err := Decode([]byte(`{"tests": [{"name": "t", "steps": [
			{"request": {"input_tokens": 1, "session_key": "s", "routing_key": "k"}, "change": {"bindings_unavailable": true}},
			{"change": {"bindings_unavailable": false, "bindings": [{"session_key": "s", "engine": "a"}, {"routing_key": "k", "engine": "a"}]}},
			{"change": {"engines": [{"id": "a", "healthy": false}]}, "expect": {"plain": "b"}},
			{"request": {"input_tokens": 1}},
			{"expect": {"plain": "b"}}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if p := Check(file, b); len(p) > 0 {
			t.Fatalf("%+v", p)
		}
		// The last step has the request of the one before, which has no key.
		got, err := Run(t.Context(), file, b, func(string) bool { return true }, reached)
		if err != nil || len(got) != 1 || !got[0].Passed() || !strings.Contains(got[0].Steps[4].Outcome, "(no_") {
			t.Fatalf("%+v, %v", got, err)
		}
		var outcomes []string
		for n, i := range reached.items {
			if i.Kind == KindReason && reached.reached[n] {
				outcomes = append(outcomes, i.What)
			}
		}
		if got := strings.Join(outcomes, " "); got != want {
			t.Errorf("%s: reached %s, want %s", kind, got, want)
		}
	}
	redis := func(on plan.OnFailure) *plan.AffinityState {
		return &plan.AffinityState{Redis: &plan.RedisAffinity{OnFailure: on}}
	}
	f(plan.SessionAware, nil, "session_primary assigned no_session")
	f(plan.SessionAware, redis(plan.FailReject), "session_primary assigned no_session state_unavailable")
	f(plan.Sticky, &plan.AffinityState{Memory: new(plan.MemoryAffinity)}, "sticky_hit remap no_routing_key")
	f(plan.Sticky, redis("fallback"), "sticky_hit remap no_routing_key affinity_unavailable")
}

// TestDecodeReadsBothForms: a number or a list, a name or a list.
func TestDecodeReadsBothForms(t *testing.T) {
	f := func(data string, want Lengths) {
		t.Helper()
		var got Lengths
		if err := json.Unmarshal([]byte(data), &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", data, got, err)
		}
	}
	f("5", Lengths{5})
	f("[5, 6]", Lengths{5, 6})
	var n Names
	if err := json.Unmarshal([]byte(`"a"`), &n); err != nil || !slices.Equal(n, Names{"a"}) {
		t.Errorf("%v, %v", n, err)
	}
}

// TestRangesAreWhole decides every length of a range with the trace of every
// bucket, and holds that against the points at which the suite decides: candidates,
// fates and coverage are the same.
func TestRangesAreWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	const longest = 40
	fates := make(map[routing.Fate]int)
	for range 150 {
		b := randomBody(t, random, longest)
		r := Row{From: 1 + random.Int64N(10), Status: 200}
		if random.IntN(2) == 0 {
			r.To = r.From + random.Int64N(longest)
		}
		if random.IntN(2) == 0 {
			r.MaxOutputTokens = new(random.Int64N(longest))
		}
		one := part{request: &Request{TTFTMS: new(uint64(1 + random.Uint64N(3)))}, row: &r}
		sim, err := simulate.New(b, simulate.World{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]bool)
		to := r.To
		if to == 0 {
			to = 3 * longest
		}
		for n := r.From; n <= to; n++ {
			request, _, err := one.facts(t.Context(), b, n)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := sim.Decide(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			tried, err := sim.DecideTried(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			o := outcome{d: tried, sim: sim, request: &request, index: make(map[string]int)}
			for i := range b.Models[0].Buckets {
				o.index[b.Models[0].Buckets[i].ID] = i
			}
			var takes []string
			for _, k := range whole.Buckets {
				fates[k.Fate]++
				want[k.ID+string(k.Fate)] = true
				if got := o.fate(k.ID); got != string(k.Fate) {
					t.Fatalf("input %d, bucket %s: %s, want %s", n, k.ID, got, k.Fate)
				}
				if k.Bound == nil {
					takes = append(takes, k.ID)
				}
			}
			if got := o.candidates(); !slices.Equal(got, takes) {
				t.Fatalf("input %d: candidates %v, want %v", n, got, takes)
			}
		}
		sim.Close()
		reached := NewCoverage(b)
		f := &File{Tests: []Test{{Name: "t", Request: one.request, Lengths: []Row{r}}}}
		if p := Check(f, b); len(p) > 0 {
			t.Fatal(p)
		}
		if _, err := Run(t.Context(), f, b, func(string) bool { return true }, reached); err != nil {
			t.Fatal(err)
		}
		for n, i := range reached.items {
			if i.Kind == KindSkip && reached.reached[n] != want[i.Place+i.What] {
				t.Fatalf("from %d to %d, %+v: reached %v", r.From, r.To, i, reached.reached[n])
			}
		}
	}
	for _, f := range []routing.Fate{routing.Picked, routing.Failed, routing.NotTried, routing.BelowMin, routing.AboveMax, routing.AboveContext} {
		if fates[f] == 0 {
			t.Errorf("nothing was %s", f)
		}
	}
}

// randomBody is a plan of some buckets, of which one may have no engine.
func randomBody(t *testing.T, random *rand.Rand, longest int64) *plan.Body {
	t.Helper()
	b := body()
	m := &b.Models[0]
	m.Buckets, m.SLO = nil, &plan.SLO{TTFT: plan.SLOFirst, TPS: plan.SLODisabled}
	for i := range 1 + random.IntN(5) {
		k := plan.Bucket{ID: fmt.Sprint(i), TTFTMS: new(1 + random.Int64N(3)), Groups: plan.Groups{Plain: &plan.Group{Policy: plan.Policy{Type: plan.RoundRobin}}}}
		if random.IntN(3) > 0 {
			k.Max = new(1 + random.Int64N(longest))
			k.Min = new(random.Int64N(*k.Max + 1))
		}
		if random.IntN(2) == 0 {
			k.MaxContextTokens = new(1 + random.Int64N(2*longest))
		}
		if random.IntN(4) == 0 {
			k.Groups.Plain.WorkerIDs = &[]string{}
		}
		m.Buckets = append(m.Buckets, k)
	}
	var ok bool
	if m.Breakpoints, ok = plan.Breakpoints(m.Buckets, plan.MaxRuns); !ok {
		t.Fatal("too many runs")
	}
	return b
}

// BenchmarkRange decides all lengths of a plan of 10,000 buckets.
func BenchmarkRange(b *testing.B) {
	p := body()
	m := &p.Models[0]
	m.Buckets = nil
	const n = 10_000
	for i := range int64(n) {
		m.Buckets = append(m.Buckets, plan.Bucket{ID: fmt.Sprint(i), Min: new(100*i + 1), Max: new(100*i + 100),
			Groups: plan.Groups{Plain: &plan.Group{Policy: plan.Policy{Type: plan.RoundRobin}}}})
	}
	m.Breakpoints, _ = plan.Breakpoints(m.Buckets, plan.MaxRuns)
	f := &File{Tests: []Test{{Name: "t", Request: new(Request), Lengths: []Row{{From: 1, To: 100 * n, Status: 200}}}}}
	for b.Loop() {
		got, err := Run(b.Context(), f, p, func(string) bool { return true }, NewCoverage(p))
		if err != nil || len(got) != 1 || !got[0].Passed() || got[0].Decisions != 2*n {
			b.Fatalf("%+v, %v", got, err)
		}
	}
}
