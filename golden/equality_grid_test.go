package golden_test

import (
	"fmt"
	"slices"

	"shunt/golden/legacy"
	"shunt/runtime/simulate"
)

// oldWorld is a state of the engines in the terms of the older router.
type oldWorld struct {
	name   string
	loads  legacy.Loads
	down   []string
	blocks map[string]uint64
	// old are the reports that are too old to count, which loads do not have.
	old legacy.Loads
	// ranks is by how many ranks each engine reports, 0 for one, and ageMS how
	// long ago.
	ranks uint64
	ageMS int64
	// unavailable is why the index does not answer, empty if it does.
	unavailable string
	// bound is the engine of the key that requests of a sequence have.
	bound string
}

// The state that engines of a grid may be in. Slots and capacity are those that
// every engine reports, and typical is the length that bounds are set for.
const (
	slots    = 16
	capacity = 10_000
	typical  = 100
)

// worlds are states around every bound of a router: idle, loaded unevenly,
// queued, at capacity, silent and down.
func worlds(r *legacy.Router, prefill, decode []string) (out []oldWorld) {
	all := slices.Concat(prefill, decode)
	put := func(name string, down []string, of func(i int, e string) legacy.Load) {
		w := oldWorld{name: name, loads: make(legacy.Loads), down: down}
		for n, stage := range [][]string{prefill, decode} {
			for i, e := range stage {
				l := of(i, e)
				if n == 1 {
					l.Pending, l.Rate = 0, 0
				}
				w.loads[e] = l
			}
		}
		out = append(out, w)
	}
	skew := func(i int, _ string) legacy.Load { return loaded(uint64(i), uint64(len(all)-i)) }
	put("idle", nil, func(int, string) legacy.Load { return legacy.Load{} })
	put("reported idle", nil, func(int, string) legacy.Load { return loaded(0, 0) })
	put("skewed", nil, skew)
	put("skewed the other way", nil, func(i int, _ string) legacy.Load { return loaded(uint64(len(all)-i), uint64(i)) })
	put("a tie", nil, func(i int, _ string) legacy.Load { return loaded(uint64(i/2), 1) })
	put("rates", nil, func(i int, _ string) legacy.Load {
		l := loaded(uint64(i+1), 0)
		l.Rate = uint64(100 * (i + 1) * (i + 1))
		return l
	})
	put("recent dispatches", nil, func(i int, _ string) legacy.Load {
		l := loaded(1, 6)
		l.Recent = uint64(i)
		return l
	})
	for i, e := range all {
		put("no report of "+e, nil, func(n int, own string) legacy.Load {
			l := skew(n, own)
			if own == e {
				l = legacy.Load{Inflight: l.Inflight}
			}
			return l
		})
		put("an old report of "+e, nil, func(n int, own string) legacy.Load {
			l := skew(n, own)
			if own == e {
				l = legacy.Load{Reported: true, Running: l.Running, Waiting: l.Waiting, Inflight: l.Inflight}
			}
			return l
		})
		put(e+" is down", []string{e}, skew)
		if i > 0 {
			put(fmt.Sprintf("%s and %s are down", all[i-1], e), all[i-1:i+1], func(int, string) legacy.Load { return loaded(0, 0) })
		}
	}
	put("no prefill engine", prefill, skew)
	aged := func(name string, ranks uint64, ageMS int64) *oldWorld {
		put(name, nil, skew)
		w := &out[len(out)-1]
		w.ranks, w.ageMS = ranks, ageMS
		return w
	}
	aged("two ranks", 2, 0)
	aged("reports of 5 s", 1, 5000)
	aged("reports of more than 5 s", 1, 5001).expire(all...)
	aged("two ranks, and one of more than 5 s", 2, 5001).expire(all[0])
	edges(r, all, put)
	return out
}

// expire makes the reports of some engines count as none.
func (w *oldWorld) expire(engines ...string) {
	w.old = make(legacy.Loads)
	for _, e := range engines {
		w.old[e] = w.loads[e]
		w.loads[e] = legacy.Load{Inflight: w.loads[e].Inflight}
	}
}

// loaded is an engine that reports a load of some steps.
func loaded(step, inflight uint64) legacy.Load {
	return legacy.Load{
		Reported: true, Native: true, Slots: slots, Capacity: capacity, Inflight: inflight,
		Running: step, Waiting: step / 2, Pending: 900 * step, Used: 300 * step, Total: 400 * step,
	}
}

// edges puts one engine, the first half, or all at each bound of engines,
// budgets, filters and queues, and beside it.
func edges(r *legacy.Router, all []string, put func(string, []string, func(int, string) legacy.Load)) {
	at := func(name string, set func(*legacy.Load)) {
		for _, n := range []int{0, 1, len(all)} {
			put(fmt.Sprintf("%s from %d", name, n), nil, func(i int, e string) legacy.Load {
				l := loaded(uint64(i), uint64(i)%3)
				if n == len(all) || (i >= n && i < n+2 && n > 0) || i == n {
					set(&l)
				}
				return l
			})
		}
	}
	for d := uint64(0); d < 3; d++ { // below, at and above a bound
		at(fmt.Sprintf("running %d", slots+d-2), func(l *legacy.Load) { l.Running = slots + d - 2 })
		at(fmt.Sprintf("tokens %d", capacity-typical+d-1), func(l *legacy.Load) { l.Total = capacity - typical + d - 1 })
		if r.MaxInflight != nil {
			at(fmt.Sprintf("in flight %d", *r.MaxInflight+d-1), func(l *legacy.Load) { l.Inflight = *r.MaxInflight + d - 1 })
		}
		for _, queue := range []*uint64{r.Cache.QueueLimit, r.Cache.Floor} {
			if queue != nil {
				at(fmt.Sprintf("waiting %d", *queue+d-1), func(l *legacy.Load) { l.Waiting = *queue + d - 1 })
			}
		}
		for _, budget := range budgets(r) {
			at(fmt.Sprintf("pending %d", budget+d-1), func(l *legacy.Load) { l.Pending = budget + d - 1 })
			at(fmt.Sprintf("pending %d", budget-typical+d-1), func(l *legacy.Load) { l.Pending = budget - typical + d - 1 })
			put(fmt.Sprintf("pending %d alone", budget+d-1), nil, func(i int, _ string) legacy.Load {
				if i == 0 {
					return legacy.Load{Reported: true, Native: true, Slots: slots, Capacity: capacity, Pending: budget + d - 1}
				}
				return legacy.Load{Inflight: 2}
			})
		}
	}
}

func budgets(r *legacy.Router) (out []uint64) {
	if r.Config == nil {
		return nil
	}
	for _, s := range r.Config.Specs {
		if s.MaxPending != nil {
			out = append(out, *s.MaxPending)
		}
	}
	return out
}

// prefixed gives each world the ways in which engines may hold the beginning of
// a prompt of some blocks.
func prefixed(all []oldWorld, prefill []string, blocks uint64) (out []oldWorld) {
	for _, held := range [][]uint64{{}, {blocks}, {0, blocks}, {blocks - 1, blocks - 2}, {blocks / 2, blocks / 2, blocks}, {blocks / 8, blocks/8 - 1}, {blocks - 1, blocks, blocks - 3, blocks - 2}} {
		for _, w := range all {
			w.blocks = make(map[string]uint64)
			for i, n := range held {
				if i < len(prefill) && n > 0 {
					w.blocks[prefill[i]] = n
				}
			}
			w.name += fmt.Sprintf(", blocks %v", held)
			out = append(out, w)
		}
	}
	for _, w := range all {
		w.name, w.unavailable = w.name+", no index", "timeout"
		out = append(out, w)
	}
	return out
}

// bindings gives each world the ways in which the key may be bound before.
func bindings(all []oldWorld, prefill []string) (out []oldWorld) {
	for _, w := range all {
		for _, e := range []string{"", prefill[0], prefill[len(prefill)-1]} {
			own := w
			if e != "" {
				own.bound = e
				own.name += ", bound to " + e
			}
			out = append(out, own)
		}
	}
	return out
}

// theKey is the key of most requests of a sequence.
const theKey = "k"

// binding is the one before, none in a bucket that was left out.
func (w *oldWorld) binding(r *legacy.Router) []simulate.Binding {
	b := simulate.Binding{Engine: w.bound, SessionKey: theKey}
	if r.Policy == "sticky" {
		b.SessionKey, b.RoutingKey = "", theKey
	}
	for _, p := range r.Pairs {
		i := slices.IndexFunc(r.Config.Specs, func(s legacy.Spec) bool { return s.ID == p.Prefill })
		if slices.Contains(r.Config.Specs[i].Members, w.bound) {
			b.Bucket = p.ID
		}
	}
	if len(r.Pairs) > 0 && b.Bucket == "" {
		return nil
	}
	return []simulate.Binding{b}
}

// simulated is the world for the simulation.
func (w *oldWorld) simulated(r *legacy.Router) (out simulate.World) {
	if w.bound != "" {
		out.Bindings = w.binding(r)
	}
	for e, l := range w.loads {
		healthy := !slices.Contains(w.down, e)
		s := simulate.Engine{ID: e, Inflight: new(int(l.Inflight)), DispatchedSince: new(int(l.Recent)), Healthy: &healthy}
		age := w.ageMS
		if old, expired := w.old[e]; expired {
			l = old
		} else if w.old != nil {
			age = 0
		}
		if l.Reported {
			s.Loads = reports(l, max(w.ranks, 1), age)
		}
		out.Engines = append(out.Engines, s)
	}
	if w.unavailable != "" {
		out.Prefixes = []simulate.Prefixes{{Unavailable: w.unavailable}}
	}
	if len(w.blocks) > 0 {
		p := simulate.Prefixes{BlockSize: int64(r.Cache.BlockSize), Blocks: make(map[string]int64)}
		for e, n := range w.blocks {
			p.Blocks[e] = int64(n)
		}
		out.Prefixes = []simulate.Prefixes{p}
	}
	return out
}

// reports are those of the ranks of an engine, which divide its load among them.
// The last one has an age.
func reports(l legacy.Load, ranks uint64, ageMS int64) (out []simulate.Load) {
	for rank := range ranks {
		share := func(n uint64) uint64 {
			if rank == 0 {
				return n - n/ranks*(ranks-1)
			}
			return n / ranks
		}
		r := simulate.Load{Running: share(l.Running), Waiting: share(l.Waiting), PrefillRate: share(l.Rate)}
		if l.Native {
			r.Used, r.Total, r.Capacity = new(share(l.Used)), new(share(l.Total)), new(share(l.Capacity))
			r.MaxRunning, r.Pending = new(share(l.Slots)), new(share(l.Pending))
		}
		if rank == ranks-1 {
			r.AgeMS = ageMS
		}
		out = append(out, r)
	}
	return out
}

// requests are lengths around every bound of the buckets, with every kind of
// output and target.
func requests(r *legacy.Router) (out []legacy.Request) {
	var inputs, peaks []uint64
	around := func(to *[]uint64, bound *uint64) {
		if bound != nil {
			*to = append(*to, *bound-1, *bound, *bound+1)
		}
	}
	inputs = append(inputs, 1, typical, 1024, 8192)
	var ttft []*uint64
	var tps []*float64
	if r.Config != nil {
		for i := range r.Config.Specs {
			s := &r.Config.Specs[i]
			for _, bound := range []*uint64{s.MinExtend, s.MaxExtend, s.MaxContext, s.MaxSequence} {
				around(&inputs, bound)
			}
			around(&peaks, s.MaxContext)
			around(&peaks, s.MaxSequence)
			if s.TTFT != nil && r.Config.TTFTMode != "" {
				ttft = append(ttft, new(*s.TTFT-1), s.TTFT)
			}
			if s.TPS != nil && r.Config.TPSMode != "" {
				tps = append(tps, s.TPS, new(*s.TPS+0.5))
			}
		}
	}
	slices.Sort(inputs)
	slices.Sort(peaks)
	for _, input := range slices.Compact(inputs) {
		outputs := []*uint64{nil, new(uint64(0)), new(uint64(1))}
		for _, peak := range slices.Compact(peaks) {
			if peak > input+1 {
				outputs = append(outputs, new(peak-input))
			}
		}
		for _, output := range outputs {
			out = append(out, legacy.Request{Input: input, Output: output})
			for _, ms := range ttft {
				out = append(out, legacy.Request{Input: input, Output: output, TTFT: ms})
			}
			for i, rate := range tps {
				q := legacy.Request{Input: input, Output: output, TPS: rate}
				if len(ttft) > 0 {
					q.TTFT = ttft[i%len(ttft)]
				}
				out = append(out, q)
			}
		}
	}
	return out
}

// representatives keeps the first request of each kind: those that the buckets
// cannot tell apart.
func representatives(r *legacy.Router, all []legacy.Request) (out []legacy.Request) {
	seen := make(map[string]bool)
	for _, q := range all {
		kind := kindOf(r, q)
		if !seen[kind] || q.Input == typical && q.Output == nil && q.TTFT == nil {
			out = append(out, q)
		}
		seen[kind] = true
	}
	return out
}

// kindOf are the buckets that a request fits, by the rules of before and after.
func kindOf(r *legacy.Router, q legacy.Request) string {
	kind := ""
	for _, changed := range []map[legacy.Change]bool{nil, {legacy.ContextCheck: true, legacy.PolicyAttachment: true}} {
		after := *r
		after.Changed = changed
		for _, stage := range []legacy.Stage{legacy.Prefill, legacy.Decode} {
			kind += fmt.Sprintln((&after).Order(stage, q))
		}
	}
	return kind
}

// simulated is the request for the simulation.
func simulated(r *legacy.Router, q legacy.Request) simulate.Request {
	out := simulate.Request{Model: "m", InputTokens: int64(q.Input), TTFTMS: q.TTFT, TPS: q.TPS}
	if q.Output != nil {
		out.MaxOutputTokens = new(int64(*q.Output))
	}
	if r.Policy == "sticky" {
		out.RoutingKey = q.Key
	} else {
		out.SessionKey = q.Key
	}
	return out
}
