package ask_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shunt/runtime/prepare"
	"shunt/runtime/tokens"
	"shunt/runtime/tokens/ask"
)

const body = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"temperature":0.5,"rid":"x"}`

// engine answers questions and remembers the last one.
type engine struct {
	*httptest.Server
	question, authorization atomic.Value
	asked                   atomic.Int64
}

func start(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *engine {
	t.Helper()
	e := new(engine)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked.Add(1)
		raw, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/tokenize" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		e.question.Store(string(raw))
		e.authorization.Store(r.Header.Get("Authorization"))
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

// says is an engine that always gives one answer.
func says(status int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // the client may have had enough
	}
}

func client(o ask.Options, engines ...string) *ask.Client {
	var next atomic.Int64
	o.Next = func(not string) string {
		for range engines {
			if e := engines[int(next.Add(1)-1)%len(engines)]; e != not {
				return e
			}
		}
		return ""
	}
	return ask.New(o)
}

func TestAsks(t *testing.T) {
	e := start(t, says(200, `{"count":3,"max_model_len":100,"tokens":[1, 4294967295,0],"token_strs":null}`))
	ids, source, err := client(ask.Options{}, e.URL).Encode(t.Context(), []uint32{9}, []byte(body), "Bearer k")
	if err != nil || !slices.Equal(ids, []uint32{9, 1, 4294967295, 0}) {
		t.Fatalf("got %v %v", ids, err)
	}
	if source.Trust != tokens.Exact || source.Tokens != 3 || source.Forwarding != tokens.Forwarded || source.Err != nil {
		t.Errorf("source %+v", source)
	}
	if q := e.question.Load(); q != `{"model":"m","messages":[{"role":"user","content":"hi"}]}` {
		t.Errorf("asked %s", q)
	}
	if a := e.authorization.Load(); a != "Bearer k" {
		t.Errorf("authorization %s", a)
	}
}

// TestShapes: what decides the prompt is in the question, byte for byte.
func TestShapes(t *testing.T) {
	e := start(t, says(200, `{"tokens":[7]}`))
	f := func(vllm bool, members, question string, trust tokens.Trust, reason string) {
		t.Helper()
		before := e.asked.Load()
		sent := `{"model":"m","messages":[{"role":"user","content":"hi"}]` + members + `}`
		_, source, err := client(ask.Options{VLLM: vllm}, e.URL).Encode(t.Context(), nil, []byte(sent), "")
		if err != nil || source.Trust != trust || reasonOf(source.Err) != reason {
			t.Errorf("%s: %+v %v", members, source, err)
		}
		if asked := e.asked.Load() > before; asked != (question != "") {
			t.Errorf("%s: asked %t", members, asked)
		} else if asked && e.question.Load() != `{"model":"m","messages":[{"role":"user","content":"hi"}]`+strings.TrimSpace(question)+`}` {
			t.Errorf("%s: asked %s", members, e.question.Load())
		}
	}
	const none = " " // the question has none of the members
	const tools = `,"tools":[{"type":"function","function":{"name":"f" }}]`
	f(false, tools, tools, tokens.Rendered, "")
	f(true, tools, tools, tokens.Rendered, "")
	f(false, `,"tool_choice":"none"`+tools, tools+`,"tool_choice":"none"`, tokens.Rendered, "")
	f(true, `,"tool_choice":"none"`+tools, "", tokens.Estimated, ask.Unsupported)
	f(true, `,"reasoning_effort":"low"`, "", tokens.Estimated, ask.Unsupported)
	f(true, `,"reasoning_effort":null,"chat_template_kwargs":{"a": 1}`, `,"chat_template_kwargs":{"a": 1}`, tokens.Rendered, "")
	f(false, `,"input_ids":[1,2,3]`, "", tokens.Exact, "")
	f(false, `,"input_ids":[[1],[2]]`, "", tokens.Estimated, ask.Unsupported)
	// vLLM passes over them, so they say nothing about the prompt.
	f(true, `,"input_ids":[1,2,3],"tools":null`, none, tokens.Exact, "")
	f(true, `,"input_ids":[[1],[2]]`, none, tokens.Exact, "")
}

func reasonOf(err error) string {
	if e, ok := errors.AsType[*ask.Error](err); ok {
		return e.Reason
	}
	return ""
}

// TestFailures: every failure is an estimate of the length, with its reason.
func TestFailures(t *testing.T) {
	f := func(answer func(http.ResponseWriter, *http.Request), o ask.Options, sent, reason string) {
		t.Helper()
		e := start(t, answer)
		ids, source, err := client(o, e.URL).Encode(t.Context(), nil, []byte(sent), "")
		if err != nil || len(ids) != 0 || source.Trust != tokens.Estimated || source.Tokens != max(1, int64(len(sent)/4)) {
			t.Errorf("got %v %+v %v", ids, source, err)
		}
		if got := reasonOf(source.Err); got != reason {
			t.Errorf("reason %q, want %q: %v", got, reason, source.Err)
		}
		if source.Forwarding == tokens.Forwarded {
			t.Error("there is nothing to forward")
		}
	}
	f(says(404, `{"detail":"Not Found"}`), ask.Options{}, body, ask.Refused)
	f(says(422, `{}`), ask.Options{}, body, ask.Refused)
	f(says(302, ``), ask.Options{}, body, ask.Refused)
	f(says(500, `{}`), ask.Options{}, body, ask.Unreachable)
	for _, text := range []string{
		``, `[]`, `{}`, `{"tokens":null}`, `{"tokens":[]}`, `{"tokens":"12"}`, `{"tokens":[1,null]}`, `{"tokens":[1.5]}`,
		`{"tokens":[1e3]}`, `{"tokens":[-1]}`, `{"tokens":[4294967296]}`, `{"tokens":[[1,2]]}`, `{"tokens":["1"]}`,
		`{"tokens":[1,2],"count":3}`, `{"tokens":[1],"count":[1]}`, `{"tokens":[99999999999999999999999]}`, `{"tokens":[1`,
	} {
		f(says(200, text), ask.Options{}, body, ask.Malformed)
	}
	f(says(200, `{"tokens":[`+strings.Repeat("1,", 1<<20)+`1]}`), ask.Options{}, body, ask.Malformed)
	f(says(200, `{"tokens":[1]}`), ask.Options{MaxBody: 20}, body, ask.TooLarge)
	// What is too large is not read either.
	f(says(200, `{"tokens":[1]}`), ask.Options{MaxBody: 20}, `{"messages":[],"messages":[]}`, ask.TooLarge)
	f(says(200, `{"tokens":[1]}`), ask.Options{Reading: prepare.NewTokenLimit(1, 20)}, body, ask.Overloaded)
	f(says(200, `{"tokens":[1]}`), ask.Options{}, `{"model":"m","messages":"hi"}`, ask.Unsupported)
	f(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ask.Options{Timeout: 20 * time.Millisecond}, body, ask.Timeout)
	_, source, err := client(ask.Options{}).Encode(t.Context(), nil, []byte(body), "")
	if err != nil || reasonOf(source.Err) != ask.NoEngine {
		t.Errorf("without engines: %+v %v", source, err)
	}
	if _, _, err := client(ask.Options{}).Encode(t.Context(), nil, []byte(`{"messages":[],"messages":[]}`), ""); !errors.Is(err, tokens.ErrBody) {
		t.Errorf("a repeated member: %v", err)
	}
}

// TestAnotherEngine: one that cannot be reached does not cost the ids.
func TestAnotherEngine(t *testing.T) {
	gone := start(t, says(200, ``))
	gone.Close()
	e := start(t, says(200, `{"tokens":[7]}`))
	for range 4 {
		ids, source, err := client(ask.Options{}, gone.URL, e.URL).Encode(t.Context(), nil, []byte(body), "")
		if err != nil || !slices.Equal(ids, []uint32{7}) {
			t.Errorf("got %v %+v %v", ids, source, err)
		}
	}
}

// TestTurns: questions beyond the bound wait, and give up within the timeout.
func TestTurns(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	e := start(t, func(w http.ResponseWriter, _ *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-release
		now.Add(-1)
		says(200, `{"tokens":[7]}`)(w, nil)
	})
	c := client(ask.Options{MaxInflight: 2, Timeout: time.Minute}, e.URL)
	impatient := func() string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, source, _ := client(ask.Options{Timeout: time.Millisecond, MaxInflight: 1}, e.URL).Encode(ctx, nil, []byte(body), "")
		return reasonOf(source.Err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ids, source, err := c.Encode(t.Context(), nil, []byte(body), "")
			if err != nil || len(ids) != 1 {
				t.Errorf("got %v %+v %v", ids, source, err)
			}
		})
	}
	for now.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if got := impatient(); got != ask.Timeout {
		t.Errorf("reason %q", got)
	}
	close(release)
	wg.Wait()
	if most.Load() > 3 { // two, and the impatient one
		t.Errorf("%d questions at a time", most.Load())
	}
}

// TestReading: bodies are read as many at a time as the limit says, and those that
// wait give up within the timeout.
func TestReading(t *testing.T) {
	e := start(t, says(200, `{"tokens":[7]}`))
	limit := prepare.NewTokenLimit(1, 0)
	c := client(ask.Options{Reading: limit, Timeout: 20 * time.Millisecond}, e.URL)
	if err := limit.Enter(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	_, source, err := c.Encode(t.Context(), nil, []byte(body), "")
	if err != nil || reasonOf(source.Err) != ask.Overloaded {
		t.Errorf("got %+v %v", source, err)
	}
	limit.Leave(1)
	c = client(ask.Options{Reading: limit, Timeout: time.Minute}, e.URL)
	for range 3 { // each gives its turn back
		if ids, source, err := c.Encode(t.Context(), nil, []byte(body), ""); err != nil || len(ids) != 1 {
			t.Errorf("got %v %+v %v", ids, source, err)
		}
	}
}

func TestOverloaded(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once // the second one may have its turn
	e := start(t, func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { close(entered) })
		<-release
		says(200, `{"tokens":[7]}`)(w, nil)
	})
	c := client(ask.Options{MaxInflight: 1, Timeout: 200 * time.Millisecond}, e.URL)
	var wg sync.WaitGroup
	wg.Go(func() { _, _, _ = c.Encode(t.Context(), nil, []byte(body), "") })
	<-entered
	_, source, err := c.Encode(t.Context(), nil, []byte(body), "")
	// The one that is being asked gives up no later, so its turn may come.
	if err != nil || reasonOf(source.Err) == "" {
		t.Errorf("got %+v %v", source, err)
	}
	close(release)
	wg.Wait()
}

// TestCancelled: the end of the request is no failure of the engine.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := start(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, _, err := client(ask.Options{Timeout: time.Minute}, e.URL).Encode(ctx, nil, []byte(body), "")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// FuzzAnswer: ids are taken as they stand in the answer, or not at all.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"tokens":[1,2,3],"count":3}`)
	f.Add(`{"tokens":[1,2`)
	f.Add(`{"tokens":[01]}`)
	f.Add(`{"tokens":[ ]}`)
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := ask.ReadAnswer([]uint32{5}, []byte(text))
		if ids[0] != 5 {
			t.Fatal("what stood before was changed")
		}
		if err == nil && len(ids) < 2 {
			t.Errorf("%q: no ids and no error", text)
		}
	})
}
