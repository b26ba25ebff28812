package policy_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/state/affinity"
)

// failing is a store that does not answer. It fails at Bound, or only at Bind.
type failing struct {
	affinity.Store
	err    error
	atBind bool
}

func (f *failing) Bound(ctx context.Context, k affinity.Key, c []*fleet.Engine) (*fleet.Engine, error) {
	if f.atBind {
		return f.Store.Bound(ctx, k, c)
	}
	return nil, f.err
}

func (f *failing) Bind(context.Context, affinity.Key, *fleet.Engine, []*fleet.Engine) (affinity.Binding, error) {
	return affinity.Binding{}, f.err
}

func memory() *affinity.Memory { return affinity.NewMemory(affinity.MemoryOptions{}) }

// keyed is a request with both keys.
func keyed() *policy.Request {
	return &policy.Request{Model: "m", Bucket: "b", Stage: fleet.Plain, Input: 1, SessionKey: "k", RoutingKey: "k", Trace: new(policy.Trace)}
}

func fates(r *policy.Request) (out []policy.KeyFate) {
	for _, a := range r.Trace.Affinity {
		out = append(out, a.Key)
	}
	return out
}

func TestWithoutAStore(t *testing.T) {
	all := plainEngines(t, 2)
	f := func(store affinity.Store, admission policy.Admission, want policy.Kind, wantFates ...policy.KeyFate) {
		t.Helper()
		for _, p := range []policy.Policy{
			&policy.SessionAware{Loads: frozen(), Admission: admission, Bindings: store, Fallback: first{}},
			&policy.Sticky{Loads: frozen(), Admission: admission, Bindings: store, Fallback: first{}},
		} {
			req := keyed()
			got, err := p.Pick(t.Context(), all, req)
			if kindOf(err) != want {
				t.Errorf("%T: got %v, want %s", p, err, want)
			}
			if want == 0 && (got.Engine != all[0] || got.Reason != policy.ReasonNoStore) {
				t.Errorf("%T: got %v", p, got)
			}
			if !slices.Equal(fates(req), wantFates) {
				t.Errorf("%T: key was %v, want %v", p, fates(req), wantFates)
			}
		}
	}
	down := errors.New("down")
	serve, reject := &affinity.Unavailable{Cause: down}, &affinity.Unavailable{Reject: true, Cause: down}
	f(&failing{err: serve}, nil, 0, policy.KeyUnavailable)
	f(&failing{err: reject}, nil, policy.StateUnavailable, policy.KeyUnavailable)
	f(&failing{Store: memory(), err: serve, atBind: true}, nil, 0, policy.KeyFree, policy.KeyUnavailable)
	f(&failing{Store: memory(), err: reject, atBind: true}, nil, policy.StateUnavailable, policy.KeyFree, policy.KeyUnavailable)
	// The limits of the owner hold without a store, too.
	f(&failing{err: serve}, full{all[0]: true}, policy.AdmissionRejected, policy.KeyUnavailable)
	if !policy.StateUnavailable.Final() {
		t.Error("a store that must answer sends the request to another bucket")
	}
}

func TestACancelledLookupPassesAsItIs(t *testing.T) {
	all := plainEngines(t, 1)
	p := &policy.SessionAware{Loads: frozen(), Bindings: &failing{err: context.Canceled}, Fallback: first{}}
	req := keyed()
	if _, err := p.Pick(t.Context(), all, req); !errors.Is(err, context.Canceled) || kindOf(err) != 0 {
		t.Errorf("got %v", err)
	}
	if len(req.Trace.Affinity) != 0 {
		t.Errorf("trace %v", req.Trace.Affinity)
	}
}

func TestAForeignFallbackBindsNothing(t *testing.T) {
	all, other := plainEngines(t, 2), plainEngines(t, 2)
	store := memory()
	p := &policy.Sticky{Loads: frozen(), Bindings: store, Fallback: foreign{other[0]}}
	if _, err := p.Pick(t.Context(), all, keyed()); kindOf(err) != policy.OutsideCandidates {
		t.Errorf("got %v", err)
	}
	if store.Len() != 0 {
		t.Error("bound")
	}
}

func TestAffinityTrace(t *testing.T) {
	all := plainEngines(t, 2)
	p := &policy.SessionAware{Loads: frozen(), Bindings: memory(), Fallback: first{}}
	f := func(req *policy.Request, want ...policy.AffinityTrace) {
		t.Helper()
		if _, err := p.Pick(t.Context(), all, req); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(req.Trace.Affinity, want) {
			t.Errorf("got %v, want %v", req.Trace.Affinity, want)
		}
	}
	none := keyed()
	none.SessionKey = ""
	f(none, policy.AffinityTrace{Key: policy.KeyAbsent})
	f(keyed(), policy.AffinityTrace{Key: policy.KeyFree})
	f(keyed(), policy.AffinityTrace{Key: policy.KeyBound, Bound: "e0000"})
}

// TestSessionsConverge: whatever many first requests of a session choose, they
// all go to one engine.
func TestSessionsConverge(t *testing.T) {
	const sessions, requests = 300, 64
	all := plainEngines(t, 16)
	p := &policy.SessionAware{Loads: frozen(), Bindings: memory(), Fallback: &policy.Random{Loads: frozen()}}
	for s := range sessions {
		picks := make([]policy.Pick, requests)
		var wg sync.WaitGroup
		for i := range requests {
			wg.Go(func() {
				req := keyed()
				req.SessionKey, req.Trace = string(rune('0'+s)), nil
				picks[i], _ = p.Pick(t.Context(), all, req)
			})
		}
		wg.Wait()
		assigned := 0
		for _, got := range picks {
			if got.Engine != picks[0].Engine || got.Engine == nil {
				t.Fatalf("session %d: picked %v and %v", s, got.Engine, picks[0].Engine)
			}
			if got.Reason == policy.ReasonAssigned {
				assigned++
			}
		}
		// More than one may choose the engine that won, but someone must.
		if assigned == 0 {
			t.Fatalf("session %d: nobody was assigned", s)
		}
	}
}

func TestABoundPickAllocatesNothing(t *testing.T) {
	all := plainEngines(t, 64)
	p := &policy.SessionAware{Loads: frozen(), Admission: &policy.Limits{Running: policy.Max(9)}, Bindings: memory(), Fallback: first{}}
	ctx, req := t.Context(), keyed()
	req.Trace = nil
	pick := func() {
		if _, err := p.Pick(ctx, all, req); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(200, pick); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSessionAware(b *testing.B) {
	all := plainEngines(b, 64)
	p := &policy.SessionAware{Loads: frozen(), Bindings: memory(), Fallback: first{}}
	ctx, req := b.Context(), keyed()
	req.Trace = nil
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Pick(ctx, all, req); err != nil {
			b.Fatal(err)
		}
	}
}
