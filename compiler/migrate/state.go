package migrate

import (
	"fmt"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// state writes the services that the policy needs, and the headers that it reads.
func (m *migration) state() {
	switch m.mainPolicy() {
	case "cache_aware":
		m.prefix()
	case "session_aware":
		m.affinity("session-id-header", "session_id_header", "session-idle-secs", "session-eviction-interval-secs")
	case "sticky":
		m.affinity("routing-key-header", "routing_key_header", "sticky-idle-secs", "sticky-eviction-interval-secs")
	}
}

// prefix writes the source of cached prefixes.
func (m *migration) prefix() {
	provider := m.source("cache-prefix-provider")
	if !m.line.Has("kv-indexer-endpoint") {
		if m.usable("cache-prefix-provider") {
			m.put("/state/prefix/local", &node{}, provider)
			if m.line.Has("cache-prefix-provider") {
				provider.raise(Renamed)
			}
		}
		return
	}
	const at = "/state/prefix/remote"
	if m.line.Has("cache-prefix-provider") {
		provider.raise(Carried)
		provider.note("the endpoint says it")
	} else {
		provider.note("the endpoint says it")
	}
	endpoint := m.source("kv-indexer-endpoint")
	if v := m.line.Value("kv-indexer-endpoint"); v != nil {
		if _, err := plan.NormalizeURL(v.Text); err != nil {
			endpoint.find(diag.LegacyNoEquivalent, fmt.Sprintf("the endpoint %q %v", diag.Mask(v.Text), err), "write it like http://10.0.0.9:50051")
		} else {
			m.put(at+"/endpoint", text(v.Text), endpoint)
		}
	}
	m.count("kv-indexer-query-timeout-ms", at+"/query_timeout", plan.MaxDurationMS, func(n uint64) *node { return text(fmt.Sprintf("%dms", n)) })
	m.count("kv-indexer-query-max-inflight", at+"/max_inflight", 1<<32-1, number[uint64])
}

// count writes a number that has the same default here.
func (m *migration) count(name, pointer string, most uint64, make func(uint64) *node) {
	l := m.source(name)
	switch v := m.line.Value(name); {
	case !m.line.Has(name):
		l.note(same)
	case v == nil:
	case v.Number > most:
		l.change(Timeouts, "the most that can be written is %d, which is written instead of %s", most, v.Text)
		m.put(pointer, make(most), l)
	default:
		m.put(pointer, make(v.Number), l)
	}
}

// affinity writes the header of a key and how long bindings live.
func (m *migration) affinity(header, field, idle, sweep string) {
	l := m.source(header)
	switch v := m.line.Value(header); {
	case !m.line.Has(header):
		l.note(same)
	case v != nil && len(v.Text) > 256:
		l.find(diag.LegacyNoEquivalent, "the name of the header is longer than 256 characters", "choose a shorter header")
	case v != nil:
		m.put("/models/0/affinity/"+field, text(v.Text), l)
	}
	m.count(idle, "/state/affinity/idle", maxSeconds, duration)
	m.count(sweep, "/state/affinity/sweep", maxSeconds, duration)
}
