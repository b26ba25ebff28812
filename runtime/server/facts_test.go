package server_test

import (
	"context"
	"strings"
	"testing"

	"shunt/runtime/enginetest"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/prepare"
	"shunt/runtime/routing"
	"shunt/runtime/server"
	"shunt/runtime/tokens/tokenstest"
)

// modify swaps in a changed copy of the served model.
func (r *rig) modify(change func(*server.Model)) {
	m := *r.gen.Models["m"]
	resolver := *m.Resolver
	m.Resolver = &resolver
	change(&m)
	r.replan(func(g *server.Generation) { g.Models = map[string]*server.Model{"m": &m} })
}

// spy is a policy that keeps the last request that it saw.
type spy struct {
	last policy.Request
	err  error
}

func (s *spy) Pick(_ context.Context, candidates []*fleet.Engine, req *policy.Request) (policy.Pick, error) {
	s.last = *req
	return policy.Pick{Engine: candidates[0], Reason: policy.ReasonRandom}, s.err
}

func (r *rig) spy() *spy {
	s := new(spy)
	r.modify(func(m *server.Model) {
		b := *m.Resolver.Buckets[0]
		g := *b.Groups.(routing.PlainGroups).Plain
		g.Policy = s
		b.Groups = routing.PlainGroups{Plain: &g}
		m.Resolver.Buckets = []*routing.Bucket{&b}
	})
	return s
}

func TestFactsOfARequest(t *testing.T) {
	r := newRig(t, enginetest.Options{})
	defer r.close()
	s := r.spy()
	limit := prepare.NewTokenLimit(0, 0)
	r.modify(func(m *server.Model) {
		m.SessionHeader, m.RoutingKeyHeader, m.Prefix = "x-session-id", "x-key", true
		m.Tokenizer = &prepare.Tokenizer{Model: tokenstest.Contents(t), Limit: limit, Forward: true}
	})
	a := r.chat(`{"model":"m","max_tokens":3,"cache_salt":"s","lora_path":"l","messages":[{"role":"user","content":"hello"}]}`,
		"X-Session-Id", "alice", "X-Key", "k")
	if a.status != 200 || !strings.Contains(a.header.Get("X-Shunt-Decision"), "; input=5; input-source=exact") {
		t.Errorf("%s, decision %q", a, a.header.Get("X-Shunt-Decision"))
	}
	q := s.last
	if q.Input != 5 || q.Peak != 8 || string(rune(q.TokenIDs[0])) != "h" || q.CacheSalt != "s" || q.LoRA != "l" ||
		q.SessionKey != "alice" || q.RoutingKey != "k" || q.Memo == nil {
		t.Errorf("the policy saw %+v", q)
	}
	first := q.Memo
	r.chat(`{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function"}]}`)
	if q = s.last; q.Memo == first || q.Input != 5 || q.TokenIDs == nil {
		t.Errorf("the second request had %+v", q)
	}
	// What cannot be rendered is an estimate, and goes to the engine as it is.
	r.chat(`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`)
	if q = s.last; q.TokenIDs != nil || q.Input < 10 {
		t.Errorf("the third request had %+v", q)
	}
	r.settle()
	all := r.engines[enginetest.Plain].Requests()
	for i, want := range []bool{true, false, false} {
		if got := strings.Contains(string(all[i].Body), `"input_ids":[104,101,108,108,111]`); got != want {
			t.Errorf("request %d reached the engine as %s", i, all[i].Body)
		}
	}
	text := r.get("/metrics").body
	for _, want := range []string{
		`shunt_input_lengths_total{model="m",source="exact"} 1`, `shunt_input_lengths_total{model="m",source="rendered"} 1`,
		`shunt_input_lengths_total{model="m",source="estimate"} 1`, `shunt_input_ids_total{model="m",outcome="forwarded"} 1`,
		`shunt_input_ids_total{model="m",outcome="tools"} 1`, `shunt_tokenize_seconds_count{model="m"} 3`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

// TestBothEnginesGetTheIDs forwards them to a pair.
func TestBothEnginesGetTheIDs(t *testing.T) {
	r := newRig(t, enginetest.Options{Role: enginetest.Prefill}, enginetest.Options{Role: enginetest.Decode})
	defer r.close()
	r.modify(func(m *server.Model) {
		m.Tokenizer = &prepare.Tokenizer{Model: tokenstest.Contents(t), Limit: prepare.NewTokenLimit(0, 0), Forward: true}
	})
	if a := r.chat(`{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"hi"}]}`); a.status != 200 {
		t.Fatal(a)
	}
	r.settle()
	for role, e := range r.engines {
		if b := string(e.Requests()[0].Body); !strings.HasSuffix(b, `,"input_ids":[104,105]}`) || !strings.Contains(b, `"messages"`) {
			t.Errorf("%s got %s", role, b)
		}
	}
}

func TestSamplingContract(t *testing.T) {
	r := newRig(t, enginetest.Options{})
	defer r.close()
	temperature, _ := prepare.ParamOf("temperature")
	topP, _ := prepare.ParamOf("top_p")
	r.modify(func(m *server.Model) {
		m.Sampling = &prepare.Sampling{Rules: []prepare.Rule{{Param: temperature, Value: 0.5}, {Param: topP, Band: true, Min: 0.1, Max: 0.9}}}
	})
	const messages = `,"messages":[{"role":"user","content":"hi"}]}`
	if a := r.chat(`{"model":"m"` + messages); a.status != 200 {
		t.Fatal(a)
	}
	if b := string(r.engines[enginetest.Plain].Requests()[0].Body); !strings.Contains(b, `,"temperature":0.5`) {
		t.Errorf("the engine got %s", b)
	}
	a := r.chat(`{"model":"m","temperature":1,"top_p":1` + messages)
	if a.status != 400 || a.code() != "sampling_contract_violation" || !strings.Contains(a.body, "sampling parameter temperature must be 0.5, got 1") {
		t.Errorf("%s %s", a, a.body)
	}
	if a := r.chat(`{"model":"other","temperature":1` + messages); a.status != 404 {
		t.Errorf("an unknown model is told first: %s", a)
	}
	text := r.get("/metrics").body
	for _, param := range []string{"temperature", "top_p"} {
		if !strings.Contains(text, `shunt_sampling_contract_rejections_total{param="`+param+`"} 1`) {
			t.Errorf("%s was not counted", param)
		}
	}
}

func TestLatencyTargets(t *testing.T) {
	r := newRig(t, enginetest.Options{})
	defer r.close()
	const chat = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	if a := r.chat(chat, prepare.TTFTHeader, "never", prepare.TPSHeader, "-1"); a.status != 200 {
		t.Errorf("targets are ignored where they are off: %s", a)
	}
	r.modify(func(m *server.Model) { m.Resolver.SLO = routing.SLO{TTFT: routing.SLOFirst, TPS: routing.BestEffort} })
	f := func(header, value, want string) {
		t.Helper()
		a := r.chat(chat, header, value)
		if want == "" && a.status != 200 || want != "" && (a.status != 400 || !strings.Contains(a.body, `"bad request: `+want+`"`)) {
			t.Errorf("%s %s: %s %s", header, value, a, a.body)
		}
	}
	f(prepare.TTFTHeader, "100", "")
	f(prepare.TTFTHeader, "0", "TTFT SLO header must be a positive integer")
	f(prepare.TPSHeader, "12.5", "")
	f(prepare.TPSHeader, "NaN", "TPS SLO header must be a finite positive number")
}

func TestMissingState(t *testing.T) {
	r := newRig(t, enginetest.Options{})
	defer r.close()
	r.spy().err = &policy.Error{Kind: policy.StateUnavailable, Stage: fleet.Plain}
	a := r.chat(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	if a.status != 503 || a.code() != "state_unavailable" || a.header.Get("Retry-After") == "" {
		t.Errorf("%s, %v", a, a.header)
	}
}
