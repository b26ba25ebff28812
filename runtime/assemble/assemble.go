package assemble

import (
	"fmt"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/state/affinity"
	"shunt/runtime/state/load"
	"shunt/runtime/state/prefix"
	"shunt/schema/plan"
)

// State is what the resolvers of a process share. Fleet is required; the other
// services are required where the plan requires them.
type State struct {
	Fleet *fleet.Fleet
	// Prefixes are the sources of cached prefixes, by model id. Models of one
	// index namespace have the same source, by pointer.
	Prefixes map[string]prefix.Source
	// Bindings is the store of all models.
	Bindings affinity.Store
	// Caches receive what cache-aware picks decided, by model id; a model without
	// an entry is not counted.
	Caches map[string]*policy.CacheCounters
	// Now is the clock of load freshness; nil is time.Now.
	Now func() time.Time
	// IntN draws from [0, n); nil is the process-wide source.
	IntN func(n int) int
}

// Routing is the resolvers of one plan.
type Routing struct {
	// Resolvers are by model id.
	Resolvers map[string]*routing.Resolver

	views map[string]*fleet.View // by the key of their selector
}

// Build makes the resolvers of a validated plan. It adds no engine to the fleet.
// The caller must Close the result.
func Build(b *plan.Body, s State) (*Routing, error) {
	r := &Routing{Resolvers: make(map[string]*routing.Resolver, len(b.Models)), views: make(map[string]*fleet.View)}
	a := assembler{State: s, out: r, indexes: make(map[prefix.Source]*policy.Indexed), loads: load.Reader{
		Now:       s.Now,
		Freshness: time.Duration(b.State.Load.FreshnessMS) * time.Millisecond,
	}}
	for i := range b.Models {
		m := &b.Models[i]
		resolver, err := a.model(m)
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("model %q: %w", m.ID, err)
		}
		r.Resolvers[m.ID] = resolver
	}
	return r, nil
}

// Close ends the candidate views. Who still routes by them gets the candidates of
// this moment.
func (r *Routing) Close() {
	for _, v := range r.views {
		v.Close()
	}
	r.views = nil
}

// Engines makes the plan's static engines the fleet's, model by model.
func Engines(b *plan.Body, f *fleet.Fleet) error {
	for i := range b.Models {
		m := &b.Models[i]
		specs, err := specs(m)
		if err != nil {
			return err
		}
		cfg := fleet.BreakerConfig{
			Threshold: int(m.Breaker.Threshold),
			CoolDown:  time.Duration(m.Breaker.CoolDownMS) * time.Millisecond,
		}
		if err := f.Apply(m.ID, cfg, specs); err != nil {
			return err
		}
	}
	return nil
}

func specs(m *plan.Model) ([]fleet.Spec, error) {
	if m.Discovery.Static == nil {
		return nil, fmt.Errorf("model %q: no discovery", m.ID)
	}
	var out []fleet.Spec
	for _, e := range m.Discovery.Static.Engines {
		role, ok := fleet.ParseRole(string(e.Role))
		if !ok {
			return nil, fmt.Errorf("model %q: engine %q: role %q is unknown", m.ID, e.ID, e.Role)
		}
		s := fleet.Spec{ID: e.ID, URL: e.URL, Role: role, Labels: e.Labels}
		if e.BootstrapPort != nil {
			s.BootstrapPort = int(*e.BootstrapPort)
		}
		out = append(out, s)
	}
	return out, nil
}

// assembler carries what all parts of one Build need.
type assembler struct {
	State
	out     *Routing
	loads   load.Reader
	indexes map[prefix.Source]*policy.Indexed // one for each source
}

func (a *assembler) model(m *plan.Model) (*routing.Resolver, error) {
	r := &routing.Resolver{Model: m.ID, DispatchTimestamps: len(m.Requires.DispatchTimestamps) > 0}
	if err := slo(&r.SLO, m.SLO); err != nil {
		return nil, err
	}
	for i := range m.Buckets {
		b, err := a.bucket(m, &m.Buckets[i])
		if err != nil {
			return nil, fmt.Errorf("bucket %q: %w", m.Buckets[i].ID, err)
		}
		r.Buckets = append(r.Buckets, b)
	}
	for _, p := range m.Breakpoints {
		runs := make([]routing.Run, len(p.Runs))
		for i, run := range p.Runs {
			runs[i] = routing.Run(run)
		}
		r.Breakpoints = append(r.Breakpoints, routing.Breakpoint{From: p.From, Runs: runs})
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r, nil
}

// slo sets what a model does with latency targets; absent is nothing.
func slo(to *routing.SLO, from *plan.SLO) error {
	if from == nil {
		return nil
	}
	var ok, ok2 bool
	to.TTFT, ok = routing.ParseSLOMode(string(from.TTFT))
	to.TPS, ok2 = routing.ParseSLOMode(string(from.TPS))
	if !ok || !ok2 {
		return fmt.Errorf("SLO modes %q and %q: unknown", from.TTFT, from.TPS)
	}
	return nil
}

func (a *assembler) bucket(m *plan.Model, b *plan.Bucket) (*routing.Bucket, error) {
	out := &routing.Bucket{ID: b.ID, Rank: b.Rank, Max: bound(b.Max), Context: bound(b.MaxContextTokens)}
	if b.Min != nil {
		out.Min = *b.Min
	}
	if b.TTFTMS != nil {
		out.Estimates.TTFTMS = uint64(*b.TTFTMS)
	}
	if b.TokensPerSecond != nil {
		out.Estimates.TPS = *b.TokensPerSecond
	}
	if p := b.Groups.Plain; p != nil {
		g, err := a.group(m, fleet.Plain, p)
		if err != nil {
			return nil, err
		}
		out.Groups = routing.PlainGroups{Plain: g}
		return out, nil
	}
	if b.Groups.PD == nil {
		return nil, fmt.Errorf("no groups")
	}
	prefill, err := a.group(m, fleet.Prefill, &b.Groups.PD.Prefill)
	if err != nil {
		return nil, err
	}
	decode, err := a.group(m, fleet.Decode, &b.Groups.PD.Decode)
	if err != nil {
		return nil, err
	}
	out.Groups = routing.PDGroups{Prefill: prefill, Decode: decode, MatchLabels: b.Groups.PD.MatchLabels}
	return out, nil
}

func bound(n *int64) routing.Bound {
	if n == nil {
		return routing.Bound{}
	}
	return routing.AtMost(*n)
}

func (a *assembler) group(m *plan.Model, stage fleet.Role, g *plan.Group) (*routing.Group, error) {
	p, err := a.policy(m.ID, &g.Policy)
	if err != nil {
		return nil, fmt.Errorf("%s group: %w", stage, err)
	}
	sel := fleet.Selector{Model: m.ID, Role: stage, All: g.WorkerIDs == nil, Labels: g.Labels}
	if g.WorkerIDs != nil {
		sel.IDs = *g.WorkerIDs
	}
	return &routing.Group{Stage: stage, Engines: a.watch(sel), Policy: p}, nil
}

// watch shares views within the plan, but not with another one: the views of a
// plan that is replaced end before the engines change.
func (a *assembler) watch(sel fleet.Selector) *fleet.View {
	key := sel.Key()
	v := a.out.views[key]
	if v == nil {
		v = a.Fleet.Watch(sel)
		a.out.views[key] = v
	}
	return v
}

// limits is nil without limits, which spares the check.
func limits(a plan.Admission) policy.Admission {
	l := policy.Limits{
		Running:        maxOf(a.MaxRunningRequests),
		Waiting:        maxOf(a.MaxWaitingRequests),
		KVTokens:       maxOf(a.MaxKVTokens),
		PendingPrefill: maxOf(a.MaxPendingPrefillTokens),
		Inflight:       maxOf(a.MaxInflightRequests),
	}
	if l == (policy.Limits{}) {
		return nil
	}
	return &l
}

func maxOf(n *int64) policy.Cap {
	if n == nil {
		return policy.Cap{}
	}
	return policy.Max(uint64(*n))
}
