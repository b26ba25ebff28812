package forward

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"shunt/runtime/fleet"
)

// relay passes a stream on, each chunk as it comes. The head goes out as soon as
// the engine sent its own; what breaks later cuts the client's connection.
func (x *exchange) relay(ctx context.Context, w http.ResponseWriter, resp *http.Response) error {
	if cause := context.Cause(ctx); cause != nil {
		return x.lost(ctx, w, cause, resp.StatusCode)
	}
	s := &stream{x: x, src: resp.Body, dst: w, flush: http.NewResponseController(w).Flush}
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	w.WriteHeader(resp.StatusCode)
	x.call.Report.Status = resp.StatusCode
	err := s.flush()
	if err == nil {
		err = s.copy()
	} else {
		err = writeError{err}
	}
	return s.finish(ctx, err)
}

// stream is a relay under way.
type stream struct {
	x     *exchange
	src   io.Reader
	dst   io.Writer
	flush func() error
	scan  scanner
	begun bool // the first token has gone out
}

// writeError is a failure on the client's side.
type writeError struct{ error }

// copy relays until the stream ends, which is nil, or breaks. The idle limit
// runs while the engine is waited for, not while the client is.
func (s *stream) copy() error {
	chunk := s.x.f.chunks.Get().(*[]byte)
	defer s.x.f.chunks.Put(chunk)
	limit := s.x.call.Timeouts.StreamIdle
	var idle *time.Timer
	if limit > 0 {
		idle = time.AfterFunc(limit, func() { s.x.cancel(errTimeout) })
		defer idle.Stop()
	}
	for {
		n, err := s.src.Read(*chunk)
		if idle != nil {
			idle.Stop()
		}
		if n > 0 {
			if err := s.pass((*chunk)[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if idle != nil {
			idle.Reset(limit)
		}
	}
}

// pass scans a chunk and sends it on. The first token must win against a failure
// of the prefill leg.
func (s *stream) pass(chunk []byte) error {
	s.scan.feed(chunk)
	if s.scan.token && !s.begun {
		s.begun = true
		if s.x.prefill != nil && !s.x.prefill.prove() {
			return errPrefillLost
		}
		s.firstToken()
	}
	if _, err := s.dst.Write(chunk); err != nil {
		return writeError{err}
	}
	if err := s.flush(); err != nil {
		return writeError{err}
	}
	return nil
}

var errPrefillLost = errors.New("prefill leg failed before the first token")

// firstToken measures, unless the stream began with an error event.
func (s *stream) firstToken() {
	if s.scan.failed {
		return
	}
	c := s.x.call
	c.Report.FirstToken = time.Since(c.Start)
	s.x.f.observer.FirstToken(c.answering().Model(), c.Report.FirstToken)
}

// finish accounts for a stream that ended with err, nil for a complete one.
func (s *stream) finish(ctx context.Context, err error) error {
	x := s.x
	if err == nil {
		x.end(Succeeded, fleet.Success)
		end := StreamOK
		if s.scan.failed {
			end = StreamErrorEvent
		}
		x.ended(x.lease.Engine(), end)
		return nil
	}
	s.broken(ctx, err)
	return ErrAborted
}

// broken accounts for a stream that was cut. An engine that is not to blame
// counts as alive if it has answered.
func (s *stream) broken(ctx context.Context, err error) {
	x := s.x
	verdict := fleet.Abandoned
	if s.scan.token {
		verdict = fleet.Success
	}
	cause := context.Cause(ctx)
	_, onClient := errors.AsType[writeError](err)
	_, noPrefill := errors.AsType[*brokenPrefill](cause)
	switch {
	case noPrefill || errors.Is(err, errPrefillLost):
		x.end(Cancelled, verdict)
		x.abort(ctx, AbortPrefill)
		x.ended(x.call.Prefill, StreamUpstream)
	case cause == errStale:
		x.end(Cancelled, verdict)
		x.f.observer.Expired(true)
		x.abort(ctx, AbortExpired)
		s.giveUpPrefill(errStale)
		x.ended(x.lease.Engine(), StreamExpired)
	case cause == ErrShutdown:
		x.end(CutOff, fleet.Abandoned)
		x.abort(ctx, AbortShutdown)
		s.giveUpPrefill(ErrShutdown)
		x.ended(x.lease.Engine(), StreamCutOff)
	case onClient || cause != nil && cause != errTimeout:
		x.end(Cancelled, fleet.Success)
		x.abort(ctx, AbortStreamGone)
		x.ended(x.lease.Engine(), StreamClientGone)
	case cause == errTimeout:
		x.end(Failed, fleet.Failure)
		x.abort(ctx, AbortTimeout)
		s.giveUpPrefill(errTimeout)
		x.ended(x.lease.Engine(), StreamUpstream)
	default:
		x.end(Failed, fleet.Failure)
		x.f.log.LogAttrs(ctx, slog.LevelWarn, "stream cut by the engine", engineAttrs(x.lease.Engine(), err)...)
		x.abort(ctx, AbortTransport)
		s.giveUpPrefill(errDecodeFailed)
		x.ended(x.lease.Engine(), StreamUpstream)
	}
}

// giveUpPrefill ends the prefill leg if its transfer is not known to be over.
func (s *stream) giveUpPrefill(cause error) {
	if !s.begun {
		s.x.giveUp(cause)
	}
}

// ended notes the end of a stream, after its leases are settled.
func (x *exchange) ended(blamed *fleet.Engine, end StreamEnd) {
	x.lease.Release()
	x.call.Report.Stream = end
	x.f.observer.Stream(blamed, end)
}
