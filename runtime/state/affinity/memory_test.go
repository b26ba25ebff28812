package affinity_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shunt/runtime/state/affinity"
)

// TestIdleIsStrictlyLonger: exactly the idle time is not too long, and only use
// within the candidates counts.
func TestIdleIsStrictlyLonger(t *testing.T) {
	now := time.Unix(0, 0)
	m := affinity.NewMemory(affinity.MemoryOptions{Idle: 10 * time.Second, Now: func() time.Time { return now }})
	all := engines(t, "a", "b")
	at := func(s int) { now = time.Unix(int64(s), 0) }
	bind := func(name string) {
		t.Helper()
		if _, err := m.Bind(t.Context(), key(name), all[0], all); err != nil {
			t.Fatal(err)
		}
	}
	swept := func(want int) {
		t.Helper()
		if got := m.Sweep(); got != want {
			t.Errorf("at %v: removed %d, want %d", now, got, want)
		}
	}
	bind("outside")
	bind("used")
	bind("again")
	at(8)
	if e, _ := m.Bound(t.Context(), key("outside"), all[1:]); e != nil {
		t.Errorf("bound to %s outside the candidates", e.ID())
	}
	if e, _ := m.Bound(t.Context(), key("used"), all); e != all[0] {
		t.Errorf("bound to %v", e)
	}
	bind("again")
	at(10)
	swept(0)
	at(11)
	// An expired binding holds until it is removed.
	if e, _ := m.Bound(t.Context(), key("outside"), all); e != all[0] {
		t.Errorf("bound to %v", e)
	}
	at(18)
	swept(0)
	at(19)
	swept(2)
	if _, ok := m.Lookup(key("used")); ok {
		t.Error("used is still bound")
	}
	if id, ok := m.Lookup(key("outside")); !ok || id != "a" {
		t.Errorf("outside is bound to %q", id)
	}
	if c := m.Counts(); c.Expired != 2 || m.Len() != 1 {
		t.Errorf("expired %d, left %d", c.Expired, m.Len())
	}
}

func TestRunSweepsAtOnceAndThenRegularly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := affinity.NewMemory(affinity.MemoryOptions{Idle: 90 * time.Second, Sweep: 60 * time.Second})
		all := engines(t, "a")
		bind := func(name string) {
			if _, err := m.Bind(t.Context(), key(name), all[0], all); err != nil {
				t.Fatal(err)
			}
		}
		bind("old")
		time.Sleep(91 * time.Second)
		bind("new")
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { err = m.Run(ctx) })
		synctest.Wait()
		if m.Len() != 1 {
			t.Errorf("after the first tick %d bindings", m.Len())
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if m.Len() != 1 {
			t.Errorf("after 61 s %d bindings", m.Len())
		}
		time.Sleep(60 * time.Second)
		synctest.Wait()
		if m.Len() != 0 {
			t.Errorf("after 121 s %d bindings", m.Len())
		}
		cancel()
		wg.Wait()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// TestFullStoreDropsTheLeastUsed: a full store drops the binding that was not used for longest.
func TestFullStoreDropsTheLeastUsed(t *testing.T) {
	m := affinity.NewMemory(affinity.MemoryOptions{Max: 3})
	all := engines(t, "a")
	for _, name := range []string{"1", "2", "3"} {
		if _, err := m.Bind(t.Context(), key(name), all[0], all); err != nil {
			t.Fatal(err)
		}
	}
	if e, _ := m.Bound(t.Context(), key("1"), all); e == nil {
		t.Error("1 is not bound")
	}
	if _, err := m.Bind(t.Context(), key("4"), all[0], all); err != nil {
		t.Fatal(err)
	}
	f := func(name string, want bool) {
		t.Helper()
		if _, ok := m.Lookup(key(name)); ok != want {
			t.Errorf("%s is bound: %t", name, ok)
		}
	}
	f("1", true)
	f("2", false)
	f("3", true)
	f("4", true)
	if c := m.Counts(); c.Evicted != 1 || m.Len() != 3 {
		t.Errorf("evicted %d, left %d", c.Evicted, m.Len())
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const most = 5000
	m := affinity.NewMemory(affinity.MemoryOptions{Max: most})
	all := engines(t, "a")
	for i := range 4 * most {
		if _, err := m.Bind(t.Context(), key(fmt.Sprint(i)), all[0], all); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.Len(); n > most || n < most*9/10 {
		t.Errorf("%d bindings, want at most %d and not much less", n, most)
	}
}

// TestSweepBesideWriters is V143: with a clock that stands still, a thousand
// sweeps among writers remove nothing and lose nothing.
func TestSweepBesideWriters(t *testing.T) {
	const writers, keys, sweeps = 4, 5000, 1000
	m := affinity.NewMemory(affinity.MemoryOptions{Idle: time.Second, Now: func() time.Time { return time.Unix(1, 0) }})
	all := engines(t, "a")
	var removed atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for k := range keys {
				if _, err := m.Bind(t.Context(), key(fmt.Sprint(w, k)), all[0], all); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range sweeps {
			removed.Add(int64(m.Sweep()))
		}
	})
	wg.Wait()
	if removed.Load() != 0 || m.Len() != writers*keys {
		t.Errorf("removed %d, left %d", removed.Load(), m.Len())
	}
}

func TestAHitAllocatesNothing(t *testing.T) {
	m := affinity.NewMemory(affinity.MemoryOptions{})
	all := engines(t, numbered(64)...)
	if _, err := m.Bind(t.Context(), key("k"), all[40], all); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Bound(ctx, key("k"), all) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMemoryBound(b *testing.B) {
	m := affinity.NewMemory(affinity.MemoryOptions{})
	all := engines(b, numbered(64)...)
	ctx := b.Context()
	if _, err := m.Bind(ctx, key("k"), all[40], all); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if e, _ := m.Bound(ctx, key("k"), all); e == nil {
			b.Fatal("not bound")
		}
	}
}
