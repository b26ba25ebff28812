package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"shunt/runtime/forward"
	"shunt/runtime/policy"
	"shunt/runtime/prepare"
	"shunt/runtime/routing"
)

// scope is one HTTP request under way: the response writer that its handler
// sees, and what metrics and log want to know at its end. Scopes are pooled;
// nothing may keep one after the handler returned.
type scope struct {
	http.ResponseWriter
	server *Server
	gen    *Generation // nil before the first Swap
	start  time.Time
	id     string
	status int
	bytes  int64
	// cut asks for the connection to be closed without a regular end.
	cut     bool
	failure *forward.Error

	// What follows belongs to chat requests.
	prepared  prepare.Request
	tokens    prepare.Tokens // zero for models that are not tokenized
	request   routing.Request
	selection routing.Selection
	call      forward.Call
}

// wrap is the outermost handler: it gives the request its scope and its id,
// survives panics, and counts and logs the end.
func (s *Server) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sc := s.scopes.Get().(*scope)
		sc.begin(s, w, r)
		defer func() {
			crash := recover()
			if sc.end(r, crash) {
				s.recycle(sc)
				panic(http.ErrAbortHandler) // the one way to cut a connection
			}
			s.recycle(sc)
		}()
		next.ServeHTTP(sc, r)
	})
}

// recycle empties a scope but for the request's scratch space.
func (s *Server) recycle(sc *scope) {
	request := sc.request
	request.Request, request.Targets, request.Decision = policy.Request{}, routing.Targets{}, nil
	*sc = scope{request: request}
	s.scopes.Put(sc)
}

func (sc *scope) begin(s *Server, w http.ResponseWriter, r *http.Request) {
	sc.ResponseWriter, sc.server, sc.start = w, s, time.Now()
	sc.gen = s.current.Load()
	sc.id = clientID(r.Header)
	if sc.id == "" {
		sc.id = mint(s.opts.Rand)
	}
	// The engine sees the id that the client and the log see, and no other.
	r.Header[prepare.RequestID] = []string{sc.id}
	w.Header()[prepare.RequestID] = []string{sc.id}
	if !s.serving.Load() {
		w.Header()["Connection"] = []string{"close"}
	}
	s.opts.Meters.arrived(r)
	sc.bound(r)
}

// writeGrace is how long after the stale limit its answer may still be written.
const writeGrace = time.Second

// bound keeps a client that does not read from holding the request for longer
// than its stale limit, and one that does not send from holding its connection:
// net/http reads on after the handler. The write deadline of the request before
// on the same connection must not last in any case; its read deadline does not.
func (sc *scope) bound(r *http.Request) {
	var write time.Time
	var t forward.Timeouts
	if sc.gen != nil {
		t = sc.gen.Settings.Timeouts
	}
	if t.Stale > 0 {
		write = sc.start.Add(t.Stale + writeGrace)
	}
	// Writers without deadlines belong to tests.
	rc := http.NewResponseController(sc.ResponseWriter)
	_ = rc.SetWriteDeadline(write)
	if t.Request > 0 && r.ContentLength != 0 {
		_ = rc.SetReadDeadline(sc.start.Add(t.Request))
	}
}

// WriteHeader notes the final status.
func (sc *scope) WriteHeader(status int) {
	if sc.status == 0 && status >= 200 {
		sc.status = status
	}
	sc.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (sc *scope) Write(b []byte) (int, error) {
	if sc.status == 0 {
		sc.status = http.StatusOK
	}
	n, err := sc.ResponseWriter.Write(b)
	sc.bytes += int64(n)
	return n, err
}

// FlushError sends what was written. A writer that cannot flush does not buffer.
func (sc *scope) FlushError() error {
	switch w := sc.ResponseWriter.(type) {
	case interface{ FlushError() error }:
		return w.FlushError()
	case http.Flusher:
		w.Flush()
	}
	return nil
}

// Unwrap is for http.ResponseController.
func (sc *scope) Unwrap() http.ResponseWriter { return sc.ResponseWriter }

// end settles a request whose handler returned or crashed, and reports whether
// its connection must be cut.
func (sc *scope) end(r *http.Request, crash any) bool {
	if crash != nil && crash != http.ErrAbortHandler {
		sc.crashed(r, crash)
	}
	switch {
	case sc.status == 0 && sc.cut:
		sc.status = statusClientGone
	case sc.status == 0:
		sc.status = http.StatusOK
	}
	sc.server.opts.Meters.answered(r, sc.status)
	sc.log(r)
	return sc.cut || crash == http.ErrAbortHandler
}

// crashed turns a panic into an answer, or a cut connection if one had begun.
func (sc *scope) crashed(r *http.Request, crash any) {
	sc.server.opts.Meters.panics.Inc()
	sc.server.log.LogAttrs(r.Context(), slog.LevelError, "handler panicked", slog.String("request_id", sc.id),
		slog.Any("panic", crash), slog.String("stack", string(debug.Stack())))
	if sc.status != 0 {
		sc.cut = true
		return
	}
	fail(sc, r, internal(fmt.Errorf("panic: %v", crash)))
}

// log writes the access line. Probes are of no interest.
func (sc *scope) log(r *http.Request) {
	level := slog.LevelInfo
	switch r.URL.Path {
	case healthPath, readyPath, metricsPath:
		level = slog.LevelDebug
	}
	l, ctx := sc.server.log, r.Context()
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 24)
	attrs = append(attrs, slog.String("method", r.Method), slog.String("path", shorten(r.URL.Path)),
		slog.Int("status", sc.status), slog.Float64("latency_ms", millis(time.Since(sc.start))),
		slog.Int64("bytes", sc.bytes), slog.String("request_id", sc.id))
	if id := r.Header.Get("X-Correlation-Id"); id != "" {
		attrs = append(attrs, slog.String("correlation_id", shorten(id)))
	}
	attrs = sc.chatAttrs(attrs)
	if e := sc.failure; e != nil {
		attrs = append(attrs, slog.String("code", e.Code))
		if e.Cause != nil {
			attrs = append(attrs, slog.String("error", e.Cause.Error()))
		}
	}
	l.LogAttrs(ctx, level, "request", attrs...)
}

func (sc *scope) chatAttrs(attrs []slog.Attr) []slog.Attr {
	if sc.prepared.Model == "" {
		return attrs
	}
	attrs = append(attrs, slog.String("model", shorten(sc.prepared.Model)), slog.Bool("stream", sc.prepared.Stream))
	if sc.tokens.Trust != "" {
		attrs = append(attrs, slog.Int64("input_tokens", sc.tokens.Length), slog.String("input_source", sc.tokens.Trust))
	}
	if sc.selection.Bucket == nil {
		return attrs
	}
	attrs = append(attrs, slog.String("bucket", sc.selection.Bucket.ID))
	for _, p := range picks(&sc.selection) {
		if p.pick.Engine != nil {
			attrs = append(attrs, slog.String(p.stage.String(), p.pick.Engine.ID()))
		}
	}
	report := &sc.call.Report
	attrs = append(attrs, slog.String("outcome", string(report.Outcome)), slog.String("rid", report.RID))
	if report.Stream != "" {
		attrs = append(attrs, slog.String("stream_outcome", string(report.Stream)),
			slog.Float64("ttft_ms", millis(report.FirstToken)))
	}
	return attrs
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// shorten bounds what a client can put into a log line.
func shorten(s string) string {
	const longest = 256
	if len(s) > longest {
		return s[:longest] + "..."
	}
	return s
}

// clientID is the client's request id if it is fit for headers and logs.
func clientID(h http.Header) string {
	v := h[prepare.RequestID]
	if len(v) == 0 || len(v[0]) > 128 {
		return ""
	}
	for i := range len(v[0]) {
		if v[0][i] <= ' ' || v[0][i] > '~' {
			return ""
		}
	}
	return v[0]
}

// mint makes a request id.
func mint(rand func() uint64) string {
	const (
		prefix   = "chatcmpl-"
		alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	)
	b := make([]byte, len(prefix)+24)
	copy(b, prefix)
	for i := len(prefix); i < len(b); i += 8 {
		for j, v := i, rand(); j < i+8; j, v = j+1, v/uint64(len(alphabet)) {
			b[j] = alphabet[v%uint64(len(alphabet))]
		}
	}
	return string(b)
}
