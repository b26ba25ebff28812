package plan

import (
	"fmt"
	"slices"
	"strconv"
	"unicode"
)

// Bounds of the values of a plan. Counts fit a float64 exactly, so that every
// JSON reader sees the same number.
const (
	MaxCount      = 1<<53 - 1
	MaxRank       = 1<<32 - 1
	MaxDurationMS = 365 * 24 * 3600 * 1000
	MinBodyBytes  = 1 << 10
	MaxBodyBytes  = 1 << 30
	MaxDrainMS    = 1800 * 1000
	MaxBlocks     = 2_000_000_000
	MaxBlockSize  = 1 << 20
	MaxRanks      = 4096
	MaxPort       = 65535
)

// Validate refuses a body that the compiler would not write, with an *Error that
// names the first offending value below the document. It does not need the
// digest to be right, and a valid body needs no further check by the runtime.
func Validate(b *Body) error {
	v := &validator{}
	v.server(&b.Server)
	v.state(b)
	if len(b.Models) == 0 {
		v.bad("/body/models", "a plan needs a model", "")
	}
	urls := make(map[string]string)
	ids := make(map[string]bool, len(b.Models))
	for i := range b.Models {
		if v.err != nil {
			break
		}
		m := &b.Models[i]
		at := "/body/models/" + strconv.Itoa(i)
		v.name(at+"/id", m.ID)
		v.unique(at+"/id", ids, m.ID)
		v.model(at, i, m, urls)
	}
	if v.err == nil {
		return nil
	}
	return v.err
}

// validator keeps the first mistake. Its methods do nothing after that.
type validator struct {
	err *Error
}

// fail keeps a mistake unless there is one already.
func (v *validator) fail(code, pointer, message, hint string) {
	if v.err == nil {
		v.err = &Error{Code: code, Pointer: pointer, Message: message, Hint: hint}
	}
}

// bad is fail for a value that the format forbids.
func (v *validator) bad(pointer, message, hint string) { v.fail(CodeValue, pointer, message, hint) }

// span checks a number against inclusive bounds.
func (v *validator) span(pointer string, n, low, high int64) {
	if n < low || n > high {
		v.bad(pointer, fmt.Sprintf("%d is outside %d..%d", n, low, high), "")
	}
}

// optional is span for a number that may be absent. It takes the pointer in two
// parts, because most numbers are fine and need no text.
func (v *validator) optional(at, member string, n *int64, low, high int64) {
	if n != nil && (*n < low || *n > high) {
		v.span(at+member, *n, low, high)
	}
}

// name checks an identifier: it ends up in logs, metrics and headers.
func (v *validator) name(pointer, s string) {
	if s == "" {
		v.bad(pointer, "an id must not be empty", "")
	}
	if !Printable(s) {
		v.bad(pointer, fmt.Sprintf("%q holds characters that do not print", s), "")
	}
}

// unique adds s to a set and refuses a second one.
func (v *validator) unique(pointer string, seen map[string]bool, s string) {
	if seen[s] {
		v.bad(pointer, fmt.Sprintf("%q is used twice", s), "")
	}
	seen[s] = true
}

// word checks a value against the words that a field takes.
func (v *validator) word(pointer, s string, words ...string) {
	if !slices.Contains(words, s) {
		v.bad(pointer, fmt.Sprintf("unknown value %q", s), fmt.Sprintf("one of %q", words))
	}
}

// Printable reports whether s is valid UTF-8 of printing characters and spaces.
// Names are held to it: they appear in logs, metrics and response headers, and
// JSON tools agree about how to write them.
func Printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' {
			return printableUnicode(s)
		}
	}
	return true
}

func printableUnicode(s string) bool {
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func (v *validator) server(s *Server) {
	const at = "/body/server"
	if err := CheckListen(s.Listen); err != nil {
		v.bad(at+"/listen", fmt.Sprintf("%q %v", s.Listen, err), "")
	}
	if s.Admin != "" {
		if err := CheckListen(s.Admin); err != nil {
			v.bad(at+"/admin", fmt.Sprintf("%q %v", s.Admin, err), "")
		} else if !IsLoopback(s.Admin) {
			v.bad(at+"/admin", fmt.Sprintf("%q is reachable from other hosts", s.Admin), "a loopback address, or empty")
		}
	}
	v.span(at+"/max_body_bytes", s.MaxBodyBytes, MinBodyBytes, MaxBodyBytes)
	v.span(at+"/request_timeout_ms", s.RequestTimeoutMS, 1, MaxDurationMS)
	v.span(at+"/connect_timeout_ms", s.ConnectTimeoutMS, 1, MaxDurationMS)
	v.span(at+"/header_timeout_ms", s.HeaderTimeoutMS, 1, MaxDurationMS)
	v.span(at+"/stream_idle_timeout_ms", s.StreamIdleTimeoutMS, 1, MaxDurationMS)
	v.span(at+"/stale_timeout_ms", s.StaleTimeoutMS, 1, MaxDurationMS)
	v.span(at+"/drain_delay_ms", s.DrainDelayMS, 0, MaxDrainMS)
	v.span(at+"/drain_timeout_ms", s.DrainTimeoutMS, 1, MaxDurationMS)
	v.word(at+"/log/level", s.Log.Level, "debug", "info", "warn", "error")
	v.word(at+"/log/format", s.Log.Format, "text", "json")
}

func (v *validator) model(at string, index int, m *Model, urls map[string]string) {
	v.span(at+"/breaker/threshold", m.Breaker.Threshold, 1, MaxCount)
	v.span(at+"/breaker/cool_down_ms", m.Breaker.CoolDownMS, 1, MaxDurationMS)
	if m.Discovery.Static == nil {
		v.bad(at+"/discovery", "no discovery is set", "static")
		return
	}
	v.engineKind(at+"/engine", m)
	v.settings(at, m)
	roles := v.engines(at+"/discovery/static/engines", m, urls)
	v.buckets(at+"/buckets", m, roles)
	if v.err != nil {
		return
	}
	v.derived(at, index, m)
}

// engines checks the engines of a model and returns their roles by id.
func (v *validator) engines(at string, m *Model, urls map[string]string) map[string]Role {
	engines := m.Engines()
	roles := make(map[string]Role, len(engines))
	for i := range engines {
		e := &engines[i]
		p := at + "/" + strconv.Itoa(i)
		v.name(p+"/id", e.ID)
		if i > 0 && engines[i-1].ID >= e.ID {
			v.bad(p+"/id", fmt.Sprintf("%q does not follow %q", e.ID, engines[i-1].ID), "engines are sorted by id, each id once")
		}
		switch normal, err := NormalizeURL(e.URL); {
		case err != nil:
			v.bad(p+"/url", fmt.Sprintf("%q %v", e.URL, err), "")
		case normal != e.URL:
			v.bad(p+"/url", fmt.Sprintf("%q is not in its normal form", e.URL), normal)
		case urls[e.URL] != "":
			v.bad(p+"/url", fmt.Sprintf("%q is already the URL of %s", e.URL, urls[e.URL]), "")
		}
		urls[e.URL] = p
		v.word(p+"/role", string(e.Role), string(Plain), string(Prefill), string(Decode))
		v.optional(p, "/bootstrap_port", e.BootstrapPort, 1, 65535)
		if e.BootstrapPort != nil && e.Role != Prefill {
			v.bad(p+"/bootstrap_port", fmt.Sprintf("a %s engine has no bootstrap port", e.Role), "")
		}
		v.labels(p+"/labels", e.Labels)
		if e.KVEvents != nil {
			v.kvEvents(p+"/kv_events", m, e.KVEvents)
		}
		roles[e.ID] = e.Role
	}
	v.oneKind(at, engines)
	return roles
}

// oneKind refuses plain engines beside those of a PD deployment.
func (v *validator) oneKind(at string, engines []Engine) {
	for i := range engines {
		if (engines[i].Role == Plain) != (engines[0].Role == Plain) {
			v.bad(at+"/"+strconv.Itoa(i)+"/role", "plain and PD engines in one model", "")
			return
		}
	}
}

func (v *validator) labels(at string, labels map[string]string) {
	for name, value := range labels {
		if name == "" || !Printable(name) || !Printable(value) {
			v.bad(at, fmt.Sprintf("label %q: %q is empty or does not print", name, value), "")
		}
	}
}

func (v *validator) buckets(at string, m *Model, roles map[string]Role) {
	if len(m.Buckets) == 0 {
		v.bad(at, "a model needs a bucket", "")
	}
	ids := make(map[string]bool, len(m.Buckets))
	for i := range m.Buckets {
		if v.err != nil {
			return
		}
		b := &m.Buckets[i]
		p := at + "/" + strconv.Itoa(i)
		v.name(p+"/id", b.ID)
		v.unique(p+"/id", ids, b.ID)
		if i > 0 && CompareBuckets(m.Buckets[i-1], *b) >= 0 {
			v.bad(p, fmt.Sprintf("bucket %q is out of order", b.ID), "buckets are sorted by capacity, rank, id")
		}
		v.limits(p, b)
		v.groups(p+"/groups", &b.Groups, roles)
	}
}

func (v *validator) limits(at string, b *Bucket) {
	if b.Rank < 0 || b.Rank > MaxRank {
		v.span(at+"/rank", b.Rank, 0, MaxRank)
	}
	v.optional(at, "/min", b.Min, 0, MaxCount)
	v.optional(at, "/max", b.Max, 0, MaxCount)
	v.optional(at, "/max_context_tokens", b.MaxContextTokens, 1, MaxCount)
	v.optional(at, "/ttft_ms", b.TTFTMS, 1, MaxCount)
	if b.TokensPerSecond != nil {
		v.number(at+"/tokens_per_second", *b.TokensPerSecond, above(0), MaxCount)
	}
	if b.lower() > b.Capacity() {
		v.bad(at+"/min", fmt.Sprintf("%d is above the capacity %d of the bucket", b.lower(), b.Capacity()), "")
	}
}

func (v *validator) groups(at string, g *Groups, roles map[string]Role) {
	if (g.Plain == nil) == (g.PD == nil) {
		v.bad(at, "a bucket has exactly one of plain and pd", "")
	}
	if g.PD != nil {
		for i, name := range g.PD.MatchLabels {
			if name == "" || !Printable(name) || i > 0 && g.PD.MatchLabels[i-1] >= name {
				v.bad(at+"/pd/match_labels/"+strconv.Itoa(i), fmt.Sprintf("label name %q is empty, repeated or out of order", name), "")
			}
		}
	}
	for _, s := range g.All() {
		p := at + "/" + s.Member()
		v.members(p, s, roles)
		v.labels(p+"/labels", s.Group.Labels)
		v.policy(p, &s.Group.Policy)
		if s.Stage == Decode && s.Group.Policy.Type == CacheAware {
			v.bad(p+"/policy/type", "cache_aware cannot pick for the decode stage, which computes no prompt", "")
		}
	}
}

// members checks that worker_ids names engines of the group's role, sorted.
func (v *validator) members(at string, s StagedGroup, roles map[string]Role) {
	if s.Group.WorkerIDs == nil {
		return
	}
	ids := *s.Group.WorkerIDs
	for i, id := range ids {
		role, known := roles[id]
		switch {
		case !known:
			v.fail(CodeReference, at+"/worker_ids/"+strconv.Itoa(i), fmt.Sprintf("no engine has the id %q", id), "")
		case role != s.Stage:
			v.fail(CodeReference, at+"/worker_ids/"+strconv.Itoa(i), fmt.Sprintf("engine %q is a %s engine", id, role), "a group has engines of its stage")
		case i > 0 && ids[i-1] >= id:
			v.bad(at+"/worker_ids/"+strconv.Itoa(i), fmt.Sprintf("%q does not follow %q", id, ids[i-1]), "ids are sorted, each once")
		}
	}
}

// derived compares what follows from the buckets with what the plan says.
func (v *validator) derived(at string, index int, m *Model) {
	table, ok := Breakpoints(m.Buckets, MaxRuns)
	if !ok {
		v.bad(at+"/breakpoints", fmt.Sprintf("the table has more than %d runs", MaxRuns), "")
		return
	}
	if i := firstDifference(table, m.Breakpoints); i >= 0 {
		v.bad(at+"/breakpoints/"+strconv.Itoa(i), "the breakpoint does not follow from the buckets", "")
	}
	want := Require(index, m)
	for _, need := range [...]struct {
		member    string
		got, want []string
	}{
		{"tokens", m.Requires.Tokens, want.Tokens},
		{"length_estimate", m.Requires.LengthEstimate, want.LengthEstimate},
		{"load_reports", m.Requires.LoadReports, want.LoadReports},
		{"dispatch_timestamps", m.Requires.DispatchTimestamps, want.DispatchTimestamps},
		{"prefix_source", m.Requires.PrefixSource, want.PrefixSource},
		{"session_header", m.Requires.SessionHeader, want.SessionHeader},
		{"routing_key_header", m.Requires.RoutingKeyHeader, want.RoutingKeyHeader},
	} {
		if !slices.Equal(need.got, need.want) {
			v.bad(at+"/requires/"+need.member, "the requirement does not follow from the buckets", "")
		}
	}
}

// firstDifference returns the first index at which two tables differ, or -1.
func firstDifference(a, b []Breakpoint) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].From != b[i].From || !slices.Equal(a[i].Runs, b[i].Runs) {
			return i
		}
	}
	return -1
}
