package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/state/load"
	"shunt/runtime/state/prefix"
	"shunt/schema/plan"
)

// ErrUnknownModel: the plan has no such model; the server answers 404.
var ErrUnknownModel = errors.New("model not found")

// Simulation is a plan in a described world. Policies keep their state from one
// request to the next, as in the server. Close it.
type Simulation struct {
	fleet   *fleet.Fleet
	routing *assemble.Routing
	sources map[string]*source
}

// epoch is the simulated time of every decision.
var epoch = time.Unix(1_000_000, 0)

// New puts a plan into a world. The same plan, world and seed give the same
// decisions.
func New(body *plan.Body, w World, seed uint64) (*Simulation, error) {
	s := &Simulation{fleet: new(fleet.Fleet)}
	if err := s.start(body, w, seed); err != nil {
		s.fleet.Close()
		return nil, err
	}
	return s, nil
}

func (s *Simulation) start(body *plan.Body, w World, seed uint64) error {
	if err := assemble.Engines(body, s.fleet); err != nil {
		return err
	}
	if err := populate(body, s.fleet, w); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	var err error
	if s.sources, err = sources(body, s.fleet, w); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	store, err := bindings(body, s.fleet, w)
	if err != nil {
		return fmt.Errorf("world: %w", err)
	}
	state := assemble.State{
		Fleet:    s.fleet,
		Prefixes: make(map[string]prefix.Source, len(s.sources)),
		Bindings: store,
		Now:      func() time.Time { return epoch },
		IntN:     rand.New(rand.NewPCG(seed, 0)).IntN,
	}
	for model, source := range s.sources {
		state.Prefixes[model] = source
	}
	s.routing, err = assemble.Build(body, state)
	return err
}

// WorldError is a part of a world that does not fit the plan.
type WorldError struct {
	// Pointer is the JSON pointer of the part, such as /engines/0.
	Pointer string
	Err     error
}

func (e *WorldError) Error() string { return e.Err.Error() }

func (e *WorldError) Unwrap() error { return e.Err }

// misfit marks an error about an element of a list of the world.
func misfit(list string, i int, err error) error {
	return &WorldError{Pointer: "/" + list + "/" + strconv.Itoa(i), Err: err}
}

func populate(body *plan.Body, f *fleet.Fleet, w World) error {
	loads, seen := new(load.Table), make(map[*fleet.Engine]bool)
	for i := range w.Engines {
		d := &w.Engines[i]
		m, err := modelOf(body, d.Model, fmt.Sprintf("engine %q", d.ID))
		if err != nil {
			return misfit("engines", i, err)
		}
		e := engineOf(f, m.ID, d.ID)
		if e == nil {
			return misfit("engines", i, fmt.Errorf("model %q has no engine %q", m.ID, d.ID))
		}
		if seen[e] {
			return misfit("engines", i, fmt.Errorf("engine %q is described twice", d.ID))
		}
		seen[e] = true
		if err := d.apply(e, int(m.Breaker.Threshold), loads, epoch); err != nil {
			return misfit("engines", i, err)
		}
	}
	return nil
}

// engineOf is the engine of an id, nil if there is none.
func engineOf(f *fleet.Fleet, model, id string) *fleet.Engine {
	for _, e := range f.Engines(model) {
		if e.ID() == id {
			return e
		}
	}
	return nil
}

// modelOf finds the model that something described belongs to.
func modelOf(body *plan.Body, id, what string) (*plan.Model, error) {
	if id == "" && len(body.Models) == 1 {
		return &body.Models[0], nil
	}
	for i := range body.Models {
		if body.Models[i].ID == id {
			return &body.Models[i], nil
		}
	}
	if id == "" {
		return nil, fmt.Errorf("%s: no model is named, and the plan has several", what)
	}
	return nil, fmt.Errorf("%s: the plan has no model %q", what, id)
}

// given is where a length comes from that would be an engine's answer.
const given = "given"

// Decide routes one request. The decision says why it went where it did, also
// when the selection failed; the error is ErrUnknownModel or a failure to run.
func (s *Simulation) Decide(ctx context.Context, r Request) (*routing.Decision, error) {
	resolver := s.routing.Resolvers[r.Model]
	if resolver == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownModel, r.Model)
	}
	d := new(routing.Decision)
	source := s.sources[r.Model]
	if source.request = &r; source.asks && r.source == "" {
		r.source = given
	}
	req := routing.Request{Decision: d, InputSource: r.source, InputReason: r.reason, Request: policy.Request{
		Model: r.Model, Input: r.InputTokens, Peak: r.peak(), TokenIDs: r.TokenIDs,
		SessionKey: r.SessionKey, RoutingKey: r.RoutingKey, Memo: new(prefix.Memo),
	}}
	if r.TTFTMS != nil {
		req.Targets.TTFTMS, req.Targets.HasTTFT = *r.TTFTMS, true
	}
	if r.TPS != nil {
		req.Targets.TPS, req.Targets.HasTPS = *r.TPS, true
	}
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
