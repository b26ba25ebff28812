package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/fleet"
	"shunt/runtime/forward"
	"shunt/runtime/policy"
	"shunt/runtime/prepare"
	"shunt/runtime/routing"
)

// Meters are the metrics of serving; the package documentation lists them. They
// observe the Forwarder.
type Meters struct {
	set   *metrics.Set
	fleet *fleet.Fleet

	requests   family[routeKey, *metrics.Counter]
	responses  family[responseKey, *metrics.Counter]
	durations  family[string, *metrics.PrometheusHistogram]
	ttft       family[string, *metrics.PrometheusHistogram]
	engines    family[engineKey, *metrics.Counter]
	streams    family[engineKey, *metrics.Counter]
	aborts     family[abortKey, *metrics.Counter]
	decisions  family[decisionKey, *metrics.Counter]
	unselected family[failureKey, *metrics.Counter]
	rejected   family[policy.Limit, *metrics.Counter]
	sampling   family[prepare.Param, *metrics.Counter]
	tokenize   family[string, *metrics.PrometheusHistogram]
	inputs     family[inputKey, *metrics.Counter]
	forwarding family[inputKey, *metrics.Counter]
	estimated  family[inputKey, *metrics.Counter]

	staleBefore, staleStreaming *metrics.Counter
	panics, swaps, failures     *metrics.Counter
}

type (
	routeKey    struct{ route, method string }
	responseKey struct {
		route, method string
		status        int
	}
	engineKey struct{ model, engine, role, outcome string }
	abortKey  struct {
		reason forward.AbortReason
		sent   bool
	}
	decisionKey struct {
		stage  fleet.Role
		reason policy.Reason
	}
	// inputKey is a model and where its input lengths came from, why one is only an
	// estimate, or whether token ids were forwarded.
	inputKey   struct{ model, what string }
	failureKey struct {
		kind  policy.Kind
		stage fleet.Role
	}
)

var _ forward.Observer = (*Meters)(nil)

// NewMeters registers the metrics in set.
func NewMeters(set *metrics.Set, f *fleet.Fleet) *Meters {
	m := &Meters{
		set: set, fleet: f,
		staleBefore:    set.NewCounter(`shunt_stale_requests_total{phase="before_head"}`),
		staleStreaming: set.NewCounter(`shunt_stale_requests_total{phase="streaming"}`),
		panics:         set.NewCounter("shunt_panics_total"),
		swaps:          set.NewCounter("shunt_plan_swaps_total"),
		failures:       set.NewCounter("shunt_plan_failures_total"),
	}
	m.requests.init(set.GetOrCreateCounter, func(k routeKey) string {
		return fmt.Sprintf(`shunt_requests_total{route=%q,method=%q}`, k.route, k.method)
	})
	m.responses.init(set.GetOrCreateCounter, func(k responseKey) string {
		return fmt.Sprintf(`shunt_responses_total{route=%q,method=%q,status="%d"}`, k.route, k.method, k.status)
	})
	m.engines.init(set.GetOrCreateCounter, func(k engineKey) string {
		return fmt.Sprintf(`shunt_engine_requests_total{model=%q,engine=%q,role=%q,outcome=%q}`, k.model, k.engine, k.role, k.outcome)
	})
	m.streams.init(set.GetOrCreateCounter, func(k engineKey) string {
		return fmt.Sprintf(`shunt_stream_outcome_total{model=%q,engine=%q,outcome=%q}`, k.model, k.engine, k.outcome)
	})
	m.aborts.init(set.GetOrCreateCounter, func(k abortKey) string {
		return fmt.Sprintf(`shunt_aborts_total{reason=%q,sent="%t"}`, k.reason, k.sent)
	})
	m.decisions.init(set.GetOrCreateCounter, func(k decisionKey) string {
		return fmt.Sprintf(`shunt_policy_decisions_total{stage=%q,reason=%q}`, k.stage, k.reason)
	})
	m.unselected.init(set.GetOrCreateCounter, func(k failureKey) string {
		return fmt.Sprintf(`shunt_selection_failures_total{kind=%q,stage=%q}`, k.kind, k.stage)
	})
	m.rejected.init(set.GetOrCreateCounter, func(k policy.Limit) string {
		return fmt.Sprintf(`shunt_admission_rejections_total{limit=%q}`, k)
	})
	m.sampling.init(set.GetOrCreateCounter, func(k prepare.Param) string {
		return fmt.Sprintf(`shunt_sampling_contract_rejections_total{param=%q}`, k)
	})
	m.tokenFamilies()
	m.durations.init(histogram(set, durationBounds()), func(model string) string {
		return fmt.Sprintf(`shunt_request_duration_seconds{model=%q}`, model)
	})
	m.ttft.init(histogram(set, ttftBounds()), func(model string) string {
		return fmt.Sprintf(`shunt_ttft_seconds{model=%q}`, model)
	})
	return m
}

// tokenFamilies are the metrics of tokenization.
func (m *Meters) tokenFamilies() {
	m.tokenize.init(histogram(m.set, tokenizeBounds()), func(model string) string {
		return fmt.Sprintf(`shunt_tokenize_seconds{model=%q}`, model)
	})
	m.inputs.init(m.set.GetOrCreateCounter, func(k inputKey) string {
		return fmt.Sprintf(`shunt_input_lengths_total{model=%q,source=%q}`, k.model, k.what)
	})
	m.estimated.init(m.set.GetOrCreateCounter, func(k inputKey) string {
		return fmt.Sprintf(`shunt_tokenize_failures_total{model=%q,reason=%q}`, k.model, k.what)
	})
	m.forwarding.init(m.set.GetOrCreateCounter, func(k inputKey) string {
		return fmt.Sprintf(`shunt_input_ids_total{model=%q,outcome=%q}`, k.model, k.what)
	})
}

func tokenizeBounds() []float64 {
	return []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}
}

// tokenized counts one tokenization and how it ended.
func (m *Meters) tokenized(model string, t *prepare.Tokens, took time.Duration) {
	m.tokenize.of(model).Update(took.Seconds())
	m.inputs.of(inputKey{model, t.Trust}).Inc()
	m.forwarding.of(inputKey{model, t.Forwarding}).Inc()
	if t.Estimated() {
		m.estimated.of(inputKey{model, t.Reason}).Inc()
	}
}

func histogram(set *metrics.Set, bounds []float64) func(string) *metrics.PrometheusHistogram {
	return func(name string) *metrics.PrometheusHistogram {
		return set.GetOrCreatePrometheusHistogramExt(name, bounds)
	}
}

func durationBounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
}

// ttftBounds equal the engines' own from 0.1 s on, so that quantiles compare.
func ttftBounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
}

// arrived counts a request before anything is known about it.
func (m *Meters) arrived(r *http.Request) {
	m.requests.of(routeKey{routeName(r.URL.Path), methodName(r.Method)}).Inc()
}

// answered counts the end of a request.
func (m *Meters) answered(r *http.Request, status int) {
	m.responses.of(responseKey{routeName(r.URL.Path), methodName(r.Method), status}).Inc()
}

// routeName keeps clients from inventing label values.
func routeName(path string) string {
	switch path {
	case chatPath, modelsPath, healthPath, readyPath, metricsPath, planPath, enginesPath, reloadPath:
		return path
	}
	if strings.HasPrefix(path, modelPrefix) {
		return modelPrefix + "{id}"
	}
	return "other"
}

func methodName(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// dispatched counts a request that reached engines, at its end.
func (m *Meters) dispatched(s *routing.Selection, model string, took time.Duration) {
	m.durations.of(model).Update(took.Seconds())
	for _, p := range picks(s) {
		if p.pick.Engine != nil {
			m.decisions.of(decisionKey{p.stage, p.pick.Reason}).Inc()
		}
	}
}

// failed counts a selection that no bucket gave.
func (m *Meters) failed(err error) {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return
	}
	m.unselected.of(failureKey{e.Kind, e.Stage}).Inc()
}

// refused counts the rejections that a request met on its way.
func (m *Meters) refused(limits []policy.Limit) {
	for _, l := range limits {
		m.rejected.of(l).Inc()
	}
}

// Engine implements forward.Observer, as do the methods after it.
func (m *Meters) Engine(e *fleet.Engine, o forward.Outcome) {
	m.engines.of(engineKey{e.Model(), e.ID(), e.Role().String(), string(o)}).Inc()
}

// FirstToken measures a stream's first event.
func (m *Meters) FirstToken(model string, after time.Duration) {
	m.ttft.of(model).Update(after.Seconds())
}

// Stream counts the end of a stream.
func (m *Meters) Stream(e *fleet.Engine, end forward.StreamEnd) {
	m.streams.of(engineKey{model: e.Model(), engine: e.ID(), outcome: string(end)}).Inc()
}

// Abort counts a request given up on an engine.
func (m *Meters) Abort(reason forward.AbortReason, sent bool) {
	m.aborts.of(abortKey{reason, sent}).Inc()
}

// Expired counts a request that met the stale limit.
func (m *Meters) Expired(answered bool) {
	if answered {
		m.staleStreaming.Inc()
	} else {
		m.staleBefore.Inc()
	}
}

// watch adds the values that are computed when they are read.
func (m *Meters) watch(s *Server) {
	m.set.RegisterMetricsWriter(func(w io.Writer) {
		ready := uint64(0)
		if s.Ready() {
			ready = 1
		}
		gauge(w, "shunt_ready", ready)
		if g := s.current.Load(); g != nil {
			gauge(w, fmt.Sprintf(`shunt_plan_info{digest=%q}`, g.Digest), 1)
		}
		m.writeEngines(w)
	})
}

func gauge[T int | int32 | int64 | uint64](w io.Writer, name string, v T) {
	fmt.Fprintf(w, "%s %d\n", name, v)
}

// writeEngines writes one metric after the other, each for all engines.
func (m *Meters) writeEngines(w io.Writer) {
	var all []*fleet.Engine
	for _, model := range m.fleet.Models() {
		count := make(map[fleet.Role]int)
		engines := m.fleet.Engines(model)
		for _, e := range engines {
			count[e.Role()]++
		}
		for _, role := range []fleet.Role{fleet.Plain, fleet.Prefill, fleet.Decode} {
			gauge(w, fmt.Sprintf(`shunt_engines{model=%q,role=%q}`, model, role), count[role])
		}
		all = append(all, engines...)
	}
	each := func(name string, value func(*fleet.Engine) int64) {
		for _, e := range all {
			gauge(w, fmt.Sprintf(`%s{model=%q,engine=%q,role=%q}`, name, e.Model(), e.ID(), e.Role()), value(e))
		}
	}
	each("shunt_engine_health", func(e *fleet.Engine) int64 {
		if e.Admits() {
			return 1
		}
		return 0
	})
	each("shunt_engine_breaker_state", func(e *fleet.Engine) int64 { return int64(e.BreakerState()) })
	each("shunt_engine_inflight_requests", (*fleet.Engine).Inflight)
	now := time.Now()
	for _, e := range all {
		if l := e.Load(); l != nil {
			fmt.Fprintf(w, "shunt_load_report_age_seconds{model=%q,engine=%q,role=%q} %g\n",
				e.Model(), e.ID(), e.Role(), now.Sub(l.CapturedAt).Seconds())
		}
	}
}

// serve answers /metrics.
func (m *Meters) serve(w http.ResponseWriter, _ *http.Request) {
	m.prune()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.set.WritePrometheus(w)
	metrics.WriteProcessMetrics(w)
}

// prune forgets the counters of engines that left the fleet, so that engines
// which come and go do not pile up.
func (m *Meters) prune() {
	live := make(map[engineKey]bool)
	for _, model := range m.fleet.Models() {
		for _, e := range m.fleet.Engines(model) {
			live[engineKey{model: model, engine: e.ID()}] = true
		}
	}
	gone := func(k engineKey) bool { return !live[engineKey{model: k.model, engine: k.engine}] }
	m.engines.drop(m.set, gone)
	m.streams.drop(m.set, gone)
}
