package check

import (
	"fmt"
	"strconv"

	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/schema/plan"
)

// ruleNames refuses ids and labels that do not print: they appear in logs,
// metrics and response headers.
func ruleNames(r *rules) {
	for _, m := range r.models {
		r.name(m.at+"/id", m.ID)
		if m.Engine != nil && m.Engine.HashSeed != nil {
			r.name(m.at+"/engine/hash_seed", *m.Engine.HashSeed)
		}
		for i := range m.engines {
			r.name(m.engineAt(i)+"/id", m.engines[i].ID)
			r.labels(m.engineAt(i)+"/labels", m.engines[i].Labels)
			if e := m.engines[i].KVEvents; e != nil && e.Topic != nil {
				r.name(m.engineAt(i)+"/kv_events/topic", *e.Topic)
			}
		}
		for i := range m.buckets() {
			r.name(m.bucketAt(i)+"/id", m.buckets()[i].ID)
			if pd := m.buckets()[i].Groups.PD; pd != nil {
				for j, name := range pd.MatchLabels {
					r.name(m.bucketAt(i)+"/groups/pd/match_labels/"+strconv.Itoa(j), name)
				}
			}
		}
		for _, g := range m.groups {
			r.labels(g.at+"/labels", g.Labels)
		}
	}
}

func (r *rules) name(path, name string) {
	if !plan.Printable(name) && r.intact(path) {
		r.add(diag.BadName, path, fmt.Sprintf("%q has characters that do not print", name))
	}
}

func (r *rules) labels(path string, labels map[string]string) {
	for name, value := range labels {
		p := source.Join(path, name)
		if name == "" || !plan.Printable(name) {
			r.addKey(diag.BadName, p, fmt.Sprintf("label name %q is empty or has characters that do not print", name))
		}
		r.name(p, value)
	}
}
