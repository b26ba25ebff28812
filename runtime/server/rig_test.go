package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/enginetest"
	"shunt/runtime/fleet"
	"shunt/runtime/forward"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/server"
)

// rig is a whole serving stack over simulated engines: one plain engine, or one
// prefill and one decode engine.
type rig struct {
	t       testing.TB
	engines map[enginetest.Role]*enginetest.Engine
	fleet   *fleet.Fleet
	fwd     *forward.Forwarder
	server  *server.Server
	set     *metrics.Set
	log     *logBuffer
	gen     *server.Generation
	http    *httptest.Server
	client  *http.Client
}

// patient limits are not met by a busy machine either.
func patient() forward.Timeouts {
	const long = 20 * time.Second
	return forward.Timeouts{Request: long, Header: long, StreamIdle: long, Stale: 2 * long}
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

func newRig(t testing.TB, engines ...enginetest.Options) *rig {
	t.Helper()
	r := &rig{t: t, engines: make(map[enginetest.Role]*enginetest.Engine), fleet: new(fleet.Fleet), set: metrics.NewSet(), log: new(logBuffer)}
	var specs []fleet.Spec
	for _, o := range engines {
		e, err := enginetest.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		r.engines[e.Role()] = e
		role, _ := fleet.ParseRole(string(e.Role()))
		specs = append(specs, fleet.Spec{ID: strings.ToUpper(role.String()[:1]), URL: e.URL(), Role: role, BootstrapPort: e.BootstrapPort()})
	}
	if err := r.fleet.Apply("m", fleet.BreakerConfig{Threshold: 3, CoolDown: time.Hour}, specs); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: level(t)}))
	meters := server.NewMeters(r.set, r.fleet)
	r.fwd = forward.New(forward.Options{Log: log, Observer: meters, ConnectTimeout: time.Second})
	r.server = server.New(server.Options{Fleet: r.fleet, Forwarder: r.fwd, Meters: meters, Log: log})
	r.gen = &server.Generation{
		Digest: "sha256:0", Plan: []byte("{}\n"), Order: []string{"m"},
		Models:   map[string]*server.Model{"m": {Resolver: r.resolver(len(engines) > 1)}},
		Settings: server.Settings{Timeouts: patient(), ExposeDecision: true},
	}
	r.server.Swap(r.gen)
	r.server.SetServing(true)
	r.http = httptest.NewUnstartedServer(r.server.Handler())
	r.http.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	r.http.Start()
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return r
}

// close ends the stack in the order of a process; it must not hang.
func (r *rig) close() {
	r.client.CloseIdleConnections()
	r.http.Close()
	if err := r.fwd.Close(context.Background()); err != nil {
		r.t.Error(err)
	}
	for _, e := range r.engines {
		e.Close()
	}
	r.fleet.Close()
}

func (r *rig) resolver(pd bool) *routing.Resolver {
	group := func(role fleet.Role) *routing.Group {
		return &routing.Group{Stage: role, Policy: &policy.RoundRobin{},
			Engines: r.fleet.Watch(fleet.Selector{Model: "m", Role: role, All: true})}
	}
	b := &routing.Bucket{ID: "b", Max: routing.AtMost(1 << 20), Context: routing.AtMost(1 << 21)}
	if pd {
		b.Groups = routing.PDGroups{Prefill: group(fleet.Prefill), Decode: group(fleet.Decode)}
	} else {
		b.Groups = routing.PlainGroups{Plain: group(fleet.Plain)}
	}
	return &routing.Resolver{Model: "m", Buckets: []*routing.Bucket{b},
		Breakpoints: []routing.Breakpoint{{From: 0, Runs: []routing.Run{{0, 0}}}, {From: 1<<20 + 1}}}
}

// replan swaps a changed copy of the generation in.
func (r *rig) replan(change func(*server.Generation)) {
	g := *r.gen
	change(&g)
	r.gen = &g
	r.server.Swap(&g)
}

// answer is what the client saw.
type answer struct {
	status int
	header http.Header
	body   string
	cut    bool
}

func (a answer) code() string { return a.header.Get("X-Router-Error-Code") }

// String is the answer in a few words: status, code or whose body, and whether
// it was cut.
func (a answer) String() string {
	s := fmt.Sprint(a.status)
	switch {
	case a.cut:
		s += " cut"
	case a.code() != "":
		s += " " + a.code()
	case a.status == http.StatusOK:
		s += " ok"
	default:
		s += " verbatim"
	}
	return s
}

func (r *rig) post(ctx context.Context, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return r.do(req)
}

func (r *rig) do(req *http.Request) (answer, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b), cut: err != nil}, nil
}

func (r *rig) get(path string) answer {
	r.t.Helper()
	return r.from(r.http.URL + path)
}

func (r *rig) from(address string) answer {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := r.do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *rig) chat(body string, header ...string) answer {
	r.t.Helper()
	a, err := r.post(context.Background(), body, header...)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// settle waits until no lease is held.
func (r *rig) settle() {
	r.t.Helper()
	if !within(10*time.Second, func() bool { return r.inflight() == 0 }) {
		r.t.Errorf("%d requests are still in flight", r.inflight())
	}
}

func (r *rig) inflight() (n int64) {
	for _, e := range r.fleet.Engines("m") {
		n += e.Inflight()
	}
	return n
}

func (r *rig) spec(role fleet.Role) *fleet.Engine {
	for _, e := range r.fleet.Engines("m") {
		if e.Role() == role {
			return e
		}
	}
	return nil
}

// within polls: the conditions are counters of other goroutines.
func within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// metric is the value of a series, empty if it does not exist.
func (r *rig) metric(series string) string {
	var b bytes.Buffer
	r.set.WritePrometheus(&b)
	for line := range strings.Lines(b.String()) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func (r *rig) inject(role enginetest.Role, f enginetest.Fault) {
	r.t.Helper()
	if err := r.engines[role].Inject(f); err != nil {
		r.t.Error(err)
	}
}

// leaks reports whether an answer names an engine's address.
func (r *rig) leaks(a answer) bool {
	text := fmt.Sprint(a.header) + a.body
	for _, e := range r.engines {
		u, err := url.Parse(e.URL())
		if err != nil {
			r.t.Fatal(err)
		}
		if _, port, _ := net.SplitHostPort(u.Host); strings.Contains(text, ":"+port) || strings.Contains(text, u.Host) {
			return true
		}
	}
	return false
}

const (
	bufferedChat = `{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":8}`
	streamedChat = `{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":8,"stream":true}`
)

func plainOptions() enginetest.Options { return enginetest.Options{ID: "P"} }

func pairOptions() []enginetest.Options {
	return []enginetest.Options{
		{ID: "P", Role: enginetest.Prefill, BootstrapTimeout: time.Minute},
		{ID: "D", Role: enginetest.Decode, BootstrapTimeout: time.Minute},
	}
}

func envelope(t *testing.T, a answer) (kind, code, message string) {
	t.Helper()
	var e struct {
		Error struct{ Type, Code, Message string }
	}
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		t.Fatalf("%q: %v", a.body, err)
	}
	return e.Error.Type, e.Error.Code, e.Error.Message
}

func newSet() *metrics.Set { return metrics.NewSet() }

// level is that of production in benchmarks and tells everything in tests.
func level(t testing.TB) slog.Level {
	if _, ok := t.(*testing.B); ok {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
