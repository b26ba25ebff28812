package affinity_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shunt/runtime/state/affinity"
)

func TestRedisRefusesBadOptions(t *testing.T) {
	f := func(o affinity.RedisOptions, want string) {
		t.Helper()
		_, err := affinity.NewRedis(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want a part %q", err, want)
		}
	}
	f(affinity.RedisOptions{}, "not valid")
	f(affinity.RedisOptions{URL: "http://user:secret@host"}, "not valid")
	f(affinity.RedisOptions{URL: "redis://user:secret@host:port"}, "not valid")
	f(affinity.RedisOptions{URL: "redis://host", Idle: time.Microsecond}, "below a millisecond")
}

// TestBindingsExpireInRedis: the time to live runs from the last use within the
// candidates.
func TestBindingsExpireInRedis(t *testing.T) {
	server := startRedis(t)
	all := engines(t, "a", "b")
	s := server.store(affinity.RedisOptions{Idle: time.Hour})
	short := server.store(affinity.RedisOptions{Idle: time.Millisecond})
	if _, err := s.Bind(t.Context(), key("k"), all[0], all); err != nil {
		t.Fatal(err)
	}
	// A miss of the second router must not shorten the life of the binding.
	if e, err := short.Bound(t.Context(), key("k"), all[1:]); e != nil || err != nil {
		t.Fatalf("got %v, %v", e, err)
	}
	time.Sleep(20 * time.Millisecond)
	if e, err := s.Bound(t.Context(), key("k"), all); e != all[0] || err != nil {
		t.Fatalf("got %v, %v", e, err)
	}
	// A hit does.
	if e, err := short.Bound(t.Context(), key("k"), all); e != all[0] || err != nil {
		t.Fatalf("got %v, %v", e, err)
	}
	time.Sleep(20 * time.Millisecond)
	if e, err := s.Bound(t.Context(), key("k"), all); e != nil || err != nil {
		t.Fatalf("got %v, %v", e, err)
	}
}

func TestRedisDownIsCountedAndVisible(t *testing.T) {
	server := startRedis(t)
	all := engines(t, "a")
	var log bytes.Buffer
	var clock atomic.Int64
	clock.Store(1)
	s := server.store(affinity.RedisOptions{
		Log:    slog.New(slog.NewTextHandler(&log, nil)),
		Reject: true,
		Now:    func() time.Time { return time.Unix(clock.Load(), 0) },
	})
	bind := func() error { _, err := s.Bind(t.Context(), key("k"), all[0], all); return err }
	unavailable := func(failed, skipped uint64) {
		t.Helper()
		u, ok := errors.AsType[*affinity.Unavailable](bind())
		if !ok || !u.Reject {
			t.Fatalf("got %v", u)
		}
		if c := s.Counts(); c.Failed != failed || c.Skipped != skipped {
			t.Errorf("counts %+v", c)
		}
	}
	if err := bind(); err != nil {
		t.Fatal(err)
	}
	server.kill()
	unavailable(1, 0)
	unavailable(2, 0)
	unavailable(3, 0)
	if !s.Down() {
		t.Error("not down")
	}
	unavailable(3, 1)
	clock.Add(1)
	unavailable(4, 1) // one call tries again
	unavailable(4, 2)
	server.start()
	unavailable(4, 3)
	clock.Add(1)
	if err := bind(); err != nil {
		t.Fatal(err)
	}
	if s.Down() {
		t.Error("still down")
	}
	if got := log.String(); strings.Count(got, "affinity store is down") != 1 || strings.Count(got, "affinity store is back") != 1 {
		t.Errorf("log:\n%s", got)
	}
}

// TestAHungRedisIsBounded: a server that does not answer costs the timeout.
func TestAHungRedisIsBounded(t *testing.T) {
	server := startRedis(t)
	all := engines(t, "a")
	s := server.store(affinity.RedisOptions{Timeout: 30 * time.Millisecond})
	if _, err := s.Bind(t.Context(), key("k"), all[0], all); err != nil {
		t.Fatal(err)
	}
	server.freeze()
	_, err := s.Bound(t.Context(), key("k"), all)
	if u, ok := errors.AsType[*affinity.Unavailable](err); !ok || u.Reject {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Bound(ctx, key("k"), all); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if c := s.Counts(); c.Failed != 1 {
		t.Errorf("counts %+v", c)
	}
	server.thaw()
	if e, err := s.Bound(t.Context(), key("k"), all); err != nil || e != all[0] {
		t.Errorf("after the thaw: got %v, %v", e, err)
	}
}

// TestRestartBesideTraffic: Redis goes and comes back while routers bind; no
// call hangs, and afterwards bindings hold again.
func TestRestartBesideTraffic(t *testing.T) {
	server := startRedis(t)
	all := engines(t, numbered(8)...)
	o := affinity.RedisOptions{Timeout: 50 * time.Millisecond}
	routers := []*affinity.Redis{server.store(o), server.store(o)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := routers[w%2].Bind(ctx, key("k"), all[w], all)
				if _, ok := errors.AsType[*affinity.Unavailable](err); err != nil && !ok && ctx.Err() == nil {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	server.kill()
	eventually(t, "failures", func() bool { return routers[0].Counts().Failed > 0 && routers[1].Counts().Failed > 0 })
	server.start()
	eventually(t, "recovery", func() bool { return !routers[0].Down() && !routers[1].Down() })
	stop()
	wg.Wait()
	first, err := routers[0].Bind(t.Context(), key("k"), all[0], all)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := routers[1].Bound(t.Context(), key("k"), all); err != nil || e != first.Engine {
		t.Errorf("got %v, %v, want %s", e, err, first.Engine.ID())
	}
}

// eventually waits; the deadline only ends a broken run.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

func BenchmarkRedisBound(b *testing.B) {
	s := startRedis(b).store(affinity.RedisOptions{Timeout: time.Second})
	all := engines(b, numbered(64)...)
	if _, err := s.Bind(b.Context(), key("k"), all[40], all); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if e, err := s.Bound(b.Context(), key("k"), all); e == nil {
			b.Fatal(err)
		}
	}
}
