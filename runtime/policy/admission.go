package policy

import (
	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// Limit names an admission limit; the empty Limit is none.
type Limit string

// The limits, in the order in which they are checked.
const (
	MaxRunningRequests      Limit = "max_running_requests"
	MaxWaitingRequests      Limit = "max_waiting_requests"
	MaxKVTokens             Limit = "max_kv_tokens"
	MaxPendingPrefillTokens Limit = "max_pending_prefill_tokens"
	MaxInflightRequests     Limit = "max_inflight_requests"
)

// Metrics are the observed values that admission judges. Without a fresh report
// Reported is false, without its native part Native is: then those values are
// unknown, which is never zero.
type Metrics struct {
	Reported       bool
	Running        uint64
	Waiting        uint64
	Native         bool
	KV             uint64
	PendingPrefill uint64
	Inflight       int64
}

// metrics are those of an observation; the in-flight count is read anew, since
// it is always known.
func metrics(o *load.Observation) Metrics {
	m := Metrics{Inflight: o.Engine.Inflight()}
	if o.Load != nil {
		m.Reported, m.Running, m.Waiting = true, o.Load.Running, o.Load.Waiting
	}
	if n := o.Native(); n != nil {
		m.Native, m.KV, m.PendingPrefill = true, n.Total, n.WaitingUncached
	}
	return m
}

// Admission accepts or refuses one engine. It ranks nothing, reserves nothing
// and replaces nothing. The empty Limit admits; an error stops routing.
type Admission interface {
	Check(e *fleet.Engine, m Metrics) (Limit, error)
}

// Cap is an optional limit; the zero Cap is none, and Max(0) admits nothing.
type Cap struct {
	max uint64
	set bool
}

// Max admits values below n.
func Max(n uint64) Cap { return Cap{max: n, set: true} }

// refuses reports whether a known value is at the cap; unknown ones pass.
func (c Cap) refuses(known bool, v uint64) bool { return c.set && known && v >= c.max }

// Limits is the admission of absolute caps per engine. The zero Limits admits
// everything.
type Limits struct {
	Running        Cap
	Waiting        Cap
	KVTokens       Cap
	PendingPrefill Cap
	Inflight       Cap
}

// Check returns the first limit that refuses.
func (l Limits) Check(_ *fleet.Engine, m Metrics) (Limit, error) {
	switch {
	case l.Running.refuses(m.Reported, m.Running):
		return MaxRunningRequests, nil
	case l.Waiting.refuses(m.Reported, m.Waiting):
		return MaxWaitingRequests, nil
	case l.KVTokens.refuses(m.Native, m.KV):
		return MaxKVTokens, nil
	case l.PendingPrefill.refuses(m.Native, m.PendingPrefill):
		return MaxPendingPrefillTokens, nil
	case l.Inflight.refuses(true, uint64(max(m.Inflight, 0))):
		return MaxInflightRequests, nil
	}
	return "", nil
}

// check asks admission about one engine, on what selection observed of it. A nil
// Admission admits everything.
func check(a Admission, o *load.Observation, req *Request) (Limit, error) {
	if a == nil {
		return "", nil
	}
	m := metrics(o)
	limit, err := a.Check(o.Engine, m)
	req.Trace.admission(o.Engine, m, limit)
	return limit, err
}

// admit checks the chosen engine once and makes it the pick.
func admit(a Admission, o *load.Observation, req *Request, why Reason) (Pick, error) {
	limit, err := check(a, o, req)
	if err != nil {
		return Pick{}, err
	}
	if limit != "" {
		return Pick{}, rejected(req, o.Engine, limit)
	}
	return Pick{Engine: o.Engine, Reason: why}, nil
}
