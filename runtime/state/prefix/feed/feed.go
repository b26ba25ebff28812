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
	mu      sync.Mutex
	engines map[*fleet.Engine]State
}

// item is one batch on its way to the index.
type item struct {
	rank  *rank
	batch *wire.Batch
}

// State is what a feed knows about an engine, for admin views.
type State struct {
	// Text is one of the constants below.
	Text string
	// Detail explains a failure or a refusal.
	Detail string
	Ranks  int
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
	f := &Feed{o: o, engines: make(map[*fleet.Engine]State)}
	f.counts.register(o)
	f.group.Task = f.serve
	f.free = make(chan *wire.Batch, o.Queue)
	f.queue = make(chan item, o.Queue)
	for range o.Queue {
		f.free <- new(wire.Batch)
	}
	return f
}

// SetEngines makes engines the ones to follow. Those that left lose their
// blocks.
func (f *Feed) SetEngines(engines []*fleet.Engine) { f.group.Set(engines) }

// State is what is known about an engine, false if it is not followed.
func (f *Feed) State(e *fleet.Engine) (State, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.engines[e]
	return s, ok
}

// Run follows the engines until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	defer f.counts.expose(f.o)()
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
				f.counts.applied(it.batch)
			}
			f.release(it.batch)
		}
	}
}

// release gives a batch back. One that grew large is not kept.
func (f *Feed) release(b *wire.Batch) {
	if b.Size() > 1<<20 {
		b = new(wire.Batch)
	}
	f.free <- b
}

func (f *Feed) note(e *fleet.Engine, s State) {
	f.mu.Lock()
	old := f.engines[e]
	f.engines[e] = s
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
