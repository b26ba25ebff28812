package check

import (
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// maxPerModel bounds the findings of one kind that one model gets when each is
// one of many alike. Another one tells how many are left out.
const maxPerModel = 8

// sound reports whether the parts of a model are known and fit together, so that
// an analysis of the whole means something. It is for rules that run after the
// rules that find errors.
func (r *rules) sound(m *modelAt, unfit map[string]bool) bool {
	return m.known && r.intact(m.at) && !unfit[m.at]
}

// unfit lists the models with a mistake, found by a rule, after which an
// analysis means nothing.
func (r *rules) unfit() map[string]bool {
	out := make(map[string]bool)
	for i := range r.list {
		switch r.list[i].Code {
		case diag.DuplicateEngine, diag.DuplicateBucket, diag.OneKind, diag.UnknownEngine, diag.WrongRole,
			diag.LimitOrder, diag.MixedEngines, diag.NoCatchAll, diag.ListLength:
			if rest, ok := strings.CutPrefix(r.list[i].Path, "/models/"); ok {
				index, _, _ := strings.Cut(rest, "/")
				out["/models/"+index] = true
			}
		}
	}
	return out
}

// sounds lists the models that are sound.
func (r *rules) sounds() []*modelAt {
	unfit := r.unfit()
	var out []*modelAt
	for i := range r.models {
		if r.sound(&r.models[i], unfit) {
			out = append(out, &r.models[i])
		}
	}
	return out
}

// policy is the policy that a group runs, and nil for the built-in one.
func (m *modelAt) policy(g *groupAt) *config.Policy {
	if g.Policy != nil {
		return g.Policy
	}
	return m.Defaults.For(string(g.stage))
}

// limited reports whether a group checks any admission limit.
func (m *modelAt) limited(g *groupAt) bool {
	p := m.policy(g)
	if p == nil {
		return false
	}
	for _, l := range p.Admission.Limits() {
		if l.Value != nil {
			return true
		}
	}
	return false
}

// rangeMax answers which index has the largest value in a range of indexes, in
// constant time after n log n preparation.
type rangeMax struct {
	values []int64
	// rows[k][i] is the index of the largest value in the 1<<k values from i.
	rows [][]int
}

func newRangeMax(values []int64) rangeMax {
	first := make([]int, len(values))
	for i := range first {
		first[i] = i
	}
	m := rangeMax{values: values, rows: [][]int{first}}
	for width := 2; width <= len(values); width *= 2 {
		last := m.rows[len(m.rows)-1]
		row := make([]int, len(values)-width+1)
		for i := range row {
			row[i] = m.larger(last[i], last[i+width/2])
		}
		m.rows = append(m.rows, row)
	}
	return m
}

func (m rangeMax) larger(i, j int) int {
	if m.values[j] > m.values[i] {
		return j
	}
	return i
}

// of returns the index of the largest value in runs, and -1 without runs.
func (m rangeMax) of(runs []plan.Run) int {
	best := -1
	for _, run := range runs {
		k, width := 0, run[1]-run[0]+1
		for 2<<k <= width {
			k++
		}
		i := m.larger(m.rows[k][run[0]], m.rows[k][run[1]+1-1<<k])
		if best < 0 {
			best = i
		} else {
			best = m.larger(best, i)
		}
	}
	return best
}
