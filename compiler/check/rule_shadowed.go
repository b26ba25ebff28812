package check

import (
	"fmt"
	"math"
	"slices"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// maxShadowers bounds with how many earlier buckets of one capacity a bucket is
// compared. Configurations with more are generated, and their first ones do.
const maxShadowers = 32

// ruleShadowed warns about a bucket that is never used: an earlier one takes all
// of its requests, has all of its engines and refuses none, so that it comes
// first, and when it has no engine left, the later one has none either.
//
// An earlier bucket has at most the capacity of a later one, and to take all of
// its requests it needs at least that capacity. So only buckets of equal
// capacity can shadow each other.
func ruleShadowed(r *rules) {
	for _, m := range r.sounds() {
		if m.ordersByTarget() {
			continue // a later bucket comes first for some targets
		}
		byBucket := make([][]groupAt, len(m.buckets()))
		for _, g := range m.groups {
			byBucket[g.bucket] = append(byBucket[g.bucket], g)
		}
		order := make([]int, len(m.buckets()))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			return plan.CompareBuckets(ranges(&m.buckets()[a]), ranges(&m.buckets()[b]))
		})
		var open []int // earlier buckets of the same capacity that refuse nothing
		for k, i := range order {
			if k > 0 && m.capacity(order[k-1]) != m.capacity(i) {
				open = open[:0]
			}
			if j := slices.IndexFunc(open, func(a int) bool { return m.shadows(a, i, byBucket) }); j >= 0 {
				first := &m.buckets()[open[j]]
				f := r.add(diag.ShadowedBucket, m.bucketAt(i)+"/id", fmt.Sprintf("bucket %q is never used: bucket %q comes first, takes the same requests and has the same engines", m.buckets()[i].ID, first.ID))
				f.Hint = "remove it, change its range or rank, or give the earlier bucket admission limits"
				r.also(f, m.bucketAt(open[j])+"/id", fmt.Sprintf("bucket %q is here", first.ID))
				r.shadowed[m.bucketAt(i)] = true
				continue
			}
			limited := slices.ContainsFunc(byBucket[i], func(g groupAt) bool { return m.limited(&g) })
			if !limited && len(open) < maxShadowers {
				open = append(open, i)
			}
		}
	}
}

// ordersByTarget reports whether targets of requests change the order of buckets.
func (m *modelAt) ordersByTarget() bool {
	return config.Or(m.TTFTSLO, config.DefaultSLO) != config.DefaultSLO || config.Or(m.TPSSLO, config.DefaultSLO) != config.DefaultSLO
}

func (m *modelAt) capacity(i int) int64 {
	b := ranges(&m.buckets()[i])
	return b.Capacity()
}

// shadows reports whether bucket a takes whatever bucket b takes, with whatever
// engines b has. Their capacities are equal, so their longest inputs are too.
func (m *modelAt) shadows(a, b int, groups [][]groupAt) bool {
	x, y := &m.buckets()[a], &m.buckets()[b]
	if config.Or(x.Limits.Min, 0) > config.Or(y.Limits.Min, 0) ||
		config.Or(x.MaxContextTokens, math.MaxInt64) < config.Or(y.MaxContextTokens, math.MaxInt64) ||
		len(groups[a]) != len(groups[b]) {
		return false
	}
	if x.Groups.PD != nil {
		for _, name := range x.Groups.PD.MatchLabels {
			if !slices.Contains(y.Groups.PD.MatchLabels, name) {
				return false
			}
		}
	}
	for i := range groups[a] {
		if !subset(groups[b][i].members, groups[a][i].members) {
			return false
		}
	}
	return true
}

// subset reports whether every engine of a is in b.
func subset(a, b *members) bool {
	if a == b {
		return true
	}
	if len(a.engines) > len(b.engines) {
		return false
	}
	for _, x := range a.engines {
		if _, ok := slices.BinarySearch(b.engines, x); !ok {
			return false
		}
	}
	return true
}
