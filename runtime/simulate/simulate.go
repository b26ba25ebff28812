package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/state/load"
	"shunt/schema/plan"
)

// ErrUnknownModel: the plan has no such model; the server answers 404.
var ErrUnknownModel = errors.New("model not found")

// Simulation is a plan in a described world. Policies keep their state from one
// request to the next, as in the server. Close it.
type Simulation struct {
	fleet   *fleet.Fleet
	routing *assemble.Routing
}

// epoch is the simulated time of every decision.
var epoch = time.Unix(1_000_000, 0)

// New puts a plan into a world. The same plan, world and seed give the same
// decisions.
func New(body *plan.Body, w World, seed uint64) (*Simulation, error) {
	f := new(fleet.Fleet)
	if err := assemble.Engines(body, f); err != nil {
		return nil, err
	}
	if err := populate(body, f, w); err != nil {
		f.Close()
		return nil, fmt.Errorf("world: %w", err)
	}
	r, err := assemble.Build(body, assemble.State{
		Fleet: f,
		Now:   func() time.Time { return epoch },
		IntN:  rand.New(rand.NewPCG(seed, 0)).IntN,
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Simulation{fleet: f, routing: r}, nil
}

func populate(body *plan.Body, f *fleet.Fleet, w World) error {
	loads, seen := new(load.Table), make(map[*fleet.Engine]bool)
	for i := range w.Engines {
		d := &w.Engines[i]
		m, err := modelOf(body, d)
		if err != nil {
			return err
		}
		var e *fleet.Engine
		for _, x := range f.Engines(m.ID) {
			if x.ID() == d.ID {
				e = x
			}
		}
		if e == nil {
			return fmt.Errorf("model %q has no engine %q", m.ID, d.ID)
		}
		if seen[e] {
			return fmt.Errorf("engine %q is described twice", d.ID)
		}
		seen[e] = true
		if err := d.apply(e, int(m.Breaker.Threshold), loads, epoch); err != nil {
			return err
		}
	}
	return nil
}

func modelOf(body *plan.Body, d *Engine) (*plan.Model, error) {
	if d.Model == "" && len(body.Models) == 1 {
		return &body.Models[0], nil
	}
	for i := range body.Models {
		if body.Models[i].ID == d.Model {
			return &body.Models[i], nil
		}
	}
	if d.Model == "" {
		return nil, fmt.Errorf("engine %q names no model, and the plan has several", d.ID)
	}
	return nil, fmt.Errorf("engine %q: the plan has no model %q", d.ID, d.Model)
}

// Decide routes one request. The decision says why it went where it did, also
// when the selection failed; the error is ErrUnknownModel or a failure to run.
func (s *Simulation) Decide(ctx context.Context, r Request) (*routing.Decision, error) {
	resolver := s.routing.Resolvers[r.Model]
	if resolver == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownModel, r.Model)
	}
	d := new(routing.Decision)
	req := routing.Request{Request: policy.Request{Model: r.Model, Input: r.InputTokens, Peak: r.peak()}, Decision: d}
	if _, err := resolver.Route(ctx, &req); err != nil {
		if _, ok := errors.AsType[*policy.Error](err); !ok {
			return d, err
		}
	}
	return d, nil
}

// Close ends the simulation.
func (s *Simulation) Close() {
	s.routing.Close()
	s.fleet.Close()
}
