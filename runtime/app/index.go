package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/feed"
	"shunt/runtime/state/prefix/indexer"
	"shunt/schema/plan"
)

// IndexOptions are what an index process is started with. Plan, Listen, Log
// and Signals are required.
type IndexOptions struct {
	// Plan tells the engines: those of every model that has a cache-aware
	// policy.
	Plan PlanSource
	// Listen is the host:port of the gRPC service, and Metrics that of /metrics
	// and /healthz, if not empty.
	Listen, Metrics string
	// MaxBlocks bounds the index; 0 is prefix.DefaultMaxBlocks.
	MaxBlocks int
	// MaxInflight bounds the queries worked on at a time; 0 is the protocol's
	// default.
	MaxInflight int
	Log         io.Writer
	// Signals end the process (SIGTERM, SIGINT) or read the plan again (SIGHUP).
	Signals <-chan os.Signal
	// Started, if set, is called with the bound addresses once they accept.
	Started func(listen, metrics string)
}

// indexProcess is a running index.
type indexProcess struct {
	o     IndexOptions
	log   *slog.Logger
	set   *metrics.Set
	fleet *fleet.Fleet
	owner *owner
	s     *services
	index *prefix.Index
	feeds map[string]*indexed
}

// indexed is the feed of one model's events.
type indexed struct {
	running[*feed.Feed]
	kind *plan.EngineKind
	said atomic.Pointer[said]
}

// Index serves the prefix index of a plan's engines to several routers, until a
// signal ends it or ctx is done.
func Index(ctx context.Context, o IndexOptions) error {
	document, _, err := o.Plan.read()
	if err != nil {
		return err
	}
	p := &indexProcess{
		o: o, set: metrics.NewSet(), fleet: new(fleet.Fleet), index: prefix.NewIndex(o.MaxBlocks),
		feeds: make(map[string]*indexed),
	}
	p.log = newLog(o.Log, document.Body.Server.Log, new(slog.LevelVar))
	p.owner = newOwner(ctx, p.log)
	p.s = newServices(p.log, p.set, p.owner, p.fleet)
	p.s.index = p.index
	defer p.fleet.Close()
	defer p.owner.end()
	defer p.s.close()
	if err := p.follow(&document.Body); err != nil {
		return fmt.Errorf("plan %s: %w", document.Digest, err)
	}
	return p.serve(ctx)
}

// errNoPrefix is a plan of which no policy asks who holds a prefix.
var errNoPrefix = errors.New("no policy of the plan looks up prefixes, so there is nothing to index")

// follow makes the engines of a plan the ones that are indexed.
func (p *indexProcess) follow(b *plan.Body) error {
	wanted := make(map[string]*plan.Model)
	for i := range b.Models {
		if len(b.Models[i].Requires.PrefixSource) > 0 {
			wanted[b.Models[i].ID] = &b.Models[i]
		}
	}
	if len(wanted) == 0 {
		return errNoPrefix
	}
	if err := assemble.Engines(b, p.fleet); err != nil {
		return err
	}
	for id, f := range p.feeds {
		switch m := wanted[id]; {
		case m == nil:
			f.end()
			delete(p.feeds, id)
			p.fleet.Remove(id)
		case !sameKind(f.kind, m.Engine):
			f.end()
			delete(p.feeds, id)
		}
	}
	for id, m := range wanted {
		f := p.feeds[id]
		if f == nil {
			f = &indexed{kind: m.Engine}
			f.running = running[*feed.Feed]{feed: p.s.eventFeed(m, p.index, new(prefix.Namespace), &f.said)}
			p.feeds[id] = f
		}
		f.said.Store(newSaid(m))
		f.feed.Again()
		f.feed.SetEngines(holders(p.fleet.Engines(id)))
		f.start(p.owner, "prefix events of "+id)
	}
	return nil
}

func (p *indexProcess) serve(ctx context.Context) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", p.o.Listen)
	if err != nil {
		return fmt.Errorf("index listener: %w", err)
	}
	var side []*endpoint
	second := ""
	if p.o.Metrics != "" {
		e, err := listen(ctx, "metrics", p.o.Metrics, p.views(), p.log)
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		side, second = append(side, e), e.ln.Addr().String()
	}
	g := indexer.NewServer(p.index, indexer.NewLimit(p.o.MaxInflight), p.set).GRPC()
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(ln); err != nil {
			failed <- fmt.Errorf("index listener: %w", err)
		}
	})
	for _, e := range side {
		serving.Go(func() {
			if err := e.serve(); err != nil {
				failed <- err
			}
		})
	}
	p.log.Info("serving the prefix index", "listen", ln.Addr().String(), "metrics", second, "models", len(p.feeds))
	if p.o.Started != nil {
		p.o.Started(ln.Addr().String(), second)
	}
	err = p.wait(ctx, failed)
	// A router that neither finishes its query nor leaves must not hold the end up.
	cut := time.AfterFunc(closeTimeout, g.Stop)
	g.GracefulStop()
	cut.Stop()
	for _, e := range side {
		_ = e.srv.Close() // scrapes are not worth a wait
	}
	serving.Wait()
	for _, f := range p.feeds {
		f.end()
	}
	p.log.Info("stopped")
	return err
}

func (p *indexProcess) views() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		p.set.WritePrometheus(w)
	})
	return mux
}

// wait returns when the process ends; a hang-up reads the plan again.
func (p *indexProcess) wait(ctx context.Context, failed <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case sig := <-p.o.Signals:
			if sig != syscall.SIGHUP {
				return nil
			}
			document, _, err := p.o.Plan.read()
			if err == nil {
				err = p.follow(&document.Body)
			}
			if err != nil {
				p.log.Error("plan refused, the engines stay", "error", err)
				continue
			}
			p.log.Info("plan read again", "digest", document.Digest)
		}
	}
}
