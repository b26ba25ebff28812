package policy

import (
	"context"
	"math/rand/v2"

	"shunt/runtime/fleet"
)

// Policy selects one engine among candidates.
//
// The candidates are healthy, of the request's model and stage, members of the
// group, sorted by id, and never empty: the group answers NoCandidates first. The picked engine is one of
// them, by pointer. Failures are *Error.
type Policy interface {
	Pick(ctx context.Context, candidates []*fleet.Engine, req *Request) (Pick, error)
}

// Request is what a policy may know about a request. Stage and Bucket are set
// for each group in turn.
type Request struct {
	Model  string
	Stage  fleet.Role
	Bucket string
	// Input is the number of input tokens, at least 1.
	Input int64
	// Peak is input and requested output together; 0 is unknown.
	Peak       int64
	TokenIDs   []uint32
	SessionKey string
	RoutingKey string
	// Trace receives what the pick looked at; nil costs nothing.
	Trace *Trace
}

// Pick is one engine and why it was chosen.
type Pick struct {
	Engine *fleet.Engine
	Reason Reason
}

// Reason labels a pick in metrics and traces.
type Reason string

// The reasons.
const (
	ReasonRoundRobin Reason = "round_robin"
	ReasonRandom     Reason = "random"
	ReasonPowerOfTwo Reason = "power_of_two"
	ReasonLoadBased  Reason = "load_based"
)

// intN is the default source of randomness: process-wide and lock-free.
func intN(f func(int) int) func(int) int {
	if f == nil {
		return rand.IntN
	}
	return f
}
