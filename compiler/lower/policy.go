package lower

import (
	"shunt/compiler/config"
	"shunt/schema/plan"
)

// noter records where a member of a policy is written.
type noter func(present bool, member, written string)

// policy lowers a policy and notes where its members are written.
func policy(p *config.Policy, note noter) plan.Policy {
	a := p.Admission
	out := plan.Policy{Type: plan.PolicyType(p.Type), Admission: plan.Admission{
		MaxRunningRequests:      a.MaxRunningRequests,
		MaxWaitingRequests:      a.MaxWaitingRequests,
		MaxKVTokens:             a.MaxKVTokens,
		MaxPendingPrefillTokens: a.MaxPendingPrefillTokens,
		MaxInflightRequests:     a.MaxInflightRequests,
	}}
	note(true, "type", "type")
	switch out.Type {
	case plan.PowerOfTwo:
		out.PowerOfTwo = &plan.PowerOfTwoTuning{Choices: config.Or(p.Choices, config.DefaultChoices)}
		note(p.Choices != nil, "power_of_two/choices", "choices")
	case plan.CacheAware:
		out.CacheAware = cacheAware(&p.CacheTuning, note)
	case plan.SessionAware:
		out.SessionAware = &plan.SessionAwareTuning{Fallback: powerOf(p.Choices)}
		note(p.Choices != nil, "session_aware/fallback/power_of_two/choices", "choices")
	case plan.Sticky:
		out.Sticky = &plan.StickyTuning{Fallback: fallback(config.Or(p.Fallback, config.DefaultStickyFallback))}
		note(p.Fallback != nil, "sticky/fallback/type", "fallback")
	}
	for _, l := range p.Admission.Limits() {
		note(l.Value != nil, "admission/"+l.Name, "admission/"+l.Name)
	}
	return out
}

func fallback(name string) plan.FallbackPolicy {
	if plan.PolicyType(name) == plan.PowerOfTwo {
		return powerOf(nil)
	}
	return plan.FallbackPolicy{Type: plan.PolicyType(name)}
}

// powerOf is the fallback that compares so many engines.
func powerOf(choices *int64) plan.FallbackPolicy {
	return plan.FallbackPolicy{
		Type:       plan.PowerOfTwo,
		PowerOfTwo: &plan.PowerOfTwoTuning{Choices: config.Or(choices, config.DefaultChoices)},
	}
}

func cacheAware(t *config.CacheTuning, note noter) *plan.CacheAwareTuning {
	same := func(present bool, name string) { note(present, "cache_aware/"+name, name) }
	same(t.MinMatchedTokens != nil, "min_matched_tokens")
	same(t.MinMatchRatio != nil, "min_match_ratio")
	same(t.CandidateMinWorkers != nil, "candidate_min_workers")
	same(t.CandidateRatio != nil, "candidate_ratio")
	same(t.CandidateMaxWorkers != nil, "candidate_max_workers")
	same(t.SwitchMarginTokens != nil, "switch_margin_tokens")
	same(t.PressureGuard != nil, "pressure_guard")
	same(t.PressureAbsThresholdTokens != nil, "pressure_abs_threshold_tokens")
	same(t.PressureAbsThresholdMS != nil, "pressure_abs_threshold_ms")
	same(t.PressureRelThreshold != nil, "pressure_rel_threshold")
	same(t.WorkerQueueLimit != nil, "worker_queue_limit")
	same(t.SaturationQueueFloor != nil, "saturation_queue_floor")
	note(t.MinLoadChoices != nil, "cache_aware/fallback/power_of_two/choices", "min_load_choices")
	return &plan.CacheAwareTuning{
		MinMatchedTokens:           config.Or(t.MinMatchedTokens, config.DefaultMinMatchedTokens),
		MinMatchRatio:              config.Or(t.MinMatchRatio, config.DefaultMinMatchRatio),
		CandidateMinWorkers:        config.Or(t.CandidateMinWorkers, config.DefaultCandidateMin),
		CandidateRatio:             config.Or(t.CandidateRatio, config.DefaultCandidateRatio),
		CandidateMaxWorkers:        config.Or(t.CandidateMaxWorkers, config.DefaultCandidateMax),
		SwitchMarginTokens:         config.Or(t.SwitchMarginTokens, config.DefaultSwitchMargin),
		PressureGuard:              config.Or(t.PressureGuard, config.DefaultPressureGuard),
		PressureAbsThresholdTokens: config.Or(t.PressureAbsThresholdTokens, config.DefaultPressureTokens),
		PressureAbsThresholdMS:     t.PressureAbsThresholdMS,
		PressureRelThreshold:       config.Or(t.PressureRelThreshold, config.DefaultPressureFactor),
		WorkerQueueLimit:           t.WorkerQueueLimit,
		SaturationQueueFloor:       t.SaturationQueueFloor,
		Fallback:                   powerOf(t.MinLoadChoices),
	}
}
