package fleet_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shunt/runtime/fleet"
)

const coolDown = 30 * time.Second

// rig is one engine with a breaker of threshold 3, and the view that holds it.
type rig struct {
	t      *testing.T
	fleet  *fleet.Fleet
	view   *fleet.View
	engine *fleet.Engine
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, fleet: new(fleet.Fleet)}
	cfg := fleet.BreakerConfig{Threshold: 3, CoolDown: coolDown}
	if err := r.fleet.Apply("m", cfg, []fleet.Spec{{ID: "a", URL: "http://a", Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	r.view = r.fleet.Watch(fleet.Selector{Model: "m", Role: fleet.Plain, All: true})
	r.engine = r.fleet.Engines("m")[0]
	return r
}

func (r *rig) lease() *fleet.Lease {
	r.t.Helper()
	l, err := r.engine.Lease(time.Time{})
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// run dispatches one request that ends with an outcome.
func (r *rig) run(o fleet.Outcome) {
	r.t.Helper()
	l := r.lease()
	l.Record(o)
	l.Release()
}

func (r *rig) fail(n int) {
	r.t.Helper()
	for range n {
		r.run(fleet.Failure)
	}
}

// expect checks the state and that the view agrees with what the engine admits.
func (r *rig) expect(s fleet.BreakerState, candidate bool) {
	r.t.Helper()
	if got := r.engine.BreakerState(); got != s {
		r.t.Errorf("breaker is %s, want %s", got, s)
	}
	if got := r.engine.Admits(); got != candidate {
		r.t.Errorf("admits = %t, want %t", got, candidate)
	}
	if got := len(r.view.Engines()) == 1; got != candidate {
		r.t.Errorf("in the view = %t, want %t", got, candidate)
	}
}

func (r *rig) refused() {
	r.t.Helper()
	l, err := r.engine.Lease(time.Time{})
	if !errors.Is(err, fleet.ErrBreakerOpen) {
		r.t.Errorf("got %v, %v, want a refusal", l, err)
	}
}

// breakerTest runs f with a rig in a bubble of its own time.
func breakerTest(t *testing.T, name string, f func(r *rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			defer r.fleet.Close()
			f(r)
			if n := r.engine.Inflight(); n != 0 {
				t.Errorf("%d requests in flight at the end", n)
			}
		})
	})
}

// sleep waits and lets the timers of that instant run.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestBreakerThreshold(t *testing.T) {
	breakerTest(t, "consecutive failures open", func(r *rig) {
		r.fail(2)
		r.expect(fleet.Closed, true)
		r.fail(1)
		r.expect(fleet.Open, false)
		r.refused()
	})
	breakerTest(t, "a success forgives", func(r *rig) {
		r.fail(2)
		r.run(fleet.Success)
		r.fail(2)
		r.expect(fleet.Closed, true)
	})
	breakerTest(t, "backpressure neither opens nor forgives", func(r *rig) {
		for range 50 {
			r.run(fleet.Backpressure)
		}
		r.expect(fleet.Closed, true)
		r.fail(2)
		r.run(fleet.Backpressure)
		r.fail(1)
		r.expect(fleet.Open, false)
	})
	breakerTest(t, "abandoned requests prove nothing", func(r *rig) {
		r.fail(2)
		r.run(fleet.Abandoned)
		r.lease().Release()
		r.expect(fleet.Closed, true)
		r.fail(1)
		r.expect(fleet.Open, false)
	})
}

func TestBreakerCoolDown(t *testing.T) {
	breakerTest(t, "the end of the cool-down republishes", func(r *rig) {
		r.fail(3)
		sleep(coolDown - time.Millisecond)
		r.expect(fleet.Open, false)
		sleep(time.Millisecond)
		r.expect(fleet.Open, true)
	})
	breakerTest(t, "late failures do not prolong it", func(r *rig) {
		late := r.lease()
		r.fail(3)
		sleep(coolDown / 2)
		late.Record(fleet.Failure)
		late.Release()
		sleep(coolDown / 2)
		r.expect(fleet.Open, true)
	})
	breakerTest(t, "a late success closes", func(r *rig) {
		late := r.lease()
		r.fail(3)
		late.Record(fleet.Success)
		late.Release()
		r.expect(fleet.Closed, true)
		sleep(2 * coolDown)
		r.expect(fleet.Closed, true)
	})
	breakerTest(t, "an old timer does not end a new cool-down", func(r *rig) {
		late := r.lease()
		r.fail(3)
		sleep(coolDown / 2)
		late.Record(fleet.Success)
		late.Release()
		r.fail(3)
		sleep(coolDown / 2)
		r.expect(fleet.Open, false)
		sleep(coolDown / 2)
		r.expect(fleet.Open, true)
	})
	breakerTest(t, "tuning changes keep the state", func(r *rig) {
		r.fail(3)
		cfg := fleet.BreakerConfig{Threshold: 10, CoolDown: time.Hour}
		if err := r.fleet.Apply("m", cfg, []fleet.Spec{{ID: "a", URL: "http://a", Role: fleet.Plain}}); err != nil {
			r.t.Fatal(err)
		}
		r.expect(fleet.Open, false)
		sleep(coolDown)
		r.expect(fleet.Open, true)
	})
}

func TestBreakerProbe(t *testing.T) {
	cooled := func(r *rig) {
		r.t.Helper()
		r.fail(3)
		sleep(coolDown)
	}
	breakerTest(t, "one probe at a time", func(r *rig) {
		cooled(r)
		probe := r.lease()
		r.expect(fleet.HalfOpen, false)
		r.refused()
		probe.Record(fleet.Success)
		r.expect(fleet.Closed, true)
		probe.Release()
	})
	breakerTest(t, "a failed probe opens at once", func(r *rig) {
		cooled(r)
		r.fail(1)
		r.expect(fleet.Open, false)
		sleep(coolDown)
		r.expect(fleet.Open, true)
	})
	breakerTest(t, "backpressure closes", func(r *rig) {
		cooled(r)
		r.run(fleet.Backpressure)
		r.expect(fleet.Closed, true)
		r.fail(2)
		r.expect(fleet.Closed, true)
	})
	breakerTest(t, "an abandoned probe is given back", func(r *rig) {
		cooled(r)
		r.lease().Release()
		r.expect(fleet.HalfOpen, true)
		r.run(fleet.Success)
		r.expect(fleet.Closed, true)
	})
	breakerTest(t, "an older permit does not give back a newer probe", func(r *rig) {
		ordinary := r.lease()
		cooled(r)
		first := r.lease()
		first.Record(fleet.Failure) // opens again; its lease is still held
		sleep(coolDown)
		second := r.lease()
		ordinary.Release()
		first.Release()
		r.expect(fleet.HalfOpen, false)
		r.refused()
		second.Release()
		r.expect(fleet.HalfOpen, true)
	})
	breakerTest(t, "a late success of an older request closes and ends the probe", func(r *rig) {
		ordinary := r.lease()
		cooled(r)
		probe := r.lease()
		ordinary.Record(fleet.Success)
		ordinary.Release()
		r.expect(fleet.Closed, true)
		probe.Release()
		r.expect(fleet.Closed, true)
	})
}

// TestBreakerConcurrentProbe has many requests arrive at a cooled breaker.
// TestBreakerTuningDuringAProbe: a failed probe opens, also when the threshold was
// raised meanwhile.
func TestBreakerTuningDuringAProbe(t *testing.T) {
	breakerTest(t, "raised threshold", func(r *rig) {
		r.fail(3)
		sleep(coolDown)
		probe := r.lease()
		cfg := fleet.BreakerConfig{Threshold: 10, CoolDown: coolDown}
		if err := r.fleet.Apply("m", cfg, []fleet.Spec{{ID: "a", URL: "http://a", Role: fleet.Plain}}); err != nil {
			r.t.Fatal(err)
		}
		probe.Record(fleet.Failure)
		probe.Release()
		r.expect(fleet.Open, false)
		sleep(coolDown)
		r.expect(fleet.Open, true)
		r.run(fleet.Success)
		r.expect(fleet.Closed, true)
	})
}

func TestBreakerConcurrentProbe(t *testing.T) {
	breakerTest(t, "one wins", func(r *rig) {
		r.fail(3)
		sleep(coolDown)
		var won atomic.Pointer[fleet.Lease]
		var wins atomic.Int32
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				if l, err := r.engine.Lease(time.Time{}); err == nil {
					wins.Add(1)
					won.Store(l)
				}
			})
		}
		all.Wait()
		if n := wins.Load(); n != 1 {
			r.t.Fatalf("%d probes, want 1", n)
		}
		if n := r.engine.Inflight(); n != 1 {
			r.t.Errorf("in flight %d, want 1: refused requests count nothing", n)
		}
		won.Load().Record(fleet.Success)
		won.Load().Release()
	})
}

func TestBreakerStops(t *testing.T) {
	breakerTest(t, "with the fleet", func(r *rig) {
		r.fail(3)
		r.fleet.Close()
		sleep(2 * coolDown)
		r.expect(fleet.Open, false)
	})
	breakerTest(t, "with the engine", func(r *rig) {
		r.fail(3)
		if err := r.fleet.Apply("m", fleet.BreakerConfig{}, nil); err != nil {
			r.t.Fatal(err)
		}
		sleep(2 * coolDown)
		if r.engine.Admits() {
			r.t.Error("a removed engine cooled down")
		}
	})
}

func TestForceFailures(t *testing.T) {
	breakerTest(t, "opens", func(r *rig) {
		r.engine.ForceFailures(2)
		r.expect(fleet.Closed, true)
		r.engine.ForceFailures(1)
		r.expect(fleet.Open, false)
	})
}

func TestThresholdBelowOneIsOne(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	if err := f.Apply("m", fleet.BreakerConfig{CoolDown: time.Hour}, []fleet.Spec{{ID: "a", URL: "http://a", Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	e := f.Engines("m")[0]
	e.ForceFailures(1)
	if got := e.BreakerState(); got != fleet.Open {
		t.Errorf("breaker is %s, want open", got)
	}
}

func TestBreakerStateText(t *testing.T) {
	for s, want := range map[fleet.BreakerState]string{fleet.Closed: "closed", fleet.Open: "open", fleet.HalfOpen: "half_open"} {
		if s.String() != want {
			t.Errorf("state %d is %q, want %q", s, s, want)
		}
	}
}
