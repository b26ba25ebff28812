package policy

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// LoadBased picks the engine with the smallest depth, then the fewest requests
// in flight; the rest of a tie is rotated over. Depth is the reported waiting
// and running requests plus the dispatches since the report, or the in-flight
// count of every candidate as soon as one has no fresh report. The picked engine
// is checked once.
type LoadBased struct {
	Loads     load.Reader
	Admission Admission

	rotor   atomic.Uint64
	scratch sync.Pool // of *[]load.Observation
}

var _ Policy = (*LoadBased)(nil)

// Pick implements Policy.
func (p *LoadBased) Pick(_ context.Context, candidates []*fleet.Engine, req *Request) (Pick, error) {
	buf, _ := p.scratch.Get().(*[]load.Observation)
	if buf == nil {
		buf = new([]load.Observation)
	}
	defer p.scratch.Put(buf)
	now, reported := p.Loads.Time(), true
	seen := (*buf)[:0]
	for _, e := range candidates {
		o := p.Loads.Observe(e, now)
		reported = reported && o.Load != nil
		seen = append(seen, o)
	}
	*buf = seen
	best := p.least(seen, reported, req.Trace)
	return admit(p.Admission, best, req, ReasonLoadBased)
}

func (p *LoadBased) least(seen []load.Observation, reported bool, trace *Trace) *load.Observation {
	best, ties := &seen[0], 0
	for i := range seen {
		o := &seen[i]
		trace.compared(o)
		trace.depth(depth(o, reported))
		switch c := compareDepth(o, best, reported); {
		case c < 0:
			best, ties = o, 1
		case c == 0:
			ties++
		}
	}
	if reported {
		trace.source("reported_depth")
	} else {
		trace.source(load.Inflight.String())
	}
	turn := int((p.rotor.Add(1) - 1) % uint64(ties))
	for i := range seen {
		if compareDepth(&seen[i], best, reported) == 0 {
			if turn == 0 {
				return &seen[i]
			}
			turn--
		}
	}
	return best
}

func compareDepth(a, b *load.Observation, reported bool) int {
	return cmp.Or(cmp.Compare(depth(a, reported), depth(b, reported)), cmp.Compare(a.Inflight, b.Inflight))
}

func depth(o *load.Observation, reported bool) uint64 {
	if !reported {
		return uint64(max(o.Inflight, 0))
	}
	sum, c1 := bits.Add64(o.Load.Waiting, o.Load.Running, 0)
	sum, c2 := bits.Add64(sum, uint64(max(o.Recent, 0)), 0)
	if c1+c2 > 0 {
		return math.MaxUint64
	}
	return sum
}
