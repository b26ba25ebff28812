package routing_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
)

// bounds is a bucket as declared; -1 is no bound.
type bounds struct {
	id                string
	rank              int64
	min, max, context int64
}

func (b bounds) capacity() int64 {
	c := int64(math.MaxInt64)
	for _, n := range []int64{b.max, b.context} {
		if n >= 0 {
			c = min(c, n)
		}
	}
	return c
}

func (b bounds) takes(input, peak int64) bool {
	need := input
	if peak != 0 {
		need = peak
	}
	return input >= b.min && (b.max < 0 || input <= b.max) && (b.context < 0 || need <= b.context)
}

// resolve is the definition: filter, then sort by capacity, rank and id.
func resolve(declared []bounds, input, peak int64) ([]string, bool) {
	if peak != 0 && peak < input {
		return nil, false
	}
	var fit []bounds
	for _, b := range declared {
		if b.takes(input, peak) {
			fit = append(fit, b)
		}
	}
	slices.SortFunc(fit, compareBounds)
	var ids []string
	for _, b := range fit {
		ids = append(ids, b.id)
	}
	return ids, true
}

func compareBounds(a, b bounds) int {
	return cmp.Or(cmp.Compare(a.capacity(), b.capacity()), cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id))
}

// newResolver sorts and tabulates as a plan does, the slow way: a breakpoint at
// every length at which anything changes.
func newResolver(declared []bounds, groups func(id string) routing.Groups) *routing.Resolver {
	sorted := slices.Clone(declared)
	slices.SortFunc(sorted, compareBounds)
	r := &routing.Resolver{Model: "m"}
	points := []int64{0}
	for _, b := range sorted {
		live := &routing.Bucket{ID: b.id, Rank: b.rank, Min: max(b.min, 0)}
		if b.max >= 0 {
			live.Max = routing.AtMost(b.max)
		}
		if b.context >= 0 {
			live.Context = routing.AtMost(b.context)
		}
		if groups != nil {
			live.Groups = groups(b.id)
		}
		r.Buckets = append(r.Buckets, live)
		points = append(points, max(b.min, 0))
		if c := b.capacity(); c < math.MaxInt64 {
			points = append(points, c+1)
		}
	}
	slices.Sort(points)
	for _, from := range slices.Compact(points) {
		p := routing.Breakpoint{From: from}
		for i, b := range sorted {
			if from < b.min || from > b.capacity() {
				continue
			}
			if n := len(p.Runs); n > 0 && p.Runs[n-1][1] == i-1 {
				p.Runs[n-1][1] = i
			} else {
				p.Runs = append(p.Runs, routing.Run{i, i})
			}
		}
		r.Breakpoints = append(r.Breakpoints, p)
	}
	return r
}

func resolved(r *routing.Resolver, input, peak int64) ([]string, error) {
	m, err := r.Resolve(input, peak)
	if err != nil {
		return nil, err
	}
	var ids []string
	for b := m.Next(); b != nil; b = m.Next() {
		ids = append(ids, b.ID)
	}
	if m.Next() != nil {
		return nil, errors.New("a bucket after the last")
	}
	return ids, nil
}

func compareResolve(t *testing.T, declared []bounds, input, peak int64) {
	t.Helper()
	want, ok := resolve(declared, input, peak)
	got, err := resolved(newResolver(declared, nil), input, peak)
	if e, isPolicy := errors.AsType[*policy.Error](err); !ok {
		if !isPolicy || e.Kind != policy.InvalidSignal {
			t.Fatalf("input %d, peak %d: got %v, %v, want an invalid signal", input, peak, got, err)
		}
		return
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v\ninput %d, peak %d: got %v, %v, want %v", declared, input, peak, got, err, want)
	}
}

// declare makes buckets of bytes, five each, with small numbers so that bounds
// meet often.
func declare(data []byte) []bounds {
	var out []bounds
	for i := 0; len(data) >= 4 && i < 12; i++ {
		b := bounds{id: fmt.Sprintf("b%02d", i*7%12), rank: int64(data[0] % 3), max: -1, context: -1}
		b.min = int64(data[1] % 16)
		if data[2]%4 > 0 {
			b.max = int64(data[2] % 32)
		}
		if data[3]%4 > 0 {
			b.context = int64(data[3] % 32)
		}
		out, data = append(out, b), data[4:]
	}
	return out
}

// FuzzResolve holds the table against the definition.
func FuzzResolve(f *testing.F) {
	f.Add([]byte{}, int64(1), int64(0))
	f.Add([]byte{0, 0, 10, 20, 1, 5, 15, 0}, int64(10), int64(20))
	f.Add([]byte{0, 11, 15, 0, 1, 0, 21, 0, 2, 0, 21, 0, 0, 0, 9, 0}, int64(11), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, input, peak int64) {
		input, peak = max(input, 0), max(peak, 0)
		compareResolve(t, declare(data), input, peak)
		compareResolve(t, declare(data), input%40, peak%40)
	})
}

func TestResolveAgainstDefinition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		data := make([]byte, 4*rnd.IntN(12))
		for i := range data {
			data[i] = byte(rnd.IntN(256))
		}
		declared := declare(data)
		for input := range int64(36) {
			compareResolve(t, declared, input, 0)
			compareResolve(t, declared, input, input)
			compareResolve(t, declared, input, int64(rnd.IntN(40)))
		}
	}
}

func TestResolveWithoutTable(t *testing.T) {
	var r routing.Resolver
	if got, err := resolved(&r, 1, 0); err != nil || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// script is a policy whose picks are scripted by bucket and stage: "fail KIND",
// "reject ENGINE", "interrupt", or the first candidate.
type script struct {
	lines  map[string]string
	called []string
}

var errInterrupted = errors.New("interrupted")

func (s *script) Pick(_ context.Context, candidates []*fleet.Engine, req *policy.Request) (policy.Pick, error) {
	at := req.Bucket + "/" + req.Stage.String()
	s.called = append(s.called, at)
	word, rest, _ := strings.Cut(s.lines[at], " ")
	switch word {
	case "reject":
		var e policy.Error
		e.Kind = policy.AdmissionRejected
		for id := range strings.FieldsSeq(rest) {
			e.Rejected = append(e.Rejected, policy.Rejection{Engine: id, Limit: "full"})
			if len(e.Rejected) > 1 {
				e.Kind = policy.NoAdmissibleEngine
			}
		}
		return policy.Pick{}, &e
	case "fail":
		for k := policy.NoMatchingBucket; k <= policy.OutsideCandidates; k++ {
			if k.String() == rest {
				return policy.Pick{}, &policy.Error{Kind: k}
			}
		}
	case "interrupt":
		return policy.Pick{}, fmt.Errorf("wrapped: %w", errInterrupted)
	case "nothing":
		return policy.Pick{}, nil
	}
	return policy.Pick{Engine: candidates[0], Reason: "first"}, nil
}

// fixed is a list of candidates that nothing changes.
type fixed []*fleet.Engine

func (f fixed) Engines() []*fleet.Engine { return f }

func makeEngines(t testing.TB, words string) []*fleet.Engine {
	t.Helper()
	var f fleet.Fleet
	t.Cleanup(f.Close)
	var specs []fleet.Spec
	for word := range strings.FieldsSeq(words) {
		id, label, _ := strings.Cut(word, "@")
		role := map[byte]fleet.Role{'p': fleet.Prefill, 'd': fleet.Decode}[id[0]]
		if role == 0 {
			role = fleet.Plain
		}
		s := fleet.Spec{ID: id, URL: "http://" + id, Role: role}
		if label != "" {
			s.Labels = map[string]string{"zone": label}
		}
		specs = append(specs, s)
	}
	if err := f.Apply("m", fleet.BreakerConfig{}, specs); err != nil {
		t.Fatal(err)
	}
	return f.Engines("m")
}

// loop is a model with unbounded buckets a, b, c in this order, plain or PD.
func loop(t *testing.T, s *script, pd bool, empty ...string) *routing.Resolver {
	t.Helper()
	plain, pair := makeEngines(t, "x y"), makeEngines(t, "d1 d2 p1 p2")
	group := func(bucket string, stage fleet.Role, list []*fleet.Engine) *routing.Group {
		if slices.Contains(empty, bucket+"/"+stage.String()) {
			list = nil
		}
		return &routing.Group{Stage: stage, Engines: fixed(list), Policy: s}
	}
	declared := []bounds{{id: "a", max: -1, context: -1}, {id: "b", max: -1, context: -1}, {id: "c", max: -1, context: -1}}
	return newResolver(declared, func(id string) routing.Groups {
		if pd {
			return routing.PDGroups{Prefill: group(id, fleet.Prefill, pair[2:]), Decode: group(id, fleet.Decode, pair[:2])}
		}
		return routing.PlainGroups{Plain: group(id, fleet.Plain, plain)}
	})
}

// route is the outcome of one pass in words.
func route(t *testing.T, r *routing.Resolver, d *routing.Decision) string {
	t.Helper()
	req := &routing.Request{Request: policy.Request{Model: "m", Input: 10}, Decision: d}
	s, err := r.Route(t.Context(), req)
	switch {
	case err != nil:
		return err.Error()
	case s.PD():
		return s.Bucket.ID + ": " + s.Prefill.Engine.ID() + "+" + s.Decode.Engine.ID()
	}
	return s.Bucket.ID + ": " + s.Plain.Engine.ID()
}

// TestLoop checks which failures send a request on, and which one it ends with.
// Lines are "bucket/stage=what happens"; "empty" leaves the group without
// engines.
func TestLoop(t *testing.T) {
	f := func(pd bool, lines, want, called string) {
		t.Helper()
		s := &script{lines: make(map[string]string)}
		var empty []string
		for line := range strings.SplitSeq(lines, ";") {
			at, what, _ := strings.Cut(strings.TrimSpace(line), "=")
			if what == "empty" {
				empty = append(empty, at)
			}
			s.lines[at] = what
		}
		if got := route(t, loop(t, s, pd, empty...), nil); got != want {
			t.Errorf("%s: got %q, want %q", lines, got, want)
		}
		if got := strings.Join(s.called, " "); got != called {
			t.Errorf("%s: called %q, want %q", lines, got, called)
		}
	}
	const all = "a/plain b/plain c/plain"
	f(false, "", "a: x", "a/plain")
	f(false, "a/plain=fail no_candidates", "b: x", "a/plain b/plain")
	f(false, "a/plain=empty; b/plain=empty", "c: x", "c/plain")
	f(false, "a/plain=empty; b/plain=empty; c/plain=empty", "no_candidates (plain)", "")
	f(false, "a/plain=reject x", "b: x", "a/plain b/plain")
	f(false, "a/plain=reject x; b/plain=reject x y; c/plain=reject y", "no_admissible_engine (plain): x at full, x at full, y at full, y at full", all)
	f(false, "a/plain=reject x; b/plain=empty; c/plain=empty", "no_admissible_engine (plain): x at full", "a/plain")
	f(false, "a/plain=empty; b/plain=empty; c/plain=reject y", "no_admissible_engine (plain): y at full", "c/plain")
	f(false, "a/plain=fail invalid_signal", "invalid_signal (plain)", "a/plain")
	f(false, "a/plain=reject x; b/plain=fail invalid_configuration", "invalid_configuration (plain)", "a/plain b/plain")
	f(false, "a/plain=reject x; b/plain=interrupt", "wrapped: interrupted", "a/plain b/plain")
	f(false, "a/plain=nothing", "outside_candidates (plain): policy *routing_test.script returned an engine outside its candidates", "a/plain")

	f(true, "", "a: p1+d1", "a/prefill a/decode")
	f(true, "a/decode=empty", "b: p1+d1", "a/prefill b/prefill b/decode")
	f(true, "a/prefill=empty; b/decode=reject d1", "c: p1+d1", "b/prefill b/decode c/prefill c/decode")
	f(true, "a/prefill=empty; b/decode=empty; c/prefill=empty", "no_candidates (prefill)", "b/prefill")
	f(true, "a/prefill=empty; b/prefill=empty; c/decode=empty", "no_candidates (decode)", "c/prefill")
	f(true, "a/decode=reject d1; b/decode=empty; c/prefill=reject p1", "no_admissible_engine (prefill): d1 at full, p1 at full", "a/prefill a/decode b/prefill c/prefill")
	f(true, "a/decode=fail invalid_signal", "invalid_signal (decode)", "a/prefill a/decode")
}

func TestLoopWithoutBucket(t *testing.T) {
	r := newResolver([]bounds{{id: "a", max: 9, context: -1}}, nil)
	if got := route(t, r, nil); got != "no_matching_bucket" {
		t.Errorf("got %q", got)
	}
	if got := route(t, new(routing.Resolver), nil); got != "no_matching_bucket" {
		t.Errorf("got %q without any bucket", got)
	}
}

func TestLoopStopsWhenCancelled(t *testing.T) {
	s := new(script)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := loop(t, s, false).Route(ctx, &routing.Request{Request: policy.Request{Input: 1}})
	if !errors.Is(err, context.Canceled) || s.called != nil {
		t.Errorf("got %v after %v", err, s.called)
	}
}

// TestRequestIsReusable: nothing of a pass stays for the next.
func TestRequestIsReusable(t *testing.T) {
	r := loop(t, &script{lines: map[string]string{"a/plain": "reject x"}}, false)
	req := &routing.Request{Request: policy.Request{Input: 10}, Decision: new(routing.Decision)}
	for range 3 {
		s, err := r.Route(t.Context(), req)
		if err != nil || s.Bucket.ID != "b" {
			t.Fatalf("got %v, %v", s.Bucket, err)
		}
		if n := len(req.Decision.Buckets[0].Groups); n != 1 {
			t.Fatalf("%d groups traced for bucket a, want 1", n)
		}
	}
	req.Decision = nil
	if _, err := r.Route(t.Context(), req); err != nil || req.Trace != nil {
		t.Errorf("got %v, trace %v", err, req.Trace)
	}
}

// TestMatchLabels pairs engines of equal labels only; a prefill engine without
// a partner is no candidate.
func TestMatchLabels(t *testing.T) {
	f := func(engines, lines, want string, sees ...string) {
		t.Helper()
		list := makeEngines(t, engines)
		s := &script{lines: map[string]string{}}
		if lines != "" {
			at, what, _ := strings.Cut(lines, "=")
			s.lines[at] = what
		}
		cut := slices.IndexFunc(list, func(e *fleet.Engine) bool { return e.Role() == fleet.Prefill })
		r := newResolver([]bounds{{id: "a", max: -1, context: -1}}, func(string) routing.Groups {
			return routing.PDGroups{
				Prefill:     &routing.Group{Stage: fleet.Prefill, Engines: fixed(list[cut:]), Policy: s},
				Decode:      &routing.Group{Stage: fleet.Decode, Engines: fixed(list[:cut]), Policy: s},
				MatchLabels: []string{"zone"},
			}
		})
		var d routing.Decision
		if got := route(t, r, &d); got != want {
			t.Errorf("%s: got %q, want %q", engines, got, want)
		}
		var seen []string
		for _, g := range d.Buckets[0].Groups {
			seen = append(seen, g.Stage+" "+strings.Join(g.Candidates, ","))
		}
		if !slices.Equal(seen, sees) {
			t.Errorf("%s: candidates %q, want %q", engines, seen, sees)
		}
		if r.Ready() != (len(seen) == 2) {
			t.Errorf("%s: ready = %t", engines, r.Ready())
		}
	}
	f("p1@x p2@y d1@y d2@y", "", "a: p2+d1", "prefill p2", "decode d1,d2")
	f("p1@x p2@y d1@y d2@x", "", "a: p1+d2", "prefill p1,p2", "decode d2")
	f("p1 d1", "", "a: p1+d1", "prefill p1", "decode d1") // absent is a value like any other
	f("p1@x d1", "", "no_candidates (decode): no healthy decode engine has the same zone as a healthy prefill engine", "decode ")
}

func TestReady(t *testing.T) {
	f := func(pd bool, want bool, empty ...string) {
		t.Helper()
		if got := loop(t, new(script), pd, empty...).Ready(); got != want {
			t.Errorf("empty %v: ready = %t", empty, got)
		}
	}
	f(false, true)
	f(false, true, "a/plain", "b/plain")
	f(false, false, "a/plain", "b/plain", "c/plain")
	f(true, true, "a/prefill", "b/decode")
	f(true, false, "a/prefill", "b/decode", "c/decode") // no bucket has both stages
	if new(routing.Resolver).Ready() {
		t.Error("a model without buckets is ready")
	}
}

func TestDecision(t *testing.T) {
	s := &script{lines: map[string]string{"fails/plain": "reject y"}}
	list := makeEngines(t, "x y")
	declared := []bounds{
		{id: "short", max: 5, context: -1}, {id: "late", min: 11, max: 12, context: -1}, {id: "tight", max: -1, context: 15},
		{id: "fails", max: 50, context: -1}, {id: "works", max: 60, context: -1}, {id: "later", max: 70, context: -1},
	}
	r := newResolver(declared, func(string) routing.Groups {
		return routing.PlainGroups{Plain: &routing.Group{Stage: fleet.Plain, Engines: fixed(list), Policy: s}}
	})
	var d routing.Decision
	req := &routing.Request{Request: policy.Request{Model: "m", Input: 10, Peak: 20}, Decision: &d}
	if _, err := r.Route(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if d.Model != "m" || d.Input != 10 || d.Peak != 20 || d.Bucket != "works" || d.Error != nil || d.Prefill != nil {
		t.Errorf("decision is %+v", d)
	}
	if d.Plain == nil || *d.Plain != (routing.PickTrace{Engine: "x", Reason: "first"}) {
		t.Errorf("pick is %+v", d.Plain)
	}
	var got []string
	for _, b := range d.Buckets {
		word := b.ID + " " + string(b.Fate)
		if b.Bound != nil {
			word += fmt.Sprintf(" %d", *b.Bound)
		}
		for _, g := range b.Groups {
			word += " " + g.Stage + " " + strings.Join(g.Candidates, ",")
			if g.Error != nil {
				word += " " + g.Error.Kind + " " + g.Error.Stage
			}
		}
		got = append(got, word)
	}
	want := []string{
		"short above_max 5", "late below_min 11", "tight above_context 15",
		"fails failed plain x,y admission_rejected plain", "works picked plain x,y", "later not_tried",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDecisionOfFailures(t *testing.T) {
	f := func(lines map[string]string, input, peak int64, kind string) {
		t.Helper()
		var d routing.Decision
		r := loop(t, &script{lines: lines}, false)
		req := &routing.Request{Request: policy.Request{Model: "m", Input: input, Peak: peak}, Decision: &d}
		if _, err := r.Route(t.Context(), req); err == nil {
			t.Fatal("no failure")
		}
		if d.Error == nil || d.Error.Kind != kind || d.Bucket != "" || len(d.Buckets) != 3 {
			t.Errorf("decision is %+v, error %+v, want %s", d, d.Error, kind)
		}
	}
	f(map[string]string{"a/plain": "fail invalid_signal"}, 10, 0, "invalid_signal")
	f(map[string]string{"a/plain": "interrupt"}, 10, 0, "interrupted")
	f(nil, 10, 5, "invalid_signal")
	f(map[string]string{"a/plain": "reject x", "b/plain": "reject x", "c/plain": "reject x"}, 10, 0, "no_admissible_engine")
}

func TestCapacity(t *testing.T) {
	f := func(b routing.Bucket, want int64) {
		t.Helper()
		if got := b.Capacity(); got != want {
			t.Errorf("%+v: got %d, want %d", b, got, want)
		}
	}
	f(routing.Bucket{}, math.MaxInt64)
	f(routing.Bucket{Max: routing.AtMost(5)}, 5)
	f(routing.Bucket{Max: routing.AtMost(5), Context: routing.AtMost(3)}, 3)
	f(routing.Bucket{Context: routing.AtMost(0)}, 0)
}
