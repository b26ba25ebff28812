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
		seen := make(map[*members]bool)
		for i := range m.groups {
			g := &m.groups[i]
			if g.WorkerIDs != nil && len(*g.WorkerIDs) == 0 {
				r.add(diag.NoMembers, g.at+"/worker_ids", "worker_ids is empty, so the group has no engine").
					Hint = "remove the field if every engine of the role is meant"
				continue
			}
			if len(g.members.engines) == 0 {
				r.emptyGroup(m, g)
				continue
			}
			if seen[g.members] {
				continue
			}
			seen[g.members] = true
			for _, e := range g.members.engines {
				used[e] = true
			}
		}
		for i := range used {
			if !used[i] {
				r.add(diag.IdleEngine, m.engineAt(i)+"/id", fmt.Sprintf("engine %q is in no group, so it never receives a request", m.engines[i].ID)).
					Hint = "add it to a group, or remove it"
			}
		}
	}
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

// pairing is two memberships and the labels that pairs of them have in common.
type pairing struct {
	prefill, decode *members
	labels          string
}

// pairingAt is a PD bucket with its pairing.
type pairingAt struct {
	key             pairing
	prefill, decode *groupAt
	labels          []string
}

// pairings lists the PD buckets of a model whose groups both have engines.
func (m *modelAt) pairings() (out []pairingAt) {
	for i := 0; i+1 < len(m.groups); i++ {
		p, d := &m.groups[i], &m.groups[i+1]
		if p.stage != plan.Prefill || len(p.members.engines) == 0 || len(d.members.engines) == 0 {
			continue
		}
		labels := m.buckets()[p.bucket].Groups.PD.MatchLabels
		out = append(out, pairingAt{pairing{p.members, d.members, strings.Join(labels, "\x00")}, p, d, labels})
	}
	return out
}

// rulePairs warns about a PD bucket whose engines cannot pair by match_labels.
func rulePairs(r *rules) {
	for _, m := range r.sounds() {
		steps, apart := maxSteps, make(map[pairing]bool)
		for _, p := range m.pairings() {
			if len(p.labels) == 0 {
				continue
			}
			none, known := apart[p.key]
			if !known && steps.spend(len(p.prefill.members.engines)+len(p.decode.members.engines)) {
				keys := m.pairKeys(p.decode.members, p.labels)
				none = !slices.ContainsFunc(p.prefill.members.engines, func(e int) bool { return keys[pairKey(m.engines[e].Labels, p.labels)] })
				apart[p.key] = none
			}
			if none {
				r.addKey(diag.NoPair, m.bucketAt(p.prefill.bucket)+"/groups/pd/match_labels", fmt.Sprintf("no prefill and decode engine of the bucket have the same %s, so it never serves a request", strings.Join(p.labels, ", "))).
					Hint = "correct the labels of the engines, the groups or match_labels"
			}
		}
	}
}

// pairKeys has the keys of the engines of a group.
func (m *modelAt) pairKeys(of *members, labels []string) map[string]bool {
	keys := make(map[string]bool, len(of.engines))
	for _, e := range of.engines {
		keys[pairKey(m.engines[e].Labels, labels)] = true
	}
	return keys
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
