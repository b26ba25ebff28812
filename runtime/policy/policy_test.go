package policy_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/state/load"
)

func now() time.Time { return time.Unix(1_000_000, 0) }

func reader() load.Reader { return load.Reader{Now: now} }

// engines makes n plain engines e0000, e0001, ...
func engines(t testing.TB, n int) []*fleet.Engine {
	t.Helper()
	var f fleet.Fleet
	t.Cleanup(f.Close)
	specs := make([]fleet.Spec, n)
	for i := range specs {
		id := fmt.Sprintf("e%04d", i)
		specs[i] = fleet.Spec{ID: id, URL: "http://" + id, Role: fleet.Plain}
	}
	if err := f.Apply("m", fleet.BreakerConfig{Threshold: 3, CoolDown: time.Hour}, specs); err != nil {
		t.Fatal(err)
	}
	return f.Engines("m")
}

func hold(t testing.TB, e *fleet.Engine, n int) {
	t.Helper()
	for range n {
		if _, err := e.Lease(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}

// report publishes a fresh native report.
func report(e *fleet.Engine, running, waiting uint64) {
	e.SetLoad(&fleet.Load{
		CapturedAt: now(), Running: running, Waiting: waiting,
		Native: true, WaitingUncached: waiting, Used: running, Total: running, Capacity: 1000, MaxRunning: 100,
	})
}

func pick(t *testing.T, p policy.Policy, candidates []*fleet.Engine, trace *policy.Trace) string {
	t.Helper()
	got, err := p.Pick(t.Context(), candidates, &policy.Request{Model: "m", Stage: fleet.Plain, Input: 1, Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	return got.Engine.ID() + " " + string(got.Reason)
}

func TestReasons(t *testing.T) {
	one := engines(t, 1)
	for _, p := range []policy.Policy{
		&policy.PowerOfTwo{Loads: reader()}, &policy.PowerOfTwo{Loads: reader(), Choices: 5},
		&policy.Random{Loads: reader()}, &policy.RoundRobin{Loads: reader()}, &policy.LoadBased{Loads: reader()},
	} {
		want := map[string]policy.Reason{
			"*policy.PowerOfTwo": policy.ReasonPowerOfTwo, "*policy.Random": policy.ReasonRandom,
			"*policy.RoundRobin": policy.ReasonRoundRobin, "*policy.LoadBased": policy.ReasonLoadBased,
		}[fmt.Sprintf("%T", p)]
		if got := pick(t, p, one, nil); got != "e0000 "+string(want) {
			t.Errorf("%T picked %q", p, got)
		}
	}
}

// TestZeroPolicies: the zero value of each admits, and reads the real clock.
func TestZeroPolicies(t *testing.T) {
	three := engines(t, 3)
	for _, p := range []policy.Policy{new(policy.PowerOfTwo), new(policy.Random), new(policy.RoundRobin), new(policy.LoadBased)} {
		for range 10 {
			pick(t, p, three, nil)
		}
	}
}

// uniform checks counts of equally likely outcomes by the chi-squared statistic;
// the bound is far above the 99.99th percentile, and the seed is fixed.
func uniform(t *testing.T, what string, counts map[string]int, outcomes int) {
	t.Helper()
	if len(counts) != outcomes {
		t.Errorf("%s: %d outcomes of %d", what, len(counts), outcomes)
		return
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	expected, chi := float64(total)/float64(outcomes), 0.0
	for _, n := range counts {
		chi += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	df := float64(outcomes - 1)
	if bound := df + 5*math.Sqrt(2*df) + 5; chi > bound {
		t.Errorf("%s: chi squared %.1f, over %.1f: %v", what, chi, bound, counts)
	}
}

func seeded() func(int) int { return rand.New(rand.NewPCG(7, 11)).IntN }

func TestSamplingIsUniform(t *testing.T) {
	six := engines(t, 6)
	const picks = 30_000
	run := func(what string, p policy.Policy, outcomes int, outcome func(*policy.Trace, string) string) {
		t.Helper()
		counts := make(map[string]int)
		for range picks {
			var trace policy.Trace
			picked := pick(t, p, six, &trace)
			counts[outcome(&trace, picked)]++
		}
		uniform(t, what, counts, outcomes)
	}
	compared := func(trace *policy.Trace, _ string) string {
		var ids []string
		for _, c := range trace.Compared {
			ids = append(ids, c.Engine)
		}
		return strings.Join(ids, " ")
	}
	picked := func(_ *policy.Trace, picked string) string { return picked }
	run("random", &policy.Random{Loads: reader(), IntN: seeded()}, 6, picked)
	run("ordered pairs", &policy.PowerOfTwo{Loads: reader(), IntN: seeded()}, 30, compared)
	run("subsets of 3", &policy.PowerOfTwo{Loads: reader(), Choices: 3, IntN: seeded()}, 20, compared)
	run("one choice", &policy.PowerOfTwo{Loads: reader(), Choices: 1, IntN: seeded()}, 6, picked)
	run("ties of 2", &policy.PowerOfTwo{Loads: reader(), IntN: seeded()}, 6, picked)
	run("ties of 3", &policy.PowerOfTwo{Loads: reader(), Choices: 3, IntN: seeded()}, 6, picked)
	run("ties of all", &policy.PowerOfTwo{Loads: reader(), Choices: 99, IntN: seeded()}, 6, picked)
}

// TestTwoChoicesOfTwo: with two candidates both are compared, and the first
// sampled wins a tie.
func TestTwoChoicesOfTwo(t *testing.T) {
	two := engines(t, 2)
	for first, want := range []string{"e0000", "e0001"} {
		p := &policy.PowerOfTwo{Loads: reader(), IntN: func(n int) int {
			if n == 2 {
				return first
			}
			return 0
		}}
		if got := pick(t, p, two, nil); got != want+" power_of_two" {
			t.Errorf("first sampled %s, picked %s", want, got)
		}
	}
}

// TestPowerOfAllIsMinimum holds it against a scan, in random worlds.
func TestPowerOfAllIsMinimum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		list := engines(t, 1+rnd.IntN(9))
		complete := rnd.IntN(2) == 0
		for _, e := range list {
			hold(t, e, rnd.IntN(3))
			if complete || rnd.IntN(4) > 0 {
				report(e, uint64(rnd.IntN(3)), uint64(rnd.IntN(3)))
			} else {
				complete = false
			}
		}
		native := true
		for _, e := range list {
			native = native && e.Load() != nil
		}
		key := func(e *fleet.Engine) string {
			if !native {
				return fmt.Sprintf("%06d", e.Inflight())
			}
			return fmt.Sprintf("%06d %06d %06d", e.Load().Waiting, e.Load().Running, e.Inflight())
		}
		best := key(list[0])
		for _, e := range list {
			best = min(best, key(e))
		}
		p := &policy.PowerOfTwo{Loads: reader(), Choices: len(list) + 1, IntN: rnd.IntN}
		got, err := p.Pick(t.Context(), list, &policy.Request{Stage: fleet.Plain})
		if err != nil {
			t.Fatal(err)
		}
		if key(got.Engine) != best {
			t.Fatalf("picked %s with key %s, the least is %s", got.Engine.ID(), key(got.Engine), best)
		}
	}
}

func TestTraceOfPowerOfTwo(t *testing.T) {
	two := engines(t, 2)
	report(two[0], 5, 9)
	hold(t, two[1], 3)
	var trace policy.Trace
	p := &policy.PowerOfTwo{Loads: reader(), Admission: policy.Limits{Inflight: policy.Max(4)}, IntN: func(int) int { return 0 }}
	pick(t, p, two, &trace)
	if trace.Source != "router_local" || len(trace.Compared) != 2 {
		t.Fatalf("trace is %+v", trace)
	}
	a, b := trace.Compared[0], trace.Compared[1]
	if a.Engine != "e0000" || a.Inflight != 0 || *a.Running != 5 || *a.Waiting != 9 || *a.WaitingUncached != 9 || *a.Capacity != 1000 || a.QueueMS != nil {
		t.Errorf("first compared is %+v", a)
	}
	if b.Engine != "e0001" || b.Inflight != 3 || b.Running != nil || b.Used != nil {
		t.Errorf("second compared is %+v", b)
	}
	if len(trace.Admission) != 1 || trace.Admission[0].Engine != "e0000" || trace.Admission[0].Limit != "" || *trace.Admission[0].Running != 5 {
		t.Errorf("admission is %+v", trace.Admission)
	}
	report(two[1], 5, 1)
	trace = policy.Trace{}
	if got := pick(t, p, two, &trace); got != "e0001 power_of_two" || trace.Source != "native_queue_tokens" {
		t.Errorf("picked %s by %s", got, trace.Source)
	}
}

func TestTraceOfLoadBased(t *testing.T) {
	two := engines(t, 2)
	p := &policy.LoadBased{Loads: reader()}
	hold(t, two[0], 2)
	var trace policy.Trace
	pick(t, p, two, &trace)
	if trace.Source != "router_local" || *trace.Compared[0].Depth != 2 || *trace.Compared[1].Depth != 0 {
		t.Errorf("trace is %+v", trace)
	}
	report(two[0], 1, 1)
	report(two[1], 4, 3)
	if _, err := two[0].Lease(now()); err != nil {
		t.Fatal(err)
	}
	trace = policy.Trace{}
	if got := pick(t, p, two, &trace); got != "e0000 load_based" {
		t.Errorf("picked %s", got)
	}
	if trace.Source != "reported_depth" || *trace.Compared[0].Depth != 3 || *trace.Compared[1].Depth != 7 {
		t.Errorf("trace is %+v", trace)
	}
}

// TestDepthSaturates: sums of hostile reports do not wrap to the smallest depth.
func TestDepthSaturates(t *testing.T) {
	two := engines(t, 2)
	report(two[0], math.MaxUint64, 2)
	report(two[1], 100, 100)
	if got := pick(t, &policy.LoadBased{Loads: reader()}, two, nil); got != "e0001 load_based" {
		t.Errorf("picked %s", got)
	}
}

// TestLoadBasedTieBreaks: equal depth goes to fewer requests in flight, and the
// rest is rotated over.
func TestLoadBasedTieBreaks(t *testing.T) {
	four := engines(t, 4)
	for _, e := range four {
		report(e, 1, 1)
	}
	hold(t, four[0], 1)
	p := &policy.LoadBased{Loads: reader()}
	var got []string
	for range 4 {
		got = append(got, pick(t, p, four, nil)[:5])
	}
	if text := strings.Join(got, " "); text != "e0001 e0002 e0003 e0001" {
		t.Errorf("picked %s", text)
	}
}

// counting is an admission that counts and refuses.
type counting struct {
	calls int
	limit policy.Limit
	err   error
}

func (c *counting) Check(*fleet.Engine, policy.Metrics) (policy.Limit, error) {
	c.calls++
	return c.limit, c.err
}

// TestAdmissionIsAskedOnce by every policy, and a refusal names engine, limit
// and stage.
func TestAdmissionIsAskedOnce(t *testing.T) {
	list := engines(t, 5)
	broken := errors.New("broken")
	f := func(make func(policy.Admission) policy.Policy) {
		t.Helper()
		refuse, fail := &counting{limit: policy.MaxKVTokens}, &counting{err: broken}
		req := &policy.Request{Stage: fleet.Prefill, Trace: new(policy.Trace)}
		_, err := make(refuse).Pick(t.Context(), list, req)
		e, ok := errors.AsType[*policy.Error](err)
		if !ok || e.Kind != policy.AdmissionRejected || e.Stage != fleet.Prefill || len(e.Rejected) != 1 || e.Rejected[0].Limit != policy.MaxKVTokens {
			t.Errorf("%T: refusal is %v", make(nil), err)
		}
		if v := req.Trace.Admission; len(v) != 1 || v[0].Limit != policy.MaxKVTokens {
			t.Errorf("%T: traced %+v", make(nil), v)
		}
		if _, err := make(fail).Pick(t.Context(), list, req); !errors.Is(err, broken) {
			t.Errorf("%T: failure is %v", make(nil), err)
		}
		if refuse.calls != 1 || fail.calls != 1 {
			t.Errorf("%T: asked %d and %d times", make(nil), refuse.calls, fail.calls)
		}
	}
	f(func(a policy.Admission) policy.Policy { return &policy.PowerOfTwo{Loads: reader(), Admission: a} })
	f(func(a policy.Admission) policy.Policy {
		return &policy.PowerOfTwo{Loads: reader(), Admission: a, Choices: 4}
	})
	f(func(a policy.Admission) policy.Policy { return &policy.Random{Loads: reader(), Admission: a} })
	f(func(a policy.Admission) policy.Policy { return &policy.RoundRobin{Loads: reader(), Admission: a} })
	f(func(a policy.Admission) policy.Policy { return &policy.LoadBased{Loads: reader(), Admission: a} })
}

func TestErrorText(t *testing.T) {
	f := func(e policy.Error, want string) {
		t.Helper()
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
	f(policy.Error{Kind: policy.NoMatchingBucket}, "no_matching_bucket")
	f(policy.Error{Kind: policy.NoCandidates, Stage: fleet.Decode}, "no_candidates (decode)")
	f(policy.Error{Kind: policy.NoAdmissibleEngine, Stage: fleet.Plain, Rejected: []policy.Rejection{
		{Engine: "a", Limit: policy.MaxKVTokens}, {Engine: "b", Limit: policy.MaxInflightRequests},
	}}, "no_admissible_engine (plain): a at max_kv_tokens, b at max_inflight_requests")
	f(policy.Error{Kind: policy.InvalidSignal, Detail: "why"}, "invalid_signal: why")
	f(policy.Error{Kind: 99}, "unknown")
}

// TestFinal: only misses and rejections send a request to the next bucket.
func TestFinal(t *testing.T) {
	for k, want := range map[policy.Kind]bool{
		policy.NoMatchingBucket: true, policy.NoCandidates: false, policy.NoAdmissibleEngine: false, policy.AdmissionRejected: false,
		policy.InvalidSignal: true, policy.InvalidConfiguration: true, policy.OutsideCandidates: true,
	} {
		if k.Final() != want {
			t.Errorf("%s: final = %t", k, k.Final())
		}
	}
}

// TestConcurrentPicks: policies are shared by all requests. Round robin visits
// everyone equally often, whoever asks.
func TestConcurrentPicks(t *testing.T) {
	list := engines(t, 4)
	robin := &policy.RoundRobin{Loads: reader()}
	others := []policy.Policy{
		&policy.PowerOfTwo{Loads: reader()}, &policy.PowerOfTwo{Loads: reader(), Choices: 3},
		&policy.Random{Loads: reader()}, &policy.LoadBased{Loads: reader()},
	}
	var mu sync.Mutex
	counts := make(map[string]int)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 100 {
				req := &policy.Request{Stage: fleet.Plain}
				got, err := robin.Pick(t.Context(), list, req)
				if err != nil {
					t.Error(err)
					return
				}
				report(list[i%4], uint64(i), uint64(i))
				for _, p := range others {
					if _, err := p.Pick(t.Context(), list, req); err != nil {
						t.Error(err)
					}
				}
				mu.Lock()
				counts[got.Engine.ID()]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for id, n := range counts {
		if n != 200 {
			t.Errorf("round robin picked %s %d times of 200", id, n)
		}
	}
}

func TestRoundRobinWraps(t *testing.T) {
	list := engines(t, 3)
	p := new(policy.RoundRobin)
	var got []string
	for range 7 {
		got = append(got, pick(t, p, list, nil)[4:5])
	}
	if text := strings.Join(got, ""); text != "0120120" {
		t.Errorf("picked %s", text)
	}
}

// TestPicksAllocateNothing, with reports present and limits set.
func TestPicksAllocateNothing(t *testing.T) {
	limits := policy.Limits{Running: policy.Max(1000), Inflight: policy.Max(1000)}
	for _, n := range []int{1, 2, 64, 1000} {
		list := engines(t, n)
		for i, e := range list {
			report(e, uint64(i%7), uint64(i%5))
		}
		for _, p := range []policy.Policy{
			&policy.PowerOfTwo{Loads: reader(), Admission: limits}, &policy.PowerOfTwo{Loads: reader(), Admission: limits, Choices: 8},
			&policy.Random{Loads: reader(), Admission: limits}, &policy.RoundRobin{Loads: reader(), Admission: limits},
			&policy.LoadBased{Loads: reader(), Admission: limits},
		} {
			if _, pooled := p.(*policy.LoadBased); pooled && raceEnabled {
				continue // the race detector empties pools at random
			}
			req := &policy.Request{Model: "m", Stage: fleet.Plain, Input: 1}
			run := func() {
				if _, err := p.Pick(t.Context(), list, req); err != nil {
					t.Error(err)
				}
			}
			run() // scratch space of the first pick
			if allocs := testing.AllocsPerRun(100, run); allocs >= 1 {
				t.Errorf("%T over %d engines: %v allocations a pick", p, n, allocs)
			}
		}
	}
}
