package plandiff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"shunt/schema/plan"
)

// modelDiff compares two models of one id.
type modelDiff struct {
	*comparison
	id                 string
	oldIndex, newIndex int
	before, after      *plan.Model
	buckets            pairing
	engines            pairing
	// vague says that some orders with latency targets were not compared.
	vague bool
}

func newModelDiff(c *comparison, i, j int) *modelDiff {
	m := &modelDiff{comparison: c, oldIndex: i, newIndex: j, before: &c.old.body.Models[i], after: &c.new.body.Models[j]}
	m.id = m.before.ID
	m.engines = pairEngines(m.before.Engines(), m.after.Engines())
	m.buckets = m.pairBuckets()
	return m
}

func (m *modelDiff) compare() {
	old, now := newRoster(m.before), newRoster(m.after)
	routes := len(m.diff.Routes)
	m.vague = m.routes()
	moved := len(m.diff.Routes) > routes
	m.settings()
	m.engineChanges()
	for i, j := range m.buckets.partner {
		a := &m.before.Buckets[i]
		if j < 0 {
			m.diff.Changes = append(m.diff.Changes, m.removed(a))
			continue
		}
		b := &m.after.Buckets[j]
		m.bucket(i, j, moved)
		m.serving(b.ID, old.serves(a), now.serves(b))
	}
	for j := range m.after.Buckets {
		if m.buckets.back[j] < 0 {
			m.add(Change{Class: Behaviour, Kind: BucketAdded, Model: m.id}, m.after.Buckets[j].ID)
		}
	}
}

// serving notes a bucket that cannot serve any more, or can now, whatever its
// range. Its requests go on to later buckets; where there are none, routes say so.
func (m *modelDiff) serving(id string, before, after bool) {
	switch {
	case before && !after:
		m.add(Change{Class: Behaviour, Kind: BucketStopped, Model: m.id, Note: "a group has no engine, no pair, or a limit that admits nothing"}, id)
	case after && !before:
		m.add(Change{Class: Behaviour, Kind: BucketStarted, Model: m.id}, id)
	}
}

func (m *modelDiff) removed(b *plan.Bucket) Change {
	c := Change{Class: Behaviour, Kind: BucketRemoved, Model: m.id, Places: []string{b.ID}}
	if keepsBindings(b) {
		c.Note = "its bindings are lost"
	}
	return c
}

// settings compares what belongs to the model as a whole.
func (m *modelDiff) settings() {
	before, after := settingsOf(m.before), settingsOf(m.after)
	at := func(i int) string { return fmt.Sprintf("/models/%d", i) }
	rejects := m.after.Sampling != nil && m.after.Sampling.Conflict == plan.ConflictReject
	start := len(m.diff.Changes)
	m.fields(context{model: m.id}, "", at(m.oldIndex), at(m.newIndex), before, after)
	for i := start; i < len(m.diff.Changes); i++ {
		c := &m.diff.Changes[i]
		switch {
		case rejects && strings.HasPrefix(c.Field, "sampling."):
			c.Class, c.Note = Breaking, "requests with other values of their own are answered with status 400"
		case m.vague && (c.Field == "slo" || strings.HasPrefix(c.Field, "slo.")):
			c.Note = vagueNote
		}
	}
}

// settingsOf is a model without what is compared elsewhere or follows from the
// rest.
func settingsOf(m *plan.Model) *plan.Model {
	out := *m
	out.Buckets, out.Breakpoints, out.Requires = nil, nil, plan.Requires{}
	out.Discovery.Static = nil
	return &out
}

// bucket compares two buckets that are the same one.
func (m *modelDiff) bucket(i, j int, moved bool) {
	before, after := &m.before.Buckets[i], &m.after.Buckets[j]
	if before.ID != after.ID {
		m.renamed(before, after)
	}
	oldAt, newAt := plan.BucketPointer(m.oldIndex, i), plan.BucketPointer(m.newIndex, j)
	m.bounds(before, after, oldAt, newAt, moved)
	stages, stages2 := before.Groups.All(), after.Groups.All()
	if (before.Groups.PD == nil) != (after.Groups.PD == nil) {
		m.add(Change{Class: Behaviour, Kind: FieldChanged, Model: m.id, Field: "groups",
			Old: kindOf(&before.Groups), New: kindOf(&after.Groups)}, after.ID)
		return
	}
	if before.Groups.PD != nil && !slices.Equal(before.Groups.PD.MatchLabels, after.Groups.PD.MatchLabels) {
		m.add(Change{Class: Behaviour, Kind: FieldChanged, Model: m.id, Field: "match_labels",
			Old: names(before.Groups.PD.MatchLabels), New: names(after.Groups.PD.MatchLabels)}, after.ID)
	}
	for k := range stages {
		place := after.ID
		if stages[k].Stage != plan.Plain {
			place += "/" + string(stages[k].Stage)
		}
		member := "/groups/" + stages[k].Member()
		m.group(place, oldAt+member, newAt+member, stages[k].Group, stages2[k].Group)
	}
}

// names is a list of names, nil for none.
func names(list []string) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	return raw(list)
}

func kindOf(g *plan.Groups) json.RawMessage {
	if g.PD != nil {
		return json.RawMessage(`"pd"`)
	}
	return json.RawMessage(`"plain"`)
}

func (m *modelDiff) renamed(before, after *plan.Bucket) {
	c := Change{Class: Cosmetic, Kind: BucketRenamed, Model: m.id, Old: raw(before.ID), New: raw(after.ID)}
	if keepsBindings(before) {
		c.Class, c.Note = Behaviour, "bindings belong to the id of a bucket, so those of the old one are lost"
	}
	m.diff.Changes = append(m.diff.Changes, c)
}

// keepsBindings reports whether a group of the bucket binds keys to engines.
func keepsBindings(b *plan.Bucket) bool {
	return slices.ContainsFunc(b.Groups.All(), func(g plan.StagedGroup) bool { return binds(g.Group.Policy.Type) })
}

func binds(t plan.PolicyType) bool { return t == plan.SessionAware || t == plan.Sticky }

// bounds compares the range, rank and estimates of a bucket. What they do to
// requests is in the routes; without any, they did nothing.
func (m *modelDiff) bounds(before, after *plan.Bucket, oldAt, newAt string, moved bool) {
	a, b := *before, *after
	a.ID, b.ID, a.Groups, b.Groups = "", "", plan.Groups{}, plan.Groups{}
	for _, d := range differences(&a, &b) {
		c := Change{Class: Cosmetic, Kind: FieldChanged, Model: m.id, Field: d.path, Old: d.old, New: d.new}
		c.OldDefault = d.old != nil && m.old.isDefault(oldAt+"/"+d.path)
		c.NewDefault = d.new != nil && m.new.isDefault(newAt+"/"+d.path)
		estimate := d.path == "ttft_ms" || d.path == "tokens_per_second"
		switch targets := m.before.SLO != nil || m.after.SLO != nil; {
		case estimate && targets && m.vague:
			c.Class, c.Note = Behaviour, vagueNote
		case moved && (targets || !estimate):
			c.Class = Behaviour
		}
		m.add(c, after.ID)
	}
}

const vagueNote = "requests with a latency target may try buckets in another order"

// group compares the policies and selectors of two groups. What selectors do to
// engines is compared elsewhere.
func (m *modelDiff) group(place, oldAt, newAt string, before, after *plan.Group) {
	p, q := before.Policy, after.Policy
	if p.Type != q.Type {
		c := Change{Class: Behaviour, Kind: PolicyChanged, Model: m.id, Field: "policy.type", Old: raw(string(p.Type)), New: raw(string(q.Type))}
		if binds(p.Type) {
			c.Note = "existing bindings are not used any more"
		}
		c.OldDefault, c.NewDefault = m.old.isDefault(oldAt+"/policy/type"), m.new.isDefault(newAt+"/policy/type")
		m.add(c, place)
	}
	limits := [2]plan.Admission{p.Admission, q.Admission}
	if p.Admission, q.Admission = (plan.Admission{}), (plan.Admission{}); p.Type == q.Type {
		for _, d := range differences(&p, &q) {
			c := Change{Class: Behaviour, Kind: PolicyChanged, Model: m.id, Field: joined("policy", d.path), Old: d.old, New: d.new}
			c.OldDefault = d.old != nil && m.old.isDefault(oldAt+"/policy/"+d.path)
			c.NewDefault = d.new != nil && m.new.isDefault(newAt+"/policy/"+d.path)
			m.add(c, place)
		}
	}
	for _, d := range differences(&limits[0], &limits[1]) {
		c := Change{Class: Behaviour, Kind: LimitChanged, Model: m.id, Field: d.path, Old: d.old, New: d.new, Note: strictness(d)}
		m.add(c, place)
	}
}

// strictness says what the change of a limit does.
func strictness(d difference) string {
	switch {
	case d.old == nil:
		return "new limit"
	case d.new == nil:
		return "limit removed"
	case number(d.new) < number(d.old):
		return "tightened"
	}
	return "loosened"
}
