package policy

import (
	"context"

	"shunt/runtime/fleet"
	"shunt/runtime/state/affinity"
	"shunt/runtime/state/load"
)

// Sticky keeps a routing key on the engine that it is bound to. It differs from
// SessionAware in the key, in the choice of fallback, and in telling a key that
// lost its engine from a new one.
//
// Bindings and Fallback are required. The fallback has no admission of its own,
// because this policy checks the engine that it returns.
type Sticky struct {
	Loads     load.Reader
	Admission Admission
	Bindings  affinity.Store
	Fallback  Policy
}

var _ Policy = (*Sticky)(nil)

// Pick implements Policy.
func (p *Sticky) Pick(ctx context.Context, candidates []*fleet.Engine, req *Request) (Pick, error) {
	a := affine{
		loads: p.Loads, admission: p.Admission, bindings: p.Bindings, fallback: p.Fallback,
		hit: ReasonSticky, replaced: ReasonRemap, keyless: ReasonNoKey,
	}
	return a.pick(ctx, candidates, req.key(affinity.Sticky, req.RoutingKey), req)
}

func (p *Sticky) supports(stage fleet.Role) string { return through(p.Fallback, stage) }
