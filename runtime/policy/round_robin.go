package policy

import (
	"context"
	"sync/atomic"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// RoundRobin rotates over the candidates with a cursor of its own, which moves
// by one with every pick, and checks the picked engine once.
type RoundRobin struct {
	Loads     load.Reader
	Admission Admission

	cursor atomic.Uint64
}

var _ Policy = (*RoundRobin)(nil)

// Pick implements Policy.
func (p *RoundRobin) Pick(_ context.Context, candidates []*fleet.Engine, req *Request) (Pick, error) {
	i := (p.cursor.Add(1) - 1) % uint64(len(candidates))
	o := p.Loads.Observe(candidates[i], p.Loads.Time())
	return admit(p.Admission, &o, req, ReasonRoundRobin)
}
