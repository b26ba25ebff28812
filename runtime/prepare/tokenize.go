package prepare

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"shunt/runtime/tokens"
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

// enter waits for a slot. What exceeds the bytes does not wait.
func (l *TokenLimit) enter(ctx context.Context, size int64) error {
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

func (l *TokenLimit) leave(size int64) {
	<-l.slots
	l.bytes.Add(-size)
}

// Tokenizer tokenizes the prompts of one model. It is safe for concurrent use.
type Tokenizer struct {
	// Model and Limit are required. All models of a process share one Limit.
	Model *tokens.Model
	Limit *TokenLimit
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
	// Err is why there is only an estimate, for logs.
	Err error
}

// Estimated reports whether there are no ids.
func (t *Tokens) Estimated() bool { return t.IDs == nil }

// Tokenize finds the ids of a parsed request. Without ids it is an estimate that
// says why; the only error is that of a context that ended.
func (t *Tokenizer) Tokenize(ctx context.Context, r *Request) (Tokens, error) {
	size := int64(len(r.body))
	if err := t.Limit.enter(ctx, size); err != nil {
		if errors.Is(err, errBusy) {
			return r.estimate(err), nil
		}
		return Tokens{}, err
	}
	defer t.Limit.leave(size)
	ids, source, err := t.Model.Encode(ctx, nil, r.body)
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
		out.IDs = nil
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

func (r *Request) estimate(err error) Tokens {
	return Tokens{Length: max(1, int64(len(r.body)/bytesPerToken)), Trust: tokens.Estimated.String(),
		Forwarding: tokens.TokenizeFailed.String(), Err: err}
}
