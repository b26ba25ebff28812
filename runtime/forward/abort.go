package forward

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"shunt/runtime/fleet"
)

const abortPath = "/abort_request"

// abort tells the answering engine to stop, by the request's own name.
func (x *exchange) abort(ctx context.Context, why AbortReason) {
	x.f.abort(ctx, x.lease.Engine(), x.call.Report.RID, x.header["Authorization"], why)
}

// abort tells an engine to stop a request that the router named, with the
// client's authorization, and waits for nothing. A request without such a name
// is stopped by its closed connection alone.
func (f *Forwarder) abort(ctx context.Context, e *fleet.Engine, rid string, authorization []string, why AbortReason) {
	sent := rid != "" && f.queueAbort(ctx, e, rid, authorization)
	f.observer.Abort(why, sent)
	f.log.LogAttrs(ctx, slog.LevelDebug, "request given up on engine", slog.String("engine", e.ID()),
		slog.String("reason", string(why)), slog.String("rid", rid), slog.Bool("abort_sent", sent))
}

// queueAbort reports whether there was room for one more abort.
func (f *Forwarder) queueAbort(ctx context.Context, e *fleet.Engine, rid string, authorization []string) bool {
	select {
	case f.abortQueue <- struct{}{}:
	default:
		return false
	}
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": nil}
	if authorization != nil {
		h["Authorization"] = authorization
	}
	_, ok := f.spawn(ctx, func(ctx context.Context) {
		defer func() { <-f.abortQueue }()
		f.sendAbort(ctx, e, rid, h)
	})
	if !ok {
		<-f.abortQueue
	}
	return ok
}

// sendAbort waits for a slot and posts; the abort timeout bounds both together.
func (f *Forwarder) sendAbort(ctx context.Context, e *fleet.Engine, rid string, h http.Header) {
	ctx, cancel := context.WithTimeout(ctx, f.abortTimeout)
	defer cancel()
	select {
	case f.abortSlots <- struct{}{}:
		defer func() { <-f.abortSlots }()
	case <-ctx.Done():
		f.log.LogAttrs(ctx, slog.LevelWarn, "abort not sent: too many under way", slog.String("engine", e.ID()))
		return
	}
	body := fmt.Appendf(nil, `{"rid": %q, "abort_all": false}`, rid)
	resp, err := f.post(ctx, e, abortPath, h, body)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, chunkSize))
		resp.Body.Close()
		if err == nil && !success(resp.StatusCode) {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	if err != nil {
		f.log.LogAttrs(ctx, slog.LevelWarn, "abort failed", engineAttrs(e, err)...)
	}
}

// engineAttrs describe a failure for logs; addresses and causes go nowhere else.
func engineAttrs(e *fleet.Engine, err error) []slog.Attr {
	return []slog.Attr{slog.String("model", e.Model()), slog.String("engine", e.ID()), slog.String("role", e.Role().String()),
		slog.String("url", e.URL()), slog.String("error", err.Error())}
}
