package policy

import (
	"context"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
)

// PowerOfTwo samples distinct candidates and picks the one under least pressure
// at the request's stage. Admission is checked once, on the winner: a refused
// winner is not replaced here but by the next bucket.
//
// Choices is how many engines are sampled; 0 is 2. With two, the first sampled
// wins a tie; with more, the set is compared by the strongest signal that all
// of it has, and ties are broken at random. A nil IntN draws from the
// process-wide source.
type PowerOfTwo struct {
	Loads     load.Reader
	Admission Admission
	Choices   int
	IntN      func(n int) int
}

var _ Policy = (*PowerOfTwo)(nil)

// Pick implements Policy.
func (p *PowerOfTwo) Pick(_ context.Context, candidates []*fleet.Engine, req *Request) (Pick, error) {
	m := minimum{stage: req.Stage, intN: intN(p.IntN), trace: req.Trace}
	now := p.Loads.Time()
	k := p.Choices
	if k == 0 {
		k = 2
	}
	switch n := len(candidates); {
	case n == 1:
		m.see(p.Loads.Observe(candidates[0], now))
	case k >= n && k != 2:
		for _, e := range candidates {
			m.see(p.Loads.Observe(e, now))
		}
	case k == 2:
		i, j := pair(n, m.intN)
		m.firstWins = true
		m.see(p.Loads.Observe(candidates[i], now))
		m.see(p.Loads.Observe(candidates[j], now))
	default:
		sample(n, k, m.intN, func(i int) { m.see(p.Loads.Observe(candidates[i], now)) })
	}
	return admit(p.Admission, m.winner(), req, ReasonPowerOfTwo)
}

// pair draws two distinct indexes below n, all ordered pairs equally likely.
func pair(n int, intN func(int) int) (i, j int) {
	i, j = intN(n), intN(n-1)
	if j >= i {
		j++
	}
	return i, j
}

// sample visits k distinct indexes below n, uniformly chosen, in ascending
// order. It costs O(n) and allocates nothing.
func sample(n, k int, intN func(int) int, visit func(int)) {
	for i := range n {
		if intN(n-i) < k {
			visit(i)
			if k--; k == 0 {
				return
			}
		}
	}
}

// minimum finds the engine under least pressure in one pass, one observation
// each. Which signal decides is known only at the end, when it is clear what
// every engine of the set reported, so it keeps a winner for each.
type minimum struct {
	stage     fleet.Role
	intN      func(int) int
	trace     *Trace
	firstWins bool

	seen   int
	source load.Source
	best   [load.QueueTime + 1]load.Observation
	ties   [load.QueueTime + 1]int
}

func (m *minimum) see(o load.Observation) {
	m.trace.compared(&o)
	if own := o.Best(m.stage); m.seen == 0 || own < m.source {
		m.source = own
	}
	m.seen++
	for by := load.Inflight; by <= m.source; by++ {
		m.keep(by, &o)
	}
}

func (m *minimum) keep(by load.Source, o *load.Observation) {
	if m.seen == 1 {
		m.best[by], m.ties[by] = *o, 1
		return
	}
	switch c := load.Compare(m.stage, by, o, &m.best[by]); {
	case c < 0:
		m.best[by], m.ties[by] = *o, 1
	case c == 0 && !m.firstWins:
		m.ties[by]++
		if m.intN(m.ties[by]) == 0 {
			m.best[by] = *o
		}
	}
}

func (m *minimum) winner() *load.Observation {
	if m.seen > 1 {
		m.trace.source(m.source.String())
	}
	return &m.best[m.source]
}
