package check

import (
	"fmt"
	"slices"
	"sort"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// tryOrder lists the buckets of a model by index in the order in which a request
// tries them, and their ranges.
func (m *modelAt) tryOrder() ([]int, []plan.Bucket) {
	all := make([]plan.Bucket, len(m.buckets()))
	order := make([]int, len(all))
	for i := range all {
		all[i], order[i] = ranges(&m.buckets()[i]), i
	}
	slices.SortFunc(order, func(a, b int) int { return plan.CompareBuckets(all[a], all[b]) })
	sorted := make([]plan.Bucket, len(all))
	for k, i := range order {
		sorted[k] = all[i]
	}
	return order, sorted
}

// ruleOrder warns about buckets of equal capacity and rank. Their ranges have a
// length in common, since each bucket takes inputs up to its capacity.
func ruleOrder(r *rules) {
	for _, m := range r.sounds() {
		order, sorted := m.tryOrder()
		ties, first := several{}, 0
		for k := 1; k < len(order); k++ {
			if sorted[k].Capacity() != sorted[first].Capacity() || sorted[k].Rank != sorted[first].Rank || r.shadowed[m.bucketAt(order[first])] {
				first = k
				continue
			}
			// A run of equal buckets is reported at its second one.
			if k != first+1 || r.shadowed[m.bucketAt(order[k])] || !ties.next() {
				continue
			}
			f := r.add(diag.OrderByID, m.bucketAt(order[k])+"/id", fmt.Sprintf("buckets %q and %q have equal capacity and rank, so their names decide which one is tried first", sorted[first].ID, sorted[k].ID))
			f.Hint = "give them different ranks; the lower one is tried first"
			r.also(f, m.bucketAt(order[first])+"/id", fmt.Sprintf("bucket %q is here", sorted[first].ID))
		}
		ties.finish(r, "pair")
	}
}

// ruleRankOverruled warns about a written rank that says the opposite of the
// capacities of two buckets that have requests in common.
func ruleRankOverruled(r *rules) {
	for _, m := range r.sounds() {
		order, sorted := m.tryOrder()
		// The written ranks in try order; a bucket without one is below all.
		ranks := make([]int64, len(order))
		for k, i := range order {
			ranks[k] = config.Or(m.buckets()[i].Rank, -1)
		}
		highest := newRangeMax(ranks)
		overruled := several{}
		for k, i := range order {
			low := config.Or(m.buckets()[i].Limits.Min, 0)
			// Earlier buckets with a smaller capacity that reach this range.
			from := sort.Search(k, func(j int) bool { return sorted[j].Capacity() >= low })
			to := sort.Search(k, func(j int) bool { return sorted[j].Capacity() >= sorted[k].Capacity() })
			if ranks[k] < 0 || from >= to {
				continue
			}
			j := highest.of([]plan.Run{{from, to - 1}})
			if ranks[j] <= ranks[k] || !overruled.next() {
				continue
			}
			f := r.add(diag.RankOverruled, m.bucketAt(i)+"/rank", fmt.Sprintf("rank %d does not put bucket %q before %q of rank %d, which has a smaller capacity and is tried first", ranks[k], sorted[k].ID, sorted[j].ID, ranks[j]))
			f.Hint = "swap the ranks to say what happens, or make the ranges disjoint"
			r.also(f, m.bucketAt(order[j])+"/rank", "the other rank is here")
		}
		overruled.finish(r, "rank")
	}
}

// ruleLostLimits warns about a group whose policy has no limits and replaces a
// default that has some.
func ruleLostLimits(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		lost := several{}
		main, decode, _ := m.uses()
		for j := range m.groups {
			g := &m.groups[j]
			def := m.Defaults.For(string(g.stage))
			if g.stage == plan.Decode && !decode || g.stage != plan.Decode && !main {
				continue // reported as a default that no group uses
			}
			if g.Policy == nil || def == nil || len(limits(g.Policy)) > 0 || !r.intact(g.at+"/policy") || r.tree.Node(g.at+"/policy/admission") != nil {
				continue
			}
			names := limits(def)
			if len(names) == 0 || !lost.next() {
				continue
			}
			r.lost[g.at] = true
			path := m.at + "/defaults/policy"
			if g.stage == plan.Decode {
				path = m.at + "/defaults/decode_policy"
			}
			f := r.addKey(diag.LostLimits, g.at+"/policy", fmt.Sprintf("this policy replaces the default with its %s and has no limits", series(names)))
			f.Hint = "repeat the limits here; admission: {max_inflight_requests: N} is one that always holds"
			r.also(f, path+"/admission", "the limits of the default are here")
		}
		lost.finish(r, "group")
	}
}

// limits lists the names of the limits of a policy.
func limits(p *config.Policy) (names []string) {
	for _, l := range p.Admission.Limits() {
		if l.Value != nil {
			names = append(names, l.Name)
		}
	}
	return names
}

// ruleLimitBypassed warns about a group without limits that has an engine of an
// earlier bucket's group with limits: what that one refuses goes to this one.
func ruleLimitBypassed(r *rules) {
	for _, m := range r.sounds() {
		bypassed, steps := several{}, maxSteps
		for _, stage := range [...]plan.Role{plan.Plain, plan.Prefill, plan.Decode} {
			// The last group so far that has the engine and limits: of all such
			// groups the one with the largest capacity.
			limiting := make(map[int]*groupAt)
			for _, g := range m.tried(stage) {
				if !steps.spend(len(g.members.engines)) {
					break
				}
				if m.limited(g) {
					for _, e := range g.members.engines {
						limiting[e] = g
					}
					continue
				}
				low := config.Or(m.buckets()[g.bucket].Limits.Min, 0)
				i := slices.IndexFunc(g.members.engines, func(e int) bool {
					first := limiting[e]
					return first != nil && low <= m.capacity(first.bucket)
				})
				if i >= 0 && !r.shadowed[m.bucketAt(g.bucket)] && !r.lost[g.at] && bypassed.next() {
					r.bypassed(m, limiting[g.members.engines[i]], g, m.engines[g.members.engines[i]].ID)
				}
			}
		}
		bypassed.finish(r, "group")
	}
}

func (r *rules) bypassed(m *modelAt, first, second *groupAt, engine string) {
	path := second.at
	if second.Policy != nil {
		path += "/policy"
	}
	f := r.addKey(diag.LimitBypassed, path, fmt.Sprintf("what the limits of bucket %q refuse goes on to bucket %q, which has engine %q without limits", m.buckets()[first.bucket].ID, m.buckets()[second.bucket].ID, engine))
	f.Hint = "repeat the admission limits here, or keep the engine out of the group"
	r.also(f, first.at, "the group with limits is here")
}
