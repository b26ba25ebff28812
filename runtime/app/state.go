package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/prepare"
	"shunt/runtime/server"
	"shunt/runtime/state/affinity"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/load"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/feed"
	"shunt/runtime/state/prefix/indexer"
	"shunt/schema/plan"
)

// services are the state that the policies of a process share. What a new plan
// goes on needing survives a reload with all that it knows. They belong to the
// goroutine that holds the process's lock; what they hand out is safe for
// concurrent use.
type services struct {
	log   *slog.Logger
	set   *metrics.Set
	owner *owner
	fleet *fleet.Fleet
	// http asks engines for descriptions and loads.
	http  *http.Client
	table load.Table
	// digests spare hashing what was hashed before, for all models.
	digests *prefix.Digests
	// tokens and queries are process-wide bounds.
	tokens  *prepare.TokenLimit
	queries *indexer.Limit

	index    *prefix.Index // nil unless the plan has a local one
	bindings *bindings     // nil until a plan needs them
	mu       sync.Mutex    // guards models and bindings against readers of metrics
	models   map[string]*modelState
}

// modelState is what one model has of the services; absent ones are nil.
type modelState struct {
	loads     *running[*load.Feed]
	events    *running[*feed.Feed]
	source    *source
	caches    *policy.CacheCounters
	tokenizer *tokenizer

	// kind is what the engines run, nil for SGLang, and said what the plan in force
	// says about their events.
	kind *plan.EngineKind
	said *atomic.Pointer[said]
}

// runner is a feed.
type runner interface {
	Run(ctx context.Context) error
	SetEngines(engines []*fleet.Engine)
}

// running is a feed that may have been started; stop is nil before.
type running[F runner] struct {
	feed F
	stop func()
}

func (r *running[F]) start(o *owner, name string) {
	if r.stop == nil {
		r.stop = o.spawn(name, r.feed.Run)
	}
}

// end stops a feed and returns when it has given up all that it knew.
func (r *running[F]) end() {
	if r != nil && r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

func newServices(log *slog.Logger, set *metrics.Set, o *owner, f *fleet.Fleet) *services {
	s := &services{
		log: log, set: set, owner: o, fleet: f, models: make(map[string]*modelState),
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 4 * time.Second, ResponseHeaderTimeout: 5 * time.Second,
		}},
		tokens: prepare.NewTokenLimit(0, 0),
	}
	set.RegisterMetricsWriter(s.write)
	return s
}

// draft is the services as a plan wants them, nothing of it in force: an error
// leaves everything as it was.
type draft struct {
	s        *services
	index    *prefix.Index
	bindings *bindings
	models   map[string]*modelState
	said     map[string]*said
	fresh    []func() // undo what is new
}

// errState is a reload that changes a service which lives as long as the process.
var errState = errors.New("changes only with a restart")

// draft makes what the plan needs and does not exist yet.
func (s *services) draft(b *plan.Body, before *plan.State) (d *draft, err error) {
	d = &draft{s: s, models: make(map[string]*modelState), said: make(map[string]*said)}
	defer func() {
		if err != nil {
			d.discard()
		}
	}()
	if err := fixedState(&b.State, before); err != nil {
		return d, err
	}
	if p := b.State.Prefix; p != nil {
		d.prefixes(p)
	}
	if d.bindings, err = s.bind(b.State.Affinity); err != nil {
		return d, fmt.Errorf("state.affinity: %w", err)
	}
	if fresh := d.bindings; fresh != nil && fresh != s.bindings {
		d.fresh = append(d.fresh, fresh.close)
	}
	for i := range b.Models {
		m := &b.Models[i]
		if err := d.model(b, m); err != nil {
			return d, fmt.Errorf("model %q: %w", m.ID, err)
		}
	}
	return d, nil
}

// fixedState refuses what cannot change while the process runs. A section that
// comes or goes is no change.
func fixedState(next, before *plan.State) error {
	if before == nil {
		return nil
	}
	if next.Load.Transport != before.Load.Transport || next.Load.PollIntervalMS != before.Load.PollIntervalMS {
		return fmt.Errorf("state.load.transport or poll_interval %w", errState)
	}
	if a, b := next.Prefix, before.Prefix; a != nil && b != nil && !(equal(a.Local, b.Local) && equal(a.Remote, b.Remote)) {
		return fmt.Errorf("state.prefix %w", errState)
	}
	return nil
}

// equal compares what two pointers point to.
func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func (d *draft) prefixes(p *plan.PrefixState) {
	if p.Local != nil {
		if d.index = d.s.index; d.index == nil {
			d.index = prefix.NewIndex(int(p.Local.MaxBlocks))
		}
	}
	if p.Remote != nil && d.s.queries == nil {
		d.s.queries = indexer.NewLimit(int(p.Remote.MaxInflight))
	}
	if d.s.digests == nil {
		d.s.digests = prefix.NewDigests(0)
	}
}

// model makes what one model needs, or takes over what it has.
func (d *draft) model(b *plan.Body, m *plan.Model) error {
	old := d.s.models[m.ID]
	if old == nil {
		old = &modelState{}
	}
	// Feeds follow engines of one kind; another kind is another beginning.
	n := &modelState{kind: m.Engine, said: old.said}
	same := sameKind(old.kind, m.Engine)
	if n.said == nil || !same {
		n.said = new(atomic.Pointer[said])
	}
	d.models[m.ID], d.said[m.ID] = n, newSaid(m)
	if len(m.Requires.LoadReports) > 0 {
		if n.loads = old.loads; n.loads == nil || !same {
			n.loads = &running[*load.Feed]{feed: d.s.loadFeed(m, &b.State.Load)}
		}
	}
	if len(m.Requires.PrefixSource) > 0 && b.State.Prefix != nil {
		n.events, n.source, n.caches = old.events, old.source, old.caches
		if n.source == nil || !same {
			if err := d.prefixSource(m, b.State.Prefix, n); err != nil {
				return fmt.Errorf("state.prefix: %w", err)
			}
		}
	}
	return d.tokenizer(m, n)
}

// loadFeed makes the feed of one model's load reports. One that only polls asks
// nobody for sockets.
func (s *services) loadFeed(m *plan.Model, l *plan.LoadState) *load.Feed {
	o := load.Options{
		Model: m.ID, VLLM: m.RunsVLLM(), Table: &s.table, Client: s.http, Interval: ms(l.PollIntervalMS),
		Log: s.log, Metrics: s.set, Jitter: rand.Int64N, Describe: s.describe,
	}
	if l.Transport == plan.LoadPoll {
		o.Describe = func(context.Context, *fleet.Engine) (engineinfo.Info, error) { return engineinfo.Info{}, nil }
	}
	return load.NewFeed(o)
}

func (s *services) describe(ctx context.Context, e *fleet.Engine) (engineinfo.Info, error) {
	f := engineinfo.Fetcher{Client: s.http}
	return f.Fetch(ctx, e.URL())
}

// prefixSource makes the source of one model, and the feed that it needs: of the
// index, or only of what the engines say about their blocks.
func (d *draft) prefixSource(m *plan.Model, p *plan.PrefixState, n *modelState) error {
	model, space := m.ID, new(prefix.Namespace)
	n.caches = new(policy.CacheCounters)
	n.events = &running[*feed.Feed]{feed: d.s.eventFeed(m, d.index, space, n.said)}
	if p.Remote == nil {
		n.source = newSource(model, &prefix.Local{Index: d.index, Namespace: space, Digests: d.s.digests}, d.s.set)
		return nil
	}
	client, err := indexer.New(indexer.Options{
		Endpoints: []string{p.Remote.Endpoint}, Timeout: ms(p.Remote.QueryTimeoutMS),
		Limit: d.s.queries, Namespace: space, Digests: d.s.digests,
	})
	if err != nil {
		return err
	}
	n.source = newSource(model, client, d.s.set)
	n.source.close = client.Close
	d.fresh = append(d.fresh, func() { _ = client.Close() })
	return nil
}

// discard gives back what was made for a plan that does not come into force.
func (d *draft) discard() {
	for _, undo := range d.fresh {
		undo()
	}
}

// state is what the resolvers are built on.
func (d *draft) state(f *fleet.Fleet) assemble.State {
	a := assemble.State{Fleet: f, Prefixes: make(map[string]prefix.Source), Caches: make(map[string]*policy.CacheCounters)}
	if d.bindings != nil {
		a.Bindings = d.bindings.store
	}
	for id, m := range d.models {
		if m.source != nil {
			a.Prefixes[id], a.Caches[id] = m.source, m.caches
		}
	}
	return a
}

// commit puts the draft into force: it starts what is new and has the feeds
// follow the fleet as it is now. It returns what ends the services that the plan
// needs no more; that comes after the swap, so that no pick misses them.
func (d *draft) commit(f *fleet.Fleet) (retire func()) {
	s := d.s
	before := s.models
	s.mu.Lock()
	s.models, s.index = d.models, d.index
	if d.bindings != nil {
		s.bindings = d.bindings
	}
	s.mu.Unlock()
	if d.bindings != nil {
		d.bindings.start(s.owner)
	}
	for id, m := range d.models {
		engines := slices.Clone(f.Engines(id))
		m.said.Store(d.said[id])
		if old := before[id]; old != nil {
			// What takes the place of a feed begins when that one has given up.
			if old.loads != m.loads {
				old.loads.end()
			}
			if old.events != m.events {
				old.events.end()
			}
		}
		if m.loads != nil {
			m.loads.feed.SetEngines(engines)
			m.loads.start(s.owner, "load reports of "+id)
		}
		if m.events != nil {
			m.events.feed.Again()
			m.events.feed.SetEngines(holders(engines))
			m.events.start(s.owner, "prefix events of "+id)
		}
	}
	return func() {
		for id, old := range before {
			now := d.models[id]
			if now == nil {
				now = &modelState{}
			}
			if old.loads != now.loads {
				old.loads.end()
			}
			if old.events != now.events {
				old.events.end()
			}
			if old.source != now.source {
				old.source.end()
			}
			if old.tokenizer != now.tokenizer {
				old.tokenizer.end()
			}
		}
	}
}

// cacheEvents tells what became of the events of an engine.
func (s *services) cacheEvents(e *fleet.Engine) (server.CacheEvents, bool) {
	s.mu.Lock()
	m, index := s.models[e.Model()], s.index
	s.mu.Unlock()
	if m == nil || m.events == nil {
		return server.CacheEvents{}, false
	}
	state, ok := m.events.feed.State(e)
	if !ok {
		return server.CacheEvents{}, false
	}
	v := server.CacheEvents{State: state.Text, Detail: state.Detail}
	if index != nil {
		v.Blocks = index.Held(e.URL())
	}
	for _, r := range m.events.feed.Ranks(e) {
		out := server.RankEvents{Rank: r.Rank, Connected: r.Connected, Gaps: r.Gaps, LostBatches: r.Lost, Resets: r.Resets, Blocks: r.Blocks}
		if r.Last >= 0 {
			out.LastSequence = &r.Last
		}
		if r.Lag >= 0 {
			lag := float64(r.Lag.Microseconds()) / 1000
			out.LagMS = &lag
		}
		v.Ranks = append(v.Ranks, out)
	}
	return v, true
}

// holders are the engines that a cache-aware policy may pick: decode engines get
// their cache from others, and what they say must not decide how prompts are cut.
func holders(engines []*fleet.Engine) []*fleet.Engine {
	return slices.DeleteFunc(slices.Clone(engines), func(e *fleet.Engine) bool { return e.Role() == fleet.Decode })
}

// close ends everything; nobody picks any more.
func (s *services) close() {
	for _, m := range s.models {
		m.loads.end()
		m.events.end()
		m.source.end()
		m.tokenizer.end()
	}
	if s.bindings != nil {
		s.bindings.close()
	}
	s.http.CloseIdleConnections()
}

// owner runs goroutines and waits for them.
type owner struct {
	// spawn runs something until stop is called, which waits for its end, or until
	// the process ends.
	spawn func(name string, run func(context.Context) error) (stop func())
	// end stops everything and waits.
	end func()
}

// newOwner makes an owner whose goroutines outlive ctx, but have its values:
// services are needed until the last request has its answer.
func newOwner(ctx context.Context, log *slog.Logger) *owner {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	return &owner{
		spawn: func(name string, run func(context.Context) error) func() {
			ctx, cancel := context.WithCancel(life)
			done := make(chan struct{})
			wg.Go(func() {
				defer close(done)
				if err := run(ctx); err != nil && ctx.Err() == nil {
					log.Error("service ended", "service", name, "error", err)
				}
			})
			return func() {
				cancel()
				<-done
			}
		},
		end: func() {
			cancel()
			wg.Wait()
		},
	}
}

// bindings are the affinity store and what it needs.
type bindings struct {
	config plan.AffinityState
	store  affinity.Store
	run    func(ctx context.Context) error // nil if there is nothing to do
	closer func() error                    // nil likewise
	stop   func()
}

func (b *bindings) start(o *owner) {
	if b.run != nil && b.stop == nil {
		b.stop = o.spawn("bindings", b.run)
	}
}

func (b *bindings) close() {
	if b.stop != nil {
		b.stop()
	}
	if b.closer != nil {
		_ = b.closer() // the connections are of no use any more
	}
}

// bind returns the store that a plan wants: nil for none, the present one if it
// is the same.
func (s *services) bind(a *plan.AffinityState) (*bindings, error) {
	if a == nil {
		return nil, nil
	}
	if now := s.bindings; now != nil {
		if now.config.IdleMS != a.IdleMS || !equal(now.config.Memory, a.Memory) || !equal(now.config.Redis, a.Redis) {
			return nil, errState
		}
		return now, nil
	}
	b := &bindings{config: *a}
	if m := a.Memory; m != nil {
		store := affinity.NewMemory(affinity.MemoryOptions{Max: int(m.MaxEntries), Idle: ms(a.IdleMS), Sweep: ms(m.SweepMS)})
		b.store, b.run = store, store.Run
		return b, nil
	}
	if a.Redis == nil {
		return nil, errors.New("no store")
	}
	url, err := secret(a.Redis.URL)
	if err != nil {
		return nil, err
	}
	store, err := affinity.NewRedis(affinity.RedisOptions{
		URL: url, Idle: ms(a.IdleMS), Reject: a.Redis.OnFailure == plan.FailReject, Timeout: ms(a.Redis.TimeoutMS), Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	b.store, b.closer = store, store.Close
	return b, nil
}
