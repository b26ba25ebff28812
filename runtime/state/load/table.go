package load

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"shunt/runtime/fleet"
)

// DefaultFreshness is how long a report counts (seed: five seconds).
const DefaultFreshness = 5 * time.Second

// Report is what one rank of an engine said about itself.
type Report struct {
	Running  uint64 // requests in the running batch
	Waiting  uint64 // queued requests
	Used     uint64 // KV tokens in use
	Capacity uint64 // KV tokens that fit
	// Extension is nil from publishers of the basic report only.
	Extension *Extension
}

// Extension is the native part of a report.
type Extension struct {
	WaitingUncached uint64 // prompt tokens waiting for prefill
	Total           uint64 // KV tokens in use or wanted by queued requests
	MaxRunning      uint64 // request slots
	PrefillTokens   uint64 // cumulative prompt tokens computed
	PrefillBusyUS   uint64 // cumulative time spent on them, microseconds
}

// Table keeps the latest report of every rank of every engine and publishes the
// aggregate on the engine. The zero Table is ready.
type Table struct {
	mu      sync.Mutex
	engines map[*fleet.Engine]*ranks
}

type ranks struct {
	expected map[int]bool
	latest   map[int]*rank
}

type rank struct {
	report Report
	at     time.Time
	// rate is the prefill throughput in tokens per second, 0 if unknown.
	rate float64
}

func (t *Table) of(e *fleet.Engine) *ranks {
	if t.engines == nil {
		t.engines = make(map[*fleet.Engine]*ranks)
	}
	r := t.engines[e]
	if r == nil {
		r = &ranks{expected: make(map[int]bool), latest: make(map[int]*rank)}
		t.engines[e] = r
	}
	return r
}

// Expect registers a rank without which the engine's reports are incomplete.
// With none registered, every rank that was ever seen is required.
func (t *Table) Expect(e *fleet.Engine, rank int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(e)
	r.expected[rank] = true
	e.SetLoad(r.aggregate())
}

// Put stores a rank's report, received at the given time, and publishes the
// engine's new aggregate.
func (t *Table) Put(e *fleet.Engine, id int, rep Report, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(e)
	next := &rank{report: rep, at: at}
	if prev := r.latest[id]; prev != nil {
		next.rate = nextRate(prev, rep.Extension)
	}
	r.latest[id] = next
	e.SetLoad(r.aggregate())
}

// Forget drops everything known about an engine.
func (t *Table) Forget(e *fleet.Engine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.engines, e)
	e.SetLoad(nil)
}

// Engines counts the engines with a report or an expectation.
func (t *Table) Engines() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.engines)
}

// nextRate keeps the rate while the counters stand still, so that the heartbeat
// of an idle engine does not erase its estimate.
func nextRate(prev *rank, next *Extension) float64 {
	p := prev.report.Extension
	if p != nil && next != nil && p.PrefillTokens == next.PrefillTokens && p.PrefillBusyUS == next.PrefillBusyUS {
		return prev.rate
	}
	return prefillRate(p, next)
}

// prefillRate needs two native reports with both counters strictly increased; a
// counter that went back means the engine restarted.
func prefillRate(prev, next *Extension) float64 {
	if prev == nil || next == nil || next.PrefillTokens <= prev.PrefillTokens || next.PrefillBusyUS <= prev.PrefillBusyUS {
		return 0
	}
	rate := 1e6 * float64(next.PrefillTokens-prev.PrefillTokens) / float64(next.PrefillBusyUS-prev.PrefillBusyUS)
	if math.IsInf(rate, 0) || math.IsNaN(rate) || rate <= 0 {
		return 0
	}
	return rate
}

// aggregate sums the required ranks; nil if one is missing or none is known.
func (r *ranks) aggregate() *fleet.Load {
	required := len(r.expected)
	if required == 0 {
		required = len(r.latest)
	}
	sum, rate, rated := &fleet.Load{Native: true}, 0.0, true
	n := 0
	for id, x := range r.latest {
		if len(r.expected) > 0 && !r.expected[id] {
			continue
		}
		n++
		add(sum, x)
		rate += x.rate
		rated = rated && x.rate > 0
	}
	if n == 0 || n < required {
		return nil
	}
	if sum.Native && rated {
		sum.QueueMS, sum.HasQueue = 1000*float64(sum.WaitingUncached)/rate, true
	}
	return sum
}

func add(sum *fleet.Load, x *rank) {
	if sum.CapturedAt.IsZero() || x.at.Before(sum.CapturedAt) {
		sum.CapturedAt = x.at
	}
	sum.Running = satAdd(sum.Running, x.report.Running)
	sum.Waiting = satAdd(sum.Waiting, x.report.Waiting)
	n := x.report.Extension
	if n == nil || x.report.Capacity == 0 || n.MaxRunning == 0 {
		sum.Native = false
		return
	}
	sum.Used = satAdd(sum.Used, x.report.Used)
	sum.Capacity = satAdd(sum.Capacity, x.report.Capacity)
	sum.WaitingUncached = satAdd(sum.WaitingUncached, n.WaitingUncached)
	sum.Total = satAdd(sum.Total, n.Total)
	sum.MaxRunning = satAdd(sum.MaxRunning, n.MaxRunning)
}

func satAdd(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return s
}
