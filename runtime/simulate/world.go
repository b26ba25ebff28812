package simulate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"shunt/runtime/fleet"
	"shunt/runtime/routing"
	"shunt/runtime/state/load"
	"shunt/schema/plan"
)

// Request is the facts of one request. Exactly one of MaxOutputTokens and
// ExpectedPeakTokens may be given; without both the peak is unknown.
type Request struct {
	Model string `json:"model"`
	// InputTokens may be left out with TokenIDs.
	InputTokens        int64  `json:"input_tokens"`
	MaxOutputTokens    *int64 `json:"max_output_tokens"`
	ExpectedPeakTokens *int64 `json:"expected_peak_tokens"`
	// TokenIDs are compared with the prefixes of the world that state tokens.
	TokenIDs   []uint32 `json:"token_ids"`
	SessionKey string   `json:"session_key"`
	RoutingKey string   `json:"routing_key"`
	// TTFTMS and TPS are the latency targets.
	TTFTMS *uint64  `json:"ttft_target_ms"`
	TPS    *float64 `json:"tps_target"`

	// estimated says that there are no token ids.
	estimated bool
	// source and reason say where the length came from.
	source, reason string
}

// World is the state of the fleet. An engine that it does not mention is
// healthy, idle, has reported nothing and holds no prefix.
//
// It also describes a change of that state: then what it does not mention stays.
type World struct {
	Engines []Engine `json:"engines"`
	// Prefixes are those of models, at most one for each.
	Prefixes []Prefixes `json:"prefixes"`
	Bindings []Binding  `json:"bindings"`
	// BindingsUnavailable says that the affinity store does not answer; default
	// false.
	BindingsUnavailable *bool `json:"bindings_unavailable"`
}

// Engine is the state of one engine.
type Engine struct {
	// Model may be empty in a plan of one model.
	Model    string `json:"model"`
	ID       string `json:"id"`
	Healthy  *bool  `json:"healthy"`  // default true
	Inflight *int   `json:"inflight"` // requests that the router holds open, default 0
	// DispatchedSince are those of them that were dispatched after the report,
	// default 0.
	DispatchedSince *int `json:"dispatched_since_report"`
	// Loads are the reports of the engine's ranks; an empty list withdraws them.
	Loads []Load `json:"loads"`
}

// Load is one rank's report. The native fields come all together or not at all.
type Load struct {
	AgeMS   int64  `json:"age_ms"`
	Running uint64 `json:"running_requests"`
	Waiting uint64 `json:"waiting_requests"`

	Used       *uint64 `json:"used_kv_tokens"`
	Total      *uint64 `json:"kv_tokens"`
	Capacity   *uint64 `json:"kv_capacity_tokens"`
	MaxRunning *uint64 `json:"max_running_requests"`
	Pending    *uint64 `json:"pending_prefill_tokens"`
	// PrefillRate is the measured prefill throughput in tokens per second; 0 is
	// unknown.
	PrefillRate uint64 `json:"prefill_tokens_per_second"`
}

// ParseRequest reads one request document; anything unknown is refused. A request
// to a plan of one model need not name it.
func ParseRequest(body *plan.Body, data []byte) (Request, error) {
	var r Request
	if err := decode("request", data, &r); err != nil {
		if hasMessages(data) {
			err = fmt.Errorf("%w; a chat body is not a request, but has facts taken from it", err)
		}
		return r, err
	}
	if len(r.TokenIDs) > 0 && r.InputTokens == 0 {
		r.InputTokens = int64(len(r.TokenIDs))
	}
	if r.Model == "" && len(body.Models) == 1 {
		r.Model = body.Models[0].ID
	}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("request: %w", err)
	}
	return r, nil
}

// Check refuses facts that no request can have.
func (r *Request) Check() error {
	switch {
	case r.Model == "":
		return errors.New("model is missing")
	case r.InputTokens < 1:
		return errors.New("input_tokens must be at least 1")
	case len(r.TokenIDs) > 0 && int64(len(r.TokenIDs)) != r.InputTokens:
		return fmt.Errorf("%d token_ids and input_tokens %d differ", len(r.TokenIDs), r.InputTokens)
	case r.MaxOutputTokens != nil && r.ExpectedPeakTokens != nil:
		return errors.New("give max_output_tokens or expected_peak_tokens, not both")
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens < 0:
		return errors.New("max_output_tokens must not be negative")
	case r.ExpectedPeakTokens != nil && *r.ExpectedPeakTokens < 1:
		return errors.New("expected_peak_tokens must be at least 1")
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens > math.MaxInt64-r.InputTokens:
		return errors.New("input and output token counts overflow")
	}
	return nil
}

func hasMessages(data []byte) bool {
	var chat struct {
		Messages jsontext.Value `json:"messages"`
	}
	return json.Unmarshal(data, &chat, jsontext.AllowDuplicateNames(true)) == nil && chat.Messages != nil
}

// peak is the expected peak, 0 if unknown.
func (r Request) peak() int64 {
	switch {
	case r.ExpectedPeakTokens != nil:
		return *r.ExpectedPeakTokens
	case r.MaxOutputTokens != nil:
		return r.InputTokens + *r.MaxOutputTokens
	}
	return 0
}

func (r Request) targets() (t routing.Targets) {
	if r.TTFTMS != nil {
		t.TTFTMS, t.HasTTFT = *r.TTFTMS, true
	}
	if r.TPS != nil {
		t.TPS, t.HasTPS = *r.TPS, true
	}
	return t
}

// ParseWorld reads one world document; anything unknown is refused.
func ParseWorld(data []byte) (World, error) {
	var w World
	err := decode("world", data, &w)
	return w, err
}

// maxInflight bounds the requests that an engine of a world has open. Each is one,
// as in the server.
const maxInflight = 1_000_000

// state is what was described of an engine so far.
type state struct {
	engine *fleet.Engine
	// threshold is the number of failures that make it unhealthy.
	threshold          int
	unhealthy          bool
	inflight, recently int
	leases             []*fleet.Lease
}

// apply puts an engine into a described state; what is not described stays.
func (s *state) apply(d *Engine, loads *load.Table, now time.Time) error {
	if d.Healthy != nil {
		s.unhealthy = !*d.Healthy
	}
	if d.Inflight != nil || d.DispatchedSince != nil {
		if err := s.hold(d, now); err != nil {
			return err
		}
	}
	if d.Loads != nil {
		loads.Forget(s.engine)
	}
	for rank := range d.Loads {
		if err := d.Loads[rank].put(s.engine, rank, loads, now); err != nil {
			return fmt.Errorf("engine %q, report %d: %w", d.ID, rank, err)
		}
	}
	switch {
	case s.unhealthy && s.engine.Admits():
		s.engine.ForceFailures(s.threshold)
	case !s.unhealthy && !s.engine.Admits():
		s.engine.ForceSuccess()
	}
	return nil
}

// hold opens the described requests in place of those that were open.
func (s *state) hold(d *Engine, now time.Time) error {
	if d.Inflight != nil {
		s.inflight = *d.Inflight
	}
	if d.DispatchedSince != nil {
		s.recently = *d.DispatchedSince
	}
	if s.inflight < 0 || s.recently < 0 || s.recently > s.inflight {
		return fmt.Errorf("engine %q: inflight must not be negative nor below dispatched_since_report", d.ID)
	}
	if s.inflight > maxInflight {
		return fmt.Errorf("engine %q: inflight must be at most %d", d.ID, maxInflight)
	}
	for _, l := range s.leases {
		l.Release()
	}
	s.leases = make([]*fleet.Lease, 0, s.inflight)
	s.engine.ForceSuccess() // an unhealthy engine gets no request, but may still hold some
	for i := range s.inflight {
		at := now
		if i >= s.recently {
			at = time.Time{}
		}
		l, err := s.engine.Lease(at)
		if err != nil {
			return fmt.Errorf("engine %q: %w", d.ID, err)
		}
		s.leases = append(s.leases, l)
	}
	return nil
}

func (l *Load) put(e *fleet.Engine, rank int, loads *load.Table, now time.Time) error {
	given := 0
	for _, p := range []*uint64{l.Used, l.Total, l.Capacity, l.MaxRunning, l.Pending} {
		if p != nil {
			given++
		}
	}
	if l.AgeMS < 0 {
		return errors.New("age_ms must not be negative")
	}
	at := now.Add(-time.Duration(l.AgeMS) * time.Millisecond)
	rep := load.Report{Running: l.Running, Waiting: l.Waiting}
	switch {
	case given == 0 && l.PrefillRate == 0:
		loads.Put(e, rank, rep, at)
		return nil
	case given != 5:
		return errors.New("used_kv_tokens, kv_tokens, kv_capacity_tokens, max_running_requests and pending_prefill_tokens come together")
	}
	rep.Used, rep.Capacity = *l.Used, *l.Capacity
	rep.Extension = &load.Extension{WaitingUncached: *l.Pending, Total: *l.Total, MaxRunning: *l.MaxRunning}
	loads.Put(e, rank, rep, at)
	if l.PrefillRate > 0 { // a rate takes two reports with counters that moved
		ext := *rep.Extension
		ext.PrefillTokens, ext.PrefillBusyUS = l.PrefillRate, 1e6
		rep.Extension = &ext
		loads.Put(e, rank, rep, at)
	}
	return nil
}
