package policy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/state/load"
)

// epoch is the time of every pick of these tests.
func epoch() time.Time { return time.Unix(1_000_000, 0) }

func frozen() load.Reader { return load.Reader{Now: epoch} }

// engines makes n plain engines, sorted by id.
func plainEngines(t testing.TB, n int) []*fleet.Engine {
	t.Helper()
	f := new(fleet.Fleet)
	t.Cleanup(f.Close)
	var specs []fleet.Spec
	for i := range n {
		id := fmt.Sprintf("e%04d", i)
		specs = append(specs, fleet.Spec{ID: id, URL: "http://" + id, Role: fleet.Plain})
	}
	if err := f.Apply("m", fleet.BreakerConfig{}, specs); err != nil {
		t.Fatal(err)
	}
	return f.Engines("m")
}

// report publishes a native report of one rank.
func nativeReport(e *fleet.Engine, waiting, uncached uint64) {
	e.SetLoad(&fleet.Load{CapturedAt: epoch(), Native: true, Running: 1, Waiting: waiting,
		WaitingUncached: uncached, Used: 10, Total: 10, Capacity: 100, MaxRunning: 100})
}

func kindOf(err error) policy.Kind {
	if e, ok := errors.AsType[*policy.Error](err); ok {
		return e.Kind
	}
	return 0
}

// first picks the first candidate.
type first struct{}

func (first) Pick(_ context.Context, candidates []*fleet.Engine, _ *policy.Request) (policy.Pick, error) {
	return policy.Pick{Engine: candidates[0], Reason: "first"}, nil
}

// foreign picks an engine that is not among the candidates.
type foreign struct{ e *fleet.Engine }

func (f foreign) Pick(context.Context, []*fleet.Engine, *policy.Request) (policy.Pick, error) {
	return policy.Pick{Engine: f.e}, nil
}

// full refuses some engines.
type full map[*fleet.Engine]bool

func (f full) Check(e *fleet.Engine, _ policy.Metrics) (policy.Limit, error) {
	if f[e] {
		return policy.MaxRunningRequests, nil
	}
	return "", nil
}
