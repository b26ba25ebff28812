package policy

import (
	"context"

	"shunt/runtime/fleet"
	"shunt/runtime/state/affinity"
	"shunt/runtime/state/load"
)

// SessionAware keeps a session on the engine that it is bound to, whatever the
// pressure, as long as that engine is a candidate and admission takes it. A
// refused binding stays and ends the pick: the next bucket may take the request.
// Sessions are scoped by model, bucket and stage; a request without a session
// makes no binding.
//
// Bindings and Fallback are required. The fallback has no admission of its own,
// because this policy checks the engine that it returns.
type SessionAware struct {
	Loads     load.Reader
	Admission Admission
	Bindings  affinity.Store
	Fallback  Policy
}

var _ Policy = (*SessionAware)(nil)

// Pick implements Policy.
func (p *SessionAware) Pick(ctx context.Context, candidates []*fleet.Engine, req *Request) (Pick, error) {
	a := affine{
		loads: p.Loads, admission: p.Admission, bindings: p.Bindings, fallback: p.Fallback,
		hit: ReasonSession, replaced: ReasonAssigned, keyless: ReasonNoSession,
	}
	return a.pick(ctx, candidates, req.key(affinity.Session, req.SessionKey), req)
}

func (p *SessionAware) supports(stage fleet.Role) string { return through(p.Fallback, stage) }

// key scopes what a client sent.
func (r *Request) key(kind affinity.Kind, name string) affinity.Key {
	return affinity.Key{Kind: kind, Stage: r.Stage, Model: r.Model, Bucket: r.Bucket, Name: name}
}
