package feed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"shunt/runtime/fleet"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/feed"
	"shunt/runtime/state/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a feed with engines whose descriptions the test controls.
type bench struct {
	t       *testing.T
	index   *prefix.Index
	space   *prefix.Namespace
	feed    *feed.Feed
	metrics *metrics.Set

	mu    sync.Mutex
	infos map[string]engineinfo.Info
	asked int
	log   bytes.Buffer
}

// Write takes the log.
func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

const recheck = 20 * time.Millisecond

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchWith(t, 2*time.Second)
}

func newBenchWith(t *testing.T, replayTimeout time.Duration) *bench {
	t.Helper()
	return newBenchOf(t, replayTimeout, prefix.SGLang)
}

func newBenchOf(t *testing.T, replayTimeout time.Duration, scheme prefix.Scheme) *bench {
	t.Helper()
	b := &bench{t: t, index: prefix.NewIndex(0), space: &prefix.Namespace{}, metrics: metrics.NewSet(), infos: map[string]engineinfo.Info{}}
	b.feed = feed.New(feed.Options{
		Model: "m", Index: b.index, Namespace: b.space, Metrics: b.metrics, Queue: 4, Scheme: scheme,
		Log:           slog.New(slog.NewTextHandler(b, nil)),
		Recheck:       recheck,
		ReplayTimeout: replayTimeout,
		ZMTP:          zmtp.Options{HandshakeTimeout: 2 * time.Second},
		Describe: func(_ context.Context, e *fleet.Engine) (engineinfo.Info, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.asked++
			info, ok := b.infos[e.ID()]
			if !ok {
				return info, errors.New("no such engine")
			}
			return info, nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if s := b.index.Stats(); s.Owners != 0 || s.Blocks != 0 {
			t.Errorf("after the end: %+v", s)
		}
	})
	return b
}

func (b *bench) describe(id string, p *publisher, size int) {
	info := engineinfo.Info{Publishes: true, Host: "127.0.0.1", Port: port(p.live), Topic: "top", BlockSize: size, Ranks: 1}
	if p.again != nil {
		info.ReplayPort = port(p.again)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.infos[id] = info
}

func engines(t *testing.T, ids ...string) []*fleet.Engine {
	t.Helper()
	f := new(fleet.Fleet)
	var specs []fleet.Spec
	for _, id := range ids {
		specs = append(specs, fleet.Spec{ID: id, URL: "http://" + id, Role: fleet.Plain})
	}
	if err := f.Apply("m", fleet.BreakerConfig{}, specs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f.Engines("m")
}

// until waits for the depth that an engine holds of a chain.
func (b *bench) until(id string, want int, hashes ...int64) {
	b.t.Helper()
	got := -1
	eventually(b.t, func() bool {
		matches, _ := b.index.Match(nil, hashes)
		got = 0
		for _, m := range matches {
			if m.Address == "http://"+id {
				got = m.Blocks
			}
		}
		return got == want
	}, func() string { return fmt.Sprintf("%s holds %d of %v, want %d\n%s", id, got, hashes, want, b.dump()) })
}

func (b *bench) state(e *fleet.Engine, want string) {
	b.t.Helper()
	eventually(b.t, func() bool { return b.known(e).Text == want },
		func() string { return fmt.Sprintf("state %+v, want %s", b.known(e), want) })
}

func (b *bench) known(e *fleet.Engine) feed.State {
	s, _ := b.feed.State(e)
	return s
}

func (b *bench) dump() string {
	var s strings.Builder
	b.metrics.WritePrometheus(&s)
	return s.String()
}

// counted waits for a metric, given as name or name and outcome.
func (b *bench) counted(line string) {
	b.t.Helper()
	eventually(b.t, func() bool { return strings.Contains(b.dump(), line+"\n") },
		func() string { return fmt.Sprintf("no %q in\n%s", line, b.dump()) })
}

// eventually polls a condition; the deadline only ends a broken run.
func eventually(t *testing.T, ok func() bool, why func() string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(why())
		}
	}
}

func joined(t *testing.T, p *publisher) {
	t.Helper()
	select {
	case <-p.joined:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody subscribed")
	}
}

func TestFollow(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	all := engines(t, "a")
	b.feed.SetEngines(all)
	joined(t, p)
	p.publish(stored(4, nil, 1, 2), stored(4, int64(2), 3))
	b.until("a", 3, 1, 2, 3)
	p.publish(removed(2))
	b.until("a", 1, 1, 2, 3)
	if h, known := b.space.Hashing(); !known || h.BlockSize != 4 || h.Scheme != prefix.SGLang {
		t.Errorf("hashing %+v", h)
	}
	b.counted(`shunt_prefix_event_blocks_total{model="m"} 4`)
	b.feed.SetEngines(nil)
	b.until("a", 0, 1)
	eventually(t, func() bool { _, ok := b.feed.State(all[0]); return !ok }, func() string { return "the engine stayed" })
}

func TestGapWithoutReplay(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	p.publish(stored(4, nil, 1))
	b.until("a", 1, 1)
	p.lose(removed(1))
	p.publish(stored(4, nil, 2))
	b.until("a", 1, 2)
	b.until("a", 0, 1)
	b.counted(`shunt_prefix_lost_batches_total{model="m"} 1`)
	b.counted(`shunt_prefix_replays_total{model="m",outcome="none"} 1`)
}

func TestGapIsRepaired(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", true, 0)
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	p.publish(stored(4, nil, 1, 2, 3))
	b.until("a", 3, 1, 2, 3)
	p.lose(removed(3))
	p.lose(stored(4, nil, 9))
	p.publish(stored(4, nil, 5))
	b.until("a", 1, 5)
	b.until("a", 2, 1, 2, 3)
	b.until("a", 1, 9)
	b.counted(`shunt_prefix_replays_total{model="m",outcome="repaired"} 1`)
	b.counted(`shunt_prefix_resets_total{model="m"} 0`)
}

// TestGapIsRepairedInRounds has a publisher that drops most replies of a long
// replay, as a socket at its high-water mark does.
func TestGapIsRepairedInRounds(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", true, 0)
	p.limit = 4
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	p.publish(stored(4, nil, 1))
	b.until("a", 1, 1)
	for h := range int64(10) {
		p.lose(stored(4, h+1, h+2))
	}
	p.publish(stored(4, int64(11), 12))
	b.until("a", 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	b.counted(`shunt_prefix_replays_total{model="m",outcome="repaired"} 1`)
	b.counted(`shunt_prefix_resets_total{model="m"} 0`)
}

// TestGapBeyondHistory loses a batch that the replay does not have any more.
func TestGapBeyondHistory(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", true, 0)
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	p.publish(stored(4, nil, 1))
	b.until("a", 1, 1)
	p.lose(removed(1))
	p.mu.Lock()
	p.history[1] = nil
	p.mu.Unlock()
	p.publish(stored(4, nil, 5))
	b.until("a", 1, 5)
	b.until("a", 0, 1)
	b.counted(`shunt_prefix_replays_total{model="m",outcome="incomplete"} 1`)
}

func TestConnectionLoss(t *testing.T) {
	f := func(name string, replay bool, depth int) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := newPublisher(t, "127.0.0.1:0", replay, 0)
			b.describe("a", p, 4)
			b.feed.SetEngines(engines(t, "a"))
			joined(t, p)
			p.publish(stored(4, nil, 1, 2))
			b.until("a", 2, 1, 2)
			p.drop()
			joined(t, p)
			// With a replay the same life is proven and nothing is lost; without one
			// nothing is believed.
			b.counted(`shunt_prefix_reconnects_total{model="m"} 1`)
			p.publish(stored(4, nil, 7))
			b.until("a", 1, 7)
			b.until("a", depth, 1, 2)
		})
	}
	f("with replay", true, 2)
	f("without replay", false, 0)
}

// TestRestart kills the publisher and starts another in its place, whose history
// happens to be as long.
func TestRestart(t *testing.T) {
	f := func(name string, replay bool) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := newPublisher(t, "127.0.0.1:0", replay, 0)
			b.describe("a", p, 4)
			b.feed.SetEngines(engines(t, "a"))
			joined(t, p)
			p.publish(stored(4, nil, 1))
			p.publish(stored(4, nil, 2))
			b.until("a", 1, 2)
			address := p.live.Addr().String()
			p.close()
			q := newPublisher(t, address, false, 1000)
			if replay {
				q.again = listen(t, p.again.Addr().String())
				q.wg.Go(func() { q.accept(q.again, "ROUTER") })
				q.publish(stored(4, nil, 3))
				q.publish(stored(4, nil, 4))
			}
			joined(t, q)
			b.until("a", 0, 1)
			b.until("a", 0, 2)
			q.publish(stored(4, nil, 5))
			b.until("a", 1, 5)
			if replay {
				b.until("a", 1, 3) // the new life's history is taken from its beginning
			}
		})
	}
	f("with replay", true)
	f("without replay", false)
}

// TestNumbersGoBack restarts the count on the same connection, as a proxy in
// between would show it.
// TestSocketsMove has an engine come back on other ports: no connection is ever
// made again that would lead to the question where its sockets are.
func TestSocketsMove(t *testing.T) {
	f := func(name string, gone bool) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := newPublisher(t, "127.0.0.1:0", true, 0)
			b.describe("a", p, 4)
			b.feed.SetEngines(engines(t, "a"))
			joined(t, p)
			p.publish(stored(4, nil, 1))
			b.until("a", 1, 1)
			q := newPublisher(t, "127.0.0.1:0", true, 1000)
			if gone {
				p.close()
			}
			b.describe("a", q, 4)
			joined(t, q)
			q.publish(stored(4, nil, 2))
			b.until("a", 1, 2)
			b.until("a", 0, 1)
		})
	}
	f("the old ones closed", true)
	f("the old ones open", false)
}

func TestNumbersGoBack(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	for h := range int64(3) {
		p.publish(stored(4, nil, h))
	}
	b.until("a", 1, 2)
	p.mu.Lock()
	p.seq = 0
	p.mu.Unlock()
	p.publish(stored(4, nil, 8))
	b.until("a", 1, 8)
	b.until("a", 0, 2)
}

// TestWarmStart subscribes late to an engine with a history.
func TestWarmStart(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", true, 0)
	p.publish(stored(4, nil, 1))
	p.publish(stored(4, int64(1), 2))
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	b.until("a", 2, 1, 2)
	joined(t, p)
	p.publish(stored(4, int64(2), 3))
	b.until("a", 3, 1, 2, 3)
	b.counted(`shunt_prefix_replays_total{model="m",outcome="warmed"} 1`)
}

func TestUndecodable(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	p.publish(stored(4, nil, 1))
	b.until("a", 1, 1)
	p.mu.Lock()
	p.send([]byte("nonsense"))
	p.mu.Unlock()
	b.until("a", 0, 1)
	p.publish(stored(4, nil, 2))
	b.until("a", 1, 2)
	b.counted(`shunt_prefix_undecodable_batches_total{model="m"} 1`)
	b.counted(`shunt_prefix_gaps_total{model="m"} 0`)
}

// TestBlockSizes refuses an engine that disagrees, and takes it when the others
// have left; then one changes its block size in place.
func TestBlockSizes(t *testing.T) {
	b := newBench(t)
	p, q := newPublisher(t, "127.0.0.1:0", false, 0), newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	b.describe("b", q, 8)
	all := engines(t, "a", "b")
	b.feed.SetEngines(all[:1])
	b.state(all[0], feed.Subscribed)
	b.feed.SetEngines(all)
	b.state(all[1], feed.Refused)
	if d := b.known(all[1]).Detail; !strings.Contains(d, "blocks of 8 tokens") {
		t.Errorf("detail %q", d)
	}
	b.feed.SetEngines(all[1:])
	b.state(all[1], feed.Subscribed)
	joined(t, q)
	q.publish(stored(8, nil, 1))
	b.until("b", 1, 1)
	// A larger block than announced shows that the engine is another now.
	b.describe("b", q, 16)
	q.publish(stored(16, nil, 2))
	eventually(t, func() bool { h, _ := b.space.Hashing(); return h.BlockSize == 16 },
		func() string { return "the block size was not learned again" })
	joined(t, q)
	b.until("b", 0, 1)
	q.publish(stored(16, nil, 3))
	b.until("b", 1, 3)
}

func TestStates(t *testing.T) {
	b := newBench(t)
	all := engines(t, "a")
	b.feed.SetEngines(all)
	b.state(all[0], feed.Unknown)
	b.mu.Lock()
	b.infos["a"] = engineinfo.Info{}
	b.mu.Unlock()
	b.state(all[0], feed.Silent)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	b.state(all[0], feed.Subscribed)
}
