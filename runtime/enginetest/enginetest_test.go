package enginetest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shunt/runtime/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that end much earlier unless something is broken.
const patience = 20 * time.Second

// hello is a small valid chat.
const hello = `{"model":"m","messages":[{"role":"user","content":"hello there"}],"max_tokens":6`

func start(t *testing.T, o enginetest.Options) *enginetest.Engine {
	t.Helper()
	e, err := enginetest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// newClient returns a client whose connections end with the test.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// post sends a body and returns the status and what came back. A broken answer
// is an error beside what arrived of it; status 0 means no head.
func post(t *testing.T, url, body string) (int, string, error) {
	t.Helper()
	resp, err := newClient(t).Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// chat posts to the chat endpoint and expects a complete answer.
func chat(t *testing.T, e *enginetest.Engine, body string) (int, string) {
	t.Helper()
	status, data, err := post(t, e.URL()+"/v1/chat/completions", body)
	if err != nil {
		t.Fatalf("%s: %v", e.ID(), err)
	}
	return status, data
}

// wait waits for a state and fails the test if it never comes.
func wait(t *testing.T, e *enginetest.Engine, what string, ok func(enginetest.State) bool) enginetest.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := e.Wait(ctx, ok)
	if err != nil {
		t.Fatalf("%s: %s: %v, state %+v", e.ID(), what, err, s)
	}
	return s
}

func idle(s enginetest.State) bool { return s.Received > 0 && s.Idle() }

type completion struct {
	ID      string
	Object  string
	Model   string
	Choices []struct {
		Index        int
		Message      struct{ Role, Content string }
		FinishReason string `json:"finish_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

func decode(t *testing.T, data string) completion {
	t.Helper()
	var c completion
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return c
}

func TestBuffered(t *testing.T) {
	e := start(t, enginetest.Options{})
	f := func(members string, tokens int, finish string) {
		t.Helper()
		status, data := chat(t, e, `{"model":"m","messages":[{"role":"user","content":"hello"}]`+members+`}`)
		c := decode(t, data)
		if status != 200 || c.Object != "chat.completion" || c.Model != "m" || len(c.Choices) != 1 {
			t.Fatalf("%s: %d %s", members, status, data)
		}
		words := len(strings.Fields(c.Choices[0].Message.Content))
		if words != tokens || c.Usage.Completion != tokens || c.Choices[0].FinishReason != finish {
			t.Errorf("%s: %d words, %+v, want %d tokens and %s", members, words, c, tokens, finish)
		}
		if c.Usage.Total != c.Usage.Prompt+c.Usage.Completion || c.Usage.Prompt != 3 {
			t.Errorf("%s: usage %+v", members, c.Usage)
		}
	}
	f(`,"max_tokens":5`, 5, "length")
	f(`,"max_tokens":50,"max_completion_tokens":3`, 3, "length")
	f(`,"max_tokens":100,"ignore_eos":true`, 100, "length")
	f(`,"max_tokens":2,"max_tokens":4`, 4, "length") // the last of two members wins
	f(`,"MAX_TOKENS":2,"max_tokens":4`, 4, "length") // names match exactly

	e = start(t, enginetest.Options{OutputTokens: 7})
	f(``, 7, "stop")
	f(`,"max_tokens":7`, 7, "stop")
	f(`,"max_tokens":6`, 6, "length")
	f(`,"rid":null`, 7, "stop")
}

func TestTextDependsOnSeedAndPromptOnly(t *testing.T) {
	content := func(seed uint64, prompt string) string {
		e := start(t, enginetest.Options{Seed: seed})
		_, data := chat(t, e, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"max_tokens":20,"ignore_eos":true}`, prompt))
		return decode(t, data).Choices[0].Message.Content
	}
	first := content(1, "a")
	if again := content(1, "a"); again != first {
		t.Errorf("equal seeds and prompts give %q and %q", first, again)
	}
	if first == content(2, "a") || first == content(1, "b") {
		t.Error("different seeds or prompts give one text")
	}
}

// events splits a stream into the payloads of its events.
func events(t *testing.T, data string) []string {
	t.Helper()
	var out []string
	for s := bufio.NewScanner(strings.NewReader(data)); s.Scan(); {
		if s.Text() == "" {
			continue
		}
		payload, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			t.Fatalf("line %q in %s", s.Text(), data)
		}
		out = append(out, payload)
	}
	return out
}

func TestStream(t *testing.T) {
	e := start(t, enginetest.Options{})
	status, whole := chat(t, e, hello+`}`)
	_, data := chat(t, e, hello+`,"stream":true,"stream_options":{"include_usage":true}}`)
	got := events(t, data)
	if status != 200 || len(got) != 1+6+1+1+1 || got[len(got)-1] != "[DONE]" {
		t.Fatalf("%d events: %s", len(got), data)
	}
	var text strings.Builder
	var finishes []string
	for _, payload := range got[:len(got)-1] {
		var chunk struct {
			Object  string
			Choices []struct {
				Delta        struct{ Role, Content string }
				FinishReason *string `json:"finish_reason"`
			}
			Usage *struct {
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(payload), &chunk); err != nil || chunk.Object != "chat.completion.chunk" {
			t.Fatalf("%v in %s", err, payload)
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Delta.Content)
			if c.FinishReason != nil {
				finishes = append(finishes, *c.FinishReason)
			}
		}
		if (len(chunk.Choices) == 0) != (chunk.Usage != nil) || chunk.Usage != nil && chunk.Usage.Completion != 6 {
			t.Errorf("usage in %s", payload)
		}
	}
	if want := decode(t, whole).Choices[0].Message.Content; text.String() != want {
		t.Errorf("streamed %q, buffered %q", text.String(), want)
	}
	if len(finishes) != 1 || finishes[0] != "length" {
		t.Errorf("finish reasons %q", finishes)
	}
	_, data = chat(t, e, hello+`,"stream":true}`)
	if strings.Contains(data, "usage") {
		t.Errorf("usage though nobody asked: %s", data)
	}
}

func TestSeveralChoices(t *testing.T) {
	e := start(t, enginetest.Options{})
	_, data := chat(t, e, hello+`,"n":3}`)
	c := decode(t, data)
	if len(c.Choices) != 3 || c.Choices[0].Message.Content == c.Choices[1].Message.Content || c.Usage.Completion != 18 {
		t.Errorf("%+v", c)
	}
	_, data = chat(t, e, hello+`,"n":3,"stream":true}`)
	if n := len(events(t, data)); n != 3*(1+6+1)+1 {
		t.Errorf("%d events", n)
	}
}

func TestOtherDialects(t *testing.T) {
	e := start(t, enginetest.Options{OutputTokens: 4})
	f := func(path, body string, status int, want ...string) {
		t.Helper()
		got, data, err := post(t, e.URL()+path, body)
		if err != nil || got != status {
			t.Fatalf("%s %s: %d %v %s", path, body, got, err, data)
		}
		for _, w := range want {
			if !strings.Contains(data, w) {
				t.Errorf("%s %s: no %s in %s", path, body, w, data)
			}
		}
	}
	f("/v1/completions", `{"prompt":"hello"}`, 200, `"object":"text_completion"`, `"finish_reason":"stop"`, `"completion_tokens":4`)
	f("/v1/completions", `{"prompt":"hello","stream":true}`, 200, `"text":"`, "data: [DONE]\n\n")
	f("/v1/completions", `{}`, 400, "prompt")
	f("/generate", `{"text":"hello","rid":"r1"}`, 200, `"id":"r1"`, `"finish_reason":{"type":"stop"}`)
	f("/generate", `{"input_ids":[1,2,3],"stream":true,"sampling_params":{"max_new_tokens":2}}`, 200,
		`"prompt_tokens":3`, `"completion_tokens":1,`, `"finish_reason":{"type":"length"}`, "data: [DONE]\n\n")
	f("/generate", `{"text":"hello","input_ids":[1]}`, 400, "exactly one")
	f("/generate", `{"text":"hello","sampling_params":{"n":2}}`, 400, "n")
}

func TestRefusesWhatAnEngineRefuses(t *testing.T) {
	e := start(t, enginetest.Options{ContextTokens: 100, KVTokens: 200})
	long := strings.Repeat("word", 100)
	f := func(body, want string) {
		t.Helper()
		status, data := chat(t, e, body)
		if status != 400 || !strings.Contains(data, want) || !strings.Contains(data, `"object":"error"`) {
			t.Errorf("%.60s: %d %s, want 400 with %q", body, status, data, want)
		}
	}
	f(`{`, "malformed")
	f(``, "malformed")
	f(`[]`, "malformed")
	f(`{"messages":"x"}`, "malformed")
	f(`{"messages":[]}`, "at least one")
	f(`{"messages":[{"content":"x"}]}`, "role is required")
	f(`{"messages":[{"role":"user","content":5}]}`, "messages[0]: content")
	f(hello+`,"max_tokens":0}`, "max_tokens is 0")
	f(hello+`,"max_tokens":-1}`, "max_tokens is -1")
	f(hello+`,"n":0}`, "n is 0")
	f(`{"messages":[{"role":"user","content":"`+long+`"}]}`, "longer than the model's context")
	f(hello+`,"max_tokens":99}`, "exceed the model's context")
	f(hello+`,"max_tokens":90,"n":3}`, "cache tokens")
	if s := wait(t, e, "all rejected", idle); s.Rejected != s.Received {
		t.Errorf("state %+v", s)
	}
}

func TestMultimodalContent(t *testing.T) {
	e := start(t, enginetest.Options{})
	a := `{"messages":[{"role":"user","content":"hello there"}],"max_tokens":9}`
	b := `{"messages":[{"role":"user","content":[{"type":"text","text":"hello "},{"type":"text","text":"there"}]}],"max_tokens":9}`
	_, x := chat(t, e, a)
	_, y := chat(t, e, b)
	if decode(t, x).Choices[0] != decode(t, y).Choices[0] {
		t.Errorf("parts and a string of the same text differ: %s, %s", x, y)
	}
}

func TestIntrospection(t *testing.T) {
	e := start(t, enginetest.Options{ID: "P1", Role: enginetest.Prefill, Model: "qwen", KVTokens: 1000, MaxRunning: 4})
	f := func(path string, status int, want ...string) {
		t.Helper()
		resp, err := newClient(t).Get(e.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("%s: %d %v %s", path, resp.StatusCode, err, data)
		}
		for _, w := range want {
			if !bytes.Contains(data, []byte(w)) {
				t.Errorf("%s: no %s in %s", path, w, data)
			}
		}
	}
	port := fmt.Sprintf(`"disaggregation_bootstrap_port":%d`, e.BootstrapPort())
	f("/health", 200)
	f("/health_generate", 200)
	f("/server_info", 200, `"served_model_name":"qwen"`, `"disaggregation_mode":"prefill"`, port)
	f("/get_server_info", 200, port)
	f("/model_info", 200, `"model_path":"qwen"`, `"is_generation":true`)
	f("/get_model_info", 200, `"model_path":"qwen"`)
	f("/v1/models", 200, `"id":"qwen"`, `"object":"list"`)
	f("/v1/loads?include=core", 200, `"num_running_reqs":0`, `"max_total_num_tokens":1000`, `"max_running_requests":4`)
	f("/v1/loads", 200, `"memory"`, `"disaggregation"`, `"queues"`)
	f("/v1/loads?include=nonsense", 400, "nonsense")
	f("/v1/loads?format=prometheus", 200, `sglang_num_running_reqs{dp_rank="0"} 0`)
	f("/get_load", 200, `"num_reqs":0`)
	f("/nothing", 404)
}

func TestLoadsFollowTheState(t *testing.T) {
	e := start(t, enginetest.Options{InterToken: time.Hour, MaxRunning: 1, MaxQueued: 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	for range 2 {
		go func() {
			defer func() { done <- struct{}{} }()
			req, _ := http.NewRequestWithContext(ctx, "POST", e.URL()+"/v1/chat/completions", strings.NewReader(hello+`}`))
			if resp, err := newClient(t).Do(req); err == nil {
				resp.Body.Close()
			}
		}()
	}
	busy := wait(t, e, "one runs, one waits", func(s enginetest.State) bool {
		return s.Running == 1 && s.Waiting == 1 && s.GeneratedTokens == 1
	})
	if busy.UsedTokens != 5+1 { // "user:hello there\n" is 17 bytes
		t.Errorf("used tokens %d", busy.UsedTokens)
	}
	resp, err := newClient(t).Get(e.URL() + "/v1/loads?include=core")
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Loads []map[string]any }
	err = json.NewDecoder(resp.Body).Decode(&report)
	resp.Body.Close()
	if err != nil || len(report.Loads) != 1 {
		t.Fatal(err, report)
	}
	for key, want := range map[string]float64{
		"num_running_reqs": 1, "num_waiting_reqs": 1, "num_used_tokens": 6,
		"num_waiting_uncached_tokens": 5, "num_total_tokens": 11, "utilization": 1,
	} {
		if got := report.Loads[0][key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	// The queue is full now.
	status, data := chat(t, e, hello+`}`)
	if status != 503 || !strings.Contains(data, "queue is full") {
		t.Errorf("%d %s", status, data)
	}
	cancel()
	<-done
	<-done
	s := wait(t, e, "idle", idle)
	if s.Cancelled != 2 || s.Rejected != 1 || s.UsedTokens != 0 || s.Running != 0 || s.Waiting != 0 {
		t.Errorf("state %+v", s)
	}
}

func TestQueuedRequestsRunInTurn(t *testing.T) {
	e := start(t, enginetest.Options{MaxRunning: 2, InterToken: time.Microsecond})
	done := make(chan int, 20)
	for range cap(done) {
		go func() {
			status, _, err := post(t, e.URL()+"/v1/chat/completions", hello+`}`)
			if err != nil {
				status = -1
			}
			done <- status
		}()
	}
	for range cap(done) {
		if status := <-done; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	if s := wait(t, e, "idle", idle); s.Completed != cap(done) || s.UsedTokens != 0 {
		t.Errorf("state %+v", s)
	}
}

func TestPrefillTakesTime(t *testing.T) {
	e := start(t, enginetest.Options{PrefillTokensPerSecond: 1000})
	chat(t, e, hello+`}`)
	if s := e.State(); s.PromptTokens != 5 || s.PrefillBusy != 5*time.Millisecond {
		t.Errorf("state %+v", s)
	}
}

func TestAbort(t *testing.T) {
	e := start(t, enginetest.Options{InterToken: time.Hour})
	f := func(rid, body string, dies bool) {
		t.Helper()
		before := e.State()
		answer := make(chan string, 1)
		go func() {
			_, data, _ := post(t, e.URL()+"/v1/chat/completions", hello+`,"stream":true,"rid":"`+rid+`"}`)
			answer <- data
		}()
		wait(t, e, "generating", func(s enginetest.State) bool { return s.GeneratedTokens > before.GeneratedTokens })
		if status, data, err := post(t, e.URL()+"/abort_request", body); status != 200 || err != nil {
			t.Fatal(status, data, err)
		}
		if !dies {
			if s := e.State(); s.Running != 1 {
				t.Errorf("%s aborted %s: %+v", body, rid, s)
			}
			if _, _, err := post(t, e.URL()+"/abort_request", `{"abort_all":true}`); err != nil {
				t.Fatal(err)
			}
		}
		if data := <-answer; !strings.Contains(data, `"finish_reason":"abort"`) {
			t.Errorf("%s: answer %s", body, data)
		}
		wait(t, e, "idle", idle)
	}
	f("abc-1", `{"rid":"abc-1"}`, true)
	f("abc-1", `{"rid":"abc"}`, true) // a prefix is enough, as in SGLang
	f("abc-1", `{"rid":"bc-1"}`, false)
	f("abc-1", `{"rid":"","abort_all":false}`, false)
	f("abc-1", `{"rid":"other","abort_all":true}`, true)
	if got := strings.Join(e.AbortedRIDs(), " "); got != "abc-1 abc bc-1    other" {
		t.Errorf("aborted rids %q", got)
	}
	if status, _, _ := post(t, e.URL()+"/abort_request", `{`); status != 422 {
		t.Errorf("malformed abort: status %d", status)
	}
}

func TestDuplicateRID(t *testing.T) {
	e := start(t, enginetest.Options{InterToken: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hold(t, ctx, e, hello+`,"rid":"same"}`)
	wait(t, e, "running", func(s enginetest.State) bool { return s.Running == 1 })
	if status, data := chat(t, e, hello+`,"rid":"same"}`); status != 400 || !strings.Contains(data, "duplicate") {
		t.Errorf("%d %s", status, data)
	}
}

// hold sends a chat in the background, until ctx or the test ends.
func hold(t *testing.T, ctx context.Context, e *enginetest.Engine, body string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	client := newClient(t)
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(ctx, "POST", e.URL()+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestRecords(t *testing.T) {
	e := start(t, enginetest.Options{RecordLimit: 2})
	for _, rid := range []string{"a", "b", "c"} {
		chat(t, e, hello+`,"bootstrap_room":7,"rid":"`+rid+`"}`)
	}
	wait(t, e, "idle", func(s enginetest.State) bool { return s.Completed == 3 })
	got := e.Requests()
	if len(got) != 2 || got[0].RID != "b" || got[1].RID != "c" || got[1].Seq != 3 {
		t.Fatalf("%+v", got)
	}
	r := got[1]
	if r.Path != "/v1/chat/completions" || r.Outcome != enginetest.Completed || r.Status != 200 || r.Tokens != 6 ||
		!r.HasRoom || r.Room != 7 || r.Header.Get("Content-Type") != "application/json" || !bytes.Contains(r.Body, []byte(`"rid":"c"`)) {
		t.Errorf("%+v", r)
	}
	r.Body[0] = 'X'
	r.Header.Set("Content-Type", "changed")
	if again := e.Requests()[1]; again.Body[0] != '{' || again.Header.Get("Content-Type") != "application/json" {
		t.Error("a record shares memory with its copies")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	f := func(o enginetest.Options, want string) {
		t.Helper()
		e, err := enginetest.Start(o)
		if err == nil {
			e.Close()
			t.Errorf("%+v: no error", o)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	f(enginetest.Options{Role: "both"}, "role")
	f(enginetest.Options{BootstrapListen: "127.0.0.1:0"}, "bootstrap server")
	f(enginetest.Options{InterToken: -1}, "InterToken")
	f(enginetest.Options{KVTokens: -1}, "KVTokens")
	f(enginetest.Options{Listen: "nonsense"}, "listen address")
	f(enginetest.Options{Role: enginetest.Prefill, BootstrapListen: "127.0.0.1:999999"}, "bootstrap server")
	used := start(t, enginetest.Options{})
	f(enginetest.Options{Listen: used.Addr()}, "in use")
}

func TestCloseEndsEverything(t *testing.T) {
	e, err := enginetest.Start(enginetest.Options{InterToken: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	hold(t, t.Context(), e, hello+`}`)
	wait(t, e, "running", func(s enginetest.State) bool { return s.Running == 1 })
	e.Close()
	e.Close()
	if s := e.State(); !s.Idle() || s.Running != 0 {
		t.Errorf("state after Close: %+v", s)
	}
}
