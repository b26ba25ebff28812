package routing_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/state/load"
)

// hot is a model of two PD-free buckets over one fleet of plain engines, all of
// which have reported, behind the real views and power of two.
type hot struct {
	fleet    fleet.Fleet
	table    load.Table
	resolver *routing.Resolver
	specs    []fleet.Spec
}

func newHot(t testing.TB, n int) *hot {
	t.Helper()
	h := new(hot)
	t.Cleanup(h.fleet.Close)
	for i := range n {
		id := fmt.Sprintf("engine-%05d", i)
		h.specs = append(h.specs, fleet.Spec{ID: id, URL: "http://" + id, Role: fleet.Plain})
	}
	h.apply(t, h.specs)
	view := h.fleet.Watch(fleet.Selector{Model: "m", Role: fleet.Plain, All: true})
	t.Cleanup(view.Close)
	limits := policy.Limits{Running: policy.Max(1_000_000), KVTokens: policy.Max(1 << 50), Inflight: policy.Max(1_000_000)}
	declared := []bounds{{id: "short", max: 4096, context: 8192}, {id: "long", rank: 1, max: 131072, context: 131072}}
	h.resolver = newResolver(declared, func(string) routing.Groups {
		return routing.PlainGroups{Plain: &routing.Group{
			Stage: fleet.Plain, Engines: view, Policy: &policy.PowerOfTwo{Loads: load.Reader{Freshness: time.Hour}, Admission: limits},
		}}
	})
	for i, e := range h.fleet.Engines("m") {
		h.report(e, uint64(i))
	}
	return h
}

func (h *hot) apply(t testing.TB, specs []fleet.Spec) {
	t.Helper()
	if err := h.fleet.Apply("m", fleet.BreakerConfig{Threshold: 3, CoolDown: 10 * time.Microsecond}, specs); err != nil {
		t.Error(err)
	}
}

func (h *hot) report(e *fleet.Engine, n uint64) {
	for i := range uint64(2) { // two reports give a rate
		h.table.Put(e, 0, load.Report{Running: n % 7, Waiting: n % 5, Used: n % 100, Capacity: 1000, Extension: &load.Extension{
			WaitingUncached: n % 11, Total: n % 100, MaxRunning: 100, PrefillTokens: n + i, PrefillBusyUS: n + i,
		}}, time.Now())
	}
}

// TestRouteAllocatesNothing from Resolve to the checked pick.
func TestRouteAllocatesNothing(t *testing.T) {
	for _, n := range []int{2, 64, 1000, 10000} {
		h := newHot(t, n)
		req := &routing.Request{Request: policy.Request{Model: "m", Input: 5000, Peak: 6000}}
		ctx := t.Context()
		allocs := testing.AllocsPerRun(200, func() {
			if _, err := h.resolver.Route(ctx, req); err != nil {
				t.Error(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%d engines: %v allocations a request", n, allocs)
		}
	}
}

// BenchmarkRoute is Resolve and Pick of power of two; the time must not depend
// on the number of engines.
func BenchmarkRoute(b *testing.B) {
	for _, n := range []int{2, 10, 64, 1000, 10000} {
		b.Run(fmt.Sprintf("engines=%d", n), func(b *testing.B) {
			h := newHot(b, n)
			req := &routing.Request{Request: policy.Request{Model: "m", Input: 3000, Peak: 4000}}
			ctx := b.Context()
			b.Cleanup(func() { b.ReportMetric(1000, "budget-ns") })
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.resolver.Route(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRouteTraced is the same with a decision to fill.
func BenchmarkRouteTraced(b *testing.B) {
	h := newHot(b, 64)
	req := &routing.Request{Request: policy.Request{Model: "m", Input: 3000, Peak: 4000}, Decision: new(routing.Decision)}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.resolver.Route(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRouteParallel is many requests at once.
func BenchmarkRouteParallel(b *testing.B) {
	h := newHot(b, 1000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		req := &routing.Request{Request: policy.Request{Model: "m", Input: 3000, Peak: 4000}}
		for pb.Next() {
			if _, err := h.resolver.Route(b.Context(), req); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkResolve is the search alone, over many buckets.
func BenchmarkResolve(b *testing.B) {
	for _, n := range []int{2, 200, 10000} {
		b.Run(fmt.Sprintf("buckets=%d", n), func(b *testing.B) {
			var r routing.Resolver
			for i := range int64(n) {
				r.Buckets = append(r.Buckets, &routing.Bucket{ID: fmt.Sprint(i), Min: i * 10, Max: routing.AtMost(i*10 + 9)})
				r.Breakpoints = append(r.Breakpoints, routing.Breakpoint{From: i * 10, Runs: []routing.Run{{int(i), int(i)}}})
			}
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				m, err := r.Resolve(i%int64(10*n), 0)
				if err != nil || m.Next() == nil {
					b.Fatal("no bucket")
				}
			}
		})
	}
}

// TestEverythingAtOnce routes while engines come and go, report, fail and
// recover; the race detector judges, and no request is left counted.
func TestEverythingAtOnce(t *testing.T) {
	h := newHot(t, 20)
	var routers, others sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		routers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for range 1000 {
				req := &routing.Request{Request: policy.Request{Model: "m", Input: rnd.Int64N(9000) + 1}}
				if i%2 == 0 {
					req.Decision = new(routing.Decision)
				}
				s, err := h.resolver.Route(t.Context(), req)
				if e, ok := errors.AsType[*policy.Error](err); ok && e.Kind == policy.NoCandidates {
					continue // all breakers are open right now
				}
				if err != nil {
					t.Error(err)
					return
				}
				l, err := s.Plain.Engine.Lease(time.Now())
				if err != nil {
					continue // its breaker opened after the pick
				}
				if rnd.IntN(6) == 0 {
					l.Record(fleet.Failure)
				} else {
					l.Record(fleet.Success)
				}
				l.Release()
			}
		})
	}
	repeat := func(f func(n int)) {
		others.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
					f(n)
				}
			}
		})
	}
	repeat(func(n int) {
		for _, e := range h.fleet.Engines("m") {
			h.report(e, uint64(n))
		}
	})
	repeat(func(n int) { h.apply(t, h.specs[:10+n%11]) })
	routers.Wait()
	close(done)
	others.Wait()
	for _, e := range h.fleet.Engines("m") {
		if n := e.Inflight(); n != 0 {
			t.Errorf("%s has %d requests in flight", e.ID(), n)
		}
	}
}
