package policy

import (
	"fmt"
	"strings"

	"shunt/runtime/fleet"
)

// Kind is the outcome of a failed selection (seed, section 4).
type Kind uint8

// The kinds. NoCandidates, NoAdmissibleEngine and AdmissionRejected send the
// request to the next bucket; the others end the pass.
const (
	NoMatchingBucket     Kind = iota + 1 // no bucket supports the length
	NoCandidates                         // nothing to choose from
	NoAdmissibleEngine                   // limits refused every candidate
	AdmissionRejected                    // limits refused the chosen engine
	InvalidSignal                        // the request or a report makes no sense
	InvalidConfiguration                 // the policy cannot serve this stage
	OutsideCandidates                    // the policy returned a foreign engine
	StateUnavailable                     // a state service does not answer, and is needed
)

var kindNames = [...]string{"none", "no_matching_bucket", "no_candidates", "no_admissible_engine",
	"admission_rejected", "invalid_signal", "invalid_configuration", "outside_candidates",
	"state_unavailable"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Final reports whether the failure ends the bucket loop.
func (k Kind) Final() bool { return k == NoMatchingBucket || k >= InvalidSignal }

// Error is a failed selection. Callers act on Kind, never on the text.
type Error struct {
	Kind Kind
	// Stage is the stage whose group failed; none for resolution failures.
	Stage fleet.Role
	// Rejected are the engines that admission refused, in order.
	Rejected []Rejection
	// Detail is for people; it holds no engine address.
	Detail string
	// Cause, if known, is for logs. The text leaves it out, since it may hold
	// addresses, and it is not unwrapped: the timeout of a state service is not
	// that of the request.
	Cause error
}

// Rejection is one engine that admission refused, and the limit it was at.
type Rejection struct {
	Engine string `json:"engine"`
	Limit  Limit  `json:"limit"`
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Kind.String())
	if e.Stage != 0 {
		fmt.Fprintf(&b, " (%s)", e.Stage)
	}
	for i, r := range e.Rejected {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s at %s", sep, r.Engine, r.Limit)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

func rejected(req *Request, e *fleet.Engine, l Limit) *Error {
	return &Error{Kind: AdmissionRejected, Stage: req.Stage, Rejected: []Rejection{{Engine: e.ID(), Limit: l}}}
}
