package state_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// ask sends a chat with further members.
func (r *router) ask(members map[string]any, content string) answer {
	r.t.Helper()
	body := map[string]any{"model": "m", "max_tokens": 2, "messages": []any{map[string]any{"role": "user", "content": content}}}
	for name, v := range members {
		body[name] = v
	}
	data, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := r.client.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(string(data)))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	d := resp.Header.Get("X-Shunt-Decision")
	return answer{status: resp.StatusCode, engine: decisionPart(d, "plain"), reason: decisionPart(d, "plain-reason")}
}

// TestAdaptersHaveTheirOwnBlocks: on SGLang the cache of an adapter is found by the
// requests that name it, and by no other.
func TestAdaptersHaveTheirOwnBlocks(t *testing.T) {
	all := engines(t, 2, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	r := serve(t, b)
	r.subscribed(all)
	first := long("a", 600)
	adapter := map[string]any{"lora_path": "adapter-a"}
	before := r.metric("shunt_prefix_event_blocks_total")
	owner := r.ask(adapter, first)
	r.until("shunt_prefix_event_blocks_total", above(before))
	if a := r.ask(adapter, first); a.reason != "cache_candidate" || a.engine != owner.engine {
		t.Errorf("the adapter again: %+v, first %+v", a, owner)
	}
	for _, members := range []map[string]any{nil, {"lora_path": "adapter-b"}, {"lora_path": "adapter-a", "cache_salt": "s"}} {
		if a := r.ask(members, first+"other"[:len(members)]); a.status != http.StatusOK || a.reason != "no_cache_candidate" {
			t.Errorf("%v: %+v", members, a)
		}
	}
}

// TestVLLMAdaptersMissOnPurpose: what vLLM hashes of adapters and salts is not
// known here, so nothing is looked up, and trace and metrics say so.
func TestVLLMAdaptersMissOnPurpose(t *testing.T) {
	all, b := vllm(t, 2, nil)
	b.Server.Log.Level = "debug"
	r := serve(t, b)
	r.subscribed(all)
	first := long("a", 600)
	r.warmed(first)
	for member, reason := range map[string]string{"lora_path": "adapter_unsupported", "cache_salt": "salt_unsupported"} {
		if a := r.ask(map[string]any{member: "x"}, first); a.status != http.StatusOK || a.reason != "no_cache_candidate" {
			t.Errorf("%s: %+v", member, a)
		}
		if v := r.metric(`shunt_prefix_lookups_total{model="m",outcome="` + reason + `"}`); v != 1 {
			t.Errorf("%v lookups %s", v, reason)
		}
		if !strings.Contains(r.log.String(), reason) {
			t.Errorf("the decision does not say %s", reason)
		}
	}
	if v := r.metric(`shunt_cache_decisions_total{model="m",decision="unavailable"}`); v != 2 {
		t.Errorf("%v decisions without an answer", v)
	}
}
