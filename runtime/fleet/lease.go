package fleet

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrBreakerOpen is returned by Lease when the breaker refuses at dispatch what
// it still admitted at the pick.
var ErrBreakerOpen = errors.New("circuit breaker open")

// Lease accounts for one request dispatched to one engine: it holds the
// in-flight count, the breaker's probe when the request is one, and the
// timestamped slot when asked for. The dispatcher must Release it on every path.
type Lease struct {
	engine   *Engine
	probe    uint64
	slot     *slot
	recorded atomic.Bool
	released atomic.Bool
}

// Lease claims the right to dispatch one request. A non-zero at also takes a
// timestamped slot, which load_based counts.
func (e *Engine) Lease(at time.Time) (*Lease, error) {
	e.inflight.Add(1)
	probe, ok := e.breaker.acquire()
	if !ok {
		e.inflight.Add(-1)
		return nil, ErrBreakerOpen
	}
	l := &Lease{engine: e, probe: probe}
	if !at.IsZero() {
		l.slot = e.hold(at)
	}
	return l, nil
}

// Engine is the engine that the lease belongs to.
func (l *Lease) Engine() *Engine { return l.engine }

// Record tells the breaker how the request ended; only the first call counts.
func (l *Lease) Record(o Outcome) {
	if l.recorded.CompareAndSwap(false, true) {
		l.engine.breaker.record(o, l.probe)
	}
}

// Release ends the accounting; later calls do nothing. A lease that recorded no
// outcome gives its probe back unused.
func (l *Lease) Release() {
	if !l.released.CompareAndSwap(false, true) {
		return
	}
	l.Record(Abandoned)
	if l.slot != nil {
		l.engine.drop(l.slot)
	}
	l.engine.inflight.Add(-1)
}

// slot is one held timestamped lease, linked in order of acquisition.
type slot struct {
	at         time.Time
	prev, next *slot
}

// slotList keeps the held slots, newest last.
type slotList struct{ first, last *slot }

// since counts the slots taken at or after t.
func (s *slotList) since(t time.Time) int64 {
	var n int64
	for x := s.last; x != nil && !x.at.Before(t); x = x.prev {
		n++
	}
	return n
}

func (e *Engine) hold(at time.Time) *slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &slot{at: at}
	after := e.slots.last
	for after != nil && after.at.After(at) { // clocks read before the lock may arrive out of order
		after = after.prev
	}
	e.slots.insert(s, after)
	if l := e.load.Load(); l != nil && !at.Before(l.CapturedAt) {
		l.recent.Add(1)
	}
	return s
}

func (e *Engine) drop(s *slot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slots.remove(s)
	if l := e.load.Load(); l != nil && !s.at.Before(l.CapturedAt) {
		l.recent.Add(-1)
	}
}

func (s *slotList) insert(x, after *slot) {
	x.prev = after
	if after == nil {
		x.next, s.first = s.first, x
	} else {
		x.next, after.next = after.next, x
	}
	if x.next == nil {
		s.last = x
	} else {
		x.next.prev = x
	}
}

func (s *slotList) remove(x *slot) {
	if x.prev == nil {
		s.first = x.next
	} else {
		x.prev.next = x.next
	}
	if x.next == nil {
		s.last = x.prev
	} else {
		x.next.prev = x.prev
	}
}
