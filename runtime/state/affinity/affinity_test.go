package affinity_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/state/affinity"
)

func TestKeyText(t *testing.T) {
	f := func(k affinity.Key, want string) {
		t.Helper()
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(key("session"), "session:Plain:1:m6:bucketsession")
	f(affinity.Key{Kind: affinity.Sticky, Stage: fleet.Prefill, Model: "mö", Bucket: "", Name: ":1"}, "sticky:Prefill:3:mö0::1")
	f(affinity.Key{Kind: affinity.Session, Stage: fleet.Decode, Model: "a\x00b", Bucket: "c", Name: "d\x00e"}, "session:Decode:3:a\x00b1:cd\x00e")
	f(key(strings.Repeat("x", 256)), "session:Plain:1:m6:bucket"+strings.Repeat("x", 256))
	f(key(strings.Repeat("x", 257)), "session#:Plain:1:m6:bucket15eb95a462ee20bd91a415ae2d4aed341288186ddaa2b37908f7d592f0c3f85f")
}

// stores runs a test on every kind of store.
func stores(t *testing.T, test func(t *testing.T, s affinity.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, affinity.NewMemory(affinity.MemoryOptions{})) })
	t.Run("redis", func(t *testing.T) { test(t, startRedis(t).store(affinity.RedisOptions{})) })
}

func TestCompareAndBind(t *testing.T) {
	stores(t, func(t *testing.T, s affinity.Store) {
		all := engines(t, "a", "b", "c")
		compareAndBind(t, s, all[:2], all[2:], func(e *fleet.Engine) []*fleet.Engine { return []*fleet.Engine{e} })
	})
}

// TestLargeGroups is the same in groups whose ids are too many to send.
func TestLargeGroups(t *testing.T) {
	stores(t, func(t *testing.T, s affinity.Store) {
		all := engines(t, append([]string{"a", "b"}, numbered(1200)...)...)
		compareAndBind(t, s, all[:700], all[700:], func(e *fleet.Engine) []*fleet.Engine {
			return append([]*fleet.Engine{e}, all[100:700]...)
		})
	})
}

// compareAndBind is V142 and more; of makes candidates with one of both alone.
func compareAndBind(t *testing.T, s affinity.Store, both, others []*fleet.Engine, of func(*fleet.Engine) []*fleet.Engine) {
	t.Helper()
	a, b := both[0], both[1]
	bind := func(e *fleet.Engine, candidates []*fleet.Engine, want *fleet.Engine, replaced bool) {
		t.Helper()
		got, err := s.Bind(t.Context(), key("k"), e, candidates)
		if err != nil || got.Engine != want || got.Replaced != replaced {
			t.Errorf("bind %s: got %v, %v, want %s, replaced %t", e.ID(), got, err, want.ID(), replaced)
		}
	}
	bound := func(candidates []*fleet.Engine, want *fleet.Engine) {
		t.Helper()
		got, err := s.Bound(t.Context(), key("k"), candidates)
		if err != nil || got != want {
			t.Errorf("bound: got %v, %v, want %v", got, err, want)
		}
	}
	bound(both, nil)
	bind(a, both, a, false)
	bind(b, both, a, false)
	bound(both, a)
	bind(b, of(b), b, true)
	bound(both, b)
	bound(of(a), nil)
	bound(others, nil)
	bound(both, b)
	if got, err := s.Bound(t.Context(), key("other"), both); got != nil || err != nil {
		t.Errorf("other key: got %v, %v", got, err)
	}
	want := affinity.Counts{Hits: 3, Misses: 4, Assigned: 1, Kept: 1, Replaced: 1}
	if got := s.Counts(); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

// TestTheLiveObjectIsReturned: an engine that was registered anew under its id
// takes over the bindings.
func TestTheLiveObjectIsReturned(t *testing.T) {
	stores(t, func(t *testing.T, s affinity.Store) {
		before, after := engines(t, "a", "b"), engines(t, "a", "b")
		if _, err := s.Bind(t.Context(), key("k"), before[0], before); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Bound(t.Context(), key("k"), after); err != nil || got != after[0] {
			t.Errorf("bound: got %v, %v", got, err)
		}
		if got, err := s.Bind(t.Context(), key("k"), after[1], after); err != nil || got.Engine != after[0] {
			t.Errorf("bind: got %v, %v", got, err)
		}
	})
}

// TestFirstRequestsConverge: 64 requests at a time want to bind each key, each
// another engine, through two routers; all of them learn of one binding.
func TestFirstRequestsConverge(t *testing.T) {
	const keys, requests = 10_000, 64
	t.Run("memory", func(t *testing.T) {
		m := affinity.NewMemory(affinity.MemoryOptions{})
		converge(t, keys, requests, m, m)
		if m.Len() != keys {
			t.Errorf("%d bindings", m.Len())
		}
	})
	t.Run("redis", func(t *testing.T) {
		s, n := startRedis(t), keys
		switch {
		case testing.Short():
			n = 200
		case underRace:
			n = 1000
		}
		o := affinity.RedisOptions{Timeout: 30 * time.Second}
		converge(t, n, requests, s.store(o), s.store(o))
	})
}

func converge(t *testing.T, keys, requests int, routers ...affinity.Store) {
	t.Helper()
	all := engines(t, numbered(requests)...)
	winners := make([]*fleet.Engine, keys*requests)
	failures := make([]error, requests)
	var wg sync.WaitGroup
	for r := range requests {
		wg.Go(func() { failures[r] = bindAll(t.Context(), routers[r%len(routers)], r, all, winners, keys) })
	}
	wg.Wait()
	for _, err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
	for k := range keys {
		for r := range requests {
			if winners[r*keys+k] != winners[k] {
				t.Fatalf("key %d: request %d got %s, request 0 got %s", k, r, winners[r*keys+k].ID(), winners[k].ID())
			}
		}
	}
	var assigned uint64
	for i, s := range routers {
		if i == 0 || s != routers[0] {
			assigned += s.Counts().Assigned
		}
	}
	if assigned != uint64(keys) {
		t.Errorf("%d assignments of %d keys", assigned, keys)
	}
}

func bindAll(ctx context.Context, s affinity.Store, r int, all, winners []*fleet.Engine, keys int) error {
	for k := range keys {
		b, err := s.Bind(ctx, key(fmt.Sprint(k)), all[(r+k)%len(all)], all)
		if err != nil {
			return err
		}
		winners[r*keys+k] = b.Engine
	}
	return nil
}

// FuzzKeyText reads the text of a key back, which shows that no two keys share
// one.
func FuzzKeyText(f *testing.F) {
	f.Add(uint8(0), "m", "bucket", "session")
	f.Add(uint8(1), "a\x00b", "1:c", "d:e")
	f.Add(uint8(2), "", "", ":")
	f.Fuzz(func(t *testing.T, stage uint8, model, bucket, name string) {
		if len(name) > 256 {
			t.Skip("kept as a hash")
		}
		want := affinity.Key{Kind: affinity.Sticky, Stage: fleet.Role(1 + stage%3), Model: model, Bucket: bucket, Name: name}
		kind, rest, _ := strings.Cut(want.String(), ":")
		role, rest, _ := strings.Cut(rest, ":")
		got := affinity.Key{Kind: affinity.Kind(kind)}
		got.Stage, _ = fleet.ParseRole(strings.ToLower(role))
		got.Model, rest = sized(t, rest)
		got.Bucket, got.Name = sized(t, rest)
		if got != want {
			t.Errorf("%q is read as %+v, want %+v", want.String(), got, want)
		}
	})
}

// sized reads a part with its length in front.
func sized(t *testing.T, s string) (part, rest string) {
	t.Helper()
	length, rest, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n > len(rest) {
		t.Fatalf("length %q of %q", length, rest)
	}
	return rest[:n], rest[n:]
}
