package check

import (
	"fmt"

	"shunt/compiler/diag"
)

// ruleAdmission warns about limits of zero, and once for each model about limits
// on metrics that no engine reports, since no transport for reports exists yet.
func ruleAdmission(r *rules) {
	for _, m := range r.models {
		first, reported := "", 0
		for _, p := range m.policies() {
			for _, l := range p.Admission.Limits() {
				if l.Value == nil {
					continue
				}
				path := p.at + "/admission/" + l.Name
				if l.Reported {
					reported++
					if first == "" {
						first = path
					}
				}
				if *l.Value == 0 {
					r.add(diag.ZeroLimit, path, fmt.Sprintf("%s of 0 admits nothing while the metric is known", l.Name)).
						Hint = "remove the limit to leave the metric unchecked"
				}
			}
		}
		if reported > 0 {
			r.addKey(diag.LimitsFailOpen, first, fmt.Sprintf("admission limits on load reports of engines, %d in model %q, have no effect yet: no engine can report, and an unknown metric admits", reported, m.ID)).
				Hint = "add max_inflight_requests, which the router counts itself, if a limit must hold now"
		}
	}
}
