package policy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/state/load"
)

// answers is a prefix source of a given answer.
type answers struct {
	match  policy.PrefixMatch
	depths []uint32 // by candidate
	err    error
}

func (a *answers) Match(_ context.Context, _ *policy.Request, _ []*fleet.Engine, depths []uint32) (policy.PrefixMatch, error) {
	copy(depths, a.depths)
	return a.match, a.err
}

func hit(blocks uint32, depths ...uint32) *answers {
	return &answers{match: policy.PrefixMatch{Outcome: policy.PrefixHit, Blocks: blocks}, depths: depths}
}

// tuning are the defaults, but for the least match.
func tuning() policy.CacheTuning {
	return policy.CacheTuning{
		MinMatched: 1, CandidateMin: 8, CandidateRatio: 0.05, CandidateMax: 32, SwitchMargin: 1024,
		Guard: true, GuardTokens: 1024, GuardFactor: 1.5,
	}
}

func cacheAware(t testing.TB, o policy.CacheOptions) *policy.CacheAware {
	t.Helper()
	o.Loads = frozen()
	if o.Fallback == nil {
		o.Fallback = first{}
	}
	p, err := policy.NewCacheAware(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(input int64) *policy.Request {
	return &policy.Request{Model: "m", Stage: fleet.Plain, Input: input}
}

func TestMissAndUnavailableAreToldApart(t *testing.T) {
	all := plainEngines(t, 2)
	f := func(a *answers, outcome policy.CacheOutcome, lookup, why string) {
		t.Helper()
		counters := new(policy.CacheCounters)
		p := cacheAware(t, policy.CacheOptions{Prefixes: a, Tuning: tuning(), Counters: counters})
		req := request(8)
		req.Trace = new(policy.Trace)
		got, err := p.Pick(t.Context(), all, req)
		if err != nil || got.Engine != all[0] || got.Reason != policy.ReasonCacheMiss {
			t.Fatalf("got %v, %v", got, err)
		}
		if c := req.Trace.Cache; c.Outcome != outcome || c.Lookup != lookup || c.Why != why {
			t.Errorf("trace %+v", c)
		}
		if counters.Misses.Load()+2*counters.Unavailable.Load() != map[policy.CacheOutcome]uint64{policy.CacheMiss: 1, policy.CacheUnavailable: 2}[outcome] {
			t.Errorf("counted %d misses, %d unavailable", counters.Misses.Load(), counters.Unavailable.Load())
		}
	}
	f(&answers{}, policy.CacheMiss, "miss", "")
	f(hit(8), policy.CacheMiss, "hit", "")
	f(&answers{match: policy.PrefixMatch{Outcome: policy.PrefixUnavailable, Why: "timeout"}}, policy.CacheUnavailable, "unavailable", "timeout")
	// Depths without a hit are not to be trusted.
	f(&answers{depths: []uint32{0, 8}, match: policy.PrefixMatch{Blocks: 8}}, policy.CacheMiss, "miss", "")
	f(hit(0, 0, 8), policy.CacheMiss, "hit", "")
}

// slow is a source whose answer takes a while.
type slow struct {
	answers
	meanwhile func()
}

func (s *slow) Match(ctx context.Context, req *policy.Request, candidates []*fleet.Engine, depths []uint32) (policy.PrefixMatch, error) {
	s.meanwhile()
	return s.answers.Match(ctx, req, candidates, depths)
}

// TestLoadIsReadAfterTheLookup: a report that grew stale during the lookup does not
// count, and one that came does.
func TestLoadIsReadAfterTheLookup(t *testing.T) {
	f := func(before, during *fleet.Load, want policy.Reason) {
		t.Helper()
		all := plainEngines(t, 2)
		now := time.Unix(1000, 0)
		set := func(l *fleet.Load, age time.Duration) {
			if l != nil {
				l.CapturedAt = now.Add(-age)
				all[0].SetLoad(l)
			}
		}
		set(before, 4*time.Second)
		limits := tuning()
		limits.QueueLimit = policy.Max(4)
		p, err := policy.NewCacheAware(policy.CacheOptions{
			Loads:    load.Reader{Now: func() time.Time { return now }},
			Prefixes: &slow{*hit(8, 8, 0), func() { now = now.Add(2 * time.Second); set(during, 0) }},
			Fallback: first{}, Tuning: limits,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Pick(t.Context(), all, request(8)); err != nil || got.Reason != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
	f(&fleet.Load{Waiting: 9}, nil, policy.ReasonCache)
	f(nil, &fleet.Load{Waiting: 9}, policy.ReasonCacheMiss)
	f(&fleet.Load{Waiting: 9}, &fleet.Load{Waiting: 3}, policy.ReasonCache)
}

func TestLookupErrorsStopRouting(t *testing.T) {
	all := plainEngines(t, 2)
	broken := errors.New("the query is malformed")
	p := cacheAware(t, policy.CacheOptions{Prefixes: &answers{err: broken}, Tuning: tuning()})
	if _, err := p.Pick(t.Context(), all, request(8)); kindOf(err) != policy.InvalidSignal {
		t.Errorf("got %v", err)
	}
	own := &policy.Error{Kind: policy.InvalidConfiguration}
	p = cacheAware(t, policy.CacheOptions{Prefixes: &answers{err: own}, Tuning: tuning()})
	if _, err := p.Pick(t.Context(), all, request(8)); err != own {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p = cacheAware(t, policy.CacheOptions{Prefixes: &answers{err: ctx.Err()}, Tuning: tuning()})
	if _, err := p.Pick(ctx, all, request(8)); !errors.Is(err, context.Canceled) || kindOf(err) != 0 {
		t.Errorf("got %v", err)
	}
}

func TestForeignFallbackIsRefused(t *testing.T) {
	all, other := plainEngines(t, 2), plainEngines(t, 2)
	p := cacheAware(t, policy.CacheOptions{Prefixes: &answers{}, Fallback: foreign{other[0]}, Tuning: tuning()})
	if _, err := p.Pick(t.Context(), all, request(8)); kindOf(err) != policy.OutsideCandidates {
		t.Errorf("got %v", err)
	}
}

func TestSupports(t *testing.T) {
	cached := cacheAware(t, policy.CacheOptions{Prefixes: &answers{}, Tuning: tuning()})
	f := func(p policy.Policy, stage fleet.Role, want policy.Kind) {
		t.Helper()
		if got := kindOf(policy.Supports(p, stage)); got != want {
			t.Errorf("%T at %s: got %s, want %s", p, stage, got, want)
		}
	}
	f(cached, fleet.Plain, 0)
	f(cached, fleet.Prefill, 0)
	f(cached, fleet.Decode, policy.InvalidConfiguration)
	f(&policy.Sticky{Fallback: cached}, fleet.Decode, policy.InvalidConfiguration)
	f(&policy.SessionAware{Fallback: cached}, fleet.Prefill, 0)
	f(&policy.SessionAware{Fallback: &policy.Random{}}, fleet.Decode, 0)
	f(&policy.RoundRobin{}, fleet.Decode, 0)
}

func TestRequiredParts(t *testing.T) {
	f := func(o policy.CacheOptions) {
		t.Helper()
		if _, err := policy.NewCacheAware(o); kindOf(err) != policy.InvalidConfiguration {
			t.Errorf("got %v", err)
		}
	}
	f(policy.CacheOptions{Tuning: tuning(), Fallback: first{}})
	f(policy.CacheOptions{Tuning: tuning(), Prefixes: &answers{}})
	f(policy.CacheOptions{Prefixes: &answers{}, Fallback: first{}})
}

// TestHugeCountsDoNotOverflow: the product of tokens and blocks saturates, which
// only understates a match.
func TestHugeCountsDoNotOverflow(t *testing.T) {
	all := plainEngines(t, 2)
	tune := tuning()
	tune.SwitchMargin = math.MaxInt64
	p := cacheAware(t, policy.CacheOptions{Prefixes: hit(math.MaxUint32, 0, math.MaxUint32), Tuning: tune})
	req := request(math.MaxInt64)
	req.Trace = new(policy.Trace)
	got, err := p.Pick(t.Context(), all, req)
	if err != nil || got.Engine != all[1] || got.Reason != policy.ReasonCache {
		t.Fatalf("got %v, %v", got, err)
	}
	if h := req.Trace.Cache.Holders[0]; h.Matched+h.Uncached != math.MaxInt64 || h.Matched != math.MaxUint64/math.MaxUint32 {
		t.Errorf("holder %+v", h)
	}
}

// TestAgainstTheRules compares picks in random groups with a plain reading of
// the rules, without scratch space or shortcuts.
func TestAgainstTheRules(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := randomCase(t, r)
		p := cacheAware(t, policy.CacheOptions{Admission: c.refused, Prefixes: hit(16, c.depths...), Tuning: c.tuning})
		got, err := p.Pick(t.Context(), c.all, request(c.input))
		text := fmt.Sprint(kindOf(err))
		if err == nil {
			text = got.Engine.ID() + " " + string(got.Reason)
		}
		if want := c.rules(); text != want {
			t.Fatalf("seed %d: got %q, want %q", seed, text, want)
		}
	}
}

// ruleCase is a random group; queues and floors are optional.
type ruleCase struct {
	all          []*fleet.Engine
	depths       []uint32
	refused      full
	input        int64
	tuning       policy.CacheTuning
	limit, floor *uint64
	seen         []load.Observation
}

func randomCase(t *testing.T, r *rand.Rand) *ruleCase {
	c := &ruleCase{all: plainEngines(t, 1+r.IntN(12)), refused: make(full), input: int64(1 + r.IntN(64)), tuning: tuning()}
	c.tuning.MinMatched, c.tuning.MinRatio = int64(r.IntN(12)), float64(r.IntN(2))*r.Float64()/2
	c.tuning.CandidateMin = 1 + r.IntN(3)
	c.tuning.CandidateMax = c.tuning.CandidateMin + r.IntN(4)
	c.tuning.CandidateRatio = float64(r.IntN(4)) / 4
	c.tuning.SwitchMargin, c.tuning.Guard, c.tuning.GuardTokens = int64(r.IntN(24)), r.IntN(3) > 0, uint64(r.IntN(8))
	if r.IntN(3) == 0 {
		c.tuning.GuardMS = policy.Above(float64(r.IntN(4)))
	}
	if r.IntN(3) > 0 {
		c.limit = new(uint64(1 + r.IntN(4)))
		c.tuning.QueueLimit = policy.Max(*c.limit)
		if r.IntN(2) == 0 {
			c.floor = new(uint64(1 + r.IntN(int(*c.limit))))
			c.tuning.QueueFloor = policy.Max(*c.floor)
		}
	}
	silent, timed := r.IntN(3) == 0, r.IntN(2) == 0
	for _, e := range c.all {
		c.depths = append(c.depths, uint32(max(r.IntN(24)-6, 0)))
		c.refused[e] = r.IntN(4) == 0
		for range r.IntN(3) {
			if _, err := e.Lease(epoch()); err != nil {
				t.Fatal(err)
			}
		}
		if l := randomLoad(r, timed); !silent || r.IntN(3) > 0 {
			e.SetLoad(l)
		}
		c.seen = append(c.seen, frozen().Observe(e, epoch()))
	}
	return c
}

func randomLoad(r *rand.Rand, timed bool) *fleet.Load {
	return &fleet.Load{CapturedAt: epoch(), Native: r.IntN(8) > 0, Waiting: uint64(r.IntN(6)), WaitingUncached: uint64(r.IntN(20)),
		Running: uint64(r.IntN(2)), Capacity: 100, MaxRunning: 10, QueueMS: float64(r.IntN(12)), HasQueue: timed && r.IntN(8) > 0}
}

// owner is a usable holder of the rules.
type owner struct {
	i        int
	uncached int64
}

// rules decides by the numbered rules of the cache-aware policy.
func (c *ruleCase) rules() string {
	var hits []owner
	for i, d := range c.depths {
		matched := c.input * int64(min(d, 16)) / 16
		if d > 0 && matched >= c.tuning.MinMatched && float64(matched)/float64(c.input) >= c.tuning.MinRatio {
			hits = append(hits, owner{i, c.input - matched})
		}
	}
	c.sort(hits)
	n := len(c.all)
	limit := min(n, c.tuning.CandidateMax, max(c.tuning.CandidateMin, int(math.Ceil(c.tuning.CandidateRatio*float64(n)))))
	hits = hits[:min(len(hits), limit)]
	var evaluated, gated []owner
	for _, h := range hits {
		if c.passes(h.i) {
			evaluated = append(evaluated, h)
		} else {
			gated = append(gated, h)
		}
	}
	why := policy.ReasonCache
	if len(evaluated) == 0 && len(gated) > 0 && c.floor == nil && !slices.ContainsFunc(c.indexes(), c.passes) {
		evaluated, why = gated, policy.ReasonPinned
	}
	if in := c.admitted(evaluated); len(in) > 0 {
		return c.say(c.winner(evaluated, in), why)
	}
	rejected := len(evaluated) > 0
	if c.floor != nil && !slices.ContainsFunc(c.indexes(), func(i int) bool { l := c.seen[i].Load; return l != nil && l.Waiting < *c.floor }) {
		if in := c.admitted(gated); len(in) > 0 {
			by := c.source(gated)
			return c.say(slices.MinFunc(in, func(a, b owner) int { return c.pressure(by, a, b) }), policy.ReasonPinned)
		}
		rejected = rejected || len(gated) > 0
	}
	if rejected {
		return policy.NoAdmissibleEngine.String()
	}
	return c.fallback()
}

func (c *ruleCase) fallback() string {
	pool := slices.DeleteFunc(c.indexes(), func(i int) bool { return !c.passes(i) })
	if len(pool) == 0 {
		pool = c.indexes()
	}
	if c.refused[c.all[pool[0]]] {
		return policy.AdmissionRejected.String()
	}
	return c.say(owner{i: pool[0]}, policy.ReasonCacheMiss)
}

func (c *ruleCase) winner(evaluated, in []owner) owner {
	by := c.source(evaluated)
	guarded := c.tuning.Guard && by >= load.Native
	least := slices.MinFunc(in, func(a, b owner) int { return cmp.Compare(a.uncached, b.uncached) })
	winner := least
	for _, h := range in {
		if h.uncached > least.uncached+c.tuning.SwitchMargin {
			continue
		}
		switch {
		case guarded && c.material(winner, h):
			winner = h
		case guarded && c.material(h, winner):
		case c.rank(by, winner, h) > 0:
			winner = h
		}
	}
	return winner
}

func (c *ruleCase) material(a, b owner) bool {
	l, r := c.seen[a.i].Load, c.seen[b.i].Load
	if c.tuning.GuardMS != (policy.Threshold{}) && l.HasQueue && r.HasQueue {
		for ms := range 4 {
			if c.tuning.GuardMS == policy.Above(float64(ms)) {
				return l.QueueMS-r.QueueMS > float64(ms) && l.QueueMS > 1.5*r.QueueMS
			}
		}
	}
	return int64(l.WaitingUncached)-int64(r.WaitingUncached) > int64(c.tuning.GuardTokens) &&
		float64(l.WaitingUncached) > 1.5*float64(r.WaitingUncached)
}

func (c *ruleCase) sort(set []owner) {
	by := c.source(set)
	slices.SortFunc(set, func(a, b owner) int { return c.rank(by, a, b) })
}

func (c *ruleCase) rank(by load.Source, a, b owner) int {
	return cmp.Or(cmp.Compare(a.uncached, b.uncached), c.pressure(by, a, b))
}

func (c *ruleCase) pressure(by load.Source, a, b owner) int {
	return cmp.Or(load.Compare(fleet.Plain, by, &c.seen[a.i], &c.seen[b.i]), cmp.Compare(c.all[a.i].ID(), c.all[b.i].ID()))
}

func (c *ruleCase) source(set []owner) load.Source {
	by := load.QueueTime
	for _, h := range set {
		by = min(by, c.seen[h.i].Best(fleet.Plain))
	}
	return by
}

func (c *ruleCase) passes(i int) bool {
	l := c.seen[i].Load
	return c.limit == nil || l == nil || l.Waiting < *c.limit
}

func (c *ruleCase) indexes() []int {
	out := make([]int, len(c.all))
	for i := range out {
		out[i] = i
	}
	return out
}

func (c *ruleCase) admitted(set []owner) (in []owner) {
	for _, h := range set {
		if !c.refused[c.all[h.i]] {
			in = append(in, h)
		}
	}
	return in
}

func (c *ruleCase) say(h owner, why policy.Reason) string { return c.all[h.i].ID() + " " + string(why) }

// loadedGroup is 64 engines that report and hold something each.
func loadedGroup(t testing.TB) ([]*fleet.Engine, *policy.CacheAware) {
	t.Helper()
	all := plainEngines(t, 64)
	a := hit(512)
	for i, e := range all {
		nativeReport(e, uint64(i*13%6), uint64(i*97%1013))
		a.depths = append(a.depths, uint32(1+i*37%512))
	}
	tune := tuning()
	tune.MinMatched, tune.QueueLimit = 1024, policy.Max(5)
	p := cacheAware(t, policy.CacheOptions{
		Prefixes: a, Tuning: tune, Counters: new(policy.CacheCounters),
		Admission: &policy.Limits{Running: policy.Max(64), KVTokens: policy.Max(1 << 20)},
		Fallback:  &policy.PowerOfTwo{Loads: frozen()},
	})
	return all, p
}

func TestACachePickAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool keeps nothing for sure")
	}
	all, p := loadedGroup(t)
	ctx, req := t.Context(), request(32768)
	if n := testing.AllocsPerRun(200, func() {
		if got, err := p.Pick(ctx, all, req); err != nil || got.Reason != policy.ReasonCache {
			t.Fatal(got, err)
		}
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCacheAware(b *testing.B) {
	all, p := loadedGroup(b)
	ctx, req := b.Context(), request(32768)
	b.Cleanup(func() { b.ReportMetric(20000, "budget-ns") })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Pick(ctx, all, req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCacheAwareMiss(b *testing.B) {
	all := plainEngines(b, 64)
	for i, e := range all {
		nativeReport(e, uint64(i%7), 10)
	}
	tune := tuning()
	tune.QueueLimit = policy.Max(5)
	p := cacheAware(b, policy.CacheOptions{Prefixes: &answers{}, Tuning: tune, Fallback: &policy.PowerOfTwo{Loads: frozen()}})
	ctx, req := b.Context(), request(32768)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Pick(ctx, all, req); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNothingIsKeptBetweenPicks: scratch space is used again, what it held is
// not.
func TestNothingIsKeptBetweenPicks(t *testing.T) {
	all := plainEngines(t, 3)
	a := hit(8, 0, 8)
	tune := tuning()
	tune.QueueLimit = policy.Max(4)
	p := cacheAware(t, policy.CacheOptions{Prefixes: a, Tuning: tune})
	f := func(candidates []*fleet.Engine, want *fleet.Engine, why policy.Reason) {
		t.Helper()
		// The pool may drop its space at any time, so one round proves little.
		for range 50 {
			got, err := p.Pick(t.Context(), candidates, request(8))
			if err != nil || got.Engine != want || got.Reason != why {
				t.Fatalf("got %v, %v, want %s %s", got, err, want.ID(), why)
			}
		}
	}
	f(all, all[1], policy.ReasonCache)
	nativeReport(all[1], 4, 0)
	f(all, all[0], policy.ReasonCacheMiss)
	nativeReport(all[1], 3, 0)
	f(all, all[1], policy.ReasonCache)
	a.depths = nil
	f(all, all[0], policy.ReasonCacheMiss)
	f(all[2:], all[2], policy.ReasonCacheMiss)
	a.depths = []uint32{8}
	f(all[2:], all[2], policy.ReasonCache)
	f(all[1:], all[1], policy.ReasonCache)
}
