package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleReach warns about groups without engines and engines without a group.
func ruleReach(r *rules) {
	for _, m := range r.sounds() {
		if m.Buckets == nil {
			continue // the catch-all bucket has every engine
		}
		used := make([]bool, len(m.engines))
		// Groups that take every engine of their role are common and alike.
		var all [3]bool
		for i := range m.groups {
			g := &m.groups[i]
			if g.WorkerIDs != nil && len(*g.WorkerIDs) == 0 {
				r.add(diag.NoMembers, g.at+"/worker_ids", "worker_ids is empty, so the group has no engine").
					Hint = "remove the field if every engine of the role is meant"
				continue
			}
			whole := g.WorkerIDs == nil && len(g.Labels) == 0
			if whole && all[stageIndex(g.stage)] {
				continue
			}
			engines := m.matched(g)
			if len(engines) == 0 {
				r.emptyGroup(m, g)
				continue
			}
			for _, e := range engines {
				used[e] = true
			}
			all[stageIndex(g.stage)] = all[stageIndex(g.stage)] || whole
		}
		for i := range used {
			if !used[i] {
				r.add(diag.IdleEngine, m.engineAt(i)+"/id", fmt.Sprintf("engine %q is in no group, so it never receives a request", m.engines[i].ID)).
					Hint = "add it to a group, or remove it"
			}
		}
	}
}

func stageIndex(s plan.Role) int {
	switch s {
	case plan.Plain:
		return 0
	case plan.Prefill:
		return 1
	}
	return 2
}

func (r *rules) emptyGroup(m *modelAt, g *groupAt) {
	message := fmt.Sprintf("no %s engine of model %q has the labels of the group", g.stage, m.ID)
	path := g.at + "/labels"
	if !m.has(g.stage) {
		message, path = fmt.Sprintf("model %q has no %s engine", m.ID, g.stage), g.at
	}
	r.addKey(diag.EmptyGroup, path, message+", so the bucket never serves a request").
		Hint = "correct the group, or the roles and labels of the engines"
}

// rulePairs warns about a PD bucket whose engines cannot pair by match_labels.
func rulePairs(r *rules) {
	for _, m := range r.sounds() {
		for i := 0; i+1 < len(m.groups); i++ {
			p, d := &m.groups[i], &m.groups[i+1]
			if p.stage != plan.Prefill {
				continue
			}
			names := m.buckets()[p.bucket].Groups.PD.MatchLabels
			prefills, decodes := m.matched(p), m.matched(d)
			if len(names) == 0 || len(prefills) == 0 || len(decodes) == 0 {
				continue
			}
			keys := make(map[string]bool, len(decodes))
			for _, e := range decodes {
				keys[pairKey(m.engines[e].Labels, names)] = true
			}
			pairs := 0
			for _, e := range prefills {
				if keys[pairKey(m.engines[e].Labels, names)] {
					pairs++
				}
			}
			if pairs == 0 {
				r.addKey(diag.NoPair, m.bucketAt(p.bucket)+"/groups/pd/match_labels", fmt.Sprintf("no prefill and decode engine of the bucket have the same %s, so it never serves a request", strings.Join(names, ", "))).
					Hint = "correct the labels of the engines, the groups or match_labels"
			}
		}
	}
}

// rulePairLabels warns about names in match_labels that no engine carries: an
// absent label equals an absent label, so such a name separates nothing.
func rulePairLabels(r *rules) {
	for _, m := range r.models {
		carried := make(map[string]bool)
		for i := range m.engines {
			for name := range m.engines[i].Labels {
				carried[name] = true
			}
		}
		for b := range m.buckets() {
			pd := m.buckets()[b].Groups.PD
			if pd == nil || !m.known {
				continue
			}
			for i, name := range pd.MatchLabels {
				path := m.bucketAt(b) + "/groups/pd/match_labels/" + strconv.Itoa(i)
				if name != "" && !carried[name] && slices.Index(pd.MatchLabels, name) == i && r.intact(path) {
					r.add(diag.UnknownLabel, path, fmt.Sprintf("no engine of model %q has the label %q, so it keeps no engines apart", m.ID, name)).
						Hint = labelHint(name, slices.Sorted(maps.Keys(carried)))
				}
			}
		}
	}
}

// labelHint names the label that was probably meant, or those that there are.
func labelHint(wrong string, names []string) string {
	if near := nearest(wrong, names); near != "" {
		return didYouMean(near)
	}
	if len(names) == 0 {
		return "give the engines labels, or remove match_labels"
	}
	if len(names) > 5 {
		names = append(names[:5:5], "...")
	}
	return "labels of its engines: " + strings.Join(names, ", ")
}

// pairKey joins the values of labels; an absent one is empty. Values hold no
// control characters.
func pairKey(labels map[string]string, names []string) string {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = labels[name]
	}
	return strings.Join(values, "\x00")
}
