package plan

import (
	"cmp"
	"strconv"
)

// Requires lists what a model needs, each with the JSON pointers of what below
// body needs it: buckets, policies or the tokenizer, in the order of the model.
// An absent need is not required.
type Requires struct {
	// Tokens: the prompt is tokenized, because a bucket has a bound, a policy
	// looks up the prompt's prefix, or ids that the router makes are forwarded.
	// Only models with a tokenizer have this need. Pointers of the tokenizer, buckets and policies.
	Tokens []string `json:"tokens,omitempty"`
	// LengthEstimate: some bucket has a bound and the length is taken from the
	// body size, since no tokenizer is configured. Pointers of buckets.
	LengthEstimate []string `json:"length_estimate,omitempty"`
	// LoadReports: a policy compares reported load, or an admission limit is
	// about a reported metric. Pointers of policies.
	LoadReports []string `json:"load_reports,omitempty"`
	// DispatchTimestamps: a policy corrects reports by the requests dispatched
	// since. Pointers of policies.
	DispatchTimestamps []string `json:"dispatch_timestamps,omitempty"`
	// PrefixSource: a policy asks who holds the prompt's prefix. Pointers of
	// policies.
	PrefixSource []string `json:"prefix_source,omitempty"`
	// SessionHeader and RoutingKeyHeader: a policy keeps bindings of the key in
	// that header, so a store is needed too. Pointers of policies.
	SessionHeader    []string `json:"session_header,omitempty"`
	RoutingKeyHeader []string `json:"routing_key_header,omitempty"`
}

// Affinity reports whether the model keeps bindings.
func (r *Requires) Affinity() bool { return len(r.SessionHeader)+len(r.RoutingKeyHeader) > 0 }

// NeedsLoadReports reports whether the policy reads reported load, to compare
// engines or to check one of its limits.
func (p *Policy) NeedsLoadReports() bool {
	a := &p.Admission
	return p.runs(PowerOfTwo) || p.runs(LoadBased) || p.Type == CacheAware ||
		cmp.Or(a.MaxRunningRequests, a.MaxWaitingRequests, a.MaxKVTokens, a.MaxPendingPrefillTokens) != nil
}

// NeedsDispatchTimestamps reports whether the policy corrects reports by the
// requests that were dispatched since.
func (p *Policy) NeedsDispatchTimestamps() bool { return p.runs(LoadBased) }

// runs reports whether the policy, or the one inside, is of a type.
func (p *Policy) runs(t PolicyType) bool {
	f := p.Fallback()
	return p.Type == t || f != nil && f.Type == t
}

// Require derives what a model needs. The number is its index in the body.
func Require(model int, m *Model) Requires {
	var r Requires
	// An engine is not asked for ids only to send them to an engine.
	if m.Tokenizer != nil && m.Tokenizer.ForwardInputIDs && m.Tokenizer.Engine == nil {
		r.Tokens = append(r.Tokens, "/models/"+strconv.Itoa(model)+"/tokenizer")
	}
	for i := range m.Buckets {
		b := &m.Buckets[i]
		at := BucketPointer(model, i)
		switch bounded := cmp.Or(b.Min, b.Max, b.MaxContextTokens) != nil; {
		case bounded && m.Tokenizer != nil:
			r.Tokens = append(r.Tokens, at)
		case bounded:
			r.LengthEstimate = append(r.LengthEstimate, at)
		}
		for _, g := range b.Groups.All() {
			r.policy(at+"/groups/"+g.Member()+"/policy", &g.Group.Policy, m.Tokenizer != nil)
		}
	}
	return r
}

// policy adds what a policy needs.
func (r *Requires) policy(at string, p *Policy, tokenizer bool) {
	need := func(list *[]string, needed bool) {
		if needed {
			*list = append(*list, at)
		}
	}
	need(&r.Tokens, p.Type == CacheAware && tokenizer)
	need(&r.LoadReports, p.NeedsLoadReports())
	need(&r.DispatchTimestamps, p.NeedsDispatchTimestamps())
	need(&r.PrefixSource, p.Type == CacheAware)
	need(&r.SessionHeader, p.Type == SessionAware)
	need(&r.RoutingKeyHeader, p.Type == Sticky)
}
