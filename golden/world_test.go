package golden_test

import (
	"slices"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// epoch is the time 0s of a vector.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// engineSpec describes an engine of a vector: plain and of model m unless said.
type engineSpec struct {
	ID       string            `json:"id"`
	Model    string            `json:"model"`
	Role     string            `json:"role"`
	Failures int               `json:"failures"`
	Inflight int               `json:"inflight"`
	Labels   map[string]string `json:"labels"`
}

// world is the engines of a vector, their leases and their reports.
type world struct {
	t         *testing.T
	fleet     *fleet.Fleet
	table     load.Table
	now       time.Time
	freshness time.Duration
	leases    map[string][]*fleet.Lease
	specs     map[string][]fleet.Spec
}

func newWorld(t *testing.T, engines []engineSpec) *world {
	t.Helper()
	w := &world{
		t: t, fleet: new(fleet.Fleet), now: epoch(),
		leases: make(map[string][]*fleet.Lease), specs: make(map[string][]fleet.Spec),
	}
	t.Cleanup(w.fleet.Close)
	for _, e := range engines {
		role := fleet.Plain
		if e.Role != "" {
			role = w.role(e.Role)
		}
		model := e.Model
		if model == "" {
			model = "m"
		}
		w.specs[model] = append(w.specs[model], fleet.Spec{ID: e.ID, URL: "http://" + e.ID, Role: role, Labels: e.Labels})
	}
	for model := range w.specs {
		w.apply(model)
	}
	for _, e := range engines {
		w.engine(e.ID).ForceFailures(e.Failures)
		w.lease(e.ID, e.Inflight, time.Time{})
	}
	return w
}

// apply gives the fleet the current specs of a model.
func (w *world) apply(model string) {
	w.t.Helper()
	cfg := fleet.BreakerConfig{Threshold: 3, CoolDown: time.Hour}
	if err := w.fleet.Apply(model, cfg, w.specs[model]); err != nil {
		w.t.Fatal(err)
	}
}

// remove takes an engine out of whatever model it is in.
func (w *world) remove(id string) {
	w.t.Helper()
	for model, specs := range w.specs {
		w.specs[model] = slices.DeleteFunc(specs, func(s fleet.Spec) bool { return s.ID == id })
		w.apply(model)
	}
}

func (w *world) role(s string) fleet.Role {
	w.t.Helper()
	r, ok := fleet.ParseRole(s)
	if !ok {
		w.t.Fatalf("%q is no role", s)
	}
	return r
}

func (w *world) engine(id string) *fleet.Engine {
	w.t.Helper()
	for _, model := range w.fleet.Models() {
		for _, e := range w.fleet.Engines(model) {
			if e.ID() == id {
				return e
			}
		}
	}
	w.t.Fatalf("no engine %q", id)
	return nil
}

// all are the engines of model m, sorted by id.
func (w *world) all() []*fleet.Engine { return w.fleet.Engines("m") }

func (w *world) lease(id string, n int, at time.Time) {
	w.t.Helper()
	for range n {
		l, err := w.engine(id).Lease(at)
		if err != nil {
			w.t.Fatal(err)
		}
		w.leases[id] = append(w.leases[id], l)
	}
}

// release ends the oldest n leases of an engine.
func (w *world) release(id string, n int) {
	w.t.Helper()
	for range n {
		if len(w.leases[id]) == 0 {
			w.t.Fatalf("engine %q has no lease to release", id)
		}
		w.leases[id][0].Release()
		w.leases[id] = w.leases[id][1:]
	}
}

func (w *world) reader() load.Reader {
	return load.Reader{Now: func() time.Time { return w.now }, Freshness: w.freshness}
}

// span is a Go duration in a vector file.
func (w *world) span(s string) time.Duration {
	w.t.Helper()
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}
