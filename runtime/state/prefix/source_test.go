package prefix_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDigestsChangeNothing hashes prompts that share beginnings, with and
// without the memory, in pieces of random size.
func TestDigestsChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := prefix.NewDigests(64)
	base := make([]uint32, 4000)
	for i := range base {
		base[i] = r.Uint32N(150000)
	}
	for range 300 {
		h := prefix.Hashing{Scheme: prefix.Scheme(1 + r.IntN(2)), BlockSize: 1 + r.IntN(20)}
		h.Bigram = h.Scheme == prefix.SGLang && r.IntN(2) == 0
		p := prefix.Prompt{Tokens: slices.Clone(base[:r.IntN(len(base))])}
		if n := len(p.Tokens); n > 0 && r.IntN(2) == 0 {
			p.Tokens[r.IntN(n)]++
		}
		if h.Scheme == prefix.SGLang && r.IntN(3) == 0 {
			p.Salt, p.LoRA = "s", "a"
		}
		want := h.Append(nil, p)
		c := h.Chain(p)
		c.Reuse(d)
		var got []int64
		for len(got) < c.Len() {
			got = c.Append(got, []int{1, 16, 32, 128, 5000}[r.IntN(5)])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v of %d tokens differs with digests", h, len(p.Tokens))
		}
	}
}

func TestNamespace(t *testing.T) {
	var n prefix.Namespace
	four := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 4}
	eight := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 8}
	f := func(address string, h prefix.Hashing, agreed, changed bool) {
		t.Helper()
		if a, c := n.Propose(address, h); a != agreed || c != changed {
			t.Errorf("%s proposes %d: %v %v, want %v %v", address, h.BlockSize, a, c, agreed, changed)
		}
	}
	if _, known := n.Hashing(); known {
		t.Error("known before the first engine")
	}
	f("a", prefix.Hashing{}, false, false)
	f("a", four, true, false)
	f("a", eight, true, true) // alone, it may change
	f("b", eight, true, false)
	f("a", four, false, false) // not against another
	n.Withdraw("b")
	f("a", four, true, true)
	n.Withdraw("a")
	if h, known := n.Hashing(); !known || h != four {
		t.Error("the decision ended with its last holder")
	}
	f("c", eight, true, true)
}

func TestLocal(t *testing.T) {
	l := &prefix.Local{Index: prefix.NewIndex(0), Namespace: &prefix.Namespace{}}
	f := func(p prefix.Prompt, status prefix.Status, reason string, blocks, best int) {
		t.Helper()
		out, err := l.Lookup(t.Context(), p)
		if err != nil || out.Status != status || out.Reason != reason || out.QueryBlocks != blocks || out.Best != best {
			t.Errorf("%+v, %v", out, err)
		}
	}
	f(prefix.Prompt{}, prefix.NoQuery, prefix.NoTokens, 0, 0)
	f(prefix.Prompt{Tokens: upTo(8)}, prefix.NoQuery, prefix.NoBlockSize, 0, 0)
	h := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 4}
	l.Namespace.Propose("a", h)
	f(prefix.Prompt{Tokens: upTo(9)}, prefix.Empty, "", 3, 0)
	store := func(rank, blocks int) {
		e := wire.Event{Kind: wire.Stored, Hashes: h.Append(nil, prefix.Prompt{Tokens: upTo(4 * blocks)})}
		l.Index.Attach("http://a", rank).Apply(&wire.Batch{Events: []wire.Event{e}})
	}
	store(0, 1)
	store(1, 2)
	f(prefix.Prompt{Tokens: upTo(9)}, prefix.Matched, "", 3, 2)
	f(prefix.Prompt{Tokens: upTo(9), Salt: "other"}, prefix.Empty, "", 3, 0)
	out, _ := l.Lookup(t.Context(), prefix.Prompt{Tokens: upTo(9)})
	if len(out.Matches) != 1 || out.Matches[0] != (prefix.Match{Address: "http://a", Blocks: 2}) {
		t.Errorf("matches %v, want the better rank of one engine", out.Matches)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Lookup(ctx, prefix.Prompt{Tokens: upTo(9)}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled lookup: %v", err)
	}
}

// script is a source that answers what it is told and counts.
type script struct {
	asked  atomic.Int32
	answer func(n int32) (prefix.Outcome, error)
}

func (s *script) Lookup(context.Context, prefix.Prompt) (prefix.Outcome, error) {
	return s.answer(s.asked.Add(1))
}

func TestMemo(t *testing.T) {
	var m prefix.Memo
	down := &script{answer: func(int32) (prefix.Outcome, error) {
		return prefix.Outcome{Status: prefix.Unavailable, Reason: prefix.Timeout}, nil
	}}
	bad := &script{answer: func(n int32) (prefix.Outcome, error) {
		if n == 1 {
			return prefix.Outcome{}, &prefix.InvalidError{Code: "InvalidArgument", Err: errors.New("no")}
		}
		return prefix.Outcome{Status: prefix.Empty}, nil
	}}
	for range 3 {
		if out, err := m.Lookup(t.Context(), down, prefix.Prompt{}); err != nil || out.Reason != prefix.Timeout {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if _, err := m.Lookup(t.Context(), bad, prefix.Prompt{}); err == nil {
		t.Error("no error")
	}
	for range 2 {
		if _, err := m.Lookup(t.Context(), bad, prefix.Prompt{}); err != nil {
			t.Error(err)
		}
	}
	if down.asked.Load() != 1 || bad.asked.Load() != 2 {
		t.Errorf("asked %d and %d times, want 1 and 2", down.asked.Load(), bad.asked.Load())
	}
}

// TestMemoShares holds the first query until all picks wait for it.
func TestMemoShares(t *testing.T) {
	var m prefix.Memo
	release := make(chan struct{})
	slow := &script{answer: func(int32) (prefix.Outcome, error) {
		<-release
		return prefix.Outcome{Status: prefix.Matched, Best: 3}, nil
	}}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if out, err := m.Lookup(t.Context(), slow, prefix.Prompt{}); err != nil || out.Best != 3 {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for slow.asked.Load() == 0 {
		// Until one of them has asked.
	}
	if _, err := m.Lookup(gone, slow, prefix.Prompt{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled wait: %v", err)
	}
	close(release)
	wg.Wait()
	if n := slow.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestConcurrentLookups runs readers, writers and a clear against each other;
// the race detector is the judge, and depths stay within the chain.
func TestConcurrentLookups(t *testing.T) {
	x := prefix.NewIndex(3000)
	h := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 2}
	hashes := h.Append(nil, prefix.Prompt{Tokens: upTo(400)})
	var wg sync.WaitGroup
	var stop atomic.Bool
	for i := range 3 {
		wg.Go(func() {
			o := x.Attach("http://a", i)
			for n := range 200 {
				o.Apply(&wire.Batch{Events: []wire.Event{{Kind: wire.Stored, Hashes: hashes[:50+n%150]}}})
				o.Apply(chainBatch(&wire.Batch{}, i, n*40, 40))
				switch n % 3 {
				case 0:
					o.Clear()
				case 1:
					x.Detach(o)
					o = x.Attach("http://a", i)
				}
			}
			x.Detach(o)
			stop.Store(true)
		})
	}
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				m, best := x.MatchChain(nil, h.Chain(prefix.Prompt{Tokens: upTo(400)}))
				if len(m) > 1 || best > 200 {
					t.Errorf("matches %v", m)
				}
				x.Stats()
			}
		})
	}
	wg.Wait()
	if s := x.Stats(); s.Blocks != 0 || s.Carried != 0 || s.Owners != 0 {
		t.Errorf("after everybody left: %+v", s)
	}
}
