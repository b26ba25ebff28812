package golden_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/state/load"
	"shunt/schema/plan"
)

// scenarioFile is a vector file of engines, events and picks.
type scenarioFile struct {
	About string     `json:"about"`
	Cases []scenario `json:"cases"`
}

// scenario is one world in which steps happen in order. Times are durations
// since the world began, which is also the time of picks until a step says now.
type scenario struct {
	ID        string       `json:"id"`
	Note      string       `json:"note"`
	Freshness string       `json:"freshness"`
	Engines   []engineSpec `json:"engines"`
	Policy    policySpec   `json:"policy"`
	Steps     []step       `json:"steps"`
}

// policySpec: Script replaces the limits by a scripted admission, which refuses
// with the limit of that name, or fails when it says error.
type policySpec struct {
	Type    string         `json:"type"`
	Choices int            `json:"choices"`
	Limits  plan.Admission `json:"limits"`
	Script  string         `json:"script"`
}

// step has one field set.
type step struct {
	Report  *reportStep  `json:"report"`
	Expect  *expectStep  `json:"expect"`
	Forget  string       `json:"forget"`
	Lease   *leaseStep   `json:"lease"`
	Release *leaseStep   `json:"release"`
	Now     string       `json:"now"`
	Pick    *pickStep    `json:"pick"`
	Load    *loadStep    `json:"load"`
	Compare *compareStep `json:"compare"`
	Known   *int         `json:"known"`
}

type expectStep struct {
	Engine string `json:"engine"`
	Ranks  []int  `json:"ranks"`
}

type leaseStep struct {
	Engine string `json:"engine"`
	Count  int    `json:"count"`
	// At, if set, takes timestamped slots.
	At string `json:"at"`
}

// reportStep: a report is native with total = used and 100 slots, unless it
// says basic or otherwise.
type reportStep struct {
	Engine string  `json:"engine"`
	Rank   int     `json:"rank"`
	At     string  `json:"at"`
	Run    uint64  `json:"run"`
	Wait   uint64  `json:"wait"`
	Used   uint64  `json:"used"`
	Cap    uint64  `json:"cap"`
	Basic  bool    `json:"basic"`
	Pend   uint64  `json:"pend"`
	Total  *uint64 `json:"total"`
	Slots  *uint64 `json:"slots"`
	Tokens uint64  `json:"tokens"`
	BusyUS uint64  `json:"busy_us"`
}

func runScenarios(t *testing.T, data []byte) (ran []string) {
	var file scenarioFile
	decode(t, data, &file)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
		ran = append(ran, c.ID)
	}
	return ran
}

func (c *scenario) run(t *testing.T) {
	t.Helper()
	w := newWorld(t, c.Engines)
	w.freshness = w.span(c.Freshness)
	p, err := newPicker(w, c.Policy)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range c.Steps {
		if err := s.run(w, p); err != nil {
			t.Errorf("step %d: %v", i+1, err)
		}
	}
}

func (s *step) run(w *world, p *picker) error {
	switch {
	case s.Report != nil:
		w.table.Put(w.engine(s.Report.Engine), s.Report.Rank, s.Report.report(), epoch().Add(w.span(s.Report.At)))
	case s.Expect != nil:
		for _, rank := range s.Expect.Ranks {
			w.table.Expect(w.engine(s.Expect.Engine), rank)
		}
	case s.Forget != "":
		w.table.Forget(w.engine(s.Forget))
	case s.Lease != nil:
		var at time.Time
		if s.Lease.At != "" {
			at = epoch().Add(w.span(s.Lease.At))
		}
		w.lease(s.Lease.Engine, s.Lease.Count, at)
	case s.Release != nil:
		w.release(s.Release.Engine, s.Release.Count)
	case s.Now != "":
		w.now = epoch().Add(w.span(s.Now))
	case s.Pick != nil:
		return s.Pick.run(w, p)
	case s.Load != nil:
		return s.Load.run(w)
	case s.Compare != nil:
		return s.Compare.run(w)
	case s.Known != nil:
		if got := w.table.Engines(); got != *s.Known {
			return fmt.Errorf("table knows %d engines, want %d", got, *s.Known)
		}
	default:
		return errors.New("empty step")
	}
	return nil
}

func (r *reportStep) report() load.Report {
	rep := load.Report{Running: r.Run, Waiting: r.Wait, Used: r.Used, Capacity: r.Cap}
	if r.Basic {
		return rep
	}
	rep.Extension = &load.Extension{
		WaitingUncached: r.Pend, Total: r.Used, MaxRunning: 100, PrefillTokens: r.Tokens, PrefillBusyUS: r.BusyUS,
	}
	if r.Total != nil {
		rep.Extension.Total = *r.Total
	}
	if r.Slots != nil {
		rep.Extension.MaxRunning = *r.Slots
	}
	return rep
}

// loadStep reads an engine's aggregate as a pick would. Want is "unknown" or
// words in the order of describe; only the named ones are compared.
type loadStep struct {
	Engine string `json:"engine"`
	Want   string `json:"want"`
}

func (s *loadStep) run(w *world) error {
	got := describe(w.reader().Observe(w.engine(s.Engine), w.now).Load)
	for word := range strings.FieldsSeq(s.Want) {
		if !slices.Contains(got, word) {
			return fmt.Errorf("engine %s: got %v, want %s", s.Engine, got, word)
		}
	}
	return nil
}

func describe(l *fleet.Load) []string {
	if l == nil {
		return []string{"unknown"}
	}
	out := []string{
		fmt.Sprintf("run+wait=%d", l.Running+l.Waiting), fmt.Sprintf("run=%d", l.Running), fmt.Sprintf("wait=%d", l.Waiting),
		fmt.Sprintf("captured=%s", l.CapturedAt.Sub(epoch())), fmt.Sprintf("native=%t", l.Native),
	}
	if !l.Native {
		return out
	}
	out = append(out, fmt.Sprintf("pend=%d", l.WaitingUncached), fmt.Sprintf("total=%d", l.Total), fmt.Sprintf("slots=%d", l.MaxRunning))
	if !l.HasQueue {
		return append(out, "queue=none")
	}
	return append(out, fmt.Sprintf("queue=%vms", l.QueueMS))
}

// compareStep compares two engines by the strongest signal that both have.
type compareStep struct {
	Stage string `json:"stage"`
	Left  string `json:"left"`
	Right string `json:"right"`
	Want  string `json:"want"`
}

func (s *compareStep) run(w *world) error {
	stage := w.role(s.Stage)
	l := w.reader().Observe(w.engine(s.Left), w.now)
	r := w.reader().Observe(w.engine(s.Right), w.now)
	got := [...]string{"less", "equal", "greater"}[1+load.Compare(stage, min(l.Best(stage), r.Best(stage)), &l, &r)]
	if got != s.Want {
		return fmt.Errorf("%s is %s than %s, want %s", s.Left, got, s.Right, s.Want)
	}
	return nil
}

// pickStep picks among all engines of model m, or those in From. A policy that
// draws at random is run with every possible sequence of draws; others are run
// Times times, once by default.
type pickStep struct {
	Stage string   `json:"stage"`
	From  []string `json:"from"`
	Times int      `json:"times"`
	// Want is what every pick gives.
	Want string `json:"want"`
	// Reaches are the engines that the picks give between them, sorted.
	Reaches []string `json:"reaches"`
	// Fails, with Rejected as "engine at limit", is how every pick fails.
	Fails    string   `json:"fails"`
	Rejected []string `json:"rejected"`
	// Metrics is what admission saw at every pick; Checks is how often it was
	// asked, once when absent.
	Metrics string `json:"metrics"`
	Checks  *int   `json:"checks"`
}

func (s *pickStep) run(w *world, p *picker) error {
	candidates := w.all()
	if s.From != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(e *fleet.Engine) bool { return !slices.Contains(s.From, e.ID()) })
	}
	stage := fleet.Plain
	if s.Stage != "" {
		stage = w.role(s.Stage)
	}
	reached := make(map[string]bool)
	for n := 0; n < max(s.Times, 1) || p.draws.next(); n++ {
		p.admission.reset()
		got, err := p.Pick(w.t.Context(), candidates, &policy.Request{Model: "m", Stage: stage, Input: 1})
		if err := s.judge(p, got, err); err != nil {
			return fmt.Errorf("draws %v: %w", p.draws.values, err)
		}
		if got.Engine != nil {
			reached[got.Engine.ID()] = true
		}
	}
	p.draws.restart()
	if got := slices.Sorted(maps.Keys(reached)); s.Reaches != nil && !slices.Equal(got, s.Reaches) {
		return fmt.Errorf("reached %v, want %v", got, s.Reaches)
	}
	return nil
}

func (s *pickStep) judge(p *picker, got policy.Pick, err error) error {
	if kind(err) != s.Fails {
		return fmt.Errorf("failed with %q, want %q (%w)", kind(err), s.Fails, err)
	}
	if r := rejected(err); !slices.Equal(r, s.Rejected) {
		return fmt.Errorf("rejected %v, want %v", r, s.Rejected)
	}
	if s.Want != "" && (got.Engine == nil || got.Engine.ID() != s.Want) {
		return fmt.Errorf("picked %v, want %s", got, s.Want)
	}
	checks := 1
	if s.Checks != nil {
		checks = *s.Checks
	}
	if p.admission.checks != checks {
		return fmt.Errorf("admission was asked %d times, want %d", p.admission.checks, checks)
	}
	if s.Metrics != "" && p.admission.saw != s.Metrics {
		return fmt.Errorf("admission saw %q, want %q", p.admission.saw, s.Metrics)
	}
	return nil
}

// rejected are the refusals of an error, "engine at limit".
func rejected(err error) []string {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return nil
	}
	var out []string
	for _, r := range e.Rejected {
		out = append(out, r.Engine+" at "+string(r.Limit))
	}
	return out
}

// picker is a policy under test with what it is driven by.
type picker struct {
	policy.Policy
	draws     *draws
	admission *recorder
}

func newPicker(w *world, s policySpec) (*picker, error) {
	p := &picker{draws: new(draws), admission: &recorder{limits: limits(s.Limits), script: s.Script}}
	loads := w.reader()
	loads.Now = func() time.Time { return w.now }
	switch s.Type {
	case "", "power_of_two":
		p.Policy = &policy.PowerOfTwo{Loads: loads, Admission: p.admission, Choices: s.Choices, IntN: p.draws.intN}
	case "random":
		p.Policy = &policy.Random{Loads: loads, Admission: p.admission, IntN: p.draws.intN}
	case "round_robin":
		p.Policy = &policy.RoundRobin{Loads: loads, Admission: p.admission}
	case "load_based":
		p.Policy = &policy.LoadBased{Loads: loads, Admission: p.admission}
	default:
		return nil, fmt.Errorf("policy type %q", s.Type)
	}
	return p, nil
}

// recorder is an admission that remembers what it saw.
type recorder struct {
	limits policy.Limits
	script string
	checks int
	saw    string
}

func (r *recorder) reset() { r.checks, r.saw = 0, "" }

func (r *recorder) Check(e *fleet.Engine, m policy.Metrics) (policy.Limit, error) {
	r.checks++
	r.saw = metricsText(e.ID(), m)
	switch r.script {
	case "":
		return r.limits.Check(e, m)
	case "error":
		return "", &policy.Error{Kind: policy.InvalidSignal}
	}
	return policy.Limit(r.script), nil
}

func metricsText(id string, m policy.Metrics) string {
	out := id + ":"
	if m.Reported {
		out += fmt.Sprintf(" run=%d wait=%d", m.Running, m.Waiting)
	}
	if m.Native {
		out += fmt.Sprintf(" kv=%d pend=%d", m.KV, m.PendingPrefill)
	}
	return out + fmt.Sprintf(" inflight=%d", m.Inflight)
}

func limits(a plan.Admission) policy.Limits {
	limit := func(n *int64) policy.Cap {
		if n == nil {
			return policy.Cap{}
		}
		return policy.Max(uint64(*n))
	}
	return policy.Limits{
		Running: limit(a.MaxRunningRequests), Waiting: limit(a.MaxWaitingRequests), KVTokens: limit(a.MaxKVTokens),
		PendingPrefill: limit(a.MaxPendingPrefillTokens), Inflight: limit(a.MaxInflightRequests),
	}
}

// draws is a source of random numbers that goes through every sequence: after
// each run, next moves on to the following one.
type draws struct {
	values, bounds []int
	at             int
}

func (d *draws) intN(n int) int {
	if d.at == len(d.values) {
		d.values, d.bounds = append(d.values, 0), append(d.bounds, n)
	}
	d.at++
	return d.values[d.at-1]
}

// next prepares the following sequence; it is false after the last.
func (d *draws) next() bool {
	for len(d.values) > 0 {
		last := len(d.values) - 1
		if d.values[last]++; d.values[last] < d.bounds[last] {
			d.at = 0
			return true
		}
		d.values, d.bounds = d.values[:last], d.bounds[:last]
	}
	return false
}

func (d *draws) restart() { *d = draws{} }

// runLimits runs vectors/limits.json: limits against metrics, without engines.
func runLimits(t *testing.T, data []byte) (ran []string) {
	var file struct {
		About string       `json:"about"`
		Cases []limitsCase `json:"cases"`
	}
	decode(t, data, &file)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			got, err := limits(c.Limits).Check(nil, c.Metrics.metrics())
			if err != nil || string(got) != c.Want {
				t.Errorf("got %q, %v, want %q", got, err, c.Want)
			}
		})
		ran = append(ran, c.ID)
	}
	return ran
}

type limitsCase struct {
	ID      string         `json:"id"`
	Note    string         `json:"note"`
	Limits  plan.Admission `json:"limits"`
	Metrics metricsSpec    `json:"metrics"`
	// Want is the limit that refuses, empty for none.
	Want string `json:"want"`
}

// metricsSpec: absent values are unknown.
type metricsSpec struct {
	Running  *uint64 `json:"running"`
	Waiting  *uint64 `json:"waiting"`
	KV       *uint64 `json:"kv"`
	Pending  *uint64 `json:"pending"`
	Inflight int64   `json:"inflight"`
}

func (s metricsSpec) metrics() policy.Metrics {
	m := policy.Metrics{Inflight: s.Inflight}
	if s.Running != nil {
		m.Reported, m.Running, m.Waiting = true, *s.Running, *s.Waiting
	}
	if s.KV != nil {
		m.Native, m.KV, m.PendingPrefill = true, *s.KV, *s.Pending
	}
	return m
}

var _ policy.Policy = (*scripted)(nil)

var _ interface {
	Pick(context.Context, []*fleet.Engine, *policy.Request) (policy.Pick, error)
} = (*picker)(nil)
