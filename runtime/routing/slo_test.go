package routing_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
)

// overlapping are buckets without bounds, all in one run.
func overlapping(n int, estimate func(i int) routing.Estimates) *routing.Resolver {
	r := &routing.Resolver{Model: "m", Breakpoints: []routing.Breakpoint{{From: 0, Runs: []routing.Run{{0, n - 1}}}}}
	for i := range n {
		r.Buckets = append(r.Buckets, &routing.Bucket{ID: string(rune('a' + i)), Estimates: estimate(i)})
	}
	return r
}

func walk(t testing.TB, r *routing.Resolver, input int64, targets routing.Targets) string {
	t.Helper()
	m, err := r.ResolveFor(input, 0, targets)
	if err != nil {
		t.Fatal(err)
	}
	var ids string
	for b := m.Next(); b != nil; b = m.Next() {
		ids += b.ID
	}
	return ids
}

// TestPassesAreAStableSort compares the walk with sorting by penalty.
func TestPassesAreAStableSort(t *testing.T) {
	modes := []routing.SLOMode{routing.SLODisabled, routing.SLOFirst, routing.BestEffort}
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		r := overlapping(1+rnd.IntN(12), func(int) routing.Estimates {
			return routing.Estimates{TTFTMS: uint64(rnd.IntN(4)), TPS: float64(rnd.IntN(4))}
		})
		r.SLO = routing.SLO{TTFT: modes[rnd.IntN(3)], TPS: modes[rnd.IntN(3)]}
		if n := len(r.Buckets); n > 4 { // a hole, as disjoint ranges make
			r.Breakpoints[0].Runs = []routing.Run{{0, 1}, {3, n - 1}}
		}
		targets := routing.Targets{
			TTFTMS: uint64(1 + rnd.IntN(3)), HasTTFT: rnd.IntN(3) > 0,
			TPS: float64(1 + rnd.IntN(3)), HasTPS: rnd.IntN(3) > 0,
		}
		if got, want := walk(t, r, 1, targets), sorted(r, targets); got != want {
			t.Fatalf("seed %d: got %s, want %s", seed, got, want)
		}
	}
}

func sorted(r *routing.Resolver, t routing.Targets) string {
	penalty := func(b *routing.Bucket) (n int) {
		match := b.Estimates.TTFTMS > 0 && b.Estimates.TTFTMS <= t.TTFTMS
		if t.HasTTFT && (r.SLO.TTFT == routing.SLOFirst && !match || r.SLO.TTFT == routing.BestEffort && match) {
			n++
		}
		match = b.Estimates.TPS > 0 && b.Estimates.TPS >= t.TPS
		if t.HasTPS && (r.SLO.TPS == routing.SLOFirst && !match || r.SLO.TPS == routing.BestEffort && match) {
			n++
		}
		return n
	}
	var fit []*routing.Bucket
	for _, run := range r.Breakpoints[0].Runs {
		fit = append(fit, r.Buckets[run[0]:run[1]+1]...)
	}
	slices.SortStableFunc(fit, func(a, b *routing.Bucket) int { return cmp.Compare(penalty(a), penalty(b)) })
	var ids string
	for _, b := range fit {
		ids += b.ID
	}
	return ids
}

func TestModesHaveNames(t *testing.T) {
	for _, m := range []routing.SLOMode{routing.SLODisabled, routing.SLOFirst, routing.BestEffort} {
		if got, ok := routing.ParseSLOMode(m.String()); !ok || got != m {
			t.Errorf("%s is read as %s", m, got)
		}
	}
	if _, ok := routing.ParseSLOMode("fast"); ok {
		t.Error("fast is a mode")
	}
}

func TestRouteFollowsTargets(t *testing.T) {
	r := overlapping(2, func(i int) routing.Estimates { return routing.Estimates{TTFTMS: uint64(200 - 100*i)} })
	r.SLO.TTFT = routing.SLOFirst
	f := new(fleet.Fleet)
	defer f.Close()
	if err := f.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{{ID: "e", URL: "http://e", Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	for _, b := range r.Buckets {
		v := f.Watch(fleet.Selector{Model: "m", Role: fleet.Plain, All: true})
		defer v.Close()
		b.Groups = routing.PlainGroups{Plain: &routing.Group{Stage: fleet.Plain, Engines: v, Policy: &policy.Random{}}}
	}
	routes := func(targets routing.Targets, bucket, fates string, penalties ...uint8) {
		t.Helper()
		var d routing.Decision
		req := routing.Request{Request: policy.Request{Model: "m", Input: 1}, Targets: targets, Decision: &d}
		s, err := r.Route(t.Context(), &req)
		if err != nil || s.Bucket.ID != bucket {
			t.Fatalf("got %+v, %v", s, err)
		}
		var got []uint8
		ids := ""
		for _, b := range d.Buckets {
			got, ids = append(got, b.Penalty), ids+b.ID+":"+string(b.Fate)+" "
		}
		if !slices.Equal(got, penalties) || ids != fates {
			t.Errorf("got %s%v, want %s%v", ids, got, fates, penalties)
		}
		if (d.TTFTMS != nil) != targets.HasTTFT || d.TPS != nil {
			t.Errorf("targets %v, %v", d.TTFTMS, d.TPS)
		}
	}
	routes(routing.Targets{}, "a", "a:picked b:not_tried ", 0, 0)
	routes(routing.Targets{TTFTMS: 100, HasTTFT: true}, "b", "b:picked a:not_tried ", 0, 1)
	routes(routing.Targets{TTFTMS: 50, HasTTFT: true}, "a", "a:picked b:not_tried ", 1, 1)
}

func TestWalkAllocatesNothing(t *testing.T) {
	r := overlapping(26, func(i int) routing.Estimates { return routing.Estimates{TTFTMS: uint64(i)} })
	r.SLO = routing.SLO{TTFT: routing.SLOFirst, TPS: routing.BestEffort}
	targets := routing.Targets{TTFTMS: 7, HasTTFT: true, TPS: 3, HasTPS: true}
	if n := testing.AllocsPerRun(100, func() {
		m, err := r.ResolveFor(1, 0, targets)
		for b := m.Next(); b != nil; b = m.Next() {
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCheckNamesBucketAndStage(t *testing.T) {
	cached, err := policy.NewCacheAware(policy.CacheOptions{
		Prefixes: &policy.Indexed{}, Fallback: &policy.Random{},
		Tuning: policy.CacheTuning{CandidateMin: 1, CandidateMax: 1, GuardFactor: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	pd := func(prefill, decode policy.Policy) *routing.Bucket {
		return &routing.Bucket{ID: "long", Groups: routing.PDGroups{
			Prefill: &routing.Group{Stage: fleet.Prefill, Policy: prefill},
			Decode:  &routing.Group{Stage: fleet.Decode, Policy: decode},
		}}
	}
	good := &routing.Resolver{Buckets: []*routing.Bucket{pd(cached, &policy.Random{})}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	bad := &routing.Resolver{Buckets: []*routing.Bucket{pd(cached, &policy.Random{}), pd(cached, &policy.Sticky{Fallback: cached})}}
	const want = "invalid_configuration (decode): bucket long: cache_aware cannot pick for the decode stage, which computes no prompt"
	if err := bad.Check(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
