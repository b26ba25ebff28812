package policy

import (
	"context"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// Random picks uniformly and checks the picked engine once. The zero Random
// admits everything.
type Random struct {
	Loads     load.Reader
	Admission Admission
	IntN      func(n int) int
}

var _ Policy = (*Random)(nil)

// Pick implements Policy.
func (p *Random) Pick(_ context.Context, candidates []*fleet.Engine, req *Request) (Pick, error) {
	i := 0
	if len(candidates) > 1 {
		i = intN(p.IntN)(len(candidates))
	}
	o := p.Loads.Observe(candidates[i], p.Loads.Time())
	return admit(p.Admission, &o, req, ReasonRandom)
}
