package load_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

func engines(t testing.TB, ids ...string) []*fleet.Engine {
	t.Helper()
	var f fleet.Fleet
	t.Cleanup(f.Close)
	var specs []fleet.Spec
	for _, id := range ids {
		specs = append(specs, fleet.Spec{ID: id, URL: "http://" + id, Role: fleet.Plain})
	}
	if err := f.Apply("m", fleet.BreakerConfig{}, specs); err != nil {
		t.Fatal(err)
	}
	return f.Engines("m")
}

func at(d time.Duration) time.Time { return time.Unix(1_000_000, 0).Add(d) }

// native is a complete report with the given prefill counters.
func native(tokens, busyUS, pending uint64) load.Report {
	return load.Report{Running: 1, Waiting: 2, Used: 3, Capacity: 100, Extension: &load.Extension{
		WaitingUncached: pending, Total: 4, MaxRunning: 5, PrefillTokens: tokens, PrefillBusyUS: busyUS,
	}}
}

func TestSums(t *testing.T) {
	e := engines(t, "a")[0]
	var table load.Table
	table.Put(e, 0, native(0, 0, 6), at(time.Second))
	table.Put(e, 7, native(0, 0, 6), at(0))
	l := e.Load()
	if l == nil || !l.Native || l.HasQueue {
		t.Fatalf("load is %+v", l)
	}
	got := [...]uint64{l.Running, l.Waiting, l.Used, l.Capacity, l.WaitingUncached, l.Total, l.MaxRunning}
	if want := [...]uint64{2, 4, 6, 200, 12, 8, 10}; got != want {
		t.Errorf("sums %v, want %v", got, want)
	}
	if !l.CapturedAt.Equal(at(0)) {
		t.Errorf("captured at %v, want the oldest rank's time", l.CapturedAt)
	}
}

func TestSumsSaturate(t *testing.T) {
	e := engines(t, "a")[0]
	var table load.Table
	for rank := range 2 {
		rep := native(0, 0, math.MaxUint64)
		rep.Running, rep.Used, rep.Capacity = math.MaxUint64, math.MaxUint64, math.MaxUint64
		table.Put(e, rank, rep, at(0))
	}
	l := e.Load()
	for _, n := range []uint64{l.Running, l.Used, l.Capacity, l.WaitingUncached} {
		if n != math.MaxUint64 {
			t.Errorf("a sum wrapped to %d", n)
		}
	}
}

// TestNativeNeedsAllOfIt: one rank without the native part makes the sum basic.
func TestNativeNeedsAllOfIt(t *testing.T) {
	f := func(what string, change func(*load.Report), want bool) {
		t.Helper()
		e := engines(t, "a")[0]
		var table load.Table
		rep := native(0, 0, 0)
		change(&rep)
		table.Put(e, 0, native(0, 0, 0), at(0))
		table.Put(e, 1, rep, at(0))
		l := e.Load()
		if l == nil || l.Native != want || l.Running != 2 {
			t.Errorf("%s: load is %+v, want native = %t", what, l, want)
		}
	}
	f("complete", func(*load.Report) {}, true)
	f("no extension", func(r *load.Report) { r.Extension = nil }, false)
	f("no capacity", func(r *load.Report) { r.Capacity = 0 }, false)
	f("no slots", func(r *load.Report) { r.Extension.MaxRunning = 0 }, false)
}

// TestQueueEstimate: reports are "tokens busy", and the estimate is for 1,000
// pending tokens.
func TestQueueEstimate(t *testing.T) {
	f := func(want float64, reports ...[2]uint64) {
		t.Helper()
		e := engines(t, "a")[0]
		var table load.Table
		for i, r := range reports {
			table.Put(e, 0, native(r[0], r[1], 1000), at(time.Duration(i)*time.Second))
		}
		l := e.Load()
		if l.HasQueue != (want >= 0) || l.HasQueue && l.QueueMS != want {
			t.Errorf("%v: estimate %v, %t, want %v", reports, l.QueueMS, l.HasQueue, want)
		}
	}
	const none = -1
	second := uint64(time.Second / time.Microsecond)
	f(none, [2]uint64{100, 100})
	f(1000, [2]uint64{0, 0}, [2]uint64{1000, second})
	f(500, [2]uint64{0, 0}, [2]uint64{1000, second}, [2]uint64{3000, 2 * second})
	f(1000, [2]uint64{0, 0}, [2]uint64{1000, second}, [2]uint64{1000, second}) // an idle heartbeat keeps it
	f(none, [2]uint64{0, 0}, [2]uint64{1000, second}, [2]uint64{2000, second}) // tokens without time
	f(none, [2]uint64{0, 0}, [2]uint64{1000, second}, [2]uint64{1000, 2 * second})
	f(none, [2]uint64{0, 0}, [2]uint64{1000, second}, [2]uint64{10, 10}) // restarted
	f(1000, [2]uint64{0, 0}, [2]uint64{1000, second}, [2]uint64{10, 10}, [2]uint64{1010, 10 + second})
}

func TestEstimateIsLostWithTheExtension(t *testing.T) {
	e := engines(t, "a")[0]
	var table load.Table
	basic := load.Report{Running: 1, Capacity: 100}
	table.Put(e, 0, native(0, 0, 1000), at(0))
	table.Put(e, 0, native(1000, 1000, 1000), at(0))
	table.Put(e, 0, basic, at(0))
	if l := e.Load(); l.Native || l.HasQueue {
		t.Errorf("a basic report left %+v", l)
	}
	table.Put(e, 0, native(2000, 2000, 1000), at(0))
	if l := e.Load(); !l.Native || l.HasQueue {
		t.Errorf("a rate was made from reports that were not adjacent: %+v", l)
	}
}

// TestEstimateNeedsEveryRank and sums the rates.
func TestEstimateNeedsEveryRank(t *testing.T) {
	e := engines(t, "a")[0]
	var table load.Table
	table.Put(e, 0, native(0, 0, 1000), at(0))
	table.Put(e, 1, native(0, 0, 1000), at(0))
	table.Put(e, 0, native(3000, 1_000_000, 1000), at(0))
	if e.Load().HasQueue {
		t.Error("an estimate although one rank has no rate")
	}
	table.Put(e, 1, native(1000, 1_000_000, 1000), at(0))
	if l := e.Load(); !l.HasQueue || l.QueueMS != 500 {
		t.Errorf("estimate %v, %t, want 500 ms", l.QueueMS, l.HasQueue)
	}
}

func TestForget(t *testing.T) {
	both := engines(t, "a", "b")
	var table load.Table
	table.Expect(both[0], 0)
	table.Put(both[0], 0, native(0, 0, 0), at(0))
	table.Put(both[1], 0, native(0, 0, 0), at(0))
	table.Forget(both[0])
	if both[0].Load() != nil || both[1].Load() == nil || table.Engines() != 1 {
		t.Error("forgetting one engine")
	}
	table.Put(both[0], 3, native(0, 0, 0), at(0))
	if both[0].Load() == nil {
		t.Error("the expectation of a forgotten engine is still there")
	}
	table.Forget(both[0])
	table.Forget(both[0])
}

func TestObserve(t *testing.T) {
	e := engines(t, "a")[0]
	var table load.Table
	table.Put(e, 0, native(0, 0, 0), at(0))
	lease, err := e.Lease(at(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	f := func(r load.Reader, after time.Duration, known bool) {
		t.Helper()
		o := r.Observe(e, at(after))
		if (o.Load != nil) != known || o.Engine != e || o.Inflight != 1 {
			t.Errorf("after %s: %+v, want known = %t", after, o, known)
		}
		if known && o.Recent != 1 {
			t.Errorf("after %s: recent %d, want 1", after, o.Recent)
		}
		if known != (o.Native() != nil) {
			t.Errorf("after %s: native part of a native report", after)
		}
	}
	f(load.Reader{}, 5*time.Second, true)
	f(load.Reader{}, 5*time.Second+1, false)
	f(load.Reader{}, -time.Hour, true)
	f(load.Reader{Freshness: time.Millisecond}, time.Millisecond, true)
	f(load.Reader{Freshness: time.Millisecond}, 2*time.Millisecond, false)

	if (load.Reader{}).Time().IsZero() {
		t.Error("the zero reader has no clock")
	}
	if got := (load.Reader{Now: func() time.Time { return at(7) }}).Time(); !got.Equal(at(7)) {
		t.Error("the reader ignores its clock")
	}
}

// TestTableConcurrently has ranks report at once while others read.
func TestTableConcurrently(t *testing.T) {
	both := engines(t, "a", "b")
	var table load.Table
	var all sync.WaitGroup
	for rank := range 4 {
		all.Go(func() {
			for n := range uint64(200) {
				for _, e := range both {
					table.Put(e, rank, native(n, n, n), at(time.Duration(n)))
					o := load.Reader{}.Observe(e, at(0))
					if o.Load != nil && o.Load.Running > 4 {
						t.Errorf("running %d with 4 ranks of 1", o.Load.Running)
					}
				}
			}
		})
	}
	all.Wait()
	if got := both[0].Load().Running; got != 4 {
		t.Errorf("running %d, want 4", got)
	}
}
