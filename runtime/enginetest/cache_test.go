package enginetest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"shunt/runtime/enginetest"
)

func cached(t *testing.T, o enginetest.Options) *enginetest.Engine {
	t.Helper()
	o.BlockSize = 4
	e, err := enginetest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// ask sends a request and returns its answer.
func ask(t *testing.T, e *enginetest.Engine, method, path, body string) (int, map[string]any) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, e.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	_ = json.Unmarshal(raw, &v) // an answer that is no object has no members
	return resp.StatusCode, v
}

func tokens(n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(i)
	}
	return ids
}

func idBody(ids []uint32) string {
	b, _ := json.Marshal(map[string]any{"model": "m", "max_tokens": 1, "input_ids": ids,
		"messages": []any{map[string]any{"role": "user", "content": "x"}}})
	return string(b)
}

func TestCachedPromptsTakeNoTime(t *testing.T) {
	e := cached(t, enginetest.Options{})
	slow := cached(t, enginetest.Options{PrefillTokensPerSecond: 10})
	slow.CachePrompt(tokens(16))
	for i, want := range []float64{0, 16} {
		status, a := ask(t, e, "POST", "/v1/chat/completions", idBody(tokens(18)))
		got := a["usage"].(map[string]any)["prompt_tokens_details"].(map[string]any)["cached_tokens"]
		if status != 200 || got != want {
			t.Errorf("request %d: status %d, %v tokens cached, want %v", i, status, got, want)
		}
	}
	if s := e.State(); s.PromptTokens != 20 || s.CachedTokens != 16 || e.CachedTokens(tokens(99)) != 16 {
		t.Errorf("state %+v", s)
	}
	if status, _ := ask(t, slow, "POST", "/v1/chat/completions", idBody(tokens(18))); status != 200 {
		t.Errorf("status %d", status)
	}
	if s := slow.State(); s.PrefillBusy != 200*time.Millisecond {
		t.Errorf("two tokens at ten a second took %s", s.PrefillBusy)
	}
	if status, _ := ask(t, e, "POST", "/flush_cache", ""); status != 200 || e.CachedTokens(tokens(18)) != 0 {
		t.Error("the cache was not emptied")
	}
}

func TestCacheEvictsTheLeafUsedLast(t *testing.T) {
	e := cached(t, enginetest.Options{CacheTokens: 16})
	e.CachePrompt(tokens(12))
	other := tokens(8)
	other[4] = 99 // shares the first block
	e.CachePrompt(other)
	if e.CachedBlocks() != 4 || e.CachedTokens(tokens(12)) != 12 {
		t.Fatalf("%d blocks", e.CachedBlocks())
	}
	e.CachePrompt([]uint32{7, 7, 7, 7})
	if e.CachedBlocks() != 4 || e.CachedTokens(tokens(12)) != 8 || e.CachedTokens(other) != 8 {
		t.Errorf("the third block of the first prompt should have gone: %d, %d", e.CachedTokens(tokens(12)), e.CachedTokens(other))
	}
}

func TestSaltsAndAdaptersKeepApart(t *testing.T) {
	e := cached(t, enginetest.Options{})
	f := func(extra string, want float64) {
		t.Helper()
		body := strings.Replace(idBody(tokens(9)), "{", "{"+extra, 1)
		_, a := ask(t, e, "POST", "/v1/chat/completions", body)
		if got := a["usage"].(map[string]any)["prompt_tokens_details"].(map[string]any)["cached_tokens"]; got != want {
			t.Errorf("%s: %v tokens cached, want %v", extra, got, want)
		}
	}
	f(``, 0)
	f(``, 8)
	f(`"cache_salt":"a",`, 0)
	f(`"cache_salt":"a",`, 8)
	f(`"lora_path":"a",`, 0)
	f(`"lora_path":"a",`, 8)
}

func TestDescription(t *testing.T) {
	e := cached(t, enginetest.Options{Ranks: 2, Events: true, Replay: true, PublishLoads: true})
	_, info := ask(t, e, "GET", "/server_info", "")
	kv := info["kv_events"].(map[string]any)
	if kv["dp_size"] != 2.0 || kv["block_size"] != 4.0 || kv["load_endpoint_port_base"] == nil || kv["replay_endpoint_port_base"] == nil {
		t.Errorf("kv_events %v", kv)
	}
	if _, a := ask(t, e, "GET", "/v1/loads?include=core", ""); len(a["loads"].([]any)) != 2 {
		t.Errorf("loads %v", a)
	}
	port := kv["endpoint_port_base"]
	if status, _ := ask(t, e, "POST", "/_sim/cache", `{"action":"restart","block_size":8,"ranks":3}`); status != 204 {
		t.Fatalf("status %d", status)
	}
	_, info = ask(t, e, "GET", "/server_info", "")
	if kv = info["kv_events"].(map[string]any); kv["dp_size"] != 3.0 || kv["block_size"] != 8.0 || kv["endpoint_port_base"] != port {
		t.Errorf("after the restart %v", kv)
	}
	ask(t, e, "POST", "/_sim/cache", `{"action":"stop"}`)
	if _, info = ask(t, e, "GET", "/server_info", ""); info["kv_events"] != nil {
		t.Errorf("after the stop %v", info["kv_events"])
	}
	if status, _ := ask(t, e, "POST", "/_sim/cache", `{"action":"jump"}`); status != 400 {
		t.Errorf("status %d", status)
	}
	if status, a := ask(t, e, "POST", "/tokenize", `{"prompt":"abcdefgh!"}`); status != 200 || a["count"] != 3.0 {
		t.Errorf("tokenize: %d %v", status, a)
	}
}

func TestCacheOptions(t *testing.T) {
	f := func(o enginetest.Options, want string) {
		t.Helper()
		e, err := enginetest.Start(o)
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	f(enginetest.Options{Events: true}, "without BlockSize")
	f(enginetest.Options{BlockSize: 4, Replay: true}, "need Events")
	f(enginetest.Options{BlockSize: -1}, "negative")
}
