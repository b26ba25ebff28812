package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/forward"
	"shunt/runtime/policy"
	"shunt/runtime/prepare"
	"shunt/runtime/routing"
	"shunt/runtime/state/prefix"
)

// chat serves one chat request.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	sc := w.(*scope)
	err := s.serveChat(sc, r)
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*forward.Error](err); ok {
		fail(sc, r, e)
		return
	}
	// The client left or its answer broke: there is no regular end any more.
	sc.cut = true
}

// serveChat prepares, routes and forwards. Nothing has been written when it
// returns a *forward.Error.
func (s *Server) serveChat(sc *scope, r *http.Request) error {
	if sc.gen == nil {
		return unavailable("not_ready", "service unavailable", nil)
	}
	m, err := sc.prepare(r)
	if err != nil {
		return err
	}
	if err := s.route(sc, r, m); err != nil {
		return err
	}
	sel := &sc.selection
	if sc.gen.Settings.ExposeDecision {
		sc.Header()["X-Shunt-Decision"] = []string{compact(sel) + sc.lengthNote()}
	}
	var ids []uint32
	if sc.tokens.Forward {
		ids = sc.tokens.IDs
	}
	sc.call = forward.Call{
		Plain: sel.Plain.Engine, Prefill: sel.Prefill.Engine, Decode: sel.Decode.Engine,
		Request: &sc.prepared, InputIDs: ids, Start: sc.start, Timestamped: m.Resolver.DispatchTimestamps,
		Timeouts: sc.gen.Settings.Timeouts,
	}
	err = s.opts.Forwarder.Chat(sc, r, &sc.call)
	if sc.call.Report.Outcome != "" {
		s.opts.Meters.dispatched(sel, m.Resolver.Model, time.Since(sc.start))
	}
	return err
}

// prepare reads the body, finds the model and gathers the facts. An unknown model
// is told before anything that depends on the model's rules.
func (sc *scope) prepare(r *http.Request) (*Model, error) {
	body, e := sc.readBody(r)
	if e != nil {
		return nil, e
	}
	// A slow upload is not a reason to route by a plan that was replaced.
	sc.gen = sc.server.current.Load()
	p := &sc.prepared
	if err := p.Parse(body); errors.Is(err, prepare.ErrNoModel) {
		return nil, badRequest(prepare.ErrNoModel.Error(), nil)
	} else if err != nil {
		return nil, badRequest(prepare.ErrBody.Error(), err)
	}
	m := sc.gen.Models[p.Model]
	if m == nil {
		return nil, modelNotFound(p.Model)
	}
	if err := sc.sample(m); err != nil {
		return nil, err
	}
	if err := sc.targets(r, m); err != nil {
		return nil, err
	}
	return m, sc.facts(r, m)
}

// sample applies the model's sampling rules. Every violation counts, the first
// is told.
func (sc *scope) sample(m *Model) error {
	if m.Sampling == nil {
		return nil
	}
	violations := sc.prepared.Sample(m.Sampling)
	for _, v := range violations {
		sc.server.opts.Meters.sampling.of(v.Rule.Param).Inc()
	}
	if len(violations) == 0 {
		return nil
	}
	return refuse(http.StatusBadRequest, "sampling_contract_violation", violations[0].Error())
}

// targets reads the latency targets that the model does not ignore.
func (sc *scope) targets(r *http.Request, m *Model) error {
	t := &sc.request.Targets
	*t = routing.Targets{}
	var err error
	if m.Resolver.SLO.TTFT != routing.SLODisabled {
		if t.TTFTMS, t.HasTTFT, err = prepare.TTFT(r.Header); err != nil {
			return badRequest(err.Error(), nil)
		}
	}
	if m.Resolver.SLO.TPS != routing.SLODisabled {
		if t.TPS, t.HasTPS, err = prepare.TPS(r.Header); err != nil {
			return badRequest(err.Error(), nil)
		}
	}
	return nil
}

// facts puts together what policies may know. The prompt is tokenized here, once,
// and only for models that need it.
func (sc *scope) facts(r *http.Request, m *Model) error {
	p := &sc.prepared
	lengths := p.Lengths
	if m.Tokenizer != nil {
		if err := sc.tokenize(r, m); err != nil {
			return err
		}
		lengths = func() (int64, int64, error) { return p.LengthsOf(sc.tokens.Length) }
	}
	input, peak, err := lengths()
	if err != nil {
		return badRequest(err.Error(), nil)
	}
	sc.request.Request = policy.Request{
		Model: m.Resolver.Model, Input: input, Peak: peak,
		TokenIDs: sc.tokens.IDs, CacheSalt: p.CacheSalt, LoRA: p.LoRA,
		SessionKey: prepare.Key(r.Header, m.SessionHeader),
		RoutingKey: prepare.Key(r.Header, m.RoutingKeyHeader),
	}
	sc.request.InputSource, sc.request.InputReason = sc.tokens.Trust, sc.tokens.Reason
	if m.Prefix {
		sc.request.Memo = new(prefix.Memo)
	}
	return nil
}

// tokenize finds the prompt's token ids, or why there is an estimate only.
func (sc *scope) tokenize(r *http.Request, m *Model) error {
	ctx, began := r.Context(), time.Now()
	sc.prepared.Authorization = r.Header.Get("Authorization")
	t, err := m.Tokenizer.Tokenize(ctx, &sc.prepared)
	if err != nil {
		return gone(ctx)
	}
	sc.tokens = t
	sc.server.opts.Meters.tokenized(m.Resolver.Model, &t, time.Since(began))
	if t.Estimated() {
		sc.server.log.LogAttrs(ctx, slog.LevelDebug, "prompt not tokenized",
			slog.String("request_id", sc.id), slog.String("model", m.Resolver.Model),
			slog.String("reason", t.Reason), slog.Any("error", t.Err))
	}
	return nil
}

// gone is the failure of a request whose context ended before it was dispatched.
func gone(ctx context.Context) error {
	if context.Cause(ctx) == forward.ErrShutdown {
		return forward.ShuttingDown()
	}
	return forward.ErrClientGone
}

// lengthNote says in the decision header where the input length came from.
func (sc *scope) lengthNote() string {
	if sc.tokens.Trust == "" {
		return ""
	}
	note := "; input=" + strconv.FormatInt(sc.request.Input, 10) + "; input-source=" + sc.tokens.Trust
	if sc.tokens.Reason != "" {
		note += "; input-reason=" + sc.tokens.Reason
	}
	return note
}

// logged is a decision in a log: JSON, also in a line of text, where its pointers
// would be printed otherwise.
type logged struct{ *routing.Decision }

// MarshalJSON implements json.Marshaler.
func (l logged) MarshalJSON() ([]byte, error) { return json.Marshal(l.Decision) }

// MarshalText implements encoding.TextMarshaler.
func (l logged) MarshalText() ([]byte, error) { return json.Marshal(l.Decision) }

// route selects the engines. The decision is put together only for a debug log.
func (s *Server) route(sc *scope, r *http.Request, m *Model) error {
	ctx := r.Context()
	debug := s.log.Enabled(ctx, slog.LevelDebug)
	if debug {
		sc.request.Decision = new(routing.Decision)
	}
	sel, err := m.Resolver.Route(ctx, &sc.request)
	s.opts.Meters.refused(sc.request.Refused)
	if debug {
		s.log.LogAttrs(ctx, slog.LevelDebug, "routing decision",
			slog.String("request_id", sc.id), slog.Any("decision", logged{sc.request.Decision}))
	}
	if err == nil {
		sc.selection = sel
		return nil
	}
	if ctx.Err() != nil {
		return gone(ctx)
	}
	s.opts.Meters.failed(err)
	if sc.gen.Settings.ExposeDecision {
		sc.Header()["X-Shunt-Decision"] = []string{compactFailure(err)}
	}
	return selectionFailed(err)
}

type stagePick struct {
	stage fleet.Role
	pick  *policy.Pick
}

// picks are the picks of a selection by stage; those without engine are not set.
func picks(s *routing.Selection) [3]stagePick {
	return [3]stagePick{{fleet.Plain, &s.Plain}, {fleet.Prefill, &s.Prefill}, {fleet.Decode, &s.Decode}}
}

// compact is a selection in one header line.
func compact(s *routing.Selection) string {
	var b strings.Builder
	b.WriteString("bucket=")
	b.WriteString(token(s.Bucket.ID))
	for _, p := range picks(s) {
		if p.pick.Engine == nil {
			continue
		}
		b.WriteString("; ")
		b.WriteString(p.stage.String())
		b.WriteByte('=')
		b.WriteString(token(p.pick.Engine.ID()))
		b.WriteString("; ")
		b.WriteString(p.stage.String())
		b.WriteString("-reason=")
		b.WriteString(string(p.pick.Reason))
	}
	return b.String()
}

// compactFailure names the kind, the stage and the limits of a failed selection.
func compactFailure(err error) string {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return "error=internal"
	}
	out := "error=" + e.Kind.String()
	if e.Stage != 0 {
		out += "; stage=" + e.Stage.String()
	}
	const most = 8
	for i, r := range e.Rejected {
		if i == most {
			return out + "; more"
		}
		out += "; " + token(r.Engine) + "=" + string(r.Limit)
	}
	return out
}

// token makes an id fit for the header line: what would end or break it is
// replaced by its UTF-8 bytes in percent form.
func token(id string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c > ' ' && c <= '~' && c != ';' && c != '=' && c != '%' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
