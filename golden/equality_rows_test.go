package golden_test

import (
	"slices"

	"shunt/compiler/migrate"
	"shunt/golden/legacy"
)

// point is a place of the grid: an older router in a world, and requests that
// come one after the other.
type point struct {
	*legacy.Router
	steps []legacy.Request
	// known are the orders that were asked for, which no world changes.
	known map[orderKey][]string
}

// orderKey is what the order of the buckets depends on; -1 is unknown.
type orderKey struct {
	stage        legacy.Stage
	input        uint64
	output, ttft int64
	tps          float64
	changed      [2]legacy.Change
}

// differenceRow explains differences that a deliberate change makes. It applies
// only where when says so, by facts of the point alone.
type differenceRow struct {
	row  migrate.Row
	when func(*point) bool
	why  string
}

// differenceRows are the deliberate changes that bear on picks.
func differenceRows() []differenceRow {
	return []differenceRow{
		{migrate.PowerOfTwoAdmission, (*point).samples, "two engines are sampled somewhere, and some engine is refused"},
		{migrate.OnePick, (*point).substitutes, "the policy is another one, and some engine is refused"},
		{migrate.CapacityExhaustion, (*point).limited, "some engine is at the limit of the filter, or refused"},
		{migrate.EngineCapacity, (*point).full, "some engine is at its own bounds"},
		{migrate.PendingBudget, (*point).budgeted, "the tokens of the request decide about a budget"},
		{migrate.RoundRobinCursor, (*point).turns, "requests that take turns come to several buckets"},
		{migrate.SessionAffinity, (*point).sessions, "there are sessions, and some engine is refused"},
		{migrate.OmittedMode, (*point).escapes, "there are sessions without a mode, and one engine is much more loaded than another"},
		{migrate.AffinityScope, (*point).roams, "requests of one routing key come to several buckets"},
		{migrate.CandidateBase, (*point).narrower, "there are holders in a bucket with fewer engines than the model"},
		{migrate.BucketOrder, (*point).reordered, "two buckets fit that capacity orders otherwise than rank"},
		{migrate.ContextCheck, (*point).refitted, "a bound is on the input before and on the peak after, or the other way"},
		{migrate.PairedStages, (*point).apart, "the stages come to buckets of different pairs"},
		{migrate.PolicyAttachment, (*point).dropped, "a bucket fits that the decisions leave out"},
	}
}

// any visits the engines of both stages with each request.
func (p *point) any(of func(stage legacy.Stage, engine string, q legacy.Request) bool) bool {
	for stage, engines := range p.Fleet {
		for _, e := range engines {
			if slices.ContainsFunc(p.steps, func(q legacy.Request) bool { return of(stage, e, q) }) {
				return true
			}
		}
	}
	return false
}

func (p *point) full() bool {
	return p.any(func(stage legacy.Stage, e string, q legacy.Request) bool {
		tokens := q.Input
		if stage == legacy.Decode {
			tokens = legacy.Peak(q.Input, q.Output)
		}
		bounded := stage == legacy.Decode || slices.Contains([]string{"power_of_two", "session_aware", "cache_aware"}, p.Policy)
		return bounded && !p.Loads.HasCapacity(e, tokens, nil)
	})
}

// budget is that of an engine's bucket, nil without one.
func (p *point) budget(engine string) *uint64 {
	if p.Config == nil {
		return nil
	}
	for _, s := range p.Config.Specs {
		if slices.Contains(s.Members, engine) {
			return s.MaxPending
		}
	}
	return nil
}

func (p *point) budgeted() bool {
	return p.any(func(_ legacy.Stage, e string, q legacy.Request) bool {
		most, l := p.budget(e), p.Loads[e]
		return most != nil && l.Native && l.Pending <= *most && l.Pending+q.Input > *most
	})
}

// refused reports whether some engine is refused, before or after.
func (p *point) refused() bool {
	return p.full() || p.any(func(_ legacy.Stage, e string, q legacy.Request) bool {
		most, l := p.budget(e), p.Loads[e]
		return most != nil && l.Native && l.Pending+q.Input > *most
	})
}

func (p *point) limited() bool {
	return p.refused() || p.any(func(_ legacy.Stage, e string, _ legacy.Request) bool {
		return p.MaxInflight != nil && p.Loads[e].Inflight >= *p.MaxInflight
	})
}

func (p *point) samples() bool     { return (p.PD || p.Policy == "power_of_two") && p.refused() }
func (p *point) substitutes() bool { return p.Policy != "power_of_two" && p.refused() }
func (p *point) sessions() bool    { return p.Policy == "session_aware" && p.refused() }

func (p *point) escapes() bool {
	return p.Soft && p.any(func(stage legacy.Stage, e string, q legacy.Request) bool {
		return stage == legacy.Prefill && q.Key != "" && slices.ContainsFunc(p.Fleet[stage], func(other string) bool {
			return p.Loads.Material(e, other, legacy.DefaultGuard())
		})
	})
}

// spread reports whether requests may come to several prefill buckets, before or
// after.
func (p *point) spread() bool {
	seen := make(map[string]bool)
	retried := p.limited() || p.anyStage(p.down)
	for _, q := range p.steps {
		for _, changed := range lengthChanges() {
			for i, id := range p.orders(legacy.Prefill, q, changed...) {
				if i == 0 || retried {
					seen[id] = true
				}
			}
		}
	}
	return len(seen) > 1
}

// down reports whether some bucket that fits, before or after, has no engine.
func (p *point) down(stage legacy.Stage, q legacy.Request) bool {
	return slices.ContainsFunc(lengthChanges(), func(changed []legacy.Change) bool {
		return slices.ContainsFunc(p.orders(stage, q, changed...), func(id string) bool { return !p.alive(stage, id) })
	})
}

func (p *point) alive(stage legacy.Stage, bucket string) bool {
	if bucket == legacy.Global {
		return len(p.Fleet[stage]) > 0
	}
	i := slices.IndexFunc(p.Config.Specs, func(s legacy.Spec) bool { return s.ID == bucket })
	return slices.ContainsFunc(p.Config.Specs[i].Members, func(e string) bool { return slices.Contains(p.Fleet[stage], e) })
}

// lengthChanges are the ways in which the buckets of a length may change.
func lengthChanges() [][]legacy.Change {
	return [][]legacy.Change{nil, {legacy.BucketOrder}, {legacy.ContextCheck}, {legacy.ContextCheck, legacy.BucketOrder}, {legacy.PolicyAttachment}}
}

func (p *point) turns() bool {
	rotates := p.Policy == "round_robin" || p.Policy == "sticky" && p.Fallback == "round_robin"
	return rotates && p.spread()
}

func (p *point) roams() bool { return p.Policy == "sticky" && p.spread() }

func (p *point) narrower() bool {
	return p.Policy == "cache_aware" && slices.ContainsFunc(p.steps, func(q legacy.Request) bool {
		return slices.ContainsFunc(p.Domains(legacy.Prefill, q), func(d legacy.Domain) bool {
			return len(d.Engines) < len(p.Fleet[legacy.Prefill]) &&
				slices.ContainsFunc(d.Engines, func(e string) bool { return p.Cache.Blocks[e] > 0 })
		})
	})
}

// orders are the buckets that a request fits in a stage, with up to two changes.
func (p *point) orders(stage legacy.Stage, q legacy.Request, changed ...legacy.Change) []string {
	key := orderKey{stage: stage, input: q.Input, output: -1, ttft: -1, tps: -1}
	copy(key.changed[:], changed)
	if q.Output != nil {
		key.output = int64(*q.Output)
	}
	if q.TTFT != nil {
		key.ttft = int64(*q.TTFT)
	}
	if q.TPS != nil {
		key.tps = *q.TPS
	}
	out, ok := p.known[key]
	if !ok {
		after := *p.Router
		after.Changed = make(map[legacy.Change]bool)
		for _, c := range changed {
			after.Changed[c] = true
		}
		out = after.Order(stage, q)
		p.known[key] = out
	}
	return out
}

func (p *point) anyStage(of func(stage legacy.Stage, q legacy.Request) bool) bool {
	return slices.ContainsFunc(p.steps, func(q legacy.Request) bool {
		return of(legacy.Prefill, q) || p.PD && of(legacy.Decode, q)
	})
}

func (p *point) reordered() bool {
	return p.anyStage(func(stage legacy.Stage, q legacy.Request) bool {
		// A bucket that fits by one rule of the context alone may be one of the two.
		return !slices.Equal(p.orders(stage, q), p.orders(stage, q, legacy.BucketOrder)) ||
			!slices.Equal(p.orders(stage, q, legacy.ContextCheck), p.orders(stage, q, legacy.ContextCheck, legacy.BucketOrder))
	})
}

func (p *point) refitted() bool {
	return p.anyStage(func(stage legacy.Stage, q legacy.Request) bool {
		return !slices.Equal(slices.Sorted(slices.Values(p.orders(stage, q))), slices.Sorted(slices.Values(p.orders(stage, q, legacy.ContextCheck))))
	})
}

// apart reports whether the first buckets of the two stages are of different
// pairs, or may be because one of them refuses or has no engine.
func (p *point) apart() bool {
	if !p.PD || len(p.Pairs) < 2 {
		return false
	}
	down := p.anyStage(p.down)
	return down || p.limited() || slices.ContainsFunc(p.steps, func(q legacy.Request) bool {
		for _, changed := range lengthChanges() {
			prefill, decode := p.orders(legacy.Prefill, q, changed...), p.orders(legacy.Decode, q, changed...)
			if len(prefill) == 0 || len(decode) == 0 || !p.together(prefill[0], decode[0]) {
				return true
			}
		}
		return false
	})
}

func (p *point) together(prefill, decode string) bool {
	return slices.ContainsFunc(p.Pairs, func(x legacy.Pair) bool {
		return x.Prefill == prefill && (x.Decode == decode || x.Decode == "" && decode == legacy.Global)
	})
}

func (p *point) dropped() bool {
	return p.anyStage(func(stage legacy.Stage, q legacy.Request) bool {
		return !slices.Equal(p.orders(stage, q), p.orders(stage, q, legacy.PolicyAttachment))
	})
}

// applying are the rows that apply.
func (p *point) applying(rows []differenceRow) (out []migrate.Row) {
	for _, r := range rows {
		if r.when(p) {
			out = append(out, r.row)
		}
	}
	return out
}

// needed leaves out of rows that explain some picks those that make no
// difference.
func (p *point) needed(rows []migrate.Row, runs [][]picked) []migrate.Row {
	for _, r := range slices.Clone(rows) {
		without := slices.DeleteFunc(slices.Clone(rows), func(other migrate.Row) bool { return other == r })
		if p.agrees(runs, without, enough) {
			rows = without
		}
	}
	return rows
}

// picked are the engines that the plan picked, empty where the request was
// refused.
type picked struct{ prefill, decode string }

// enough is how often something must have been possible before it counts that it
// never happened. The rarest picks of the grid have a chance of one in six.
const enough = 24

// agrees reports whether the older router with some changes picks as the plan
// did in some runs: nothing that it would not pick, and everything that it would
// pick, as far as it would have had the given number of occasions.
func (p *point) agrees(runs [][]picked, rows []migrate.Row, occasions int) bool {
	changed := make(map[legacy.Change]bool)
	for _, r := range rows {
		changed[legacy.Change(r)] = true
	}
	var all []*offer
	for _, run := range runs {
		r := *p.Router
		r.Changed = changed
		for i, got := range run {
			if len(p.steps) > 1 || len(all) == 0 { // without a sequence there is no state
				all = offered(all, i, r.Select(p.steps[i]))
			}
			o := all[0]
			at := o.take(got)
			if at < 0 {
				return false
			}
			r.Follow(o.outcomes[at])
		}
	}
	if len(p.steps) > 1 && p.Fallback == "load_based" && p.Policy == "sticky" {
		return true // nothing is promised about where its rotor begins
	}
	return !slices.ContainsFunc(all, func(o *offer) bool { return o.occasions >= occasions && !o.complete() })
}

// offer is what may be picked at a step, and what was.
type offer struct {
	step      int
	outcomes  []legacy.Outcome
	occasions int
	seen      map[string]bool
}

// offered puts what may be picked now in front.
func offered(all []*offer, step int, outcomes []legacy.Outcome) []*offer {
	same := func(a, b legacy.Outcome) bool { return a.Prefill == b.Prefill && a.Decode == b.Decode }
	for i, o := range all {
		if o.step == step && slices.EqualFunc(o.outcomes, outcomes, same) {
			o.outcomes = outcomes
			all[0], all[i] = all[i], all[0]
			return all
		}
	}
	return append([]*offer{{step: step, outcomes: outcomes, seen: make(map[string]bool)}}, all...)
}

// take returns the outcome that was picked, -1 if it was not offered.
func (o *offer) take(got picked) int {
	o.occasions++
	o.seen["p"+got.prefill], o.seen["d"+got.decode] = true, true
	return slices.IndexFunc(o.outcomes, func(x legacy.Outcome) bool { return x.Prefill == got.prefill && x.Decode == got.decode })
}

// complete reports whether every engine of each stage was picked.
func (o *offer) complete() bool {
	return !slices.ContainsFunc(o.outcomes, func(x legacy.Outcome) bool { return !o.seen["p"+x.Prefill] || !o.seen["d"+x.Decode] })
}
