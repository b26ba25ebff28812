package policy

import (
	"context"
	"errors"

	"shunt/runtime/fleet"
	"shunt/runtime/state/affinity"
	"shunt/runtime/state/load"
)

// affine is what SessionAware and Sticky share: reuse the binding of a key while
// admission takes it, and otherwise let the fallback choose. A binding is made
// only after admission, and a refusal leaves bindings as they are.
type affine struct {
	loads     load.Reader
	admission Admission
	bindings  affinity.Store
	fallback  Policy

	hit, replaced, keyless Reason
}

func (a *affine) pick(ctx context.Context, candidates []*fleet.Engine, key affinity.Key, req *Request) (Pick, error) {
	if key.Name == "" {
		req.Trace.affinity(AffinityTrace{Key: KeyAbsent})
		return a.unbound(ctx, candidates, req, a.keyless)
	}
	bound, err := a.bindings.Bound(ctx, key, candidates)
	switch {
	case err != nil:
		if err := refusal(err, req); err != nil {
			return Pick{}, err
		}
		return a.unbound(ctx, candidates, req, ReasonNoStore)
	case bound != nil:
		req.Trace.affinity(AffinityTrace{Key: KeyBound, Bound: bound.ID()})
		o := a.loads.Observe(bound, a.loads.Time())
		return admit(a.admission, &o, req, a.hit)
	}
	req.Trace.affinity(AffinityTrace{Key: KeyFree})
	return a.assign(ctx, candidates, key, req)
}

// unbound picks without reading or making a binding.
func (a *affine) unbound(ctx context.Context, candidates []*fleet.Engine, req *Request, why Reason) (Pick, error) {
	e, err := nested(ctx, a.fallback, candidates, req)
	if err != nil {
		return Pick{}, err
	}
	o := a.loads.Observe(e, a.loads.Time())
	return admit(a.admission, &o, req, why)
}

// assign picks by the fallback and binds. A request that bound the same key
// meanwhile wins, and its engine is checked once; nothing is tried after that.
func (a *affine) assign(ctx context.Context, candidates []*fleet.Engine, key affinity.Key, req *Request) (Pick, error) {
	e, err := nested(ctx, a.fallback, candidates, req)
	if err != nil {
		return Pick{}, err
	}
	now := a.loads.Time()
	o := a.loads.Observe(e, now)
	pick, err := admit(a.admission, &o, req, ReasonAssigned)
	if err != nil {
		return Pick{}, err
	}
	b, err := a.bindings.Bind(ctx, key, e, candidates)
	switch {
	case err != nil:
		pick.Reason = ReasonNoStore
		if err := refusal(err, req); err != nil {
			return Pick{}, err
		}
	case b.Engine != e:
		req.Trace.affinity(AffinityTrace{Key: KeyRaced, Bound: b.Engine.ID()})
		o = a.loads.Observe(b.Engine, now)
		return admit(a.admission, &o, req, a.hit)
	case b.Replaced:
		pick.Reason = a.replaced
	}
	return pick, nil
}

// refusal is the failure of a request whose binding cannot be had, nil if it is
// to be served without one.
func refusal(err error, req *Request) error {
	u, ok := errors.AsType[*affinity.Unavailable](err)
	if !ok {
		return err // the context ended
	}
	req.Trace.affinity(AffinityTrace{Key: KeyUnavailable})
	if u.Reject {
		return &Error{Kind: StateUnavailable, Stage: req.Stage, Detail: "the affinity store does not answer", Cause: u.Cause}
	}
	return nil
}
