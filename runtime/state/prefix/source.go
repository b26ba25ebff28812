package prefix

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Source answers which engines hold the beginning of a prompt.
//
// An error means that the signal cannot be trusted and routing must stop; the
// context's own error is one, too. A source that cannot answer says so in the
// outcome, and the request goes on as a miss. The implementations are pointers:
// a Memo tells sources apart by identity.
type Source interface {
	Lookup(ctx context.Context, p Prompt) (Outcome, error)
}

// Status is what became of a lookup.
type Status uint8

// The statuses. NoQuery, Empty and Unavailable all lead to the miss fallback and
// stay apart in traces and metrics.
const (
	// NoQuery: nothing was asked; the reason says why.
	NoQuery Status = iota
	// Empty: no engine holds the first block. A confirmed miss.
	Empty
	// Matched: at least one engine holds the first block.
	Matched
	// Unavailable: the source could not answer; the reason says why.
	Unavailable
)

func (s Status) String() string {
	switch s {
	case NoQuery:
		return "no_query"
	case Empty:
		return "empty"
	case Matched:
		return "matched"
	case Unavailable:
		return "unavailable"
	}
	return "unknown"
}

// Reasons of NoQuery and Unavailable.
const (
	NoTokens    = "no_tokens"
	NoBlockSize = "block_size_unknown"
	NoBlocks    = "no_blocks"
	// What the engines hash of adapters and salts cannot be computed here, so such
	// requests miss on purpose.
	Adapter     = "adapter_unsupported"
	Salt        = "salt_unsupported"
	Timeout     = "timeout"
	Unreachable = "unreachable"
	Overloaded  = "overloaded"
	TooLarge    = "query_too_large"
)

// Outcome is the answer to a lookup. It is shared by all picks of a request and
// must not be changed.
type Outcome struct {
	Status Status
	Reason string
	// QueryBlocks is the number of blocks of the whole prompt: the divisor of
	// match ratios.
	QueryBlocks int
	// Matches are the engines that hold the first block, by address.
	Matches []Match
	// Best is the depth of the deepest match.
	Best int
}

// InvalidError reports an answer that the source refused for good: the request,
// or the configuration, is wrong.
type InvalidError struct {
	Code string // the source's code for it
	Err  error
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("prefix source rejected the query (%s): %v", e.Code, e.Err)
}

func (e *InvalidError) Unwrap() error { return e.Err }

// Namespace is what the engines of one model have in common: how they hash. The
// first engine that says so decides; an engine that disagrees is refused, and
// the engines that agree hold the decision until the last of them leaves.
//
// The zero Namespace is ready.
type Namespace struct {
	mu      sync.Mutex
	holders map[string]bool // by address
	hashing atomic.Pointer[Hashing]
}

// Propose states how an engine hashes. It reports whether the namespace agrees.
// An engine that holds the decision alone may change it; changed says that it
// did, and then what was indexed before is void.
func (n *Namespace) Propose(address string, h Hashing) (agreed, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.Check() != nil {
		return false, false
	}
	if n.holders == nil {
		n.holders = make(map[string]bool)
	}
	old := n.hashing.Load()
	alone := len(n.holders) == 0 || len(n.holders) == 1 && n.holders[address]
	switch {
	case old != nil && *old == h:
	case alone:
		changed = old != nil
		n.hashing.Store(&h)
	default:
		return false, false
	}
	n.holders[address] = true
	return true, changed
}

// Withdraw says that an engine left. With the last holder the decision stays as
// it is, but the next engine may change it.
func (n *Namespace) Withdraw(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.holders, address)
}

// Hashing is the decision, false before the first engine.
func (n *Namespace) Hashing() (Hashing, bool) {
	h := n.hashing.Load()
	if h == nil {
		return Hashing{}, false
	}
	return *h, true
}

// Question prepares a lookup of a prompt: how to hash it, or the outcome that it
// has without asking anyone.
func (n *Namespace) Question(p Prompt) (Hashing, Outcome, bool) {
	if len(p.Tokens) == 0 {
		return Hashing{}, Outcome{Reason: NoTokens}, false
	}
	h, known := n.Hashing()
	switch {
	case !known:
		return h, Outcome{Reason: NoBlockSize}, false
	case !h.Supports(p) && p.LoRA != "":
		return h, Outcome{Reason: Adapter}, false
	case !h.Supports(p):
		return h, Outcome{Reason: Salt}, false
	case h.Blocks(len(p.Tokens)) == 0:
		return h, Outcome{Reason: NoBlocks}, false
	}
	return h, Outcome{}, true
}

// Local is the source over an index of this process. Both fields are required.
type Local struct {
	Index     *Index
	Namespace *Namespace
	// Digests, if not nil, spares hashing what was hashed for an earlier request.
	Digests *Digests
}

var _ Source = (*Local)(nil)

// Lookup never waits for anything but the index's lock.
func (l *Local) Lookup(ctx context.Context, p Prompt) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, fmt.Errorf("prefix lookup: %w", err)
	}
	h, out, ask := l.Namespace.Question(p)
	if !ask {
		return out, nil
	}
	c := h.Chain(p)
	c.Reuse(l.Digests)
	out = Outcome{Status: Empty, QueryBlocks: c.Len()}
	out.Matches, out.Best = l.Index.MatchChain(nil, c)
	if len(out.Matches) > 0 {
		out.Status = Matched
	}
	return out, nil
}

// Memo remembers the lookups of one request: one for each source. Picks that
// ask at the same time share the query in flight. The zero Memo is ready; it
// must be used for one prompt only, and not be copied.
type Memo struct {
	mu      sync.Mutex
	entries []*memoEntry
}

// errUnfinished is seen by nobody but those that wait for a lookup that panics.
var errUnfinished = errors.New("prefix lookup did not finish")

type memoEntry struct {
	source Source
	done   chan struct{}
	out    Outcome
	err    error
}

// Lookup asks a source, or repeats what it answered before. Answers are
// remembered whatever their status; errors are not.
func (m *Memo) Lookup(ctx context.Context, s Source, p Prompt) (Outcome, error) {
	for {
		e, mine := m.entry(s)
		if mine {
			return m.ask(ctx, e, p)
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return Outcome{}, fmt.Errorf("prefix lookup: %w", context.Cause(ctx))
		}
		if e.err == nil {
			return e.out, nil
		}
		// The one that asked failed, perhaps by its own context: ask again.
		if err := ctx.Err(); err != nil {
			return Outcome{}, fmt.Errorf("prefix lookup: %w", err)
		}
	}
}

// entry finds the entry of a source, or makes it; mine says that it was made.
func (m *Memo) entry(s Source) (e *memoEntry, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.source == s {
			return e, false
		}
	}
	e = &memoEntry{source: s, done: make(chan struct{})}
	m.entries = append(m.entries, e)
	return e, true
}

func (m *Memo) ask(ctx context.Context, e *memoEntry, p Prompt) (Outcome, error) {
	e.err = errUnfinished
	defer func() {
		if e.err != nil {
			m.forget(e)
		}
		close(e.done)
	}()
	e.out, e.err = e.source.Lookup(ctx, p)
	return e.out, e.err
}

func (m *Memo) forget(e *memoEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.entries {
		if m.entries[i] == e {
			m.entries = append(m.entries[:i:i], m.entries[i+1:]...)
			return
		}
	}
}
