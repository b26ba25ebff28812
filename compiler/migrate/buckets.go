package migrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"shunt/compiler/diag"
)

// answers are what the decisions file says.
type answers struct {
	choices *uint64
}

// sourced is a value with the lines that it comes from.
type sourced[T any] struct {
	value T
	set   bool
	from  []*Line
}

// limit is an admission limit by the name of its field.
type limit struct {
	name  string
	value uint64
	from  []*Line
}

// group is the engines of a stage in a bucket.
type group struct {
	stage  string
	ids    sourced[[]string]
	policy sourced[string]
	caps   []limit
}

// bucket is a complete bucket of the configuration.
type bucket struct {
	id                      sourced[string]
	rank, min, max, context sourced[uint64]
	ttft                    sourced[uint64]
	tps                     sourced[float64]
	groups                  []group
	// before is the order of the older router in each stage that the bucket is
	// made of.
	before []place
}

// place is where a bucket stood in the order of a stage.
type place struct {
	stage string
	rank  uint64
	id    string
}

// bucketFile reads the bucket file and makes complete buckets of it.
func (m *migration) bucketFile() {
	if m.line.Value("bucket-config") != nil {
		m.source("bucket-config").find(diag.LegacyDecision, "the bucket file was not read", "migrate without it")
	}
}

// bounded reports whether a bucket depends on the length of a request.
func (m *migration) bounded() bool {
	return slices.ContainsFunc(m.buckets, func(b bucket) bool { return b.min.set || b.max.set || b.context.set })
}

// writeBuckets writes the buckets, and the policies that most groups have as
// defaults.
func (m *migration) writeBuckets() {
	needs := map[bool]bool{}
	for _, b := range m.buckets {
		for _, g := range b.groups {
			if own := g.policy.set || len(g.caps) > 0; !own {
				needs[g.stage == decode] = true
			}
		}
	}
	if needs[false] {
		m.writePolicy("/models/0/defaults/policy", false, nil)
	}
	if needs[true] {
		m.writePolicy("/models/0/defaults/decode_policy", true, nil)
	}
	m.root.at("/models/0/buckets").kind = listNode
	for i := range m.buckets {
		m.writeBucket(fmt.Sprintf("/models/0/buckets/%d", i), &m.buckets[i])
	}
	m.swaps()
}

// writeBucket writes one bucket.
func (m *migration) writeBucket(at string, b *bucket) {
	m.put(at+"/id", text(b.id.value), b.id.from...)
	counts := []struct {
		field string
		value sourced[uint64]
	}{
		{"rank", b.rank}, {"limits/min", b.min}, {"limits/max", b.max}, {"max_context_tokens", b.context}, {"ttft_ms", b.ttft},
	}
	for _, c := range counts {
		if c.value.set {
			m.put(at+"/"+c.field, number(c.value.value), c.value.from...)
		}
	}
	if b.tps.set {
		m.put(at+"/tokens_per_second", real(b.tps.value), b.tps.from...)
	}
	for i := range b.groups {
		g := &b.groups[i]
		path := at + "/groups/plain"
		if g.stage != plain {
			path = at + "/groups/pd/" + g.stage
		}
		m.root.at(path)
		if g.ids.set {
			m.put(path+"/worker_ids", texts(g.ids.value), g.ids.from...)
		}
		if g.policy.set || len(g.caps) > 0 {
			m.writePolicy(path+"/policy", g.stage == decode, g)
		}
	}
}

// maxSwaps bounds the pairs that a report lists.
const maxSwaps = 200

// capacity is the longest input that a bucket takes, by which buckets are tried.
func (b *bucket) capacity() uint64 {
	most := uint64(math.MaxUint64)
	if b.max.set {
		most = b.max.value
	}
	if b.context.set {
		most = min(most, b.context.value)
	}
	return most
}

// swaps finds the pairs of buckets that change their order, among those that one
// request may fit both of.
func (m *migration) swaps() {
	order := make([]*bucket, len(m.buckets))
	for i := range m.buckets {
		order[i] = &m.buckets[i]
	}
	slices.SortStableFunc(order, func(a, b *bucket) int {
		return cmp.Or(cmp.Compare(a.capacity(), b.capacity()), cmp.Compare(a.rank.value, b.rank.value), strings.Compare(a.id.value, b.id.value))
	})
	for i, first := range order {
		for _, second := range order[i+1:] {
			for _, stage := range []string{prefill, decode} {
				if first.placed(stage).after(second.placed(stage)) && first.overlaps(second) {
					m.swap(first, second, stage)
				}
			}
		}
	}
}

func (b *bucket) placed(stage string) *place {
	for i := range b.before {
		if b.before[i].stage == stage {
			return &b.before[i]
		}
	}
	return nil
}

// after reports whether the older router tried p after q.
func (p *place) after(q *place) bool {
	return p != nil && q != nil && cmp.Or(cmp.Compare(p.rank, q.rank), strings.Compare(p.id, q.id)) > 0
}

// overlaps reports whether some input length fits both buckets.
func (b *bucket) overlaps(other *bucket) bool {
	return max(b.min.value, other.min.value) <= min(b.capacity(), other.capacity())
}

func (m *migration) swap(first, second *bucket, stage string) {
	if len(m.report.Swaps) == maxSwaps {
		m.report.MoreSwaps++
		return
	}
	m.report.Swaps = append(m.report.Swaps, Swap{First: first.id.value, Second: second.id.value, Stage: stage})
	for _, b := range []*bucket{first, second} {
		for _, l := range b.rank.from {
			l.change(BucketOrder, "buckets are tried by capacity, and only those of equal capacity by rank; see the pairs that change places")
		}
	}
}
