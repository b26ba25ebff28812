package fleet_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"shunt/runtime/fleet"
)

func newEngine(t *testing.T) *fleet.Engine {
	t.Helper()
	var f fleet.Fleet
	t.Cleanup(f.Close)
	apply(t, &f, "m", "a")
	return f.Engines("m")[0]
}

func lease(t *testing.T, e *fleet.Engine, at time.Time) *fleet.Lease {
	t.Helper()
	l, err := e.Lease(at)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func at(second int) time.Time { return time.Unix(1_000_000+int64(second), 0) }

func TestLeaseCountsOnce(t *testing.T) {
	e := newEngine(t)
	a, b := lease(t, e, time.Time{}), lease(t, e, at(0))
	if e.Inflight() != 2 || a.Engine() != e {
		t.Errorf("in flight %d, want 2", e.Inflight())
	}
	for range 3 {
		a.Release()
	}
	if e.Inflight() != 1 {
		t.Errorf("in flight %d after one lease was released thrice, want 1", e.Inflight())
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(b.Release)
	}
	all.Wait()
	if e.Inflight() != 0 {
		t.Errorf("in flight %d at the end, want 0", e.Inflight())
	}
}

func TestLeaseRecordsOnce(t *testing.T) {
	e := newEngine(t) // threshold 1
	l := lease(t, e, time.Time{})
	l.Record(fleet.Success)
	l.Record(fleet.Failure)
	l.Release()
	l.Record(fleet.Failure)
	if got := e.BreakerState(); got != fleet.Closed {
		t.Errorf("breaker is %s: a second outcome counted", got)
	}
}

func TestRecentFollowsReports(t *testing.T) {
	e := newEngine(t)
	report := func(second int) *fleet.Load {
		l := &fleet.Load{CapturedAt: at(second)}
		e.SetLoad(l)
		return l
	}
	expect := func(l *fleet.Load, want int64) {
		t.Helper()
		if got := l.Recent(); got != want {
			t.Errorf("recent %d, want %d", got, want)
		}
	}
	before, same, after := lease(t, e, at(9)), lease(t, e, at(10)), lease(t, e, at(11))
	plain := lease(t, e, time.Time{})
	defer plain.Release()

	first := report(10)
	expect(first, 2) // at or after the report, held now, and timestamped
	later := lease(t, e, at(12))
	late := lease(t, e, at(8)) // a clock read long before
	expect(first, 3)
	before.Release()
	late.Release()
	expect(first, 3)
	same.Release()
	same.Release()
	expect(first, 2)

	second := report(12)
	expect(second, 1)
	after.Release()
	expect(second, 1)
	expect(first, 2) // a replaced report no longer counts
	later.Release()
	expect(second, 0)

	e.SetLoad(nil)
	l := lease(t, e, at(13))
	third := report(13)
	expect(third, 1)
	l.Release()
	expect(third, 0)
}

// TestRecentAgainstModel holds the counter against a count over all slots,
// through random leases, releases and reports whose times are out of order.
func TestRecentAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	e := newEngine(t)
	held := make(map[*fleet.Lease]time.Time)
	var current *fleet.Load
	for step := range 5000 {
		switch rnd.IntN(5) {
		case 0:
			current = &fleet.Load{CapturedAt: at(step/10 + rnd.IntN(20) - 10)}
			e.SetLoad(current)
		case 1, 2:
			when := at(step/10 + rnd.IntN(20) - 10)
			held[lease(t, e, when)] = when
		default:
			for l := range held {
				l.Release()
				delete(held, l)
				break
			}
		}
		if current == nil {
			continue
		}
		var want int64
		for _, when := range held {
			if !when.Before(current.CapturedAt) {
				want++
			}
		}
		if got := current.Recent(); got != want {
			t.Fatalf("step %d: recent %d, want %d", step, got, want)
		}
	}
}

// TestConcurrentUse has everything happen at once; the race detector and the
// final counts judge.
func TestConcurrentUse(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	apply(t, &f, "m", "a b c")
	v := f.Watch(fleet.Selector{Model: "m", Role: fleet.Plain, All: true})
	defer v.Close()
	kept := find(t, &f, "m", "a")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 0))
			for n := range 500 {
				for _, e := range v.Engines() {
					l, err := e.Lease(at(n))
					if err != nil {
						continue
					}
					l.Record([]fleet.Outcome{fleet.Success, fleet.Failure, fleet.Backpressure}[rnd.IntN(3)])
					l.Release()
					_, _ = e.Inflight(), e.Load()
				}
			}
		})
	}
	all.Go(func() {
		for n := range 500 {
			kept.SetLoad(&fleet.Load{CapturedAt: at(n)})
		}
	})
	all.Go(func() {
		for n := range 100 {
			words := "a b c"
			if n%2 == 1 {
				words = "a c@-moved d"
			}
			if err := f.Apply("m", fleet.BreakerConfig{Threshold: 2, CoolDown: time.Microsecond}, specs(words)); err != nil {
				t.Error(err)
			}
			w := f.Watch(fleet.Selector{Model: "m", Role: fleet.Plain, IDs: []string{"a"}})
			w.Close()
		}
	})
	all.Wait()
	if kept.Inflight() != 0 || kept.Load().Recent() != 0 {
		t.Errorf("in flight %d, recent %d at the end", kept.Inflight(), kept.Load().Recent())
	}
}
