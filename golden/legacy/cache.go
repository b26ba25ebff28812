package legacy

import (
	"cmp"
	"math"
	"slices"
)

// Cache is the tuning of cache_aware and what engines hold.
type Cache struct {
	// BlockSize is the tokens of a block, and Blocks the leading blocks of every
	// prompt that an engine holds.
	BlockSize uint64
	Blocks    map[string]uint64

	MinMatched       uint64
	MinRatio         float64
	CandMin, CandMax int
	CandRatio        float64
	Margin           uint64
	// Guard is nil when it is off.
	Guard             *Guard
	QueueLimit, Floor *uint64
	// Choices is the sample of a miss.
	Choices int
}

// DefaultCache is the tuning without any argument.
func DefaultCache() Cache {
	return Cache{
		MinMatched: 1024, CandMin: 8, CandMax: 32, CandRatio: 0.05, Margin: 1024,
		Guard: DefaultGuard(), Choices: 2,
	}
}

// holder is an engine with the tokens that are left to compute on it.
type holder struct {
	engine   string
	uncached uint64
}

// cached prefers engines that hold the beginning of the prompt.
func (a *attempt) cached() []choice {
	base := a.base()
	holders := a.holders(len(base))
	var evaluated, gated []holder
	for _, h := range holders {
		if a.queued(h.engine) {
			gated = append(gated, h)
		} else {
			evaluated = append(evaluated, h)
		}
	}
	queuedAll := !slices.ContainsFunc(base, func(e string) bool { return !a.queued(e) })
	if len(evaluated) == 0 && queuedAll && a.Cache.Floor == nil {
		evaluated, gated = gated, nil
	}
	admitted := a.admitted(evaluated)
	if len(admitted) > 0 {
		return []choice{a.end(a.best(evaluated, admitted))}
	}
	refused := len(evaluated) > 0
	if len(gated) > 0 && a.pinned(base) {
		refused = true
		if admitted = a.admitted(gated); len(admitted) > 0 {
			return []choice{a.end(a.calmest(gated, admitted))}
		}
	}
	if refused {
		return a.instead(evaluated, gated)
	}
	return a.missed(a.pool())
}

// missed picks by load: the least loaded engine when the sample covers all.
func (a *attempt) missed(pool []string) (out []choice) {
	if a.Cache.Choices <= 2 || a.Cache.Choices < len(pool) {
		return a.sampled(pool)
	}
	set := make([]holder, len(pool))
	for i, e := range pool {
		set[i].engine = e
	}
	for _, h := range set {
		if !slices.ContainsFunc(set, func(x holder) bool { return a.load(set, x, h) < 0 }) {
			out = append(out, a.serve(h.engine)...)
		}
	}
	return unique(out)
}

// base are the engines that bounds and queues are about.
func (a *attempt) base() []string {
	if a.Changed[CandidateBase] {
		return a.d.Engines
	}
	return a.engines(a.stage)
}

// instead is what follows when all usable holders are refused: an engine by load,
// or nothing when the filter refused them or nothing replaces them.
func (a *attempt) instead(sets ...[]holder) []choice {
	for _, h := range slices.Concat(sets...) {
		if a.Loads.overloaded(h.engine, a.MaxInflight) {
			return []choice{a.end("")}
		}
	}
	if a.Changed[OnePick] {
		return []choice{a.end("")}
	}
	return a.backup(a.d.Engines)
}

// holders are the best ones, in their order, of a pool of n engines.
func (a *attempt) holders(n int) (out []holder) {
	c := &a.Cache
	if c.BlockSize == 0 || a.q.Input == 0 {
		return nil
	}
	blocks := (a.q.Input-1)/c.BlockSize + 1
	for _, e := range a.d.Engines {
		matched := a.q.Input * min(c.Blocks[e], blocks) / blocks
		if matched == 0 || matched < c.MinMatched || float64(matched)/float64(a.q.Input) < c.MinRatio {
			continue
		}
		out = append(out, holder{e, a.q.Input - matched})
	}
	a.rank(out, out)
	limit := min(n, c.CandMax, max(c.CandMin, int(math.Ceil(c.CandRatio*float64(n)))))
	return out[:min(len(out), limit)]
}

// rank sorts holders by what is left to compute, then by pressure among a set.
func (a *attempt) rank(holders, set []holder) {
	set = slices.Clone(set)
	slices.SortFunc(holders, func(x, y holder) int {
		return cmp.Or(cmp.Compare(x.uncached, y.uncached), a.pressure(set, x, y))
	})
}

// pressure orders two holders by load, then by their names.
func (a *attempt) pressure(set []holder, x, y holder) int {
	return cmp.Or(a.load(set, x, y), cmp.Compare(x.engine, y.engine))
}

// load orders two engines as far as a whole set reports its load.
func (a *attempt) load(set []holder, x, y holder) int {
	if slices.ContainsFunc(set, func(h holder) bool { return !a.Loads[h.engine].Native }) {
		return order(a.Loads[x.engine].Inflight, a.Loads[y.engine].Inflight)
	}
	return a.Loads.compare(a.stage, x.engine, y.engine)
}

// queued reports whether a queue is known to be too long.
func (a *attempt) queued(engine string) bool {
	x := a.Loads[engine]
	return a.Cache.QueueLimit != nil && x.Reported && x.Waiting >= *a.Cache.QueueLimit
}

// pinned reports whether no engine is known to have a queue below the floor.
func (a *attempt) pinned(base []string) bool {
	return a.Cache.Floor != nil && !slices.ContainsFunc(base, func(e string) bool {
		return a.Loads[e].Reported && a.Loads[e].Waiting < *a.Cache.Floor
	})
}

func (a *attempt) admitted(holders []holder) (out []holder) {
	for _, h := range holders {
		if !a.Loads.overloaded(h.engine, a.MaxInflight) && a.admitsLeft(h.engine, h.uncached) {
			out = append(out, h)
		}
	}
	return out
}

// best is the admitted holder with the least to compute, unless one within the
// margin of it is under materially less pressure.
func (a *attempt) best(evaluated, admitted []holder) string {
	a.rank(admitted, evaluated)
	winner := admitted[0]
	ceiling := winner.uncached + a.Cache.Margin
	guarded := a.Cache.Guard != nil && !slices.ContainsFunc(evaluated, func(h holder) bool { return !a.Loads[h.engine].Native })
	for _, h := range admitted[1:] {
		if h.uncached > ceiling {
			continue
		}
		if guarded && a.Loads.Material(winner.engine, h.engine, a.Cache.Guard) {
			winner = h
		}
	}
	return winner.engine
}

// calmest is the admitted holder under the least pressure.
func (a *attempt) calmest(gated, admitted []holder) string {
	return slices.MinFunc(admitted, func(x, y holder) int { return a.pressure(gated, x, y) }).engine
}

// pool are the engines without a long queue, or all.
func (a *attempt) pool() []string {
	short := slices.DeleteFunc(slices.Clone(a.d.Engines), a.queued)
	if len(short) == 0 {
		return a.d.Engines
	}
	return short
}
