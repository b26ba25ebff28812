package feed

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/fleet"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/wire"
	"shunt/runtime/state/tasks"
	"shunt/runtime/state/zmtp"
)

// Options configures a feed.
type Options struct {
	// Model labels metrics and log lines. Required.
	Model string
	// Index takes the events; nil follows the engines' descriptions only, for a
	// remote index that has its own feed.
	Index *prefix.Index
	// Namespace learns how the engines hash. Required.
	Namespace *prefix.Namespace
	// Scheme is how the engines hash; 0 is prefix.SGLang. Seed is vLLM's.
	Scheme prefix.Scheme
	Seed   string
	// Describe asks an engine for its sockets; nil asks /server_info over HTTP.
	Describe func(ctx context.Context, e *fleet.Engine) (engineinfo.Info, error)
	// ZMTP configures connections.
	ZMTP zmtp.Options
	// ReplayTimeout bounds one replay, and four times it the repair of one gap;
	// 0 is 5 s.
	ReplayTimeout time.Duration
	// Recheck is the pause before an engine is asked again, since it may have come
	// back with other sockets; 0 is 30 s. Those that did not answer are asked after
	// a thirtieth of it at first.
	Recheck time.Duration
	// Queue is the number of decoded batches between the subscriptions and the
	// index; 0 is 128. A full queue makes the subscriptions wait, and the engines'
	// high-water mark drop messages, which is seen as a gap.
	Queue int
	// Log and Metrics are required.
	Log     *slog.Logger
	Metrics *metrics.Set
	// Jitter draws a number below n; nil adds no jitter to pauses.
	Jitter func(n int64) int64
}

// Feed subscribes to engines and applies their events.
type Feed struct {
	o       Options
	group   tasks.Group
	counts  counters
	free    chan *wire.Batch
	queue   chan item
	large   chan struct{} // a place for each large batch in the queue
	mu      sync.Mutex
	engines map[*fleet.Engine]followed
}

// followed is what is known about an engine, and its subscriptions.
type followed struct {
	State
	ranks []*rank
	x     *following
}

// item is one batch on its way to the index.
type item struct {
	rank  *rank
	batch *wire.Batch
	large bool // it has a place of Feed.large
}

// Batches of more than largeBatch bytes are rare, and at most mostLarge of them wait:
// a queue full of the largest would take more than a gigabyte.
const (
	largeBatch = 1 << 20
	mostLarge  = 4
)

// State is what a feed knows about an engine, for admin views.
type State struct {
	// Text is one of the constants below.
	Text string
	// Detail explains a failure or a refusal.
	Detail string
	Ranks  int
}

// RankState is what a feed knows about one subscription, for admin views.
type RankState struct {
	Rank int
	// Connected says that the subscription's connection is up.
	Connected bool
	// Last is the sequence number of the last batch, -1 before the first and after
	// a reset.
	Last int64
	// Gaps counts holes in the sequence, Lost the batches in them, replayed or not,
	// and Resets how often everything that the rank held was forgotten.
	Gaps, Lost, Resets int64
	// Blocks is how many blocks of the index the rank holds.
	Blocks int
	// Lag is how long after its publication the last batch took effect, by the
	// clocks of two hosts; below zero before the first.
	Lag time.Duration
}

// The states of an engine.
const (
	Asking     = "asking"
	Unknown    = "unreachable"
	Silent     = "publishes nothing"
	Refused    = "refused"
	Subscribed = "subscribed"
)

// New makes a feed. Nothing happens before Run.
func New(o Options) *Feed {
	if o.Scheme == 0 {
		o.Scheme = prefix.SGLang
	}
	if o.ReplayTimeout <= 0 {
		o.ReplayTimeout = 5 * time.Second
	}
	if o.Recheck <= 0 {
		o.Recheck = 30 * time.Second
	}
	if o.Queue <= 0 {
		o.Queue = 128
	}
	if o.Describe == nil {
		fetcher := &engineinfo.Fetcher{}
		o.Describe = func(ctx context.Context, e *fleet.Engine) (engineinfo.Info, error) {
			return fetcher.Fetch(ctx, e.URL())
		}
	}
	f := &Feed{o: o, engines: make(map[*fleet.Engine]followed)}
	f.counts.register(o)
	f.group.Task = f.serve
	f.free = make(chan *wire.Batch, o.Queue)
	f.queue = make(chan item, o.Queue)
	f.large = make(chan struct{}, mostLarge)
	for range o.Queue {
		f.free <- new(wire.Batch)
	}
	return f
}

// SetEngines makes engines the ones to follow. Those that left lose their
// blocks.
func (f *Feed) SetEngines(engines []*fleet.Engine) { f.group.Set(engines) }

// Again asks all engines again where their sockets are, soon: what Describe says may
// have changed.
func (f *Feed) Again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.engines {
		e.x.again()
	}
}

// State is what is known about an engine, false if it is not followed.
func (f *Feed) State(e *fleet.Engine) (State, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.engines[e]
	return s.State, ok
}

// Ranks is a snapshot of the subscriptions of an engine, by rank.
func (f *Feed) Ranks(e *fleet.Engine) []RankState {
	f.mu.Lock()
	ranks := f.engines[e].ranks
	f.mu.Unlock()
	out := make([]RankState, len(ranks))
	for i, r := range ranks {
		out[i] = r.state()
	}
	return out
}

// held counts the blocks and owners of all engines that the feed follows.
func (f *Feed) held() (blocks, owners int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.engines {
		for _, r := range e.ranks {
			n, _ := r.owner.Held()
			blocks, owners = blocks+n, owners+1
		}
	}
	return blocks, owners
}

// subscribed notes the subscriptions of an engine, nil for none.
func (f *Feed) subscribed(e *fleet.Engine, ranks []*rank) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x, ok := f.engines[e]; ok {
		x.ranks = ranks
		f.engines[e] = x
	}
}

// Run follows the engines until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	defer f.expose()()
	var wg sync.WaitGroup
	applied, stop := context.WithCancel(context.WithoutCancel(ctx))
	wg.Go(func() { f.apply(applied) })
	f.group.Run(ctx)
	// The subscriptions have ended; nobody waits for the queue any more.
	stop()
	wg.Wait()
	return context.Cause(ctx)
}

// apply is the only writer of events.
func (f *Feed) apply(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case it := <-f.queue:
			if it.rank.live.Load() {
				it.rank.owner.Apply(it.batch)
				f.counts.applied(it.batch, &it.rank.seen)
			}
			f.release(it.batch)
			if it.large {
				<-f.large
			}
		}
	}
}

// release gives a batch back. One that grew large is not kept.
func (f *Feed) release(b *wire.Batch) {
	if b.Size() > largeBatch {
		b = new(wire.Batch)
	}
	f.free <- b
}

func (f *Feed) note(x *following, s State) {
	e := x.engine
	f.mu.Lock()
	known := f.engines[e]
	old := known.State
	known.State, known.x = s, x
	f.engines[e] = known
	f.mu.Unlock()
	if s == old || s.Text == Asking {
		return
	}
	// Without its events an engine is never picked for its cache.
	level := slog.LevelWarn
	if s.Text == Subscribed && s.Detail == "" {
		level = slog.LevelInfo
	}
	f.o.Log.Log(context.Background(), level, "prefix events of engine",
		"model", f.o.Model, "engine", e.ID(), "state", s.Text, "detail", s.Detail, "ranks", s.Ranks)
}

func (f *Feed) forget(e *fleet.Engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.engines, e)
}
