package legacy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Pair says which specs became one bucket. Decode is empty for plain engines,
// and for pairs with any decode engine.
type Pair struct {
	ID              string
	Rank            uint32
	Prefill, Decode string
	// Context is the bound of the bucket, nil for none.
	Context *uint64
}

// Router selects engines. Its maps are those of its caller; the zero value of the
// rest is what the older router did when it was not told.
type Router struct {
	// Config and Pairs are the bucket file and what became of it, if there is one.
	Config *Config
	Pairs  []Pair
	// PD says that engines come in pairs of a prefill and a decode engine.
	PD bool
	// Policy is that of plain and prefill engines; decode engines are picked by
	// power_of_two. Fallback is that of sticky.
	Policy, Fallback string
	// Soft lets sessions escape from loaded engines.
	Soft bool
	// MaxInflight is the limit of the filter, nil for none.
	MaxInflight *uint64
	Cache       Cache

	// Fleet are the healthy engines of a stage, in their order.
	Fleet map[Stage][]string
	Loads Loads
	// Bound has the engines that keys were bound to before, which affinity in a
	// bucket means where the engine is.
	Bound map[string]string
	// Changed are the changes that are in force.
	Changed map[Change]bool

	cursors map[string]int
	bound   map[string]string
}

// Outcome is one way in which a selection may end. Engines are empty when the
// request is refused, and Decode is where engines are plain.
type Outcome struct {
	Prefill, Decode string

	choice
}

// choice is one way in which a stage may end, with what it does to the state:
// the cursors that move and the key that is bound.
type choice struct {
	engine string
	moves  []string
	binds  string
}

// Select lists the ways in which a selection may end now.
func (r *Router) Select(q Request) []Outcome {
	if r.PD && r.Changed[PairedStages] && len(r.Pairs) > 0 {
		return r.pairs(q, r.ordered(q))
	}
	prefill := r.stage(Prefill, q, r.Domains(Prefill, q))
	if !r.PD {
		return product(prefill, nil)
	}
	return product(prefill, r.stage(Decode, q, r.Domains(Decode, q)))
}

// Follow makes what an outcome does to the state.
func (r *Router) Follow(o Outcome) {
	if r.cursors == nil {
		r.cursors, r.bound = make(map[string]int), make(map[string]string)
	}
	for _, key := range o.moves {
		r.cursors[key]++
	}
	if o.binds != "" && o.Prefill != "" {
		r.bound[o.binds] = o.Prefill
	}
}

// product combines the ends of two stages. Nil is no stage, and a refused stage
// refuses the request.
func product(prefill, decode []choice) (out []Outcome) {
	if decode == nil {
		for _, p := range prefill {
			out = append(out, Outcome{Prefill: p.engine, choice: p})
		}
		return distinct(out)
	}
	for _, p := range prefill {
		for _, d := range decode {
			o := Outcome{Prefill: p.engine, Decode: d.engine, choice: p}
			if p.engine == "" || d.engine == "" {
				o.Prefill, o.Decode = "", ""
			}
			out = append(out, o)
		}
	}
	return distinct(out)
}

func distinct(all []Outcome) (out []Outcome) {
	for _, o := range all {
		if !slices.ContainsFunc(out, func(x Outcome) bool { return x.Prefill == o.Prefill && x.Decode == o.Decode }) {
			out = append(out, o)
		}
	}
	return out
}

// pairs tries the buckets one after the other, for both stages, and then passes
// over them again as stage does.
func (r *Router) pairs(q Request, left []Pair) (out []Outcome) {
	for _, o := range r.walkPairs(q, left, nil) {
		at := slices.IndexFunc(left, func(p Pair) bool {
			prefill, decode := r.domainsOf(p)
			return len(prefill) > 0 && len(decode) > 0
		})
		if o.Prefill != "" || r.Changed[CapacityExhaustion] || at < 0 {
			out = append(out, o)
			continue
		}
		prefill, decode := r.domainsOf(left[at])
		out = append(out, product(r.relaxed(prefill[0], o.choice), r.walk(Decode, q, decode, nil))...)
	}
	return distinct(out)
}

func (r *Router) walkPairs(q Request, left []Pair, moves []string) (out []Outcome) {
	if len(left) == 0 {
		return []Outcome{{choice: choice{moves: moves}}}
	}
	prefill, decode := r.domainsOf(left[0])
	for _, p := range r.walk(Prefill, q, prefill, moves) {
		if p.engine == "" {
			out = append(out, r.walkPairs(q, left[1:], p.moves)...)
			continue
		}
		for _, d := range r.walk(Decode, q, decode, nil) {
			if d.engine == "" {
				out = append(out, r.walkPairs(q, left[1:], p.moves)...)
				continue
			}
			out = append(out, Outcome{Prefill: p.engine, Decode: d.engine, choice: p})
		}
	}
	return distinct(out)
}

// stage tries the domains of a stage one after the other. When all of the prefill
// stage refuse, a second pass ignores the bounds, unless there is none.
func (r *Router) stage(stage Stage, q Request, domains []Domain) (out []choice) {
	for _, c := range r.walk(stage, q, domains, nil) {
		if c.engine != "" || len(domains) == 0 || stage == Decode || r.Changed[CapacityExhaustion] {
			out = append(out, c)
			continue
		}
		out = append(out, r.relaxed(domains[0], c)...)
	}
	return unique(out)
}

// relaxed are the engines of a domain by load, whatever their bounds.
func (r *Router) relaxed(d Domain, after choice) (out []choice) {
	for _, e := range r.Loads.PowerOfTwo(Prefill, d.Engines) {
		out = append(out, choice{engine: e, moves: after.moves})
	}
	return out
}

func (r *Router) walk(stage Stage, q Request, domains []Domain, moves []string) (out []choice) {
	if len(domains) == 0 {
		return []choice{{moves: moves}}
	}
	for _, c := range r.pick(&attempt{Router: r, stage: stage, q: q, d: domains[0], moves: moves}) {
		if c.engine != "" {
			out = append(out, c)
			continue
		}
		out = append(out, r.walk(stage, q, domains[1:], c.moves)...)
	}
	return unique(out)
}

func unique(all []choice) (out []choice) {
	for _, c := range all {
		if !slices.ContainsFunc(out, func(x choice) bool { return x.engine == c.engine }) {
			out = append(out, c)
		}
	}
	return out
}

// engines are the healthy ones of a stage that the filter leaves.
func (r *Router) engines(stage Stage) []string {
	return slices.DeleteFunc(slices.Clone(r.Fleet[stage]), func(e string) bool {
		return !r.Changed[CapacityExhaustion] && r.Loads.overloaded(e, r.MaxInflight)
	})
}

func (l Loads) overloaded(engine string, most *uint64) bool {
	return most != nil && l[engine].Inflight >= *most
}

// Order lists the ids of the buckets of a stage that a request fits, in the order
// they are tried, with those that have no engine.
func (r *Router) Order(stage Stage, q Request) (out []string) {
	every := *r
	every.Fleet, every.MaxInflight = map[Stage][]string{stage: {Global}}, nil
	if r.Config != nil {
		for _, s := range r.Config.Specs {
			every.Fleet[stage] = append(every.Fleet[stage], s.Members...)
		}
	}
	for _, d := range every.Domains(stage, q) {
		out = append(out, d.ID)
	}
	return out
}

// Domains are those of a stage by itself that have engines.
func (r *Router) Domains(stage Stage, q Request) []Domain {
	by := rules{fits: (*Spec).fits, order: (*Spec).order}
	if r.Changed[ContextCheck] || r.Changed[PolicyAttachment] {
		by.fits = r.fits
	}
	if r.Changed[BucketOrder] {
		by.order = r.order
	}
	return r.Config.domains(stage, q, r.engines(stage), by)
}

// pair is the bucket that a spec became part of, nil if it was left out.
func (r *Router) pair(s *Spec) *Pair {
	i := slices.IndexFunc(r.Pairs, func(p Pair) bool { return s.ID == p.Prefill || s.ID == p.Decode })
	if i < 0 {
		return nil
	}
	return &r.Pairs[i]
}

// fits is the rule of a changed router.
func (r *Router) fits(s *Spec, q Request) bool {
	p := r.pair(s)
	if p == nil {
		return !r.Changed[PolicyAttachment] && s.fits(q)
	}
	if !r.Changed[ContextCheck] {
		return s.fits(q)
	}
	return within(Peak(q.Input, q.Output), nil, p.Context) && (s.Stage == Decode || within(q.Input, s.MinExtend, s.MaxExtend))
}

// order is the order of a changed router. A spec without a bucket is last.
func (r *Router) order(a, b *Spec) int {
	x, y := r.pair(a), r.pair(b)
	if x == nil || y == nil {
		return a.order(b)
	}
	return r.orderPairs(*x, *y)
}

func (r *Router) orderPairs(x, y Pair) int {
	if !r.Changed[BucketOrder] {
		return r.spec(x.Prefill).order(r.spec(y.Prefill))
	}
	return cmp.Or(cmp.Compare(r.capacity(x), r.capacity(y)), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.ID, y.ID))
}

// capacity is the longest input that a bucket takes.
func (r *Router) capacity(p Pair) uint64 {
	most := uint64(math.MaxUint64)
	for _, bound := range []*uint64{p.Context, r.spec(p.Prefill).MaxExtend} {
		if bound != nil {
			most = min(most, *bound)
		}
	}
	return most
}

// spec finds a spec by its id, nil if there is none.
func (r *Router) spec(id string) *Spec {
	i := slices.IndexFunc(r.Config.Specs, func(s Spec) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &r.Config.Specs[i]
}

// ordered are the buckets that a request fits in both stages, in the order of
// the sum of what it prefers in each.
func (r *Router) ordered(q Request) (out []Pair) {
	fits := (*Spec).fits
	if r.Changed[ContextCheck] {
		fits = r.fits
	}
	for _, p := range r.Pairs {
		decode := r.spec(p.Decode)
		if fits(r.spec(p.Prefill), q) && (decode == nil || fits(decode, q)) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y Pair) int {
		return cmp.Or(cmp.Compare(r.penalty(x, q), r.penalty(y, q)), r.orderPairs(x, y))
	})
	return out
}

func (r *Router) penalty(p Pair, q Request) (n int) {
	count := func(s *Spec, mode Mode, target bool) {
		eligible := s != nil && s.eligible(q)
		if target && (mode == SLOFirst && !eligible || mode == BestEffort && eligible) {
			n++
		}
	}
	count(r.spec(p.Prefill), r.Config.TTFTMode, q.TTFT != nil)
	count(r.spec(p.Decode), r.Config.TPSMode, q.TPS != nil)
	return n
}

// domainsOf are the engines of a bucket by stage, none where no engine is left.
func (r *Router) domainsOf(p Pair) (prefill, decode []Domain) {
	prefill = live([]Domain{r.spec(p.Prefill).domain(r.engines(Prefill))})
	d := Domain{ID: Global, Engines: r.engines(Decode)}
	if s := r.spec(p.Decode); s != nil {
		d = s.domain(d.Engines)
	}
	return prefill, live([]Domain{d})
}

// String is an outcome for messages.
func (o Outcome) String() string {
	switch {
	case o.Prefill == "":
		return "refused"
	case o.Decode == "":
		return o.Prefill
	}
	return fmt.Sprintf("%s+%s", o.Prefill, o.Decode)
}
