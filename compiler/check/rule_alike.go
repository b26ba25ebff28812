package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// ruleAlike warns about names of one kind that differ in case only.
func ruleAlike(r *rules) {
	models := r.alike("models")
	for i := range r.models {
		m := &r.models[i]
		models.see(m.ID, m.at+"/id")
		engines, buckets := r.alike("engines"), r.alike("buckets")
		for e := range m.engines {
			engines.see(m.engines[e].ID, m.engineAt(e)+"/id")
		}
		for b := range m.buckets() {
			buckets.see(m.buckets()[b].ID, m.bucketAt(b)+"/id")
		}
	}
}

// alike reports names that it saw in another case.
type alike struct {
	rules *rules
	kind  string
	// first has the first name and its path by the name in lower case.
	first map[string][2]string
}

func (r *rules) alike(kind string) alike { return alike{r, kind, make(map[string][2]string)} }

func (a alike) see(name, path string) {
	if name == "" {
		return
	}
	first, again := a.first[strings.ToLower(name)]
	if !again {
		a.first[strings.ToLower(name)] = [2]string{name, path}
		return
	}
	if first[0] != name && a.rules.intact(path) {
		f := a.rules.add(diag.CaseOnly, path, fmt.Sprintf("the names of the %s %q and %q differ in case only", a.kind, first[0], name))
		f.Hint = "rename one of the two"
		a.rules.also(f, first[1], "the other one is here")
	}
}

// ruleSpaces warns about names that begin or end with a space.
func ruleSpaces(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		r.space(m.at+"/id", m.ID)
		for e := range m.engines {
			r.space(m.engineAt(e)+"/id", m.engines[e].ID)
			labels := m.engines[e].Labels
			for _, name := range slices.Sorted(maps.Keys(labels)) {
				path := source.Join(m.engineAt(e)+"/labels", name)
				r.space(path, name)
				r.space(path, labels[name])
			}
		}
		for b := range m.buckets() {
			r.space(m.bucketAt(b)+"/id", m.buckets()[b].ID)
		}
	}
}

func (r *rules) space(path, name string) {
	if strings.TrimSpace(name) != name && r.intact(path) {
		r.add(diag.SpaceInName, path, fmt.Sprintf("%q begins or ends with a space", name)).Hint = fmt.Sprintf("write %q", strings.TrimSpace(name))
	}
}
