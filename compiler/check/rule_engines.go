package check

import (
	"fmt"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleEngineRoles refuses plain engines beside prefill and decode engines in one
// model. It reports the first engine that differs from the first of the model.
func ruleEngineRoles(r *rules) {
	for _, m := range r.models {
		first := -1
		for i := range m.engines {
			if m.engines[i].Role == "" {
				continue
			}
			if first < 0 {
				first = i
			}
			if (m.engines[i].Role == string(plan.Plain)) != (m.engines[first].Role == string(plan.Plain)) {
				f := r.add(diag.MixedEngines, m.engineAt(i)+"/role", fmt.Sprintf("model %q has plain and PD engines: a %s engine beside a %s engine", m.ID, m.engines[i].Role, m.engines[first].Role))
				f.Hint = "give the two kinds two model ids"
				r.also(f, m.engineAt(first)+"/role", "the other kind is here")
				break
			}
		}
	}
}

// ruleBootstrapPort refuses a bootstrap port that nothing would read.
func ruleBootstrapPort(r *rules) {
	for _, m := range r.models {
		for i := range m.engines {
			e := &m.engines[i]
			if e.BootstrapPort != nil && e.Role != "" && e.Role != string(plan.Prefill) {
				r.addKey(diag.StrayBootstrap, m.engineAt(i)+"/bootstrap_port", fmt.Sprintf("engine %q is a %s engine and has a bootstrap port", e.ID, e.Role)).
					Hint = "only prefill engines have one; remove it, or correct the role"
			}
		}
	}
}

// ruleCatchAll refuses a model without buckets whose engines do not decide what
// its one bucket would be, and an empty list of buckets.
func ruleCatchAll(r *rules) {
	for _, m := range r.models {
		if m.Buckets != nil && len(*m.Buckets) == 0 && r.intact(m.at+"/buckets") {
			r.add(diag.ListLength, m.at+"/buckets", "the list of buckets is empty").
				Hint = "remove the field for one bucket with all engines"
		}
		if m.Buckets != nil || !m.known || !r.intact(m.at) {
			continue
		}
		prefill, decode := m.has(plan.Prefill), m.has(plan.Decode)
		switch {
		case m.has(plan.Plain) || prefill && decode:
		case prefill:
			r.addKey(diag.NoCatchAll, m.at+"/discovery", fmt.Sprintf("model %q has no buckets and no decode engine", m.ID)).
				Hint = "add a decode engine, or list buckets"
		case decode:
			r.addKey(diag.NoCatchAll, m.at+"/discovery", fmt.Sprintf("model %q has no buckets and no prefill engine", m.ID)).
				Hint = "add a prefill engine, or list buckets"
		default:
			r.addKey(diag.NoCatchAll, m.at+"/discovery", fmt.Sprintf("model %q has no buckets and no engines", m.ID)).
				Hint = "add engines, or list buckets"
		}
	}
}
