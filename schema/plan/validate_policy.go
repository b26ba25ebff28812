package plan

import (
	"fmt"
	"math"
	"slices"
)

// above is the least number that is greater than x.
func above(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }

// number checks a number that need not be whole against inclusive bounds.
func (v *validator) number(pointer string, x, low, high float64) {
	if !(x >= low && x <= high) { // true for what is not a number
		v.bad(pointer, fmt.Sprintf("%v is outside its range", x), "")
	}
}

// policy checks the policy of the group at a pointer. Text is made only for what
// is wrong, since a plan may have many thousand groups.
func (v *validator) policy(at string, p *Policy) {
	if !slices.Contains(PolicyTypes[:], p.Type) {
		v.bad(at+"/policy/type", fmt.Sprintf("unknown policy type %q", p.Type), fmt.Sprintf("one of %q", PolicyTypes))
	}
	for _, s := range [...]struct {
		of      PolicyType
		present bool
	}{
		{PowerOfTwo, p.PowerOfTwo != nil},
		{CacheAware, p.CacheAware != nil},
		{SessionAware, p.SessionAware != nil},
		{Sticky, p.Sticky != nil},
	} {
		if (p.Type == s.of) != s.present {
			v.bad(at+"/policy/"+string(s.of), "the section is present exactly when the type is "+string(s.of), "")
		}
	}
	if p.PowerOfTwo != nil {
		v.optional(at, "/policy/power_of_two/choices", &p.PowerOfTwo.Choices, 1, MaxCount)
	}
	if p.CacheAware != nil {
		v.cacheAware(at+"/policy/cache_aware", p.CacheAware)
	}
	if f := p.Fallback(); f != nil {
		v.fallback(at+"/policy/"+string(p.Type)+"/fallback", f)
	}
	a := &p.Admission
	v.optional(at, "/policy/admission/max_running_requests", a.MaxRunningRequests, 0, MaxCount)
	v.optional(at, "/policy/admission/max_waiting_requests", a.MaxWaitingRequests, 0, MaxCount)
	v.optional(at, "/policy/admission/max_kv_tokens", a.MaxKVTokens, 0, MaxCount)
	v.optional(at, "/policy/admission/max_pending_prefill_tokens", a.MaxPendingPrefillTokens, 0, MaxCount)
	v.optional(at, "/policy/admission/max_inflight_requests", a.MaxInflightRequests, 0, MaxCount)
}

func (v *validator) cacheAware(at string, t *CacheAwareTuning) {
	v.span(at+"/min_matched_tokens", t.MinMatchedTokens, 0, MaxCount)
	v.number(at+"/min_match_ratio", t.MinMatchRatio, 0, 1)
	v.span(at+"/candidate_min_workers", t.CandidateMinWorkers, 1, MaxCount)
	v.number(at+"/candidate_ratio", t.CandidateRatio, 0, 1)
	v.span(at+"/candidate_max_workers", t.CandidateMaxWorkers, t.CandidateMinWorkers, MaxCount)
	v.span(at+"/switch_margin_tokens", t.SwitchMarginTokens, 0, MaxCount)
	v.span(at+"/pressure_abs_threshold_tokens", t.PressureAbsThresholdTokens, 0, MaxCount)
	if t.PressureAbsThresholdMS != nil {
		v.number(at+"/pressure_abs_threshold_ms", *t.PressureAbsThresholdMS, 0, MaxCount)
	}
	v.number(at+"/pressure_rel_threshold", t.PressureRelThreshold, above(1), MaxCount)
	v.optional(at, "/worker_queue_limit", t.WorkerQueueLimit, 1, MaxCount)
	switch {
	case t.SaturationQueueFloor == nil:
	case t.WorkerQueueLimit == nil:
		v.bad(at+"/saturation_queue_floor", "a floor needs a worker_queue_limit", "")
	default:
		v.span(at+"/saturation_queue_floor", *t.SaturationQueueFloor, 1, *t.WorkerQueueLimit)
	}
}

func (v *validator) fallback(at string, f *FallbackPolicy) {
	if !slices.Contains(FallbackTypes[:], f.Type) {
		v.bad(at+"/type", fmt.Sprintf("%q cannot be a fallback", f.Type), fmt.Sprintf("one of %q", FallbackTypes))
	}
	switch {
	case (f.Type == PowerOfTwo) != (f.PowerOfTwo != nil):
		v.bad(at+"/power_of_two", "the section is present exactly when the type is power_of_two", "")
	case f.PowerOfTwo != nil:
		v.span(at+"/power_of_two/choices", f.PowerOfTwo.Choices, 1, MaxCount)
	}
}
