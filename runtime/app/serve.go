package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"shunt/runtime/forward"
)

// Limits of a client connection. Bodies and answers have limits of their own.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
	heartbeat         = 5 * time.Second
)

// endpoint is one listener and the server on it.
type endpoint struct {
	name string
	ln   net.Listener
	srv  *http.Server
	// cut ends the requests of the endpoint with a cause.
	cut context.CancelCauseFunc
}

func listen(ctx context.Context, name, addr string, h http.Handler, log *slog.Logger) (*endpoint, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s listener: %w", name, err)
	}
	// Requests outlive ctx: a drain waits for them, and cuts them itself.
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	return &endpoint{name: name, ln: ln, cut: cut, srv: &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

func (e *endpoint) serve() error {
	if err := e.srv.Serve(e.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s listener: %w", e.name, err)
	}
	return nil
}

// drain describes an orderly stop.
type drain struct {
	delay   time.Duration // keep accepting, not ready
	timeout time.Duration // then wait for requests in flight
	log     *slog.Logger
	unready func()
	busy    func() int64 // requests in flight
}

// stop drains the endpoints. More signals cut it short: the first ends the
// delay, the second the wait; one that asks for a reload comes too late and does
// neither. It reports whether every request ended by itself.
func (d *drain) stop(first os.Signal, signals <-chan os.Signal, all []*endpoint) bool {
	d.unready()
	if first == syscall.SIGTERM {
		d.log.Info("draining", "signal", first.String(), "delay", d.delay, "timeout", d.timeout)
		d.pause(d.delay, signals)
	} else {
		d.log.Info("stopping", "timeout", d.timeout)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	watched := make(chan struct{})
	var watcher, shutdowns sync.WaitGroup
	watcher.Go(func() { d.watch(watched, cancel, signals) })
	var cut atomic.Bool
	for _, e := range all {
		shutdowns.Go(func() {
			defer e.cut(nil)
			if e.srv.Shutdown(ctx) != nil {
				cut.Store(true)
				// Requests must know why before their connections close, or their clients
				// would be said to have left.
				e.cut(forward.ErrShutdown)
				e.settle()
			}
		})
	}
	shutdowns.Wait()
	close(watched)
	watcher.Wait()
	return !cut.Load()
}

// settleTimeout bounds how long requests that were cut have to say so.
const settleTimeout = time.Second

// settle closes the connections when the handlers of cut requests have ended, or
// did not for too long: one that waits for a body does not see its context.
func (e *endpoint) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	if e.srv.Shutdown(ctx) != nil {
		_ = e.srv.Close() // the listener is gone already, connections follow
	}
}

func (d *drain) pause(delay time.Duration, signals <-chan os.Signal) {
	t := time.NewTimer(delay)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				d.log.Info("second signal, the delay ends")
				return
			}
			d.log.Info(noReload)
		}
	}
}

const noReload = "draining, the plan is not reloaded any more"

// watch reports on a drain until it is over, and cuts it at a signal.
func (d *drain) watch(over <-chan struct{}, cut context.CancelFunc, signals <-chan os.Signal) {
	t := time.NewTicker(heartbeat)
	defer t.Stop()
	for {
		select {
		case <-over:
			return
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				d.log.Info(noReload)
				continue
			}
			d.log.Warn("further signal, requests in flight are cut", "inflight", d.busy())
			cut()
			signals = nil
		case <-t.C:
			d.log.Info("waiting for requests in flight", "inflight", d.busy())
		}
	}
}
