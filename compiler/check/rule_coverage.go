package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleLengthGaps warns about input lengths that no bucket takes, below the
// longest one that some bucket takes.
func ruleLengthGaps(r *rules) {
	for _, m := range r.sounds() {
		table, ok := plan.Breakpoints(m.ordered(), plan.MaxRuns)
		if !ok || m.Buckets == nil {
			continue
		}
		gaps := several{}
		for i := range table {
			if len(table[i].Runs) > 0 || i+1 == len(table) {
				continue
			}
			from, next := table[i].From, table[i+1].From
			if !gaps.next() {
				continue
			}
			if b := m.cutOff(from); b >= 0 {
				c := &m.buckets()[b]
				f := r.add(diag.LengthGap, m.bucketAt(b)+"/limits/max", fmt.Sprintf(
					"max_context_tokens %d is below limits.max %d, so no bucket takes inputs of %s tokens", *c.MaxContextTokens, *c.Limits.Max, span(from, next-1)))
				f.Hint = "raise max_context_tokens or lower limits.max"
				r.cut[m.bucketAt(b)] = true
				r.also(f, m.bucketAt(b)+"/max_context_tokens", "max_context_tokens is here")
			} else {
				f := r.add(diag.LengthGap, m.startingAt(next), fmt.Sprintf("no bucket takes inputs of %s tokens", span(from, next-1)))
				f.Hint = "lower limits.min of this bucket or raise the bound of another, if the gap is not meant"
				if from == next-1 && from > 0 {
					f.Hint = fmt.Sprintf("both bounds of a range are inclusive: the range after %d begins at %d", from-1, from)
				}
			}
		}
		gaps.finish(r, "gap")
	}
}

// cutOff is the index of a bucket whose limits would go on at an input length
// that is just above its context, and -1 without one.
func (m *modelAt) cutOff(from int64) int {
	return slices.IndexFunc(m.buckets(), func(b config.Bucket) bool {
		return b.MaxContextTokens != nil && *b.MaxContextTokens == from-1 && b.Limits.Max != nil && *b.Limits.Max >= from
	})
}

// startingAt is the path of limits.min of a bucket that starts at an input
// length.
func (m *modelAt) startingAt(from int64) string {
	for i := range m.buckets() {
		if low := m.buckets()[i].Limits.Min; low != nil && *low == from {
			return m.bucketAt(i) + "/limits/min"
		}
	}
	return m.at + "/buckets"
}

// rulePeakGaps warns about inputs that are covered, but not together with an
// output that other inputs may have.
func rulePeakGaps(r *rules) {
	for _, m := range r.sounds() {
		ordered := m.ordered()
		table, ok := plan.Breakpoints(ordered, plan.MaxRuns)
		if !ok || len(ordered) == 0 {
			continue
		}
		contexts := make([]int64, len(ordered))
		for i := range ordered {
			contexts[i] = math.MaxInt64
			if c := ordered[i].MaxContextTokens; c != nil {
				contexts[i] = *c
			}
		}
		widest := newRangeMax(contexts)
		all := widest.of([]plan.Run{{0, len(ordered) - 1}})
		gaps := several{}
		for i := 0; i < len(table); {
			best := widest.of(table[i].Runs)
			from := table[i].From
			for i++; i < len(table) && widest.of(table[i].Runs) == best; i++ {
			}
			if best < 0 || contexts[best] == contexts[all] || i == len(table) || !gaps.next() {
				continue
			}
			r.peakGap(m, ordered[best], ordered[all], from, table[i].From-1)
		}
		gaps.finish(r, "range")
	}
}

// peakGap reports one range of inputs whose widest bucket is narrower than the
// widest of the model.
func (r *rules) peakGap(m *modelAt, best, widest plan.Bucket, from, to int64) {
	f := r.add(diag.PeakGap, m.named(best.ID)+"/max_context_tokens", fmt.Sprintf(
		"no bucket takes inputs of %s tokens with more than %d tokens of input and output together", span(from, to), *best.MaxContextTokens))
	f.Hint = fmt.Sprintf("bucket %q takes more; lower its limits.min if it should serve them", widest.ID)
	r.also(f, m.named(widest.ID), fmt.Sprintf("bucket %q is here", widest.ID))
}

// named is the path of the bucket with an id.
func (m *modelAt) named(id string) string {
	for i := range m.buckets() {
		if m.buckets()[i].ID == id {
			return m.bucketAt(i)
		}
	}
	return m.at + "/buckets"
}

// span writes an inclusive range.
func span(from, to int64) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

// several counts findings that are alike and keeps the first ones.
type several struct{ n int }

// next counts one more and reports whether it is to be reported.
func (s *several) next() bool {
	s.n++
	return s.n <= maxPerModel
}

// finish reports how many were left out, behind the last one, as a finding of
// the model: whoever accepts those that are listed has not accepted the others,
// and a number that changes is news.
func (s *several) finish(r *rules, noun string) {
	more := s.n - maxPerModel
	if more <= 0 {
		return
	}
	last := &r.list[len(r.list)-1]
	at := ""
	if tokens := strings.SplitN(last.Path, "/", 4); len(tokens) > 2 && tokens[1] == "models" {
		at = "/models/" + tokens[2]
	}
	entry, _ := diag.Lookup(last.Code)
	r.add(last.Code, at, fmt.Sprintf("%s: %d more %s than the %d that are listed", entry.Title, more, noun+strings.Repeat("s", min(more-1, 1)), maxPerModel)).
		Hint = "correct or accept those that are listed; correcting them brings the next ones up"
}
