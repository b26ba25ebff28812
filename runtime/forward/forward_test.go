package forward_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shunt/runtime/fleet"
	"shunt/runtime/forward"
	"shunt/runtime/prepare"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	buffered = `{"model":"m","messages":[]}`
	streamed = `{"model":"m","messages":[],"stream":true}`
)

// observer counts what it is told.
type observer struct {
	mu   sync.Mutex
	seen map[string]int
}

func (o *observer) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = make(map[string]int)
	}
	o.seen[fmt.Sprintf(format, args...)]++
}

func (o *observer) count(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[what]
}

func (o *observer) Engine(e *fleet.Engine, out forward.Outcome) { o.note("engine %s %s", e.ID(), out) }
func (o *observer) FirstToken(string, time.Duration)            { o.note("first token") }
func (o *observer) Stream(e *fleet.Engine, end forward.StreamEnd) {
	o.note("stream %s %s", e.ID(), end)
}
func (o *observer) Abort(reason forward.AbortReason, sent bool) { o.note("abort %s %t", reason, sent) }
func (o *observer) Expired(answered bool)                       { o.note("expired %t", answered) }

// front is a fleet of handmade engines and a forwarder in front of them.
type front struct {
	t     *testing.T
	fwd   *forward.Forwarder
	fleet *fleet.Fleet
	seen  *observer
}

func newFront(t *testing.T, o forward.Options, specs ...fleet.Spec) *front {
	t.Helper()
	f := &front{t: t, fleet: new(fleet.Fleet), seen: new(observer)}
	o.Observer = f.seen
	f.fwd = forward.New(o)
	if err := f.fleet.Apply("m", fleet.BreakerConfig{Threshold: 1, CoolDown: time.Hour}, specs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.close()
		f.fleet.Close()
	})
	return f
}

func (f *front) close() {
	f.t.Helper()
	if err := f.fwd.Close(context.Background()); err != nil {
		f.t.Error(err)
	}
}

func engine(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func (f *front) engine(id string) *fleet.Engine {
	for _, e := range f.fleet.Engines("m") {
		if e.ID() == id {
			return e
		}
	}
	f.t.Fatalf("no engine %s", id)
	return nil
}

// call sends one body; engines are "plain", or "prefill decode".
func (f *front) call(ctx context.Context, body, engines string, t forward.Timeouts) (*httptest.ResponseRecorder, *forward.Call, error) {
	f.t.Helper()
	req := new(prepare.Request)
	if err := req.Parse([]byte(body)); err != nil {
		f.t.Fatal(err)
	}
	c := &forward.Call{Request: req, Timeouts: t}
	if p, d, ok := strings.Cut(engines, " "); ok {
		c.Prefill, c.Decode = f.engine(p), f.engine(d)
	} else {
		c.Plain = f.engine(engines)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/", nil).WithContext(ctx)
	return w, c, f.fwd.Chat(w, r, c)
}

func code(err error) string {
	if e, ok := errors.AsType[*forward.Error](err); ok {
		return fmt.Sprint(e.Status, " ", e.Code)
	}
	return fmt.Sprint(err)
}

func (f *front) idle() {
	f.t.Helper()
	for _, e := range f.fleet.Engines("m") {
		for end := time.Now().Add(10 * time.Second); e.Inflight() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				f.t.Errorf("%s holds %d", e.ID(), e.Inflight())
				break
			}
		}
	}
}

func TestBreakerOpenAtDispatch(t *testing.T) {
	hit := make(chan struct{}, 10)
	url := engine(t, func(http.ResponseWriter, *http.Request) { hit <- struct{}{} })
	f := newFront(t, forward.Options{},
		fleet.Spec{ID: "P", URL: url, Role: fleet.Prefill}, fleet.Spec{ID: "D", URL: url, Role: fleet.Decode})
	try := func(broken string) {
		t.Helper()
		f.engine(broken).ForceFailures(1)
		_, c, err := f.call(context.Background(), buffered, "P D", forward.Timeouts{})
		if code(err) != "503 breaker_open" || c.Report.Outcome != "" {
			t.Errorf("%s: %s, %+v", broken, code(err), c.Report)
		}
		if f.engine("P").Inflight() != 0 || f.engine("D").Inflight() != 0 {
			t.Errorf("%s: a lease is held", broken)
		}
	}
	try("D")
	try("P")
	if len(hit) != 0 {
		t.Error("an engine was called")
	}
}

func TestTimestampedLeases(t *testing.T) {
	var f *front
	recent := make(chan int64, 2)
	url := engine(t, func(http.ResponseWriter, *http.Request) { recent <- f.engine("E").Load().Recent() })
	f = newFront(t, forward.Options{}, fleet.Spec{ID: "E", URL: url, Role: fleet.Plain})
	f.engine("E").SetLoad(&fleet.Load{CapturedAt: time.Now().Add(-time.Second)})
	for _, stamped := range []bool{false, true} {
		req := new(prepare.Request)
		if err := req.Parse([]byte(buffered)); err != nil {
			t.Fatal(err)
		}
		c := &forward.Call{Plain: f.engine("E"), Request: req, Timestamped: stamped}
		if err := f.fwd.Chat(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil), c); err != nil {
			t.Fatal(err)
		}
		if got := <-recent == 1; got != stamped {
			t.Errorf("stamped %t, counted %t", stamped, got)
		}
	}
	if got := f.engine("E").Load().Recent(); got != 0 {
		t.Errorf("%d slots are held", got)
	}
}

func TestUnusableURL(t *testing.T) {
	f := newFront(t, forward.Options{}, fleet.Spec{ID: "E", URL: "http://[::1", Role: fleet.Plain})
	w, c, err := f.call(context.Background(), buffered, "E", forward.Timeouts{})
	if code(err) != "503 worker_misconfigured" || c.Report.Outcome != forward.Failed || f.engine("E").Admits() || w.Body.Len() != 0 {
		t.Errorf("%s, %+v, admits %t", code(err), c.Report, f.engine("E").Admits())
	}
}

func TestAnswerTooLarge(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 101)) })
	f := newFront(t, forward.Options{MaxAnswerBytes: 100}, fleet.Spec{ID: "E", URL: url, Role: fleet.Plain})
	_, _, err := f.call(context.Background(), buffered, "E", forward.Timeouts{})
	if e, ok := errors.AsType[*forward.Error](err); !ok || e.Code != "upstream_body_incomplete" || e.Upstream != 200 {
		t.Errorf("got %v", err)
	}
	f.idle()
}

// TestUnknownBootstrapPort: the field is null, never absent.
func TestUnknownBootstrapPort(t *testing.T) {
	bodies := make(chan string, 2)
	url := engine(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- string(b)
	})
	f := newFront(t, forward.Options{Rand: func() uint64 { return 1<<64 - 1 }},
		fleet.Spec{ID: "P", URL: url, Role: fleet.Prefill}, fleet.Spec{ID: "D", URL: url, Role: fleet.Decode})
	if _, c, err := f.call(context.Background(), buffered, "P D", forward.Timeouts{}); err != nil || c.Report.RID != strings.Repeat("f", 32) {
		t.Errorf("%v %+v", err, c.Report)
	}
	const want = `"bootstrap_host":"127.0.0.1","bootstrap_port":null,"bootstrap_room":9223372036854775807}`
	for range 2 {
		if b := <-bodies; !strings.HasSuffix(b, want) {
			t.Error(b)
		}
	}
	f.idle()
}

// TestClose: a prefill leg that outlives its request is waited for, and cancelled
// when the patience ends; afterwards pairs are refused.
func TestClose(t *testing.T) {
	arrived := make(chan struct{}, 1)
	prefill := engine(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	decode := engine(t, func(w http.ResponseWriter, r *http.Request) { <-arrived; io.WriteString(w, "{}") })
	f := newFront(t, forward.Options{},
		fleet.Spec{ID: "P", URL: prefill, Role: fleet.Prefill}, fleet.Spec{ID: "D", URL: decode, Role: fleet.Decode})
	w, _, err := f.call(context.Background(), buffered, "P D", forward.Timeouts{})
	if err != nil || w.Body.String() != "{}" || f.engine("P").Inflight() != 1 || f.engine("D").Inflight() != 0 {
		t.Fatalf("%v %q", err, w.Body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := f.fwd.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	if f.engine("P").Inflight() != 0 || f.seen.count("engine P shutdown") != 1 || !f.engine("P").Admits() {
		t.Errorf("the leg goes on: %v", f.seen.seen)
	}
	if _, _, err := f.call(context.Background(), buffered, "P D", forward.Timeouts{}); code(err) != "503 shutting_down" {
		t.Errorf("after close: %s", code(err))
	}
	f.idle()
}

// TestAborts: only so many run or wait; the rest is dropped and counted.
func TestAborts(t *testing.T) {
	release := make(chan struct{})
	var mu sync.Mutex
	var now, most int
	url := engine(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/abort_request" {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-release
		mu.Lock()
		now--
		mu.Unlock()
	})
	f := newFront(t, forward.Options{MaxAborts: 1, AbortTimeout: 10 * time.Second}, fleet.Spec{ID: "E", URL: url, Role: fleet.Plain})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			if _, _, err := f.call(ctx, buffered, "E", forward.Timeouts{}); err != forward.ErrClientGone {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	sent, dropped := f.seen.count("abort handler_cancelled true"), f.seen.count("abort handler_cancelled false")
	if sent != 17 || dropped != 23 {
		t.Errorf("sent %d, dropped %d", sent, dropped)
	}
	close(release)
	f.idle()
	f.close()
	if most != 1 {
		t.Errorf("%d aborts at the same time", most)
	}
}

func TestNeverReached(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	s.Close()
	f := newFront(t, forward.Options{}, fleet.Spec{ID: "E", URL: url, Role: fleet.Plain})
	if _, _, err := f.call(context.Background(), streamed, "E", forward.Timeouts{}); code(err) != "502 upstream_unreachable" {
		t.Errorf("got %s", code(err))
	}
	if f.seen.count("abort transport_error true") != 0 {
		t.Error("an abort was sent to an engine that knows nothing")
	}
	if f.engine("E").Admits() {
		t.Error("the breaker did not notice")
	}
}

// TestRedirectsAndProxies are left alone.
func TestRedirectsAndProxies(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(307)
	})
	f := newFront(t, forward.Options{}, fleet.Spec{ID: "E", URL: url, Role: fleet.Plain})
	w, _, err := f.call(context.Background(), buffered, "E", forward.Timeouts{})
	if err != nil || w.Code != 307 || w.Header().Get("Location") != "" || !f.engine("E").Admits() {
		t.Errorf("%v %d %v", err, w.Code, w.Header())
	}
}

func BenchmarkRelay(b *testing.B) {
	chunk := "data: " + strings.Repeat("x", 200) + "\n\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range b.N {
			io.WriteString(w, chunk)
			w.(http.Flusher).Flush()
		}
	}))
	defer s.Close()
	var fl fleet.Fleet
	defer fl.Close()
	if err := fl.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{{ID: "E", URL: s.URL, Role: fleet.Plain}}); err != nil {
		b.Fatal(err)
	}
	fwd := forward.New(forward.Options{})
	defer fwd.Close(context.Background())
	req := new(prepare.Request)
	if err := req.Parse([]byte(streamed)); err != nil {
		b.Fatal(err)
	}
	c := &forward.Call{Plain: fl.Engines("m")[0], Request: req, Timeouts: forward.Timeouts{StreamIdle: time.Minute, Stale: time.Hour}}
	b.ReportAllocs()
	b.ResetTimer()
	if err := fwd.Chat(discard{}, httptest.NewRequest("POST", "/", nil), c); err != nil {
		b.Fatal(err)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}
