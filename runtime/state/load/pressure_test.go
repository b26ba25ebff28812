package load_test

import (
	"math"
	"testing"
	"testing/quick"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// reported observes an engine whose aggregate is native.
func reported(running, waiting, pending, used, capacity uint64, inflight int64) load.Observation {
	return load.Observation{Inflight: inflight, Load: &fleet.Load{
		Native: true, Running: running, Waiting: waiting, WaitingUncached: pending, Used: used, Capacity: capacity,
	}}
}

func withQueue(o load.Observation, ms float64) load.Observation {
	o.Load.QueueMS, o.Load.HasQueue = ms, true
	return o
}

// TestKeys checks every key of every order: the left engine is better by it,
// and worse by all keys that come later.
func TestKeys(t *testing.T) {
	f := func(stage fleet.Role, by load.Source, l, r load.Observation) {
		t.Helper()
		if got := load.Compare(stage, by, &l, &r); got != -1 {
			t.Errorf("%s by %s: got %d, want -1", stage, by, got)
		}
		if got := load.Compare(stage, by, &r, &l); got != 1 {
			t.Errorf("%s by %s reversed: got %d, want 1", stage, by, got)
		}
		if got := load.Compare(stage, by, &l, &l); got != 0 {
			t.Errorf("%s by %s with itself: got %d", stage, by, got)
		}
	}
	for _, stage := range []fleet.Role{fleet.Plain, fleet.Prefill} {
		f(stage, load.QueueTime, withQueue(reported(9, 9, 9, 9, 10, 9), 1), withQueue(reported(0, 0, 0, 0, 10, 0), 2))
		f(stage, load.QueueTime, withQueue(reported(9, 9, 1, 9, 10, 9), 1), withQueue(reported(0, 0, 2, 0, 10, 0), 1))
		f(stage, load.Native, withQueue(reported(9, 9, 1, 9, 10, 9), 5), withQueue(reported(0, 0, 2, 0, 10, 0), 1))
		f(stage, load.Native, reported(9, 1, 1, 9, 10, 9), reported(0, 2, 1, 0, 10, 0))
		f(stage, load.Native, reported(1, 1, 1, 9, 10, 9), reported(2, 1, 1, 0, 10, 0))
		f(stage, load.Native, reported(1, 1, 1, 9, 10, 1), reported(1, 1, 1, 0, 10, 2))
	}
	f(fleet.Decode, load.Native, reported(9, 1, 9, 9, 10, 9), reported(0, 2, 0, 0, 10, 0))
	f(fleet.Decode, load.Native, reported(1, 1, 9, 9, 10, 9), reported(2, 1, 0, 0, 10, 0))
	f(fleet.Decode, load.Native, reported(1, 1, 9, 50, 1000, 9), reported(1, 1, 0, 10, 100, 0))
	f(fleet.Decode, load.Native, reported(1, 1, 9, 10, 100, 9), reported(1, 1, 0, 20, 200, 0))
	f(fleet.Decode, load.Native, reported(1, 1, 9, 10, 100, 1), reported(1, 1, 0, 10, 100, 2))
	f(fleet.Decode, load.Native, reported(1, 1, 9, math.MaxUint64-1, math.MaxUint64, 1), reported(1, 1, 0, math.MaxUint64-1, math.MaxUint64-1, 0))
	f(fleet.Plain, load.Inflight, reported(9, 9, 9, 9, 10, 1), reported(0, 0, 0, 0, 10, 2))
}

func TestBest(t *testing.T) {
	f := func(o load.Observation, prefill, decode load.Source) {
		t.Helper()
		for stage, want := range map[fleet.Role]load.Source{fleet.Plain: prefill, fleet.Prefill: prefill, fleet.Decode: decode} {
			if got := o.Best(stage); got != want {
				t.Errorf("%s: got %s, want %s", stage, got, want)
			}
		}
	}
	f(load.Observation{}, load.Inflight, load.Inflight)
	f(load.Observation{Load: &fleet.Load{}}, load.Inflight, load.Inflight)
	f(reported(0, 0, 0, 0, 1, 0), load.Native, load.Native)
	f(withQueue(reported(0, 0, 0, 0, 1, 0), 1), load.QueueTime, load.Native)
}

func TestSourceText(t *testing.T) {
	for s, want := range map[load.Source]string{
		load.Inflight: "router_local", load.Native: "native_queue_tokens", load.QueueTime: "estimated_prefill_queue_ms",
	} {
		if s.String() != want {
			t.Errorf("source %d is %q, want %q", s, s, want)
		}
	}
}

// TestOrderIsTotal: with the source fixed for a set, comparison is transitive
// and antisymmetric. Small values make ties frequent.
func TestOrderIsTotal(t *testing.T) {
	type facts struct{ Running, Waiting, Pending, Used, Capacity, Queue, Inflight uint8 }
	observe := func(f facts) load.Observation {
		o := reported(uint64(f.Running%3), uint64(f.Waiting%3), uint64(f.Pending%3), uint64(f.Used%4), uint64(f.Capacity%3)+1, int64(f.Inflight%3))
		return withQueue(o, float64(f.Queue%3))
	}
	check := func(x, y, z facts) bool {
		a, b, c := observe(x), observe(y), observe(z)
		for _, stage := range []fleet.Role{fleet.Plain, fleet.Decode} {
			for by := load.Inflight; by <= load.QueueTime; by++ {
				ab, ba := load.Compare(stage, by, &a, &b), load.Compare(stage, by, &b, &a)
				bc, ac := load.Compare(stage, by, &b, &c), load.Compare(stage, by, &a, &c)
				if ab != -ba || ab <= 0 && bc <= 0 && ac > 0 || ab == 0 && bc == 0 && ac != 0 {
					return false
				}
			}
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
}
