package policy

import (
	"sync/atomic"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// CacheOutcome is what the cache contributed to a pick.
type CacheOutcome string

// The outcomes of picks that ended with an engine.
const (
	CacheHit         CacheOutcome = "hit"         // a holder was picked
	CacheMiss        CacheOutcome = "miss"        // no usable holder
	CacheQueued      CacheOutcome = "queued"      // every usable holder was avoided for its queue
	CacheSaturated   CacheOutcome = "saturated"   // a queued holder was picked, since all are queued
	CacheUnavailable CacheOutcome = "unavailable" // the index could not answer
)

// CacheCounters count decisions for metrics. The zero counters are ready, and a
// nil pointer counts nothing.
type CacheCounters struct {
	Hits, Misses, Queued, Saturated, Unavailable atomic.Uint64
	// Evaluated are the holders that admission was asked about, Refused those
	// of them that it refused.
	Evaluated, Refused atomic.Uint64
	// Compared are the pairs that the pressure guard looked at, Overruled those
	// in which it overruled the cache.
	Compared, Overruled atomic.Uint64
}

func (c *CacheCounters) decided(o CacheOutcome) {
	if c == nil {
		return
	}
	switch o {
	case CacheHit:
		c.Hits.Add(1)
	case CacheMiss:
		c.Misses.Add(1)
	case CacheQueued:
		c.Queued.Add(1)
	case CacheSaturated:
		c.Saturated.Add(1)
	case CacheUnavailable:
		c.Unavailable.Add(1)
	}
}

func (c *CacheCounters) checked(n, refused int) {
	if c != nil {
		c.Evaluated.Add(uint64(n))
		c.Refused.Add(uint64(refused))
	}
}

func (c *CacheCounters) compared(overruled bool) {
	if c == nil {
		return
	}
	c.Compared.Add(1)
	if overruled {
		c.Overruled.Add(1)
	}
}

// CacheTrace is how a cache-aware pick went, step by step.
type CacheTrace struct {
	// Lookup is hit, miss or unavailable; Why says what was missing.
	Lookup string `json:"lookup"`
	Why    string `json:"why,omitempty"`
	// Blocks is the number of whole blocks of the prompt.
	Blocks uint32 `json:"query_blocks"`
	// Bound is how many holders are considered at most.
	Bound   int           `json:"candidate_limit"`
	Holders []HolderTrace `json:"holders,omitempty"`
	// Saturated: every engine of the group is queued, so the gate was void.
	Saturated bool `json:"saturated,omitempty"`
	// Pinned: no engine is known to be below the floor, so queued holders were
	// considered after all.
	Pinned bool `json:"pinned,omitempty"`
	// Source is the signal by which the evaluated holders were compared, and
	// Ceiling the most uncached tokens with which one could win.
	Source  string  `json:"source,omitempty"`
	Ceiling *uint64 `json:"ceiling_tokens,omitempty"`
	// Guarded: the pressure guard was on and every evaluated holder reported.
	Guarded   bool `json:"guarded,omitempty"`
	Compared  int  `json:"guard_compared,omitempty"`
	Overruled int  `json:"guard_overruled,omitempty"`
	// Fallback are the engines that the fallback was given.
	Fallback []string     `json:"fallback,omitempty"`
	Outcome  CacheOutcome `json:"outcome,omitempty"`
}

// HolderTrace is a candidate that holds the beginning of the prompt.
type HolderTrace struct {
	Engine   string     `json:"engine"`
	Blocks   uint32     `json:"blocks"`
	Matched  uint64     `json:"matched_tokens"`
	Uncached uint64     `json:"uncached_tokens"`
	Fate     HolderFate `json:"fate"`
}

// HolderFate is what became of a holder before admission.
type HolderFate string

// The fates of holders.
const (
	HolderBelow     HolderFate = "below_threshold" // too little of the prompt
	HolderBeyond    HolderFate = "beyond_limit"    // others are better
	HolderQueued    HolderFate = "queued"          // avoided for its queue
	HolderEvaluated HolderFate = "evaluated"
)

// cache starts the trace of a cache-aware pick. The methods below accept nil.
func (t *Trace) cache() *CacheTrace {
	if t == nil {
		return nil
	}
	t.Cache = new(CacheTrace)
	return t.Cache
}

func (t *CacheTrace) holder(s *cachePick, h *holder, f HolderFate) {
	if t == nil {
		return
	}
	t.Holders = append(t.Holders, HolderTrace{
		Engine: s.candidates[h.at].ID(), Blocks: h.blocks, Matched: h.matched, Uncached: h.uncached, Fate: f,
	})
}

func (t *CacheTrace) holders(s *cachePick, set []holder, f HolderFate) {
	if t == nil {
		return
	}
	for i := range set {
		t.holder(s, &set[i], f)
		s.req.Trace.compared(s.observe(set[i].at))
	}
}

func (t *CacheTrace) bound(n int) {
	if t != nil {
		t.Bound = n
	}
}

func (t *CacheTrace) compete(by load.Source, guarded bool, ceiling uint64) {
	if t != nil {
		t.Source, t.Guarded, t.Ceiling = by.String(), guarded, new(ceiling)
	}
}

func (t *CacheTrace) compared(overruled bool) {
	if t == nil {
		return
	}
	t.Compared++
	if overruled {
		t.Overruled++
	}
}

func (t *CacheTrace) saturated() {
	if t != nil {
		t.Saturated = true
	}
}

func (t *CacheTrace) pinned() {
	if t != nil {
		t.Pinned = true
	}
}

func (t *CacheTrace) fallback(pool []*fleet.Engine) {
	if t == nil {
		return
	}
	for _, e := range pool {
		t.Fallback = append(t.Fallback, e.ID())
	}
}

func (t *CacheTrace) decided(o CacheOutcome) {
	if t != nil {
		t.Outcome = o
	}
}

// lookedUp notes the answer of the index.
func (t *CacheTrace) lookedUp(m PrefixMatch) {
	if t != nil {
		t.Lookup, t.Why, t.Blocks = m.Outcome.String(), m.Why, m.Blocks
	}
}
