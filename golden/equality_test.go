package golden_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/migrate"
	"shunt/golden/legacy"
	"shunt/runtime/simulate"
)

// TestEqualsLegacy compares the decisions of migrated command lines with what the
// older router picks, on a grid of requests and worlds. They are equal except
// where a deliberate change bears on the pick: with all changes that apply at a
// point the older router must pick as the plan does, and those without which it
// would not are the cause of the difference. The report of the migration must
// have stated each cause, and each change has to cause a difference somewhere, so
// that none of them only excuses.
func TestEqualsLegacy(t *testing.T) {
	all := invocations()
	subjects := make([]subject, len(all))
	t.Run("invocations", func(t *testing.T) {
		for i, inv := range all {
			t.Run(inv.name, func(t *testing.T) {
				t.Parallel()
				s := newSubject(t, inv)
				s.grid(t)
				t.Logf("%d points, differences %v", s.points, s.caused)
				for _, p := range s.problems[:min(len(s.problems), maxProblems)] {
					t.Error(p)
				}
				subjects[i] = s
			})
		}
	})
	points := 0
	caused := make(map[migrate.Row]int)
	for i := range subjects {
		points += subjects[i].points
		for row, n := range subjects[i].caused {
			caused[row] += n
		}
	}
	for _, r := range differenceRows() {
		if caused[r.row] == 0 {
			t.Errorf("no difference is due to the row %q: %s", r.row, r.why)
		}
	}
	if points < 15_000 {
		t.Errorf("only %d points were compared", points)
	}
}

// TestEqualityCanFail: a plan with another bound, rows that are missing, and a
// report that keeps something to itself.
func TestEqualityCanFail(t *testing.T) {
	f := func(name, want string, spoil func(*subject)) {
		t.Helper()
		all := invocations()
		i := slices.IndexFunc(all, func(inv invocation) bool { return inv.name == name })
		s := newSubject(t, all[i])
		spoil(&s)
		s.grid(t)
		if !slices.ContainsFunc(s.problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%s: no problem with %q", name, want)
		}
	}
	unexplained := "do not explain it"
	f("power_of_two, lengths", unexplained, func(s *subject) {
		wide := &s.body.Models[0].Buckets[2]
		wide.MaxContextTokens = new(*wide.MaxContextTokens - 1)
	})
	f("random, lengths, filtered", unexplained, func(s *subject) { s.router.MaxInflight = new(*s.router.MaxInflight + 1) })
	f("cache_aware", unexplained, func(s *subject) { s.router.Cache.MinMatched++ })
	f("sticky by round_robin", unexplained, func(s *subject) { s.router.Fallback = "power_of_two" })
	for _, row := range []struct {
		row  migrate.Row
		name string
	}{
		{migrate.BucketOrder, "power_of_two, lengths"}, {migrate.OmittedMode, "session_aware, nothing said"},
		{migrate.CapacityExhaustion, "power_of_two, filtered"}, {migrate.PairedStages, "random, stages"},
	} {
		f(row.name, unexplained, func(s *subject) {
			s.rows = slices.DeleteFunc(s.rows, func(r differenceRow) bool { return r.row == row.row })
		})
		f(row.name, fmt.Sprintf("due to the row %q, which", row.row), func(s *subject) { delete(s.stated, row.row) })
	}
}

// subject is an invocation with both routers.
type subject struct {
	invocation
	migrated

	router *legacy.Router
	// thin, if set, draws a small part of the grid.
	thin     *rand.Rand
	known    map[orderKey][]string
	rows     []differenceRow
	caused   map[migrate.Row]int
	points   int
	problems []string
}

func newSubject(t *testing.T, inv invocation) subject {
	t.Helper()
	return subject{
		invocation: inv, router: inv.router(t), migrated: inv.migrate(t),
		rows: differenceRows(), caused: make(map[migrate.Row]int), known: make(map[orderKey][]string),
	}
}

// maxProblems is how many are looked for.
const maxProblems = 3

// blockSize divides the lengths of the grid.
const blockSize = 8

func (s *subject) grid(t *testing.T) {
	prefill, decode := s.urls(legacy.Prefill), s.urls(legacy.Decode)
	all := requests(s.router)
	few := representatives(s.router, all)
	states := worlds(s.router, prefill, decode)
	switch s.router.Policy {
	case "cache_aware":
		s.router.Cache.BlockSize = blockSize
		few = slices.DeleteFunc(all, func(q legacy.Request) bool { return q.Output != nil })
		all = few
		states = prefixed(states, prefill, 1024/blockSize)
	case "session_aware", "sticky":
		states = bindings(states, prefill)
	}
	if s.stateful() {
		few = slices.DeleteFunc(few, func(q legacy.Request) bool { return q.TTFT != nil || q.TPS != nil })
	}
	if s.thin != nil {
		all, few, states = some(s.thin, all), some(s.thin, few), some(s.thin, states)
	}
	for i, w := range states {
		if len(s.problems) >= maxProblems {
			return
		}
		qs := turn(few, i)
		if i < 3 {
			qs = all
		}
		if s.stateful() {
			s.sequences(t, w, turn(few, i))
		} else {
			s.single(t, w, qs)
		}
	}
}

// turn is a third of many requests, and another one in each world.
func turn(qs []legacy.Request, world int) (out []legacy.Request) {
	const many = 12
	for i, q := range qs {
		if len(qs) < many || i%3 == world%3 {
			out = append(out, q)
		}
	}
	return out
}

// some draws a few of many.
func some[T any](r *rand.Rand, all []T) []T {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), 12)]
}

// stateful reports whether a pick depends on the picks before, other than in
// which of several equal engines it takes.
func (s *subject) stateful() bool {
	return slices.Contains([]string{"round_robin", "session_aware", "sticky"}, s.router.Policy)
}

// at is the older router in a world.
func (s *subject) at(w oldWorld) *legacy.Router {
	r := *s.router
	r.Loads, r.Fleet, r.Cache.Blocks = w.loads, make(map[legacy.Stage][]string), w.blocks
	for _, stage := range []legacy.Stage{legacy.Prefill, legacy.Decode} {
		r.Fleet[stage] = slices.DeleteFunc(s.urls(stage), func(e string) bool { return slices.Contains(w.down, e) })
	}
	if w.bound != "" {
		r.Bound = map[string]string{theKey: w.bound}
	}
	return &r
}

// The draws that show what may be picked: few when all of it was seen.
const (
	fewDraws, mostDraws = 12, 96
	fewRuns, mostRuns   = 3, 48
)

// look says when it is worth a look whether all was seen: less and less often.
func look(n, few int) bool {
	for n > few && n%2 == 0 {
		n /= 2
	}
	return n == few
}

// most is how many runs may be needed: few without anything random.
func (s *subject) most() int {
	if s.router.Policy == "round_robin" && !s.router.PD {
		return fewRuns
	}
	return mostRuns
}

// single decides each request by itself, again and again.
func (s *subject) single(t *testing.T, w oldWorld, qs []legacy.Request) {
	sim := s.simulation(t, w, 1)
	defer sim.Close()
	for _, q := range qs {
		p := point{Router: s.at(w), known: s.known, steps: []legacy.Request{q}}
		var runs [][]picked
		for n := range mostDraws {
			if look(n, fewDraws) && p.agrees(runs, nil, 1) {
				break
			}
			runs = append(runs, []picked{s.decide(t, sim, q)})
		}
		s.judge(w, &p, runs)
	}
}

// sequences decides requests of one or two kinds one after the other, with keys
// that come back.
func (s *subject) sequences(t *testing.T, w oldWorld, qs []legacy.Request) {
	for i := range qs {
		a, b := qs[i], qs[(i+1)%len(qs)]
		keyed := func(q legacy.Request, key string) legacy.Request {
			q.Key = key
			return q
		}
		p := point{Router: s.at(w), known: s.known, steps: []legacy.Request{
			keyed(a, theKey), keyed(a, theKey), keyed(b, theKey), keyed(a, "j"), keyed(b, "j"), keyed(a, ""), keyed(a, theKey),
		}}
		var runs [][]picked
		for n := range s.most() {
			if look(n, fewRuns) && p.agrees(runs, nil, 1) {
				break
			}
			sim := s.simulation(t, w, uint64(n))
			var run []picked
			for _, q := range p.steps {
				run = append(run, s.decide(t, sim, q))
			}
			sim.Close()
			runs = append(runs, run)
		}
		s.judge(w, &p, runs)
	}
}

func (s *subject) simulation(t *testing.T, w oldWorld, seed uint64) *simulate.Simulation {
	t.Helper()
	sim, err := simulate.New(s.body, w.simulated(s.router), seed)
	if err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	return sim
}

func (s *subject) decide(t *testing.T, sim *simulate.Simulation, q legacy.Request) picked {
	t.Helper()
	d, err := sim.Decide(t.Context(), simulated(s.router, q))
	switch {
	case err != nil:
		t.Fatal(err)
	case d.Plain != nil:
		return picked{prefill: d.Plain.Engine}
	case d.Prefill != nil && d.Decode != nil:
		return picked{d.Prefill.Engine, d.Decode.Engine}
	}
	return picked{}
}

// judge compares what was picked with the older router, and finds the causes of a
// difference. Where there is none the changes that apply must make none.
func (s *subject) judge(w oldWorld, p *point, runs [][]picked) {
	s.points++
	problem := func(format string, args ...any) {
		s.problems = append(s.problems, fmt.Sprintf("%s: %s\n", w.name, p.text(runs))+fmt.Sprintf(format, args...))
	}
	rows := p.applying(s.rows)
	equal := p.agrees(runs, nil, enough)
	switch {
	case equal && len(rows) == 0:
		return
	case !p.agrees(runs, rows, enough):
		problem("the rows that apply, %q, do not explain it", rows)
		return
	case equal:
		return
	}
	for _, row := range p.needed(rows, runs) {
		s.caused[row]++
		if !s.stated[row] {
			problem("is due to the row %q, which the report of the migration does not state", row)
		}
	}
}

// text shows both sides of a point.
func (p *point) text(runs [][]picked) string {
	var b strings.Builder
	r := *p.Router
	for i, q := range p.steps {
		fmt.Fprintf(&b, "input %d", q.Input)
		if q.Output != nil {
			fmt.Fprintf(&b, ", output %d", *q.Output)
		}
		if q.TTFT != nil {
			fmt.Fprintf(&b, ", ttft %d", *q.TTFT)
		}
		if q.TPS != nil {
			fmt.Fprintf(&b, ", tps %g", *q.TPS)
		}
		outcomes := r.Select(q)
		seen := make(map[picked]bool)
		for _, run := range runs {
			seen[run[i]] = true
		}
		fmt.Fprintf(&b, ", key %q: before %v, now %v\n", q.Key, outcomes, seen)
		r.Follow(outcomes[0])
	}
	return b.String()
}
