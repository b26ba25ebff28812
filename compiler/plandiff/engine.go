package plandiff

import (
	"slices"
	"strings"

	"shunt/schema/plan"
)

// engineChanges lists engines that came, went, were changed or sit in other
// groups.
func (m *modelDiff) engineChanges() {
	before, after := m.before.Engines(), m.after.Engines()
	touched := make(map[string]bool) // by the id on either side
	for i, j := range m.engines.partner {
		if j < 0 {
			touched[before[i].ID] = true
			continue
		}
		m.engine(&before[i], &after[j], touched)
	}
	for j, i := range m.engines.back {
		if i < 0 {
			touched[after[j].ID] = true
		}
	}
	m.report(m.memberships(touched))
}

// engine compares two engines that are the same one.
func (m *modelDiff) engine(a, b *plan.Engine, touched map[string]bool) {
	if a.ID != b.ID {
		c := Change{Class: Cosmetic, Kind: EngineRenamed, Model: m.id, Old: raw(a.ID), New: raw(b.ID)}
		if m.before.Requires.Affinity() {
			c.Class, c.Note = Behaviour, "bindings name engines by id, so those to the old one are lost"
		}
		m.diff.Changes = append(m.diff.Changes, c)
	}
	x, y := *a, *b
	x.ID, y.ID = "", ""
	for _, d := range differences(&x, &y) {
		if d.path == "role" || strings.HasPrefix(d.path, "labels") {
			touched[a.ID], touched[b.ID] = true, true
		}
		m.diff.Changes = append(m.diff.Changes, Change{Class: Behaviour, Kind: EngineChanged, Model: m.id, Field: d.path, Old: d.old, New: d.new, Engines: []string{b.ID}})
	}
}

// movement is the groups that an engine left and joined.
type movement struct{ from, to []string }

// memberships finds the movement of every engine, by the index in the old list,
// and for new engines behind it by that in the new one. Groups that were not
// changed move only touched engines.
func (m *modelDiff) memberships(touched map[string]bool) []movement {
	moves := make([]movement, len(m.before.Engines())+len(m.after.Engines()))
	old, now := newRoster(m.before), newRoster(m.after)
	for i, j := range m.buckets.partner {
		a := &m.before.Buckets[i]
		if j < 0 {
			for _, g := range a.Groups.All() {
				m.move(moves, place(a, g.Stage), "", old.members(g, nil), nil)
			}
			continue
		}
		b := &m.after.Buckets[j]
		for _, stage := range [...]plan.Role{plan.Plain, plan.Prefill, plan.Decode} {
			g, h := stageOf(&a.Groups, stage), stageOf(&b.Groups, stage)
			only := touched
			if g.Group == nil || h.Group == nil || !m.sameSelector(g.Group, h.Group) {
				only = nil
			} else if len(touched) == 0 {
				continue
			}
			m.move(moves, place(a, stage), place(b, stage), old.members(g, only), now.members(h, only))
		}
	}
	for j, i := range m.buckets.back {
		if i < 0 {
			b := &m.after.Buckets[j]
			for _, g := range b.Groups.All() {
				m.move(moves, "", place(b, g.Stage), nil, now.members(g, nil))
			}
		}
	}
	return moves
}

func place(b *plan.Bucket, stage plan.Role) string {
	if stage == plan.Plain {
		return b.ID
	}
	return b.ID + "/" + string(stage)
}

// stageOf is the group of a stage; it has none when the bucket has none.
func stageOf(g *plan.Groups, stage plan.Role) plan.StagedGroup {
	for _, s := range g.All() {
		if s.Stage == stage {
			return s
		}
	}
	return plan.StagedGroup{Stage: stage}
}

// sameSelector reports whether two groups select the same engines of any fleet.
func (m *modelDiff) sameSelector(g, h *plan.Group) bool {
	if (g.WorkerIDs == nil) != (h.WorkerIDs == nil) || len(g.Labels) != len(h.Labels) {
		return false
	}
	for name, value := range g.Labels {
		if other, ok := h.Labels[name]; !ok || other != value {
			return false
		}
	}
	return g.WorkerIDs == nil || slices.Equal(*g.WorkerIDs, *h.WorkerIDs)
}

// move notes who left the old group and joined the new one. Members are ascending
// indexes of engines.
func (m *modelDiff) move(moves []movement, from, to string, before, after []int) {
	stayed := make(map[int]bool, len(before))
	for _, i := range before {
		if j := m.engines.partner[i]; j >= 0 {
			if _, ok := slices.BinarySearch(after, j); ok {
				stayed[j] = true
				continue
			}
		}
		moves[i].from = append(moves[i].from, from)
	}
	for _, j := range after {
		if stayed[j] {
			continue
		}
		at := m.engines.back[j]
		if at < 0 {
			at = len(m.before.Engines()) + j
		}
		moves[at].to = append(moves[at].to, to)
	}
}

// report makes changes of the movements, one for all engines that moved alike.
func (m *modelDiff) report(moves []movement) {
	before, after := m.before.Engines(), m.after.Engines()
	at := make(map[string]int)
	add := func(kind Kind, id string, v movement) {
		key := string(kind) + "\x00" + strings.Join(v.from, "\x00") + "\x00>" + strings.Join(v.to, "\x00")
		i, alike := at[key]
		if !alike {
			i = len(m.diff.Changes)
			at[key] = i
			m.diff.Changes = append(m.diff.Changes, Change{Class: Behaviour, Kind: kind, Model: m.id, From: v.from, To: v.to})
		}
		m.diff.Changes[i].Engines = append(m.diff.Changes[i].Engines, id)
	}
	for i, j := range m.engines.partner {
		switch {
		case j < 0:
			add(EngineRemoved, before[i].ID, moves[i])
		case len(moves[i].from)+len(moves[i].to) > 0:
			add(EngineMoved, after[j].ID, moves[i])
		}
	}
	for j, i := range m.engines.back {
		if i < 0 {
			add(EngineAdded, after[j].ID, moves[len(before)+j])
		}
	}
}

// roster finds the engines of groups.
type roster struct {
	engines []plan.Engine
	byID    map[string]int
	byRole  map[plan.Role][]int
	// open says that engines come from elsewhere and are not known.
	open bool
}

func newRoster(m *plan.Model) *roster {
	r := &roster{engines: m.Engines(), byID: make(map[string]int), byRole: make(map[plan.Role][]int), open: m.Discovery.Static == nil}
	for i := range r.engines {
		r.byID[r.engines[i].ID] = i
		r.byRole[r.engines[i].Role] = append(r.byRole[r.engines[i].Role], i)
	}
	return r
}

// members lists the engines of a group, ascending; with only, those among them.
func (r *roster) members(g plan.StagedGroup, only map[string]bool) []int {
	if g.Group == nil {
		return nil
	}
	var out []int
	r.each(g, func(i int) bool {
		if only == nil || only[r.engines[i].ID] {
			out = append(out, i)
		}
		return true
	})
	slices.Sort(out)
	return out
}

// each calls f with every engine of a group until f returns false.
func (r *roster) each(g plan.StagedGroup, f func(int) bool) {
	all := plan.StagedGroup{Stage: g.Stage, Group: &plan.Group{Labels: g.Group.Labels}}
	if g.Group.WorkerIDs == nil {
		for _, i := range r.byRole[g.Stage] {
			if all.Matches(&r.engines[i]) && !f(i) {
				return
			}
		}
		return
	}
	for _, id := range *g.Group.WorkerIDs {
		if i, ok := r.byID[id]; ok && all.Matches(&r.engines[i]) && !f(i) {
			return
		}
	}
}

// serves reports whether the bucket has engines for each stage, as far as the
// plan knows, and no limit that refuses every request.
func (r *roster) serves(b *plan.Bucket) bool {
	for _, g := range b.Groups.All() {
		if cap := g.Group.Policy.Admission.MaxInflightRequests; cap != nil && *cap == 0 {
			return false
		}
		found := r.open
		r.each(g, func(int) bool { found = true; return false })
		if !found {
			return false
		}
	}
	pd := b.Groups.PD
	if pd == nil || len(pd.MatchLabels) == 0 || r.open {
		return true
	}
	tuples := make(map[string]bool)
	r.each(plan.StagedGroup{Stage: plan.Prefill, Group: &pd.Prefill}, func(i int) bool {
		tuples[tuple(&r.engines[i], pd.MatchLabels)] = true
		return true
	})
	paired := false
	r.each(plan.StagedGroup{Stage: plan.Decode, Group: &pd.Decode}, func(i int) bool {
		paired = tuples[tuple(&r.engines[i], pd.MatchLabels)]
		return !paired
	})
	return paired
}

// tuple is the values of labels; an absent label has the empty value.
func tuple(e *plan.Engine, names []string) string {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = e.Labels[name]
	}
	return strings.Join(values, "\x00")
}
