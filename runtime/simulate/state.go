package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/state/affinity"
	"shunt/runtime/state/prefix"
	"shunt/schema/plan"
)

// DefaultBlockSize is the block size of engines when the world names none.
const DefaultBlockSize = 64

// Prefixes say which engines of a model hold the beginning of the prompt.
type Prefixes struct {
	// Model may be empty in a plan of one model.
	Model string `json:"model"`
	// BlockSize is the number of tokens in a block; 0 is DefaultBlockSize.
	BlockSize int64 `json:"block_size"`
	// Blocks are the leading blocks that an engine holds of every prompt.
	Blocks map[string]int64 `json:"blocks"`
	// Tokens are prefixes that an engine holds, for requests with token ids.
	Tokens map[string][][]uint32 `json:"tokens"`
	// Unavailable, if set, is why the index does not answer, such as "timeout".
	Unavailable string `json:"unavailable"`
}

// Binding is an engine that a key is bound to. Exactly one of the keys is given.
type Binding struct {
	// Model may be empty in a plan of one model, and Bucket in a model of one.
	Model      string `json:"model"`
	Bucket     string `json:"bucket"`
	SessionKey string `json:"session_key"`
	RoutingKey string `json:"routing_key"`
	Engine     string `json:"engine"`
}

// source answers lookups from a described world.
type source struct {
	Prefixes
	urls map[string]string // by engine id
	// tokens says that the model has a tokenizer; without one nothing is asked.
	tokens bool
	// asks says that the engines tokenize, whom nobody asks here.
	asks bool
	// request is the one being decided.
	request *Request
}

var _ prefix.Source = (*source)(nil)

// sources makes a source for each model, which knows no prefix yet.
func sources(body *plan.Body, f *fleet.Fleet) map[string]*source {
	out := make(map[string]*source)
	for i := range body.Models {
		m := &body.Models[i]
		s := &source{urls: make(map[string]string), tokens: m.Tokenizer != nil, asks: m.Tokenizer != nil && m.Tokenizer.Engine != nil}
		s.BlockSize = DefaultBlockSize
		for _, e := range f.Engines(m.ID) {
			s.urls[e.ID()] = e.URL()
		}
		out[m.ID] = s
	}
	return out
}

// describe gives sources the prefixes of a world.
func (s *scene) describe(w *World) error {
	seen := make(map[string]bool)
	for i := range w.Prefixes {
		p := &w.Prefixes[i]
		m, err := modelOf(s.body, p.Model, "prefixes")
		if err != nil {
			return misfit("prefixes", i, err)
		}
		if seen[m.ID] {
			return misfit("prefixes", i, fmt.Errorf("the prefixes of model %q are described twice", m.ID))
		}
		seen[m.ID] = true
		if err := s.sources[m.ID].describe(p); err != nil {
			return misfit("prefixes", i, fmt.Errorf("prefixes of model %q: %w", m.ID, err))
		}
	}
	return nil
}

func (s *source) describe(p *Prefixes) error {
	if s.Prefixes = *p; s.BlockSize == 0 {
		s.BlockSize = DefaultBlockSize
	}
	if s.BlockSize < 0 || s.BlockSize > math.MaxInt32 {
		return fmt.Errorf("block_size %d is not a number of tokens", s.BlockSize)
	}
	for id, n := range p.Blocks {
		if s.urls[id] == "" {
			return fmt.Errorf("no engine %q", id)
		}
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("engine %q: %d is not a number of blocks", id, n)
		}
	}
	for id := range p.Tokens {
		if s.urls[id] == "" {
			return fmt.Errorf("no engine %q", id)
		}
	}
	return nil
}

// Lookup implements prefix.Source.
func (s *source) Lookup(context.Context, prefix.Prompt) (prefix.Outcome, error) {
	switch {
	case !s.tokens || s.request.estimated:
		return prefix.Outcome{Reason: prefix.NoTokens}, nil
	case s.Unavailable != "":
		return prefix.Outcome{Status: prefix.Unavailable, Reason: s.Unavailable}, nil
	}
	out := prefix.Outcome{Status: prefix.Empty, QueryBlocks: s.blocksOf(s.request.InputTokens)}
	for id, url := range s.urls {
		if n := min(s.held(id), out.QueryBlocks); n > 0 {
			out.Status, out.Best = prefix.Matched, max(out.Best, n)
			out.Matches = append(out.Matches, prefix.Match{Address: url, Blocks: n})
		}
	}
	return out, nil
}

// blocksOf counts the blocks of a prompt; a short last one counts.
func (s *source) blocksOf(tokens int64) int {
	n := (tokens-1)/s.BlockSize + 1
	return int(min(n, math.MaxInt32))
}

// held is the depth that an engine holds of the request.
func (s *source) held(engine string) int {
	n := int(s.Blocks[engine])
	for _, held := range s.Tokens[engine] {
		same := 0
		for same < min(len(held), len(s.request.TokenIDs)) && held[same] == s.request.TokenIDs[same] {
			same++
		}
		n = max(n, same/int(s.BlockSize))
	}
	return n
}

// bind gives the store the bindings of a world.
func (s *scene) bind(w *World) error {
	for i := range w.Bindings {
		if err := w.Bindings[i].put(s.body, s.fleet, s.store.Memory); err != nil {
			return misfit("bindings", i, fmt.Errorf("binding %d: %w", i, err))
		}
	}
	if w.BindingsUnavailable != nil {
		s.store.silent = *w.BindingsUnavailable
	}
	return nil
}

func (b *Binding) put(body *plan.Body, f *fleet.Fleet, store affinity.Store) error {
	m, err := modelOf(body, b.Model, "the binding")
	if err != nil {
		return err
	}
	bucket := b.Bucket
	if bucket == "" && len(m.Buckets) == 1 {
		bucket = m.Buckets[0].ID
	}
	if !hasBucket(m, bucket) {
		return fmt.Errorf("model %q has no bucket %q", m.ID, bucket)
	}
	e := engineOf(f, m.ID, b.Engine)
	if e == nil {
		return fmt.Errorf("model %q has no engine %q", m.ID, b.Engine)
	}
	key := affinity.Key{Kind: affinity.Session, Stage: e.Role(), Model: m.ID, Bucket: bucket, Name: b.SessionKey}
	switch {
	case (b.SessionKey == "") == (b.RoutingKey == ""):
		return errors.New("give session_key or routing_key")
	case b.SessionKey == "":
		key.Kind, key.Name = affinity.Sticky, b.RoutingKey
	}
	// With one candidate, a binding to another engine is replaced.
	_, err = store.Bind(context.Background(), key, e, []*fleet.Engine{e})
	return err
}

func hasBucket(m *plan.Model, id string) bool {
	for i := range m.Buckets {
		if m.Buckets[i].ID == id {
			return true
		}
	}
	return false
}

// store is one that does not answer while the world says so.
type store struct {
	*affinity.Memory
	silent, reject bool
}

func newStore(body *plan.Body) *store {
	a := body.State.Affinity
	o := affinity.MemoryOptions{Now: func() time.Time { return epoch }}
	if a != nil {
		o.Idle = time.Duration(a.IdleMS) * time.Millisecond
	}
	return &store{Memory: affinity.NewMemory(o), reject: a != nil && a.Redis != nil && a.Redis.OnFailure == plan.FailReject}
}

var errSilent = errors.New("the world says that the store does not answer")

// Bound implements affinity.Store.
func (s *store) Bound(ctx context.Context, key affinity.Key, candidates []*fleet.Engine) (*fleet.Engine, error) {
	if s.silent {
		return nil, &affinity.Unavailable{Reject: s.reject, Cause: errSilent}
	}
	return s.Memory.Bound(ctx, key, candidates)
}

// Bind implements affinity.Store.
func (s *store) Bind(ctx context.Context, key affinity.Key, e *fleet.Engine, candidates []*fleet.Engine) (affinity.Binding, error) {
	if s.silent {
		return affinity.Binding{}, &affinity.Unavailable{Reject: s.reject, Cause: errSilent}
	}
	return s.Memory.Bind(ctx, key, e, candidates)
}
