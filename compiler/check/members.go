package check

import (
	"maps"
	"slices"
	"strings"

	"shunt/schema/plan"
)

// members is the engines of a group, as indexes into the engines of the model,
// ascending. Groups with equal membership share one, so that an analysis of many
// groups can look at each membership once.
type members struct{ engines []int }

// memberIndex finds the members of the groups of one model. It costs as much as
// the lists of ids are long, and for labels as much as the rarest label of each
// distinct selection has engines.
type memberIndex struct {
	model *modelAt
	// byRole and byLabel have the engines of a role, and those with a value of
	// a label.
	byRole  map[string][]int
	byLabel map[[2]string][]int
	known   map[string]*members
}

func newMemberIndex(m *modelAt) memberIndex {
	x := memberIndex{m, make(map[string][]int), make(map[[2]string][]int), make(map[string]*members)}
	for i := range m.engines {
		e := &m.engines[i]
		x.byRole[e.Role] = append(x.byRole[e.Role], i)
		for name, value := range e.Labels {
			x.byLabel[[2]string{name, value}] = append(x.byLabel[[2]string{name, value}], i)
		}
	}
	return x
}

// of returns the members of a group.
func (x *memberIndex) of(g *groupAt) *members {
	key := x.key(g)
	if found := x.known[key]; found != nil {
		return found
	}
	out := &members{}
	for _, i := range x.candidates(g) {
		if x.model.engines[i].Role == string(g.stage) && carries(x.model.engines[i].Labels, g.Labels) {
			out.engines = append(out.engines, i)
		}
	}
	slices.Sort(out.engines)
	out.engines = slices.Compact(out.engines)
	x.known[key] = out
	return out
}

// key is equal for groups that select the same engines in the same words. Names
// hold no control characters where they matter.
func (x *memberIndex) key(g *groupAt) string {
	var b strings.Builder
	b.WriteString(string(g.stage))
	for _, name := range slices.Sorted(maps.Keys(g.Labels)) {
		b.WriteString("\x00" + name + "\x01" + g.Labels[name])
	}
	if g.WorkerIDs != nil {
		b.WriteString("\x02")
		for _, id := range *g.WorkerIDs {
			b.WriteString(id + "\x00")
		}
	}
	return b.String()
}

// candidates is a list with the members of a group and few others.
func (x *memberIndex) candidates(g *groupAt) []int {
	if g.WorkerIDs != nil {
		out := make([]int, 0, len(*g.WorkerIDs))
		for _, id := range *g.WorkerIDs {
			if i, ok := x.model.byID[id]; ok {
				out = append(out, i)
			}
		}
		return out
	}
	least := x.byRole[string(g.stage)]
	for name, value := range g.Labels {
		if with := x.byLabel[[2]string{name, value}]; len(with) < len(least) {
			least = with
		}
	}
	return least
}

// carries reports whether labels include all that are wanted.
func carries(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if got, ok := labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// budget bounds the steps of an analysis whose cost is a product, such as groups
// times engines. A configuration that exceeds it is generated, and what is wrong
// with its last parts is wrong with its first ones.
type budget int

// maxSteps is about a tenth of a second.
const maxSteps budget = 2_000_000

// spend takes steps and reports whether they were there.
func (b *budget) spend(steps int) bool {
	*b -= budget(steps) + 1
	return *b >= 0
}

// tried lists the groups of a stage in the order in which their buckets are
// tried.
func (m *modelAt) tried(stage plan.Role) []*groupAt {
	var out []*groupAt
	for i := range m.groups {
		if m.groups[i].stage == stage {
			out = append(out, &m.groups[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *groupAt) int { return plan.CompareBuckets(m.rangeOf(a.bucket), m.rangeOf(b.bucket)) })
	return out
}

// rangeOf is a bucket of the model as the plan orders it.
func (m *modelAt) rangeOf(bucket int) plan.Bucket { return ranges(&m.buckets()[bucket]) }
