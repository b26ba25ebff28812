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
// request to the next, as in the server. It belongs to one goroutine. Close it.
type Simulation struct {
	scene
	routing *assemble.Routing
}

// epoch is the simulated time of every decision.
var epoch = time.Unix(1_000_000, 0)

// New puts a plan into a world. The same plan, world and seed give the same
// decisions.
func New(body *plan.Body, w World, seed uint64) (*Simulation, error) {
	s := new(Simulation)
	if err := s.start(body, w, seed); err != nil {
		s.fleet.Close()
		return nil, err
	}
	return s, nil
}

func (s *Simulation) start(body *plan.Body, w World, seed uint64) error {
	if err := s.set(body, w); err != nil {
		return err
	}
	state := assemble.State{
		Fleet:    s.fleet,
		Prefixes: make(map[string]prefix.Source, len(s.sources)),
		Bindings: s.store,
		Now:      func() time.Time { return epoch },
		IntN:     rand.New(rand.NewPCG(seed, 0)).IntN,
	}
	for model, source := range s.sources {
		state.Prefixes[model] = source
	}
	var err error
	s.routing, err = assemble.Build(body, state)
	return err
}

// Fits reports whether a world fits a plan, and then each of the changes that
// follow one another. The error is that of New or Change, and at is the change
// that has it, -1 for the world.
func Fits(body *plan.Body, w World, changes ...*World) (at int, err error) {
	var s scene
	err = s.set(body, w)
	defer func() { s.fleet.Close() }()
	for at = -1; err == nil && at+1 < len(changes); {
		if at++; changes[at] != nil {
			err = s.Change(*changes[at])
		}
	}
	return at, err
}

// scene is the state around a plan that a world describes.
type scene struct {
	body    *plan.Body
	fleet   *fleet.Fleet
	loads   load.Table
	engines map[*fleet.Engine]*state
	sources map[string]*source
	store   *store
}

// set makes the scene of a world.
func (s *scene) set(body *plan.Body, w World) error {
	*s = scene{body: body, fleet: new(fleet.Fleet), engines: make(map[*fleet.Engine]*state), store: newStore(body)}
	if err := assemble.Engines(body, s.fleet); err != nil {
		return err
	}
	s.sources = sources(body, s.fleet)
	return s.Change(w)
}

// Change changes the world: engines have the members that are described, a model
// has other prefixes, and keys are bound to other engines. All else stays.
func (s *scene) Change(w World) error {
	for _, apply := range [...]func(*World) error{s.populate, s.describe, s.bind} {
		if err := apply(&w); err != nil {
			return fmt.Errorf("world: %w", err)
		}
	}
	return nil
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

func (s *scene) populate(w *World) error {
	seen := make(map[*fleet.Engine]bool)
	for i := range w.Engines {
		d := &w.Engines[i]
		m, err := modelOf(s.body, d.Model, fmt.Sprintf("engine %q", d.ID))
		if err != nil {
			return misfit("engines", i, err)
		}
		e := engineOf(s.fleet, m.ID, d.ID)
		if e == nil {
			return misfit("engines", i, fmt.Errorf("model %q has no engine %q", m.ID, d.ID))
		}
		if seen[e] {
			return misfit("engines", i, fmt.Errorf("engine %q is described twice", d.ID))
		}
		seen[e] = true
		if s.engines[e] == nil {
			s.engines[e] = &state{engine: e, threshold: int(m.Breaker.Threshold)}
		}
		if err := s.engines[e].apply(d, &s.loads, epoch); err != nil {
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
	return s.decide(ctx, r, new(routing.Decision))
}

// DecideTried is Decide whose decision has only the buckets that were tried.
func (s *Simulation) DecideTried(ctx context.Context, r Request) (*routing.Decision, error) {
	return s.decide(ctx, r, &routing.Decision{OnlyTried: true})
}

func (s *Simulation) decide(ctx context.Context, r Request, d *routing.Decision) (*routing.Decision, error) {
	resolver := s.routing.Resolvers[r.Model]
	if resolver == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownModel, r.Model)
	}
	source := s.sources[r.Model]
	if source.request = &r; source.asks && r.source == "" {
		r.source = given
	}
	req := routing.Request{Decision: d, Targets: r.targets(), InputSource: r.source, InputReason: r.reason, Request: policy.Request{
		Model: r.Model, Input: r.InputTokens, Peak: r.peak(), TokenIDs: r.TokenIDs,
		SessionKey: r.SessionKey, RoutingKey: r.RoutingKey, Memo: new(prefix.Memo),
	}}
	if _, err := resolver.Route(ctx, &req); err != nil {
		if _, ok := errors.AsType[*policy.Error](err); !ok {
			return d, err
		}
	}
	return d, nil
}

// Fate is what becomes of the i-th bucket of a plan's model where a request does
// not try it.
func (s *Simulation) Fate(r *Request, i int) routing.Fate {
	fate, _ := s.routing.Resolvers[r.Model].Buckets[i].Fate(r.InputTokens, r.peak())
	return fate
}

// Candidates lists the buckets that take the length of a request, in try order;
// none for a request that is refused.
func (s *Simulation) Candidates(r *Request) (ids []string) {
	matches, err := s.routing.Resolvers[r.Model].ResolveFor(r.InputTokens, r.peak(), r.targets())
	if err != nil {
		return nil
	}
	for b := matches.Next(); b != nil; b = matches.Next() {
		ids = append(ids, b.ID)
	}
	return ids
}

// Close ends the simulation.
func (s *Simulation) Close() {
	s.routing.Close()
	s.fleet.Close()
}
