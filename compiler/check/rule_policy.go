package check

import (
	"fmt"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// The policy types that need more than engines and their load.
const (
	cacheAware   = string(plan.CacheAware)
	sessionAware = string(plan.SessionAware)
	sticky       = string(plan.Sticky)
)

// policyAt is a policy that the configuration writes, with its place.
type policyAt struct {
	*config.Policy
	at     string
	decode bool
}

// policies lists the written policies of a model: defaults, then groups.
func (m *modelAt) policies() []policyAt {
	var out []policyAt
	if p := m.Defaults.Policy; p != nil {
		out = append(out, policyAt{p, m.at + "/defaults/policy", false})
	}
	if p := m.Defaults.DecodePolicy; p != nil {
		out = append(out, policyAt{p, m.at + "/defaults/decode_policy", true})
	}
	for _, g := range m.groups {
		if g.Policy != nil {
			out = append(out, policyAt{g.Policy, g.at + "/policy", g.stage == plan.Decode})
		}
	}
	return out
}

// rulePolicyStage refuses cache_aware where nothing is prefilled.
func rulePolicyStage(r *rules) {
	for _, m := range r.models {
		for _, p := range m.policies() {
			if p.decode && p.Type == cacheAware {
				r.add(diag.PolicyStage, p.at+"/type", "cache_aware is not possible on a decode group").
					Hint = "use power_of_two or load_based"
			}
		}
	}
}

// rulePolicyTuning refuses tuning that contradicts itself.
func rulePolicyTuning(r *rules) {
	for _, m := range r.models {
		for _, p := range m.policies() {
			r.saturation(p)
			least := config.Or(p.CandidateMinWorkers, config.DefaultCandidateMin)
			most := config.Or(p.CandidateMaxWorkers, config.DefaultCandidateMax)
			if least <= most {
				continue
			}
			path := p.at + "/candidate_max_workers"
			if p.CandidateMinWorkers != nil {
				path = p.at + "/candidate_min_workers"
			}
			r.add(diag.TuningConflict, path, fmt.Sprintf("candidate_min_workers %d is above candidate_max_workers %d", least, most)).
				Hint = fmt.Sprintf("the defaults are %d and %d", config.DefaultCandidateMin, config.DefaultCandidateMax)
		}
	}
}

// saturation checks the floor against the queue limit.
func (r *rules) saturation(p policyAt) {
	floor, limit := p.SaturationQueueFloor, p.WorkerQueueLimit
	path := p.at + "/saturation_queue_floor"
	switch {
	case floor == nil:
	case limit == nil:
		r.addKey(diag.TuningConflict, path, "saturation_queue_floor needs worker_queue_limit").
			Hint = "add worker_queue_limit, at least as high as the floor"
	case *floor > *limit:
		f := r.add(diag.TuningConflict, path, fmt.Sprintf("saturation_queue_floor %d is above worker_queue_limit %d", *floor, *limit))
		r.also(f, p.at+"/worker_queue_limit", "the limit is here")
	}
}

// ruleDefaults refuses a default policy that no group uses.
func ruleDefaults(r *rules) {
	for _, m := range r.models {
		if !r.intact(m.at) || m.Buckets != nil && len(*m.Buckets) == 0 {
			continue
		}
		main, decode, decodeGroups := m.uses()
		if m.Defaults.Policy != nil && !main {
			r.addKey(diag.UnusedDefault, m.at+"/defaults/policy", "every plain and prefill group has its own policy, so the default is never used").
				Hint = "remove the default"
		}
		if m.Defaults.DecodePolicy == nil || decode {
			continue
		}
		path := m.at + "/defaults/decode_policy"
		if decodeGroups == 0 {
			r.addKey(diag.NoDecodeGroup, path, fmt.Sprintf("model %q has no decode group", m.ID)).Hint = "remove decode_policy"
		} else {
			r.addKey(diag.UnusedDefault, path, "every decode group has its own policy, so the default is never used").Hint = "remove the default"
		}
	}
}

// uses reports whether some group falls back to each default, and how many
// decode groups there are.
func (m *modelAt) uses() (main, decode bool, decodeGroups int) {
	if m.Buckets == nil {
		pd := m.has(plan.Decode)
		decodeGroups = 1
		if !pd {
			decodeGroups = 0
		}
		return true, pd, decodeGroups
	}
	for _, g := range m.groups {
		switch {
		case g.stage == plan.Decode:
			decodeGroups++
			decode = decode || g.Policy == nil
		case g.Policy == nil:
			main = true
		}
	}
	return main, decode, decodeGroups
}
