package lower

import (
	"strings"

	"shunt/compiler/config"
	"shunt/schema/plan"
)

// state lowers the services that the models need.
func state(s *config.State, models []plan.Model, t *tracer) plan.State {
	e := t.element("/state", "/state")
	defer e.end()
	l := &s.Load
	e.note(l.Transport != nil, "load/transport", "load/transport")
	e.note(l.PollInterval != nil, "load/poll_interval_ms", "load/poll_interval")
	e.note(l.Freshness != nil, "load/freshness_ms", "load/freshness")
	out := plan.State{Load: plan.LoadState{
		Transport:      plan.LoadTransport(config.Or(l.Transport, config.DefaultLoadTransport)),
		PollIntervalMS: config.MSOr(l.PollInterval, config.DefaultPollIntervalMS),
		FreshnessMS:    config.MSOr(l.Freshness, config.DefaultFreshnessMS),
	}}
	prefixes, bindings := false, false
	for i := range models {
		r := &models[i].Requires
		prefixes = prefixes || len(r.PrefixSource) > 0
		bindings = bindings || r.Affinity()
	}
	if prefixes {
		out.Prefix = prefixState(s.Prefix, e)
	}
	if bindings {
		out.Affinity = affinityState(s.Affinity, e)
	}
	return out
}

// prefixState is an index of this process unless another one is named.
func prefixState(p *config.PrefixState, e *element) *plan.PrefixState {
	if p != nil && p.Remote != nil {
		r := p.Remote
		e.note(true, "prefix/remote/endpoint", "prefix/remote/endpoint")
		e.note(r.QueryTimeout != nil, "prefix/remote/query_timeout_ms", "prefix/remote/query_timeout")
		e.note(r.MaxInflight != nil, "prefix/remote/max_inflight", "prefix/remote/max_inflight")
		// The check has refused endpoints without a normal form.
		endpoint, _ := plan.NormalizeURL(r.Endpoint)
		return &plan.PrefixState{Remote: &plan.RemotePrefix{
			Endpoint:       endpoint,
			QueryTimeoutMS: config.MSOr(r.QueryTimeout, config.DefaultQueryTimeoutMS),
			MaxInflight:    config.Or(r.MaxInflight, config.DefaultQueryInflight),
		}}
	}
	var l config.LocalPrefix
	if p != nil && p.Local != nil {
		l = *p.Local
	}
	e.note(l.MaxBlocks != nil, "prefix/local/max_blocks", "prefix/local/max_blocks")
	return &plan.PrefixState{Local: &plan.LocalPrefix{MaxBlocks: config.Or(l.MaxBlocks, config.DefaultMaxBlocks)}}
}

// affinityState is bindings in this process unless Redis is named.
func affinityState(a *config.AffinityState, e *element) *plan.AffinityState {
	if a == nil {
		a = new(config.AffinityState)
	}
	e.note(a.Idle != nil, "affinity/idle_ms", "affinity/idle")
	out := &plan.AffinityState{IdleMS: config.MSOr(a.Idle, config.DefaultIdleMS)}
	if r := a.Redis; r != nil {
		const at = "affinity/redis/url"
		e.note(true, at, at)
		e.note(r.OnFailure != nil, "affinity/redis/on_failure", "affinity/redis/on_failure")
		e.note(r.Timeout != nil, "affinity/redis/timeout_ms", "affinity/redis/timeout")
		url := r.URL
		if file, ok := strings.CutPrefix(url, "file:"); ok {
			url = "file:" + e.tracer.resolve(e.from+"/"+at, file)
		}
		out.Redis = &plan.RedisAffinity{
			URL: url, OnFailure: plan.OnFailure(config.Or(r.OnFailure, config.DefaultOnFailure)),
			TimeoutMS: config.MSOr(r.Timeout, config.DefaultRedisTimeoutMS),
		}
		return out
	}
	var m config.MemoryAffinity
	if a.Memory != nil {
		m = *a.Memory
	}
	e.note(m.MaxEntries != nil, "affinity/memory/max_entries", "affinity/memory/max_entries")
	e.note(a.Sweep != nil, "affinity/memory/sweep_ms", "affinity/sweep")
	out.Memory = &plan.MemoryAffinity{
		MaxEntries: config.Or(m.MaxEntries, config.DefaultMaxEntries),
		SweepMS:    config.MSOr(a.Sweep, config.DefaultSweepMS),
	}
	return out
}
