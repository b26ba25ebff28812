package plan

// PolicyType names a policy. The set is closed; assemble has one case for each.
type PolicyType string

// The policy types.
const (
	RoundRobin   PolicyType = "round_robin"
	Random       PolicyType = "random"
	PowerOfTwo   PolicyType = "power_of_two"
	LoadBased    PolicyType = "load_based"
	CacheAware   PolicyType = "cache_aware"
	SessionAware PolicyType = "session_aware"
	Sticky       PolicyType = "sticky"
)

// PolicyTypes lists every type, in documentation order.
var PolicyTypes = [...]PolicyType{RoundRobin, Random, PowerOfTwo, LoadBased, CacheAware, SessionAware, Sticky}

// FallbackTypes lists the types that can be a fallback.
var FallbackTypes = [...]PolicyType{RoundRobin, Random, PowerOfTwo, LoadBased}

// Policy is a policy type, the section of tuning that belongs to it, and the
// admission limits that it checks. A section is present exactly when the type
// has one.
type Policy struct {
	Type         PolicyType          `json:"type"`
	PowerOfTwo   *PowerOfTwoTuning   `json:"power_of_two,omitempty"`
	CacheAware   *CacheAwareTuning   `json:"cache_aware,omitempty"`
	SessionAware *SessionAwareTuning `json:"session_aware,omitempty"`
	Sticky       *StickyTuning       `json:"sticky,omitempty"`
	Admission    Admission           `json:"admission"`
}

// PowerOfTwoTuning: Choices is how many distinct engines are sampled, at least
// 1; 2 is the classic form, 1 is random, and the group size or more is an exact
// minimum.
type PowerOfTwoTuning struct {
	Choices int64 `json:"choices"`
}

// CacheAwareTuning weighs cached prefixes against load.
type CacheAwareTuning struct {
	// MinMatchedTokens and MinMatchRatio are the least match that counts, as
	// tokens and as a share of the input; both must be met.
	MinMatchedTokens int64   `json:"min_matched_tokens"`
	MinMatchRatio    float64 `json:"min_match_ratio"`
	// The best holders are considered: CandidateRatio of the group, at least
	// CandidateMinWorkers, at most CandidateMaxWorkers.
	CandidateMinWorkers int64   `json:"candidate_min_workers"`
	CandidateRatio      float64 `json:"candidate_ratio"`
	CandidateMaxWorkers int64   `json:"candidate_max_workers"`
	// SwitchMarginTokens is how much more uncached work than the best holder a
	// holder may have and still compete.
	SwitchMarginTokens int64 `json:"switch_margin_tokens"`
	// PressureGuard lets a holder under materially less pressure win: by the
	// factor, and by queue time where it is known and the threshold is set,
	// otherwise by queued tokens.
	PressureGuard              bool     `json:"pressure_guard"`
	PressureAbsThresholdTokens int64    `json:"pressure_abs_threshold_tokens"`
	PressureAbsThresholdMS     *float64 `json:"pressure_abs_threshold_ms,omitempty"`
	PressureRelThreshold       float64  `json:"pressure_rel_threshold"`
	// WorkerQueueLimit is the queue from which a holder is avoided, and
	// SaturationQueueFloor the one from which a group keeps its holders all the
	// same; absent is off.
	WorkerQueueLimit     *int64 `json:"worker_queue_limit,omitempty"`
	SaturationQueueFloor *int64 `json:"saturation_queue_floor,omitempty"`
	// Fallback picks when no holder is usable.
	Fallback FallbackPolicy `json:"fallback"`
}

// SessionAwareTuning: Fallback picks for sessions without a binding.
type SessionAwareTuning struct {
	Fallback FallbackPolicy `json:"fallback"`
}

// StickyTuning: Fallback picks for routing keys without a binding.
type StickyTuning struct {
	Fallback FallbackPolicy `json:"fallback"`
}

// FallbackPolicy is a policy inside another, whose admission limits count.
type FallbackPolicy struct {
	Type       PolicyType        `json:"type"`
	PowerOfTwo *PowerOfTwoTuning `json:"power_of_two,omitempty"`
}

// Fallback is the policy inside a policy, nil if its type has none.
func (p *Policy) Fallback() *FallbackPolicy {
	switch {
	case p.CacheAware != nil:
		return &p.CacheAware.Fallback
	case p.SessionAware != nil:
		return &p.SessionAware.Fallback
	case p.Sticky != nil:
		return &p.Sticky.Fallback
	}
	return nil
}

// Admission is a set of absolute limits per engine (seed, section 4). An engine
// is admitted while its metric is below the limit; an absent limit is unchecked.
type Admission struct {
	MaxRunningRequests      *int64 `json:"max_running_requests,omitempty"`
	MaxWaitingRequests      *int64 `json:"max_waiting_requests,omitempty"`
	MaxKVTokens             *int64 `json:"max_kv_tokens,omitempty"`
	MaxPendingPrefillTokens *int64 `json:"max_pending_prefill_tokens,omitempty"`
	MaxInflightRequests     *int64 `json:"max_inflight_requests,omitempty"`
}
