package policy

import (
	"context"
	"fmt"
	"math"
	"sync"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// CacheOptions make a CacheAware. Prefixes and Fallback are required.
type CacheOptions struct {
	Loads     load.Reader
	Admission Admission
	// Prefixes is asked once a pick.
	Prefixes Prefixes
	// Fallback picks when no holder is usable. It has no admission of its own,
	// because this policy checks the engine that it returns.
	Fallback Policy
	Tuning   CacheTuning
	// Counters, if set, receive what the picks decided; several policies may
	// share them.
	Counters *CacheCounters
}

// CacheTuning are the settings of a CacheAware. The plan states them all; the
// zero tuning is not valid.
type CacheTuning struct {
	// MinMatched is the fewest matched tokens that count as a hit.
	MinMatched int64
	// MinRatio is the least share of the input that must match, from 0 to 1.
	MinRatio float64
	// The holders that are considered are those of the best prefixes: the given
	// share of the group, but at least CandidateMin and at most CandidateMax.
	CandidateMin, CandidateMax int
	CandidateRatio             float64
	// SwitchMargin is how many more tokens than the best holder a holder may
	// have to compute and still compete with it.
	SwitchMargin int64
	// Guard lets a holder under materially less pressure win within the margin:
	// by more than GuardMS of queue time where that is set and known, otherwise
	// by more than GuardTokens of queued work, and by a factor of GuardFactor.
	Guard       bool
	GuardTokens uint64
	GuardMS     Threshold
	GuardFactor float64
	// QueueLimit is the queue at which a holder is avoided. It is a preference,
	// which admission's limit on the queue is not.
	QueueLimit Cap
	// QueueFloor keeps the prefix on a queued holder when every engine of the
	// group that reports has a queue of that length.
	QueueFloor Cap
}

// Threshold is an optional bound that is to be exceeded; the zero Threshold is
// none.
type Threshold struct {
	v   float64
	set bool
}

// Above is a threshold that larger values exceed.
func Above(v float64) Threshold { return Threshold{v: v, set: true} }

// CacheAware prefers an engine that holds the beginning of the prompt, where
// pressure allows.
//
// Of the holders with enough matched tokens, the best are considered. Those with
// a long queue are avoided if an engine of the group is better off, and of the
// others admission takes some. The holder with the least left to compute wins
// unless another within the margin is under materially less pressure. Without a
// usable holder the fallback picks among the engines with a short queue, or
// among all; a refused holder, however, never turns into a pick elsewhere.
type CacheAware struct {
	o       CacheOptions
	scratch sync.Pool // of *cachePick
}

var _ Policy = (*CacheAware)(nil)

// NewCacheAware checks the tuning; a value out of range is an
// InvalidConfiguration.
func NewCacheAware(o CacheOptions) (*CacheAware, error) {
	if o.Prefixes == nil || o.Fallback == nil {
		return nil, invalidTuning("a prefix source and a fallback are required")
	}
	if why := o.Tuning.invalid(); why != "" {
		return nil, invalidTuning(why)
	}
	return &CacheAware{o: o}, nil
}

func invalidTuning(why string) error {
	return &Error{Kind: InvalidConfiguration, Detail: "cache_aware: " + why}
}

// invalid names the first setting out of range.
func (t *CacheTuning) invalid() string {
	share := func(v float64) bool { return v >= 0 && v <= 1 } // false for NaN
	switch {
	case t.MinMatched < 0 || t.SwitchMargin < 0:
		return "token counts must not be negative"
	case !share(t.MinRatio):
		return fmt.Sprintf("the least matched ratio %v is not between 0 and 1", t.MinRatio)
	case t.CandidateMin < 1 || t.CandidateMax < t.CandidateMin:
		return fmt.Sprintf("the candidates must be 1 <= %d <= %d", t.CandidateMin, t.CandidateMax)
	case !share(t.CandidateRatio):
		return fmt.Sprintf("the candidate ratio %v is not between 0 and 1", t.CandidateRatio)
	case t.GuardMS.set && (!(t.GuardMS.v >= 0) || math.IsInf(t.GuardMS.v, 0)):
		return fmt.Sprintf("the pressure threshold of %v ms is not a finite number from 0", t.GuardMS.v)
	case !(t.GuardFactor > 1) || math.IsInf(t.GuardFactor, 0):
		return fmt.Sprintf("the pressure factor %v is not a finite number above 1", t.GuardFactor)
	case t.QueueFloor.set && !t.QueueLimit.set:
		return "a saturation floor needs a queue limit"
	case t.QueueFloor.set && t.QueueFloor.max > t.QueueLimit.max:
		return fmt.Sprintf("the saturation floor %d is above the queue limit %d", t.QueueFloor.max, t.QueueLimit.max)
	}
	return ""
}

func (p *CacheAware) supports(stage fleet.Role) string {
	if stage == fleet.Decode {
		return "cache_aware cannot pick for the decode stage, which computes no prompt"
	}
	return through(p.o.Fallback, stage)
}

// Pick implements Policy.
func (p *CacheAware) Pick(ctx context.Context, candidates []*fleet.Engine, req *Request) (Pick, error) {
	if err := Supports(p, req.Stage); err != nil {
		return Pick{}, err
	}
	s, _ := p.scratch.Get().(*cachePick)
	if s == nil {
		s = new(cachePick)
	}
	defer p.putBack(s)
	s.begin(&p.o, candidates, req)
	var err error
	if s.match, err = p.o.Prefixes.Match(ctx, req, candidates, s.depths); err != nil {
		return Pick{}, invalidQuery(ctx, err, req)
	}
	s.now = p.o.Loads.Time() // after the lookup, which may have taken a while
	s.trace.lookedUp(s.match)
	return s.pick(ctx)
}

// putBack lets go of everything that a pick referred to.
func (p *CacheAware) putBack(s *cachePick) {
	s.end()
	p.scratch.Put(s)
}
