package policy

import (
	"context"
	"errors"
	"math"
	"sync"

	"shunt/runtime/fleet"
	"shunt/runtime/state/prefix"
)

// Prefixes knows which engines hold the beginning of a prompt. Indexed is the
// one of the server.
type Prefixes interface {
	// Match sets depths[i] to the number of leading blocks of the request's
	// prompt that candidates[i] holds; both have the same length, and depths
	// come as zeros. The same request may ask again, for other candidates. An
	// error is a query that cannot be right, or a context that ended; an index
	// that cannot answer is an outcome.
	Match(ctx context.Context, req *Request, candidates []*fleet.Engine, depths []uint32) (PrefixMatch, error)
}

// PrefixMatch is the answer about a prompt as a whole.
type PrefixMatch struct {
	Outcome PrefixOutcome
	// Blocks is the number of blocks of the prompt.
	Blocks uint32
	// Why says what was missing when nothing was asked or answered.
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

// Indexed is the Prefixes of a source, which it asks once for each request that
// carries a memo. Source is required; policies on the same index share one.
type Indexed struct {
	Source prefix.Source

	scratch sync.Pool // of map[string]uint32
}

var _ Prefixes = (*Indexed)(nil)

// Match implements Prefixes. Engines are matched by their URL, byte for byte.
func (x *Indexed) Match(ctx context.Context, req *Request, candidates []*fleet.Engine, depths []uint32) (PrefixMatch, error) {
	out, err := x.lookup(ctx, req)
	if err != nil {
		return PrefixMatch{}, err
	}
	m := PrefixMatch{Blocks: uint32(min(max(out.QueryBlocks, 0), math.MaxUint32)), Why: out.Reason}
	switch {
	case out.Status == prefix.Matched:
		m.Outcome = PrefixHit
		x.fill(out.Matches, candidates, depths)
	case out.Status == prefix.Unavailable, out.Status == prefix.NoQuery && out.Reason != prefix.NoBlocks:
		m.Outcome = PrefixUnavailable
	}
	return m, nil
}

func (x *Indexed) lookup(ctx context.Context, req *Request) (prefix.Outcome, error) {
	p := prefix.Prompt{Tokens: req.TokenIDs, Salt: req.CacheSalt, LoRA: req.LoRA}
	if req.Memo == nil {
		return x.Source.Lookup(ctx, p)
	}
	return req.Memo.Lookup(ctx, x.Source, p)
}

// fill spreads matches over the candidates. An address that comes more than once
// counts with its deepest match.
func (x *Indexed) fill(matches []prefix.Match, candidates []*fleet.Engine, depths []uint32) {
	byURL, _ := x.scratch.Get().(map[string]uint32)
	if byURL == nil {
		byURL = make(map[string]uint32)
	}
	for i := range matches {
		m := &matches[i]
		depth := uint32(min(max(m.Blocks, 0), math.MaxUint32))
		byURL[m.Address] = max(byURL[m.Address], depth)
	}
	for i, e := range candidates {
		depths[i] = byURL[e.URL()]
	}
	if len(byURL) > mostKept {
		return // it never shrinks, and clearing it costs its size
	}
	clear(byURL)
	x.scratch.Put(byURL)
}

// mostKept bounds the scratch maps that are used again.
const mostKept = 1 << 13

// invalidQuery makes a lookup's error a failure of selection, unless the context
// ended or it is one already.
func invalidQuery(ctx context.Context, err error, req *Request) error {
	if ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	detail := "the prefix lookup failed"
	if e, ok := errors.AsType[*prefix.InvalidError](err); ok {
		detail = "the prefix source rejects the query: " + e.Code
	}
	return &Error{Kind: InvalidSignal, Stage: req.Stage, Detail: detail, Cause: err}
}
