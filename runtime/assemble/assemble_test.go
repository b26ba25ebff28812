package assemble_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/state/affinity"
	"shunt/runtime/state/prefix"
	"shunt/schema/plan"
)

func TestEveryPolicyTypeHasACase(t *testing.T) {
	for _, typ := range plan.PolicyTypes {
		body := onePlain(tuned(typ))
		f := new(fleet.Fleet)
		if err := assemble.Engines(body, f); err != nil {
			t.Fatal(err)
		}
		r, err := assemble.Build(body, state(f))
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		s, err := r.Resolvers["m"].Route(context.Background(), &routing.Request{Request: policy.Request{Model: "m", Input: 1}})
		if err != nil || s.Plain.Engine.ID() != "a" {
			t.Errorf("%s: picked %+v, %v", typ, s, err)
		}
		r.Close()
	}
}

// noSource knows nothing about prefixes.
type noSource struct{ asked int }

func (s *noSource) Lookup(context.Context, prefix.Prompt) (prefix.Outcome, error) {
	s.asked++
	return prefix.Outcome{Status: prefix.Empty, QueryBlocks: 1}, nil
}

// state has every service.
func state(f *fleet.Fleet) assemble.State {
	return assemble.State{
		Fleet: f, Prefixes: map[string]prefix.Source{"m": new(noSource)},
		Bindings: affinity.NewMemory(affinity.MemoryOptions{}),
	}
}

// tuned is a policy of a type with its section.
func tuned(typ plan.PolicyType) plan.Policy {
	p := plan.Policy{Type: typ}
	fallback := plan.FallbackPolicy{Type: plan.RoundRobin}
	switch typ {
	case plan.PowerOfTwo:
		p.PowerOfTwo = &plan.PowerOfTwoTuning{Choices: 2}
	case plan.CacheAware:
		p.CacheAware = &plan.CacheAwareTuning{CandidateMinWorkers: 1, CandidateMaxWorkers: 2, PressureRelThreshold: 1.5, Fallback: fallback}
	case plan.SessionAware:
		p.SessionAware = &plan.SessionAwareTuning{Fallback: fallback}
	case plan.Sticky:
		p.Sticky = &plan.StickyTuning{Fallback: fallback}
	}
	return p
}

// Whatever a plan lacks is an error of Build and not of the first request.
func TestIncompletePlansAreRefused(t *testing.T) {
	f := func(p plan.Policy, edit func(*assemble.State), want string) {
		t.Helper()
		s := state(new(fleet.Fleet))
		edit(&s)
		_, err := assemble.Build(onePlain(p), s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a part %q", p.Type, err, want)
		}
	}
	same := func(*assemble.State) {}
	for _, typ := range []plan.PolicyType{plan.PowerOfTwo, plan.CacheAware, plan.SessionAware, plan.Sticky} {
		f(plan.Policy{Type: typ}, same, "no section")
	}
	f(tuned(plan.CacheAware), func(s *assemble.State) { s.Prefixes = nil }, "prefix source")
	f(tuned(plan.SessionAware), func(s *assemble.State) { s.Bindings = nil }, "affinity store")
	f(tuned(plan.Sticky), func(s *assemble.State) { s.Bindings = nil }, "affinity store")
	inside := tuned(plan.Sticky)
	inside.Sticky.Fallback.Type = plan.Sticky
	f(inside, same, "fallback")
	wrong := tuned(plan.CacheAware)
	wrong.CacheAware.PressureRelThreshold = 1
	f(wrong, same, "pressure factor")
}

func TestCacheAwareCannotDecode(t *testing.T) {
	body := onePlain(tuned(plan.CacheAware))
	group := *body.Models[0].Buckets[0].Groups.Plain
	body.Models[0].Buckets[0].Groups = plan.Groups{PD: &plan.PDGroups{Prefill: group, Decode: group}}
	if _, err := assemble.Build(body, state(new(fleet.Fleet))); err == nil || !strings.Contains(err.Error(), "decode") {
		t.Errorf("got %v", err)
	}
}

// One request asks a source once, however many groups share it.
func TestGroupsShareOneSource(t *testing.T) {
	body := onePlain(tuned(plan.CacheAware))
	m := &body.Models[0]
	full := m.Buckets[0]
	full.ID = "full"
	refusing := tuned(plan.CacheAware)
	refusing.Admission.MaxInflightRequests = new(int64(0))
	full.Groups = plan.Groups{Plain: &plan.Group{Policy: refusing}}
	m.Buckets = []plan.Bucket{full, m.Buckets[0]}
	m.Breakpoints[0].Runs[0] = plan.Run{0, 1}
	f := new(fleet.Fleet)
	if err := assemble.Engines(body, f); err != nil {
		t.Fatal(err)
	}
	source := new(noSource)
	s := state(f)
	s.Prefixes["m"] = source
	r, err := assemble.Build(body, s)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	req := routing.Request{Request: policy.Request{Model: "m", Input: 1, Memo: new(prefix.Memo)}}
	if got, err := r.Resolvers["m"].Route(context.Background(), &req); err != nil || got.Bucket.ID != "b" || source.asked != 1 {
		t.Errorf("bucket %v, error %v, asked %d times", got.Bucket, err, source.asked)
	}
}

func TestLatencyTargetsOrderBuckets(t *testing.T) {
	body := onePlain(tuned(plan.RoundRobin))
	m := &body.Models[0]
	m.SLO = &plan.SLO{TTFT: plan.SLOFirst, TPS: plan.SLODisabled}
	fast := m.Buckets[0]
	fast.ID, fast.TTFTMS, fast.TokensPerSecond = "fast", new(int64(100)), new(50.5)
	m.Buckets = append(m.Buckets, fast)
	m.Breakpoints[0].Runs[0] = plan.Run{0, 1}
	f := new(fleet.Fleet)
	if err := assemble.Engines(body, f); err != nil {
		t.Fatal(err)
	}
	r, err := assemble.Build(body, state(f))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	req := routing.Request{Request: policy.Request{Model: "m", Input: 1}, Targets: routing.Targets{TTFTMS: 100, HasTTFT: true}}
	if got, err := r.Resolvers["m"].Route(context.Background(), &req); err != nil || got.Bucket.ID != "fast" || got.Bucket.Estimates.TPS != 50.5 {
		t.Errorf("bucket %v, error %v", got.Bucket, err)
	}
}

func TestUnknownPolicyTypeIsRefused(t *testing.T) {
	f := new(fleet.Fleet)
	if _, err := assemble.Build(onePlain(plan.Policy{Type: "nosuch"}), assemble.State{Fleet: f}); err == nil {
		t.Fatal("built")
	}
}

func TestLimitsReachTheirMetric(t *testing.T) {
	f := func(a plan.Admission, want policy.Limit) {
		t.Helper()
		body := onePlain(plan.Policy{Type: plan.Random, Admission: a})
		fl := new(fleet.Fleet)
		if err := assemble.Engines(body, fl); err != nil {
			t.Fatal(err)
		}
		r, err := assemble.Build(body, assemble.State{Fleet: fl})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		e := fl.Engines("m")[0]
		e.SetLoad(freshLoad())
		_, err = r.Resolvers["m"].Route(context.Background(), &routing.Request{Request: policy.Request{Model: "m", Input: 1}})
		pe, ok := err.(*policy.Error)
		if !ok || len(pe.Rejected) != 1 || pe.Rejected[0].Limit != want {
			t.Errorf("%s: got %v", want, err)
		}
	}
	f(plan.Admission{MaxRunningRequests: new(int64(0))}, policy.MaxRunningRequests)
	f(plan.Admission{MaxWaitingRequests: new(int64(0))}, policy.MaxWaitingRequests)
	f(plan.Admission{MaxKVTokens: new(int64(0))}, policy.MaxKVTokens)
	f(plan.Admission{MaxPendingPrefillTokens: new(int64(0))}, policy.MaxPendingPrefillTokens)
	f(plan.Admission{MaxInflightRequests: new(int64(0))}, policy.MaxInflightRequests)
}

func onePlain(p plan.Policy) *plan.Body {
	return &plan.Body{
		State: plan.State{Load: plan.LoadState{FreshnessMS: 5000}},
		Models: []plan.Model{{
			ID:          "m",
			Breaker:     plan.Breaker{Threshold: 3, CoolDownMS: 30000},
			Discovery:   plan.Discovery{Static: &plan.StaticDiscovery{Engines: []plan.Engine{{ID: "a", URL: "http://127.0.0.1:1", Role: plan.Plain}}}},
			Buckets:     []plan.Bucket{{ID: "b", Groups: plan.Groups{Plain: &plan.Group{Policy: p}}}},
			Breakpoints: []plan.Breakpoint{{From: 0, Runs: []plan.Run{{0, 0}}}},
		}},
	}
}

func freshLoad() *fleet.Load {
	return &fleet.Load{CapturedAt: time.Now(), Native: true, Capacity: 1, MaxRunning: 1}
}
