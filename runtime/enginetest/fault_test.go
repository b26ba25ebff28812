package enginetest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"shunt/runtime/enginetest"
)

// inject replaces all faults by one.
func inject(t *testing.T, e *enginetest.Engine, f enginetest.Fault) {
	t.Helper()
	if err := e.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	if err := e.Inject(f); err != nil {
		t.Fatal(err)
	}
}

func TestFaults(t *testing.T) {
	e := start(t, enginetest.Options{})
	// f injects a fault and says what a client sees: the status, 0 without a
	// head; whether the answer ends as it should; and a part of it.
	f := func(fault enginetest.Fault, stream bool, status int, clean bool, want string) {
		t.Helper()
		inject(t, e, fault)
		body := hello + `}`
		if stream {
			body = hello + `,"stream":true}`
		}
		got, data, err := post(t, e.URL()+"/v1/chat/completions", body)
		if got != status || (err == nil) != clean || !strings.Contains(data, want) {
			t.Errorf("%+v, stream %t: %d %q %v", fault, stream, got, data, err)
		}
		wait(t, e, "idle", idle)
		if r := e.Requests(); r[len(r)-1].Outcome != enginetest.Faulted {
			t.Errorf("%+v, stream %t: outcome %s", fault, stream, r[len(r)-1].Outcome)
		}
	}
	for _, stream := range []bool{false, true} {
		f(enginetest.Fault{Kind: enginetest.Status}, stream, 500, true, `"object":"error"`)
		f(enginetest.Fault{Kind: enginetest.Status, Status: 429}, stream, 429, true, `"RateLimit"`)
		f(enginetest.Fault{Kind: enginetest.Status, Status: 503, Body: "busy"}, stream, 503, true, `busy`)
		f(enginetest.Fault{Kind: enginetest.CutBeforeHead}, stream, 0, false, ``)
		f(enginetest.Fault{Kind: enginetest.GarbageHead}, stream, 0, false, ``)
		f(enginetest.Fault{Kind: enginetest.CutAfterHead}, stream, 200, false, ``)
	}
	f(enginetest.Fault{Kind: enginetest.CutMidStream}, false, 200, false, `{"id":`)
	f(enginetest.Fault{Kind: enginetest.CutMidStream}, true, 200, false, `"content":"`)
	f(enginetest.Fault{Kind: enginetest.CutMidStream, Tokens: 1000}, true, 200, false, `"content":"`)
	f(enginetest.Fault{Kind: enginetest.ErrorEvent}, false, 500, true, `injected`)
	f(enginetest.Fault{Kind: enginetest.ErrorEvent}, true, 200, true, `data: {"error":{`)
	f(enginetest.Fault{Kind: enginetest.Garbage}, true, 200, true, `<<<`)
}

func TestMidStreamFaultSendsItsTokens(t *testing.T) {
	e := start(t, enginetest.Options{})
	inject(t, e, enginetest.Fault{Kind: enginetest.CutMidStream, Tokens: 3})
	_, data, err := post(t, e.URL()+"/v1/chat/completions", hello+`,"stream":true}`)
	if n := len(events(t, data)); err == nil || n != 1+3 {
		t.Errorf("%d events, %v: %s", n, err, data)
	}
}

func TestGarbageBody(t *testing.T) {
	e := start(t, enginetest.Options{})
	inject(t, e, enginetest.Fault{Kind: enginetest.Garbage})
	status, data := chat(t, e, hello+`}`)
	if status != 200 || json.Valid([]byte(data)) {
		t.Errorf("%d %q", status, data)
	}
}

func TestHangs(t *testing.T) {
	e := start(t, enginetest.Options{})
	f := func(kind enginetest.FaultKind, stream string, head bool) {
		t.Helper()
		inject(t, e, enginetest.Fault{Kind: kind})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", e.URL()+"/v1/chat/completions", strings.NewReader(hello+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		before := e.State().Received
		answered := make(chan *http.Response, 1)
		client := newClient(t)
		go func() {
			resp, err := client.Do(req)
			if err != nil {
				resp = nil
			}
			answered <- resp
		}()
		wait(t, e, "received", func(s enginetest.State) bool { return s.Received > before })
		if head {
			resp := <-answered
			if resp == nil || resp.StatusCode != 200 {
				t.Fatalf("%s: %+v", kind, resp)
			}
			cancel()
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Errorf("%s: the answer ended by itself", kind)
			}
			resp.Body.Close()
		} else {
			cancel()
			if resp := <-answered; resp != nil {
				t.Errorf("%s: answered %s", kind, resp.Status)
			}
		}
		wait(t, e, "idle", idle)
	}
	for _, stream := range []string{``, `,"stream":true`} {
		f(enginetest.HangBeforeHead, stream, false)
		f(enginetest.HangAfterHead, stream, true)
		f(enginetest.HangMidStream, stream, true)
	}
	if s := e.State(); s.Cancelled != s.Received {
		t.Errorf("%+v", s)
	}
}

func TestSlowStillAnswers(t *testing.T) {
	e := start(t, enginetest.Options{})
	inject(t, e, enginetest.Fault{Kind: enginetest.Slow, Delay: time.Millisecond})
	if status, data := chat(t, e, hello+`}`); status != 200 || decode(t, data).Usage.Completion != 6 {
		t.Errorf("%d %s", status, data)
	}
}

func TestFaultsOfAPair(t *testing.T) {
	p, d := pair(t, 50*time.Millisecond)
	f := func(kind enginetest.FaultKind, prefill, answer int) {
		t.Helper()
		inject(t, p, enginetest.Fault{Kind: kind})
		one := send(t, p, body(p, 1, `,"stream":true`))
		two := <-send(t, d, body(p, 1, `,"stream":true`))
		if first := <-one; first.status != prefill || two.status != answer {
			t.Errorf("%s: prefill %+v, decode %+v", kind, first, two)
		}
	}
	// Before the head the pair has not met, later it has.
	f(enginetest.Status, 500, 500)
	f(enginetest.CutBeforeHead, 0, 500)
	f(enginetest.CutAfterHead, 200, 200)
	f(enginetest.CutMidStream, 200, 200)
	f(enginetest.ErrorEvent, 200, 200)
}

func TestFaultSelection(t *testing.T) {
	e := start(t, enginetest.Options{})
	f := func(fault enginetest.Fault, want string) {
		t.Helper()
		inject(t, e, fault)
		var got []string
		for range 6 {
			status, _ := chat(t, e, hello+`}`)
			got = append(got, map[int]string{200: "ok", 500: "bad"}[status])
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%+v: %s, want %s", fault, s, want)
		}
	}
	f(enginetest.Fault{Kind: enginetest.Status}, "bad bad bad bad bad bad")
	f(enginetest.Fault{Kind: enginetest.Status, Times: 2}, "bad bad ok ok ok ok")
	f(enginetest.Fault{Kind: enginetest.Status, After: 2, Times: 1}, "ok ok bad ok ok ok")
	f(enginetest.Fault{Kind: enginetest.Status, Path: "/generate"}, "ok ok ok ok ok ok")

	inject(t, e, enginetest.Fault{Kind: enginetest.Status, Status: 503, Path: "/health"})
	resp, err := newClient(t).Get(e.URL() + "/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("health: %s", resp.Status)
	}
}

func TestRefuse(t *testing.T) {
	e := start(t, enginetest.Options{})
	inject(t, e, enginetest.Fault{Kind: enginetest.Refuse})
	if _, _, err := post(t, e.URL()+"/v1/chat/completions", hello+`}`); err == nil || !strings.Contains(err.Error(), "dial") {
		t.Errorf("error %v", err)
	}
	if err := e.Inject(enginetest.Fault{Kind: enginetest.Refuse}); err == nil {
		t.Error("an engine that does not listen refused again")
	}
	if err := e.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	chat(t, e, hello+`}`)

	// Over HTTP it ends by itself, for nothing could end it from outside.
	status, data, err := post(t, e.URL()+"/_sim/fault", `{"kind":"refuse","for":"20ms"}`)
	if status != 204 || err != nil {
		t.Fatal(status, data, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		status, _, err = post(t, e.URL()+"/v1/chat/completions", hello+`}`)
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	if status != 200 {
		t.Errorf("after a while: %d %v", status, err)
	}
}

func TestControlEndpoints(t *testing.T) {
	e := start(t, enginetest.Options{})
	url := e.URL() + "/_sim/fault"
	if status, data, _ := post(t, url, `{"kind":"slow","delay":"1ms","times":3}`); status != 204 {
		t.Fatal(status, data)
	}
	get := func(path string) string {
		resp, err := newClient(t).Get(e.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	chat(t, e, hello+`,"rid":"r-7"}`)
	wait(t, e, "idle", idle)
	if s := get("/_sim/fault"); !strings.Contains(s, `"kind":"slow"`) || !strings.Contains(s, `"times":2`) {
		t.Error(s)
	}
	if s := get("/_sim/requests"); !strings.Contains(s, `"rid":"r-7"`) || !strings.Contains(s, `"outcome":"completed"`) {
		t.Error(s)
	}
	if s := get("/_sim/state"); !strings.Contains(s, `"completed":1`) || !strings.Contains(s, `"idle":true`) {
		t.Error(s)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if s := strings.TrimSpace(get("/_sim/fault")); s != "[]" {
		t.Error(s)
	}
}

func TestBadFaults(t *testing.T) {
	e := start(t, enginetest.Options{})
	f := func(body, want string) {
		t.Helper()
		status, data, err := post(t, e.URL()+"/_sim/fault", body)
		if err != nil || status != 400 || !strings.Contains(data, want) {
			t.Errorf("%s: %d %s %v, want 400 with %q", body, status, data, err, want)
		}
	}
	f(`{`, "fault")
	f(`{}`, "want one of")
	f(`{"kind":"explode"}`, "explode")
	f(`{"kind":"status","status":200}`, "200")
	f(`{"kind":"status","code":500}`, "code")
	f(`{"kind":"status","times":-1}`, "negative")
	f(`{"kind":"status","path":"generate"}`, "begin with /")
	f(`{"kind":"status","tokens":3}`, "tokens")
	f(`{"kind":"cut_before_head","status":500}`, "status")
	f(`{"kind":"refuse","times":1}`, "times")
	f(`{"kind":"slow","delay":"soon"}`, "soon")
}

func FuzzParseFault(f *testing.F) {
	f.Add(`{"kind":"status","status":503,"after":1,"times":2}`)
	f.Add(`{"kind":"slow","delay":"1ms"}`)
	f.Fuzz(func(t *testing.T, data string) {
		fault, err := enginetest.ParseFault([]byte(data))
		if err == nil && fault.Kind == "" {
			t.Errorf("%q gives a fault without kind", data)
		}
	})
}
