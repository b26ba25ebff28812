package check

import (
	"fmt"
	"slices"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleLimitOrder refuses a bucket that no request fits.
func ruleLimitOrder(r *rules) {
	for _, m := range r.models {
		for i := range m.buckets() {
			b := &m.buckets()[i]
			low, at := b.Limits.Min, m.bucketAt(i)
			if low == nil {
				continue
			}
			if high := b.Limits.Max; high != nil && *low > *high {
				f := r.add(diag.LimitOrder, at+"/limits/min", fmt.Sprintf("limits.min %d is above limits.max %d", *low, *high))
				r.also(f, at+"/limits/max", "limits.max is here")
			}
			if high := b.MaxContextTokens; high != nil && *low > *high {
				f := r.add(diag.LimitOrder, at+"/limits/min", fmt.Sprintf("limits.min %d is above max_context_tokens %d", *low, *high))
				r.also(f, at+"/max_context_tokens", "max_context_tokens is here")
			}
		}
	}
}

// ruleRuns refuses buckets whose breakpoint table would be too large.
func ruleRuns(r *rules) {
	for _, m := range r.models {
		if _, ok := plan.Breakpoints(m.ordered(), plan.MaxRuns); !ok {
			r.addKey(diag.TooManyRuns, m.at+"/buckets", fmt.Sprintf("the breakpoint table of %d buckets needs more than %d runs", len(m.buckets()), plan.MaxRuns)).
				Hint = "make the ranges disjoint or nested, or use fewer buckets"
		}
	}
}

// ordered lists the ranges of the written buckets in try order.
func (m *modelAt) ordered() []plan.Bucket {
	out := make([]plan.Bucket, 0, len(m.buckets()))
	for i := range m.buckets() {
		out = append(out, ranges(&m.buckets()[i]))
	}
	slices.SortFunc(out, plan.CompareBuckets)
	return out
}

// ranges is a bucket of the plan without groups.
func ranges(b *config.Bucket) plan.Bucket {
	return plan.Bucket{
		ID: b.ID, Rank: config.Or(b.Rank, config.DefaultRank),
		Min: b.Limits.Min, Max: b.Limits.Max, MaxContextTokens: b.MaxContextTokens,
	}
}
