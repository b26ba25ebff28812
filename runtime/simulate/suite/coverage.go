package suite

import (
	"slices"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
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
	reached map[Item]bool
}

// NewCoverage lists what of a plan can be reached: every bucket serves, is
// skipped for each bound that it has, and is given up; every group picks, with
// each outcome of a policy that has several, and refuses at each of its limits.
// Outcomes that depend on the affinity store or on engines that went are not
// counted.
func NewCoverage(body *plan.Body) *Coverage {
	c := &Coverage{reached: make(map[Item]bool)}
	for i := range body.Models {
		m := &body.Models[i]
		for j := range m.Buckets {
			c.bucket(m, &m.Buckets[j])
		}
	}
	for _, i := range c.items {
		c.reached[i] = false
	}
	return c
}

func (c *Coverage) bucket(m *plan.Model, b *plan.Bucket) {
	add := func(kind, place string, what string) {
		c.items = append(c.items, Item{kind, m.ID, place, what})
	}
	add(KindBucket, b.ID, "")
	if b.Min != nil && *b.Min > 1 {
		add(KindSkip, b.ID, string(routing.BelowMin))
	}
	if b.Max != nil {
		add(KindSkip, b.ID, string(routing.AboveMax))
	}
	if b.MaxContextTokens != nil {
		add(KindSkip, b.ID, string(routing.AboveContext))
	}
	add(KindSkip, b.ID, string(routing.Failed))
	for _, g := range b.Groups.All() {
		place := placeOf(b.ID, string(g.Stage))
		add(KindGroup, place, "")
		for _, r := range outcomes(&g.Group.Policy, m.Tokenizer != nil) {
			add(KindReason, place, string(r))
		}
		for _, l := range limits(&g.Group.Policy.Admission) {
			add(KindAdmission, place, string(l))
		}
	}
}

func placeOf(bucket, stage string) string {
	if stage == string(plan.Plain) {
		return bucket
	}
	return bucket + "/" + stage
}

// outcomes are the reasons of a policy that has several.
func outcomes(p *plan.Policy, tokenizer bool) []policy.Reason {
	switch p.Type {
	case plan.CacheAware:
		out := []policy.Reason{policy.ReasonCacheMiss}
		if tokenizer {
			out = append(out, policy.ReasonCache)
			if p.CacheAware != nil && p.CacheAware.SaturationQueueFloor != nil {
				out = append(out, policy.ReasonPinned)
			}
		}
		return out
	case plan.SessionAware:
		return []policy.Reason{policy.ReasonSession, policy.ReasonAssigned, policy.ReasonNoSession}
	case plan.Sticky:
		return []policy.Reason{policy.ReasonSticky, policy.ReasonAssigned, policy.ReasonNoKey}
	}
	return nil
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

// observe notes what a decision reached.
func (c *Coverage) observe(d *routing.Decision) {
	mark := func(kind, place, what string) {
		i := Item{kind, d.Model, place, what}
		if seen, counts := c.reached[i]; counts && !seen {
			c.reached[i] = true
		}
	}
	for i := range d.Buckets {
		b := &d.Buckets[i]
		if b.Fate == routing.Picked {
			mark(KindBucket, b.ID, "")
		} else {
			mark(KindSkip, b.ID, string(b.Fate))
		}
		for j := range b.Groups {
			g := &b.Groups[j]
			place := placeOf(b.ID, g.Stage)
			if g.Pick != nil {
				mark(KindGroup, place, "")
				mark(KindReason, place, string(g.Pick.Reason))
			}
			for k := range g.Admission {
				if l := g.Admission[k].Limit; l != "" {
					mark(KindAdmission, place, string(l))
				}
			}
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
	for _, i := range c.items {
		k := slices.IndexFunc(out, func(p Part) bool { return p.Kind == i.Kind })
		out[k].Total++
		if c.reached[i] {
			out[k].Reached++
		}
	}
	return slices.DeleteFunc(out, func(p Part) bool { return p.Total == 0 })
}

// Missed lists what was not reached, in the order of the plan.
func (c *Coverage) Missed() []Item {
	out := []Item{}
	for _, i := range c.items {
		if !c.reached[i] {
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
