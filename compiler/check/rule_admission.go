package check

import (
	"fmt"

	"shunt/compiler/diag"
)

// ruleAdmission warns about limits of zero.
func ruleAdmission(r *rules) {
	for _, m := range r.models {
		for _, p := range m.policies() {
			for _, l := range p.Admission.Limits() {
				path := p.at + "/admission/" + l.Name
				if l.Value != nil && *l.Value == 0 && r.intact(path) {
					r.add(diag.ZeroLimit, path, fmt.Sprintf("%s of 0 admits nothing while the metric is known", l.Name)).
						Hint = "remove the limit to leave the metric unchecked"
				}
			}
		}
	}
}
