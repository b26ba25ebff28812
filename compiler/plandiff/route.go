package plandiff

import (
	"cmp"
	"math"
	"slices"

	"shunt/schema/plan"
)

// unlimited is the bound of what has none.
const unlimited = math.MaxInt64

// longList is the number of candidates up to which a route is split wherever one
// of them ends.
const longList = 64

// candidate is a bucket on one side.
type candidate struct {
	ident   int   // equal for the two sides of one bucket
	context int64 // the largest peak
	serves  bool
	// What the bucket is expected to deliver, 0 if unknown.
	ttft int64
	tps  float64
}

// router compares the tables of two models.
type router struct {
	*modelDiff
	old, new []candidate
	// partner is the new index of an old bucket with the same identity and
	// context, -1 for none. Ahead is how many old buckets from an index on have
	// partners that follow each other too.
	partner, ahead []int
	// place is the index in the new middle by identity, stamped with the segment,
	// and met the stamps of those that the old middle has too.
	place []stamped
	met   []int
	stamp int
	// wider are the buckets with another context than before, by the lesser one.
	wider []widening
	both  []pair // scratch
	// oldModes and newModes are what targets do, budget what may still be sorted for
	// them. Vague says that some orders with targets were not compared.
	oldModes, newModes plan.SLO
	budget             int
	vague              bool
	// reorders marks the old buckets for which targets may mean something else.
	reorders []bool
	// open are the routes of the segment before, which the next may continue.
	open []*rectangle
}

type stamped struct{ stamp, index int }

// widening is a bucket that takes peaks up to high on one side and only up to low
// on the other.
type widening struct {
	ident int
	span
}

// rectangle is a route under construction: peaks above low and up to high. A low
// of 0 is unknown peaks too.
type rectangle struct {
	from, to, low, high int64
	old, new            []candidate
	effect              Effect
	class               Class
	varies              bool
	box                 box
	// long says that there are more candidates than a route is split for, vague
	// that targets were not looked at although they may matter.
	long, vague bool
}

// routes lists the requests that are offered to other buckets, and reports whether
// some orders with latency targets were too many to compare.
func (m *modelDiff) routes() (vague bool) {
	r := &router{modelDiff: m, oldModes: modes(m.before), newModes: modes(m.after), budget: maxSorted}
	r.prepare()
	first := len(m.diff.Routes)
	a, b := m.before.Breakpoints, m.after.Breakpoints
	for i, j := 0, 0; i < len(a) && j < len(b); {
		from := max(a[i].From, b[j].From, 1)
		endA, endB := int64(unlimited), int64(unlimited)
		if i+1 < len(a) {
			endA = a[i+1].From - 1
		}
		if j+1 < len(b) {
			endB = b[j+1].From - 1
		}
		to := min(endA, endB)
		if from <= to {
			r.segment(from, to, a[i].Runs, b[j].Runs)
		}
		if endA == to {
			i++
		}
		if endB == to {
			j++
		}
	}
	r.flush()
	slices.SortStableFunc(m.diff.Routes[first:], func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Input.From, b.Input.From), cmp.Compare(lowest(a.Peak), lowest(b.Peak)), a.compareTargets(&b))
	})
	return r.vague
}

func lowest(p Peak) int64 {
	if p.From == nil {
		return 0
	}
	return *p.From
}

func (r *router) prepare() {
	old, now := newRoster(r.before), newRoster(r.after)
	r.old, r.new = make([]candidate, len(r.before.Buckets)), make([]candidate, len(r.after.Buckets))
	for i := range r.old {
		b := &r.before.Buckets[i]
		r.old[i] = newCandidate(i, b, old.serves(b))
	}
	for j := range r.new {
		b := &r.after.Buckets[j]
		r.new[j] = newCandidate(len(r.old)+j, b, now.serves(b))
		if i := r.buckets.back[j]; i >= 0 {
			r.new[j].ident = i
		}
	}
	r.partner, r.ahead = make([]int, len(r.old)), make([]int, len(r.old))
	r.markReordered()
	for i := len(r.old) - 1; i >= 0; i-- {
		j := r.buckets.partner[i]
		// A bucket that stopped serving has to be looked at, too.
		if j >= 0 && (r.old[i].context != r.new[j].context || r.old[i].serves && !r.new[j].serves || r.reordered(&r.old[i])) {
			j = -1
		}
		r.partner[i], r.ahead[i] = j, 1
		if i+1 < len(r.old) && j >= 0 && r.partner[i+1] == j+1 {
			r.ahead[i] += r.ahead[i+1]
		}
	}
	r.place, r.met = make([]stamped, len(r.old)+len(r.new)), make([]int, len(r.old)+len(r.new))
	for i, j := range r.buckets.partner {
		if j >= 0 && r.old[i].context != r.new[j].context {
			x, y := r.old[i].context, r.new[j].context
			r.wider = append(r.wider, widening{i, span{min(x, y), max(x, y)}})
		}
	}
	slices.SortFunc(r.wider, func(a, b widening) int { return cmp.Compare(a.low, b.low) })
}

func newCandidate(ident int, b *plan.Bucket, serves bool) candidate {
	c := candidate{ident: ident, context: contextOf(b), serves: serves}
	if b.TTFTMS != nil {
		c.ttft = *b.TTFTMS
	}
	if b.TokensPerSecond != nil {
		c.tps = *b.TokensPerSecond
	}
	return c
}

// markReordered finds the buckets for which targets may mean something else. None
// at all is the usual case, and is nil.
func (r *router) markReordered() {
	for i, j := range r.buckets.partner {
		if j < 0 {
			continue
		}
		a, b := &r.old[i], &r.new[j]
		ttft := r.oldModes.TTFT != r.newModes.TTFT || a.ttft != b.ttft && r.oldModes.TTFT != plan.SLODisabled
		tps := r.oldModes.TPS != r.newModes.TPS || a.tps != b.tps && r.oldModes.TPS != plan.SLODisabled
		if ttft && (a.ttft > 0 || b.ttft > 0) || tps && (a.tps > 0 || b.tps > 0) {
			if r.reorders == nil {
				r.reorders = make([]bool, len(r.old))
			}
			r.reorders[i] = true
		}
	}
}

func (r *router) reordered(old *candidate) bool { return r.reorders != nil && r.reorders[old.ident] }

func contextOf(b *plan.Bucket) int64 {
	if b.MaxContextTokens == nil {
		return unlimited
	}
	return *b.MaxContextTokens
}

// segment compares one range of inputs, in which both tables are constant.
func (r *router) segment(from, to int64, before, after []plan.Run) {
	if r.equal(before, after) {
		r.flush()
		return
	}
	a, b := expand(r.old, before), expand(r.new, after)
	spans := r.spans(a, b)
	if r.anew(a) {
		if len(a)+len(b) > longList {
			r.vague = true
		} else {
			spans = []span{{0, max(widest(a), widest(b))}}
		}
	}
	var found []*rectangle
	for _, s := range spans {
		found = append(found, r.rectangles(from, to, s, a, b)...)
	}
	// A rectangle that continues one of the segment before is the same route.
	for i, f := range found {
		k := slices.IndexFunc(r.open, func(o *rectangle) bool { return o.to == f.from-1 && o.alike(f) && o.low == f.low && o.high == f.high })
		if k >= 0 {
			r.open[k].to = f.to
			found[i] = r.open[k]
			r.open = slices.Delete(r.open, k, k+1)
		}
	}
	r.flush()
	r.open = found
}

// anew reports whether targets may reorder old candidates otherwise than before.
func (r *router) anew(list []candidate) bool {
	for i := range list {
		if r.reordered(&list[i]) {
			return true
		}
	}
	return false
}

// equal reports whether two lists of runs are the same buckets with the same
// contexts, by runs of buckets that have the same neighbours on both sides.
func (r *router) equal(a, b []plan.Run) bool {
	var i, j int // what was compared of the first runs
	for len(a) > 0 && len(b) > 0 {
		at := a[0][0] + i
		if r.partner[at] != b[0][0]+j {
			return false
		}
		n := min(r.ahead[at], a[0][1]-at+1, b[0][1]-b[0][0]-j+1)
		if i += n; a[0][0]+i > a[0][1] {
			a, i = a[1:], 0
		}
		if j += n; b[0][0]+j > b[0][1] {
			b, j = b[1:], 0
		}
	}
	return len(a) == 0 && len(b) == 0
}

func expand(all []candidate, runs []plan.Run) []candidate {
	if len(runs) == 1 {
		return all[runs[0][0] : runs[0][1]+1]
	}
	n := 0
	for _, run := range runs {
		n += run[1] - run[0] + 1
	}
	out := make([]candidate, 0, n)
	for _, run := range runs {
		out = append(out, all[run[0]:run[1]+1]...)
	}
	return out
}

// span is the peaks above low and up to high.
type span struct{ low, high int64 }

// spans lists the peaks at which two lists differ once the candidates with a
// smaller context are left out, or at which nothing is served any more. Every
// context is at least the inputs of the segment.
//
// A candidate of one list only makes them differ up to its context, one with two
// contexts between these, and two in another order up to the lesser context of
// the two.
func (r *router) spans(a, b []candidate) []span {
	served, left := servedTo(a), servedTo(b)
	for len(a) > 0 && len(b) > 0 && a[0].ident == b[0].ident && a[0].context == b[0].context {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].ident == b[len(b)-1].ident && a[len(a)-1].context == b[len(b)-1].context {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	r.stamp++
	for j := range b {
		r.place[b[j].ident] = stamped{r.stamp, j}
	}
	from0 := span{0, 0}
	r.both = r.both[:0]
	for i := range a {
		at := r.place[a[i].ident]
		if at.stamp != r.stamp {
			from0.high = max(from0.high, a[i].context)
			continue
		}
		r.met[a[i].ident] = r.stamp
		r.both = append(r.both, pair{i, at.index, min(a[i].context, b[at.index].context)})
	}
	for j := range b {
		if r.met[b[j].ident] != r.stamp {
			from0.high = max(from0.high, b[j].context)
		}
	}
	from0.high = max(from0.high, inverted(r.both))
	out := join(nil, from0)
	for _, w := range r.wider {
		if r.met[w.ident] == r.stamp {
			out = join(out, w.span)
		}
	}
	if left >= served {
		return out
	}
	// Where nothing is served any more, wherever that is among the others.
	out = append(out, span{left, served})
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	var all []span
	for _, s := range out {
		all = join(all, s)
	}
	return all
}

// join adds a span that begins where the last one does or later.
func join(list []span, s span) []span {
	switch n := len(list); {
	case s.low >= s.high:
	case n > 0 && s.low <= list[n-1].high:
		list[n-1].high = max(list[n-1].high, s.high)
	default:
		list = append(list, s)
	}
	return list
}

// servedTo is the largest peak that a candidate with engines takes.
func servedTo(list []candidate) (most int64) {
	for i := range list {
		if list[i].serves {
			most = max(most, list[i].context)
		}
	}
	return most
}

// pair is a candidate of both lists, by its places, with its lesser context.
type pair struct {
	i, j    int
	context int64
}

// inverted is the largest peak at which two candidates are in another order, 0
// for none. With the widest contexts first, the first one that is out of order
// among those before it decides.
func inverted(both []pair) int64 {
	if slices.IsSortedFunc(both, func(a, b pair) int { return cmp.Compare(a.j, b.j) }) {
		return 0
	}
	slices.SortStableFunc(both, func(a, b pair) int { return cmp.Compare(b.context, a.context) })
	ordered := make([]pair, 0, len(both)) // by i, and as long as it lasts by j
	for _, p := range both {
		at, _ := slices.BinarySearchFunc(ordered, p, func(a, b pair) int { return cmp.Compare(a.i, b.i) })
		if at > 0 && ordered[at-1].j > p.j || at < len(ordered) && ordered[at].j < p.j {
			return p.context
		}
		ordered = slices.Insert(ordered, at, p)
	}
	return 0
}

// rectangles cuts a span into routes that are alike throughout.
func (r *router) rectangles(from, to int64, s span, a, b []candidate) []*rectangle {
	cuts := []int64{s.high, servedTo(a), servedTo(b), widest(a), widest(b)}
	long := len(a)+len(b) > longList
	for _, list := range [...][]candidate{a, b} {
		for i := range list {
			if !long {
				cuts = append(cuts, list[i].context)
			}
		}
	}
	slices.Sort(cuts)
	var out []*rectangle
	low := s.low
	for _, high := range slices.Compact(cuts) {
		if high <= low || high > s.high {
			continue
		}
		f := &rectangle{from: from, to: to, low: low, high: high, old: above(a, low), new: above(b, low)}
		low = high
		f.long = long
		f.varies = long && (endsWithin(f.old, high) || endsWithin(f.new, high))
		f.judge()
		for _, f := range r.aimed(f) {
			if i := slices.IndexFunc(out, func(o *rectangle) bool { return o.high == f.low && o.alike(f) }); i >= 0 {
				out[i].high = f.high
				continue
			}
			out = append(out, f)
		}
	}
	return out
}

// widest is the largest peak that a candidate takes.
func widest(list []candidate) (most int64) {
	for i := range list {
		most = max(most, list[i].context)
	}
	return most
}

// above lists the candidates that take peaks just above low.
func above(list []candidate, low int64) []candidate {
	n := 0
	for i := range list {
		if list[i].context > low {
			n++
		}
	}
	if n == len(list) {
		return list
	}
	out := make([]candidate, 0, n)
	for i := range list {
		if list[i].context > low {
			out = append(out, list[i])
		}
	}
	return out
}

func endsWithin(list []candidate, high int64) bool {
	return slices.ContainsFunc(list, func(c candidate) bool { return c.context < high })
}

// judge finds the effect and the class, no effect where nothing changed.
func (f *rectangle) judge() {
	served, left := servedTo(f.old) > 0, servedTo(f.new) > 0
	f.class = Behaviour
	switch {
	case len(f.new) == 0 && len(f.old) > 0:
		if f.effect = Unroutable; served {
			f.class = Breaking
		}
	case served && !left:
		f.effect, f.class = Unserved, Breaking
	case len(f.old) == 0 && len(f.new) > 0:
		f.effect = Routable
	case sameBuckets(f.old, f.new):
		f.effect = ""
	case f.old[0].ident != f.new[0].ident:
		f.effect = First
	default:
		f.effect = Fallback
	}
}

func sameBuckets(a, b []candidate) bool {
	return slices.EqualFunc(a, b, func(x, y candidate) bool { return x.ident == y.ident })
}

// alike reports whether two rectangles say the same of their requests.
func (f *rectangle) alike(g *rectangle) bool {
	return f.effect == g.effect && f.class == g.class && f.varies == g.varies && f.vague == g.vague && f.box == g.box && sameBuckets(f.old, g.old) && sameBuckets(f.new, g.new)
}

// flush makes routes of the open rectangles.
func (r *router) flush() {
	for _, f := range r.open {
		route := Route{
			Class: f.class, Effect: f.effect, Model: r.id, Varies: f.varies, TargetsVary: f.vague,
			Input: Range{From: f.from}, Peak: Peak{Unknown: f.low == 0},
			Old: r.named(f.old, false), New: r.named(f.new, true),
		}
		if f.to != unlimited {
			route.Input.To = &f.to
		}
		if f.low > 0 {
			route.Peak.From = new(f.low + 1)
		}
		if f.high != unlimited {
			route.Peak.To = &f.high
		}
		f.box.put(&route)
		r.diff.Routes = append(r.diff.Routes, route)
	}
	r.open = nil
}

// named lists the ids of buckets, as the plan of their side has them.
func (r *router) named(list []candidate, after bool) Buckets {
	b := Buckets{IDs: make([]string, 0, min(len(list), maxListed)), Total: len(list)}
	for _, c := range list[:min(len(list), maxListed)] {
		switch {
		case c.ident >= len(r.old):
			b.IDs = append(b.IDs, r.after.Buckets[c.ident-len(r.old)].ID)
		case after:
			b.IDs = append(b.IDs, r.after.Buckets[r.buckets.partner[c.ident]].ID)
		default:
			b.IDs = append(b.IDs, r.before.Buckets[c.ident].ID)
		}
	}
	return b
}
