package enginetest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBody bounds a request body, in bytes.
const maxBody = 256 << 20

// exchange is one request to a generating endpoint and its answer. It belongs
// to the goroutine of its handler.
type exchange struct {
	e       *Engine
	w       http.ResponseWriter
	r       *http.Request
	dialect dialect
	rec     *Request
	fault   Fault // zero when none hits
	job     *job
	answer  answer
	status  int // sent so far, 0 = no head yet
}

// generating returns the handler of one dialect.
func (e *Engine) generating(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e.scheduler.received()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		x := &exchange{e: e, w: w, r: r, dialect: d, rec: e.records.add(r, body)}
		outcome := Cancelled // the body did not arrive
		if err == nil {
			x.fault = e.faults.take(r.URL.Path, true)
			outcome = x.run(body)
		}
		tokens := x.answer.completionTokens()
		e.records.edit(x.rec, func(rec *Request) {
			rec.Outcome, rec.Status, rec.Tokens = outcome, x.status, tokens
		})
		e.scheduler.ended(outcome)
		e.log.Debug("request", "path", r.URL.Path, "rid", x.rec.RID,
			"outcome", outcome, "status", x.status, "tokens", tokens)
	}
}

// run answers the request and says how it ended.
func (x *exchange) run(body []byte) Outcome {
	ctx, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	if done, outcome := x.faultBeforeHead(ctx); done {
		return outcome
	}
	if err := x.accept(body); err != nil {
		return x.refuse(err)
	}
	x.job.cancel = cancel
	handshake := x.e.opts.Role != Plain
	if err := x.e.scheduler.join(x.job, handshake); err != nil {
		return x.refuse(err)
	}
	defer x.e.scheduler.leave(x.job, handshake)
	if x.job.stream && x.e.opts.EarlyHead {
		if err := x.openStream(ctx); err != nil {
			return x.end(err)
		}
	}
	err := x.e.placed(ctx, x.job, func(ctx context.Context) error {
		if x.job.stream {
			return x.stream(ctx)
		}
		return x.buffered(ctx)
	})
	return x.end(err)
}

// accept reads and checks the request and prepares its answer.
func (x *exchange) accept(body []byte) error {
	o := x.e.opts
	in, j, err := parse(body, x.dialect)
	if err != nil {
		return err
	}
	if p := x.e.publishers(); p != nil && o.Role != Decode {
		j.tokenize(in, body, o.Tokenize)
		j.rank, j.cached = p.choose(j.prompt)
	}
	if err := j.fit(o.ContextTokens, o.KVTokens); err != nil {
		return err
	}
	if err := j.rendezvous(in, o.Role); err != nil {
		return err
	}
	if j.rid == "" {
		j.rid = x.dialect.idPrefix() + o.ID + "-" + strconv.FormatUint(x.e.ids.Add(1), 10)
	}
	if o.Role == Prefill {
		j.maxTokens = 1 // the rest is for the decode engine
	}
	x.job = j
	x.e.records.edit(x.rec, func(rec *Request) {
		rec.RID, rec.Room, rec.HasRoom = j.rid, j.room, j.hasRoom
	})
	x.answer = answer{
		id: j.rid, model: j.model, created: time.Now().Unix(),
		promptTokens: j.promptTokens, usage: j.usage, choices: make([]choice, j.choices),
	}
	for i := range x.answer.choices {
		source := newText(o.Seed, j.promptHash, i, o.OutputTokens)
		limit := j.maxTokens
		if !j.ignoreEOS {
			limit = min(limit, source.natural)
		}
		x.answer.choices[i] = choice{source: source, limit: limit}
	}
	return nil
}

// placed runs generate when the request's prompt is in the cache: computed
// here, or handed over by a prefill engine. Waiting for the counterpart takes
// no place, so that engines cannot block each other.
func (e *Engine) placed(ctx context.Context, j *job, generate func(context.Context) error) error {
	switch e.opts.Role {
	case Prefill:
		return e.prefill(ctx, j, generate)
	case Decode:
		if err := e.receive(ctx, j); err != nil {
			return err
		}
		if err := e.scheduler.acquire(ctx, j, true); err != nil {
			return err
		}
		e.scheduler.computedPrompt(j, 0)
	case Plain:
		if err := e.scheduler.acquire(ctx, j, false); err != nil {
			return err
		}
		if err := e.compute(ctx, j); err != nil {
			return err
		}
	}
	return generate(ctx)
}

// prefill meets the decode engine, computes the prompt, hands the cache over
// and only then answers its own caller.
func (e *Engine) prefill(ctx context.Context, j *job, generate func(context.Context) error) error {
	m, err := e.rooms.enter(j.room, true)
	if err != nil {
		return rejected("%v", err)
	}
	if err = m.awaitDecode(ctx, e.opts.BootstrapTimeout); err == nil {
		err = e.transfer(ctx, j, m)
	}
	e.rooms.settle(j.room, m, err)
	if err != nil {
		return err
	}
	return generate(ctx)
}

// transfer computes the prompt while the decode engine waits for it.
func (e *Engine) transfer(ctx context.Context, j *job, m *room) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-m.gone:
			cancel(failed("the decode engine left the bootstrap room"))
		case <-done:
		}
	}()
	defer func() { close(done); <-stopped }()
	if err := e.scheduler.acquire(ctx, j, true); err != nil {
		return err
	}
	return e.compute(ctx, j)
}

// compute takes the time that the prompt needs. Prompts queue for the lane.
func (e *Engine) compute(ctx context.Context, j *job) error {
	speed := e.opts.PrefillTokensPerSecond
	if speed == 0 {
		e.computed(j, 0)
		return context.Cause(ctx)
	}
	select {
	case e.lane <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-e.lane }()
	if j.rank != nil {
		// What went before in the lane may have cached more of it, or evicted it.
		e.scheduler.recount(j, j.rank.matched(j.prompt))
	}
	took := time.Duration(float64(j.uncached()) / float64(speed) * float64(time.Second))
	if err := sleep(ctx, took); err != nil {
		return err
	}
	e.computed(j, took)
	return nil
}

// computed books a prompt and caches it.
func (e *Engine) computed(j *job, took time.Duration) {
	e.scheduler.computedPrompt(j, took)
	if j.rank != nil {
		j.rank.store(j.prompt)
	}
}

// generate produces the tokens of all choices in step and gives each to emit.
func (x *exchange) generate(ctx context.Context, emit func(i int, token string) error) error {
	for step := 0; ; step++ {
		pause := x.e.opts.InterToken
		if step == 0 {
			pause = 0 // the first token comes out of the prompt's computation
		}
		if x.fault.Kind == Slow {
			pause += x.fault.Delay
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		done := true
		for i := range x.answer.choices {
			c := &x.answer.choices[i]
			if c.finish != "" {
				continue
			}
			token := c.source.next()
			c.text = append(c.text, token...)
			c.tokens++
			x.e.scheduler.generatedToken(x.job, time.Now())
			if err := emit(i, token); err != nil {
				return err
			}
			if c.tokens == c.limit {
				c.finish = x.reason(c)
			} else {
				done = false
			}
		}
		if done {
			return nil
		}
	}
}

// reason says why a choice ends at its limit.
func (x *exchange) reason(c *choice) string {
	if c.limit < c.source.natural || x.job.ignoreEOS || x.e.opts.Role == Prefill {
		return "length"
	}
	return "stop"
}

// buffered answers with one document.
func (x *exchange) buffered(ctx context.Context) error {
	err := x.generate(ctx, func(int, string) error { return nil })
	if err != nil && !errors.Is(err, errAborted) {
		return err
	}
	x.markAborted(err)
	x.answer.cachedTokens = x.job.cachedTokens()
	body := x.dialect.appendWhole(nil, &x.answer)
	if x.fault.Kind == ErrorEvent {
		return &apiError{http.StatusInternalServerError, Faulted, "injected fault"}
	}
	if x.fault.Kind == Garbage {
		body = []byte("\x00\x01<<< this is not JSON")
	}
	if stop := x.faultInBody(ctx, body); stop != nil {
		return stop
	}
	x.sendHead(http.StatusOK, "application/json", len(body))
	if _, werr := x.w.Write(body); werr != nil {
		return context.Canceled
	}
	return err
}

// markAborted closes the choices that an abort left open.
func (x *exchange) markAborted(err error) {
	if !errors.Is(err, errAborted) {
		return
	}
	for i := range x.answer.choices {
		if c := &x.answer.choices[i]; c.finish == "" {
			c.finish = "abort"
		}
	}
}

// stream answers with events, one per token and choice.
func (x *exchange) stream(ctx context.Context) error {
	buf := make([]byte, 0, 512)
	begun := false
	begin := func() error {
		begun = true
		if x.status == 0 {
			if err := x.openStream(ctx); err != nil {
				return err
			}
		}
		for i := range x.answer.choices {
			if err := x.event(x.dialect.appendOpen(buf[:0], &x.answer, i)); err != nil {
				return err
			}
		}
		return nil
	}
	err := x.generate(ctx, func(i int, token string) error {
		if !begun {
			if err := begin(); err != nil {
				return err
			}
		}
		if err := x.faultAtToken(ctx); err != nil {
			return err
		}
		return x.event(x.dialect.appendToken(buf[:0], &x.answer, i, token))
	})
	if err != nil && !errors.Is(err, errAborted) {
		return err
	}
	x.markAborted(err)
	if !begun {
		if err := begin(); err != nil {
			return err
		}
	}
	for i := range x.answer.choices {
		if err := x.event(x.dialect.appendFinish(buf[:0], &x.answer, i)); err != nil {
			return err
		}
	}
	x.answer.cachedTokens = x.job.cachedTokens()
	if x.job.usage {
		if err := x.event(x.dialect.appendUsage(buf[:0], &x.answer)); err != nil {
			return err
		}
	}
	if werr := x.event([]byte("[DONE]")); werr != nil {
		return werr
	}
	return err
}

// openStream sends the head of a stream.
func (x *exchange) openStream(ctx context.Context) error {
	x.sendHead(http.StatusOK, "text/event-stream; charset=utf-8", -1)
	if err := x.flush(); err != nil {
		return err
	}
	switch x.fault.Kind {
	case HangAfterHead:
		return x.hang(ctx)
	case CutAfterHead:
		return x.cut(false)
	case Garbage:
		if _, err := x.w.Write([]byte("\x00\x01<<< this is no event\n\n")); err != nil {
			return context.Canceled
		}
		return errFaulted
	default:
		return nil
	}
}

// event sends one event at once. An empty one is left out.
func (x *exchange) event(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	line := make([]byte, 0, len(data)+8)
	line = append(line, "data: "...)
	line = append(line, data...)
	line = append(line, "\n\n"...)
	if _, err := x.w.Write(line); err != nil {
		return context.Canceled // the only way a write fails
	}
	return x.flush()
}

func (x *exchange) flush() error {
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		return context.Canceled
	}
	return nil
}

// sendHead sends status and headers. A negative length means chunks.
func (x *exchange) sendHead(status int, contentType string, length int) {
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	x.status = status
	x.w.WriteHeader(status)
}

// end turns the error that ended the work into an outcome, and tells the client
// about it when there is one.
func (x *exchange) end(err error) Outcome {
	switch {
	case err == nil:
		return Completed
	case errors.Is(err, errFaulted):
		return Faulted
	case errors.Is(err, errAborted):
		if x.status == 0 {
			x.refuse(&apiError{http.StatusBadRequest, Aborted, "the request was aborted"})
		}
		return Aborted
	case clientGone(err):
		return Cancelled
	}
	return x.refuse(err)
}

// refuse reports an error: as the answer, or as the last event of a stream.
func (x *exchange) refuse(err error) Outcome {
	api := asAPIError(err)
	body := appendError(nil, api.status, api.message)
	if x.status == 0 {
		x.sendHead(api.status, "application/json", len(body))
		if _, err := x.w.Write(body); err != nil {
			return Cancelled
		}
		return api.outcome
	}
	body = append(append([]byte(`{"error":`), body...), '}')
	if x.event(body) != nil || x.event([]byte("[DONE]")) != nil {
		return Cancelled
	}
	return api.outcome
}

// appendError writes the engine's error object.
func appendError(dst []byte, status int, message string) []byte {
	kind := "BadRequest"
	switch {
	case status == http.StatusTooManyRequests:
		kind = "RateLimit"
	case status == http.StatusServiceUnavailable:
		kind = "ServiceUnavailable"
	case status >= 500:
		kind = "InternalServerError"
	}
	dst = append(dst, `{"object":"error","message":`...)
	dst, _ = jsontext.AppendQuote(dst, message)
	dst = append(dst, `,"type":"`+kind+`","param":null,"code":`...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	return append(dst, '}')
}

// sleep waits, unless ctx ends first. No time at all is a check of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errFaulted ends a request that an injected fault has dealt with.
var errFaulted = errors.New("injected fault")

// faultBeforeHead applies the faults that strike before any work.
func (x *exchange) faultBeforeHead(ctx context.Context) (done bool, _ Outcome) {
	var err error
	switch x.fault.Kind {
	case Status:
		body := []byte(x.fault.Body)
		if len(body) == 0 {
			body = appendError(nil, x.fault.Status, "injected fault")
		}
		x.sendHead(x.fault.Status, "application/json", len(body))
		_, err = x.w.Write(body)
		if err == nil {
			err = errFaulted
		}
	case HangBeforeHead:
		err = x.hang(ctx)
	case CutBeforeHead:
		err = x.cut(true)
	case GarbageHead:
		err = x.garbageHead()
	case Slow:
		if err = sleep(ctx, x.fault.Delay); err == nil {
			return false, ""
		}
	default:
		return false, ""
	}
	return true, x.end(err)
}

// faultInBody applies the faults of a buffered answer that has a head.
func (x *exchange) faultInBody(ctx context.Context, body []byte) error {
	var sent []byte
	switch x.fault.Kind {
	case HangAfterHead, CutAfterHead:
	case HangMidStream, CutMidStream:
		sent = body[:len(body)/2]
	default:
		return nil
	}
	x.sendHead(http.StatusOK, "application/json", len(body))
	if _, err := x.w.Write(sent); err != nil {
		return context.Canceled
	}
	if err := x.flush(); err != nil {
		return err
	}
	if x.fault.Kind == HangAfterHead || x.fault.Kind == HangMidStream {
		return x.hang(ctx)
	}
	return x.cut(false)
}

// faultAtToken applies the faults that strike in a stream, before the token
// that was just generated is sent.
func (x *exchange) faultAtToken(ctx context.Context) error {
	if !x.fault.midStream() {
		return nil
	}
	// The token at hand is one too many, or the last one there is.
	n := x.answer.completionTokens()
	if last := x.answer.choices[0].limit * len(x.answer.choices); n <= x.fault.Tokens && n < last {
		return nil
	}
	switch x.fault.Kind {
	case HangMidStream:
		return x.hang(ctx)
	case CutMidStream:
		return x.cut(false)
	default:
		return &apiError{http.StatusInternalServerError, Faulted, "injected fault"}
	}
}

// hang waits until nobody waits for the answer any more.
func (x *exchange) hang(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// cut ends the connection: with a reset, which discards what is under way, or
// after what was sent.
func (x *exchange) cut(reset bool) error {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return context.Canceled
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		if err := tcp.SetLinger(0); err != nil {
			x.e.log.Debug("reset", "error", err)
		}
	}
	conn.Close()
	return errFaulted
}

// garbageHead answers with something that is not HTTP.
func (x *exchange) garbageHead() error {
	conn, buf, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return context.Canceled
	}
	defer conn.Close()
	_, _ = buf.WriteString("\x16\x03\x01 this is not HTTP\r\n\r\n")
	_ = buf.Flush() // the client may be gone, which is as good
	return errFaulted
}
