package affinity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"shunt/runtime/fleet"
)

// The defaults of both stores (seed: ten minutes, swept every minute).
const (
	DefaultIdle  = 600 * time.Second
	DefaultSweep = 60 * time.Second
)

// Store keeps bindings. Candidates are sorted by id, and a returned engine is
// always one of them, by pointer. An error is an *Unavailable, or that of a
// context that ended.
type Store interface {
	// Bound returns the engine that a key is bound to, nil if it is bound to
	// none of the candidates. Only a binding within them counts as used. A
	// binding that is idle for too long but not yet removed still holds.
	Bound(ctx context.Context, key Key, candidates []*fleet.Engine) (*fleet.Engine, error)
	// Bind binds a key to an engine, one of the candidates, unless it is bound
	// to one of them already: then that binding wins. Either way the binding
	// counts as used.
	Bind(ctx context.Context, key Key, e *fleet.Engine, candidates []*fleet.Engine) (Binding, error)
	// Counts is what happened since the store was made.
	Counts() Counts
}

// Binding is what a Bind led to.
type Binding struct {
	// Engine is the effective engine: the caller's, or that of a live binding.
	Engine *fleet.Engine
	// Replaced says that the binding took the place of one to an engine
	// outside the candidates.
	Replaced bool
}

// Counts are totals since the store was made, for metrics.
type Counts struct {
	Hits     uint64 // Bound found a candidate
	Misses   uint64 // Bound found none
	Assigned uint64 // Bind made a new binding
	Replaced uint64 // Bind replaced one to an engine outside the candidates
	Kept     uint64 // Bind met a live binding, which won
	Expired  uint64 // bindings removed because idle; Redis does not tell
	Evicted  uint64 // bindings removed because the store was full
	Failed   uint64 // calls that Redis did not answer, or with an error
	Skipped  uint64 // calls not made while Redis was known to be down
}

// Unavailable is the error of a store that cannot answer.
type Unavailable struct {
	// Reject is the configured choice: refuse the request. Otherwise it is
	// served without a binding.
	Reject bool
	Cause  error
}

func (u *Unavailable) Error() string { return "affinity store unavailable: " + u.Cause.Error() }

func (u *Unavailable) Unwrap() error { return u.Cause }

// Kind keeps the keys of different policies apart.
type Kind string

// The kinds.
const (
	Session Kind = "session"
	Sticky  Kind = "sticky"
)

// Key names a binding: what a client sent, within its scope.
type Key struct {
	Kind   Kind
	Stage  fleet.Role
	Model  string
	Bucket string
	// Name is the session or routing key, not empty.
	Name string
}

// longestName is the longest name, in bytes, that is kept as it came. Names
// come from clients, so longer ones are kept as a hash of fixed size.
const longestName = 256

// Append appends the text of the key. Lengths in front of model and bucket make
// it unambiguous, whatever the parts contain.
func (k Key) Append(dst []byte) []byte {
	name := k.Name
	dst = append(dst, k.Kind...)
	if len(name) > longestName {
		dst = append(dst, '#')
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	dst = append(dst, ':')
	dst = append(dst, stageName(k.Stage)...)
	dst = append(dst, ':')
	dst = appendSized(dst, k.Model)
	dst = appendSized(dst, k.Bucket)
	return append(dst, name...)
}

// String is the text of the key.
func (k Key) String() string { return string(k.Append(nil)) }

func appendSized(dst []byte, s string) []byte {
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	return append(append(dst, ':'), s...)
}

// stageName spells a stage as stored keys have always spelt it.
func stageName(r fleet.Role) string {
	switch r {
	case fleet.Plain:
		return "Plain"
	case fleet.Prefill:
		return "Prefill"
	case fleet.Decode:
		return "Decode"
	}
	return "None"
}

// find returns the candidate with an id, nil if there is none.
func find(candidates []*fleet.Engine, id string) *fleet.Engine {
	i, ok := slices.BinarySearchFunc(candidates, id, func(e *fleet.Engine, id string) int { return cmp.Compare(e.ID(), id) })
	if !ok {
		return nil
	}
	return candidates[i]
}
