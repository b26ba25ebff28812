package migrate

import (
	"fmt"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/bucketfile"
	"shunt/schema/plan"
)

// state writes the services that the policies need, and the headers that they
// read.
func (m *migration) state() {
	if m.uses("cache_aware") {
		m.prefix()
	}
	if m.uses("session_aware") {
		m.affinity("session-id-header", "session_id_header", "session-idle-secs", "session-eviction-interval-secs")
	}
	if m.uses("sticky") {
		m.affinity("routing-key-header", "routing_key_header", "sticky-idle-secs", "sticky-eviction-interval-secs")
	}
	for _, section := range []string{"/session/", "/kv_indexer/"} {
		for pointer, l := range m.fields {
			if strings.HasPrefix(pointer, section) && l.Outcome == "" && !l.Findings.HasErrors() {
				l.raise(Carried)
				l.note("no group uses it, so nothing is written")
			}
		}
	}
}

// instead is the value of a section of the bucket file that stands in for an
// argument, and false when there is none.
func (m *migration) instead(name string) (value *node, origins []bucketfile.Origin, ok bool) {
	if s := m.file.Session; s != nil {
		switch {
		case name == "session-id-header" && s.Header != nil:
			return text(s.Header.Value), s.Header.Origins, true
		case name == "session-idle-secs" && s.IdleSecs != nil:
			return duration(min(s.IdleSecs.Value, maxSeconds)), s.IdleSecs.Origins, true
		case name == "session-eviction-interval-secs" && s.EvictionIntervalSecs != nil:
			return duration(min(s.EvictionIntervalSecs.Value, maxSeconds)), s.EvictionIntervalSecs.Origins, true
		}
	}
	if x := m.file.Indexer; x != nil {
		switch {
		case name == "kv-indexer-endpoint" && x.URL != nil:
			return text(x.URL.Value), x.URL.Origins, true
		case name == "kv-indexer-query-timeout-ms" && x.QueryTimeoutMs != nil:
			return text(fmt.Sprintf("%dms", min(x.QueryTimeoutMs.Value, plan.MaxDurationMS))), x.QueryTimeoutMs.Origins, true
		case name == "kv-indexer-query-max-inflight" && x.QueryMaxInflight != nil:
			return number(min(x.QueryMaxInflight.Value, 1<<32-1)), x.QueryMaxInflight.Origins, true
		}
	}
	return nil, nil, false
}

// stood writes the value that a section of the bucket file has in place of an
// argument.
func (m *migration) stood(name, pointer string) bool {
	value, origins, ok := m.instead(name)
	if ok {
		from := m.from(origins)
		m.put(pointer, value, from...)
		from[0].raise(Renamed)
	}
	return ok
}

// prefix writes the source of cached prefixes.
func (m *migration) prefix() {
	provider := m.source("cache-prefix-provider")
	const at = "/state/prefix/remote"
	if m.stood("kv-indexer-endpoint", at+"/endpoint") {
		m.stood("kv-indexer-query-timeout-ms", at+"/query_timeout")
		m.stood("kv-indexer-query-max-inflight", at+"/max_inflight")
		m.forget("cache-prefix-provider")
		return
	}
	if !m.line.Has("kv-indexer-endpoint") {
		if m.usable("cache-prefix-provider") {
			m.put("/state/prefix/local", &node{}, provider)
			if m.line.Has("cache-prefix-provider") {
				provider.raise(Renamed)
			}
		}
		return
	}
	if m.line.Has("cache-prefix-provider") {
		provider.raise(Carried)
		provider.note("the endpoint says it")
	} else {
		provider.note("the endpoint says it")
	}
	endpoint := m.source("kv-indexer-endpoint")
	if v := m.line.Value("kv-indexer-endpoint"); v != nil {
		if form, err := plan.NormalizeURL(v.Text); err != nil {
			endpoint.find(diag.LegacyNoEquivalent, fmt.Sprintf("the endpoint %q %v", diag.Mask(v.Text), err), "write it like http://10.0.0.9:50051")
		} else {
			m.put(at+"/endpoint", text(form), endpoint)
		}
	}
	m.count("kv-indexer-query-timeout-ms", at+"/query_timeout", plan.MaxDurationMS, func(n uint64) *node { return text(fmt.Sprintf("%dms", n)) })
	m.count("kv-indexer-query-max-inflight", at+"/max_inflight", 1<<32-1, number[uint64])
}

// count writes a number that has the same default here.
func (m *migration) count(name, pointer string, most uint64, make func(uint64) *node) {
	if m.stood(name, pointer) {
		return
	}
	l := m.source(name)
	switch v := m.line.Value(name); {
	case !m.line.Has(name):
		l.note(sameDefault)
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
	case !m.line.Has(header) && m.stood(header, m.at+"/affinity/"+field):
		m.forget(header)
	case !m.line.Has(header):
		// A header that is not written is a finding of its own.
		m.put(m.at+"/affinity/"+field, text(defaultOf(header)), l)
	case v != nil && len(v.Text) > 256:
		l.find(diag.LegacyNoEquivalent, "the name of the header is longer than 256 characters", "choose a shorter header")
	case v != nil:
		m.put(m.at+"/affinity/"+field, text(v.Text), l)
	}
	m.count(idle, "/state/affinity/idle", maxSeconds, duration)
	m.count(sweep, "/state/affinity/sweep", maxSeconds, duration)
}
