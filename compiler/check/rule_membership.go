package check

import (
	"fmt"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// maxSuggestions bounds how often the nearest id is looked for, which costs as
// much as comparing with every id of the model.
const maxSuggestions = 100

// ruleMembership refuses worker_ids that name no engine, an engine of another
// role, or an engine twice.
func ruleMembership(r *rules) {
	suggestions := 0
	for _, m := range r.models {
		for _, g := range m.groups {
			if g.WorkerIDs == nil {
				continue
			}
			first := make(map[string]int, len(*g.WorkerIDs))
			for i, id := range *g.WorkerIDs {
				path := g.at + "/worker_ids/" + strconv.Itoa(i)
				if j, again := first[id]; again {
					f := r.add(diag.RepeatedEntry, path, fmt.Sprintf("engine %q is listed twice", id))
					r.also(f, g.at+"/worker_ids/"+strconv.Itoa(j), "first listed here")
					continue
				}
				first[id] = i
				if f := r.member(&m, g.stage, path, id); f != nil && suggestions < maxSuggestions {
					f.Hint = m.suggest(id, g.stage)
					suggestions++
				}
			}
		}
	}
}

// member checks one reference. It returns the finding of an unknown id, which
// deserves a suggestion.
func (r *rules) member(m *modelAt, stage plan.Role, path, id string) *diag.Finding {
	if id == "" || !m.idsKnown {
		return nil
	}
	i, ok := m.byID[id]
	if !ok {
		return r.add(diag.UnknownEngine, path, fmt.Sprintf("model %q has no engine %q", m.ID, id))
	}
	if e := &m.engines[i]; e.Role != "" && e.Role != string(stage) {
		f := r.add(diag.WrongRole, path, fmt.Sprintf("engine %q is a %s engine in a %s group", id, e.Role, stage))
		f.Hint = fmt.Sprintf("name a %s engine, or correct the engine's role", stage)
		r.also(f, m.engineAt(i)+"/role", "its role is here")
	}
	return nil
}

// suggest names the engine that was probably meant, or those of the role.
func (m *modelAt) suggest(id string, stage plan.Role) string {
	best, least := "", len(id)/3+1
	var names []string
	for i := range m.engines {
		e := &m.engines[i]
		if m.byID[e.ID] == i && e.Role == string(stage) && len(names) <= 5 {
			names = append(names, strconv.Quote(e.ID))
		}
		if d := distance(id, e.ID, least); d < least {
			best, least = e.ID, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(names) == 0:
		return fmt.Sprintf("the model has no %s engine", stage)
	case len(names) > 5:
		names[5] = "..."
	}
	return fmt.Sprintf("its %s engines are %s", stage, strings.Join(names, ", "))
}

// distance is the number of insertions, deletions and replacements between two
// words, or most as soon as it cannot be less. Case does not count.
func distance(a, b string, most int) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if max(len(a)-len(b), len(b)-len(a)) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			least = min(least, cost)
		}
		if least >= most {
			return most
		}
	}
	return row[len(b)]
}
