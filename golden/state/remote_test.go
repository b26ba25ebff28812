package state_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"shunt/runtime/app"
	"shunt/schema/plan"
)

// indexServer is a running index process.
type indexServer struct {
	t       *testing.T
	file    string
	client  *http.Client
	addr    string // kept over restarts
	metrics string
	signals chan os.Signal
	done    chan error
}

func startIndex(t *testing.T, b *plan.Body) *indexServer {
	t.Helper()
	x := &indexServer{t: t, file: filepath.Join(t.TempDir(), "plan.json"), addr: "127.0.0.1:0", client: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	write(t, x.file, b)
	x.start()
	t.Cleanup(func() {
		x.client.CloseIdleConnections()
		x.stop()
	})
	return x
}

func (x *indexServer) start() {
	x.t.Helper()
	x.signals, x.done = make(chan os.Signal, 1), make(chan error, 1)
	started := make(chan struct{})
	go func() {
		x.done <- app.Index(context.Background(), app.IndexOptions{
			Plan: app.PlanSource{File: x.file}, Listen: x.addr, Metrics: "127.0.0.1:0", MaxBlocks: 1 << 16, Log: io.Discard, Signals: x.signals,
			Started: func(listen, metrics string) {
				x.addr, x.metrics = listen, "http://"+metrics
				close(started)
			},
		})
	}()
	select {
	case <-started:
	case err := <-x.done:
		x.done = nil // it has ended already
		x.t.Fatal(err)
	case <-time.After(patience):
		x.t.Fatalf("the index did not start within %s", patience)
	}
}

func (x *indexServer) stop() {
	x.t.Helper()
	if x.done == nil {
		return
	}
	x.client.CloseIdleConnections()
	x.signals <- syscall.SIGTERM
	if err, _ := await(x.t, "the end of the index", x.done); err != nil {
		x.t.Errorf("index: %v", err)
	}
	x.done = nil
}

func (x *indexServer) until(name string, ok func(float64) bool) {
	x.t.Helper()
	eventually(x.t, name, func() (string, bool) {
		v := metric(x.t, x.client, x.metrics, name)
		return "", ok(v)
	})
}

func remote(addr string, timeoutMS int64) *plan.PrefixState {
	return &plan.PrefixState{Remote: &plan.RemotePrefix{Endpoint: "http://" + addr, QueryTimeoutMS: timeoutMS, MaxInflight: 32}}
}

// TestIndexServerGoesAndComesBack shares an index between two routers and takes it
// away: that is no miss, and no failure of requests either.
func TestIndexServerGoesAndComesBack(t *testing.T) {
	all := engines(t, 3, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	x := startIndex(t, b)
	b.State.Prefix = remote(x.addr, 1000)
	r, other := serve(t, b), serve(t, b)
	x.until("shunt_prefix_index_owners", equals(3))
	r.until("shunt_load_tracked_engines", equals(3))

	first := long("a", 600)
	// The routers learn the block size from the engines, the index from events.
	eventually(t, "lookups", func() (string, bool) {
		r.chat("", long("probe", 100))
		other.chat("", long("probe", 100))
		return "", r.metric(`shunt_prefix_lookups_total{model="m",outcome="empty"}`)+r.metric(`shunt_prefix_lookups_total{model="m",outcome="matched"}`) > 0 &&
			other.metric(`shunt_prefix_lookups_total{model="m",outcome="matched"}`) > 0
	})
	before := metric(t, x.client, x.metrics, "shunt_prefix_event_blocks_total")
	owner := r.chat("", first)
	x.until("shunt_prefix_event_blocks_total", above(before))
	for _, each := range []*router{r, other} {
		if a := each.wants("cache_candidate", first, "x", "y"); a.engine != owner.engine {
			t.Errorf("got %s, want %s", a.engine, owner.engine)
		}
	}

	x.stop()
	missed := r.metric(`shunt_cache_decisions_total{model="m",decision="unavailable"}`)
	r.wants("no_cache_candidate", first, "x", "y")
	if v := r.metric(`shunt_cache_decisions_total{model="m",decision="unavailable"}`); v != missed+1 {
		t.Errorf("%v decisions without the index, want %v", v, missed+1)
	}
	if v := r.metric(`shunt_prefix_lookups_total{model="m",outcome="unreachable"}`); v == 0 {
		t.Error("no unreachable index in the metrics")
	}

	x.start()
	x.until("shunt_prefix_index_owned_blocks", above(30)) // from the engines' replays
	eventually(t, "the index is asked again", func() (string, bool) {
		a := r.chat("", first, "x", "y")
		return a.reason, a.reason == "cache_candidate"
	})
}

// TestSlowIndexServer asks one that accepts and never answers: queries end in
// time, those beyond the bound are not queued, and requests go on.
func TestSlowIndexServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	accepting.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		ln.Close()
		accepting.Wait()
		for _, c := range conns {
			c.Close()
		}
	})
	all := engines(t, 2, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = remote(ln.Addr().String(), 300)
	b.State.Prefix.Remote.MaxInflight = 2
	r := serve(t, b)
	eventually(t, "timeouts", func() (string, bool) {
		r.chat("", long("a", 100))
		return "", r.metric(`shunt_prefix_lookups_total{model="m",outcome="timeout"}`) > 0
	})
	began := time.Now()
	var burst sync.WaitGroup
	for range 20 {
		burst.Go(func() {
			if a := r.chat("", long("a", 100)); a.status != http.StatusOK {
				t.Errorf("got %+v", a)
			}
		})
	}
	burst.Wait()
	if v := r.metric(`shunt_prefix_lookups_total{model="m",outcome="overloaded"}`); v == 0 {
		t.Error("no query was refused by the bound")
	}
	// Twenty queries one after the other would take six seconds.
	t.Logf("20 requests in %s", time.Since(began))
	if v := r.metric(`shunt_cache_decisions_total{model="m",decision="hit"}`); v != 0 {
		t.Errorf("%v hits", v)
	}
}
