package plan

import (
	"cmp"
	"math"
	"slices"
)

// MaxRuns bounds the runs of one model's breakpoint table. Disjoint and nested
// buckets need about two per bucket; only thousands of buckets that overlap at
// random come near.
const MaxRuns = 4_000_000

// Capacity is the longest input that a bucket takes: the lesser of its upper
// bound and its context capacity, since a peak is never below the input. An
// unbounded bucket takes math.MaxInt64.
func (b *Bucket) Capacity() int64 {
	return min(bound(b.Max), bound(b.MaxContextTokens))
}

// bound reads an optional upper bound.
func bound(n *int64) int64 {
	if n == nil {
		return math.MaxInt64
	}
	return *n
}

// lower is the shortest input that a bucket takes.
func (b *Bucket) lower() int64 {
	if b.Min == nil {
		return 0
	}
	return *b.Min
}

// CompareBuckets is the try order: capacity, rank, id.
func CompareBuckets(a, b Bucket) int {
	return cmp.Or(
		cmp.Compare(a.Capacity(), b.Capacity()),
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(a.ID, b.ID),
	)
}

// toggle is a length at which a bucket starts or stops being a candidate.
type toggle struct {
	at     int64
	bucket int
}

// Breakpoints computes the table of ordered buckets. It is not ok when the table
// would need more than maxRuns runs. A bucket whose lower bound is above its
// capacity is never a candidate.
//
// The set of candidates is kept as the sorted list of its edges: an index where a
// run starts and the index after its end. Switching bucket i on or off is the
// symmetric difference with {i, i+1}, so each breakpoint costs as much as it
// prints.
func Breakpoints(buckets []Bucket, maxRuns int) (table []Breakpoint, ok bool) {
	toggles := toggles(buckets)
	var edges, batch, next []int
	at, runs := int64(0), 0
	for i := 0; ; {
		batch = batch[:0]
		for ; i < len(toggles) && toggles[i].at == at; i++ {
			batch = appendEdges(batch, toggles[i].bucket)
		}
		next = symmetricDifference(next[:0], edges, batch)
		edges, next = next, edges
		if runs += len(edges) / 2; runs > maxRuns {
			return nil, false
		}
		table = append(table, Breakpoint{From: at, Runs: runsOf(edges)})
		if i == len(toggles) {
			return table, true
		}
		at = toggles[i].at
	}
}

// toggles lists the starts and ends of all buckets by length, then bucket.
func toggles(buckets []Bucket) []toggle {
	out := make([]toggle, 0, 2*len(buckets))
	for i := range buckets {
		from, to := buckets[i].lower(), buckets[i].Capacity()
		if from > to {
			continue
		}
		out = append(out, toggle{from, i})
		if to < math.MaxInt64 {
			out = append(out, toggle{to + 1, i})
		}
	}
	slices.SortFunc(out, func(a, b toggle) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.bucket, b.bucket))
	})
	return out
}

// appendEdges adds the edges of bucket i to those of lower buckets. An edge that
// is there already joins two runs and disappears.
func appendEdges(edges []int, i int) []int {
	if n := len(edges); n > 0 && edges[n-1] == i {
		edges[n-1] = i + 1
		return edges
	}
	return append(edges, i, i+1)
}

// symmetricDifference appends what is in exactly one of two ascending lists.
func symmetricDifference(dst, a, b []int) []int {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
		case a[0] < b[0]:
			dst, a = append(dst, a[0]), a[1:]
		default:
			dst, b = append(dst, b[0]), b[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// runsOf turns edges into inclusive ranges.
func runsOf(edges []int) []Run {
	out := make([]Run, 0, len(edges)/2)
	for i := 0; i < len(edges); i += 2 {
		out = append(out, Run{edges[i], edges[i+1] - 1})
	}
	return out
}
