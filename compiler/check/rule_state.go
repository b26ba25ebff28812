package check

import (
	"fmt"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleStateServices refuses services that leave open which one is meant, and
// those that cannot be called.
func ruleStateServices(r *rules) {
	if p := r.cfg.State.Prefix; p != nil {
		r.oneOf("/state/prefix", "local", p.Local != nil, "remote", p.Remote != nil)
		if p.Local == nil && p.Remote == nil && r.intact("/state/prefix") {
			r.addKey(diag.OneService, "/state/prefix", "prefix has neither local nor remote").
				Hint = "write prefix: {local: {}} for an index in each router"
		}
		if p.Remote != nil {
			r.endpoint("/state/prefix/remote/endpoint", p.Remote.Endpoint)
		}
	}
	if a := r.cfg.State.Affinity; a != nil {
		const url = "/state/affinity/redis/url"
		r.oneOf("/state/affinity", "memory", a.Memory != nil, "redis", a.Redis != nil)
		if a.Redis != nil && r.intact("/state/affinity/redis") && !plan.IsReference(a.Redis.URL) {
			r.add(diag.BadName, url, "the reference holds characters that do not print")
		}
	}
}

// oneOf refuses two services of one kind.
func (r *rules) oneOf(at, a string, hasA bool, b string, hasB bool) {
	if hasA && hasB {
		f := r.addKey(diag.OneService, at+"/"+b, fmt.Sprintf("%s and %s exclude each other", a, b))
		f.Hint = "keep one of the two"
		r.also(f, at+"/"+a, a+" is here")
	}
}

func (r *rules) endpoint(path, url string) {
	if _, err := plan.NormalizeURL(url); err != nil && url != "" && r.intact(path) {
		r.add(diag.BadEndpoint, path, "the endpoint "+err.Error()).Hint = "write it like http://10.0.0.9:50051"
	}
}

// rulePolling warns when a polled report is too old before the next one comes.
func rulePolling(r *rules) {
	l := &r.cfg.State.Load
	poll := durationAt{"/state/load/poll_interval", l.PollInterval, config.DefaultPollIntervalMS, 0, 0}
	fresh := durationAt{"/state/load/freshness", l.Freshness, config.DefaultFreshnessMS, 0, 0}
	if poll.ms() < fresh.ms() || !r.intact(poll.path) || !r.intact(fresh.path) {
		return
	}
	at := poll
	if poll.value == nil {
		at = fresh
	}
	f := r.add(diag.StalePolls, at.path, fmt.Sprintf("%s is not below %s, so polled load is unknown most of the time", poll.name(), fresh.name()))
	f.Hint = "poll at least twice while a report counts"
}

// ruleUnread refuses settings that nothing reads. Whoever wrote them expects them
// to hold.
func ruleUnread(r *rules) {
	prefixes, bindings, whole := false, false, true
	for i := range r.models {
		m := &r.models[i]
		whole = whole && r.intact(m.at)
		prefixes = prefixes || m.runs(cacheAware)
		bindings = bindings || m.runs(sessionAware) || m.runs(sticky)
		r.unreadOfModel(m)
	}
	if !whole || len(r.models) == 0 || !r.intact("/models") {
		return
	}
	if s := r.cfg.State.Prefix; s != nil && !prefixes {
		r.unread("/state/prefix", "no policy is cache_aware")
	}
	switch s := r.cfg.State.Affinity; {
	case s == nil:
	case !bindings:
		r.unread("/state/affinity", "no policy is session_aware or sticky")
	case s.Redis != nil && s.Sweep != nil:
		r.unread("/state/affinity/sweep", "bindings in Redis expire by themselves")
	}
}

// runs reports whether some group of the model runs a policy of the type.
func (m *modelAt) runs(policy string) bool {
	for _, p := range m.policies() {
		if p.Type == policy {
			return true
		}
	}
	return false
}

func (r *rules) unreadOfModel(m *modelAt) {
	if !r.intact(m.at) {
		return
	}
	if m.Affinity.SessionID != nil && !m.runs(sessionAware) {
		r.unread(m.at+"/affinity/session_id_header", "no policy of the model is session_aware")
	}
	if m.Affinity.RoutingKey != nil && !m.runs(sticky) {
		r.unread(m.at+"/affinity/routing_key_header", "no policy of the model is sticky")
	}
	if t := m.Tokenizer; t != nil && !m.needsTokens() {
		switch {
		case t.Engine != nil:
			r.unread(m.at+"/tokenizer", "engines are asked where a bucket has a bound or a policy is cache_aware, and there is none")
		case !m.Forwards():
			r.unread(m.at+"/tokenizer", "ids are not forwarded, no bucket has a bound, and no policy is cache_aware")
		}
	}
	for i := range m.buckets() {
		b := &m.buckets()[i]
		if b.TTFTMS != nil && m.TTFTSLO == nil {
			r.unread(m.bucketAt(i)+"/ttft_ms", "the model has no ttft_slo")
		}
		if b.TokensPerSecond != nil && m.TPSSLO == nil {
			r.unread(m.bucketAt(i)+"/tokens_per_second", "the model has no tps_slo")
		}
	}
}

// needsTokens reports whether a bucket or policy is better off with exact tokens.
func (m *modelAt) needsTokens() bool {
	for i := range m.buckets() {
		if b := &m.buckets()[i]; b.Limits.Min != nil || b.Limits.Max != nil || b.MaxContextTokens != nil {
			return true
		}
	}
	return m.runs(cacheAware)
}

func (r *rules) unread(path, why string) {
	r.addKey(diag.Unread, path, fmt.Sprintf("nothing reads %s: %s", settingOf(path), why)).Hint = "remove it"
}
