package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"shunt/runtime/policy"
	"shunt/runtime/state/prefix"
)

// source is a prefix source with one answer.
type source struct {
	out   prefix.Outcome
	err   error
	asked []prefix.Prompt
}

func (s *source) Lookup(_ context.Context, p prefix.Prompt) (prefix.Outcome, error) {
	s.asked = append(s.asked, p)
	return s.out, s.err
}

func TestIndexedAsksForTheWholePrompt(t *testing.T) {
	s := &source{out: prefix.Outcome{Status: prefix.Matched, QueryBlocks: 3, Matches: []prefix.Match{
		{Address: "http://e0001", Blocks: 2}, {Address: "http://e0001", Blocks: 1}, {Address: "http://e0000/", Blocks: 3}, {Address: "http://gone", Blocks: 3},
	}}}
	x := &policy.Indexed{Source: s}
	req := request(3)
	req.TokenIDs, req.CacheSalt, req.LoRA = []uint32{4, 5, 6}, "salt", "adapter"
	depths := make([]uint32, 2)
	m, err := x.Match(t.Context(), req, plainEngines(t, 2), depths)
	if err != nil || m != (policy.PrefixMatch{Outcome: policy.PrefixHit, Blocks: 3}) || depths[0] != 0 || depths[1] != 2 {
		t.Errorf("got %+v, %v, %v", m, depths, err)
	}
	if len(s.asked) != 1 || len(s.asked[0].Tokens) != 3 || s.asked[0].Salt != "salt" || s.asked[0].LoRA != "adapter" {
		t.Errorf("asked %+v", s.asked)
	}
	// Nothing of one answer is left in the next.
	s.out.Matches = nil
	clear(depths)
	if _, err := x.Match(t.Context(), req, plainEngines(t, 2), depths); err != nil || depths[1] != 0 {
		t.Errorf("got %v, %v", depths, err)
	}
}

func TestOutcomesOfLookups(t *testing.T) {
	f := func(status prefix.Status, reason string, want policy.PrefixOutcome) {
		t.Helper()
		x := &policy.Indexed{Source: &source{out: prefix.Outcome{Status: status, Reason: reason}}}
		m, err := x.Match(t.Context(), request(3), nil, nil)
		if err != nil || m.Outcome != want || m.Why != reason {
			t.Errorf("%s %s: got %+v, %v", status, reason, m, err)
		}
	}
	f(prefix.Matched, "", policy.PrefixHit)
	f(prefix.Empty, "", policy.PrefixMiss)
	f(prefix.NoQuery, prefix.NoBlocks, policy.PrefixMiss)
	f(prefix.NoQuery, prefix.NoTokens, policy.PrefixUnavailable)
	f(prefix.NoQuery, prefix.NoBlockSize, policy.PrefixUnavailable)
	f(prefix.NoQuery, prefix.Adapter, policy.PrefixUnavailable)
	f(prefix.Unavailable, prefix.Timeout, policy.PrefixUnavailable)
}

// TestRejectedQueriesNameNoAddress: the text of a failure reaches people, its
// cause only logs.
func TestRejectedQueriesNameNoAddress(t *testing.T) {
	cause := errors.New("dial 10.0.0.1:50051")
	f := func(err error, want string) {
		t.Helper()
		p := cacheAware(t, policy.CacheOptions{Prefixes: &policy.Indexed{Source: &source{err: err}}, Tuning: tuning()})
		_, got := p.Pick(t.Context(), plainEngines(t, 1), request(8))
		e, ok := errors.AsType[*policy.Error](got)
		if !ok || e.Kind != policy.InvalidSignal || e.Cause != err {
			t.Fatalf("got %v", got)
		}
		if text := e.Error(); !strings.Contains(text, want) || strings.Contains(text, "10.0.0.1") {
			t.Errorf("got %q, want a part %q", text, want)
		}
	}
	f(&prefix.InvalidError{Code: "invalid_argument", Err: cause}, "rejects the query: invalid_argument")
	f(cause, "the prefix lookup failed")
}

// BenchmarkCacheAwareIndexed is a pick whose prompt was looked up before: the
// matches of all 64 engines come from the memo.
func BenchmarkCacheAwareIndexed(b *testing.B) {
	all, _ := loadedGroup(b)
	s := &source{out: prefix.Outcome{Status: prefix.Matched, QueryBlocks: 512}}
	for i, e := range all {
		s.out.Matches = append(s.out.Matches, prefix.Match{Address: e.URL(), Blocks: 1 + i*37%512})
	}
	p := cacheAware(b, policy.CacheOptions{Prefixes: &policy.Indexed{Source: s}, Tuning: tuning()})
	ctx, req := b.Context(), request(32768)
	req.Memo = new(prefix.Memo)
	b.ReportAllocs()
	for b.Loop() {
		if got, err := p.Pick(ctx, all, req); err != nil || got.Reason != policy.ReasonCache {
			b.Fatal(got, err)
		}
	}
}
