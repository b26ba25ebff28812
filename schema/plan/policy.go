package plan

// PolicyType names a policy. The set is closed; assemble has one case for each.
type PolicyType string

// The policy types that the runtime runs.
const (
	RoundRobin PolicyType = "round_robin"
	Random     PolicyType = "random"
	PowerOfTwo PolicyType = "power_of_two"
	LoadBased  PolicyType = "load_based"
)

// PolicyTypes lists every type, in documentation order.
var PolicyTypes = [...]PolicyType{RoundRobin, Random, PowerOfTwo, LoadBased}

// Policy is a policy type, the section of tuning that belongs to it, and the
// admission limits that it checks. A section is present exactly when the type
// has one.
type Policy struct {
	Type       PolicyType        `json:"type"`
	PowerOfTwo *PowerOfTwoTuning `json:"power_of_two,omitempty"`
	Admission  Admission         `json:"admission"`
}

// PowerOfTwoTuning: Choices is how many distinct engines are sampled, at least
// 1; 2 is the classic form, 1 is random, and the group size or more is an exact
// minimum.
type PowerOfTwoTuning struct {
	Choices int64 `json:"choices"`
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
