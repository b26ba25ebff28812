package assemble

import (
	"slices"

	"shunt/runtime/prepare"
	"shunt/schema/plan"
)

// Sampling is the rules that a model has for the sampling parameters of bodies,
// nil for none.
func Sampling(s *plan.Sampling) *prepare.Sampling {
	if s == nil {
		return nil
	}
	out := &prepare.Sampling{Allow: s.Conflict == plan.ConflictAllow}
	for _, p := range s.Params {
		param, ok := prepare.ParamOf(p.Name)
		if !ok {
			continue // the loader knows the same names
		}
		rule := prepare.Rule{Param: param}
		if p.Value != nil {
			rule.Value = *p.Value
		} else {
			rule.Band, rule.Min, rule.Max = true, *p.Min, *p.Max
		}
		out.Rules = append(out.Rules, rule)
	}
	slices.SortFunc(out.Rules, func(a, b prepare.Rule) int { return int(a.Param) - int(b.Param) })
	return out
}
