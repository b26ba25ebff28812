package policy

import (
	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// Trace is what one group's pick looked at. Its methods accept a nil Trace and
// then do nothing, so policies call them without asking.
type Trace struct {
	// Candidates are the ids that the policy chose from.
	Candidates []string `json:"candidates"`
	// Source is the signal by which engines were compared, empty if none was.
	Source string `json:"source,omitempty"`
	// Compared are the observations that the policy compared, in sampled order.
	Compared []Compared `json:"compared,omitempty"`
	// Affinity are the steps of a policy that keeps bindings.
	Affinity []AffinityTrace `json:"affinity,omitempty"`
	// Cache are the steps of a policy that follows cached prefixes.
	Cache *CacheTrace `json:"cache,omitempty"`
	// Admission are the verdicts, in order.
	Admission []Verdict `json:"admission,omitempty"`
}

// AffinityTrace is what a policy found about the key of a request. It holds no
// key, because clients choose those.
type AffinityTrace struct {
	Key KeyFate `json:"key"`
	// Bound is the engine of the binding, for KeyBound and KeyRaced.
	Bound string `json:"bound,omitempty"`
}

// KeyFate is what became of a key.
type KeyFate string

// The fates of keys.
const (
	KeyAbsent      KeyFate = "absent"      // the request has none
	KeyBound       KeyFate = "bound"       // bound to a candidate
	KeyFree        KeyFate = "free"        // bound to no candidate
	KeyRaced       KeyFate = "raced"       // bound by another request during the pick
	KeyUnavailable KeyFate = "unavailable" // the store did not answer
)

// Compared is one observation. Reported values are absent without a fresh
// report.
type Compared struct {
	Engine          string   `json:"engine"`
	Inflight        int64    `json:"inflight"`
	Depth           *uint64  `json:"depth,omitempty"`
	Running         *uint64  `json:"running_requests,omitempty"`
	Waiting         *uint64  `json:"waiting_requests,omitempty"`
	WaitingUncached *uint64  `json:"pending_prefill_tokens,omitempty"`
	Used            *uint64  `json:"used_kv_tokens,omitempty"`
	Capacity        *uint64  `json:"kv_capacity_tokens,omitempty"`
	QueueMS         *float64 `json:"prefill_queue_ms,omitempty"`
}

// Verdict is one admission check.
type Verdict struct {
	Engine string `json:"engine"`
	// Limit is the limit that refused; empty admits.
	Limit    Limit   `json:"limit,omitempty"`
	Running  *uint64 `json:"running_requests,omitempty"`
	Waiting  *uint64 `json:"waiting_requests,omitempty"`
	KV       *uint64 `json:"kv_tokens,omitempty"`
	Pending  *uint64 `json:"pending_prefill_tokens,omitempty"`
	Inflight int64   `json:"inflight_requests"`
}

// Offer notes the candidates; the group calls it.
func (t *Trace) Offer(candidates []*fleet.Engine) {
	if t == nil {
		return
	}
	t.Candidates = make([]string, len(candidates))
	for i, e := range candidates {
		t.Candidates[i] = e.ID()
	}
}

func (t *Trace) compared(o *load.Observation) {
	if t == nil {
		return
	}
	c := Compared{Engine: o.Engine.ID(), Inflight: o.Inflight}
	if l := o.Load; l != nil {
		c.Running, c.Waiting = &l.Running, &l.Waiting
	}
	if l := o.Native(); l != nil {
		c.WaitingUncached, c.Used, c.Capacity = &l.WaitingUncached, &l.Used, &l.Capacity
		if l.HasQueue {
			c.QueueMS = &l.QueueMS
		}
	}
	t.Compared = append(t.Compared, c)
}

func (t *Trace) depth(d uint64) {
	if t != nil {
		t.setDepth(d)
	}
}

// setDepth is apart from depth, so that an untraced pick moves nothing to the
// heap.
func (t *Trace) setDepth(d uint64) { t.Compared[len(t.Compared)-1].Depth = new(d) }

func (t *Trace) affinity(a AffinityTrace) {
	if t != nil {
		t.Affinity = append(t.Affinity, a)
	}
}

func (t *Trace) source(s string) {
	if t != nil {
		t.Source = s
	}
}

func (t *Trace) admission(e *fleet.Engine, m Metrics, l Limit) {
	if t != nil {
		t.addVerdict(e, m, l)
	}
}

// addVerdict is apart from admission for the same reason as setDepth.
func (t *Trace) addVerdict(e *fleet.Engine, m Metrics, l Limit) {
	v := Verdict{Engine: e.ID(), Limit: l, Inflight: m.Inflight}
	if m.Reported {
		v.Running, v.Waiting = &m.Running, &m.Waiting
	}
	if m.Native {
		v.KV, v.Pending = &m.KV, &m.PendingPrefill
	}
	t.Admission = append(t.Admission, v)
}
