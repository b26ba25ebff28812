package plandiff

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"shunt/schema/plan"
)

// Bounds of the work for the targets of one model: candidates that are sorted, of
// which a route counts as some. Beyond them, routes say that the order may differ
// with targets.
const (
	maxSorted = 20_000_000
	routeCost = 2_000
)

// TTFTTargets is a range of targets of the time to the first token, in
// milliseconds.
type TTFTTargets struct {
	// None says that requests without such a target belong to the range, and those
	// with a lower one. From is absent then.
	None bool   `json:"none"`
	From *int64 `json:"from,omitempty"`
	// To is inclusive; without it the range has no end, and 0 is none at all.
	To *int64 `json:"to,omitempty"`
}

// TPSTargets is a range of targets of the output, in tokens per second.
type TPSTargets struct {
	// None says that requests without such a target belong to the range, and those
	// with a higher one. To is absent then.
	None  bool     `json:"none"`
	Above *float64 `json:"above,omitempty"` // not inclusive; absent is 0
	To    *float64 `json:"to,omitempty"`    // inclusive
}

// box is a rectangle of targets. The zero box has all of them.
type box struct {
	limited bool
	// ttftFrom is 0 for requests without a target and lower ones, ttftTo unlimited
	// without an end.
	ttftFrom, ttftTo int64
	// tpsNone is for requests without a target and higher ones.
	tpsNone         bool
	tpsAbove, tpsTo float64
}

// estimates are what the buckets of one side meet, in the order in which stricter
// targets than all of them come first: for these, and without a target, no bucket
// is preferred.
type estimates struct {
	ttft []int64   // ascending
	tps  []float64 // descending
}

// modes are how a model uses targets.
func modes(m *plan.Model) plan.SLO {
	if m.SLO == nil {
		return plan.SLO{TTFT: plan.SLODisabled, TPS: plan.SLODisabled}
	}
	return *m.SLO
}

// aimed cuts a rectangle into boxes of targets in which the candidates have one
// order, if that matters: whether a request is served does not depend on targets.
func (r *router) aimed(f *rectangle) []*rectangle {
	matters := r.oldModes != plan.SLO{TTFT: plan.SLODisabled, TPS: plan.SLODisabled} || r.newModes != r.oldModes
	var e estimates
	if matters && (f.effect == "" || f.effect == First || f.effect == Fallback) {
		e.add(r.oldModes, f.old)
		e.add(r.newModes, f.new)
	}
	rows, columns := len(e.ttft)+1, len(e.tps)+1
	cost := rows * columns * (len(f.old) + len(f.new))
	if cells := rows * columns; cells > 1 && (f.long || cost > r.budget) {
		f.vague, r.vague = true, true
	} else if cells > 1 {
		r.budget -= cost
		return r.boxes(f, &e)
	}
	if f.effect == "" {
		return nil
	}
	return []*rectangle{f}
}

// add adds the estimates of candidates that the modes look at.
func (e *estimates) add(m plan.SLO, list []candidate) {
	for i := range list {
		if c := &list[i]; c.ttft > 0 && m.TTFT != plan.SLODisabled {
			e.ttft = append(e.ttft, c.ttft)
		}
		if c := &list[i]; c.tps > 0 && m.TPS != plan.SLODisabled {
			e.tps = append(e.tps, c.tps)
		}
	}
	slices.Sort(e.ttft)
	e.ttft = slices.Compact(e.ttft)
	slices.SortFunc(e.tps, func(a, b float64) int { return cmp.Compare(b, a) })
	e.tps = slices.Compact(e.tps)
}

// boxes orders the candidates for each target that makes a difference, and joins
// neighbours that are alike.
func (r *router) boxes(f *rectangle, e *estimates) []*rectangle {
	rows, columns := len(e.ttft)+1, len(e.tps)+1
	grid := make([]*rectangle, rows*columns)
	same := f.effect != ""
	for i := range rows {
		for j := range columns {
			one := *f
			one.old, one.new = e.ordered(r.oldModes, f.old, i, j), e.ordered(r.newModes, f.new, i, j)
			one.judge()
			grid[i*columns+j] = &one
			same = same && one.alike(f)
		}
	}
	if same {
		return []*rectangle{f}
	}
	var out []*rectangle
	for i := range rows {
		for j := range columns {
			one := grid[i*columns+j]
			if one == nil || one.effect == "" {
				continue
			}
			fits := func(i, j int) bool {
				other := grid[i*columns+j]
				return other != nil && other.alike(one)
			}
			bottom, right := i+1, j+1
			for right < columns && fits(i, right) {
				right++
			}
			whole := func() bool {
				for k := j; k < right; k++ {
					if !fits(bottom, k) {
						return false
					}
				}
				return true
			}
			for bottom < rows && whole() {
				bottom++
			}
			for k := i; k < bottom; k++ {
				clear(grid[k*columns+j : k*columns+right])
			}
			r.budget -= routeCost
			one.box = e.box(i, bottom-1, j, right-1)
			out = append(out, one)
		}
	}
	return out
}

// ordered is the try order for the targets of a row and a column, as in the
// server: each target counts against the buckets that are not preferred for it.
func (e *estimates) ordered(m plan.SLO, list []candidate, row, column int) []candidate {
	penalty := func(c *candidate) (n int) {
		if row > 0 && m.TTFT != plan.SLODisabled && (c.ttft > 0 && c.ttft <= e.ttft[row-1]) == (m.TTFT == plan.BestEffort) {
			n++
		}
		if column > 0 && m.TPS != plan.SLODisabled && (c.tps >= e.tps[column-1]) == (m.TPS == plan.BestEffort) {
			n++
		}
		return n
	}
	out := make([]candidate, 0, len(list))
	for n := range 3 {
		for i := range list {
			if penalty(&list[i]) == n {
				out = append(out, list[i])
			}
		}
	}
	return out
}

// box is the targets of some rows and columns, inclusive.
func (e *estimates) box(top, bottom, left, right int) box {
	b := box{limited: true, ttftTo: unlimited, tpsNone: left == 0}
	if top > 0 {
		b.ttftFrom = e.ttft[top-1]
	}
	if bottom < len(e.ttft) {
		b.ttftTo = e.ttft[bottom] - 1
	}
	if left > 0 {
		b.tpsTo = e.tps[left-1]
	}
	if right < len(e.tps) {
		b.tpsAbove = e.tps[right]
	}
	return b
}

// put writes a box into a route.
func (b *box) put(r *Route) {
	if !b.limited {
		return
	}
	if b.ttftFrom > 0 || b.ttftTo != unlimited {
		r.TTFT = &TTFTTargets{None: b.ttftFrom == 0}
		if b.ttftFrom > 0 {
			r.TTFT.From = new(b.ttftFrom)
		}
		if b.ttftTo != unlimited {
			r.TTFT.To = new(b.ttftTo)
		}
	}
	if !b.tpsNone || b.tpsAbove > 0 {
		r.TPS = &TPSTargets{None: b.tpsNone}
		if !b.tpsNone {
			r.TPS.To = new(b.tpsTo)
		}
		if b.tpsAbove > 0 {
			r.TPS.Above = new(b.tpsAbove)
		}
	}
}

// compareTargets orders the routes of one length: requests without targets first.
func (r *Route) compareTargets(o *Route) int {
	from := func(t *TTFTTargets) int64 {
		if t == nil || t.From == nil {
			return 0
		}
		return *t.From
	}
	strict := func(t *TPSTargets) float64 {
		if t == nil || t.To == nil {
			return math.Inf(-1)
		}
		return -*t.To
	}
	return cmp.Or(cmp.Compare(from(r.TTFT), from(o.TTFT)), cmp.Compare(strict(r.TPS), strict(o.TPS)))
}

// Targets says for which latency targets a route is, empty for all of them.
func (r *Route) Targets() (s string) {
	if t := r.TTFT; t != nil {
		s = "ttft target " + t.String()
	}
	if t := r.TPS; t != nil {
		if s != "" {
			s += ", "
		}
		s += "tps target " + t.String()
	}
	return s
}

func (t *TTFTTargets) String() string {
	switch {
	case t.None && *t.To == 0:
		return "none"
	case t.None:
		return fmt.Sprintf("none or up to %d ms", *t.To)
	case t.To == nil:
		return fmt.Sprintf("from %d ms", *t.From)
	case *t.From == *t.To:
		return fmt.Sprintf("%d ms", *t.From)
	}
	return fmt.Sprintf("%d to %d ms", *t.From, *t.To)
}

func (t *TPSTargets) String() string {
	switch {
	case t.None:
		return fmt.Sprintf("none or above %v", *t.Above)
	case t.Above == nil:
		return fmt.Sprintf("up to %v", *t.To)
	}
	return fmt.Sprintf("above %v up to %v", *t.Above, *t.To)
}
