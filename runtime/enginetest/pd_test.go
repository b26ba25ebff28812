package enginetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"shunt/runtime/enginetest"
)

// pair starts a prefill and a decode engine.
func pair(t *testing.T, timeout time.Duration) (p, d *enginetest.Engine) {
	t.Helper()
	p = start(t, enginetest.Options{ID: "P1", Role: enginetest.Prefill, BootstrapTimeout: timeout})
	d = start(t, enginetest.Options{ID: "D1", Role: enginetest.Decode, BootstrapTimeout: timeout})
	return p, d
}

// body is a chat that meets in a room of p.
func body(p *enginetest.Engine, room int, members string) string {
	return fmt.Sprintf(`%s,"bootstrap_host":"127.0.0.1","bootstrap_port":%d,"bootstrap_room":%d%s}`,
		hello, p.BootstrapPort(), room, members)
}

type result struct {
	status int
	data   string
	err    error
}

// send posts a chat in the background.
func send(t *testing.T, e *enginetest.Engine, body string) <-chan result {
	t.Helper()
	out := make(chan result, 1)
	go func() {
		status, data, err := post(t, e.URL()+"/v1/chat/completions", body)
		out <- result{status, data, err}
	}()
	return out
}

func bootstrapping(s enginetest.State) bool { return s.Bootstrapping == 1 }

func TestPairAnswers(t *testing.T) {
	plain := start(t, enginetest.Options{})
	_, want := chat(t, plain, hello+`}`)
	p, d := pair(t, patience)
	f := func(room int, first, second *enginetest.Engine) {
		t.Helper()
		one := send(t, first, body(p, room, ""))
		wait(t, first, "first side waits", bootstrapping)
		two := send(t, second, body(p, room, ""))
		answers := map[*enginetest.Engine]result{first: <-one, second: <-two}
		prefill, answer := decode(t, answers[p].data), decode(t, answers[d].data)
		if answers[p].status != 200 || prefill.Usage.Completion != 1 {
			t.Errorf("room %d: prefill %+v", room, answers[p])
		}
		if got := answer.Choices[0].Message.Content; got != decode(t, want).Choices[0].Message.Content {
			t.Errorf("room %d: the pair says %q, a plain engine %s", room, got, want)
		}
	}
	f(1, p, d)
	f(2, d, p) // either side may come first
	f(2, p, d) // a room is free again when its request has ended
	f(1<<62, p, d)
	wait(t, p, "idle", idle)
	if n := p.Rooms(); n != 0 {
		t.Errorf("%d rooms left", n)
	}
}

func TestPairStreams(t *testing.T) {
	p, d := pair(t, patience)
	one := send(t, p, body(p, 5, `,"stream":true`))
	got := <-send(t, d, body(p, 5, `,"stream":true`))
	if n := len(events(t, got.data)); got.status != 200 || n != 1+6+1+1 {
		t.Errorf("decode: %+v", got)
	}
	if n := len(events(t, (<-one).data)); n != 1+1+1+1 {
		t.Errorf("prefill sent %d events", n)
	}
}

func TestMissingCounterpart(t *testing.T) {
	p, d := pair(t, 30*time.Millisecond)
	if got := <-send(t, d, body(p, 1, "")); got.status != 500 || !strings.Contains(got.data, "no prefill engine") {
		t.Errorf("decode alone: %+v", got)
	}
	if got := <-send(t, p, body(p, 1, "")); got.status != 500 || !strings.Contains(got.data, "no decode engine") {
		t.Errorf("prefill alone: %+v", got)
	}
	// Nobody listens on the port of a closed engine.
	gone := start(t, enginetest.Options{Role: enginetest.Prefill})
	gone.Close()
	if got := <-send(t, d, body(gone, 1, "")); got.status != 500 || !strings.Contains(got.data, "no prefill engine") {
		t.Errorf("unreachable bootstrap server: %+v", got)
	}
	wait(t, d, "idle", func(s enginetest.State) bool { return s.Failed == 2 })
	wait(t, p, "idle", func(s enginetest.State) bool { return s.Failed == 1 })
	if p.Rooms() != 0 {
		t.Errorf("%d rooms left", p.Rooms())
	}
}

func TestDuplicateRoom(t *testing.T) {
	p, d := pair(t, patience)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hold(t, ctx, p, body(p, 9, ""))
	wait(t, p, "prefill waits", bootstrapping)
	if got := <-send(t, p, body(p, 9, "")); got.status != 400 || !strings.Contains(got.data, "already in use: 9") {
		t.Errorf("second prefill: %+v", got)
	}
	hold(t, ctx, d, body(p, 10, ""))
	wait(t, d, "decode waits", bootstrapping)
	for p.Rooms() != 2 { // the decode engine's visit is on its way
		time.Sleep(time.Millisecond)
	}
	if got := <-send(t, d, body(p, 10, "")); got.status != 400 || !strings.Contains(got.data, "already in use: 10") {
		t.Errorf("second decode: %+v", got)
	}
}

func TestRendezvousFieldsAreChecked(t *testing.T) {
	p, d := pair(t, 10*time.Millisecond)
	f := func(e *enginetest.Engine, members, want string) {
		t.Helper()
		status, data := chat(t, e, hello+members+`}`)
		if status != 400 || !strings.Contains(data, want) {
			t.Errorf("%s%s: %d %s, want 400 with %q", e.ID(), members, status, data, want)
		}
	}
	f(p, ``, "needs a bootstrap_room")
	f(p, `,"bootstrap_room":null`, "needs a bootstrap_room")
	f(p, `,"bootstrap_room":-1`, "negative")
	f(p, `,"bootstrap_room":9223372036854775808`, "malformed")
	f(p, `,"bootstrap_room":"1"`, "malformed")
	f(d, `,"bootstrap_room":1`, "needs a bootstrap_host")
	f(d, `,"bootstrap_room":1,"bootstrap_host":"127.0.0.1","bootstrap_port":0`, "bootstrap_port")
	f(d, `,"bootstrap_room":1,"bootstrap_host":"not a host","bootstrap_port":1`, "bootstrap_host")
}

// A prefill that dies takes its decode along, and the other way round.
func TestOneSideLeaves(t *testing.T) {
	slow := enginetest.Options{ID: "P1", Role: enginetest.Prefill, PrefillTokensPerSecond: 1}
	p := start(t, slow)
	d := start(t, enginetest.Options{ID: "D1", Role: enginetest.Decode})
	f := func(leaves, stays *enginetest.Engine, want string) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		hold(t, ctx, leaves, body(p, 3, ""))
		got := send(t, stays, body(p, 3, ""))
		// Once the prompt is being computed both sides are in the room.
		wait(t, p, "computing", func(s enginetest.State) bool { return s.Running == 1 })
		leave()
		if r := <-got; r.status != 500 || !strings.Contains(r.data, want) {
			t.Errorf("%s left: %+v, want %q", leaves.ID(), r, want)
		}
		wait(t, p, "idle", idle)
		wait(t, d, "idle", idle)
	}
	f(p, d, "prefill")
	f(d, p, "the decode engine left")
	p.Close()
	p = start(t, slow)
	got := send(t, d, body(p, 4, ""))
	hold(t, t.Context(), p, body(p, 4, ""))
	wait(t, p, "computing", func(s enginetest.State) bool { return s.Running == 1 })
	p.Close()
	if r := <-got; r.status != 500 {
		t.Errorf("closed prefill engine: %+v", r)
	}
}

func TestEarlyHeadReportsFailureAsEvent(t *testing.T) {
	p := start(t, enginetest.Options{Role: enginetest.Prefill})
	d := start(t, enginetest.Options{Role: enginetest.Decode, EarlyHead: true, BootstrapTimeout: 20 * time.Millisecond})
	got := <-send(t, d, body(p, 1, `,"stream":true`))
	ev := events(t, got.data)
	if got.status != 200 || len(ev) != 2 || !strings.HasPrefix(ev[0], `{"error":{`) || ev[1] != "[DONE]" {
		t.Errorf("%+v", got)
	}
}

func TestDisconnectStopsGeneration(t *testing.T) {
	e := start(t, enginetest.Options{InterToken: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", e.URL()+"/v1/chat/completions",
		strings.NewReader(hello+`,"max_tokens":100000,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	s := wait(t, e, "idle", idle)
	if s.Cancelled != 1 || s.GeneratedTokens >= 100000 || s.UsedTokens != 0 {
		t.Errorf("%+v", s)
	}
	if r := e.Requests()[0]; r.Outcome != enginetest.Cancelled || r.Status != 200 || r.Tokens == 0 {
		t.Errorf("%+v", r)
	}
}
