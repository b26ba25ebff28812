package golden_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/golden/legacy"
)

// FuzzEqualsLegacy compares command lines with bucket files that nobody thought
// of, each on a small part of its grid.
func FuzzEqualsLegacy(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(seed)
	}
	f.Add(uint64(201)) // a decode engine that is down moves the cursor of a prefill bucket
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := &invocationMaker{Rand: rand.New(rand.NewPCG(seed, 0))}
		s := newSubject(t, g.make(t))
		s.thin = g.Rand
		s.grid(t)
		for _, p := range s.problems[:min(len(s.problems), maxProblems)] {
			t.Errorf("%s\n%s\n%s\n%s", strings.Join(s.argv(), " "), s.buckets, s.decisions, p)
		}
	})
}

// invocationMaker makes valid invocations. Its lengths are few, so that bounds
// meet often.
type invocationMaker struct {
	*rand.Rand
}

func (g *invocationMaker) maybe(n uint64) *uint64 {
	if g.IntN(2) == 0 {
		return nil
	}
	return &n
}

func (g *invocationMaker) length() uint64 { return uint64(50 * (1 + g.IntN(20))) }

func (g *invocationMaker) word(words ...string) string { return words[g.IntN(len(words))] }

func (g *invocationMaker) make(t *testing.T) invocation {
	t.Helper()
	pd := g.IntN(2) == 0
	policy := g.word("round_robin", "random", "power_of_two", "load_based", "session_aware", "sticky", "cache_aware")
	inv := invocation{args: "--policy " + policy}
	switch policy {
	case "sticky":
		inv.args += " --sticky-fallback-policy " + g.word("round_robin", "random", "power_of_two", "load_based")
	case "session_aware":
		inv.args += g.word("", " --affinity-mode strict")
	case "cache_aware":
		inv.args += g.word("", " --worker-queue-limit 4") + fmt.Sprintf(" --cache-affinity-min-matched-tokens %d --cache-candidate-min-workers 1 --cache-candidate-ratio 0.4", g.length())
	}
	if policy != "sticky" && g.IntN(2) == 0 {
		inv.args += filtered
	}
	var file bucketDocument
	file.TTFT, file.TPS = legacy.Mode(g.word("disabled", "slo_first", "best_effort")), legacy.Mode(g.word("disabled", "slo_first", "best_effort"))
	n := 1 + g.IntN(3)
	prefill, decode := g.specs(legacy.Prefill, n, "a"), []bucketText(nil)
	if pd {
		prefill, decode = g.specs(legacy.Prefill, n, "p"), g.specs(legacy.Decode, n, "d")
	}
	answers := g.answers(prefill, decode)
	file.Buckets = slices.Concat(prefill, decode)
	for _, b := range file.Buckets {
		for _, e := range b.Members {
			inv.engines += strings.TrimPrefix(e, "http://") + " "
		}
	}
	inv.engines = strings.TrimSpace(inv.engines)
	inv.buckets, inv.decisions = text(t, file), text(t, answers)
	return inv
}

// specs are some specs of a stage, with their ranks in any order.
func (g *invocationMaker) specs(stage legacy.Stage, n int, prefix string) (out []bucketText) {
	ranks := g.Perm(n)
	for i := range n {
		b := bucketText{ID: fmt.Sprintf("%s%d", prefix, i), Stage: stage, Rank: uint32(ranks[i]), MaxContext: g.maybe(g.length() + 400)}
		for e := range 1 + g.IntN(2) {
			b.Members = append(b.Members, fmt.Sprintf("http://%s%d%d", prefix, i, e))
		}
		if stage == legacy.Decode {
			b.MaxSequence = g.maybe(g.length() + 400)
			if g.IntN(2) == 0 {
				b.TPS = new(float64(10 * (1 + g.IntN(4))))
			}
		} else {
			b.MaxExtend, b.MaxPending, b.TTFT = g.maybe(g.length()), g.maybe(g.length()+1000), g.maybe(g.length())
			if least := g.length() - 49; b.MaxExtend == nil && b.MaxContext == nil || least <= min(*or(b.MaxExtend, b.MaxContext), *or(b.MaxContext, b.MaxExtend)) {
				b.MinExtend = g.maybe(least)
			}
		}
		out = append(out, b)
	}
	return out
}

func or(a, b *uint64) *uint64 {
	if a == nil {
		return b
	}
	return a
}

// answers pair the specs in any way, and say what the specs leave open. A bound
// that no request of a pair would fit is taken back.
func (g *invocationMaker) answers(prefill, decode []bucketText) (out answerDocument) {
	out.Version = 1
	if decode == nil {
		for i, p := range prefill {
			as := "plain"
			if i > 0 && g.IntN(4) == 0 {
				as = "drop"
			}
			out.Lone = append(out.Lone, answerLone{Spec: p.ID, As: as})
		}
		return out
	}
	for i, at := range g.Perm(len(decode)) {
		p, d := prefill[i], decode[at]
		pair := answerPair{Prefill: p.ID, Decode: d.ID, ID: fmt.Sprintf("b%d", g.IntN(1000)*10+i)}
		if p.Rank != d.Rank {
			pair.Rank = new([]uint32{p.Rank, d.Rank}[g.IntN(2)])
		}
		for _, bound := range []*uint64{p.MaxContext, d.MaxContext, d.MaxSequence} {
			if bound != nil && (pair.Context == nil || *bound < *pair.Context) {
				pair.Context = bound
			}
		}
		if p.MinExtend != nil && pair.Context != nil && *p.MinExtend > *pair.Context {
			prefill[i].MinExtend = nil
		}
		out.Pairs = append(out.Pairs, pair)
	}
	return out
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
