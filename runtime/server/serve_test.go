package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shunt/runtime/enginetest"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/server"
)

func TestPlainAnswer(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	a := r.chat(bufferedChat)
	if a.String() != "200 ok" || a.header.Get("Content-Type") != "application/json" || !strings.Contains(a.body, `"choices"`) {
		t.Errorf("buffered: %s %v %s", a, a.header, a.body)
	}
	if got := a.header.Get("X-Shunt-Decision"); got != "bucket=b; plain=P; plain-reason=round_robin" {
		t.Errorf("decision %q", got)
	}
	a = r.chat(streamedChat)
	if a.String() != "200 ok" || a.header.Get("Content-Type") != "text/event-stream" || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
		t.Errorf("streamed: %s %v %s", a, a.header, a.body)
	}
	r.settle()
	for series, want := range map[string]string{
		`shunt_requests_total{route="/v1/chat/completions",method="POST"}`:                 "2",
		`shunt_responses_total{route="/v1/chat/completions",method="POST",status="200"}`:   "2",
		`shunt_engine_requests_total{model="m",engine="P",role="plain",outcome="success"}`: "2",
		`shunt_stream_outcome_total{model="m",engine="P",outcome="ok"}`:                    "1",
		`shunt_request_duration_seconds_count{model="m"}`:                                  "2",
		`shunt_ttft_seconds_count{model="m"}`:                                              "1",
		`shunt_policy_decisions_total{stage="plain",reason="round_robin"}`:                 "2",
		`shunt_engine_inflight_requests{model="m",engine="P",role="plain"}`:                "0",
		`shunt_engine_health{model="m",engine="P",role="plain"}`:                           "1",
		`shunt_engine_breaker_state{model="m",engine="P",role="plain"}`:                    "0",
		`shunt_engines{model="m",role="plain"}`:                                            "1",
		`shunt_ready`:                                                                      "1",
		`shunt_plan_info{digest="sha256:0"}`:                                               "1",
	} {
		if got := r.metric(series); got != want {
			t.Errorf("%s: got %q, want %s", series, got, want)
		}
	}
}

// TestPairBodies checks what the engines of a pair receive.
func TestPairBodies(t *testing.T) {
	r := newRig(t, pairOptions()...)
	defer r.close()
	body := `{"bootstrap_room":7,"model":"m","bootstrap_host":"evil","messages":[{"role":"user","content":"hello"}],"max_tokens":4,"bootstrap_port":1,"routed_dp_rank":3}`
	a := r.chat(body, "Authorization", "Bearer x", "X-Sgl-Decode-Url", "http://evil", "X-Request-Id", "mine", "Cookie", "c=1")
	if a.String() != "200 ok" || a.header.Get("X-Request-Id") != "mine" || r.leaks(a) {
		t.Fatalf("%s %v %s", a, a.header, a.body)
	}
	if got := a.header.Get("X-Shunt-Decision"); got != "bucket=b; prefill=P; prefill-reason=round_robin; decode=D; decode-reason=round_robin" {
		t.Errorf("decision %q", got)
	}
	r.settle()
	p, d := r.engines[enginetest.Prefill].Requests()[0], r.engines[enginetest.Decode].Requests()[0]
	if string(p.Body) != string(d.Body) {
		t.Errorf("bodies differ:\n%s\n%s", p.Body, d.Body)
	}
	var got map[string]any
	if err := json.Unmarshal(d.Body, &got); err != nil {
		t.Fatal(err)
	}
	if got["bootstrap_host"] != "127.0.0.1" || got["bootstrap_port"] != float64(r.engines[enginetest.Prefill].BootstrapPort()) ||
		got["bootstrap_room"] == float64(7) || got["routed_dp_rank"] != nil {
		t.Errorf("bootstrap: %s", d.Body)
	}
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(d.RID) {
		t.Errorf("rid %q", d.RID)
	}
	for _, e := range []enginetest.Request{p, d} {
		want := map[string]string{"Authorization": "Bearer x", "X-Sgl-Decode-Url": r.engines[enginetest.Decode].URL(),
			"X-Request-Id": "mine", "Cookie": "", "Content-Type": "application/json", "User-Agent": ""}
		for name, v := range want {
			if got := e.Header.Get(name); got != v {
				t.Errorf("%s: got %q, want %q", name, got, v)
			}
		}
	}
}

// handmade is a rig whose engines are one handler.
func handmade(t *testing.T, h http.HandlerFunc) (*rig, func()) {
	t.Helper()
	engine := httptest.NewServer(h)
	r := newRig(t)
	if err := r.fleet.Apply("m", fleet.BreakerConfig{Threshold: 3, CoolDown: time.Hour},
		[]fleet.Spec{{ID: "H", URL: engine.URL, Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	return r, func() { r.close(); engine.Close() }
}

// TestStreamBytes relays what no parser would like, byte for byte and chunk for
// chunk: a chunk is seen before the next one is written.
func TestStreamBytes(t *testing.T) {
	chunks := []string{"data: {\"a\":1}\n\n", ": ping\n", "\n", "data: {\"err", "or\":1}\r\n\r\n", "\x00\xff\xfe", strings.Repeat("x", 100_000), "data: [DONE]\n\n"}
	seen := make(chan struct{})
	r, end := handmade(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Server", "engine")
		for _, c := range chunks {
			io.WriteString(w, c)
			w.(http.Flusher).Flush()
			<-seen
		}
	})
	defer end()
	resp, err := r.client.Post(r.http.URL+"/v1/chat/completions", "", strings.NewReader(streamedChat))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Server") != "" {
		t.Errorf("header %v", resp.Header)
	}
	for _, c := range chunks {
		got := make([]byte, len(c))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != c {
			t.Fatalf("got %.50q, %v; want %.50q", got, err, c)
		}
		seen <- struct{}{}
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	if !within(5*time.Second, func() bool {
		return r.metric(`shunt_stream_outcome_total{model="m",engine="H",outcome="stream_error_event"}`) == "1"
	}) {
		t.Errorf("outcome:\n%s", r.get("/metrics").body)
	}
}

// TestStreamsDoNotMix runs several streams at the same time over one pool of
// buffers and connections.
func TestStreamsDoNotMix(t *testing.T) {
	r, end := handmade(t, func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		var in struct{ User string }
		if err := json.Unmarshal(b, &in); err != nil {
			w.WriteHeader(500)
		}
		for i := range 50 {
			fmt.Fprintf(w, "data: {\"%s\":%d}\n\n", in.User, i)
			w.(http.Flusher).Flush()
		}
	})
	defer end()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			user := fmt.Sprintf("user-%d", n)
			for range 5 {
				a, err := r.post(context.Background(), fmt.Sprintf(`{"model":"m","stream":true,"user":%q}`, user))
				if err != nil || a.cut || strings.Count(a.body, user) != 50 || strings.Count(a.body, "user-") != 50 {
					t.Errorf("%s: %v %s", user, err, a.body)
				}
			}
		})
	}
	wg.Wait()
	r.settle()
}

// leave opens a request and leaves: before the head if early, otherwise after
// the first bytes of the stream.
func (r *rig) leave(body string, early bool, header ...string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if early {
		go func() {
			within(10*time.Second, func() bool {
				for _, e := range r.engines {
					// A prefill engine that runs has met its decode engine.
					if s := e.State(); s.Received == 0 || e.Role() == enginetest.Prefill && s.Running == 0 {
						return false
					}
				}
				return true
			})
			cancel()
		}()
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if early {
		r.t.Error("an answer came")
	}
	if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
		r.t.Error(err)
	}
}

func TestClientLeaves(t *testing.T) {
	const auth = "Bearer secret"
	long := func(s string) string { return strings.Replace(s, `"max_tokens":8`, `"max_tokens":100000`, 1) }
	f := func(name, body string, early bool, aborts int, series string) {
		t.Helper()
		r := newRig(t, enginetest.Options{InterToken: 5 * time.Millisecond, OutputTokens: 100_000})
		defer r.close()
		r.leave(body, early, "Authorization", auth)
		r.settle()
		e := r.engines[enginetest.Plain]
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := e.Wait(ctx, enginetest.State.Idle); err != nil {
			t.Errorf("%s: the engine goes on: %+v", name, e.State())
		}
		if !within(5*time.Second, func() bool { return len(e.AbortedRIDs()) >= aborts }) || len(e.AbortedRIDs()) != aborts {
			t.Errorf("%s: aborted %q, want %d", name, e.AbortedRIDs(), aborts)
		}
		if got := r.metric(series); got != "1" {
			t.Errorf("%s: %s is %q", name, series, got)
		}
		for _, q := range e.Requests() {
			if got := e.AbortedRIDs(); aborts == 1 && len(got) == 1 && q.RID != got[0] {
				t.Errorf("%s: aborted %q, sent %q", name, e.AbortedRIDs(), q.RID)
			}
		}
	}
	f("stream", long(streamedChat), false, 1, `shunt_aborts_total{reason="stream_client_gone",sent="true"}`)
	f("buffered", long(bufferedChat), true, 1, `shunt_aborts_total{reason="handler_cancelled",sent="true"}`)
	f("caller's rid", strings.Replace(long(streamedChat), "{", `{"rid":"mine",`, 1), false, 0, `shunt_aborts_total{reason="stream_client_gone",sent="false"}`)
	f("several", strings.Replace(long(bufferedChat), "{", `{"n":2,`, 1), true, 0, `shunt_aborts_total{reason="handler_cancelled",sent="false"}`)
}

func TestAbortReplaysAuthorization(t *testing.T) {
	got := make(chan string, 1)
	r, end := handmade(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/abort_request" {
			b, _ := io.ReadAll(req.Body)
			got <- req.Header.Get("Authorization") + " " + string(b)
			return
		}
		io.WriteString(w, "data: {}\n\n")
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	})
	defer end()
	r.leave(streamedChat, false, "Authorization", "Bearer secret")
	if s := <-got; !regexp.MustCompile(`^Bearer secret \{"rid": "[0-9a-f]{32}", "abort_all": false\}$`).MatchString(s) {
		t.Error(s)
	}
	r.settle()
}

// TestClientLeavesPair: the decode leg ends at once, the prefill leg is neither
// aborted nor left for ever.
func TestClientLeavesPair(t *testing.T) {
	o := pairOptions()
	o[0].PrefillTokensPerSecond = 20
	r := newRig(t, o...)
	defer r.close()
	r.replan(func(g *server.Generation) { g.Settings.Timeouts.Stale = 5 * time.Second })
	r.leave(streamedChat, true)
	r.settle()
	decode := r.engines[enginetest.Decode]
	if !within(5*time.Second, func() bool { return len(decode.AbortedRIDs()) == 1 }) {
		t.Errorf("decode aborts %q", decode.AbortedRIDs())
	}
	if got := r.metric(`shunt_aborts_total{reason="decode_failed",sent="true"}`); got != "" {
		t.Errorf("the prefill leg was given up")
	}
	if got := r.metric(`shunt_engine_requests_total{model="m",engine="D",role="decode",outcome="cancelled"}`); got != "1" {
		t.Errorf("decode outcome: %s", r.get("/metrics").body)
	}
	if got := r.engines[enginetest.Prefill].AbortedRIDs(); len(got) != 0 {
		t.Errorf("prefill aborts %q", got)
	}
}

// TestPrefillFailsDuringStream: until the first token a failed prefill leg cuts
// the stream whose head is out; after it the stream goes on.
func TestPrefillFailsDuringStream(t *testing.T) {
	f := func(first, want, decodeOutcome, blamed, end string) {
		t.Helper()
		told := make(chan struct{})
		decode := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/v1/chat/completions" {
				return
			}
			io.Copy(io.Discard, req.Body)
			io.WriteString(w, first)
			w.(http.Flusher).Flush()
			select {
			case <-told: // the client has seen what there was
			case <-req.Context().Done():
				return
			}
			io.WriteString(w, "data: [DONE]\n\n")
		}))
		defer decode.Close()
		fail := make(chan struct{})
		prefill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			io.Copy(io.Discard, req.Body)
			<-fail
			w.WriteHeader(400)
		}))
		defer prefill.Close()
		r := newRig(t)
		defer r.close()
		if err := r.fleet.Apply("m", fleet.BreakerConfig{Threshold: 1, CoolDown: time.Hour}, []fleet.Spec{
			{ID: "P", URL: prefill.URL, Role: fleet.Prefill}, {ID: "D", URL: decode.URL, Role: fleet.Decode}}); err != nil {
			t.Fatal(err)
		}
		res := r.resolver(true)
		r.replan(func(g *server.Generation) { g.Models = map[string]*server.Model{"m": {Resolver: res}} })
		resp, err := r.client.Post(r.http.URL+"/v1/chat/completions", "", strings.NewReader(streamedChat))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got := make([]byte, len(first))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != first {
			t.Fatalf("got %q, %v", got, err)
		}
		close(fail)
		within(10*time.Second, func() bool { return r.spec(fleet.Prefill).Inflight() == 0 })
		close(told)
		_, err = io.ReadAll(resp.Body)
		if a := (answer{status: resp.StatusCode, header: resp.Header, cut: err != nil}); a.String() != want {
			t.Errorf("%q: got %s, want %s", first, a, want)
		}
		r.settle()
		for _, series := range []string{
			`shunt_engine_requests_total{model="m",engine="P",role="prefill",outcome="client_error"}`,
			`shunt_engine_requests_total{model="m",engine="D",role="decode",outcome="` + decodeOutcome + `"}`,
			`shunt_stream_outcome_total{model="m",engine="` + blamed + `",outcome="` + end + `"}`,
		} {
			if !within(5*time.Second, func() bool { return r.metric(series) == "1" }) {
				t.Errorf("%q: %s is %q", first, series, r.metric(series))
			}
		}
		if !r.spec(fleet.Decode).Admits() || !r.spec(fleet.Prefill).Admits() {
			t.Errorf("%q: a breaker opened", first)
		}
	}
	f("", "200 cut", "cancelled", "P", "upstream_error")
	f(": ping\n\n", "200 cut", "cancelled", "P", "upstream_error")
	f("data: {\"error\":{}}\n\n", "200 cut", "cancelled", "P", "upstream_error")
	f("data: {}\n\n", "200 ok", "success", "D", "ok")
}

func TestStaleLimit(t *testing.T) {
	f := func(role enginetest.Role, kind enginetest.FaultKind, body, want, phase string) {
		t.Helper()
		r := rigFor(t, role)
		defer r.close()
		r.replan(func(g *server.Generation) { g.Settings.Timeouts.Stale = 300 * time.Millisecond })
		r.inject(role, enginetest.Fault{Kind: kind})
		a := r.chat(body)
		if a.String() != want {
			t.Errorf("%s %s: got %s, want %s", role, kind, a, want)
		}
		r.settle()
		if got := r.metric(`shunt_stale_requests_total{phase="` + phase + `"}`); got != "1" {
			t.Errorf("%s %s: phase %q", role, kind, got)
		}
	}
	f(enginetest.Plain, enginetest.HangBeforeHead, bufferedChat, "504 stale_request_expired", "before_head")
	f(enginetest.Plain, enginetest.HangBeforeHead, streamedChat, "504 stale_request_expired", "before_head")
	f(enginetest.Plain, enginetest.HangMidStream, streamedChat, "200 cut", "streaming")
	f(enginetest.Decode, enginetest.HangMidStream, streamedChat, "200 cut", "streaming")
	f(enginetest.Prefill, enginetest.HangBeforeHead, bufferedChat, "504 stale_request_expired", "before_head")
}

// TestClientThatDoesNotRead holds its engine no longer than the stale limit.
func TestClientThatDoesNotRead(t *testing.T) {
	r, end := handmade(t, func(w http.ResponseWriter, req *http.Request) {
		for line := "data: {\"" + strings.Repeat("x", 64<<10) + "\":1}\n\n"; req.Context().Err() == nil; {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	})
	defer end()
	r.replan(func(g *server.Generation) { g.Settings.Timeouts.Stale = 300 * time.Millisecond })
	conn, err := net.Dial("tcp", r.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(streamedChat), streamedChat)
	if _, err := bufio.NewReaderSize(conn, 16).ReadByte(); err != nil {
		t.Fatal(err)
	}
	r.settle()
}

func TestBreaker(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	for _, status := range []int{503, 429, 400} {
		r.inject(enginetest.Plain, enginetest.Fault{Kind: enginetest.Status, Status: status, Times: 20})
		for range 20 {
			if a := r.chat(bufferedChat); a.String() != fmt.Sprintf("%d verbatim", status) || a.header.Get("Retry-After") != "" {
				t.Fatalf("%s %v", a, a.header)
			}
		}
	}
	r.inject(enginetest.Plain, enginetest.Fault{Kind: enginetest.Status, Status: 500, Times: 3})
	for range 3 {
		r.chat(bufferedChat)
	}
	a := r.chat(bufferedChat)
	if a.String() != "503 no_healthy_workers" || a.header.Get("Retry-After") != "1" ||
		a.header.Get("X-Shunt-Decision") != "error=no_candidates; stage=plain" {
		t.Errorf("%s %v", a, a.header)
	}
	if got := r.get("/readyz").status; got != 503 {
		t.Errorf("readyz %d", got)
	}
	if r.metric(`shunt_engine_health{model="m",engine="P",role="plain"}`) != "0" ||
		r.metric(`shunt_engine_breaker_state{model="m",engine="P",role="plain"}`) != "1" ||
		r.metric(`shunt_selection_failures_total{kind="no_candidates",stage="plain"}`) != "1" {
		t.Error(r.get("/metrics").body)
	}
}

// script is a policy that answers what it is told.
type script func() (policy.Pick, error)

func (s script) Pick(context.Context, []*fleet.Engine, *policy.Request) (policy.Pick, error) {
	return s()
}

func TestSelectionFailures(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	group := r.gen.Models["m"].Resolver.Buckets[0].Groups.(routing.PlainGroups).Plain
	f := func(err error, want, kind string) {
		t.Helper()
		group.Policy = script(func() (policy.Pick, error) { return policy.Pick{}, err })
		a := r.chat(bufferedChat)
		gotKind, code, message := envelope(t, a)
		if a.String() != want || code != a.code() || gotKind != kind || strings.Contains(message, "secret") {
			t.Errorf("got %s %s %q, want %s %s", a, gotKind, message, want, kind)
		}
		if a.header.Get("Content-Type") != "application/json" || (a.header.Get("Retry-After") == "1") != (a.status == 503) {
			t.Errorf("%s: %v", want, a.header)
		}
	}
	e := func(k policy.Kind, stage fleet.Role) error {
		return &policy.Error{Kind: k, Stage: stage, Detail: "secret"}
	}
	f(e(policy.NoCandidates, fleet.Prefill), "503 no_prefill_workers_available", "server_error")
	f(e(policy.NoCandidates, fleet.Decode), "503 no_decode_workers_available", "server_error")
	f(e(policy.NoCandidates, 0), "503 no_healthy_workers", "server_error")
	f(e(policy.NoAdmissibleEngine, 0), "503 policy_selection_failed", "server_error")
	f(e(policy.AdmissionRejected, 0), "503 policy_selection_failed", "server_error")
	f(e(policy.InvalidSignal, 0), "500 internal_error", "server_error")
	f(e(policy.InvalidConfiguration, 0), "500 internal_error", "server_error")
	f(nil, "500 internal_error", "server_error") // an engine outside the candidates
	f(fmt.Errorf("secret"), "500 internal_error", "server_error")
	group.Policy = script(func() (policy.Pick, error) { panic("secret") })
	if a := r.chat(bufferedChat); a.String() != "500 internal_error" || strings.Contains(a.body, "secret") {
		t.Errorf("panic: %s %s", a, a.body)
	}
	if r.metric("shunt_panics_total") != "1" || !strings.Contains(r.log.String(), "handler panicked") {
		t.Error("the panic went unnoticed")
	}
}

// TestRejectionsAreCounted of a bucket that was given up for the next one, and of
// a request that no bucket took.
func TestRejectionsAreCounted(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	res := r.gen.Models["m"].Resolver
	open := res.Buckets[0]
	full := *open
	group := *open.Groups.(routing.PlainGroups).Plain
	group.Policy = &policy.Random{IntN: func(int) int { return 0 }, Admission: &policy.Limits{Inflight: policy.Max(0)}}
	full.ID, full.Groups = "full", routing.PlainGroups{Plain: &group}
	f := func(want, counted string, buckets ...*routing.Bucket) {
		t.Helper()
		next := *res
		next.Buckets = buckets
		next.Breakpoints = []routing.Breakpoint{{Runs: []routing.Run{{0, len(buckets) - 1}}}}
		r.modify(func(m *server.Model) { m.Resolver = &next })
		if a := r.chat(bufferedChat); a.String() != want {
			t.Errorf("got %s, want %s", a, want)
		}
		if got := r.metric(`shunt_admission_rejections_total{limit="max_inflight_requests"}`); got != counted {
			t.Errorf("%s: %s rejections, want %s", want, got, counted)
		}
	}
	f("200 ok", "1", &full, open)
	f("200 ok", "1", open, &full)
	f("503 policy_selection_failed", "2", &full)
	f("503 policy_selection_failed", "4", &full, &full)
}

func TestRequestErrors(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	f := func(body, want, message string) {
		t.Helper()
		a := r.chat(body)
		kind, _, got := envelope(t, a)
		if a.String() != want || got != message || kind != "invalid_request_error" {
			t.Errorf("%.80s:\ngot  %s %q\nwant %s %q", body, a, got, want, message)
		}
	}
	const notObject = "bad request: invalid request: body must be a JSON object"
	f(``, "400 bad_request", notObject)
	f(`[]`, "400 bad_request", notObject)
	f(`{"model":"m","stream":"yes"}`, "400 bad_request", notObject)
	f(`{"model":"m","model":"m"}`, "400 bad_request", notObject)
	f(`{}`, "400 bad_request", "bad request: missing `model` field")
	f(`{"model":null}`, "400 bad_request", "bad request: missing `model` field")
	f(`{"model":"x"}`, "404 model_not_found", "model not found: x")
	f(`{"model":"x","max_tokens":18446744073709551615}`, "404 model_not_found", "model not found: x")
	f(`{"model":"`+strings.Repeat("é", 200)+`"}`, "404 model_not_found", "model not found: "+strings.Repeat("é", 128)+"...")
	f(`{"model":"m","max_tokens":18446744073709551615}`, "400 bad_request", "bad request: input and output token counts overflow")
	f(`{"model":"m","max_tokens":99999999}`, "400 bad_request", "bad request: no bucket supports the requested token length")
}

func TestPathsAndMethods(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	f := func(method, path, want, allow string) {
		t.Helper()
		req, err := http.NewRequest(method, r.http.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := r.do(req)
		if err != nil {
			t.Fatal(err)
		}
		if a.String() != want || a.header.Get("Allow") != allow {
			t.Errorf("%s %s: got %s %q", method, path, a, a.header.Get("Allow"))
		}
	}
	f("GET", "/v1/chat/completions", "405 method_not_allowed", "OPTIONS, POST")
	f("OPTIONS", "/v1/chat/completions", "200 ok", "OPTIONS, POST")
	f("DELETE", "/v1/models", "405 method_not_allowed", "GET, HEAD, OPTIONS")
	f("HEAD", "/readyz", "200 ok", "")
	f("HEAD", "/v1/models", "200 ok", "")
	f("HEAD", "/v1/models/m", "200 ok", "")
	f("GET", "/v1/models/x", "404 model_not_found", "")
	f("GET", "/v1/models/", "404 not_found", "")
	f("GET", "/v1/models/m/", "404 model_not_found", "")
	f("POST", "/v1/models/m", "405 method_not_allowed", "GET, HEAD, OPTIONS")
	f("POST", "/v1/chat/completions/", "404 not_found", "")
	f("GET", "/admin/plan", "404 not_found", "")
	f("GET", "/nowhere", "404 not_found", "")
	f("GET", "/healthz", "200 ok", "")
	f("GET", "/readyz", "200 ok", "")
	if a := r.get("/v1/models"); a.body != `{"object":"list","data":[{"id":"m","object":"model","owned_by":"sglang"}]}` {
		t.Error(a.body)
	}
	r.replan(func(g *server.Generation) {
		g.Models = map[string]*server.Model{"m": g.Models["m"], "org/m 2": g.Models["m"]}
	})
	for path, id := range map[string]string{"/v1/models/m": "m", "/v1/models/org/m%202": "org/m 2", "/v1/models/org%2Fm%202": "org/m 2"} {
		if a := r.get(path); a.body != `{"id":"`+id+`","object":"model","owned_by":"sglang"}` {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if got := r.metric(`shunt_responses_total{route="/v1/models/{id}",method="GET",status="200"}`); got != "3" {
		t.Errorf("models are counted %q", got)
	}
	if got := r.metric(`shunt_responses_total{route="other",method="GET",status="404"}`); got != "1" {
		t.Errorf("/nowhere is counted %q", got)
	}
}

func TestBodyLimit(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	r.replan(func(g *server.Generation) { g.Settings.MaxBody = 256 << 10 })
	body := func(n int) string {
		return bufferedChat + strings.Repeat(" ", n-len(bufferedChat))
	}
	f := func(n int, chunked bool, want string) {
		t.Helper()
		var src io.Reader = strings.NewReader(body(n))
		if chunked {
			src = io.MultiReader(src)
		}
		req, err := http.NewRequest("POST", r.http.URL+"/v1/chat/completions", src)
		if err != nil {
			t.Fatal(err)
		}
		a, err := r.do(req)
		if err != nil || a.String() != want {
			t.Errorf("%d bytes, chunked %t: %v %s", n, chunked, err, a)
		}
		if a.status == 413 {
			if kind, code, _ := envelope(t, a); kind != "invalid_request_error" || code != "request_too_large" {
				t.Errorf("envelope %s", a.body)
			}
		}
	}
	for _, chunked := range []bool{false, true} {
		f(1000, chunked, "200 ok")
		f(64<<10, chunked, "200 ok")
		f(256<<10, chunked, "200 ok")
		f(256<<10+1, chunked, "413 request_too_large")
		f(450<<10, chunked, "413 request_too_large")
	}
	for _, q := range r.engines[enginetest.Plain].Requests() {
		if !strings.HasPrefix(string(q.Body), `{"model":"m","messages"`) || !strings.Contains(string(q.Body), `"rid":"`) {
			t.Errorf("%.200s", q.Body)
		}
	}
}

// TestSlowBody: a body that never comes ends by the request limit, and one that
// asks first is not made to send what is refused.
func TestSlowBody(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	r.replan(func(g *server.Generation) { g.Settings.Timeouts.Request = 200 * time.Millisecond })
	f := func(head, want string) {
		t.Helper()
		conn, err := net.Dial("tcp", r.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"+head+"\r\n{")
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || strings.TrimSpace(line) != want {
			t.Errorf("%q: got %q, %v", head, line, err)
		}
	}
	f("Content-Length: 100\r\n", "HTTP/1.1 408 Request Timeout")
	f("Content-Length: 100000000\r\nExpect: 100-continue\r\n", "HTTP/1.1 413 Request Entity Too Large")
}

// TestRefusedBodyIsReadOn: a body that is not wanted is taken in, so that the
// refusal is not lost by a connection reset.
func TestRefusedBodyIsReadOn(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	r.replan(func(g *server.Generation) { g.Settings.MaxBody = 1 << 20 })
	f := func(request string, size int, want string) {
		t.Helper()
		conn, err := net.Dial("tcp", r.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", request, size)
		if _, err := conn.Write(make([]byte, size)); err != nil {
			t.Errorf("%s: %v", request, err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+want) {
			t.Errorf("%s: got %.50q, %v", request, answer, err)
		}
	}
	f("POST /v1/chat/completions", 3<<19, "413 ")
	f("POST /v1/completions", 200<<10, "404 ")
	f("PUT /v1/chat/completions", 200<<10, "405 ")
}

func TestRequestIDs(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	minted := regexp.MustCompile(`^chatcmpl-[0-9A-Za-z]{24}$`)
	f := func(sent string, kept bool) {
		t.Helper()
		a := r.chat(bufferedChat, "X-Request-Id", sent)
		got := a.header.Get("X-Request-Id")
		if kept && got != sent || !kept && !minted.MatchString(got) {
			t.Errorf("%q became %q", sent, got)
		}
		all := r.engines[enginetest.Plain].Requests()
		if e := all[len(all)-1].Header.Get("X-Request-Id"); e != got {
			t.Errorf("the engine got %q, the client %q", e, got)
		}
	}
	f("abc-123", true)
	f(strings.Repeat("a", 128), true)
	f(strings.Repeat("a", 129), false)
	f("a b", false)
	f("é", false)
	f("", false)
	req, err := http.NewRequest("POST", r.http.URL+"/v1/chat/completions", strings.NewReader(bufferedChat))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["X-Request-Id"] = []string{"one", "two"}
	if a, err := r.do(req); err != nil || !slices.Equal(a.header["X-Request-Id"], []string{"one"}) {
		t.Errorf("two ids became %q, %v", a.header["X-Request-Id"], err)
	}
	all := r.engines[enginetest.Plain].Requests()
	if got := all[len(all)-1].Header["X-Request-Id"]; !slices.Equal(got, []string{"one"}) {
		t.Errorf("the engine got ids %q", got)
	}
	if a := r.get("/nowhere"); !minted.MatchString(a.header.Get("X-Request-Id")) {
		t.Error("an error has no id")
	}
}

func TestReadiness(t *testing.T) {
	spec := func(ids string) (out []fleet.Spec) {
		for _, id := range strings.Fields(ids) {
			role := map[byte]fleet.Role{'n': fleet.Plain, 'p': fleet.Prefill, 'd': fleet.Decode}[id[0]]
			out = append(out, fleet.Spec{ID: id, URL: "http://" + id, Role: role, Labels: map[string]string{"zone": id[1:]}})
		}
		return out
	}
	f := func(ids string, pd bool, labels []string, want bool) {
		t.Helper()
		r := newRig(t)
		defer r.close()
		if err := r.fleet.Apply("m", fleet.BreakerConfig{}, spec(ids)); err != nil {
			t.Fatal(err)
		}
		res := r.resolver(pd)
		if g, ok := res.Buckets[0].Groups.(routing.PDGroups); ok {
			g.MatchLabels = labels
			res.Buckets[0].Groups = g
		}
		r.replan(func(g *server.Generation) { g.Models = map[string]*server.Model{"m": {Resolver: res}} })
		names := func(a answer, code string) {
			t.Helper()
			_, got, message := envelope(t, a)
			if a.status != 503 || got != code || a.code() != code || strings.Contains(message, ": m") == want || strings.Contains(a.body, "http") {
				t.Errorf("%q pd=%t %q: %s %s", ids, pd, labels, a, a.body)
			}
		}
		a := r.get("/readyz")
		if got := a.status == 200; got != want || r.server.Ready() != want {
			t.Errorf("%q pd=%t %q: ready %t", ids, pd, labels, got)
		}
		if !want {
			names(a, "not_ready")
		}
		r.server.SetServing(false)
		names(r.get("/readyz"), "draining")
		head, err := r.client.Head(r.http.URL + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		head.Body.Close()
		if head.StatusCode != 503 || head.Header.Get("X-Router-Error-Code") != "draining" {
			t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
		}
		if r.get("/healthz").status != 200 {
			t.Errorf("%q: a draining server is dead", ids)
		}
	}
	f("", false, nil, false)
	f("n1", false, nil, true)
	f("n1", true, nil, false)
	f("p1", true, nil, false)
	f("d1", true, nil, false)
	f("p1 d2", true, nil, true)
	f("p1 d2", true, []string{"zone"}, false)
	f("p1 p2 d2", true, []string{"zone"}, true)
}

func TestNoPlanYet(t *testing.T) {
	r := newRig(t)
	defer r.close()
	meters := server.NewMeters(newSet(), r.fleet)
	s := server.New(server.Options{Fleet: r.fleet, Forwarder: r.fwd, Meters: meters})
	s.SetServing(true)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	admin := httptest.NewServer(s.Admin())
	defer admin.Close()
	if got := r.from(web.URL + "/readyz").status; got != 503 {
		t.Errorf("readyz %d", got)
	}
	if got := r.from(web.URL + "/v1/models").body; got != `{"object":"list","data":[]}` {
		t.Errorf("models %s", got)
	}
	if got := r.from(admin.URL + "/admin/plan").String(); got != "503 not_ready" {
		t.Errorf("plan %s", got)
	}
	resp, err := r.client.Post(web.URL+"/v1/chat/completions", "", strings.NewReader(bufferedChat))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("X-Router-Error-Code"); got != "not_ready" {
		t.Errorf("chat %s", got)
	}
}

func TestAdmin(t *testing.T) {
	r := newRig(t, pairOptions()...)
	defer r.close()
	admin := httptest.NewServer(r.server.Admin())
	defer admin.Close()
	r.spec(fleet.Decode).SetLoad(&fleet.Load{CapturedAt: time.Now(), Running: 3, Native: true, Used: 5})
	a := r.from(admin.URL + "/admin/engines")
	var list struct{ Engines []map[string]any }
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || len(list.Engines) != 2 {
		t.Fatalf("%v %s", err, a.body)
	}
	d := list.Engines[0]
	if d["id"] != "D" || d["url"] != r.engines[enginetest.Decode].URL() || d["role"] != "decode" || d["healthy"] != true ||
		d["breaker"] != "closed" || d["load"].(map[string]any)["used_kv_tokens"] != 5.0 || list.Engines[1]["load"] != nil {
		t.Error(a.body)
	}
	r.server.NoteFailure(fmt.Errorf("line one\nline two"))
	a = r.from(admin.URL + "/admin/plan")
	if a.body != "{}\n" || a.header.Get("X-Shunt-Plan-Digest") != "sha256:0" || a.header.Get("X-Shunt-Reload-Error") != "line one line two" {
		t.Errorf("%v %q", a.header, a.body)
	}
	r.server.Swap(r.gen)
	if a = r.from(admin.URL + "/admin/plan"); a.header.Get("X-Shunt-Reload-Error") != "" {
		t.Error("the error outlives the next plan")
	}
	if a = r.from(admin.URL + "/v1/models"); a.status != 404 {
		t.Errorf("models on the admin listener: %s", a)
	}
}

// TestLogs: one access line per request, a decision for debugging, and probes
// are quiet.
func TestLogs(t *testing.T) {
	r := newRig(t, pairOptions()...)
	defer r.close()
	r.chat(streamedChat, "X-Correlation-Id", "c-1")
	r.get("/healthz")
	if !within(5*time.Second, func() bool { return strings.Count(r.log.String(), `"msg":"request"`) == 2 }) {
		t.Fatal(r.log.String())
	}
	for line := range strings.Lines(r.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		switch {
		case m["msg"] == "routing decision":
			if d := m["decision"].(map[string]any); d["bucket"] != "b" || d["prefill"] == nil {
				t.Error(line)
			}
		case m["path"] == "/healthz":
			if m["level"] != "DEBUG" {
				t.Error(line)
			}
		case m["msg"] == "request":
			want := map[string]any{"level": "INFO", "method": "POST", "status": 200.0, "correlation_id": "c-1", "model": "m", "stream": true,
				"bucket": "b", "prefill": "P", "decode": "D", "outcome": "success", "stream_outcome": "ok"}
			for k, v := range want {
				if m[k] != v {
					t.Errorf("%s is %v in %s", k, m[k], line)
				}
			}
			if !slices.ContainsFunc(r.engines[enginetest.Decode].Requests(), func(q enginetest.Request) bool { return q.RID == m["rid"] }) {
				t.Errorf("rid in %s", line)
			}
		}
	}
}

// TestGoneEnginesLeaveTheMetrics keeps churn from piling up.
func TestGoneEnginesLeaveTheMetrics(t *testing.T) {
	r := newRig(t, plainOptions())
	defer r.close()
	r.chat(bufferedChat)
	const series = `shunt_engine_requests_total{model="m",engine="P",role="plain",outcome="success"}`
	if !strings.Contains(r.get("/metrics").body, series+" 1") {
		t.Fatal(r.get("/metrics").body)
	}
	if err := r.fleet.Apply("m", fleet.BreakerConfig{}, nil); err != nil {
		t.Fatal(err)
	}
	if body := r.get("/metrics").body; strings.Contains(body, `engine="P"`) {
		t.Error(body)
	}
}

// BenchmarkChat is one 4 KiB request through the whole stack and a handmade
// engine, all in this process.
func BenchmarkChat(b *testing.B) {
	reply := strings.Repeat("x", 512)
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		io.WriteString(w, reply)
	}))
	defer engine.Close()
	r := newRig(b)
	defer r.close()
	if err := r.fleet.Apply("m", fleet.BreakerConfig{Threshold: 3, CoolDown: time.Hour},
		[]fleet.Spec{{ID: "H", URL: engine.URL, Role: fleet.Plain}}); err != nil {
		b.Fatal(err)
	}
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 800))
	for _, target := range []struct{ name, url string }{{"direct", engine.URL}, {"routed", r.http.URL}} {
		b.Run(target.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := r.client.Post(target.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(err, resp.StatusCode)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
