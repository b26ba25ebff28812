package load_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"shunt/runtime/fleet"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/load"
)

func TestDecodeStat(t *testing.T) {
	f := func(text string, want load.Report, problem string) {
		t.Helper()
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := load.DecodeStat(raw)
		if problem == "" && (err != nil || !cmp.Equal(got, want)) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
	basic := load.Report{Running: 3, Waiting: 2, Used: 1000, Capacity: 500000}
	native := basic
	native.Extension = &load.Extension{WaitingUncached: 4096, Total: 5096, MaxRunning: 64, PrefillTokens: 123456789, PrefillBusyUS: 987654321}
	const head, counts = "a84c6f616453746174", "0302cd03e8ce0007a120"
	f("96"+head+counts+"01", basic, "")
	f("95"+head+counts, basic, "")
	f("96"+head+counts+"c0", basic, "")
	f("97"+head+counts+"01c0", basic, "")
	f("97"+head+counts+"0105", basic, "")
	f("9b"+head+counts+"01cd1000cd13e840ce075bcd15ce3ade68b1", native, "")
	f("9c"+head+counts+"01cd1000cd13e840ce075bcd15ce3ade68b105", native, "")
	f("94"+head+"0302cd03e8", load.Report{}, "four counts are required")
	f("9a"+head+counts+"01cd1000cd13e840ce075bcd15", load.Report{}, "incomplete")
	f("9b"+head+counts+"01c0cd13e840ce075bcd15ce3ade68b1", load.Report{}, "load report")
	f("96a84c6f616453746174ff02cd03e8ce0007a12001", load.Report{}, "load report")
	f("96a84c6f616453746175"+counts+"01", load.Report{}, `tag "LoadStau"`)
	f("96a84c6f61", load.Report{}, "load report")
	f("", load.Report{}, "load report")
}

func FuzzDecodeStat(f *testing.F) {
	raw, _ := hex.DecodeString("9ba84c6f6164537461740302cd03e8ce0007a12001cd1000cd13e840ce075bcd15ce3ade68b1")
	f.Add(raw)
	f.Fuzz(func(t *testing.T, p []byte) {
		if r, err := load.DecodeStat(p); err != nil && r != (load.Report{}) {
			t.Errorf("a report beside the error %v", err)
		}
	})
}

func TestDecodeJSON(t *testing.T) {
	f := func(decode func([]byte) ([]load.RankReport, error), text, problem string, want ...load.RankReport) {
		t.Helper()
		got, err := decode([]byte(text))
		if problem == "" && (err != nil || !cmp.Equal(got, want)) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
	const counts = `"num_running_reqs":1,"num_waiting_reqs":2,"num_used_tokens":3,"max_total_num_tokens":4`
	basic := load.Report{Running: 1, Waiting: 2, Used: 3, Capacity: 4}
	native := basic
	native.Extension = &load.Extension{WaitingUncached: 5, Total: 6, MaxRunning: 7, PrefillTokens: 8, PrefillBusyUS: 9}
	f(load.DecodeLoads, `{"loads":[{"dp_rank":1,`+counts+`}]}`, "", load.RankReport{Rank: 1, Report: basic})
	f(load.DecodeLoads, `{"loads":[{"dp_rank":0,`+counts+`,"num_waiting_uncached_tokens":5,"num_total_tokens":6,"max_running_requests":7,"total_prefill_uncached_tokens":8,"total_prefill_busy_us":9}]}`,
		"", load.RankReport{Report: native})
	f(load.DecodeLoads, `{"loads":[{"num_running_reqs":1}]}`, "lacks one of the four counts")
	f(load.DecodeLoads, `{"loads":[{`+counts+`},{`+counts+`}]}`, "rank 0 is repeated")
	f(load.DecodeLoads, `{"loads":[]}`, "none")
	f(load.DecodeLoads, `{`, "load reports")
	f(load.DecodeGetLoad, `[{"dp_rank":0,"num_reqs":5,"num_waiting_reqs":2,"num_tokens":100,"num_pending_tokens":40}]`,
		"", load.RankReport{Report: load.Report{Running: 3, Waiting: 2, Used: 60}})
	f(load.DecodeGetLoad, `[{"dp_rank":0}]`, "lacks its counts")
}

// engine makes one engine at a URL.
func engine(t *testing.T, url string) *fleet.Engine {
	t.Helper()
	f := new(fleet.Fleet)
	if err := f.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{{ID: "a", URL: url, Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f.Engines("m")[0]
}

// run starts a feed that describes its engine as the test says.
func run(t *testing.T, e *fleet.Engine, describe func() (engineinfo.Info, error)) (*load.Feed, *load.Table) {
	t.Helper()
	return runAsking(t, e, 5*time.Millisecond, describe)
}

// runAsking asks the engine again after a while.
func runAsking(t *testing.T, e *fleet.Engine, recheck time.Duration, describe func() (engineinfo.Info, error)) (*load.Feed, *load.Table) {
	t.Helper()
	table := new(load.Table)
	f := load.NewFeed(load.Options{
		Model: "m", Table: table, Metrics: metrics.NewSet(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Interval: 5 * time.Millisecond, Recheck: recheck,
		Client:   &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Describe: func(context.Context, *fleet.Engine) (engineinfo.Info, error) { return describe() },
	})
	f.SetEngines([]*fleet.Engine{e})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if e.Load() != nil || table.Engines() != 0 {
			t.Error("a report outlived the feed")
		}
	})
	return f, table
}

// until waits for a report; the deadline only ends a broken run.
func until(t *testing.T, e *fleet.Engine, ok func(*fleet.Load) bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(e.Load()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("report %+v", e.Load())
		}
	}
}

func TestPolling(t *testing.T) {
	defer goleak.VerifyNone(t)
	var answer atomic.Pointer[string]
	set := func(s string) { answer.Store(&s) }
	set(`{"loads":[{"dp_rank":0,"num_running_reqs":1,"num_waiting_reqs":2,"num_used_tokens":3,"max_total_num_tokens":4},
		{"dp_rank":1,"num_running_reqs":10,"num_waiting_reqs":2,"num_used_tokens":3,"max_total_num_tokens":4}]}`)
	var old atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/loads", func(w http.ResponseWriter, r *http.Request) {
		if old.Load() || r.URL.Query().Get("include") != "core" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, *answer.Load())
	})
	mux.HandleFunc("GET /get_load", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"dp_rank":0,"num_reqs":70,"num_waiting_reqs":20,"num_tokens":1,"num_pending_tokens":0}]`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	e := engine(t, server.URL)
	t.Run("feed", func(t *testing.T) {
		run(t, e, func() (engineinfo.Info, error) { return engineinfo.Info{}, nil })
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == 11 && !l.Native })
		set(`{"loads":[{"dp_rank":0,"num_running_reqs":5,"num_waiting_reqs":2,"num_used_tokens":3,"max_total_num_tokens":4}]}`)
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == 5 })
		// Another rank, and as many as before: the one that is gone must not be waited for.
		set(`{"loads":[{"dp_rank":3,"num_running_reqs":6,"num_waiting_reqs":2,"num_used_tokens":3,"max_total_num_tokens":4}]}`)
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == 6 })
		old.Store(true)
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == 50 && l.Waiting == 20 })
	})
}

// TestPollingGoesOnBesideQuestions: an engine that is asked again where it publishes,
// and does not, keeps its reports, and so the estimate that takes two of them.
func TestPollingGoesOnBesideQuestions(t *testing.T) {
	defer goleak.VerifyNone(t)
	var work atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := work.Add(1)
		fmt.Fprintf(w, `{"loads":[{"dp_rank":0,"num_running_reqs":1,"num_waiting_reqs":2,"num_used_tokens":3,"max_total_num_tokens":4,
			"num_waiting_uncached_tokens":5,"num_total_tokens":6,"max_running_requests":7,
			"total_prefill_uncached_tokens":%d,"total_prefill_busy_us":%d}]}`, n, 1000*n)
	}))
	defer server.Close()
	e := engine(t, server.URL)
	t.Run("feed", func(t *testing.T) {
		runAsking(t, e, time.Nanosecond, func() (engineinfo.Info, error) { return engineinfo.Info{}, nil })
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.HasQueue && l.QueueMS == 5 })
	})
}

// TestEngineComesBackSlowly restarts an engine with another rank, whose description
// comes later than its sockets: the old ranks must not be taken for all of it until
// the next regular question.
func TestEngineComesBackSlowly(t *testing.T) {
	defer goleak.VerifyNone(t)
	first, second := neighbours(t)
	raw, _ := hex.DecodeString("9ba84c6f6164537461740302cd03e8ce0007a12001cd1000cd13e840ce075bcd15ce3ade68b1")
	var wg sync.WaitGroup
	stop, restart := make(chan struct{}), make(chan struct{})
	wg.Go(func() { publish(first, raw, restart) })
	wg.Go(func() { publish(second, raw, stop) })
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	e := engine(t, server.URL)
	t.Run("feed", func(t *testing.T) {
		var asked atomic.Int32
		runAsking(t, e, time.Hour, func() (engineinfo.Info, error) {
			info := engineinfo.Info{Publishes: true, Host: "127.0.0.1", LoadPort: first.Addr().(*net.TCPAddr).Port, LoadTopic: "load", Ranks: 1}
			switch asked.Add(1) {
			case 1:
			case 2, 3, 4:
				return info, errors.New("not ready")
			default:
				info.Ranks = 2
			}
			return info, nil
		})
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == 3 })
		close(restart)
		wg.Go(func() { publish(first, raw, stop) })
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == 6 })
	})
	close(stop)
	first.Close()
	second.Close()
	wg.Wait()
}

// TestPublished has two ranks on neighbouring ports. Only complete reports count,
// and while a rank is silent its numbers come by polling.
func TestPublished(t *testing.T) {
	defer goleak.VerifyNone(t)
	first, second := neighbours(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	raw, _ := hex.DecodeString("9ba84c6f6164537461740302cd03e8ce0007a12001cd1000cd13e840ce075bcd15ce3ade68b1")
	wg.Go(func() { publish(first, raw, stop) })
	var polled atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		polled.Add(1)
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	e := engine(t, server.URL)
	t.Run("feed", func(t *testing.T) {
		info := engineinfo.Info{Publishes: true, Host: "127.0.0.1", LoadPort: first.Addr().(*net.TCPAddr).Port, LoadTopic: "load", Ranks: 2}
		run(t, e, func() (engineinfo.Info, error) { return info, nil })
		for end := time.Now().Add(20 * time.Second); polled.Load() < 3 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if e.Load() != nil {
			t.Error("one of two ranks was taken for the engine")
		}
		wg.Go(func() { publish(second, raw, stop) })
		until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == 6 && l.Native && l.MaxRunning == 128 })
	})
	close(stop)
	first.Close()
	second.Close()
	wg.Wait()
}

// TestChangesWithoutLostConnection has an engine restart before a subscription to
// it came about: on other ports, or with fewer ranks, of which a poll tells.
func TestChangesWithoutLostConnection(t *testing.T) {
	f := func(name string, ranks int, recheck time.Duration, loads string, running uint64) {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if loads == "" {
					http.Error(w, "down", http.StatusServiceUnavailable)
					return
				}
				_, _ = io.WriteString(w, loads)
			}))
			defer server.Close()
			live, gone := neighbours(t)
			gone.Close()
			raw, _ := hex.DecodeString("9ba84c6f6164537461740302cd03e8ce0007a12001cd1000cd13e840ce075bcd15ce3ade68b1")
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { publish(live, raw, stop) })
			e := engine(t, server.URL)
			t.Run("feed", func(t *testing.T) {
				var asked atomic.Int32
				runAsking(t, e, recheck, func() (engineinfo.Info, error) {
					info := engineinfo.Info{Publishes: true, Host: "127.0.0.1", LoadPort: live.Addr().(*net.TCPAddr).Port, LoadTopic: "load", Ranks: 1}
					if asked.Add(1) == 1 {
						info.LoadPort, info.Ranks = gone.Addr().(*net.TCPAddr).Port, ranks
					}
					return info, nil
				})
				until(t, e, func(l *fleet.Load) bool { return l != nil && l.Running == running && l.Native })
			})
			close(stop)
			live.Close()
			wg.Wait()
		})
	}
	f("other ports", 1, 5*time.Millisecond, "", 3)
	f("fewer ranks", 3, time.Hour, `{"loads":[{"dp_rank":0,"num_running_reqs":1,"num_waiting_reqs":2,"num_used_tokens":3,"max_total_num_tokens":4}]}`, 3)
}

// neighbours listens on two ports in a row.
func neighbours(t *testing.T) (a, b net.Listener) {
	t.Helper()
	for range 100 {
		a, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := *a.Addr().(*net.TCPAddr)
		addr.Port++
		if b, err = net.Listen("tcp", addr.String()); err == nil {
			return a, b
		}
		a.Close()
	}
	t.Fatal("no two ports in a row")
	return nil, nil
}

// publish repeats a report to one subscriber at a time, as a PUB socket would.
func publish(l net.Listener, payload []byte, stop chan struct{}) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		g := make([]byte, 64)
		g[0], g[9], g[10] = 0xFF, 0x7F, 3
		copy(g[12:], "NULL")
		g = append(g, 4, 25)
		g = append(g, "\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"...)
		g[65] = byte(len(g) - 66)
		_, err = c.Write(g)
		for err == nil {
			m := append([]byte{1, 4}, "load"...)
			m = append(m, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(payload)))
			_, err = c.Write(append(m, payload...))
			select {
			case <-stop:
				c.Close()
				return
			case <-time.After(time.Millisecond):
			}
		}
		c.Close()
	}
}
