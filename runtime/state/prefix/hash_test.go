package prefix_test

import (
	"slices"
	"testing"

	"shunt/runtime/state/prefix"
)

func upTo(n int) []uint32 {
	t := make([]uint32, n)
	for i := range t {
		t[i] = uint32(i + 1)
	}
	return t
}

func TestHashes(t *testing.T) {
	f := func(h prefix.Hashing, p prefix.Prompt, want ...int64) {
		t.Helper()
		if err := h.Check(); err != nil {
			t.Error(err)
		}
		got := h.Append(nil, p)
		if !slices.Equal(got, want) || len(got) != h.Blocks(len(p.Tokens)) {
			t.Errorf("%+v of %v: %v, want %v", h, p, got, want)
		}
	}
	four := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 4}
	pairs := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 4, Bigram: true}
	f(four, prefix.Prompt{Tokens: upTo(8)}, -3488128144981237669, 5674439469042975057)
	f(four, prefix.Prompt{Tokens: upTo(6)}, -3488128144981237669, -3695097030597344193)
	f(four, prefix.Prompt{})
	f(four, prefix.Prompt{Tokens: []uint32{10, 20}}, 978178666101069530)
	f(four, prefix.Prompt{Tokens: upTo(8), Salt: "tenant-a"}, 3718046898735569995, 3308615664605479373)
	f(four, prefix.Prompt{Tokens: upTo(8), LoRA: "adapter-a"}, 3513649324578576296, -3310312613865751816)
	f(four, prefix.Prompt{Tokens: upTo(8), Salt: "tenant-a", LoRA: "adapter-a"}, 9127408940098469971, 6252933254305347337)
	f(pairs, prefix.Prompt{Tokens: upTo(9)}, -638950109823820341, -4369944537645631836)
	f(pairs, prefix.Prompt{Tokens: []uint32{10, 20, 30, 40}}, -2735951481331064195)
	f(prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 2, Bigram: true},
		prefix.Prompt{Tokens: []uint32{10, 20, 30, 40, 50}}, -8847804484166691499, 4989791362144317498)
	f(pairs, prefix.Prompt{Tokens: upTo(1)})
	f(prefix.Hashing{Scheme: prefix.VLLM, BlockSize: 4, Seed: "0"},
		prefix.Prompt{Tokens: upTo(9)}, 2164874634404590027, -1176264011553262890)
	f(prefix.Hashing{Scheme: prefix.VLLM, BlockSize: 4},
		prefix.Prompt{Tokens: upTo(8)}, -8885242862429187823, -3153830497298837583)
	f(prefix.Hashing{Scheme: prefix.VLLM, BlockSize: 4}, prefix.Prompt{Tokens: upTo(3)})
}

func TestHashingChecks(t *testing.T) {
	f := func(h prefix.Hashing, good bool) {
		t.Helper()
		if err := h.Check(); (err == nil) != good {
			t.Errorf("%+v: %v", h, err)
		}
	}
	f(prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 1}, true)
	f(prefix.Hashing{BlockSize: 1}, false)
	f(prefix.Hashing{Scheme: prefix.SGLang}, false)
	f(prefix.Hashing{Scheme: prefix.VLLM, BlockSize: 1, Bigram: true}, false)
	if h := (prefix.Hashing{Scheme: prefix.VLLM, BlockSize: 1}); h.Supports(prefix.Prompt{Salt: "s"}) || !h.Supports(prefix.Prompt{}) {
		t.Error("vLLM supports exactly the plain chains")
	}
}

func TestBigram(t *testing.T) {
	f := func(name string, bigram, unsure bool) {
		t.Helper()
		if b, u := prefix.Bigram(name); b != bigram || u != unsure {
			t.Errorf("%q: %v %v", name, b, u)
		}
	}
	f("", false, false)
	f("eagle", true, false)
	f("EAGLE3", true, false)
	f("frozen_kv_mtp", true, false)
	f("NEXTN", false, false)
	f("EAGLE_X", false, true)
	f("deepseek-mtp", false, true)
}

// TestChainResumes takes a chain in pieces and as a whole.
func TestChainResumes(t *testing.T) {
	h := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 3}
	p := prefix.Prompt{Tokens: upTo(100), Salt: "s"}
	c := h.Chain(p)
	var got []int64
	for n := 1; len(got) < c.Len(); n++ {
		got = c.Append(got, n)
	}
	if want := h.Append(nil, p); !slices.Equal(got, want) || len(c.Append(nil, 1)) != 0 {
		t.Errorf("in pieces %v, whole %v", got, want)
	}
}

func BenchmarkHash128k(b *testing.B) {
	f := func(name string, h prefix.Hashing) {
		b.Run(name, func(b *testing.B) {
			p := prefix.Prompt{Tokens: upTo(128 << 10)}
			dst := make([]int64, 0, h.Blocks(len(p.Tokens)))
			for b.Loop() {
				dst = h.Append(dst[:0], p)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(dst)), "ns/block")
		})
	}
	f("sglang-64", prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 64})
	f("sglang-16", prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 16})
	f("vllm-64", prefix.Hashing{Scheme: prefix.VLLM, BlockSize: 64})
}
