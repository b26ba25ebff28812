package policy

import (
	"context"
	"errors"

	"shunt/runtime/fleet"
)

// Prefixes knows which engines hold the beginning of a prompt.
type Prefixes interface {
	// Match sets depths[i] to the number of leading blocks of the request's
	// prompt that candidates[i] holds, 0 for none; both have the same length.
	// The same request may ask again, for other candidates. An error is a query
	// that cannot be right, or a context that ended; an index that cannot
	// answer is an outcome.
	Match(ctx context.Context, req *Request, candidates []*fleet.Engine, depths []uint32) (PrefixMatch, error)
}

// PrefixMatch is the answer about a prompt as a whole.
type PrefixMatch struct {
	Outcome PrefixOutcome
	// Blocks is the number of whole blocks of the prompt.
	Blocks uint32
	// Why says what is missing when the outcome is PrefixUnavailable.
	Why string
}

// PrefixOutcome is how a lookup ended. The zero value is a confirmed miss.
type PrefixOutcome uint8

// The outcomes. A hit says that some engine holds blocks, not which.
const (
	PrefixMiss PrefixOutcome = iota
	PrefixHit
	PrefixUnavailable
)

func (o PrefixOutcome) String() string {
	switch o {
	case PrefixHit:
		return "hit"
	case PrefixUnavailable:
		return "unavailable"
	}
	return "miss"
}

// invalidQuery makes a lookup's error a failure of selection, unless the context
// ended or it is one already.
func invalidQuery(ctx context.Context, err error, req *Request) error {
	if ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Kind: InvalidSignal, Stage: req.Stage, Detail: "prefix lookup: " + err.Error()}
}
