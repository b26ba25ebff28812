package simulate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

func TestDecideSaysWhy(t *testing.T) {
	f := func(world, request, want string) {
		t.Helper()
		if got := decide(t, world, request); !strings.Contains(got, want) {
			t.Errorf("request %s\ngot:\n%s\nwant a part:\n%s", request, got, want)
		}
	}
	f(`{}`, `{"model":"m","input_tokens":10}`, "outcome   bucket short, prefill P1 (power_of_two), decode D1 (power_of_two)\n")
	f(`{}`, `{"model":"m","input_tokens":10,"max_output_tokens":200}`, "short: skipped, peak 210 is above its context 100")
	f(`{}`, `{"model":"m","input_tokens":101}`, "short: skipped, input 101 is above its maximum 100\nbucket    long: picked")
	f(`{}`, `{"model":"m","input_tokens":100001}`, "outcome   no selection: no matching bucket")
	f(`{}`, `{"model":"m","input_tokens":5,"expected_peak_tokens":4}`, "invalid signal: expected peak is below the input length")
	f(`{"engines":[{"id":"P1","inflight":4}]}`, `{"model":"m","input_tokens":10}`,
		"admission rejects P1 at max_inflight_requests (in-flight 4, no fresh report")
	f(`{"engines":[{"id":"P1","inflight":4}]}`, `{"model":"m","input_tokens":10}`, "outcome   bucket long, prefill P")
	f(`{"engines":[{"id":"D1","healthy":false}]}`, `{"model":"m","input_tokens":10}`, "decode  candidates none\n          failed: no candidates (decode)")
	f(`{"engines":[{"id":"P2","inflight":9},{"id":"D2","healthy":false},{"id":"D1","healthy":false}]}`, `{"model":"m","input_tokens":10}`,
		"outcome   no selection: no candidates (decode)")
}

// Prefixes by tokens count whole blocks that a request shares with them.
func TestPrefixesByTokens(t *testing.T) {
	b := body()
	m := &b.Models[0]
	m.Tokenizer = &plan.Tokenizer{Path: "x"}
	cache := plan.Policy{Type: plan.CacheAware, CacheAware: &plan.CacheAwareTuning{
		CandidateMinWorkers: 8, CandidateMaxWorkers: 32, PressureRelThreshold: 1.5,
		Fallback: plan.FallbackPolicy{Type: plan.RoundRobin},
	}}
	m.Buckets[1].Groups.PD.Prefill.Policy = cache
	m.Breakpoints = []plan.Breakpoint{{From: 0, Runs: []plan.Run{{1, 1}}}}
	w, err := simulate.ParseWorld([]byte(`{"prefixes": [{"block_size": 2, "tokens": {"P2": [[1,2,9]], "P3": [[7], [1,2,3,4,5]]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simulate.New(b, w, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	f := func(request, engine string, blocks ...uint32) {
		t.Helper()
		r, err := simulate.ParseRequest(b, []byte(request))
		if err != nil {
			t.Fatal(err)
		}
		d, err := sim.Decide(context.Background(), r)
		if err != nil || d.Prefill == nil || d.Prefill.Engine != engine {
			t.Fatalf("%s: %+v, %v", request, d.Prefill, err)
		}
		var got []uint32
		for _, h := range d.Buckets[1].Groups[0].Cache.Holders {
			got = append(got, h.Blocks)
		}
		if !slices.Equal(got, blocks) {
			t.Errorf("%s: blocks %v, want %v", request, got, blocks)
		}
	}
	f(`{"model":"m","token_ids":[1,2,3,4,5,6]}`, "P3", 2, 1)
	f(`{"model":"m","token_ids":[1,2,9,9]}`, "P2", 1, 1)
	f(`{"model":"m","token_ids":[8,8]}`, "P2")
}

func TestReportsDecide(t *testing.T) {
	world := `{"engines":[
		{"id":"P2","loads":[{"running_requests":1,"waiting_requests":0,"used_kv_tokens":1,"kv_tokens":1,"kv_capacity_tokens":10,"max_running_requests":8,"pending_prefill_tokens":4000,"prefill_tokens_per_second":2000}]},
		{"id":"P3","loads":[{"running_requests":1,"waiting_requests":0,"used_kv_tokens":1,"kv_tokens":1,"kv_capacity_tokens":10,"max_running_requests":8,"pending_prefill_tokens":5000,"prefill_tokens_per_second":5000}]}]}`
	got := decide(t, world, `{"model":"m","input_tokens":200}`)
	for _, want := range []string{"compared by estimated_prefill_queue_ms", "prefill queue 2000.0 ms", "prefill queue 1000.0 ms", "prefill P3 (power_of_two)"} {
		if !strings.Contains(got, want) {
			t.Errorf("want a part %q in\n%s", want, got)
		}
	}
}

func TestDocumentsAreStrict(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a part %q", err, want)
		}
	}
	request := func(s string) error { _, err := simulate.ParseRequest(body(), []byte(s)); return err }
	world := func(s string) error {
		w, err := simulate.ParseWorld([]byte(s))
		if err != nil {
			return err
		}
		sim, err := simulate.New(body(), w, 1)
		if err == nil {
			sim.Close()
		}
		return err
	}
	f(request(`{"model":"m","input_tokens":1,"inputs":2}`), "/inputs: unknown member; known are model, input_tokens, max_output_tokens, expected_peak_tokens, token_ids, session_key, routing_key, ttft_target_ms, tps_target")
	if err := request(`{"inputs":2}`); strings.HasSuffix(err.Error(), ", ") {
		t.Error(err)
	}
	f(request(`{"model":"m","model":"m","input_tokens":1}`), "duplicate")
	f(request(`{"model":"m","input_tokens":0}`), "input_tokens must be at least 1")
	if _, err := simulate.ParseRequest(&plan.Body{Models: make([]plan.Model, 2)}, []byte(`{"input_tokens":1}`)); err == nil || !strings.Contains(err.Error(), "model is missing") {
		t.Error(err)
	}
	if r, err := simulate.ParseRequest(body(), []byte(`{"input_tokens":1}`)); err != nil || r.Model != body().Models[0].ID {
		t.Error(r, err)
	}
	f(request(`{"model":"m","input_tokens":2,"max_output_tokens":9223372036854775807}`), "overflow")
	f(world(`{"engines":[{"id":"nosuch"}]}`), `no engine "nosuch"`)
	f(world(`{"engines":[{"id":"P1"},{"id":"P1"}]}`), "described twice")
	f(world(`{"engines":[{"id":"P1","model":"other"}]}`), `no model "other"`)
	f(world(`{"engines":[{"id":"P1","loads":[{"kv_tokens":3}]}]}`), "come together")
	f(world(`{"engines":[{"id":"P1","inflight":1,"dispatched_since_report":2}]}`), "dispatched_since_report")
	f(world(`{"engines":[{"id":"P1","inflight":1000000000000}]}`), "inflight must be at most 1000000")
	f(request(`{"model":"m","token_ids":[1,2],"input_tokens":3}`), "differ")
	f(request(`{"model":"m","token_ids":[-1]}`), "token_ids")
	f(world(`{"prefixes":[{"blocks":{"nosuch":1}}]}`), `no engine "nosuch"`)
	f(world(`{"prefixes":[{"tokens":{"nosuch":[[1]]}}]}`), `no engine "nosuch"`)
	f(world(`{"prefixes":[{"blocks":{"P1":-1}}]}`), "not a number of blocks")
	f(world(`{"prefixes":[{"block_size":-1}]}`), "block_size")
	f(world(`{"prefixes":[{},{}]}`), "described twice")
	f(world(`{"prefixes":[{"model":"other"}]}`), `no model "other"`)
	f(world(`{"bindings":[{"session_key":"a","engine":"P1"}]}`), `no bucket ""`)
	f(world(`{"bindings":[{"bucket":"short","engine":"P1"}]}`), "session_key or routing_key")
	f(world(`{"bindings":[{"bucket":"short","session_key":"a","routing_key":"b","engine":"P1"}]}`), "session_key or routing_key")
	f(world(`{"bindings":[{"bucket":"short","session_key":"a","engine":"X"}]}`), `no engine "X"`)
	f(world(`{"engines":[{"id":"P1"}]} x`), "world, line 1, column 27")
	f(world("{\n \"engines\":[{\"id\":\"P1\",\"load\":3}]}"), "world, line 2, column 24: /engines/0/load: unknown member; known are model, id, healthy")
	f(request(`{"model":5}`), "/model: must be a text")
	f(request(`{"model":"m","messages":[]}`), "a chat body is not a request")
	_, err := simulate.ParseBody(context.Background(), body(), []byte(`{"model":"m","input_tokens":5}`))
	f(err, "no messages")
}

func decide(t *testing.T, world, request string) string {
	t.Helper()
	w, err := simulate.ParseWorld([]byte(world))
	if err != nil {
		t.Fatal(err)
	}
	r, err := simulate.ParseRequest(body(), []byte(request))
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simulate.New(body(), w, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	d, err := sim.Decide(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := simulate.Text(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// body has a short bucket of one pair and a long one of two prefill engines.
func body() *plan.Body {
	two := plan.Policy{Type: plan.PowerOfTwo, PowerOfTwo: &plan.PowerOfTwoTuning{Choices: 2}}
	capped := two
	capped.Admission.MaxInflightRequests = new(int64(4))
	pd := func(p plan.Policy, prefill, decode []string) plan.Groups {
		return plan.Groups{PD: &plan.PDGroups{
			Prefill: plan.Group{WorkerIDs: &prefill, Policy: p},
			Decode:  plan.Group{WorkerIDs: &decode, Policy: two},
		}}
	}
	engine := func(id string, r plan.Role) plan.Engine { return plan.Engine{ID: id, URL: "http://" + id, Role: r} }
	return &plan.Body{
		State: plan.State{Load: plan.LoadState{FreshnessMS: 5000}},
		Models: []plan.Model{{
			ID:      "m",
			Breaker: plan.Breaker{Threshold: 3, CoolDownMS: 30000},
			Discovery: plan.Discovery{Static: &plan.StaticDiscovery{Engines: []plan.Engine{
				engine("D1", plan.Decode), engine("D2", plan.Decode),
				engine("P1", plan.Prefill), engine("P2", plan.Prefill), engine("P3", plan.Prefill)}}},
			Buckets: []plan.Bucket{
				{ID: "short", Max: new(int64(100)), MaxContextTokens: new(int64(100)), Groups: pd(capped, []string{"P1"}, []string{"D1"})},
				{ID: "long", Max: new(int64(100000)), Groups: pd(two, []string{"P2", "P3"}, []string{"D2"})},
			},
			Breakpoints: []plan.Breakpoint{{From: 0, Runs: []plan.Run{{0, 1}}}, {From: 101, Runs: []plan.Run{{1, 1}}}, {From: 100001}},
		}},
	}
}

// TestChange changes one thing after the other; what is not mentioned stays.
func TestChange(t *testing.T) {
	b := body()
	m := &b.Models[0]
	m.Tokenizer = &plan.Tokenizer{Path: "x"}
	m.Buckets[1].Groups.PD.Prefill.Policy = plan.Policy{Type: plan.CacheAware, CacheAware: &plan.CacheAwareTuning{
		CandidateMinWorkers: 8, CandidateMaxWorkers: 32, PressureRelThreshold: 1.5,
		Fallback: plan.FallbackPolicy{Type: plan.RoundRobin},
	}}
	m.Breakpoints = []plan.Breakpoint{{From: 0, Runs: []plan.Run{{1, 1}}}}
	sim, err := simulate.New(b, simulate.World{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	f := func(change string, want ...string) {
		t.Helper()
		w, err := simulate.ParseWorld([]byte(change))
		if err == nil {
			err = sim.Change(w)
		}
		if err != nil {
			t.Fatal(err)
		}
		d, err := sim.Decide(t.Context(), simulate.Request{Model: "m", InputTokens: 128})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := simulate.Text(&text, d); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(text.String(), part) {
				t.Errorf("after %s\ngot:\n%s\nwant a part:\n%s", change, &text, part)
			}
		}
	}
	f(`{"prefixes":[{"blocks":{"P2":2}}]}`, "prefill P2 (cache_candidate)")
	f(`{"prefixes":[{"blocks":{"P2":2},"unavailable":"timeout"}]}`, "prefix lookup: unavailable (timeout)", "(no_cache_candidate)")
	f(`{"prefixes":[{"blocks":{"P3":2}}],"engines":[{"id":"P3","inflight":2,"loads":[{"running_requests":7}]}]}`,
		"prefill P3 (cache_candidate)", "in-flight 2", "running 7")
	f(`{"engines":[{"id":"P3","healthy":false}]}`, "(no_cache_candidate)")
	f(`{"engines":[{"id":"P3","inflight":3}]}`, "(no_cache_candidate)") // and stays so
	f(`{"engines":[{"id":"P3","healthy":true}]}`, "P3 (cache_candidate)", "in-flight 3", "running 7")
	f(`{"engines":[{"id":"P3","loads":[{"running_requests":8}]}]}`, "in-flight 3", "running 8")
	f(`{"engines":[{"id":"P3","inflight":0,"loads":[]}]}`, "P3 (cache_candidate)", "in-flight 0, no fresh report")
	f(`{}`, "P3 (cache_candidate)", "in-flight 0, no fresh report")

	w := simulate.World{Engines: []simulate.Engine{{ID: "P3", DispatchedSince: new(1)}}}
	if at, err := simulate.Fits(b, simulate.World{}, nil, &w); at != 1 || err == nil {
		t.Errorf("fits: %d, %v", at, err)
	}
	if at, err := simulate.Fits(b, w, &w); at != -1 || err == nil {
		t.Errorf("fits: %d, %v", at, err)
	}
}
