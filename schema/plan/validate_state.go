package plan

import (
	"fmt"
	"slices"
	"strings"
)

// state checks the state services, and that the plan has exactly those that some
// policy needs.
func (v *validator) state(b *Body) {
	const at = "/body/state"
	s := &b.State
	v.word(at+"/load/transport", string(s.Load.Transport), string(LoadAuto), string(LoadPoll))
	v.span(at+"/load/poll_interval_ms", s.Load.PollIntervalMS, 1, MaxDurationMS)
	v.span(at+"/load/freshness_ms", s.Load.FreshnessMS, 1, MaxDurationMS)
	prefixes, bindings := false, false
	for i := range b.Models {
		r := &b.Models[i].Requires
		prefixes = prefixes || len(r.PrefixSource) > 0
		bindings = bindings || r.Affinity()
	}
	v.needed(at+"/prefix", prefixes, s.Prefix != nil)
	v.needed(at+"/affinity", bindings, s.Affinity != nil)
	if s.Prefix != nil {
		v.prefixes(at+"/prefix", s.Prefix)
	}
	if s.Affinity != nil {
		v.bindings(at+"/affinity", s.Affinity)
	}
}

// needed checks that a section is there exactly when something needs it.
func (v *validator) needed(at string, needed, present bool) {
	if needed != present {
		v.bad(at, "the section is present exactly when something needs it", "")
	}
}

func (v *validator) prefixes(at string, p *PrefixState) {
	if (p.Local == nil) == (p.Remote == nil) {
		v.bad(at, "exactly one of local and remote is present", "")
	}
	if p.Local != nil {
		v.span(at+"/local/max_blocks", p.Local.MaxBlocks, 1, MaxBlocks)
	}
	if r := p.Remote; r != nil {
		normal, err := NormalizeURL(r.Endpoint)
		switch {
		case err != nil:
			v.bad(at+"/remote/endpoint", fmt.Sprintf("%q %v", r.Endpoint, err), "")
		case normal != r.Endpoint:
			v.bad(at+"/remote/endpoint", fmt.Sprintf("%q is not in its normal form", r.Endpoint), normal)
		}
		v.span(at+"/remote/query_timeout_ms", r.QueryTimeoutMS, 1, MaxDurationMS)
		v.span(at+"/remote/max_inflight", r.MaxInflight, 1, MaxRank)
	}
}

func (v *validator) bindings(at string, a *AffinityState) {
	if (a.Memory == nil) == (a.Redis == nil) {
		v.bad(at, "exactly one of memory and redis is present", "")
	}
	v.span(at+"/idle_ms", a.IdleMS, 1, MaxDurationMS)
	if m := a.Memory; m != nil {
		v.span(at+"/memory/max_entries", m.MaxEntries, 1, MaxCount)
		v.span(at+"/memory/sweep_ms", m.SweepMS, 1, MaxDurationMS)
	}
	if r := a.Redis; r != nil {
		if !IsReference(r.URL) {
			v.bad(at+"/redis/url", "not a reference to a secret", "env:NAME or file:PATH")
		}
		v.word(at+"/redis/on_failure", string(r.OnFailure), string(FailFallback), string(FailReject))
		v.span(at+"/redis/timeout_ms", r.TimeoutMS, 1, MaxDurationMS)
	}
}

// IsReference reports whether s is a reference to a secret: env:NAME or
// file:PATH.
func IsReference(s string) bool {
	kind, name, ok := strings.Cut(s, ":")
	return ok && (kind == "env" || kind == "file") && name != "" && Printable(name)
}

// settings checks what a model has besides engines and buckets.
func (v *validator) settings(at string, m *Model) {
	if t := m.Tokenizer; t != nil {
		v.tokenizer(at+"/tokenizer", t)
		v.needed(at+"/tokenizer", len(m.Requires.Tokens) > 0, true)
	}
	if m.Sampling != nil {
		v.sampling(at+"/sampling", m.Sampling)
	}
	v.headers(at, m)
	if m.SLO == nil {
		return
	}
	for _, mode := range [...]struct {
		name string
		mode SLOMode
	}{{"/slo/ttft", m.SLO.TTFT}, {"/slo/tps", m.SLO.TPS}} {
		v.word(at+mode.name, string(mode.mode), string(SLODisabled), string(SLOFirst), string(BestEffort))
	}
	if m.SLO.TTFT == SLODisabled && m.SLO.TPS == SLODisabled {
		v.bad(at+"/slo", "a section with both modes disabled is left out", "")
	}
}

func (v *validator) tokenizer(at string, t *Tokenizer) {
	switch e := t.Engine; {
	case (e == nil) == (t.Path == ""):
		v.bad(at, "exactly one of path and engine is present", "")
	case e == nil && !Printable(t.Path):
		v.bad(at+"/path", fmt.Sprintf("%q does not print", t.Path), "")
	case e != nil:
		v.span(at+"/engine/timeout_ms", e.TimeoutMS, 1, MaxDurationMS)
		v.span(at+"/engine/max_inflight", e.MaxInflight, 1, MaxRank)
		v.span(at+"/engine/max_body_bytes", e.MaxBodyBytes, MinBodyBytes, MaxBodyBytes)
	}
}

// headers checks that the model names exactly the headers that policies read.
func (v *validator) headers(at string, m *Model) {
	var a AffinityHeaders
	if m.Affinity != nil {
		a = *m.Affinity
	}
	v.needed(at+"/affinity", m.Requires.Affinity(), m.Affinity != nil)
	v.needed(at+"/affinity/session_id_header", len(m.Requires.SessionHeader) > 0, a.SessionID != "")
	v.needed(at+"/affinity/routing_key_header", len(m.Requires.RoutingKeyHeader) > 0, a.RoutingKey != "")
	for _, name := range [...]string{a.SessionID, a.RoutingKey} {
		if !isHeader(name) {
			v.bad(at+"/affinity", fmt.Sprintf("%q is no header name in lower case", name), "")
		}
	}
}

// isHeader reports whether s has only characters of header names, without
// capitals.
func isHeader(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return true
}

func (v *validator) sampling(at string, s *Sampling) {
	v.word(at+"/conflict", string(s.Conflict), string(ConflictReject), string(ConflictAllow))
	if len(s.Params) == 0 {
		v.bad(at+"/params", "there is no parameter", "")
	}
	last := -1
	for i := range s.Params {
		p := &s.Params[i]
		p0 := fmt.Sprintf("%s/params/%d", at, i)
		order := slices.Index(SamplingNames[:], p.Name)
		switch {
		case order < 0:
			v.bad(p0+"/name", fmt.Sprintf("unknown parameter %q", p.Name), "")
			return
		case order <= last:
			v.bad(p0+"/name", fmt.Sprintf("%q is repeated or out of order", p.Name), "")
		}
		last = order
		if err := p.Check(s.Conflict); err != nil {
			v.bad(p0, err.Error(), "")
		}
	}
}
