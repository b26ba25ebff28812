package load

import (
	"cmp"
	"math/bits"
	"time"

	"shunt/runtime/fleet"
)

// Reader judges the freshness of reports. The zero Reader uses the real clock
// and DefaultFreshness.
type Reader struct {
	Now       func() time.Time
	Freshness time.Duration
}

// Time is the reader's clock.
func (r Reader) Time() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// Observe reads one engine once. A pick compares and admits on this value.
func (r Reader) Observe(e *fleet.Engine, now time.Time) Observation {
	o := Observation{Engine: e, Inflight: e.Inflight()}
	freshness := r.Freshness
	if freshness == 0 {
		freshness = DefaultFreshness
	}
	if l := e.Load(); l != nil && now.Sub(l.CapturedAt) <= freshness {
		o.Load, o.Recent = l, l.Recent()
	}
	return o
}

// Observation is what one pick saw of one engine.
type Observation struct {
	Engine *fleet.Engine
	// Inflight is the router's own count.
	Inflight int64
	// Load is nil without a fresh and complete report: unknown, never zero.
	Load *fleet.Load
	// Recent counts the dispatches since the report.
	Recent int64
}

// Native is the report if it has the native part, else nil.
func (o *Observation) Native() *fleet.Load {
	if o.Load != nil && o.Load.Native {
		return o.Load
	}
	return nil
}

// Source is the signal by which a set of engines is compared. It is decided for
// the whole set, so that the order over the set is total.
type Source uint8

// The sources, from the weakest: Inflight if any engine of the set lacks a
// native report; Native if all have one; QueueTime if moreover all have an
// estimate of the prefill queue time.
const (
	Inflight Source = iota
	Native
	QueueTime
)

func (s Source) String() string {
	switch s {
	case Native:
		return "native_queue_tokens"
	case QueueTime:
		return "estimated_prefill_queue_ms"
	}
	return "router_local"
}

// Best is the strongest source that one engine alone supports at a stage.
func (o *Observation) Best(stage fleet.Role) Source {
	l := o.Native()
	switch {
	case l == nil:
		return Inflight
	case stage != fleet.Decode && l.HasQueue:
		return QueueTime
	}
	return Native
}

// Compare orders two engines by pressure at a stage, less pressure first. Both
// must support the source. Equal pressure is 0; ids do not count.
func Compare(stage fleet.Role, by Source, a, b *Observation) int {
	if by != Inflight {
		if c := compareReported(stage, by, a.Load, b.Load); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.Inflight, b.Inflight)
}

func compareReported(stage fleet.Role, by Source, a, b *fleet.Load) int {
	if stage == fleet.Decode {
		return cmp.Or(
			cmp.Compare(a.Waiting, b.Waiting),
			cmp.Compare(a.Running, b.Running),
			compareFractions(a.Used, a.Capacity, b.Used, b.Capacity),
			cmp.Compare(a.Used, b.Used))
	}
	if by == QueueTime {
		if c := cmp.Compare(a.QueueMS, b.QueueMS); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(a.WaitingUncached, b.WaitingUncached),
		cmp.Compare(a.Waiting, b.Waiting),
		cmp.Compare(a.Running, b.Running))
}

// compareFractions compares a/x with b/y exactly, by 128-bit cross products.
func compareFractions(a, x, b, y uint64) int {
	if x == 0 || y == 0 {
		return 0
	}
	ahi, alo := bits.Mul64(a, y)
	bhi, blo := bits.Mul64(b, x)
	return cmp.Or(cmp.Compare(ahi, bhi), cmp.Compare(alo, blo))
}
