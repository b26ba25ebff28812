package prefix_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/wire"
)

// chainHash is a well-spread hash for block k of chain c.
func chainHash(c, k int) int64 {
	x := uint64(c)<<20 + uint64(k) + 1
	x *= 0x9E3779B97F4A7C15
	x ^= x >> 31
	return int64(x * 0xBF58476D1CE4E5B9)
}

// chainBatch is one stored event with blocks from to from+n of chain c.
func chainBatch(b *wire.Batch, c, from, n int) *wire.Batch {
	e := wire.Event{Kind: wire.Stored, Medium: wire.Device}
	if len(b.Events) == 1 {
		e.Hashes = b.Events[0].Hashes[:0]
	}
	if from > 0 {
		e.HasParent, e.Parent = true, chainHash(c, from-1)
	}
	for k := range n {
		e.Hashes = append(e.Hashes, chainHash(c, from+k))
	}
	b.Events = append(b.Events[:0], e)
	return b
}

// BenchmarkApply keeps an index of 10 million blocks full: 64 owners store
// chains of 160 blocks in events of 16, and every event evicts as many.
func BenchmarkApply(b *testing.B) {
	f := func(name string, blocks, perEvent int, removals bool) {
		b.Run(name, func(b *testing.B) {
			x := prefix.NewIndex(blocks)
			owners := attach(x, 64)
			var batch wire.Batch
			chains := 0
			fill := func() {
				if perEvent == 0 {
					owners[chains%64].Apply(singles(&batch, chains))
				} else {
					for k := 0; k < 160; k += perEvent {
						owners[chains%64].Apply(chainBatch(&batch, chains, k, perEvent))
					}
				}
				if removals && chains >= blocks/160 {
					old := chains - blocks/160
					e := chainBatch(&batch, old, 0, 160)
					e.Events[0].Kind = wire.Removed
					owners[old%64].Apply(e)
				}
				chains++
			}
			for chains < blocks/160 {
				fill()
			}
			n := 0
			for b.Loop() {
				fill()
				n += 160
				if removals {
					n += 160
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
			b.ReportMetric(2, "budget-Mblocks/s")
			b.ReportMetric(0, "ns/op")
		})
	}
	f("evict-10M-16", 10_000_000, 16, false)
	f("evict-10M-1", 10_000_000, 1, false)
	f("evict-10M-batch-of-1", 10_000_000, 0, false)
	f("remove-10M-16", 10_000_000, 16, true)
	f("remove-100k-16", 100_000, 16, true)
}

// singles is a batch of 160 events of one block each.
func singles(b *wire.Batch, c int) *wire.Batch {
	if len(b.Events) != 160 {
		b.Events = make([]wire.Event, 160)
	}
	for k := range b.Events {
		e := &b.Events[k]
		*e = wire.Event{Kind: wire.Stored, Hashes: append(e.Hashes[:0], chainHash(c, k)), HasParent: k > 0}
		if k > 0 {
			e.Parent = chainHash(c, k-1)
		}
	}
	return b
}

func attach(x *prefix.Index, n int) []*prefix.Owner {
	owners := make([]*prefix.Owner, n)
	for i := range owners {
		owners[i] = x.Attach(fmt.Sprintf("http://10.0.0.%d:30000", i), 0)
	}
	return owners
}

// BenchmarkMemory measures what a block and owner cost at 10 million blocks:
// each held by one owner, and each by a set of three of 64 that differs from its
// neighbours'.
func BenchmarkMemory(b *testing.B) {
	f := func(name string, blocks, carriers int) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				x := prefix.NewIndex(blocks)
				owners := attach(x, 64)
				var batch wire.Batch
				for c := range blocks / 160 {
					for k := range carriers {
						owners[(c*7+k*(1+c%19))%64].Apply(chainBatch(&batch, c, 0, 160))
					}
				}
				s := x.Stats()
				b.ReportMetric(float64(heap()-before)/float64(s.Carried), "B/block-owner")
				b.ReportMetric(64, "budget-B")
				b.ReportMetric(float64(s.Sets), "sets")
				runtime.KeepAlive(x)
			}
		})
	}
	f("one-10M", 10_000_000, 1)
	f("three-10M", 10_000_000, 3)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkLookup asks for prompts of 64-token blocks in an index of 10 million
// blocks, in which half of the engines hold all of the prompt, while nothing
// and while a writer runs.
func BenchmarkLookup(b *testing.B) {
	const blocks = 10_000_000
	x := prefix.NewIndex(blocks)
	owners := attach(x, 64)
	hashing := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 64}
	prompt := prefix.Prompt{Tokens: upTo(128 << 10)}
	var batch wire.Batch
	for c := range blocks/160 - 13 {
		owners[c%64].Apply(chainBatch(&batch, c, 0, 160))
	}
	hashes := hashing.Append(nil, prompt)
	for i := 0; i < 64; i += 2 {
		owners[i].Apply(&wire.Batch{Events: []wire.Event{{Kind: wire.Stored, Hashes: hashes}}})
	}
	for _, writing := range []bool{false, true} {
		for _, tokens := range []int{1 << 10, 10 << 10, 128 << 10} {
			p := prefix.Prompt{Tokens: prompt.Tokens[:tokens]}
			h := hashes[:tokens/64]
			b.Run(fmt.Sprintf("hashed-%dk-writer-%v", tokens>>10, writing), func(b *testing.B) {
				defer write(x, owners[1], writing)()
				var dst []prefix.Match
				budgeted(b, tokens)
				for b.Loop() {
					dst, _ = x.Match(dst[:0], h)
				}
			})
			b.Run(fmt.Sprintf("tokens-%dk-writer-%v", tokens>>10, writing), func(b *testing.B) {
				defer write(x, owners[1], writing)()
				var dst []prefix.Match
				budgeted(b, tokens)
				for b.Loop() {
					dst, _ = x.MatchChain(dst[:0], hashing.Chain(p))
				}
			})
			b.Run(fmt.Sprintf("known-%dk-writer-%v", tokens>>10, writing), func(b *testing.B) {
				defer write(x, owners[1], writing)()
				digests := prefix.NewDigests(0)
				var dst []prefix.Match
				budgeted(b, tokens)
				for b.Loop() {
					c := hashing.Chain(p)
					c.Reuse(digests)
					dst, _ = x.MatchChain(dst[:0], c)
				}
			})
		}
	}
}

// budgeted prints the budget of the longest prompt beside its time.
func budgeted(b *testing.B, tokens int) {
	if tokens == 128<<10 {
		b.Cleanup(func() { b.ReportMetric(150_000, "budget-ns") })
	}
}

// write stores and removes without pause until the returned function is called.
func write(x *prefix.Index, o *prefix.Owner, on bool) func() {
	var stop atomic.Bool
	var wg sync.WaitGroup
	if on {
		wg.Go(func() {
			var batch wire.Batch
			for c := 1 << 20; !stop.Load(); c++ {
				o.Apply(chainBatch(&batch, c, 0, 160))
				batch.Events[0].Kind = wire.Removed
				o.Apply(&batch)
			}
		})
	}
	return func() { stop.Store(true); wg.Wait() }
}
