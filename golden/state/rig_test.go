package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shunt/runtime/app"
	"shunt/runtime/enginetest"
	"shunt/runtime/server"
	"shunt/runtime/tokens/tokenstest"
	"shunt/schema/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// blockSize is that of the engines unless a test says otherwise, in tokens; the
// tokenizer of the tests has one token for each byte.
const blockSize = 16

// patience bounds every wait of these tests; only a broken run meets it.
const patience = 60 * time.Second

// await receives from a channel, or fails the test with the stacks of everything
// that still runs.
func await[T any](t *testing.T, what string, c <-chan T) (v T, ok bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case v = <-c:
		return v, true
	case <-limit.C:
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2) // a buffer takes everything
		t.Errorf("%s did not come within %s\n%s", what, patience, &stacks)
		return v, false
	}
}

// bounded runs something that ends soon unless it is broken.
func bounded(t *testing.T, what string, run func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	await(t, what, done)
}

// engines starts n plain engines, each with a prefix cache that it publishes.
func engines(t *testing.T, n int, edit func(*enginetest.Options)) []*enginetest.Engine {
	t.Helper()
	var out []*enginetest.Engine
	for i := range n {
		o := enginetest.Options{
			ID: "e" + strconv.Itoa(i), Model: "m", BlockSize: blockSize, Events: true, Replay: true, PublishLoads: true,
			LoadInterval: 10 * time.Millisecond, OutputTokens: 2,
		}
		if edit != nil {
			edit(&o)
		}
		e, err := enginetest.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { bounded(t, "the end of engine "+e.ID(), e.Close) })
		out = append(out, e)
	}
	return out
}

// tokenizerDir writes a tokenizer whose ids are the bytes of the text, and a chat
// template.
func tokenizerDir(t *testing.T) string {
	t.Helper()
	return tokenstest.Dir(t, map[string]any{
		"chat_template": "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}{% if add_generation_prompt %}>{% endif %}",
	})
}

// body is a plan of one model whose engines stand in one bucket.
func body(t *testing.T, all []*enginetest.Engine, policy plan.Policy) *plan.Body {
	t.Helper()
	m := plan.Model{
		ID: "m", Breaker: plan.Breaker{Threshold: 100, CoolDownMS: 1000},
		Discovery: plan.Discovery{Static: &plan.StaticDiscovery{}},
		Buckets:   []plan.Bucket{{ID: "all", Groups: plan.Groups{Plain: &plan.Group{Policy: policy}}}},
	}
	for _, e := range all {
		m.Discovery.Static.Engines = append(m.Discovery.Static.Engines, plan.Engine{ID: e.ID(), URL: e.URL(), Role: plan.Plain})
	}
	if policy.Type == plan.CacheAware {
		m.Tokenizer = &plan.Tokenizer{Path: tokenizerDir(t), ForwardInputIDs: true}
	}
	if policy.Type == plan.SessionAware {
		m.Affinity = &plan.AffinityHeaders{SessionID: "x-session-id"}
	}
	return &plan.Body{
		Server: plan.Server{
			Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", MaxBodyBytes: 1 << 20, ExposeDecision: true,
			RequestTimeoutMS: 20_000, ConnectTimeoutMS: 5000, HeaderTimeoutMS: 20_000, StreamIdleTimeoutMS: 20_000,
			StaleTimeoutMS: 40_000, DrainTimeoutMS: 5000, Log: plan.Log{Level: "info", Format: "text"},
		},
		State:  plan.State{Load: plan.LoadState{Transport: plan.LoadAuto, PollIntervalMS: 50, FreshnessMS: 5000}},
		Models: []plan.Model{m},
	}
}

// cacheAware follows prefixes of two blocks or more.
func cacheAware() plan.Policy {
	return plan.Policy{Type: plan.CacheAware, CacheAware: &plan.CacheAwareTuning{
		MinMatchedTokens: 2 * blockSize, CandidateMinWorkers: 8, CandidateRatio: 0.05, CandidateMaxWorkers: 32,
		SwitchMarginTokens: 64, PressureGuard: true, PressureAbsThresholdTokens: 1024, PressureRelThreshold: 1.5,
		Fallback: plan.FallbackPolicy{Type: plan.RoundRobin},
	}}
}

func sessionAware() plan.Policy {
	return plan.Policy{Type: plan.SessionAware, SessionAware: &plan.SessionAwareTuning{
		Fallback: plan.FallbackPolicy{Type: plan.Random},
	}}
}

func local() *plan.PrefixState {
	return &plan.PrefixState{Local: &plan.LocalPrefix{MaxBlocks: 1 << 16}}
}

// write seals a plan into a file.
func write(t *testing.T, file string, b *plan.Body) {
	t.Helper()
	for i := range b.Models {
		m := &b.Models[i]
		m.Breakpoints, _ = plan.Breakpoints(m.Buckets, 100)
		m.Requires = plan.Require(i, m)
	}
	d, err := plan.Seal(*b, plan.Provenance{Compiler: "test"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := plan.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// router is a running process.
type router struct {
	t          *testing.T
	file       string
	url, admin string
	client     *http.Client
	log        *logBuffer
	signals    chan os.Signal
	done       chan error
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serve starts a router on a plan, which must end well.
func serve(t *testing.T, b *plan.Body) *router {
	t.Helper()
	r := &router{
		t: t, file: filepath.Join(t.TempDir(), "plan.json"), signals: make(chan os.Signal, 1), done: make(chan error, 1),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 300}}, log: new(logBuffer),
	}
	write(t, r.file, b)
	started := make(chan struct{})
	go func() {
		r.done <- app.Run(context.Background(), app.Options{
			Plan: app.PlanSource{File: r.file}, Log: r.log, Signals: r.signals,
			Started: func(listen, admin string) {
				r.url, r.admin = "http://"+listen, "http://"+admin
				close(started)
			},
		})
	}()
	select {
	case <-started:
	case err := <-r.done:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatalf("the router did not start within %s\n%s", patience, r.log)
	}
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		r.signals <- syscall.SIGINT
		if err, _ := await(t, "the router's end", r.done); err != nil {
			t.Errorf("router: %v", err)
		}
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// answer is what a chat led to.
type answer struct {
	status               int
	engine, reason, code string
	in, why              string // where the input length came from, and why it is an estimate
}

// decisionPart reads one field of the decision header.
func decisionPart(header, name string) string {
	for part := range strings.SplitSeq(header, "; ") {
		if v, ok := strings.CutPrefix(part, name+"="); ok {
			return v
		}
	}
	return ""
}

// chat sends one request; contents alternate between user and assistant.
func (r *router) chat(session string, contents ...string) answer {
	r.t.Helper()
	messages := []any{}
	for i, c := range contents {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		messages = append(messages, map[string]any{"role": role, "content": c})
	}
	data, err := json.Marshal(map[string]any{"model": "m", "max_tokens": 2, "messages": messages})
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, r.url+"/v1/chat/completions", bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	if session != "" {
		req.Header.Set("X-Session-Id", session)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Error(err)
		return answer{}
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		r.t.Error(err)
	}
	d := resp.Header.Get("X-Shunt-Decision")
	return answer{
		status: resp.StatusCode, engine: decisionPart(d, "plain"), reason: decisionPart(d, "plain-reason"),
		in: decisionPart(d, "input-source"), why: decisionPart(d, "input-reason"), code: resp.Header.Get("X-Router-Error-Code"),
	}
}

// wants sends a chat that must be answered for a reason.
func (r *router) wants(reason string, contents ...string) answer {
	r.t.Helper()
	a := r.chat("", contents...)
	if a.status != http.StatusOK || a.reason != reason {
		r.t.Errorf("got %+v, want reason %s", a, reason)
	}
	return a
}

func (r *router) reload() (int, string) {
	r.t.Helper()
	resp, err := r.client.Post(r.admin+"/admin/reload", "", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// cacheEvents is what administrators see of the engines' caches, by id.
func (r *router) cacheEvents() map[string]server.CacheEvents {
	r.t.Helper()
	resp, err := r.client.Get(r.admin + "/admin/engines")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Engines []struct {
			ID     string             `json:"id"`
			Events server.CacheEvents `json:"cache_events"`
		} `json:"engines"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		r.t.Fatal(err)
	}
	views := map[string]server.CacheEvents{}
	for _, e := range list.Engines {
		views[e.ID] = e.Events
	}
	return views
}

// metric reads a metric, the sum over all its labels unless they are given.
func (r *router) metric(name string) float64 { return metric(r.t, r.client, r.admin, name) }

func metric(t *testing.T, client *http.Client, base, name string) float64 {
	t.Helper()
	resp, err := client.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	pattern := `(?m)^` + regexp.QuoteMeta(name)
	if !strings.Contains(name, "{") {
		pattern += `(?:\{[^}]*\})?`
	}
	sum := 0.0
	for _, m := range regexp.MustCompile(pattern+` (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// until waits for a metric; the deadline only ends a broken run.
func (r *router) until(name string, ok func(v float64) bool) {
	r.t.Helper()
	eventually(r.t, name, func() (string, bool) {
		v := r.metric(name)
		return fmt.Sprint(v), ok(v)
	})
}

func eventually(t *testing.T, what string, ok func() (string, bool)) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		now, done := ok()
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s", what, now)
		}
	}
}

func above(n float64) func(float64) bool  { return func(v float64) bool { return v > n } }
func equals(n float64) func(float64) bool { return func(v float64) bool { return v == n } }

// long is a text of about n tokens that begins with its name.
func long(name string, n int) string {
	return name + ":" + strings.Repeat(" lorem ipsum", n/12)
}
