package prepare

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"shunt/runtime/tokens"
	"shunt/runtime/tokens/ask"
	"shunt/runtime/tokens/bpe"
)

// defaultTokenizeBytes bounds the bodies being tokenized or waiting for it.
const defaultTokenizeBytes = 256 << 20

// TokenLimit bounds the tokenization of a whole process: how many prompts at a
// time, and how many bytes of bodies in work or waiting. It is safe for
// concurrent use.
type TokenLimit struct {
	slots chan struct{}
	bytes atomic.Int64
	max   int64
}

// NewTokenLimit makes a limit; a slots of 0 is one for each processor, and a
// bytes of 0 is 256 MiB.
func NewTokenLimit(slots int, bytes int64) *TokenLimit {
	if slots <= 0 {
		slots = runtime.GOMAXPROCS(0)
	}
	if bytes <= 0 {
		bytes = defaultTokenizeBytes
	}
	return &TokenLimit{slots: make(chan struct{}, slots), max: bytes}
}

// errBusy is why a prompt was not tokenized beyond the limit.
var errBusy = errors.New("too much is being tokenized")

// Enter waits for a slot until the context ends. What exceeds the bytes does not wait.
func (l *TokenLimit) Enter(ctx context.Context, size int64) error {
	if l.bytes.Add(size) > l.max {
		l.bytes.Add(-size)
		return errBusy
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.bytes.Add(-size)
		return context.Cause(ctx)
	}
}

// Leave gives the slot back.
func (l *TokenLimit) Leave(size int64) {
	<-l.slots
	l.bytes.Add(-size)
}

// Tokenizer tokenizes the prompts of one model. It is safe for concurrent use.
type Tokenizer struct {
	// Model tokenizes here, and Limit bounds that; all models of a process share
	// one. Both are required unless there are Engines.
	Model *tokens.Model
	Limit *TokenLimit
	// Engines, if not nil, are asked instead, and have their own bounds.
	Engines *ask.Client
	// Forward sends ids along to engines where they are provably the engine's own.
	Forward bool
}

// Tokens is what is known about the prompt of a request.
type Tokens struct {
	// IDs is nil if there is only an estimate.
	IDs []uint32
	// Length is at least 1.
	Length int64
	// Exact, rendered or estimate.
	Trust string
	// Forward says that the ids go along to the engine.
	Forward bool
	// Forwarding says why they do, or do not.
	Forwarding string
	// Reason is why there is only an estimate, in a word for metrics and traces;
	// empty where there are ids. Err is the same for logs.
	Reason string
	Err    error
}

// Reasons for estimates where the router tokenizes; those of package ask apply
// where engines do.
const (
	Overloaded = ask.Overloaded // too much is being tokenized
	TooLarge   = ask.TooLarge   // body or prompt exceed a bound
	Failed     = "failed"       // the request cannot be rendered or read
)

// Estimated reports whether there are no ids.
func (t *Tokens) Estimated() bool { return t.IDs == nil }

// Tokenize finds the ids of a parsed request. Without ids it is an estimate that
// says why; the only error is that of a context that ended.
func (t *Tokenizer) Tokenize(ctx context.Context, r *Request) (Tokens, error) {
	ids, source, err := t.encode(ctx, r)
	switch {
	case ctx.Err() != nil:
		return Tokens{}, context.Cause(ctx)
	case err != nil:
		// The engine judges what it cannot read; here it is a length only.
		return r.estimate(err), nil
	}
	out := Tokens{IDs: ids, Length: max(1, source.Tokens), Trust: source.Trust.String(),
		Forwarding: source.Forwarding.String(), Err: source.Err}
	if source.Trust == tokens.Estimated || len(ids) == 0 {
		out.IDs, out.Reason = nil, reasonOf(source.Err)
	}
	switch {
	case source.Forwarding != tokens.Forwarded:
	case t.Forward:
		out.Forward = out.IDs != nil
	default:
		out.Forwarding = tokens.Disabled.String()
	}
	return out, nil
}

// encode finds the ids here or asks for them.
func (t *Tokenizer) encode(ctx context.Context, r *Request) ([]uint32, tokens.Source, error) {
	if t.Engines != nil {
		return t.Engines.Encode(ctx, nil, r.body, r.Authorization)
	}
	size := int64(len(r.body))
	if err := t.Limit.Enter(ctx, size); err != nil {
		return nil, tokens.Source{}, err
	}
	defer t.Limit.Leave(size)
	return t.Model.Encode(ctx, nil, r.body)
}

// reasonOf says in a word why there are no ids.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*ask.Error](err); ok {
		return e.Reason
	}
	switch {
	case errors.Is(err, errBusy):
		return Overloaded
	case errors.Is(err, bpe.ErrTooLong), errors.Is(err, tokens.ErrTooMany):
		return TooLarge
	}
	return Failed
}

func (r *Request) estimate(err error) Tokens {
	return Tokens{Length: max(1, int64(len(r.body)/bytesPerToken)), Trust: tokens.Estimated.String(),
		Forwarding: tokens.TokenizeFailed.String(), Reason: reasonOf(err), Err: err}
}
