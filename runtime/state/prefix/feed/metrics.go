package feed

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"shunt/runtime/state/prefix/wire"
)

// counters are the metrics of a feed. Their set is passed in; a feed that takes
// the place of another under the same labels continues its counters.
type counters struct {
	events, blocks                *metrics.Counter
	gaps, lost, resets            *metrics.Counter
	malformed, undecodable        *metrics.Counter
	reconnects, failures, refused *metrics.Counter
	replays                       map[string]*metrics.Counter
	lag                           atomic.Uint64 // seconds, as float64 bits
}

func (c *counters) register(o Options) {
	name := func(metric string) string { return fmt.Sprintf("shunt_prefix_%s{model=%q}", metric, o.Model) }
	counter := func(metric string) *metrics.Counter { return o.Metrics.GetOrCreateCounter(name(metric)) }
	c.events, c.blocks = counter("events_total"), counter("event_blocks_total")
	c.gaps, c.lost, c.resets = counter("gaps_total"), counter("lost_batches_total"), counter("resets_total")
	c.malformed, c.undecodable = counter("malformed_messages_total"), counter("undecodable_batches_total")
	c.reconnects, c.failures = counter("reconnects_total"), counter("connection_failures_total")
	c.refused = counter("refused_engines_total")
	c.replays = make(map[string]*metrics.Counter)
	for _, outcome := range []string{"repaired", "incomplete", "failed", "none", "warmed", "cold"} {
		c.replays[outcome] = o.Metrics.GetOrCreateCounter(
			fmt.Sprintf("shunt_prefix_replays_total{model=%q,outcome=%q}", o.Model, outcome))
	}
}

// expose publishes what is computed when it is read, for as long as the feed
// runs: the next feed under the same labels may have another index. It returns
// what withdraws them.
func (f *Feed) expose() (withdraw func()) {
	o := f.o
	var names []string
	add := func(metric string, read func() float64) {
		name := fmt.Sprintf("shunt_prefix_%s{model=%q}", metric, o.Model)
		names = append(names, name)
		o.Metrics.GetOrCreateGauge(name, read)
	}
	withdraw = func() {
		for _, name := range names {
			o.Metrics.UnregisterMetric(name)
		}
	}
	add("lag_seconds", func() float64 { return math.Float64frombits(f.counts.lag.Load()) })
	if o.Index == nil {
		return withdraw
	}
	// The models of a process share the index. Here is what of it is of one model;
	// the rest belongs to whoever has the index.
	add("index_owned_blocks", func() float64 { blocks, _ := f.held(); return float64(blocks) })
	add("index_owners", func() float64 { _, owners := f.held(); return float64(owners) })
	return withdraw
}

func (c *counters) replay(outcome string) { c.replays[outcome].Inc() }

// applied counts a batch, and measures how long after its publication it took
// effect. The clocks are two, so the lag is an estimate, never below zero.
func (c *counters) applied(b *wire.Batch, s *seen) {
	c.events.Add(len(b.Events))
	c.blocks.Add(b.Blocks())
	if b.Time > 0 {
		lag := max(float64(time.Now().UnixNano())/1e9-b.Time, 0)
		c.lag.Store(math.Float64bits(lag))
		s.lag.Store(int64(min(lag*1e9, math.MaxInt64/2)))
	}
}
