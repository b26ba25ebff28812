package assemble_test

import (
	"context"
	"testing"
	"time"

	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/schema/plan"
)

func TestEveryPolicyTypeHasACase(t *testing.T) {
	for _, typ := range plan.PolicyTypes {
		p := plan.Policy{Type: typ}
		if typ == plan.PowerOfTwo {
			p.PowerOfTwo = &plan.PowerOfTwoTuning{Choices: 2}
		}
		body := onePlain(p)
		f := new(fleet.Fleet)
		if err := assemble.Engines(body, f); err != nil {
			t.Fatal(err)
		}
		r, err := assemble.Build(body, assemble.State{Fleet: f})
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
