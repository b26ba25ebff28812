package state_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"shunt/runtime/enginetest"
	"shunt/schema/plan"
)

// asking makes the engines of a plan tokenize.
func asking(b *plan.Body, timeout time.Duration) {
	b.Models[0].Tokenizer = &plan.Tokenizer{
		Engine: &plan.EngineTokenizer{TimeoutMS: timeout.Milliseconds(), MaxInflight: 8, MaxBodyBytes: 16 << 10},
	}
}

// TestEnginesTokenize follows a conversation whose ids come from the engines.
func TestEnginesTokenize(t *testing.T) {
	all := engines(t, 3, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	asking(b, patience)
	r := serve(t, b)
	r.subscribed(all)
	first := long("a", 2000)
	owner := r.warmed(first)
	for turn := range 3 {
		if a := r.wants("cache_candidate", first, "answer", fmt.Sprintf("turn %d", turn)); a.engine != owner {
			t.Errorf("turn %d went to %s, want %s", turn, a.engine, owner)
		}
	}
	if v := r.metric(`shunt_input_lengths_total{model="m",source="exact"}`); v != 4 {
		t.Errorf("%v exact lengths", v)
	}
	if v := r.metric("shunt_tokenize_failures_total"); v != 0 {
		t.Errorf("%v failures", v)
	}
	for _, q := range all[0].Requests() {
		if q.Path != "/v1/chat/completions" {
			t.Errorf("the engine was sent %s", q.Path)
		}
	}
}

// TestEnginesDoNotTokenize: without an answer the length is estimated, the request
// is served, no prefix is claimed, and header and metrics say why.
func TestEnginesDoNotTokenize(t *testing.T) {
	f := func(reason string, fault *enginetest.Fault, timeout time.Duration, prompt string) {
		t.Helper()
		all := engines(t, 1, nil)
		b := body(t, all, cacheAware())
		b.State.Prefix = local()
		asking(b, timeout)
		r := serve(t, b)
		if fault != nil {
			fault.Path = "/tokenize"
			if err := all[0].Inject(*fault); err != nil {
				t.Fatal(err)
			}
		}
		a := r.chat("", prompt)
		if a.status != http.StatusOK || a.in != "estimate" || a.why != reason || a.reason != "no_cache_candidate" {
			t.Errorf("%s: got %+v", reason, a)
		}
		if v := r.metric(fmt.Sprintf("shunt_tokenize_failures_total{model=\"m\",reason=%q}", reason)); v != 1 {
			t.Errorf("%s: %v failures", reason, v)
		}
		if v := r.metric(`shunt_prefix_lookups_total{model="m",outcome="no_tokens"}`); v != 1 {
			t.Errorf("%s: %v lookups without tokens", reason, v)
		}
	}
	f("timeout", &enginetest.Fault{Kind: enginetest.HangBeforeHead}, 30*time.Millisecond, "hello")
	f("unreachable", &enginetest.Fault{Kind: enginetest.CutBeforeHead}, patience, "hello")
	f("unreachable", &enginetest.Fault{Kind: enginetest.Status, Status: 503}, patience, "hello")
	f("refused", &enginetest.Fault{Kind: enginetest.Status, Status: 404}, patience, "hello")
	f("malformed", &enginetest.Fault{Kind: enginetest.Garbage}, patience, "hello")
	f("too_large", nil, patience, long("a", 17<<10))
}

// TestAnotherEngineTokenizes: one that does not answer costs no ids.
func TestAnotherEngineTokenizes(t *testing.T) {
	all := engines(t, 2, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	asking(b, patience)
	r := serve(t, b)
	if err := all[0].Inject(enginetest.Fault{Kind: enginetest.CutBeforeHead, Path: "/tokenize"}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if a := r.chat("", fmt.Sprint("hello ", i)); a.in != "exact" || a.why != "" {
			t.Errorf("got %+v", a)
		}
	}
}
