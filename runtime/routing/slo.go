package routing

import (
	"math"

	"shunt/runtime/policy"
)

// SLOMode says how a latency target of a request orders the buckets that fit its
// length. It never removes a bucket.
type SLOMode uint8

// The modes. SLOFirst tries the buckets whose estimate meets the target before
// the others; BestEffort keeps those for requests that need them and tries them
// last. Without a target of the request, neither changes anything.
const (
	SLODisabled SLOMode = iota
	SLOFirst
	BestEffort
)

func (m SLOMode) String() string {
	switch m {
	case SLOFirst:
		return "slo_first"
	case BestEffort:
		return "best_effort"
	}
	return "disabled"
}

// ParseSLOMode is the inverse of String.
func ParseSLOMode(s string) (SLOMode, bool) {
	for _, m := range []SLOMode{SLODisabled, SLOFirst, BestEffort} {
		if m.String() == s {
			return m, true
		}
	}
	return SLODisabled, false
}

// Targets are the latency goals of a request; the zero Targets has none. A
// target of zero is not the same as none: it is invalid.
type Targets struct {
	// TTFTMS bounds the time to the first token, in milliseconds.
	TTFTMS  uint64
	HasTTFT bool
	// TPS is the wanted rate of output, in tokens per second.
	TPS    float64
	HasTPS bool
}

// Estimates are what a bucket is expected to deliver; zero values are unknown
// and meet no target.
type Estimates struct {
	TTFTMS uint64  // time to the first token, milliseconds
	TPS    float64 // tokens per second of output
}

// SLO is how a model uses targets. The zero SLO ignores them.
type SLO struct{ TTFT, TPS SLOMode }

// targets drops those that the model ignores, whatever their value, and refuses
// others that make no sense.
func (s SLO) targets(t Targets) (Targets, error) {
	t.HasTTFT = t.HasTTFT && s.TTFT != SLODisabled
	t.HasTPS = t.HasTPS && s.TPS != SLODisabled
	if t.HasTTFT && t.TTFTMS == 0 {
		return t, invalidTarget("the target of time to first token is zero")
	}
	if t.HasTPS && (!(t.TPS > 0) || math.IsInf(t.TPS, 0)) {
		return t, invalidTarget("the target of tokens per second is not a finite positive number")
	}
	return t, nil
}

func invalidTarget(why string) error { return &policy.Error{Kind: policy.InvalidSignal, Detail: why} }

// worst is the largest penalty that targets can bring.
func (t Targets) worst() uint8 {
	var n uint8
	if t.HasTTFT {
		n++
	}
	if t.HasTPS {
		n++
	}
	return n
}

// penalty counts the targets for which a bucket is not preferred; buckets with a
// smaller penalty are tried first.
func (s SLO) penalty(t Targets, e Estimates) uint8 {
	var n uint8
	if t.HasTTFT && (e.TTFTMS > 0 && e.TTFTMS <= t.TTFTMS) == (s.TTFT == BestEffort) {
		n++
	}
	if t.HasTPS && (e.TPS >= t.TPS && !math.IsInf(e.TPS, 0)) == (s.TPS == BestEffort) {
		n++
	}
	return n
}
