package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shunt/runtime/app"
	"shunt/runtime/enginetest"
	"shunt/schema/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServesReloadsAndDrains(t *testing.T) {
	engine := startEngine(t, "a")
	file := writePlan(t, "", engine.URL(), nil)
	p := start(t, app.Options{Plan: app.PlanSource{File: file}})
	if got := p.chat(t); got != http.StatusOK {
		t.Fatalf("chat: status %d", got)
	}
	first := p.digest(t)

	other := startEngine(t, "b")
	writePlan(t, file, other.URL(), func(s *plan.Server) { s.MaxBodyBytes = 2 << 20 })
	if got := p.post(t, p.admin+"/admin/reload", ""); got != http.StatusOK {
		t.Fatalf("reload: status %d", got)
	}
	if p.digest(t) == first {
		t.Fatal("the digest did not change")
	}
	if got := p.chat(t); got != http.StatusOK || len(other.Requests()) == 0 {
		t.Fatalf("after the reload: status %d, %d requests on the new engine", got, len(other.Requests()))
	}
	p.stop(t, syscall.SIGTERM, nil)
}

func TestARefusedPlanLeavesTheOldOneInForce(t *testing.T) {
	engine := startEngine(t, "a")
	file := writePlan(t, "", engine.URL(), nil)
	p := start(t, app.Options{Plan: app.PlanSource{File: file}})
	before := p.digest(t)
	f := func(write func()) {
		t.Helper()
		write()
		if got := p.post(t, p.admin+"/admin/reload", ""); got != http.StatusConflict {
			t.Errorf("reload: status %d", got)
		}
		if p.digest(t) != before || p.chat(t) != http.StatusOK {
			t.Error("the old plan is not in force")
		}
	}
	f(func() { overwrite(t, file, []byte("{")) })
	f(func() { overwrite(t, file, nil) })
	f(func() { writePlan(t, file, engine.URL(), func(s *plan.Server) { s.Listen = "127.0.0.1:1" }) })
	f(func() { _ = os.Remove(file) })
	p.stop(t, syscall.SIGINT, nil)
}

func TestHangUpReloads(t *testing.T) {
	engine := startEngine(t, "a")
	file := writePlan(t, "", engine.URL(), nil)
	p := start(t, app.Options{Plan: app.PlanSource{File: file}})
	before := p.digest(t)
	writePlan(t, file, engine.URL(), func(s *plan.Server) { s.MaxBodyBytes = 3 << 20 })
	p.signals <- syscall.SIGHUP
	for p.digest(t) == before {
		time.Sleep(time.Millisecond)
	}
	p.stop(t, syscall.SIGINT, nil)
}

// TestReloadsFailNoRequest replaces the only engine, and with it the plan, under
// requests: each is served by the old engine or by the new one. Some are still
// sending when the plan is replaced.
func TestReloadsFailNoRequest(t *testing.T) {
	url := startEngine(t, "a").URL()
	bodies := []plan.Body{onePlain("a", url), onePlain("b", url)}
	for i, id := range []string{"a", "b"} {
		bodies[i].Models[0].Buckets[0].Groups.Plain.WorkerIDs = &[]string{id}
	}
	file := sealPlan(t, "", bodies[0])
	p := start(t, app.Options{Plan: app.PlanSource{File: file}})
	done := make(chan struct{})
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var body io.Reader = strings.NewReader(chatBody)
				if n == 0 {
					body = &pausing{body: chatBody, pause: 5 * time.Millisecond}
				}
				resp, err := p.client.Post(p.url+"/v1/chat/completions", "application/json", body)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("status %d %s", resp.StatusCode, resp.Header.Get("X-Router-Error-Code"))
					return
				}
			}
		})
	}
	for i := range 100 {
		sealPlan(t, file, bodies[(i+1)%2])
		if got := p.post(t, p.admin+"/admin/reload", ""); got != http.StatusOK {
			t.Errorf("reload: status %d", got)
		}
	}
	close(done)
	clients.Wait()
	p.stop(t, syscall.SIGINT, nil)
}

// pausing is a body that stops for a while after its first byte.
type pausing struct {
	body  string
	pause time.Duration
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.body == "" {
		return 0, io.EOF
	}
	n := copy(b, p.body)
	if p.pause > 0 {
		n = copy(b, p.body[:1])
		time.Sleep(p.pause)
		p.pause = 0
	}
	p.body = p.body[n:]
	return n, nil
}

// TestReloadSignalDoesNotHurryTheDrain: neither the delay nor the requests.
func TestReloadSignalDoesNotHurryTheDrain(t *testing.T) {
	engine := startEngine(t, "a")
	if err := engine.Inject(enginetest.Fault{Kind: enginetest.Slow, Delay: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	p := start(t, app.Options{Plan: app.PlanSource{File: writePlan(t, "", engine.URL(), func(s *plan.Server) {
		s.DrainDelayMS, s.DrainTimeoutMS = 50, 20_000
	})}})
	status := make(chan int, 1)
	go func() {
		resp, err := p.client.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(chatBody))
		if err != nil {
			t.Error(err)
			close(status)
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	for len(engine.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	p.signals <- syscall.SIGTERM
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		for range 30 {
			select {
			case p.signals <- syscall.SIGHUP:
			default: // it stopped already
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if got := <-status; got != http.StatusOK {
		t.Errorf("chat: status %d", got)
	}
	<-hungUp
	p.client.CloseIdleConnections()
	if err := <-p.done; err != nil {
		t.Errorf("stopped with %v", err)
	}
}

func TestReadinessFallsFirst(t *testing.T) {
	engine := startEngine(t, "a")
	file := writePlan(t, "", engine.URL(), func(s *plan.Server) { s.DrainDelayMS = 60_000 })
	p := start(t, app.Options{Plan: app.PlanSource{File: file}})
	if got := p.get(t, p.url+"/readyz"); got != http.StatusOK {
		t.Fatalf("readyz: %d", got)
	}
	p.signals <- syscall.SIGTERM
	for p.get(t, p.url+"/readyz") != http.StatusServiceUnavailable {
		time.Sleep(time.Millisecond)
	}
	resp, err := p.client.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(chatBody))
	if err == nil && !resp.Close {
		t.Error("the client may send more on this connection")
	}
	if got := status(t, resp, err); got != http.StatusOK {
		t.Errorf("chat during the delay: status %d", got)
	}
	p.stop(t, syscall.SIGTERM, nil) // the second signal ends the delay
}

func TestRequestsOutlivingTheDrainAreCutAndSaidSo(t *testing.T) {
	engine := startEngine(t, "a")
	if err := engine.Inject(enginetest.Fault{Kind: enginetest.HangBeforeHead, Times: 1}); err != nil {
		t.Fatal(err)
	}
	file := writePlan(t, "", engine.URL(), func(s *plan.Server) { s.DrainTimeoutMS = 50 })
	p := start(t, app.Options{Plan: app.PlanSource{File: file}})
	var wg sync.WaitGroup
	wg.Go(func() {
		resp, err := p.client.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(chatBody))
		if err == nil {
			resp.Body.Close()
		}
	})
	for len(engine.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	p.stop(t, syscall.SIGINT, func(err error) bool { return err != nil && strings.Contains(err.Error(), "were cut") })
	wg.Wait()
}

// TestAStreamThatTheDrainCutsIsNoClientThatLeft in log and metrics.
func TestAStreamThatTheDrainCutsIsNoClientThatLeft(t *testing.T) {
	f := func(fault enginetest.FaultKind, body string, lines ...string) {
		t.Helper()
		engine := startEngine(t, "a")
		if err := engine.Inject(enginetest.Fault{Kind: fault, Times: 1}); err != nil {
			t.Fatal(err)
		}
		file := writePlan(t, "", engine.URL(), func(s *plan.Server) { s.DrainTimeoutMS = 50 })
		log := new(logLines)
		p := start(t, app.Options{Plan: app.PlanSource{File: file}, Log: log})
		var wg sync.WaitGroup
		answered := make(chan struct{})
		wg.Go(func() {
			resp, err := p.client.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
			close(answered)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // it is cut
				resp.Body.Close()
			}
		})
		if fault == enginetest.HangMidStream {
			<-answered
		}
		for len(engine.Requests()) == 0 {
			time.Sleep(time.Millisecond)
		}
		p.stop(t, syscall.SIGINT, func(err error) bool { return err != nil && strings.Contains(err.Error(), "were cut") })
		wg.Wait()
		for _, want := range lines {
			if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "client_disconnect") || strings.Contains(got, "cancelled") {
				t.Errorf("%s: want %s in\n%s", fault, want, got)
			}
		}
	}
	stream := strings.Replace(chatBody, "{", `{"stream":true,`, 1)
	f(enginetest.HangMidStream, stream, "outcome=shutdown", "stream_outcome=shutdown")
	f(enginetest.HangBeforeHead, chatBody, "outcome=shutdown", "status=503", "code=shutting_down")
}

// logLines is a log that may be read while it is written.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestStartFailures(t *testing.T) {
	engine := startEngine(t, "a")
	f := func(o app.Options, want string) {
		t.Helper()
		o.Log, o.Signals = io.Discard, make(chan os.Signal)
		if err := app.Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a part %q", err, want)
		}
	}
	f(app.Options{Plan: app.PlanSource{File: filepath.Join(t.TempDir(), "none.json")}}, "no such file")
	bad := filepath.Join(t.TempDir(), "bad.json")
	overwrite(t, bad, []byte(`{"format":"shunt.plan/2"}`))
	f(app.Options{Plan: app.PlanSource{File: bad}}, "shunt.plan/2")
	good := writePlan(t, "", engine.URL(), nil)
	f(app.Options{Plan: app.PlanSource{File: good}, Listen: "256.0.0.1:0"}, "client listener")
	f(app.Options{Plan: app.PlanSource{File: good}, Admin: "0.0.0.0:0"}, "not a loopback address")
}

// process is a running app.
type process struct {
	url, admin string
	signals    chan os.Signal
	done       chan error
	client     *http.Client
}

func start(t *testing.T, o app.Options) *process {
	t.Helper()
	p := &process{signals: make(chan os.Signal, 4), done: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	started := make(chan struct{})
	o.Signals = p.signals
	if o.Log == nil {
		o.Log = new(bytes.Buffer)
	}
	o.Started = func(listen, admin string) {
		p.url, p.admin = "http://"+listen, "http://"+admin
		close(started)
	}
	go func() { p.done <- app.Run(context.Background(), o) }()
	select {
	case <-started:
	case err := <-p.done:
		t.Fatal(err)
	}
	return p
}

// stop sends a signal and waits for the end; a nil accept wants no error.
func (p *process) stop(t *testing.T, sig os.Signal, accept func(error) bool) {
	t.Helper()
	p.client.CloseIdleConnections()
	p.signals <- sig
	err := <-p.done
	if accept == nil && err != nil || accept != nil && !accept(err) {
		t.Errorf("stopped with %v", err)
	}
}

const chatBody = `{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":3}`

func (p *process) chat(t *testing.T) int { return p.post(t, p.url+"/v1/chat/completions", chatBody) }

func (p *process) post(t *testing.T, url, body string) int {
	t.Helper()
	resp, err := p.client.Post(url, "application/json", strings.NewReader(body))
	return status(t, resp, err)
}

func (p *process) get(t *testing.T, url string) int {
	t.Helper()
	resp, err := p.client.Get(url)
	return status(t, resp, err)
}

func status(t *testing.T, resp *http.Response, err error) int {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func (p *process) digest(t *testing.T) string {
	t.Helper()
	resp, err := p.client.Get(p.admin + "/admin/plan")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var d plan.Document
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d.Digest
}

func startEngine(t *testing.T, id string) *enginetest.Engine {
	t.Helper()
	e, err := enginetest.Start(enginetest.Options{ID: id, Model: "m", Role: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// writePlan seals a plan of one plain engine, to a new file if name is empty.
func writePlan(t *testing.T, name, url string, edit func(*plan.Server)) string {
	t.Helper()
	body := onePlain("a", url)
	if edit != nil {
		edit(&body.Server)
	}
	return sealPlan(t, name, body)
}

// onePlain is a plan of one engine.
func onePlain(id, url string) plan.Body {
	body := plan.Body{
		Server: plan.Server{
			Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", MaxBodyBytes: 1 << 20,
			RequestTimeoutMS: 5000, ConnectTimeoutMS: 1000, HeaderTimeoutMS: 5000, StreamIdleTimeoutMS: 5000,
			StaleTimeoutMS: 10000, DrainTimeoutMS: 2000, Log: plan.Log{Level: "info", Format: "text"},
		},
		State: plan.State{Load: plan.LoadState{Transport: plan.LoadAuto, PollIntervalMS: 1000, FreshnessMS: 5000}},
		Models: []plan.Model{{
			ID:        "m",
			Breaker:   plan.Breaker{Threshold: 3, CoolDownMS: 1000},
			Discovery: plan.Discovery{Static: &plan.StaticDiscovery{Engines: []plan.Engine{{ID: id, URL: url, Role: plan.Plain}}}},
			Buckets: []plan.Bucket{{ID: "all", Groups: plan.Groups{Plain: &plan.Group{
				Policy: plan.Policy{Type: plan.PowerOfTwo, PowerOfTwo: &plan.PowerOfTwoTuning{Choices: 2}}}}}},
		}},
	}
	m := &body.Models[0]
	m.Breakpoints, _ = plan.Breakpoints(m.Buckets, 100)
	m.Requires = plan.Require(0, m)
	return body
}

func sealPlan(t *testing.T, name string, body plan.Body) string {
	t.Helper()
	if name == "" {
		name = filepath.Join(t.TempDir(), "plan.json")
	}
	d, err := plan.Seal(body, plan.Provenance{Compiler: "test"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := plan.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, name, data)
	return name
}

func overwrite(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(fmt.Errorf("write plan: %w", err))
	}
}
