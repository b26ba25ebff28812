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
	if m.uses("session_aware") && m.uses("sticky") {
		m.oneLife("sticky-idle-secs", "session-idle-secs")
		m.oneLife("sticky-eviction-interval-secs", "session-eviction-interval-secs")
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

// oneLife states that the bindings of sessions and of routing keys live equally
// long. Only one of the two policies is that of the command line and can have
// been told.
func (m *migration) oneLife(sticky, session string) {
	for _, pair := range [][2]string{{sticky, session}, {session, sticky}} {
		told, other := m.line.Value(pair[0]), m.source(pair[1])
		if told != nil && fmt.Sprint(told.Number) != m.table[pair[1]].Default && !m.line.Has(pair[1]) {
			other.change(Timeouts, "sessions and routing keys share the %d s of --%s", told.Number, pair[0])
		}
	}
}

// instead is the value of a section of the bucket file that stands in for an
// argument: a text, or a number with the most that can be written and how.
type instead struct {
	text  *bucketfile.Value[string]
	count *bucketfile.Value[uint64]
	most  uint64
	write func(uint64) *node
}

// insteads are the sections of the bucket file by argument.
func (m *migration) insteads() map[string]instead {
	out := make(map[string]instead)
	if s := m.file.Session; s != nil {
		out["session-id-header"] = instead{text: s.Header}
		out["session-idle-secs"] = instead{count: s.IdleSecs, most: maxSeconds, write: duration}
		out["session-eviction-interval-secs"] = instead{count: s.EvictionIntervalSecs, most: maxSeconds, write: duration}
	}
	if x := m.file.Indexer; x != nil {
		out["kv-indexer-endpoint"] = instead{text: x.URL}
		out["kv-indexer-query-timeout-ms"] = instead{count: x.QueryTimeoutMs, most: plan.MaxDurationMS, write: milliseconds}
		out["kv-indexer-query-max-inflight"] = instead{count: x.QueryMaxInflight, most: 1<<32 - 1, write: number[uint64]}
	}
	return out
}

func milliseconds(n uint64) *node { return text(fmt.Sprintf("%dms", n)) }

// stood writes the value that a section of the bucket file has in place of an
// argument.
func (m *migration) stood(name, pointer string) bool {
	switch x := m.insteads()[name]; {
	case x.text != nil:
		from := m.from(x.text.Origins)
		m.put(pointer, text(x.text.Value), from...)
		from[0].raise(Renamed)
	case x.count != nil:
		from := m.from(x.count.Origins)
		m.most(from[0], x.count.Value, x.most)
		m.put(pointer, x.write(min(x.count.Value, x.most)), from...)
		from[0].raise(Renamed)
	default:
		return false
	}
	return true
}

// most states that a number is larger than what can be written.
func (m *migration) most(l *Line, n, most uint64) {
	if n > most {
		l.change(Timeouts, "the most that can be written is %d, which is written instead of %d", most, n)
	}
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
	m.count("kv-indexer-query-timeout-ms", at+"/query_timeout", plan.MaxDurationMS, milliseconds)
	m.count("kv-indexer-query-max-inflight", at+"/max_inflight", 1<<32-1, number[uint64])
}

// count writes a number that has the same default here.
func (m *migration) count(name, pointer string, most uint64, make func(uint64) *node) {
	if m.stood(name, pointer) {
		return
	}
	l := m.source(name)
	switch v := m.line.Value(name); {
	case !m.line.Has(name) && l.Outcome == Changed: // the value of another argument is written
	case !m.line.Has(name):
		l.note(sameDefault)
	case v != nil:
		m.most(l, v.Number, most)
		m.put(pointer, make(min(v.Number, most)), l)
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
		m.put(m.at+"/affinity/"+field, text(m.table[header].Default), l)
	case v != nil && len(v.Text) > 256:
		l.find(diag.LegacyNoEquivalent, "the name of the header is longer than 256 characters", "choose a shorter header")
	case v != nil:
		m.put(m.at+"/affinity/"+field, text(v.Text), l)
	}
	m.count(idle, "/state/affinity/idle", maxSeconds, duration)
	m.count(sweep, "/state/affinity/sweep", maxSeconds, duration)
}
