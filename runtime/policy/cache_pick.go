package policy

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// cachePick is one pick of a CacheAware. Its slices are used again by later
// picks, so that a pick allocates nothing.
type cachePick struct {
	*CacheOptions
	req        *Request
	candidates []*fleet.Engine
	match      PrefixMatch
	now        time.Time
	trace      *CacheTrace

	depths []uint32
	// seen are the observations, one per candidate, made when first needed.
	seen []load.Observation
	// holders are the usable holders, ranked and bounded; evaluated and gated
	// are those with a short queue and the others, in the same order.
	holders, evaluated, gated []holder
	admitted                  []holder
	pool                      []*fleet.Engine
	refused                   []Rejection
	// saturated says that the evaluated holders are queued like all the group.
	saturated bool
}

// holder is a candidate that holds the beginning of the prompt.
type holder struct {
	at       int // index of the candidate
	blocks   uint32
	matched  uint64 // tokens
	uncached uint64 // tokens left to compute
}

func (s *cachePick) begin(o *CacheOptions, candidates []*fleet.Engine, req *Request) {
	n := len(candidates)
	s.CacheOptions, s.candidates, s.req = o, candidates, req
	s.trace = req.Trace.cache()
	s.depths = slices.Grow(s.depths[:0], n)[:n]
	clear(s.depths)
	s.seen = slices.Grow(s.seen[:0], n)[:n]
	s.holders, s.evaluated, s.gated = s.holders[:0], s.evaluated[:0], s.gated[:0]
	s.admitted, s.pool, s.saturated = s.admitted[:0], s.pool[:0], false
}

// end forgets engines and reports, which would otherwise live as long as the
// scratch space.
func (s *cachePick) end() {
	clear(s.seen)
	clear(s.pool)
	s.CacheOptions, s.candidates, s.req, s.trace, s.refused = nil, nil, nil, nil, nil
}

// observe returns the one observation of a candidate.
func (s *cachePick) observe(i int) *load.Observation {
	o := &s.seen[i]
	if o.Engine == nil {
		*o = s.Loads.Observe(s.candidates[i], s.now)
	}
	return o
}

// pick decides after the lookup.
func (s *cachePick) pick(ctx context.Context) (Pick, error) {
	s.findHolders()
	s.rankHolders()
	s.splitByQueue()
	if err := s.admit(s.evaluated); err != nil {
		return Pick{}, err
	}
	if len(s.admitted) > 0 {
		why := ReasonCache
		if s.saturated {
			why = ReasonPinned
		}
		return s.take(s.best(), why), nil
	}
	if s.pins() {
		if err := s.admit(s.gated); err != nil {
			return Pick{}, err
		}
		if len(s.admitted) > 0 {
			return s.take(s.calmest(), ReasonPinned), nil
		}
	}
	if len(s.refused) > 0 {
		return Pick{}, &Error{Kind: NoAdmissibleEngine, Stage: s.req.Stage, Rejected: s.refused}
	}
	return s.miss(ctx)
}

func (s *cachePick) take(h *holder, why Reason) Pick {
	outcome := CacheHit
	if why == ReasonPinned {
		outcome = CacheSaturated
	}
	s.decided(outcome)
	return Pick{Engine: s.candidates[h.at], Reason: why}
}

// findHolders keeps the candidates that match enough of the input. Tokens per
// block follow from the input's own length, since a prompt may end in a block
// that is not whole.
func (s *cachePick) findHolders() {
	if s.match.Outcome != PrefixHit || s.match.Blocks == 0 {
		return
	}
	input := uint64(max(s.req.Input, 0))
	for i, depth := range s.depths {
		if depth == 0 {
			continue
		}
		h := holder{at: i, blocks: min(depth, s.match.Blocks)}
		h.matched = satMul(input, uint64(h.blocks)) / uint64(s.match.Blocks)
		h.uncached = input - h.matched
		ratio := float64(h.matched) / float64(max(input, 1))
		if h.matched < uint64(s.Tuning.MinMatched) || ratio < s.Tuning.MinRatio {
			s.trace.holder(s, &h, HolderBelow)
			continue
		}
		s.holders = append(s.holders, h)
	}
}

func satMul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return math.MaxUint64
	}
	return lo
}

// candidateLimit is how many holders are considered in a group of n engines.
func (t *CacheTuning) candidateLimit(n int) int {
	share := int(math.Ceil(t.CandidateRatio * float64(n)))
	return min(n, t.CandidateMax, max(t.CandidateMin, share))
}

// rankHolders sorts the holders and keeps the best.
func (s *cachePick) rankHolders() {
	by := s.source(s.holders)
	slices.SortFunc(s.holders, func(a, b holder) int { return s.rank(by, &a, &b) })
	limit := s.Tuning.candidateLimit(len(s.candidates))
	s.trace.bound(limit)
	if len(s.holders) > limit {
		for i := range s.holders[limit:] {
			s.trace.holder(s, &s.holders[limit+i], HolderBeyond)
		}
		s.holders = s.holders[:limit]
	}
}

// source is the strongest signal that every one of a set supports, which makes
// the order of the set total.
func (s *cachePick) source(set []holder) load.Source {
	by := load.QueueTime
	for i := range set {
		by = min(by, s.observe(set[i].at).Best(s.req.Stage))
	}
	return by
}

// pressure orders two holders by the load of their engines, then by id.
func (s *cachePick) pressure(by load.Source, a, b *holder) int {
	return cmp.Or(load.Compare(s.req.Stage, by, s.observe(a.at), s.observe(b.at)), cmp.Compare(a.at, b.at))
}

// rank orders two holders by what they would have to compute, then by pressure.
func (s *cachePick) rank(by load.Source, a, b *holder) int {
	if c := cmp.Compare(a.uncached, b.uncached); c != 0 {
		return c
	}
	return s.pressure(by, a, b)
}

// short reports whether the queue of a candidate lets it pass the soft gate. An
// unknown queue does.
func (s *cachePick) short(i int) bool {
	l := s.observe(i).Load
	return l == nil || !s.Tuning.QueueLimit.refuses(true, l.Waiting)
}

// splitByQueue separates the holders with a long queue. If all the group has
// one, and no floor says otherwise, avoiding them would avoid nothing.
func (s *cachePick) splitByQueue() {
	if !s.Tuning.QueueLimit.set {
		s.evaluated = append(s.evaluated, s.holders...)
		s.trace.holders(s, s.evaluated, HolderEvaluated)
		return
	}
	for _, h := range s.holders {
		if s.short(h.at) {
			s.evaluated = append(s.evaluated, h)
		} else {
			s.gated = append(s.gated, h)
		}
	}
	s.trace.holders(s, s.evaluated, HolderEvaluated)
	s.trace.holders(s, s.gated, HolderQueued)
	if len(s.evaluated) == 0 && len(s.gated) > 0 && !s.Tuning.QueueFloor.set && s.allQueued() {
		s.evaluated, s.saturated = append(s.evaluated, s.gated...), true
		s.trace.saturated()
	}
}

func (s *cachePick) allQueued() bool {
	for i := range s.candidates {
		if s.short(i) {
			return false
		}
	}
	return true
}

// admit checks all holders of a set. Those that admission refuses are not
// replaced by deeper-ranked ones.
func (s *cachePick) admit(set []holder) error {
	before := len(s.refused)
	for i := range set {
		o := s.observe(set[i].at)
		limit, err := check(s.Admission, o, s.req)
		if err != nil {
			return err
		}
		if limit != "" {
			s.refused = append(s.refused, Rejection{Engine: o.Engine.ID(), Limit: limit})
			continue
		}
		s.admitted = append(s.admitted, set[i])
	}
	s.Counters.checked(len(set), len(s.refused)-before)
	return nil
}

// best chooses among the admitted holders, which are ranked. Only those within
// the margin of the first compete with it.
func (s *cachePick) best() *holder {
	by := s.source(s.evaluated)
	guarded := s.Tuning.Guard && by >= load.Native
	least := &s.admitted[0]
	ceiling, over := bits.Add64(least.uncached, uint64(s.Tuning.SwitchMargin), 0)
	if over != 0 {
		ceiling = math.MaxUint64
	}
	s.trace.compete(by, guarded, ceiling)
	s.req.Trace.source(by.String())
	winner := least
	for i := range s.admitted[1:] {
		h := &s.admitted[1+i]
		if h.uncached > ceiling {
			break
		}
		winner = s.better(by, guarded, winner, h)
	}
	return winner
}

// better is the winner of two holders within the margin of each other.
func (s *cachePick) better(by load.Source, guarded bool, winner, h *holder) *holder {
	ranked := winner
	if s.rank(by, winner, h) > 0 {
		ranked = h
	}
	if !guarded {
		return ranked
	}
	chosen := ranked
	a, b := s.observe(winner.at).Load, s.observe(h.at).Load
	switch {
	case s.Tuning.material(a, b):
		chosen = h
	case s.Tuning.material(b, a):
		chosen = winner
	}
	s.trace.compared(chosen != ranked)
	s.Counters.compared(chosen != ranked)
	return chosen
}

// material reports whether an engine is under so much more pressure than another
// that it outweighs the cache. Both reports are native.
func (t *CacheTuning) material(a, b *fleet.Load) bool {
	if t.GuardMS.set && a.HasQueue && b.HasQueue {
		return a.QueueMS-b.QueueMS > t.GuardMS.v && a.QueueMS > b.QueueMS*t.GuardFactor
	}
	return a.WaitingUncached > b.WaitingUncached && a.WaitingUncached-b.WaitingUncached > t.GuardTokens &&
		float64(a.WaitingUncached) > float64(b.WaitingUncached)*t.GuardFactor
}

// pins reports whether a queued holder may be taken because no engine of the
// group is known to have a queue below the floor.
func (s *cachePick) pins() bool {
	if !s.Tuning.QueueFloor.set || len(s.gated) == 0 {
		return false
	}
	for i := range s.candidates {
		if l := s.observe(i).Load; l != nil && !s.Tuning.QueueFloor.refuses(true, l.Waiting) {
			return false
		}
	}
	s.trace.pinned()
	return true
}

// calmest is the admitted queued holder under least pressure, whatever it would
// have to compute.
func (s *cachePick) calmest() *holder {
	by, least := s.source(s.gated), &s.admitted[0]
	for i := range s.admitted[1:] {
		if h := &s.admitted[1+i]; s.pressure(by, h, least) < 0 {
			least = h
		}
	}
	return least
}

// miss lets the fallback pick, among the engines with a short queue if there are
// any, and checks its pick on what this policy observed.
func (s *cachePick) miss(ctx context.Context) (Pick, error) {
	pool := s.candidates
	if s.Tuning.QueueLimit.set {
		for i, e := range s.candidates {
			if s.short(i) {
				s.pool = append(s.pool, e)
			}
		}
		if len(s.pool) > 0 {
			pool = s.pool
		}
	}
	s.trace.fallback(pool)
	e, err := nested(ctx, s.Fallback, pool, s.req)
	if err != nil {
		return Pick{}, err
	}
	i, _ := slices.BinarySearchFunc(s.candidates, e, func(a, b *fleet.Engine) int { return cmp.Compare(a.ID(), b.ID()) })
	pick, err := admit(s.Admission, s.observe(i), s.req, ReasonCacheMiss)
	if err != nil {
		return Pick{}, err
	}
	switch {
	case s.match.Outcome == PrefixUnavailable:
		s.decided(CacheUnavailable)
	case len(s.gated) > 0 && len(s.evaluated) == 0:
		s.decided(CacheQueued)
	default:
		s.decided(CacheMiss)
	}
	return pick, nil
}

func (s *cachePick) decided(o CacheOutcome) {
	s.trace.decided(o)
	s.Counters.decided(o)
}
