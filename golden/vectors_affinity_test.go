package golden_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/state/affinity"
)

// affinityCase is one world in which steps happen in order.
type affinityCase struct {
	ID      string       `json:"id"`
	Note    string       `json:"note"`
	Idle    string       `json:"idle"`
	Engines []engineSpec `json:"engines"`
	// Policy is session_aware or sticky, and Fallback that of the latter.
	Policy   string         `json:"policy"`
	Fallback string         `json:"fallback"`
	Steps    []affinityStep `json:"steps"`
}

// affinityStep has one field set.
type affinityStep struct {
	Pick    *affinityPick `json:"pick"`
	Report  *reportStep   `json:"report"`
	Lease   *leaseStep    `json:"lease"`
	Now     string        `json:"now"`
	Replace string        `json:"replace"`
	// Refuse are the engines that admission refuses from now on.
	Refuse *[]string `json:"refuse"`
	// Broken makes admission fail from now on.
	Broken bool `json:"broken"`
	// Race binds the next pick's key to an engine while admission is asked.
	Race string `json:"race"`
	// Checks is how often admission was asked so far.
	Checks *int `json:"checks"`
	// Bindings is the size of the store, and Sweep what a sweep removes.
	Bindings *int        `json:"bindings"`
	Sweep    *int        `json:"sweep"`
	Bind     *storeStep  `json:"bind"`
	Bound    *storeStep  `json:"bound"`
	Text     *textStep   `json:"text"`
	Hammer   *hammerStep `json:"hammer"`
	// Converge picks so many times at once, for one key.
	Converge int `json:"converge"`
}

// affinityPick: an absent key is "session", and an empty one is none.
type affinityPick struct {
	Key      *string  `json:"key"`
	Model    string   `json:"model"`
	Bucket   string   `json:"bucket"`
	Stage    string   `json:"stage"`
	From     []string `json:"from"`
	Times    int      `json:"times"`
	Want     string   `json:"want"`
	Reason   string   `json:"reason"`
	Fails    string   `json:"fails"`
	Rejected []string `json:"rejected"`
	// Sees is what admission saw, in order.
	Sees []string `json:"sees"`
}

// storeStep is one call of the store by itself.
type storeStep struct {
	Engine string   `json:"engine"`
	From   []string `json:"from"`
	Want   string   `json:"want"`
}

type textStep struct {
	Model  string `json:"model"`
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	Want   string `json:"want"`
}

type hammerStep struct {
	Writers int `json:"writers"`
	Keys    int `json:"keys"`
	Sweeps  int `json:"sweeps"`
	Removed int `json:"removed"`
}

func runAffinity(t *testing.T, data []byte) (ran []string) {
	var file struct {
		About string         `json:"about"`
		Cases []affinityCase `json:"cases"`
	}
	decode(t, data, &file)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
		ran = append(ran, c.ID)
	}
	return ran
}

// affinityWorld is a world with a store and a policy that uses it.
type affinityWorld struct {
	*world
	sticky bool
	store  *affinity.Memory
	policy policy.Policy

	mu     sync.Mutex // of what admission does
	refuse []string
	broken bool
	race   string
	key    affinity.Key
	saw    []string
	checks int
}

func (c *affinityCase) run(t *testing.T) {
	t.Helper()
	w := &affinityWorld{world: newWorld(t, c.Engines), sticky: c.Policy == "sticky"}
	w.store = affinity.NewMemory(affinity.MemoryOptions{Idle: w.span(c.Idle), Now: func() time.Time { return w.now }})
	if err := w.build(c); err != nil {
		t.Fatal(err)
	}
	for i, s := range c.Steps {
		if err := s.run(w); err != nil {
			t.Errorf("step %d: %v", i+1, err)
		}
	}
}

func (w *affinityWorld) build(c *affinityCase) error {
	zero := func(int) int { return 0 }
	loads := w.reader()
	var fallback policy.Policy
	switch c.Fallback {
	case "", "round_robin":
		fallback = &policy.RoundRobin{Loads: loads}
	case "random":
		fallback = &policy.Random{Loads: loads, IntN: zero}
	case "power_of_two":
		fallback = &policy.PowerOfTwo{Loads: loads, IntN: zero}
	case "load_based":
		fallback = &policy.LoadBased{Loads: loads}
	default:
		return fmt.Errorf("fallback %q", c.Fallback)
	}
	switch c.Policy {
	case "", "session_aware":
		fallback = &policy.PowerOfTwo{Loads: loads, IntN: zero}
		w.policy = &policy.SessionAware{Loads: loads, Admission: w, Bindings: w.store, Fallback: fallback}
	case "sticky":
		w.policy = &policy.Sticky{Loads: loads, Admission: w, Bindings: w.store, Fallback: fallback}
	default:
		return fmt.Errorf("policy %q", c.Policy)
	}
	return nil
}

// Check implements policy.Admission.
func (w *affinityWorld) Check(e *fleet.Engine, m policy.Metrics) (policy.Limit, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
	w.saw = append(w.saw, metricsText(e.ID(), m))
	if w.race != "" {
		other := w.engine(w.race)
		w.race = ""
		if _, err := w.store.Bind(w.t.Context(), w.key, other, w.all()); err != nil {
			return "", err
		}
	}
	switch {
	case w.broken:
		return "", &policy.Error{Kind: policy.InvalidSignal}
	case slices.Contains(w.refuse, e.ID()) || slices.Contains(w.refuse, "*"):
		return "full", nil
	}
	return "", nil
}

func (s *affinityStep) run(w *affinityWorld) error {
	switch {
	case s.Pick != nil:
		return s.Pick.run(w)
	case s.Report != nil:
		w.table.Put(w.engine(s.Report.Engine), s.Report.Rank, s.Report.report(), w.now)
	case s.Lease != nil:
		w.lease(s.Lease.Engine, s.Lease.Count, time.Time{})
	case s.Now != "":
		w.now = epoch().Add(w.span(s.Now))
	case s.Replace != "":
		spec := fleet.Spec{ID: s.Replace, URL: "http://" + s.Replace, Role: fleet.Plain}
		w.remove(s.Replace)
		w.specs["m"] = append(w.specs["m"], spec)
		w.apply("m")
	case s.Refuse != nil:
		w.refuse = *s.Refuse
	case s.Broken:
		w.broken = true
	case s.Race != "":
		w.race = s.Race
	default:
		return s.runStore(w)
	}
	return nil
}

// runStore runs the steps that look at the store.
func (s *affinityStep) runStore(w *affinityWorld) error {
	same := func(what string, got int, want *int) error {
		if got != *want {
			return fmt.Errorf("%s: %d, want %d", what, got, *want)
		}
		return nil
	}
	switch {
	case s.Checks != nil:
		return same("admission checks", w.checks, s.Checks)
	case s.Bindings != nil:
		return same("bindings", w.store.Len(), s.Bindings)
	case s.Sweep != nil:
		return same("removed", w.store.Sweep(), s.Sweep)
	case s.Bind != nil:
		b, err := w.store.Bind(w.t.Context(), sessionKey("k"), w.engine(s.Bind.Engine), w.these(s.Bind.From))
		return s.Bind.judge(b.Engine, err)
	case s.Bound != nil:
		e, err := w.store.Bound(w.t.Context(), sessionKey("k"), w.these(s.Bound.From))
		return s.Bound.judge(e, err)
	case s.Text != nil:
		k := affinity.Key{Kind: affinity.Session, Stage: fleet.Plain, Model: s.Text.Model, Bucket: s.Text.Bucket, Name: s.Text.Key}
		if got := k.String(); got != s.Text.Want {
			return fmt.Errorf("got %q, want %q", got, s.Text.Want)
		}
	case s.Hammer != nil:
		return s.Hammer.run(w)
	case s.Converge > 0:
		return w.converge(s.Converge)
	default:
		return errors.New("empty step")
	}
	return nil
}

func sessionKey(name string) affinity.Key {
	return affinity.Key{Kind: affinity.Session, Stage: fleet.Plain, Model: "m", Bucket: "bucket", Name: name}
}

func (s *storeStep) judge(got *fleet.Engine, err error) error {
	id := ""
	if got != nil {
		id = got.ID()
	}
	if err != nil || id != s.Want {
		return fmt.Errorf("got %q, %w, want %q", id, err, s.Want)
	}
	return nil
}

// these are the engines with the given ids, sorted; nil is all.
func (w *affinityWorld) these(ids []string) []*fleet.Engine {
	if ids == nil {
		return w.all()
	}
	return slices.DeleteFunc(slices.Clone(w.all()), func(e *fleet.Engine) bool { return !slices.Contains(ids, e.ID()) })
}

func (w *affinityWorld) request(s *affinityPick) *routing.Request {
	name := "session"
	if s.Key != nil {
		name = *s.Key
	}
	req := &routing.Request{Request: policy.Request{Model: "m", Input: 1}}
	if s.Model != "" {
		req.Model = s.Model
	}
	w.key = sessionKey(name)
	if w.sticky {
		req.RoutingKey, w.key.Kind = name, affinity.Sticky
	} else {
		req.SessionKey = name
	}
	return req
}

// pick goes through a bucket of one group.
func (w *affinityWorld) pick(s *affinityPick) (policy.Pick, error) {
	stage := fleet.Plain
	if s.Stage != "" {
		stage = w.role(s.Stage)
	}
	group := &routing.Group{Stage: stage, Engines: fixed(w.these(s.From)), Policy: w.policy}
	b := &routing.Bucket{ID: "bucket", Groups: routing.PlainGroups{Plain: group}}
	if s.Bucket != "" {
		b.ID = s.Bucket
	}
	got, err := b.Pick(w.t.Context(), w.request(s))
	return got.Plain, err
}

func (s *affinityPick) run(w *affinityWorld) error {
	for range max(s.Times, 1) {
		w.saw = nil
		got, err := w.pick(s)
		if kind(err) != s.Fails {
			return fmt.Errorf("failed with %q, want %q (%w)", kind(err), s.Fails, err)
		}
		if r := rejected(err); !slices.Equal(r, s.Rejected) {
			return fmt.Errorf("rejected %v, want %v", r, s.Rejected)
		}
		if s.Want != "" && (got.Engine == nil || got.Engine != w.engine(s.Want)) {
			return fmt.Errorf("picked %v, want %s", got, s.Want)
		}
		if string(got.Reason) != s.Reason {
			return fmt.Errorf("reason %q, want %q", got.Reason, s.Reason)
		}
		if s.Sees != nil && !slices.Equal(w.saw, s.Sees) {
			return fmt.Errorf("admission saw %q, want %q", w.saw, s.Sees)
		}
	}
	return nil
}

func (s *hammerStep) run(w *affinityWorld) error {
	var wg sync.WaitGroup
	failures := make([]error, s.Writers)
	for i := range s.Writers {
		wg.Go(func() {
			for k := range s.Keys {
				key := sessionKey(fmt.Sprint(i, "-", k))
				if _, err := w.store.Bind(w.t.Context(), key, w.all()[0], w.all()); err != nil {
					failures[i] = err
				}
			}
		})
	}
	removed := 0
	for range s.Sweeps {
		removed += w.store.Sweep()
	}
	wg.Wait()
	if removed != s.Removed {
		return fmt.Errorf("removed %d, want %d", removed, s.Removed)
	}
	return errors.Join(failures...)
}

// converge picks for one key many times at once; all picks must agree.
func (w *affinityWorld) converge(n int) error {
	var wg sync.WaitGroup
	picks, failures := make([]policy.Pick, n), make([]error, n)
	for i := range n {
		wg.Go(func() {
			req := policy.Request{Model: "m", Bucket: "bucket", Stage: fleet.Plain, Input: 1, RoutingKey: "k", SessionKey: "k"}
			picks[i], failures[i] = w.policy.Pick(w.t.Context(), w.all(), &req)
		})
	}
	wg.Wait()
	for _, p := range picks {
		if p.Engine != picks[0].Engine {
			return fmt.Errorf("picked %s and %s", p.Engine.ID(), picks[0].Engine.ID())
		}
	}
	return errors.Join(failures...)
}

// fixed is a candidate list that does not change.
type fixed []*fleet.Engine

func (f fixed) Engines() []*fleet.Engine { return f }
