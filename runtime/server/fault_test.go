package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shunt/runtime/enginetest"
	"shunt/runtime/forward"
	"shunt/runtime/server"
)

// fault is one way of one engine to misbehave, and what the client sees of it:
// buffered, then streamed. Alternatives are separated by |.
type fault struct {
	role             enginetest.Role
	fault            enginetest.Fault
	buffered, stream string
}

func faults() []fault {
	status := func(n int) enginetest.Fault { return enginetest.Fault{Kind: enginetest.Status, Status: n} }
	kind := func(k enginetest.FaultKind) enginetest.Fault { return enginetest.Fault{Kind: k} }
	var all []fault
	// The engine whose answer the client gets.
	for _, role := range []enginetest.Role{enginetest.Plain, enginetest.Decode} {
		all = append(all,
			fault{role, kind(enginetest.Refuse), "502 upstream_unreachable", "502 upstream_unreachable"},
			fault{role, status(400), "400 verbatim", "400 verbatim"},
			fault{role, status(429), "429 verbatim", "429 verbatim"},
			fault{role, status(500), "500 verbatim", "500 verbatim"},
			fault{role, status(503), "503 verbatim", "503 verbatim"},
			fault{role, kind(enginetest.HangBeforeHead), "504 upstream_timeout", "504 upstream_timeout"},
			fault{role, kind(enginetest.HangAfterHead), "504 upstream_timeout", "200 cut"},
			fault{role, kind(enginetest.HangMidStream), "504 upstream_timeout", "200 cut"},
			fault{role, kind(enginetest.CutBeforeHead), "502 upstream_unreachable", "502 upstream_unreachable"},
			fault{role, kind(enginetest.CutAfterHead), "502 upstream_body_incomplete", "200 cut"},
			fault{role, kind(enginetest.CutMidStream), "502 upstream_body_incomplete", "200 cut"},
			fault{role, kind(enginetest.ErrorEvent), "500 verbatim", "200 ok"},
			fault{role, kind(enginetest.Garbage), "200 ok", "200 ok"},
			fault{role, kind(enginetest.GarbageHead), "502 upstream_unreachable", "502 upstream_unreachable"},
		)
	}
	p := enginetest.Prefill
	return append(all,
		fault{p, kind(enginetest.Refuse), "502 prefill_failed", "502 prefill_failed"},
		fault{p, status(400), "400 verbatim", "400 verbatim"},
		fault{p, status(429), "429 verbatim", "429 verbatim"},
		fault{p, status(500), "502 prefill_failed", "502 prefill_failed"},
		fault{p, status(503), "503 verbatim", "503 verbatim"},
		fault{p, kind(enginetest.HangBeforeHead), "504 upstream_timeout", "504 upstream_timeout"},
		fault{p, kind(enginetest.HangAfterHead), "200 ok", "200 ok"},
		fault{p, kind(enginetest.HangMidStream), "200 ok", "200 ok"},
		fault{p, kind(enginetest.CutBeforeHead), "502 prefill_failed", "502 prefill_failed"},
		fault{p, kind(enginetest.CutAfterHead), "502 prefill_failed", "502 prefill_failed"},
		fault{p, kind(enginetest.CutMidStream), "502 prefill_failed", "502 prefill_failed"},
		fault{p, kind(enginetest.ErrorEvent), "502 prefill_failed", "502 prefill_failed"},
		fault{p, kind(enginetest.GarbageHead), "502 prefill_failed", "502 prefill_failed"},
	)
}

// limit sets the one limit that ends the fault's hanging, if it hangs.
func (f fault) limit(t *forward.Timeouts, stream bool) {
	const short = 300 * time.Millisecond
	switch {
	case f.role == enginetest.Prefill && f.fault.Kind != enginetest.HangBeforeHead:
		if f.fault.Kind == enginetest.HangAfterHead || f.fault.Kind == enginetest.HangMidStream {
			t.Stale = 4 * short // the answer is long complete
		}
	case f.fault.Kind == enginetest.HangBeforeHead && stream:
		t.Header = short
	case f.fault.Kind == enginetest.HangAfterHead || f.fault.Kind == enginetest.HangMidStream || f.fault.Kind == enginetest.HangBeforeHead:
		t.Request, t.StreamIdle = short, short
	}
}

// TestFaults runs every fault against a stack of its own, several at a time:
// some of them wait for a limit.
func TestFaults(t *testing.T) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, f := range faults() {
		for body, want := range map[string]string{bufferedChat: f.buffered, streamedChat: f.stream} {
			slots <- struct{}{}
			r := rigFor(t, f.role)
			wg.Go(func() {
				defer func() { <-slots }()
				defer r.close()
				r.replan(func(g *server.Generation) { f.limit(&g.Settings.Timeouts, body == streamedChat) })
				check(r, f, body, want)
			})
		}
	}
	wg.Wait()
}

func rigFor(t *testing.T, role enginetest.Role) *rig {
	if role == enginetest.Plain {
		return newRig(t, plainOptions())
	}
	return newRig(t, pairOptions()...)
}

func check(r *rig, f fault, body, want string) {
	if f.role == enginetest.Prefill {
		// What the prefill leg does has happened before the decode engine's head.
		r.inject(enginetest.Decode, enginetest.Fault{Kind: enginetest.Slow, Delay: 50 * time.Millisecond})
	}
	r.inject(f.role, f.fault)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name := fmt.Sprintf("%s %s %d stream=%t", f.role, f.fault.Kind, f.fault.Status, body == streamedChat)
	a, err := r.post(ctx, body)
	if err != nil {
		r.t.Errorf("%s: %v", name, err)
		return
	}
	if !slices.Contains(strings.Split(want, "|"), a.String()) {
		r.t.Errorf("%s:\ngot  %s\nwant %s\n%s\n%s", name, a, want, a.body, r.log)
	}
	if r.leaks(a) {
		r.t.Errorf("%s: the answer names an engine's address:\n%v %s", name, a.header, a.body)
	}
	if got := a.header.Get("X-Router-Upstream-Status"); (got == "200") != (a.code() == "upstream_body_incomplete") {
		r.t.Errorf("%s: upstream status %q", name, got)
	}
	r.settle()
	if e := r.engines[enginetest.Prefill]; e != nil {
		if !within(10*time.Second, func() bool { return e.Rooms() == 0 }) {
			r.t.Errorf("%s: %d rooms left", name, e.Rooms())
		}
	}
}
