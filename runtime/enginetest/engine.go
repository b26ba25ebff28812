package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Engine is one running simulated engine. Start makes it, Close ends it.
type Engine struct {
	opts    Options
	log     *slog.Logger
	started time.Time
	addr    string

	ctx    context.Context // ends when the engine closes
	cancel context.CancelCauseFunc

	scheduler *scheduler
	rooms     rooms
	faults    faults
	records   recorder
	ids       atomic.Uint64 // numbers the requests that bring no rid
	lane      chan struct{} // held by the one prompt that is computed
	client    *http.Client  // of a decode engine, for bootstrap servers

	bootstrapPort int // of a prefill engine

	// The prefix cache and its sockets, which a restart replaces.
	pubMu sync.Mutex
	pub   *publishers // nil without a prefix cache, and while stopped
	ports publishers  // settled by the first start

	reporting sync.WaitGroup // the publisher of loads

	// The listener comes and goes with the Refuse fault.
	mu      sync.Mutex
	server  *http.Server    // accepts requests now; nil while refusing
	ended   <-chan struct{} // closed when server accepts no more
	servers []*http.Server  // all there ever were, for their connections
	reopen  *time.Timer
	closed  bool

	serving  sync.WaitGroup // Serve loops
	handling sync.WaitGroup // requests in progress
}

// Start starts an engine and returns when it accepts connections.
func Start(opts Options) (*Engine, error) {
	o, err := opts.complete()
	if err != nil {
		return nil, err
	}
	e := &Engine{
		opts: o, log: o.Log.With("engine", o.ID), started: time.Now(),
		scheduler: newScheduler(o), lane: make(chan struct{}, 1),
		rooms:   rooms{open: map[int64]*room{}},
		records: recorder{limit: o.RecordLimit},
		client: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		}},
	}
	// Like a test server, an engine lives until it is closed, whoever
	// started it.
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	if o.Role == Prefill {
		if err := e.openBootstrap(); err != nil {
			e.cancel(errClosed)
			return nil, err
		}
	}
	if o.BlockSize > 0 {
		e.ports = publishers{events: o.EventPort, replay: o.ReplayPort, loads: o.LoadPort}
		if err := e.RestartCache(o.BlockSize, o.Ranks); err != nil {
			e.Close()
			return nil, err
		}
		if o.PublishLoads {
			e.reporting.Go(e.publishLoads)
		}
	}
	if err := e.open(o.Listen); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// RestartCache is what a restart of the engine's process does to its prefix cache:
// the sockets close and open again on the same ports, sequence numbers begin at
// zero, and the cache is empty. Block size and number of ranks may be others.
func (e *Engine) RestartCache(blockSize, ranks int) error {
	if blockSize < 1 || ranks < 1 {
		return errors.New("enginetest: a cache needs a block size and a rank")
	}
	e.pubMu.Lock()
	defer e.pubMu.Unlock()
	e.stopCache()
	p, err := openPublishers(e.opts, blockSize, ranks, e.ports)
	if err != nil {
		return fmt.Errorf("enginetest: publisher: %w", err)
	}
	e.pub = p
	e.ports = publishers{events: p.events, replay: p.replay, loads: p.loads}
	return nil
}

// StopCache closes the sockets and forgets the cache, until RestartCache. The
// engine goes on answering, as one whose publisher died.
func (e *Engine) StopCache() {
	e.pubMu.Lock()
	defer e.pubMu.Unlock()
	e.stopCache()
}

func (e *Engine) stopCache() {
	if e.pub != nil {
		e.pub.close()
		e.pub = nil
	}
}

// publishers returns the present ranks, nil without a cache.
func (e *Engine) publishers() *publishers {
	e.pubMu.Lock()
	defer e.pubMu.Unlock()
	return e.pub
}

// ClearCache empties the prefix cache and publishes that.
func (e *Engine) ClearCache() {
	if p := e.publishers(); p != nil {
		for _, r := range p.ranks {
			r.clear()
		}
	}
}

// CachePrompt puts a prompt into the prefix cache as if it had been computed. With
// distinct prompts it floods the subscribers.
func (e *Engine) CachePrompt(tokens []uint32) {
	if p := e.publishers(); p != nil {
		q := prompt{tokens: tokens}
		r, _ := p.choose(q)
		r.store(q)
	}
}

// CachedTokens returns how many leading tokens of a prompt are cached, by the rank
// that has most of it.
func (e *Engine) CachedTokens(tokens []uint32) int {
	p := e.publishers()
	if p == nil {
		return 0
	}
	_, n := p.choose(prompt{tokens: tokens})
	return n
}

// CachedBlocks counts the blocks in the prefix cache of all ranks.
func (e *Engine) CachedBlocks() (n int) {
	if p := e.publishers(); p != nil {
		for _, r := range p.ranks {
			r.mu.Lock()
			n += len(r.cache.blocks)
			r.mu.Unlock()
		}
	}
	return n
}

// Published tells about the event sockets: the subscriptions, and how many
// messages slow subscribers lost.
func (e *Engine) Published() (subscribers int, dropped int64) {
	if p := e.publishers(); p != nil {
		for _, r := range p.ranks {
			if r.events != nil {
				subscribers += r.events.subscribers()
				r.events.mu.Lock()
				dropped += r.events.dropped
				r.events.mu.Unlock()
			}
		}
	}
	return subscribers, dropped
}

// open listens on addr and serves there. The first call settles the address,
// later ones are for the same. Called like serve.
func (e *Engine) open(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("enginetest: %w", err)
	}
	if e.addr == "" {
		e.addr = l.Addr().String()
	}
	e.server, e.ended = e.serve(l, e.routes())
	return nil
}

func (e *Engine) openBootstrap() error {
	l, err := net.Listen("tcp", e.opts.BootstrapListen)
	if err != nil {
		return fmt.Errorf("enginetest: bootstrap server: %w", err)
	}
	e.bootstrapPort = l.Addr().(*net.TCPAddr).Port
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rooms/{room}", e.serveRoom)
	e.serve(l, e.counted(mux))
	return nil
}

// serve runs a server until it is closed, and then closes ended. Called with mu
// held or before the engine is known to anybody else.
func (e *Engine) serve(l net.Listener, h http.Handler) (s *http.Server, ended <-chan struct{}) {
	s = &http.Server{
		Handler:     h,
		BaseContext: func(net.Listener) context.Context { return e.ctx },
		ErrorLog:    slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
	}
	e.servers = append(e.servers, s)
	done := make(chan struct{})
	e.serving.Go(func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			e.log.Error("stopped serving", "error", err)
		}
	})
	return s, done
}

// counted lets Close wait for the requests in progress.
func (e *Engine) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		closed := e.closed
		if !closed {
			e.handling.Add(1)
		}
		e.mu.Unlock()
		if closed {
			return
		}
		defer e.handling.Done()
		h.ServeHTTP(w, r)
	})
}

// routes is the engine's HTTP surface.
func (e *Engine) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", e.generating(chat{}))
	mux.HandleFunc("POST /v1/completions", e.generating(completions{}))
	mux.HandleFunc("POST /generate", e.generating(native{}))
	mux.HandleFunc("POST /abort_request", e.abortRequest)
	mux.HandleFunc("POST /tokenize", e.introspecting(e.tokenize))
	mux.HandleFunc("/flush_cache", e.flushCache)
	for path, h := range e.reports() {
		mux.HandleFunc("GET "+path, e.introspecting(h))
	}
	mux.HandleFunc("POST /_sim/fault", e.postFault)
	mux.HandleFunc("GET /_sim/fault", e.getFaults)
	mux.HandleFunc("DELETE /_sim/fault", e.deleteFaults)
	mux.HandleFunc("GET /_sim/requests", e.getRequests)
	mux.HandleFunc("GET /_sim/state", e.getState)
	mux.HandleFunc("POST /_sim/cache", e.postCache)
	return e.counted(mux)
}

// reports are the endpoints that only report.
func (e *Engine) reports() map[string]http.HandlerFunc {
	if e.opts.VLLM {
		return map[string]http.HandlerFunc{"/health": e.health, "/v1/models": e.models, "/metrics": e.vllmMetrics}
	}
	return map[string]http.HandlerFunc{
		"/health":          e.health,
		"/health_generate": e.health,
		"/server_info":     e.serverInfo,
		"/get_server_info": e.serverInfo,
		"/model_info":      e.modelInfo,
		"/get_model_info":  e.modelInfo,
		"/v1/models":       e.models,
		"/v1/loads":        e.loads,
		"/get_load":        e.legacyLoad,
	}
}

// ID returns the engine's name.
func (e *Engine) ID() string { return e.opts.ID }

// Role returns what the engine computes.
func (e *Engine) Role() Role { return e.opts.Role }

// Addr returns the host:port of the HTTP endpoint.
func (e *Engine) Addr() string { return e.addr }

// URL returns the address of the HTTP endpoint, without a trailing slash.
func (e *Engine) URL() string { return "http://" + e.addr }

// BootstrapPort returns the port of a prefill engine's bootstrap server, on the
// host that Options.BootstrapListen names. It is 0 for other roles.
func (e *Engine) BootstrapPort() int { return e.bootstrapPort }

// Requests returns copies of the latest requests to the generating endpoints,
// oldest first.
func (e *Engine) Requests() []Request { return e.records.snapshot() }

// AbortedRIDs returns the rids that /abort_request was called with, oldest
// first, whether or not a request matched.
func (e *Engine) AbortedRIDs() []string { return e.records.abortedRIDs() }

// State returns what the engine is doing.
func (e *Engine) State() State { return e.scheduler.snapshot() }

// Wait returns as soon as ok is true of the engine's state, or with an error
// when ctx ends first. It does not poll.
func (e *Engine) Wait(ctx context.Context, ok func(State) bool) (State, error) {
	return e.scheduler.wait(ctx, ok)
}

// Rooms returns how many bootstrap rooms of a prefill engine are in use.
func (e *Engine) Rooms() int { return e.rooms.count() }

// Inject adds a fault after those injected before.
func (e *Engine) Inject(f Fault) error {
	f, err := f.complete()
	if err != nil {
		return err
	}
	if f.Kind == Refuse {
		return e.refuse(f.For)
	}
	e.faults.add(f)
	return nil
}

// ClearFaults removes all faults and listens again when a fault stopped it.
// Requests that already hang go on hanging.
func (e *Engine) ClearFaults() error {
	e.faults.clear()
	return e.accept()
}

// refuse closes the listener and the connections without a request. It listens
// again after lasting, unless that is zero.
func (e *Engine) refuse(lasting time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.server == nil {
		return errors.New("enginetest: the engine does not listen")
	}
	// Shutdown closes the listener and idle connections at once; a context
	// that has ended keeps it from waiting for the others.
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	if err := e.server.Shutdown(ended); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("enginetest: %w", err)
	}
	// The socket is closed when the accepting goroutine lets go of it; until then
	// connections are made, only to be reset.
	<-e.ended
	e.server = nil
	if lasting > 0 {
		e.reopen = time.AfterFunc(lasting, func() {
			if err := e.accept(); err != nil {
				e.log.Error("cannot listen again", "error", err)
			}
		})
	}
	return nil
}

// accept listens again on the same port if the engine does not listen now.
func (e *Engine) accept() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reopen != nil {
		e.reopen.Stop()
		e.reopen = nil
	}
	if e.closed || e.server != nil {
		return nil
	}
	return e.open(e.addr)
}

// Close ends every request, closes all connections and returns when nothing of
// the engine runs any more. Later calls do nothing.
func (e *Engine) Close() {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.closed = true
	if e.reopen != nil {
		e.reopen.Stop()
	}
	servers := e.servers
	e.mu.Unlock()
	e.cancel(errClosed)
	for _, s := range servers {
		s.Close()
	}
	e.StopCache()
	e.reporting.Wait()
	e.handling.Wait()
	e.serving.Wait()
	e.client.CloseIdleConnections()
}
