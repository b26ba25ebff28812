package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options tune a Forwarder. The zero Options is usable.
type Options struct {
	// ConnectTimeout bounds the connection to an engine; 0 is 5 s. It can be
	// changed later by SetConnectTimeout.
	ConnectTimeout time.Duration
	// IdleConnTimeout is how long an unused connection is kept; 0 is 4 s, just
	// below the 5 s after which the engines' server closes it.
	IdleConnTimeout time.Duration
	// MaxIdlePerEngine bounds the unused connections of one engine; 0 is 1024.
	MaxIdlePerEngine int
	// MaxAnswerBytes bounds a buffered answer; 0 is 256 MiB. A larger one
	// counts as cut.
	MaxAnswerBytes int64
	// AbortTimeout bounds the wait for an engine to accept an abort; 0 is 5 s.
	AbortTimeout time.Duration
	// MaxAborts bounds the aborts under way; 0 is 64. Sixteen times as many
	// may wait, and more are dropped.
	MaxAborts int
	// TLS is the client side for https engines; nil is the default.
	TLS *tls.Config
	// Log defaults to discarding.
	Log *slog.Logger
	// Observer defaults to none.
	Observer Observer
	// Rand is the source of request ids and bootstrap rooms, safe for
	// concurrent use; nil draws from the process-wide source.
	Rand func() uint64
}

// Forwarder dispatches requests over one pool of connections.
type Forwarder struct {
	transport *http.Transport
	connect   atomic.Int64 // time.Duration
	log       *slog.Logger
	observer  Observer
	rand      func() uint64

	maxAnswer    int64
	abortTimeout time.Duration
	abortQueue   chan struct{} // aborts waiting or under way
	abortSlots   chan struct{} // aborts under way

	chunks  sync.Pool // *[]byte for relaying
	buffers sync.Pool // *bytes.Buffer for whole answers

	mu     sync.Mutex
	closed bool
	tasks  map[*task]struct{}
	wg     sync.WaitGroup
}

// task is a goroutine that may outlive its request.
type task struct{ cancel context.CancelCauseFunc }

const chunkSize = 32 << 10

// New returns a Forwarder. Close ends it.
func New(o Options) *Forwarder {
	f := &Forwarder{
		log: o.Log, observer: o.Observer, rand: o.Rand,
		maxAnswer:    or(o.MaxAnswerBytes, 256<<20),
		abortTimeout: or(o.AbortTimeout, 5*time.Second),
		abortSlots:   make(chan struct{}, or(o.MaxAborts, 64)),
		abortQueue:   make(chan struct{}, 17*or(o.MaxAborts, 64)),
		tasks:        make(map[*task]struct{}),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.observer == nil {
		f.observer = nobody{}
	}
	if f.rand == nil {
		f.rand = rand.Uint64
	}
	f.chunks.New = func() any { b := make([]byte, chunkSize); return &b }
	f.buffers.New = func() any { return new(bytes.Buffer) }
	f.SetConnectTimeout(o.ConnectTimeout)
	f.transport = f.newTransport(o)
	return f
}

func or[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// newTransport tunes the connections: no proxy, no redirects (RoundTrip follows
// none), no compression, HTTP/1.1 only, and room for every request in flight.
func (f *Forwarder) newTransport(o Options) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            f.dial,
		TLSClientConfig:        o.TLS,
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    or(o.MaxIdlePerEngine, 1024),
		IdleConnTimeout:        or(o.IdleConnTimeout, 4*time.Second),
		MaxResponseHeaderBytes: 64 << 10,
		WriteBufferSize:        16 << 10,
	}
}

func (f *Forwarder) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: time.Duration(f.connect.Load())}
	return d.DialContext(ctx, network, addr)
}

// SetConnectTimeout bounds later connections; 0 is 5 s.
func (f *Forwarder) SetConnectTimeout(d time.Duration) {
	f.connect.Store(int64(or(d, 5*time.Second)))
}

// spawn runs a task that the request does not wait for. Its context has the
// request's values but not its cancellation. It reports false after Close.
func (f *Forwarder) spawn(ctx context.Context, run func(context.Context)) (*task, bool) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &task{cancel: cancel}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		cancel(ErrShutdown)
		return nil, false
	}
	f.tasks[t] = struct{}{}
	f.wg.Go(func() {
		defer f.finish(t)
		run(ctx)
	})
	return t, true
}

func (f *Forwarder) finish(t *task) {
	t.cancel(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tasks, t)
}

// Close waits until the prefill legs and aborts have ended, and cancels them
// when ctx is done; then it returns the cause. It takes no new ones. Chat must
// have returned in all handlers before, or may answer 503.
func (f *Forwarder) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		f.wg.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
		f.cancelTasks()
		<-ended
	}
	f.transport.CloseIdleConnections()
	return err
}

func (f *Forwarder) cancelTasks() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.tasks {
		t.cancel(ErrShutdown)
	}
}

// name makes an id of 32 hexadecimal digits.
func (f *Forwarder) name() string {
	const digits = "0123456789abcdef"
	var b [32]byte
	for i := 0; i < len(b); i += 16 {
		for j, v := 0, f.rand(); j < 16; j, v = j+1, v>>4 {
			b[i+j] = digits[v&15]
		}
	}
	return string(b[:])
}
