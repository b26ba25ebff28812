package golden_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/runtime/routing"
	"shunt/runtime/simulate"
)

// slot is a bucket by definition, without tables. Its engines are e0 and so on.
type slot struct {
	id                 string
	rank               int64
	low, high, context int64 // MaxInt64 is unbounded
	engines            []int // nil is all
	limited            bool
	// ttft and tps are estimates, 0 for none.
	ttft int64
	tps  float64
}

// capacity is the longest input that the slot takes.
func (s *slot) capacity() int64 { return min(s.high, s.context) }

func (s *slot) takes(input, peak int64) bool {
	return input >= s.low && input <= s.high && max(input, peak) <= s.context
}

// config writes the slots as a configuration of three plain engines.
func config(slots []slot) string { return configWith(slots, "") }

// configWith is config with further fields of the model.
func configWith(slots []slot, fields string) string {
	var b strings.Builder
	b.WriteString("version: 1\nmodels:\n- id: m\n" + fields + "  discovery: {static: {engines: [")
	for i := range 3 {
		fmt.Fprintf(&b, "{id: e%d, url: \"http://h%d\", role: plain}, ", i, i)
	}
	b.WriteString("]}}\n  buckets:\n")
	for _, s := range slots {
		fmt.Fprintf(&b, "  - {id: %s, rank: %d, limits: {min: %d", s.id, s.rank, s.low)
		if s.high < math.MaxInt64 {
			fmt.Fprintf(&b, ", max: %d", s.high)
		}
		b.WriteString("}")
		if s.context < math.MaxInt64 {
			fmt.Fprintf(&b, ", max_context_tokens: %d", s.context)
		}
		if s.ttft > 0 {
			fmt.Fprintf(&b, ", ttft_ms: %d", s.ttft)
		}
		if s.tps > 0 {
			fmt.Fprintf(&b, ", tokens_per_second: %v", s.tps)
		}
		b.WriteString(", groups: {plain: {")
		if s.engines != nil {
			b.WriteString("worker_ids: [")
			for _, e := range s.engines {
				fmt.Fprintf(&b, "e%d, ", e)
			}
			b.WriteString("], ")
		}
		b.WriteString("policy: {type: round_robin")
		if s.limited {
			b.WriteString(", admission: {max_inflight_requests: 1}")
		}
		b.WriteString("}}}}\n")
	}
	return b.String()
}

const longest = 24 // of the inputs and bounds that are tried

// randomSlots draws up to six slots. All of one in three cases are unbounded
// often, so that there are catch-all rules.
func randomSlots(random *rand.Rand) []slot {
	open := random.IntN(3) == 0
	bound := func() int64 {
		if open && random.IntN(3) == 0 || random.IntN(6) == 0 {
			return math.MaxInt64
		}
		return random.Int64N(longest)
	}
	slots := make([]slot, 1+random.IntN(6))
	for i := range slots {
		s := &slots[i]
		*s = slot{id: fmt.Sprintf("b%d", i), rank: random.Int64N(3), high: bound(), context: max(bound(), 1), limited: random.IntN(4) == 0}
		s.low = random.Int64N(min(s.capacity(), longest) + 1)
		if random.IntN(2) == 0 {
			s.low = 0
		}
		for e := range 3 {
			if random.IntN(2) == 0 {
				s.engines = append(s.engines, e)
			}
		}
	}
	return slots
}

// TestRandomBuckets compiles random buckets and holds what a plan does with every
// length and peak, and what the analysis says, against the definitions.
func TestRandomBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		slots := randomSlots(random)
		text := config(slots)
		r := compiler.Compile(t.Context(), compiler.Options{}, []source.Input{{Name: "c.yaml", Reader: strings.NewReader(text)}})
		if r.Plan == nil {
			t.Fatalf("no plan:\n%s\n%s", r.Findings, text)
		}
		slices.SortFunc(slots, func(a, b slot) int {
			return cmp.Or(cmp.Compare(a.capacity(), b.capacity()), cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id))
		})
		sim, err := simulate.New(&r.Plan.Body, simulate.World{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for input := range int64(longest + 2) {
			for peak := input; peak < longest+2; peak++ {
				d, err := sim.Decide(t.Context(), simulate.Request{Model: "m", InputTokens: input, ExpectedPeakTokens: &peak})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := decided(d), decidedBy(slots, input, peak); got != want {
					t.Fatalf("input %d, peak %d: got %s, want %s\n%s", input, peak, got, want, text)
				}
			}
		}
		sim.Close()
		if got, want := warned(r.Findings), warnedBy(slots); got != want {
			t.Fatalf("got warnings\n%s\nwant\n%s\n%s\n%s", got, want, text, r.Findings)
		}
	}
}

// decided is the order of the buckets, those out of the question in parentheses,
// and the one that was picked.
func decided(d *routing.Decision) string {
	var b strings.Builder
	for _, t := range d.Buckets {
		switch t.Fate {
		case routing.BelowMin, routing.AboveMax, routing.AboveContext:
			fmt.Fprintf(&b, "(%s) ", t.ID)
		default:
			b.WriteString(t.ID + " ")
		}
	}
	return b.String() + "-> " + d.Bucket
}

func decidedBy(slots []slot, input, peak int64) string {
	var b strings.Builder
	picked := ""
	for i := range slots {
		s := &slots[i]
		if !s.takes(input, peak) {
			fmt.Fprintf(&b, "(%s) ", s.id)
			continue
		}
		b.WriteString(s.id + " ")
		if picked == "" {
			picked = s.id
		}
	}
	return b.String() + "-> " + picked
}

// warned lists the coverage warnings: lengths that are named as uncovered or as
// covered for short outputs only, and buckets that are named as unused.
func warned(l diag.List) string {
	var out []string
	for _, f := range l {
		var from, to int64
		switch f.Code {
		case diag.LengthGap, diag.PeakGap:
			_, rest, _ := strings.Cut(f.Message, "inputs of ")
			if n, _ := fmt.Sscanf(rest, "%d to %d", &from, &to); n < 2 {
				to = from
			}
			for ; from <= to && from <= longest; from++ {
				out = append(out, fmt.Sprintf("%s %02d", f.Code, from))
			}
		case diag.ShadowedBucket:
			out = append(out, string(f.Code)+" "+f.Message[len(`bucket "`):len(`bucket "`)+2])
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func warnedBy(slots []slot) string {
	var out []string
	top, widest := int64(-1), int64(0)
	for i := range slots {
		top, widest = max(top, slots[i].capacity()), max(widest, slots[i].context)
	}
	for input := range min(top, longest) + 1 {
		here := int64(-1)
		for i := range slots {
			if slots[i].takes(input, input) {
				here = max(here, slots[i].context)
			}
		}
		if here < 0 {
			out = append(out, fmt.Sprintf("%s %02d", diag.LengthGap, input))
		} else if here < widest {
			out = append(out, fmt.Sprintf("%s %02d", diag.PeakGap, input))
		}
	}
	for i := range slots {
		if slices.ContainsFunc(slots[:i], func(s slot) bool { return s.shadows(&slots[i]) }) {
			out = append(out, string(diag.ShadowedBucket)+" "+slots[i].id)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// shadows tries every length and peak.
func (s *slot) shadows(later *slot) bool {
	if s.limited {
		return false
	}
	all := []int{0, 1, 2}
	mine, its := s.engines, later.engines
	if mine == nil {
		mine = all
	}
	if its == nil {
		its = all
	}
	for _, e := range its {
		if !slices.Contains(mine, e) {
			return false
		}
	}
	for _, far := range []int64{0, math.MaxInt64 - longest - 2} {
		for input := range int64(longest + 2) {
			for peak := input; peak < longest+2; peak++ {
				for _, in := range []int64{input, far + input} {
					if later.takes(in, far+peak) && !s.takes(in, far+peak) {
						return false
					}
				}
			}
		}
	}
	return true
}
