package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/forward"
	"shunt/runtime/server"
	"shunt/schema/plan"
)

// Options are what a process is started with. Plan, Log and Signals are
// required.
type Options struct {
	Plan PlanSource
	// Listen and Admin replace the plan's addresses if not empty; "off" closes
	// the admin listener.
	Listen, Admin string
	// Version is logged.
	Version string
	// Log receives the log, one line a record.
	Log io.Writer
	// Signals end the process (SIGTERM, SIGINT) or reload the plan (SIGHUP).
	Signals <-chan os.Signal
	// Started, if set, is called with the bound addresses once the listeners
	// accept; admin is empty when it is off.
	Started func(listen, admin string)
}

// process is the running state. Everything that a plan decides hangs off the
// server's generation and routing; fleet, forwarder and metrics live as long as
// the process.
type process struct {
	opts  Options
	log   *slog.Logger
	level *slog.LevelVar

	fleet     *fleet.Fleet
	forwarder *forward.Forwarder
	server    *server.Server
	services  *services

	mu      sync.Mutex // serialises reloads
	plan    *plan.Document
	routing *assemble.Routing
}

// Run serves a plan until a signal ends it or ctx is done, and returns when
// everything that it started has ended. A plan that cannot be served is an
// error, as are requests that had to be cut at the end.
func Run(ctx context.Context, o Options) error {
	document, data, err := o.Plan.read()
	if err != nil {
		return err
	}
	p := &process{opts: o, level: new(slog.LevelVar), fleet: new(fleet.Fleet)}
	defer p.fleet.Close()
	p.log = newLog(o.Log, document.Body.Server.Log, p.level)
	metrics.ExposeMetadata(true) // a switch of the whole process, always on
	set := metrics.NewSet()
	owner := newOwner(ctx, p.log)
	defer owner.end()
	p.services = newServices(p.log, set, owner, p.fleet)
	defer p.services.close()
	meters := server.NewMeters(set, p.fleet)
	p.forwarder = forward.New(forward.Options{Log: p.log, Observer: meters})
	p.server = server.New(server.Options{
		Fleet: p.fleet, Forwarder: p.forwarder, Meters: meters, Log: p.log, Reload: p.reload,
		CacheEvents: p.services.cacheEvents,
	})
	if err := p.install(document, data); err != nil {
		return err
	}
	err = p.serve(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routing.Close()
	return err
}

// install puts a plan into force. Everything that can fail happens before the
// swap, so that on an error the old plan goes on; the engines of a plan that was
// loaded do not fail. Requests that are just being routed by the old plan keep
// its candidates: the engines of the new one could leave its groups empty.
func (p *process) install(d *plan.Document, data []byte) error {
	var before *plan.State
	if p.plan != nil {
		before = &p.plan.Body.State
	}
	draft, err := p.services.draft(&d.Body, before)
	if err != nil {
		return fmt.Errorf("plan %s: %w", d.Digest, err)
	}
	routing, err := assemble.Build(&d.Body, draft.state(p.fleet))
	if err != nil {
		draft.discard()
		return fmt.Errorf("plan %s: %w", d.Digest, err)
	}
	if p.routing != nil {
		p.routing.Close()
	}
	if err := assemble.Engines(&d.Body, p.fleet); err != nil {
		routing.Close()
		draft.discard()
		return fmt.Errorf("plan %s: %w", d.Digest, err)
	}
	// From here on nothing fails.
	p.level.Set(level(d.Body.Server.Log))
	p.forwarder.SetConnectTimeout(ms(d.Body.Server.ConnectTimeoutMS))
	retire := draft.commit(p.fleet)
	p.server.Swap(generation(d, data, routing, draft))
	p.retire(d)
	retire()
	p.plan, p.routing = d, routing
	return nil
}

// retire drops what only the plan before needed.
func (p *process) retire(next *plan.Document) {
	if p.plan == nil {
		return
	}
	kept := make(map[string]bool)
	for i := range next.Body.Models {
		kept[next.Body.Models[i].ID] = true
	}
	for i := range p.plan.Body.Models {
		if id := p.plan.Body.Models[i].ID; !kept[id] {
			p.fleet.Remove(id)
		}
	}
}

func generation(d *plan.Document, data []byte, routing *assemble.Routing, draft *draft) *server.Generation {
	s := &d.Body.Server
	g := &server.Generation{
		Digest: d.Digest,
		Plan:   data,
		Models: make(map[string]*server.Model, len(d.Body.Models)),
		Settings: server.Settings{
			MaxBody:        s.MaxBodyBytes,
			ExposeDecision: s.ExposeDecision,
			Timeouts: forward.Timeouts{
				Request:    ms(s.RequestTimeoutMS),
				Header:     ms(s.HeaderTimeoutMS),
				StreamIdle: ms(s.StreamIdleTimeoutMS),
				Stale:      ms(s.StaleTimeoutMS),
			},
		},
	}
	for i := range d.Body.Models {
		id := d.Body.Models[i].ID
		m := draft.served(&d.Body.Models[i])
		m.Resolver = routing.Resolvers[id]
		g.Models[id] = m
		g.Order = append(g.Order, id)
	}
	return g
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// errRestart is a reload that changes what is fixed while the process runs.
var errRestart = errors.New("server.listen, server.admin and server.log.format change only with a restart")

// reload puts the plan file as it is now into force. The digest returned is the
// one in force, also when the new plan was refused.
func (p *process) reload(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, data, err := p.opts.Plan.read()
	switch {
	case err != nil:
	case next.Digest == p.plan.Digest:
		p.log.Info("plan unchanged", "digest", next.Digest)
		return next.Digest, nil
	case p.fixed(&next.Body.Server):
		err = errRestart
	default:
		err = p.install(next, data)
	}
	if err != nil {
		p.server.NoteFailure(err)
		p.log.Error("plan refused, the old one stays in force", "digest", p.plan.Digest, "error", err)
		return p.plan.Digest, err
	}
	p.log.Info("plan in force", "digest", next.Digest)
	return next.Digest, nil
}

// inForce is the plan; an administrator may reload it at any time.
func (p *process) inForce() *plan.Document {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan
}

// fixed reports whether settings differ that a reload cannot change.
func (p *process) fixed(next *plan.Server) bool {
	now := &p.plan.Body.Server
	return now.Listen != next.Listen || now.Admin != next.Admin || now.Log.Format != next.Log.Format
}

func (p *process) serve(ctx context.Context) error {
	all, err := p.listen(ctx)
	if err != nil {
		return err
	}
	failed := make(chan error, len(all))
	var serving sync.WaitGroup
	for _, e := range all {
		serving.Go(func() {
			if err := e.serve(); err != nil {
				failed <- err
			}
		})
	}
	p.server.SetServing(true)
	p.announce(all)
	sig, err := p.wait(ctx, failed)
	s := &p.inForce().Body.Server
	d := drain{
		delay: ms(s.DrainDelayMS), timeout: ms(s.DrainTimeoutMS), log: p.log,
		unready: func() { p.server.SetServing(false) }, busy: p.inflight,
	}
	clean := d.stop(sig, p.opts.Signals, all)
	serving.Wait()
	rest, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if closeErr := p.forwarder.Close(rest); closeErr != nil {
		p.log.Warn("engine calls were cut", "error", closeErr)
	}
	p.log.Info("stopped", "clean", clean)
	if err == nil && !clean {
		err = errors.New("requests in flight were cut at the end of the drain")
	}
	return err
}

// closeTimeout bounds the wait for prefill legs and aborts after the last client
// has its answer.
const closeTimeout = 5 * time.Second

func (p *process) listen(ctx context.Context) ([]*endpoint, error) {
	s := &p.plan.Body.Server
	main, err := listen(ctx, "client", cmp.Or(p.opts.Listen, s.Listen), p.server.Handler(), p.log)
	if err != nil {
		return nil, err
	}
	admin := cmp.Or(p.opts.Admin, s.Admin)
	if admin == "" || admin == "off" {
		return []*endpoint{main}, nil
	}
	if !plan.IsLoopback(admin) {
		err := fmt.Errorf("admin listener: %q is not a loopback address, and the admin views ask for no credentials", admin)
		return nil, errors.Join(err, main.ln.Close())
	}
	second, err := listen(ctx, "admin", admin, p.server.Admin(), p.log)
	if err != nil {
		return nil, errors.Join(err, main.ln.Close())
	}
	return []*endpoint{main, second}, nil
}

func (p *process) announce(all []*endpoint) {
	addrs := []string{all[0].ln.Addr().String(), ""}
	if len(all) > 1 {
		addrs[1] = all[1].ln.Addr().String()
	}
	d := p.inForce()
	p.log.Info("serving", "version", p.opts.Version, "listen", addrs[0], "admin", addrs[1],
		"plan", d.Digest, "models", len(d.Body.Models))
	if p.opts.Started != nil {
		p.opts.Started(addrs[0], addrs[1])
	}
}

// wait returns the signal that ends the process, or why it ends without one.
func (p *process) wait(ctx context.Context, failed <-chan error) (os.Signal, error) {
	for {
		select {
		case <-ctx.Done():
			return syscall.SIGINT, nil
		case err := <-failed:
			p.log.Error("listener failed", "error", err)
			return syscall.SIGINT, err
		case sig := <-p.opts.Signals:
			if sig != syscall.SIGHUP {
				return sig, nil
			}
			_, _ = p.reload(ctx) // it has logged the outcome
		}
	}
}

// inflight counts requests held open on engines.
func (p *process) inflight() int64 {
	var n int64
	for _, m := range p.fleet.Models() {
		for _, e := range p.fleet.Engines(m) {
			n += e.Inflight()
		}
	}
	return n
}
