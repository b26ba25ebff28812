package load

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/fleet"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/tasks"
	"shunt/runtime/state/zmtp"
)

// Options configures a feed.
type Options struct {
	// Model labels metrics and log lines. Required.
	Model string
	// Table receives the reports. Required.
	Table *Table
	// Describe asks an engine for its sockets; nil asks /server_info over HTTP.
	Describe func(ctx context.Context, e *fleet.Engine) (engineinfo.Info, error)
	// VLLM says that the engines are vLLM: they publish no load and are polled at
	// /metrics, and Describe is not called.
	VLLM bool
	// Client polls; nil is http.DefaultClient.
	Client *http.Client
	// Interval is the pause between polls; 0 is 1 s.
	Interval time.Duration
	// Recheck is the pause before an engine is asked again where it publishes, since
	// it may have come back with other sockets; 0 is 60 s.
	Recheck time.Duration
	// ZMTP configures connections.
	ZMTP zmtp.Options
	// Log and Metrics are required.
	Log     *slog.Logger
	Metrics *metrics.Set
	// Jitter draws a number below n; nil adds no jitter.
	Jitter func(n int64) int64
	// Now is the clock of reports; nil is time.Now.
	Now func() time.Time
}

// Feed brings the reports of engines into a table: as the engines publish them
// where they do, else by asking over HTTP. There is one subscription for each
// engine and rank. A Feed is safe for concurrent use; Run starts its goroutines
// and waits for them.
type Feed struct {
	o     Options
	group tasks.Group

	reports, polls, failures, undecodable *metrics.Counter
}

// NewFeed makes a feed. Nothing happens before Run.
func NewFeed(o Options) *Feed {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Recheck <= 0 {
		o.Recheck = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.VLLM {
		o.Describe = func(context.Context, *fleet.Engine) (engineinfo.Info, error) { return engineinfo.Info{}, nil }
	}
	if o.Describe == nil {
		fetcher := &engineinfo.Fetcher{Client: o.Client}
		o.Describe = func(ctx context.Context, e *fleet.Engine) (engineinfo.Info, error) {
			return fetcher.Fetch(ctx, e.URL())
		}
	}
	f := &Feed{o: o}
	f.group.Task = f.serve
	counter := func(name string) *metrics.Counter {
		return o.Metrics.GetOrCreateCounter(fmt.Sprintf("shunt_load_%s{model=%q}", name, o.Model))
	}
	f.reports, f.polls = counter("reports_total"), counter("polls_total")
	f.failures, f.undecodable = counter("poll_failures_total"), counter("undecodable_reports_total")
	return f
}

// SetEngines makes engines the ones to follow. The reports of those that left
// are withdrawn.
func (f *Feed) SetEngines(engines []*fleet.Engine) { f.group.Set(engines) }

// Run follows the engines until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	f.group.Run(ctx)
	return context.Cause(ctx)
}

// source is one engine being followed.
type source struct {
	f      *Feed
	engine *fleet.Engine
	// heard is when a published report came last, for each rank that publishes, in
	// nanoseconds.
	heard []atomic.Int64
	// ask has room for one request to ask the engine again.
	ask chan struct{}

	info  engineinfo.Info
	stop  context.CancelFunc
	wg    sync.WaitGroup
	ranks []int // of the last poll
	odd   int   // ranks of a poll that disagreed with info and was asked about
	basic bool  // the engine has only the deprecated endpoint
}

// serve is the task of one engine. It polls whenever no published report came
// for two intervals, so an engine that advertises a socket and does not bind it
// is still heard.
func (f *Feed) serve(ctx context.Context, e *fleet.Engine) {
	s := &source{f: f, engine: e, ask: make(chan struct{}, 1)}
	defer f.o.Table.Forget(e)
	defer s.end()
	described := time.Time{}
	first := true
	for {
		asked := s.asked()
		if first || asked || time.Since(described) >= f.o.Recheck {
			if !s.update(ctx) && asked {
				s.again() // the engine came back, perhaps as another, and cannot tell yet
			}
			described, first = time.Now(), false
		}
		if s.silent() {
			s.poll(ctx)
		}
		pause := f.o.Interval
		if f.o.Jitter != nil {
			pause += time.Duration(f.o.Jitter(int64(pause)/5+1)) - pause/10
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// silent reports whether some rank published nothing for two intervals.
func (s *source) silent() bool {
	since := s.f.o.Now().Add(-2 * s.f.o.Interval).UnixNano()
	for i := range s.heard {
		if s.heard[i].Load() < since {
			return true
		}
	}
	return len(s.heard) == 0
}

// asked reports whether the engine should be described again, because it may have
// come back with other sockets.
func (s *source) asked() bool {
	select {
	case <-s.ask:
		return true
	default:
		return false
	}
}

// update asks where the engine publishes, and subscribes to every rank. It reports
// whether the engine answered.
func (s *source) update(ctx context.Context) bool {
	info, err := s.f.o.Describe(ctx, s.engine)
	if err != nil {
		return false
	}
	publishes := info.Publishes && info.LoadPort != 0
	if s.stop != nil && info == s.info || s.stop == nil && !publishes {
		return true
	}
	s.end()
	s.f.o.Table.Forget(s.engine)
	if publishes {
		s.subscribe(ctx, info)
	}
	return true
}

// subscribe follows every rank of an engine that publishes.
func (s *source) subscribe(ctx context.Context, info engineinfo.Info) {
	s.odd = 0
	s.info, s.heard = info, make([]atomic.Int64, info.Ranks)
	sub, stop := context.WithCancel(ctx)
	s.stop = stop
	for rank := range info.Ranks {
		s.f.o.Table.Expect(s.engine, rank)
		address := info.Address(info.LoadPort, rank)
		if address == "" {
			continue
		}
		ups := 0
		subscriber := &zmtp.Subscriber{
			Address: address, Topic: info.LoadTopic, Options: s.f.o.ZMTP, Jitter: s.f.o.Jitter,
			Message: func(_ context.Context, parts [][]byte) error { s.message(rank, parts); return nil },
			Up: func(context.Context) error {
				if ups++; ups > 1 {
					s.again()
				}
				return nil
			},
		}
		s.wg.Go(func() { _ = subscriber.Run(sub) })
	}
	s.f.o.Log.Info("load reports of engine", "model", s.f.o.Model, "engine", s.engine.ID(), "ranks", info.Ranks)
}

func (s *source) again() {
	select {
	case s.ask <- struct{}{}:
	default:
	}
}

func (s *source) end() {
	if s.stop != nil {
		s.stop()
		s.wg.Wait()
		s.stop, s.heard = nil, nil
	}
}

// message stores a published report. It is a gauge: the last one wins, and its
// sequence number does not matter.
func (s *source) message(rank int, parts [][]byte) {
	r, err := DecodeStat(parts[len(parts)-1])
	if err != nil {
		s.f.undecodable.Inc()
		s.f.o.Log.Debug("load report not understood", "engine", s.engine.ID(), "rank", rank, "error", err)
		return
	}
	now := s.f.o.Now()
	s.heard[rank].Store(now.UnixNano())
	s.f.reports.Inc()
	s.f.o.Table.Put(s.engine, rank, r, now)
}

// poll asks once. A failure leaves the last reports to grow old.
func (s *source) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(2*s.f.o.Interval, 2*time.Second))
	defer cancel()
	s.f.polls.Inc()
	reports, err := s.fetch(ctx)
	if err != nil {
		s.f.failures.Inc()
		s.f.o.Log.Debug("load poll failed", "engine", s.engine.ID(), "error", err)
		return
	}
	ranks := ranksOf(reports)
	if s.stop == nil && s.ranks != nil && !slices.Equal(s.ranks, ranks) {
		// Other ranks: the old ones must not be waited for.
		s.f.o.Table.Forget(s.engine)
	}
	s.ranks = ranks
	if s.stop != nil && len(reports) != s.info.Ranks && len(reports) != s.odd {
		// The engine restarted before every rank was connected, so that no connection
		// was lost. It is asked once: it may publish for other ranks than it polls.
		s.odd = len(reports)
		s.again()
	}
	now := s.f.o.Now()
	for _, r := range reports {
		s.f.o.Table.Put(s.engine, r.Rank, r.Report, now)
	}
	s.f.reports.Add(len(reports))
}

// ranksOf are the ranks of reports, in ascending order.
func ranksOf(reports []RankReport) []int {
	ranks := make([]int, len(reports))
	for i, r := range reports {
		ranks[i] = r.Rank
	}
	slices.Sort(ranks)
	return ranks
}

// fetch asks the present endpoint, and falls back to the deprecated one where it
// does not exist.
func (s *source) fetch(ctx context.Context) ([]RankReport, error) {
	if s.f.o.VLLM {
		raw, err := engineinfo.Get(ctx, s.f.o.Client, s.engine.URL()+"/metrics")
		if err != nil {
			return nil, err
		}
		return DecodeMetrics(raw)
	}
	if !s.basic {
		raw, err := engineinfo.Get(ctx, s.f.o.Client, s.engine.URL()+"/v1/loads?include=core")
		if err == nil {
			return DecodeLoads(raw)
		}
		if !errors.Is(err, engineinfo.ErrRefused) {
			return nil, err
		}
	}
	raw, err := engineinfo.Get(ctx, s.f.o.Client, s.engine.URL()+"/get_load")
	if err != nil {
		// Perhaps the engine is another by now: begin with the present endpoint.
		s.basic = false
		return nil, err
	}
	s.basic = true
	return DecodeGetLoad(raw)
}
