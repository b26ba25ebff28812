package policy

import (
	"context"
	"fmt"

	"shunt/runtime/fleet"
)

// restricted is a policy that cannot serve every stage.
type restricted interface {
	// supports says why the policy cannot serve a stage, nothing if it can.
	supports(stage fleet.Role) string
}

// Supports returns an InvalidConfiguration if a policy, or its fallback, cannot
// serve a stage. It is for those who attach policies to groups.
func Supports(p Policy, stage fleet.Role) error {
	r, ok := p.(restricted)
	if !ok {
		return nil
	}
	if why := r.supports(stage); why != "" {
		return &Error{Kind: InvalidConfiguration, Stage: stage, Detail: why}
	}
	return nil
}

// through is supports of a policy that hands requests to a fallback.
func through(fallback Policy, stage fleet.Role) string {
	if r, ok := fallback.(restricted); ok {
		return r.supports(stage)
	}
	return ""
}

// nested asks a fallback. Its limits are those of its owner, so it has none, and
// the owner checks the engine that it returns, which must be a candidate.
func nested(ctx context.Context, fallback Policy, candidates []*fleet.Engine, req *Request) (*fleet.Engine, error) {
	p, err := fallback.Pick(ctx, candidates, req)
	if err != nil {
		return nil, err
	}
	if p.Engine == nil || !fleet.Contains(candidates, p.Engine) {
		return nil, &Error{Kind: OutsideCandidates, Stage: req.Stage,
			Detail: fmt.Sprintf("fallback %T returned an engine outside its candidates", fallback)}
	}
	return p.Engine, nil
}
