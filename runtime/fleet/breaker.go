package fleet

import (
	"sync"
	"sync/atomic"
	"time"
)

// BreakerConfig tunes the passive circuit breaker of an engine.
type BreakerConfig struct {
	// Threshold is the number of consecutive failures that opens it; values
	// below 1 count as 1.
	Threshold int
	CoolDown  time.Duration
}

// Outcome is how a dispatched request ended, as far as the engine's health goes.
type Outcome uint8

// The outcomes. Backpressure (429, 503) is neutral: it proves the engine alive
// and ends a probe, but neither opens nor forgives. Abandoned proves nothing.
const (
	Success Outcome = iota + 1
	Failure
	Backpressure
	Abandoned
)

// BreakerState is the state of a breaker; the values are those of the metric.
type BreakerState int32

// The states. An open breaker whose cool-down has passed is still Open; it
// admits one probe.
const (
	Closed   BreakerState = 0
	Open     BreakerState = 1
	HalfOpen BreakerState = 2
)

func (s BreakerState) String() string {
	switch s {
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	}
	return "closed"
}

// breaker decides from the outcomes of real requests whether its engine may be
// picked. It sends no probes of its own. admits is what a pick may read; each
// change of it is announced after the lock is gone.
type breaker struct {
	cfg      BreakerConfig
	announce func()
	admits   atomic.Bool

	mu       sync.Mutex
	state    BreakerState
	failures int
	cooled   bool // Open, and the cool-down has passed
	probing  bool // HalfOpen, and the probe is under way
	probe    uint64
	opening  uint64
	timer    *time.Timer
	stopped  bool
}

func (b *breaker) init(cfg BreakerConfig, announce func()) {
	b.announce = announce
	b.configure(cfg)
	b.admits.Store(true)
}

// configure changes the tuning; state and a running cool-down stay.
func (b *breaker) configure(cfg BreakerConfig) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cfg.Threshold = max(cfg.Threshold, 1)
	b.cfg = cfg
}

// acquire is asked at dispatch. It returns the number of the probe that the
// request is, 0 for an ordinary request.
func (b *breaker) acquire() (probe uint64, ok bool) {
	defer b.publish()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.state == Closed:
		return 0, true
	case b.state == Open && b.cooled, b.state == HalfOpen && !b.probing:
		b.state, b.cooled, b.probing = HalfOpen, false, true
		b.probe++
		return b.probe, true
	}
	return 0, false
}

// record notes an outcome; probe is what acquire returned for that request.
func (b *breaker) record(o Outcome, probe uint64) {
	defer b.publish()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o {
	case Success:
		b.close()
	case Failure:
		b.fail()
	case Backpressure:
		if b.state == HalfOpen {
			b.close()
		}
	case Abandoned:
		// An older request must not give back a newer probe.
		if b.state == HalfOpen && b.probing && probe == b.probe {
			b.probing = false
		}
	}
}

func (b *breaker) close() {
	b.state, b.failures, b.cooled, b.probing = Closed, 0, false, false
	b.stopTimer()
}

func (b *breaker) fail() {
	if b.state == Open {
		return // the cool-down is not prolonged by requests that were under way
	}
	b.failures++
	if b.state == Closed && b.failures < b.cfg.Threshold {
		return // half-open, one failure is enough, whatever the threshold is by now
	}
	b.state, b.cooled, b.probing = Open, false, false
	b.stopTimer()
	if b.stopped {
		return
	}
	b.opening++
	opening := b.opening
	b.timer = time.AfterFunc(b.cfg.CoolDown, func() { b.coolDown(opening) })
}

// coolDown ends the cool-down of one opening, unless a later one has begun.
func (b *breaker) coolDown(opening uint64) {
	defer b.publish()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open && b.opening == opening {
		b.cooled = true
	}
}

func (b *breaker) stopTimer() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// stop ends the breaker's timer for good.
func (b *breaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.stopTimer()
}

func (b *breaker) current() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// publish announces the engine if it entered or left the candidates.
func (b *breaker) publish() {
	b.mu.Lock()
	now := b.state == Closed || b.state == Open && b.cooled || b.state == HalfOpen && !b.probing
	changed := b.admits.Swap(now) != now
	b.mu.Unlock()
	if changed {
		b.announce()
	}
}
