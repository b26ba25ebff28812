package legacy

import (
	"math/big"
	"slices"
)

// Load is what an engine reports and what the router counts at it. Without a
// report only Inflight is known.
type Load struct {
	Reported bool
	// Native is the extended report; the fields below Waiting belong to it.
	Native                       bool
	Running, Waiting             uint64
	Pending                      uint64 // waiting uncached tokens
	Used, Total, Capacity, Slots uint64 // tokens in use, of all requests, and the engine's own bounds
	// Rate is the measured prefill throughput in tokens per second, 0 if unknown.
	Rate     uint64
	Inflight uint64
	// Recent are those of Inflight that were dispatched after the report.
	Recent uint64
}

// Loads are those of all engines.
type Loads map[string]Load

// Less reports whether engine a is under less pressure than b: the native keys
// of the stage when both report them, then what the router counts.
func (l Loads) Less(stage Stage, a, b string) bool { return l.compare(stage, a, b) < 0 }

func (l Loads) compare(stage Stage, a, b string) int {
	x, y := l[a], l[b]
	if x.Native && y.Native {
		for _, d := range keys(stage, x, y) {
			if d != 0 {
				return d
			}
		}
	}
	return order(x.Inflight, y.Inflight)
}

func keys(stage Stage, x, y Load) []int {
	if stage == Prefill {
		var queue int
		if x.Rate > 0 && y.Rate > 0 {
			queue = ratio(x.Pending, x.Rate, y.Pending, y.Rate)
		}
		return []int{queue, order(x.Pending, y.Pending), order(x.Waiting, y.Waiting), order(x.Running, y.Running)}
	}
	return []int{order(x.Waiting, y.Waiting), order(x.Running, y.Running), ratio(x.Used, x.Capacity, y.Used, y.Capacity), order(x.Used, y.Used)}
}

// ratio compares a/b with c/d by cross multiplication, exactly.
func ratio(a, b, c, d uint64) int {
	left := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(d))
	right := new(big.Int).Mul(new(big.Int).SetUint64(c), new(big.Int).SetUint64(b))
	return left.Cmp(right)
}

func order(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// PowerOfTwo lists the engines that two random draws can end with. A tie keeps
// the engine that was drawn first, so that either may win.
func (l Loads) PowerOfTwo(stage Stage, engines []string) []string {
	if len(engines) < 2 {
		return engines
	}
	won := make(map[string]bool)
	for _, first := range engines {
		for _, second := range engines {
			if first == second {
				continue
			}
			if l.Less(stage, second, first) {
				won[second] = true
			} else {
				won[first] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(engines), func(e string) bool { return !won[e] })
}

// LoadBased lists the least loaded engines, of which a rotor takes one: by the
// depth of the queues when every engine reports, then by what the router counts.
func (l Loads) LoadBased(engines []string) []string {
	all := true
	for _, e := range engines {
		all = all && l[e].Reported
	}
	depth := func(e string) uint64 {
		if x := l[e]; all {
			return x.Waiting + x.Running + x.Recent
		}
		return l[e].Inflight
	}
	var best []string
	for _, e := range engines {
		if len(best) > 0 {
			d := order(depth(e), depth(best[0]))
			if d == 0 {
				d = order(l[e].Inflight, l[best[0]].Inflight)
			}
			if d > 0 {
				continue
			}
			if d < 0 {
				best = best[:0]
			}
		}
		best = append(best, e)
	}
	return best
}

// HasCapacity reports whether an engine takes a request by its own bounds and
// the pending budget of the bucket. It counts the request's tokens in. Without
// a native report an engine has capacity.
func (l Loads) HasCapacity(engine string, tokens uint64, maxPending *uint64) bool {
	x := l[engine]
	if !x.Native {
		return true
	}
	return x.Running+1 <= x.Slots && x.Total+tokens <= x.Capacity &&
		(maxPending == nil || x.Pending+tokens <= *maxPending)
}

// Decision is the word of a cache decision that found no holder to use: how many
// holders the queue gate held back, how many it let through, and whether every
// engine is queued.
func Decision(gated, evaluated int, allQueued bool) string {
	switch {
	case gated == 0 || evaluated > 0 && !allQueued:
		return "miss"
	case allQueued:
		return "all_queued"
	}
	return "cache_worker_queued"
}
