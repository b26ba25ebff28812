package feed_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/fleet"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/feed"
)

// TestPublisherStaysAway: what a publisher said is not believed for ever after its
// socket is gone, although the engine answers.
func TestPublisherStaysAway(t *testing.T) {
	f := func(name string, replay bool) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := newPublisher(t, "127.0.0.1:0", replay, 0)
			b.describe("a", p, 4)
			all := engines(t, "a")
			b.feed.SetEngines(all)
			joined(t, p)
			p.publish(stored(4, nil, 1))
			b.until("a", 1, 1)
			p.close()
			b.until("a", 0, 1)
			b.state(all[0], feed.Subscribed)
			eventually(t, func() bool { return strings.Contains(b.known(all[0]).Detail, "0 of 1 ranks") },
				func() string { return b.known(all[0]).Detail })
		})
	}
	f("with replay", true)
	f("without replay", false)
}

// TestDeadEngineLeaves: an engine that neither answers nor publishes has no say in
// how prompts are cut, so the others can change their blocks.
func TestDeadEngineLeaves(t *testing.T) {
	b := newBench(t)
	p, q := newPublisher(t, "127.0.0.1:0", true, 0), newPublisher(t, "127.0.0.1:0", true, 0)
	b.describe("a", p, 4)
	b.describe("b", q, 8)
	all := engines(t, "a", "b")
	b.feed.SetEngines(all[:1])
	b.state(all[0], feed.Subscribed)
	b.feed.SetEngines(all)
	b.state(all[1], feed.Refused)
	b.mu.Lock()
	delete(b.infos, "a")
	b.mu.Unlock()
	b.counted(`shunt_prefix_index_owners{model="m"} 1`) // a publishes still, so it stays
	p.close()
	b.state(all[0], feed.Unknown)
	b.state(all[1], feed.Subscribed)
}

// TestMisdescribedBlocks: events that never fit what the engine says about itself do
// not have it asked at each of them.
func TestMisdescribedBlocks(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	began := time.Now()
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	const batches = 3000
	for h := range int64(batches) {
		p.publish(stored(8, nil, h))
	}
	b.until("a", 1, batches-1)
	b.mu.Lock()
	asked, most := b.asked, int(time.Since(began)/recheck)+3
	b.mu.Unlock()
	if asked > most {
		t.Errorf("asked %d times, at most %d are regular", asked, most)
	}
}

// TestGarbageIsToldRarely: batches that are not understood are all counted, and fill
// no log.
func TestGarbageIsToldRarely(t *testing.T) {
	b := newBench(t)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	began := time.Now()
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	const batches = 1000
	for range batches {
		p.publish([]byte("nonsense"))
	}
	b.counted(fmt.Sprintf(`shunt_prefix_undecodable_batches_total{model="m"} %d`, batches))
	b.mu.Lock()
	told, most := strings.Count(b.log.String(), "not understood"), int(time.Since(began)/recheck)+1
	b.mu.Unlock()
	if told < 1 || told > most {
		t.Errorf("told %d times, want 1 to %d", told, most)
	}
}

// TestMixedBlocks: a vLLM engine with blocks of several sizes is refused once, and not
// looked at again at each of its events; another publisher is judged anew.
func TestMixedBlocks(t *testing.T) {
	b := newBenchOf(t, 2*time.Second, prefix.VLLM)
	p := newPublisher(t, "127.0.0.1:0", false, 0)
	b.describe("a", p, 4)
	began := time.Now()
	all := engines(t, "a")
	b.feed.SetEngines(all)
	joined(t, p)
	const batches = 3000
	for h := range int64(batches) {
		p.publish(stored(4+4*int(h%2), nil, h))
	}
	b.until("a", 1, batches-1)
	b.mu.Lock()
	asked, most := b.asked, int(time.Since(began)/recheck)+3
	b.mu.Unlock()
	if asked > most {
		t.Errorf("asked %d times, at most %d are regular", asked, most)
	}
	b.state(all[0], feed.Refused)
	if d := b.known(all[0]).Detail; !strings.Contains(d, "blocks of 8 tokens; the configuration says 4") {
		t.Errorf("detail %q", d)
	}
	p.drop()
	b.state(all[0], feed.Subscribed)
}

// TestEndlessReplay: a publisher that never ends its history is given up, and what
// it says live counts.
func TestEndlessReplay(t *testing.T) {
	b := newBenchWith(t, 100*time.Millisecond)
	p := newPublisher(t, "127.0.0.1:0", true, 0)
	b.describe("a", p, 4)
	b.feed.SetEngines(engines(t, "a"))
	joined(t, p)
	p.publish(stored(4, nil, 1))
	b.until("a", 1, 1)
	p.mu.Lock()
	p.endless = true
	p.mu.Unlock()
	p.drop()
	joined(t, p)
	b.counted(`shunt_prefix_replays_total{model="m",outcome="failed"} 1`)
	b.counted(`shunt_prefix_replays_total{model="m",outcome="cold"} 1`)
	b.until("a", 0, 1)
	p.publish(stored(4, nil, 2))
	b.until("a", 1, 2)
}

// TestNextFeedShowsItsOwnOwners: the metrics of a feed are about its own engines,
// also in an index that others use, and end with it; one that never ran has none.
func TestNextFeedShowsItsOwnOwners(t *testing.T) {
	set := metrics.NewSet()
	index := prefix.NewIndex(0)
	index.Attach("http://of-another-model", 0)
	all := engines(t, "a")
	follow := func(ranks int) *feed.Feed {
		f := feed.New(feed.Options{
			Model: "m", Index: index, Namespace: new(prefix.Namespace), Metrics: set,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Describe: func(context.Context, *fleet.Engine) (engineinfo.Info, error) {
				return engineinfo.Info{Publishes: true, Host: "127.0.0.1", Port: 1, BlockSize: 4, Ranks: ranks}, nil
			},
		})
		f.SetEngines(all)
		return f
	}
	owners := func() string {
		var s strings.Builder
		set.WritePrometheus(&s)
		for line := range strings.Lines(s.String()) {
			if v, ok := strings.CutPrefix(line, `shunt_prefix_index_owners{model="m"} `); ok {
				return strings.TrimSpace(v)
			}
		}
		return "none"
	}
	run := func(f *feed.Feed, want string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		eventually(t, func() bool { return owners() == want }, func() string { return owners() + ", want " + want })
		cancel()
		<-done
	}
	follow(1)
	if got := owners(); got != "none" {
		t.Errorf("a feed that never ran shows %s owners", got)
	}
	run(follow(1), "1")
	run(follow(2), "2")
	if got := owners(); got != "none" {
		t.Errorf("after its end a feed shows %s owners", got)
	}
}
