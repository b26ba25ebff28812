package suite

import (
	"cmp"
	"slices"
	"sort"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

// What is covered.
const (
	KindBucket    = "buckets served"
	KindSkip      = "buckets skipped"
	KindGroup     = "groups picked from"
	KindReason    = "policy outcomes"
	KindAdmission = "admission limits"
)

// Item is something of a plan that a test can reach.
type Item struct {
	Kind  string `json:"kind"`
	Model string `json:"model"`
	// Place is BUCKET or BUCKET/STAGE, What the fate, reason or limit.
	Place string `json:"place"`
	What  string `json:"what,omitempty"`
}

// String names the item.
func (i Item) String() string {
	s := i.Model + ", " + i.Place
	if i.What != "" {
		s += ": " + i.What
	}
	return s
}

// Coverage is what of a plan was reached. It belongs to one goroutine.
type Coverage struct {
	items   []Item
	reached []bool
	models  map[string]*modelItems
}

// modelItems finds the items of a model.
type modelItems struct {
	buckets []bucketItems // in the order of the plan
	index   map[string]int
}

// bucketItems are the items of one bucket, by what they are.
type bucketItems struct {
	id   string
	fate map[routing.Fate]int
	// group has the items of groups, by kind, stage and reason or limit.
	group map[groupItem]int
}

type groupItem struct{ kind, stage, what string }

// NewCoverage lists what of a plan can be reached: every bucket serves, is
// skipped for each bound that it has, and is given up; every group picks, with
// each outcome of a policy that has several, and refuses at each of its limits.
// A store of bindings that can be down has what follows from that.
func NewCoverage(body *plan.Body) *Coverage {
	c := &Coverage{models: make(map[string]*modelItems)}
	for i := range body.Models {
		m := &body.Models[i]
		items := &modelItems{index: make(map[string]int, len(m.Buckets))}
		c.models[m.ID] = items
		for j := range m.Buckets {
			items.index[m.Buckets[j].ID] = j
			items.buckets = append(items.buckets, c.bucket(m, &m.Buckets[j], body.State.Affinity))
		}
	}
	c.reached = make([]bool, len(c.items))
	return c
}

func (c *Coverage) bucket(m *plan.Model, b *plan.Bucket, store *plan.AffinityState) bucketItems {
	out := bucketItems{id: b.ID, fate: make(map[routing.Fate]int), group: make(map[groupItem]int)}
	add := func(kind, place, what string) int {
		c.items = append(c.items, Item{kind, m.ID, place, what})
		return len(c.items) - 1
	}
	out.fate[routing.Picked] = add(KindBucket, b.ID, "")
	skip := func(f routing.Fate) { out.fate[f] = add(KindSkip, b.ID, string(f)) }
	if b.Min != nil && *b.Min > 1 {
		skip(routing.BelowMin)
	}
	if b.Max != nil {
		skip(routing.AboveMax)
	}
	if b.MaxContextTokens != nil {
		skip(routing.AboveContext)
	}
	skip(routing.Failed)
	for _, g := range b.Groups.All() {
		stage := string(g.Stage)
		group := func(kind, what string) {
			out.group[groupItem{kind, stage, what}] = add(kind, placeOf(b.ID, stage), what)
		}
		group(KindGroup, "")
		for _, r := range outcomes(&g.Group.Policy, m.Tokenizer != nil, store) {
			group(KindReason, r)
		}
		for _, l := range limits(&g.Group.Policy.Admission) {
			group(KindAdmission, string(l))
		}
	}
	return out
}

func placeOf(bucket, stage string) string {
	if stage == string(plan.Plain) {
		return bucket
	}
	return bucket + "/" + stage
}

// outcomes are the reasons of a policy that has several, and the failure of a
// store that is configured to refuse.
func outcomes(p *plan.Policy, tokenizer bool, store *plan.AffinityState) []string {
	var out []string
	add := func(reasons ...policy.Reason) {
		for _, r := range reasons {
			out = append(out, string(r))
		}
	}
	switch p.Type {
	case plan.CacheAware:
		add(policy.ReasonCacheMiss)
		if tokenizer {
			add(policy.ReasonCache)
			if p.CacheAware != nil && p.CacheAware.SaturationQueueFloor != nil {
				add(policy.ReasonPinned)
			}
		}
		return out
	case plan.SessionAware:
		add(policy.ReasonSession, policy.ReasonAssigned, policy.ReasonNoSession)
	case plan.Sticky:
		add(policy.ReasonSticky, policy.ReasonAssigned, policy.ReasonRemap, policy.ReasonNoKey)
	default:
		return nil
	}
	switch {
	case store == nil || store.Redis == nil:
	case store.Redis.OnFailure == plan.FailReject:
		out = append(out, policy.StateUnavailable.String())
	default:
		add(policy.ReasonNoStore)
	}
	return out
}

func limits(a *plan.Admission) (out []policy.Limit) {
	for _, l := range [...]struct {
		limit policy.Limit
		set   *int64
	}{
		{policy.MaxRunningRequests, a.MaxRunningRequests},
		{policy.MaxWaitingRequests, a.MaxWaitingRequests},
		{policy.MaxKVTokens, a.MaxKVTokens},
		{policy.MaxPendingPrefillTokens, a.MaxPendingPrefillTokens},
		{policy.MaxInflightRequests, a.MaxInflightRequests},
	} {
		if l.set != nil {
			out = append(out, l.limit)
		}
	}
	return out
}

// observe notes what a decision reached in the buckets that it tried, and returns
// the indexes of the model's buckets by id. It is called for every decision.
func (c *Coverage) observe(d *routing.Decision) map[string]int {
	m := c.models[d.Model]
	for i := range d.Buckets {
		b := &d.Buckets[i]
		items := &m.buckets[m.index[b.ID]]
		if n, counts := items.fate[b.Fate]; counts {
			c.reached[n] = true
		}
		mark := func(kind, stage, what string) {
			if n, counts := items.group[groupItem{kind, stage, what}]; counts {
				c.reached[n] = true
			}
		}
		for j := range b.Groups {
			g := &b.Groups[j]
			if g.Pick != nil {
				mark(KindGroup, g.Stage, "")
				mark(KindReason, g.Stage, string(g.Pick.Reason))
			}
			if g.Error != nil {
				mark(KindReason, g.Stage, g.Error.Kind)
			}
			for k := range g.Admission {
				if l := g.Admission[k].Limit; l != "" {
					mark(KindAdmission, g.Stage, string(l))
				}
			}
		}
	}
	return m.index
}

// skipped notes the bounds for which requests passed buckets by. The requests
// differ in their length only. Longer ones have a peak that is not lower, so for
// each bucket three of them tell of all: the shortest, the longest, and the
// longest that its range takes.
func (c *Coverage) skipped(sim *simulate.Simulation, requests []simulate.Request) {
	if len(requests) == 0 {
		return
	}
	slices.SortFunc(requests, func(a, b simulate.Request) int { return cmp.Compare(a.InputTokens, b.InputTokens) })
	m, last := c.models[requests[0].Model], len(requests)-1
	for i := range m.buckets {
		mark := func(k int) {
			if n, counts := m.buckets[i].fate[sim.Fate(&requests[k], i)]; counts {
				c.reached[n] = true
			}
		}
		mark(0)
		if last == 0 {
			continue
		}
		mark(last)
		if k := sort.Search(last+1, func(k int) bool { return sim.Fate(&requests[k], i) == routing.AboveMax }); k > 0 {
			mark(k - 1)
		}
	}
}

// Part is a count.
type Part struct {
	Kind    string `json:"kind"`
	Reached int    `json:"reached"`
	Total   int    `json:"total"`
}

// Parts counts by kind, in a fixed order, without kinds that the plan does not
// have.
func (c *Coverage) Parts() []Part {
	out := []Part{{Kind: KindBucket}, {Kind: KindSkip}, {Kind: KindGroup}, {Kind: KindReason}, {Kind: KindAdmission}}
	for n, i := range c.items {
		k := slices.IndexFunc(out, func(p Part) bool { return p.Kind == i.Kind })
		out[k].Total++
		if c.reached[n] {
			out[k].Reached++
		}
	}
	return slices.DeleteFunc(out, func(p Part) bool { return p.Total == 0 })
}

// Missed lists what was not reached, in the order of the plan.
func (c *Coverage) Missed() []Item {
	out := []Item{}
	for n, i := range c.items {
		if !c.reached[n] {
			out = append(out, i)
		}
	}
	return out
}

// Percent is the share that was reached, 100 for a plan with nothing to reach.
func (c *Coverage) Percent() float64 {
	if len(c.items) == 0 {
		return 100
	}
	return 100 * float64(len(c.items)-len(c.Missed())) / float64(len(c.items))
}
