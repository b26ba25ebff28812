package policy

import (
	"context"
	"math/rand/v2"

	"shunt/runtime/fleet"
	"shunt/runtime/state/prefix"
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
	Peak     int64
	TokenIDs []uint32
	// CacheSalt and LoRA are what separates the request's cached blocks from
	// those of others with the same tokens; usually both are empty.
	CacheSalt, LoRA string
	// Memo keeps the prefix lookups of the request, so that the groups that it
	// passes through ask once; nil asks at every pick.
	Memo       *prefix.Memo
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

	ReasonSession   Reason = "session_primary"      // the session's binding
	ReasonSticky    Reason = "sticky_hit"           // the routing key's binding
	ReasonAssigned  Reason = "assigned"             // a new binding
	ReasonRemap     Reason = "remap"                // a binding in place of one to an engine that is gone
	ReasonNoSession Reason = "no_session"           // no session key, so no binding
	ReasonNoKey     Reason = "no_routing_key"       // no routing key, so no binding
	ReasonNoStore   Reason = "affinity_unavailable" // the store did not answer, so no binding

	ReasonCache     Reason = "cache_candidate"    // a holder of the prompt's beginning
	ReasonPinned    Reason = "saturation_pin"     // a holder, although it is queued: all are
	ReasonCacheMiss Reason = "no_cache_candidate" // picked by the fallback
)

// intN is the default source of randomness: process-wide and lock-free.
func intN(f func(int) int) func(int) int {
	if f == nil {
		return rand.IntN
	}
	return f
}
