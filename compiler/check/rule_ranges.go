package check

import (
	"fmt"
	"math"

	"shunt/compiler/config"
	"shunt/compiler/diag"
)

// ruleRanges warns about a bucket whose bounds leave part of its range, or all
// of it, without a request.
func ruleRanges(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		for b := range m.buckets() {
			if at := m.bucketAt(b); r.intact(at+"/limits") && r.intact(at+"/max_context_tokens") {
				r.rangeOf(at, &m.buckets()[b])
			}
		}
	}
}

func (r *rules) rangeOf(at string, b *config.Bucket) {
	low, high, context := b.Limits.Min, b.Limits.Max, b.MaxContextTokens
	switch {
	case high != nil && *high == 0:
		r.add(diag.ZeroRange, at+"/limits/max", "limits.max of 0 takes no input but an empty one").
			Hint = "remove limits.max if the range is to be unbounded"
	case low != nil && (high != nil && *low > *high || context != nil && *low > *context):
		// Reported as an error.
	case low != nil && context != nil && *low == *context:
		f := r.add(diag.NoOutputRoom, at+"/limits/min", fmt.Sprintf("limits.min is max_context_tokens, %d, so no input of the bucket leaves room for an output", *low))
		f.Hint = "raise max_context_tokens or lower limits.min"
		r.also(f, at+"/max_context_tokens", "max_context_tokens is here")
	case high != nil && context != nil && *high > *context && !r.cut[at]:
		f := r.add(diag.CutRange, at+"/limits/max", fmt.Sprintf("limits.max %d is above max_context_tokens %d, so inputs of %s tokens never fit", *high, *context, span(*context+1, *high)))
		f.Hint = "raise max_context_tokens or lower limits.max"
		r.also(f, at+"/max_context_tokens", "max_context_tokens is here")
	}
}

// ruleOneTokenOverlap warns about a bucket that begins at the length at which
// another one ends.
func ruleOneTokenOverlap(r *rules) {
	for _, m := range r.sounds() {
		endingAt := make(map[int64]int)
		for i := range m.buckets() {
			l := &m.buckets()[i].Limits
			if l.Max != nil && config.Or(l.Min, 0) < *l.Max {
				endingAt[*l.Max] = i
			}
		}
		overlaps := several{}
		for i := range m.buckets() {
			l := &m.buckets()[i].Limits
			if l.Min == nil || config.Or(l.Max, math.MaxInt64) == *l.Min {
				continue
			}
			if j, ok := endingAt[*l.Min]; ok && overlaps.next() {
				f := r.add(diag.OneTokenOverlap, m.bucketAt(i)+"/limits/min", fmt.Sprintf("bucket %q ends at %d tokens and bucket %q begins there, so both take this one length", m.buckets()[j].ID, *l.Min, m.buckets()[i].ID))
				f.Hint = fmt.Sprintf("begin at %d, or end the other one at %d; a larger overlap is a fallback", *l.Min+1, *l.Min-1)
				r.also(f, m.bucketAt(j)+"/limits/max", fmt.Sprintf("the end of bucket %q is here", m.buckets()[j].ID))
			}
		}
		overlaps.finish(r, "overlap")
	}
}
