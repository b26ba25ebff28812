package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/schema/plan"
)

// ruleUnpaired warns about an engine that has no partner in any of its groups.
// Buckets in which no engine has one are reported as such.
func ruleUnpaired(r *rules) {
	for _, m := range r.sounds() {
		alone, paired := make(map[int][]string), make(map[int]bool)
		seen, steps := make(map[pairing]bool), maxSteps
		for _, p := range m.pairings() {
			if seen[p.key] {
				continue
			}
			seen[p.key] = true
			prefills, decodes := p.prefill.members, p.decode.members
			if !steps.spend(len(prefills.engines) + len(decodes.engines)) {
				alone = nil // those that come later may be partners
				break
			}
			prefillKeys, decodeKeys := m.pairKeys(prefills, p.labels), m.pairKeys(decodes, p.labels)
			common := false
			for key := range prefillKeys {
				common = common || decodeKeys[key]
			}
			if !common {
				continue
			}
			m.partners(prefills, decodeKeys, p.labels, alone, paired)
			m.partners(decodes, prefillKeys, p.labels, alone, paired)
		}
		lonely := several{}
		for _, e := range slices.Sorted(maps.Keys(alone)) {
			if !paired[e] && lonely.next() {
				other := plan.Decode
				if m.engines[e].Role == string(plan.Decode) {
					other = plan.Prefill
				}
				r.add(diag.UnpairedEngine, m.engineAt(e)+"/id", fmt.Sprintf("engine %q pairs with no %s engine of its groups, because none has the same %s", m.engines[e].ID, other, strings.Join(alone[e], ", "))).
					Hint = "correct its labels, or add a partner"
			}
		}
		lonely.finish(r, "engine")
	}
}

// partners notes which engines of a group have a partner of one of the keys, and
// for those that have none, the labels that keep them apart.
func (m *modelAt) partners(of *members, keys map[string]bool, labels []string, alone map[int][]string, paired map[int]bool) {
	for _, e := range of.engines {
		if keys[pairKey(m.engines[e].Labels, labels)] {
			paired[e] = true
		} else if alone[e] == nil {
			alone[e] = labels
		}
	}
}

// ruleSimilarLabels warns about a label of an engine that nothing reads, whose
// name is almost that of a label that is read and that the engine lacks.
func ruleSimilarLabels(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		if !m.known {
			continue
		}
		names := m.selectedLabels()
		sorted := slices.Sorted(maps.Keys(names))
		similar, compared, found := several{}, make(map[string]string), budget(100*maxSuggestions)
		for e := range m.engines {
			for _, name := range slices.Sorted(maps.Keys(m.engines[e].Labels)) {
				if names[name] {
					continue
				}
				near, known := compared[name]
				if !known && found.spend(len(sorted)) {
					near = nearLabel(name, sorted)
					compared[name] = near
				}
				if _, has := m.engines[e].Labels[near]; near != "" && !has && similar.next() {
					r.addKey(diag.SimilarLabel, source.Join(m.engineAt(e)+"/labels", name), fmt.Sprintf("nothing reads the label %q of engine %q, and it lacks %q, which groups select by", name, m.engines[e].ID, near)).
						Hint = didYouMean(near)
				}
			}
		}
		similar.finish(r, "label")
	}
}

// selectedLabels has the names of the labels that groups of a model select and
// pair engines by.
func (m *modelAt) selectedLabels() map[string]bool {
	out := make(map[string]bool)
	for i := range m.groups {
		for name := range m.groups[i].Labels {
			out[name] = true
		}
	}
	for i := range m.buckets() {
		if pd := m.buckets()[i].Groups.PD; pd != nil {
			for _, name := range pd.MatchLabels {
				out[name] = true
			}
		}
	}
	return out
}

// nearLabel is the name that differs from another one by one slip, or by two in
// a long name; it is stricter than the search for a suggestion, because names
// that nobody selects by are allowed.
func nearLabel(name string, known []string) string {
	most := 2
	if len(name) > 7 {
		most = 3
	}
	for _, k := range known {
		if len(k) > 2 && diag.Distance(strings.ToLower(name), strings.ToLower(k), most) < most {
			return k
		}
	}
	return ""
}

// rulePartialBootstrap warns about prefill engines without a bootstrap port
// beside others that have one.
func rulePartialBootstrap(r *rules) {
	for _, m := range r.sounds() {
		first := slices.IndexFunc(m.engines, func(e config.Engine) bool { return e.Role == string(plan.Prefill) && e.BootstrapPort != nil })
		if first < 0 {
			continue
		}
		bare := several{}
		for i := range m.engines {
			e := &m.engines[i]
			if e.Role == string(plan.Prefill) && e.BootstrapPort == nil && bare.next() {
				f := r.add(diag.PartialBootstrap, m.engineAt(i)+"/id", fmt.Sprintf("prefill engine %q has no bootstrap_port, and engine %q has one", e.ID, m.engines[first].ID))
				f.Hint = "add bootstrap_port"
				r.also(f, m.engineAt(first)+"/bootstrap_port", "the other port is here")
			}
		}
		bare.finish(r, "engine")
	}
}
