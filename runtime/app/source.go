package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/state/prefix"
)

// source counts the lookups of one model's prefix source. Requests that pass
// through several groups look up once, so they count once.
type source struct {
	prefix.Source
	// close gives connections back; nil if there are none.
	close func() error

	model string
	set   *metrics.Set
	took  *metrics.PrometheusHistogram
}

var _ prefix.Source = (*source)(nil)

func newSource(model string, s prefix.Source, set *metrics.Set) *source {
	return &source{Source: s, model: model, set: set, took: set.GetOrCreatePrometheusHistogramExt(
		fmt.Sprintf(`shunt_prefix_lookup_seconds{model=%q}`, model),
		[]float64{0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25})}
}

// Lookup implements prefix.Source.
func (s *source) Lookup(ctx context.Context, p prefix.Prompt) (prefix.Outcome, error) {
	began := time.Now()
	out, err := s.Source.Lookup(ctx, p)
	if ctx.Err() != nil {
		return out, err // nobody waits for it: no outcome
	}
	s.took.Update(time.Since(began).Seconds())
	s.set.GetOrCreateCounter(fmt.Sprintf(`shunt_prefix_lookups_total{model=%q,outcome=%q}`, s.model, outcome(out, err))).Inc()
	return out, err
}

// outcome names what became of a lookup: matched, empty, a reason, or rejected.
func outcome(o prefix.Outcome, err error) string {
	if err != nil {
		if _, ok := errors.AsType[*prefix.InvalidError](err); ok {
			return "rejected"
		}
		return "failed"
	}
	switch o.Status {
	case prefix.Matched:
		return "matched"
	case prefix.Empty:
		return "empty"
	case prefix.NoQuery, prefix.Unavailable:
	}
	return o.Reason
}

func (s *source) end() {
	if s != nil && s.close != nil {
		_ = s.close() // the connections are of no use any more
	}
}
