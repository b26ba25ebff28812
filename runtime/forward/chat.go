package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/prepare"
)

const chatPath = "/v1/chat/completions"

// Timeouts bound a request. A zero value is no limit.
type Timeouts struct {
	// Request bounds a buffered answer, from dispatch to its last byte.
	Request time.Duration
	// Header bounds the wait for the head of a stream. A buffered answer's head
	// comes with its end, so Request alone bounds that.
	Header time.Duration
	// StreamIdle is the longest silence inside a stream, and bounds the body of
	// a refusal.
	StreamIdle time.Duration
	// Stale bounds the whole life of a request on every engine.
	Stale time.Duration
}

// Call is one request and where it goes: to Plain alone, or to Prefill and
// Decode together.
type Call struct {
	Plain, Prefill, Decode *fleet.Engine
	Request                *prepare.Request
	// InputIDs are token ids that the engines shall use as they are; nil is none.
	InputIDs []uint32
	// Start is when the request arrived; the stale limit and the time to the
	// first token count from it. Zero is now.
	Start time.Time
	// Timestamped leases take a slot that load-based policies count.
	Timestamped bool
	Timeouts    Timeouts

	// Report is written by Chat.
	Report Report
}

// Report says what became of a call.
type Report struct {
	// RID is the name that the router gave the request on the engine.
	RID string
	// Status is what the client was sent; 0 if nothing.
	Status int
	// Outcome is that of the answering engine.
	Outcome Outcome
	// Stream is set if a stream reached the client.
	Stream StreamEnd
	// FirstToken is the time to the first event of a stream.
	FirstToken time.Duration
}

// answering is the engine whose answer the client gets.
func (c *Call) answering() *fleet.Engine {
	if c.Decode != nil {
		return c.Decode
	}
	return c.Plain
}

// exchange is one call under way, on the goroutine of its handler.
type exchange struct {
	f       *Forwarder
	call    *Call
	in      *http.Request
	cancel  context.CancelCauseFunc // of the answering leg
	lease   *fleet.Lease            // of the answering leg
	prefill *prefill                // nil for plain
	header  http.Header
	body    []byte
}

// Chat dispatches the call and writes the answer. It returns an *Error while
// nothing is written, ErrClientGone or ErrAborted, and nil for a complete
// answer. The call's engines are a complete selection. The caller bounds writes
// to a client that does not read.
func (f *Forwarder) Chat(w http.ResponseWriter, r *http.Request, c *Call) error {
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	c.Report = Report{}
	x := &exchange{f: f, call: c, in: r}
	first, err := x.acquire()
	if err != nil {
		return err
	}
	defer x.lease.Release()
	x.compose()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	x.cancel = cancel
	stop := stopAfter(time.Until(c.Start.Add(c.Timeouts.Stale)), c.Timeouts.Stale, cancel, errStale)
	defer stop()
	if first != nil && !x.startPrefill(ctx, first) {
		first.Release()
		return ShuttingDown()
	}
	err = x.run(ctx, w)
	f.observer.Engine(x.lease.Engine(), c.Report.Outcome)
	return err
}

// stopAfter cancels a leg after d and returns what disarms that; a limit of 0
// never does.
func stopAfter(d, limit time.Duration, cancel context.CancelCauseFunc, cause error) (stop func() bool) {
	if limit <= 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(d, func() { cancel(cause) }).Stop
}

// acquire takes the leases, both or none.
func (x *exchange) acquire() (first *fleet.Lease, err error) {
	var at time.Time
	if x.call.Timestamped {
		at = time.Now()
	}
	if x.call.Prefill != nil {
		if first, err = x.call.Prefill.Lease(at); err != nil {
			return nil, breakerOpen(fmt.Errorf("prefill engine %s: %w", x.call.Prefill.ID(), err))
		}
	}
	if x.lease, err = x.call.answering().Lease(at); err != nil {
		if first != nil {
			first.Release()
		}
		return nil, breakerOpen(fmt.Errorf("engine %s: %w", x.call.answering().ID(), err))
	}
	return first, nil
}

// compose makes the header and the body that the engines get. The request is
// named only where its name is the router's alone, since engines abort by
// prefix and name several completions after one.
func (x *exchange) compose() {
	req := x.call.Request
	add := prepare.Fields{InputIDs: x.call.InputIDs}
	x.header = prepare.EngineHeader(x.in.Header, req.Stream)
	if !req.OwnID && !req.Several {
		add.RID = x.f.name()
		x.call.Report.RID = add.RID
	}
	if p := x.call.Prefill; p != nil {
		host, port := p.Bootstrap()
		add.Bootstrap = &prepare.Bootstrap{Host: host, Port: port, Room: x.f.rand() >> 1}
		x.header[prepare.DecodeURL] = []string{x.call.Decode.URL()}
	}
	x.body = req.Outgoing(add)
}

// errBadURL marks an engine URL that no request can be made from.
var errBadURL = errors.New("engine URL is unusable")

// post sends a body to an engine and waits for the head of its answer.
func (f *Forwarder) post(ctx context.Context, e *fleet.Engine, path string, h http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, errors.Join(errBadURL, err)
	}
	req.Header = h
	resp, err := f.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusOK {
		// 101 turns the connection into something else, and what is below 100
		// is no status at all.
		resp.Body.Close()
		return nil, fmt.Errorf("status %d is not an answer", resp.StatusCode)
	}
	return resp, nil
}

// run is the answering leg: it posts, and passes the answer on.
func (x *exchange) run(ctx context.Context, w http.ResponseWriter) error {
	t := &x.call.Timeouts
	limit := t.Request
	if x.call.Request.Stream {
		limit = t.Header
	}
	stop := stopAfter(limit, limit, x.cancel, errTimeout)
	resp, err := x.f.post(ctx, x.lease.Engine(), chatPath, x.header, x.body)
	if err != nil {
		stop()
		return x.lost(ctx, w, err, 0)
	}
	defer resp.Body.Close()
	if x.call.Request.Stream {
		stop()
		if success(resp.StatusCode) {
			return x.relay(ctx, w, resp)
		}
		stop = stopAfter(t.StreamIdle, t.StreamIdle, x.cancel, errTimeout)
	}
	defer stop()
	return x.whole(ctx, w, resp)
}

// whole reads the complete answer before any of it is passed on.
func (x *exchange) whole(ctx context.Context, w http.ResponseWriter, resp *http.Response) error {
	buf := x.f.buffer()
	defer x.f.recycle(buf)
	if err := readAll(buf, resp, x.f.maxAnswer); err != nil {
		return x.lost(ctx, w, err, resp.StatusCode)
	}
	outcome, verdict := judge(resp.StatusCode)
	x.end(outcome, verdict)
	if x.prefill != nil {
		if success(resp.StatusCode) {
			x.prefill.prove()
		} else {
			x.prefill.giveUp(errDecodeFailed)
		}
	}
	return x.write(w, answer{resp.StatusCode, contentType(resp, x.call.Request.Stream), buf.Bytes()})
}

// answer is a complete answer of an engine.
type answer struct {
	status      int
	contentType string
	body        []byte
}

// write passes an answer on. All that was held for it is released before, since
// the engine has finished.
func (x *exchange) write(w http.ResponseWriter, a answer) error {
	x.lease.Release()
	h := w.Header()
	h["Content-Type"] = []string{a.contentType}
	h["Content-Length"] = []string{fmt.Sprint(len(a.body))}
	w.WriteHeader(a.status)
	x.call.Report.Status = a.status
	if _, err := w.Write(a.body); err != nil {
		return ErrAborted
	}
	return nil
}

// contentType is that of a buffered answer: JSON, except that the refusal of a
// stream keeps the engine's own.
func contentType(resp *http.Response, stream bool) string {
	if stream {
		if t := resp.Header.Get("Content-Type"); t != "" {
			return t
		}
	}
	return "application/json"
}

// end notes how the answering engine did.
func (x *exchange) end(o Outcome, verdict fleet.Outcome) {
	x.call.Report.Outcome = o
	x.lease.Record(verdict)
}

// lost ends a call whose answering leg broke before anything was written.
// Status is that of the answer's head, 0 if there was none.
func (x *exchange) lost(ctx context.Context, w http.ResponseWriter, err error, status int) error {
	cause := context.Cause(ctx)
	if broken, ok := errors.AsType[*brokenPrefill](cause); ok {
		x.end(Cancelled, fleet.Abandoned)
		x.abort(ctx, AbortPrefill)
		return x.withoutPrefill(w, broken)
	}
	switch cause {
	case nil:
		return x.broken(ctx, err, status)
	case errStale:
		x.end(Cancelled, fleet.Abandoned)
		x.f.observer.Expired(false)
		x.abort(ctx, AbortExpired)
		x.giveUp(errStale)
		return expired(err)
	case errTimeout:
		x.end(Failed, fleet.Failure)
		x.abort(ctx, AbortTimeout)
		x.giveUp(errTimeout)
		return timedOut(err)
	case ErrShutdown:
		x.end(CutOff, fleet.Abandoned)
		x.abort(ctx, AbortShutdown)
		x.giveUp(ErrShutdown)
		return ShuttingDown()
	}
	// The client left. The prefill leg goes on: a transfer must not be cut.
	x.end(Cancelled, fleet.Abandoned)
	x.abort(ctx, AbortCancelled)
	return ErrClientGone
}

// broken ends a call whose engine failed by itself.
func (x *exchange) broken(ctx context.Context, err error, status int) error {
	x.end(Failed, fleet.Failure)
	x.giveUp(errDecodeFailed)
	x.f.log.LogAttrs(ctx, slog.LevelWarn, "engine failed", engineAttrs(x.lease.Engine(), err)...)
	if status != 0 {
		x.abort(ctx, AbortTransport)
		return incomplete(status, err)
	}
	if errors.Is(err, errBadURL) {
		return misconfigured(err)
	}
	if !neverSent(err) {
		x.abort(ctx, AbortTransport)
	}
	return unreachable(err)
}

// neverSent reports whether no connection to the engine came about.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// giveUp ends the prefill leg, which cannot finish without its decode engine.
func (x *exchange) giveUp(cause error) {
	if x.prefill != nil {
		x.prefill.giveUp(cause)
	}
}

var errTooLarge = errors.New("answer exceeds the limit")

// readAll reads a complete body; a cut one is an error.
func readAll(buf *bytes.Buffer, resp *http.Response, limit int64) error {
	if n := resp.ContentLength; n > 0 {
		buf.Grow(int(min(n, 1<<20)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, limit+1))
	if err == nil && n > limit {
		err = errTooLarge
	}
	return err
}

func (f *Forwarder) buffer() *bytes.Buffer { return f.buffers.Get().(*bytes.Buffer) }

// recycle keeps a buffer for the next answer, unless it grew large.
func (f *Forwarder) recycle(buf *bytes.Buffer) {
	if buf.Cap() <= 1<<20 {
		buf.Reset()
		f.buffers.Put(buf)
	}
}
