package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"shunt/runtime/fleet"
)

// prefill is the prefill leg as the answering leg sees it. The two race once:
// either the leg fails, which ends the request, or the answering leg proves that
// the transfer is over, after which a failure changes nothing any more.
type prefill struct {
	settled atomic.Bool
	task    *task
}

// prove reports whether the transfer is over, and false if the leg failed first.
func (p *prefill) prove() bool { return p.settled.CompareAndSwap(false, true) }

// giveUp ends the leg because of the other one.
func (p *prefill) giveUp(cause error) { p.task.cancel(cause) }

// brokenPrefill is why a request ended by its prefill leg. The answer is the
// engine's if the client should see it, and absent otherwise.
type brokenPrefill struct {
	answer *answer
	cause  error
}

func (b *brokenPrefill) Error() string { return "prefill: " + b.cause.Error() }
func (b *brokenPrefill) Unwrap() error { return b.cause }

// withoutPrefill answers for a request that its prefill leg ended.
func (x *exchange) withoutPrefill(w http.ResponseWriter, b *brokenPrefill) error {
	if b.answer == nil {
		return prefillFailed(b.cause)
	}
	return x.write(w, *b.answer)
}

// prefillLeg is what the leg's goroutine needs. It holds nothing of the call,
// which ends before it.
type prefillLeg struct {
	f      *Forwarder
	lease  *fleet.Lease
	rid    string
	header http.Header
	body   []byte
	stream bool
	// fail ends the answering leg, unless it has proven the transfer.
	fail func(cause error)
}

// startPrefill sends the request to the prefill engine, at the same time as the
// answering leg sends it to the decode engine: each waits for the other. It
// reports false if the Forwarder is closed.
func (x *exchange) startPrefill(ctx context.Context, lease *fleet.Lease) bool {
	p := &prefill{}
	cancelDecode := x.cancel
	leg := &prefillLeg{f: x.f, lease: lease, rid: x.call.Report.RID, header: x.header, body: x.body,
		stream: x.call.Request.Stream,
		fail: func(cause error) {
			if p.settled.CompareAndSwap(false, true) {
				cancelDecode(cause)
			}
		}}
	t := x.call.Timeouts.Stale
	deadline := x.call.Start.Add(t)
	task, ok := x.f.spawn(ctx, func(ctx context.Context) { leg.run(ctx, deadline, t > 0) })
	p.task = task
	x.prefill = p
	return ok
}

// run is the leg. Its accounting is settled before the answering leg learns of
// a failure.
func (l *prefillLeg) run(ctx context.Context, deadline time.Time, limited bool) {
	defer l.lease.Release()
	if limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, deadline, errStale)
		defer cancel()
	}
	broken, status := l.exchange(ctx)
	if broken == nil {
		l.settle(judge(status))
		return
	}
	if status == 0 {
		l.interrupted(ctx, broken)
		return
	}
	outcome, verdict := judge(status)
	if success(status) { // an error event inside a regular answer
		outcome = Failed
	}
	l.settle(outcome, verdict)
	l.warn(ctx, broken.cause)
	l.fail(broken)
}

// exchange posts and reads the answer. It returns why the request must end, and
// the status of the answer unless it was not complete.
func (l *prefillLeg) exchange(ctx context.Context) (broken *brokenPrefill, status int) {
	resp, err := l.f.post(ctx, l.lease.Engine(), chatPath, l.header, l.body)
	if err != nil {
		return &brokenPrefill{cause: err}, 0
	}
	defer resp.Body.Close()
	if !success(resp.StatusCode) {
		return l.refused(resp)
	}
	failed, err := l.drain(resp.Body)
	if err != nil {
		return &brokenPrefill{cause: err}, 0
	}
	if failed {
		return &brokenPrefill{cause: errErrorEvent}, resp.StatusCode
	}
	return nil, resp.StatusCode
}

var errErrorEvent = errors.New("the engine reported an error in its stream")

// drain reads a good answer to its end and reports whether it held an error
// event.
func (l *prefillLeg) drain(body io.Reader) (failed bool, err error) {
	chunk := l.f.chunks.Get().(*[]byte)
	defer l.f.chunks.Put(chunk)
	var scan scanner
	for {
		n, err := body.Read(*chunk)
		scan.feed((*chunk)[:n])
		if err == io.EOF {
			return scan.failed, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// refused reads a refusal. What blames the client or asks it to wait is passed
// on as it is; a fault is not the client's business.
func (l *prefillLeg) refused(resp *http.Response) (*brokenPrefill, int) {
	buf := new(bytes.Buffer)
	if err := readAll(buf, resp, l.f.maxAnswer); err != nil {
		return &brokenPrefill{cause: err}, 0
	}
	b := &brokenPrefill{cause: fmt.Errorf("status %d", resp.StatusCode)}
	if o, _ := judge(resp.StatusCode); o == ClientError || o == Backpressure {
		b.answer = &answer{resp.StatusCode, contentType(resp, l.stream), buf.Bytes()}
	}
	return b, resp.StatusCode
}

// interrupted ends a leg whose answer is not complete, by its own fault or
// because it was cancelled.
func (l *prefillLeg) interrupted(ctx context.Context, b *brokenPrefill) {
	switch cause := context.Cause(ctx); cause {
	case nil:
		l.settle(Failed, fleet.Failure)
		l.warn(ctx, b.cause)
		l.fail(b)
	case errStale:
		l.settle(Cancelled, fleet.Abandoned)
		l.abort(ctx, AbortExpired)
		l.fail(errStale)
	case errTimeout:
		l.settle(Failed, fleet.Failure)
		l.abort(ctx, AbortTimeout)
	case ErrShutdown:
		l.settle(CutOff, fleet.Abandoned)
		l.fail(b)
	default:
		l.settle(Cancelled, fleet.Abandoned)
		l.abort(ctx, AbortDecodeFailed)
	}
}

func (l *prefillLeg) settle(o Outcome, verdict fleet.Outcome) {
	l.lease.Record(verdict)
	l.lease.Release()
	l.f.observer.Engine(l.lease.Engine(), o)
}

func (l *prefillLeg) abort(ctx context.Context, why AbortReason) {
	l.f.abort(ctx, l.lease.Engine(), l.rid, l.header["Authorization"], why)
}

func (l *prefillLeg) warn(ctx context.Context, cause error) {
	l.f.log.LogAttrs(ctx, slog.LevelWarn, "prefill leg failed", engineAttrs(l.lease.Engine(), cause)...)
}
