package check

import (
	"fmt"
	"math"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// exceeds warns when one duration is above another, at the first of the two that
// is written. Two defaults are never reported, nor are durations out of range.
func (r *rules) exceeds(code diag.Code, long, short durationAt, why, hint string) {
	if long.ms() <= short.ms() || short.ms() == 0 || long.ms() > plan.MaxDurationMS || long.value == nil && short.value == nil || !r.intact(long.path) || !r.intact(short.path) {
		return
	}
	at, other := long, short
	if long.value == nil {
		at, other = short, long
	}
	f := r.add(code, at.path, fmt.Sprintf("%s is longer than %s, %s", long.name(), short.name(), why))
	f.Hint = hint
	if other.value != nil {
		r.also(f, other.path, other.path[strings.LastIndexByte(other.path, '/')+1:]+" is here")
	}
}

// ruleDrain warns about a drain that outlasts every request, and tells of one that
// does not wait for load balancers.
func ruleDrain(r *rules) {
	s := &r.cfg.Server
	if d := s.DrainDelay; d != nil && d.MS() == 0 && s.Listen != nil && plan.CheckListen(*s.Listen) == nil && !plan.IsLoopback(*s.Listen) && r.intact("/server/drain_delay") {
		r.add(diag.NoDrainDelay, "/server/drain_delay", fmt.Sprintf("requests are refused as soon as the router is told to stop, while load balancers still send some (drain_delay %s)", *d)).
			Hint = fmt.Sprintf("the default is %s", words(config.DefaultDrainDelayMS))
	}
	if s.DrainTimeout == nil {
		return // a default that is too long does no harm
	}
	r.exceeds(diag.LongDrain,
		durationAt{"/server/drain_timeout", s.DrainTimeout, config.DefaultDrainTimeoutMS, 0, 0},
		durationAt{"/server/stale_timeout", s.StaleTimeout, config.DefaultStaleTimeoutMS, 0, 0},
		"and no request lives that long", "lower drain_timeout")
}

// ruleBreaker warns about breakers that open too easily or probe too often.
func ruleBreaker(r *rules) {
	connect := durationAt{"/server/connect_timeout", r.cfg.Server.ConnectTimeout, config.DefaultConnectTimeoutMS, 0, 0}
	for i := range r.models {
		m := &r.models[i]
		if path := m.at + "/breaker/threshold"; m.Breaker.Threshold != nil && *m.Breaker.Threshold == 1 && r.intact(path) {
			r.add(diag.QuickBreaker, path, fmt.Sprintf("one failed request takes an engine of model %q out for the cool-down", m.ID)).
				Hint = "use 3 or more"
		}
		if m.Breaker.CoolDown != nil {
			r.exceeds(diag.ShortCoolDown, connect,
				durationAt{m.at + "/breaker/cool_down", m.Breaker.CoolDown, config.DefaultBreakerCoolDownMS, 0, 0},
				"so a dead host is probed without a pause", "raise cool_down to several times connect_timeout")
		}
	}
}

// bytesPerToken is what a token of any language has at least, on average, in the
// body of a request.
const bytesPerToken = 2

// ruleBody warns about buckets whose inputs are refused for their size.
func ruleBody(r *rules) {
	limit := config.BytesOr(r.cfg.Server.MaxBody, config.DefaultMaxBodyBytes)
	if !r.intact("/server/max_body") || limit < plan.MinBodyBytes || limit > plan.MaxBodyBytes {
		return
	}
	for _, m := range r.sounds() {
		for i := range m.buckets() {
			b := ranges(&m.buckets()[i])
			tokens := b.Capacity()
			if tokens == math.MaxInt64 || tokens <= limit/bytesPerToken {
				continue
			}
			name, path := "max_body (default 32MiB)", m.bucketAt(i)+"/id"
			if r.cfg.Server.MaxBody != nil {
				name, path = fmt.Sprintf("max_body (%s)", *r.cfg.Server.MaxBody), "/server/max_body"
			}
			f := r.add(diag.SmallBody, path, fmt.Sprintf("%s is too small for the inputs of bucket %q, up to %d tokens", name, b.ID, tokens))
			f.Hint = "raise server.max_body to four bytes a token or more"
			r.also(f, m.bucketAt(i), fmt.Sprintf("bucket %q is here", b.ID))
			return // the first one is enough
		}
	}
}

// ruleExposedDecision warns about decisions that other hosts can read.
func ruleExposedDecision(r *rules) {
	s := &r.cfg.Server
	const path = "/server/expose_decision"
	if s.ExposeDecision == nil || !*s.ExposeDecision || s.Listen == nil || !r.intact(path) || !r.intact("/server/listen") {
		return
	}
	if plan.CheckListen(*s.Listen) == nil && !plan.IsLoopback(*s.Listen) {
		f := r.add(diag.ExposedDecision, path, fmt.Sprintf("other hosts reach %q and can read which engines there are", *s.Listen))
		f.Hint = "remove expose_decision; shunt explain shows the same offline"
		r.also(f, "/server/listen", "the listener is here")
	}
}

// ruleBindings warns about bindings that live for longer or for less long than
// they should.
func ruleBindings(r *rules) {
	a := r.cfg.State.Affinity
	if a == nil {
		return
	}
	idle := durationAt{"/state/affinity/idle", a.Idle, config.DefaultIdleMS, 0, 0}
	if a.Redis == nil {
		r.exceeds(diag.LongSweep, durationAt{"/state/affinity/sweep", a.Sweep, config.DefaultSweepMS, 0, 0}, idle,
			"so idle bindings hold far longer than that", "set sweep to a fraction of idle")
	}
	if a.Idle != nil {
		r.exceeds(diag.ShortIdle, durationAt{"/server/request_timeout", r.cfg.Server.RequestTimeout, config.DefaultRequestTimeoutMS, 0, 0}, idle,
			"so a binding may be gone before the request that made it has ended", "raise idle above request_timeout")
	}
}

// slowLookupMS is a wait for the remote index that costs more than a hit saves.
const slowLookupMS = 1000

// ruleLookup warns about a long wait for the remote index.
func ruleLookup(r *rules) {
	p := r.cfg.State.Prefix
	if p == nil || p.Remote == nil || p.Remote.QueryTimeout == nil {
		return
	}
	const path = "/state/prefix/remote/query_timeout"
	if p.Remote.QueryTimeout.MS() >= slowLookupMS && r.intact(path) {
		r.add(diag.SlowLookup, path, fmt.Sprintf("every request waits up to %s while the index is silent", *p.Remote.QueryTimeout)).
			Hint = fmt.Sprintf("the default is %dms", config.DefaultQueryTimeoutMS)
	}
}

// Bounds of the times of load reports in milliseconds.
const (
	busyPollMS = 100
	oldLoadMS  = 60_000
)

// ruleLoadTimes warns about polls that are too frequent and reports that count
// for too long.
func ruleLoadTimes(r *rules) {
	l := &r.cfg.State.Load
	if p := l.PollInterval; p != nil && p.MS() > 0 && p.MS() < busyPollMS && r.intact("/state/load/poll_interval") {
		r.add(diag.BusyPolls, "/state/load/poll_interval", fmt.Sprintf("each router asks each engine %d times a second", 1000/p.MS())).
			Hint = fmt.Sprintf("the default is %s", words(config.DefaultPollIntervalMS))
	}
	if f := l.Freshness; f != nil && f.MS() > oldLoadMS && f.MS() <= plan.MaxDurationMS && r.intact("/state/load/freshness") {
		r.add(diag.OldLoad, "/state/load/freshness", fmt.Sprintf("load counts for %s after it was reported", *f)).
			Hint = fmt.Sprintf("the default is %s", words(config.DefaultFreshnessMS))
	}
}
