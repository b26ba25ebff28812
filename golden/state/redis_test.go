package state_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shunt/runtime/enginetest"
	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/state/affinity"
	"shunt/schema/plan"
)

// requireRedis names the variable that makes a missing redis-server a failure.
const requireRedis = "SHUNT_REQUIRE_REDIS"

// redisServer is a real server that keeps nothing over a restart.
type redisServer struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv(requireRedis) != "" {
			t.Fatalf("%s is set, and there is no redis-server: %v", requireRedis, err)
		}
		t.Skipf("needs redis-server (Debian package redis-server); set %s to make this a failure", requireRedis)
	}
	dir, err := os.MkdirTemp("", "redis") // socket paths are limited to about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &redisServer{t: t, socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		s.stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.start()
	return s
}

func (s *redisServer) start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", filepath.Dir(s.socket), "--loglevel", "warning")
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "redis-server", func() (string, bool) {
		c, err := net.Dial("unix", s.socket)
		if err == nil {
			_ = c.Close()
		}
		return fmt.Sprint(err), err == nil
	})
}

func (s *redisServer) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		_ = os.Remove(s.socket)
		s.cmd = nil
	}
}

// state is the plan's section for the server; the secret is in a file.
func (s *redisServer) state(f plan.OnFailure) *plan.AffinityState {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("unix://"+s.socket+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return &plan.AffinityState{IdleMS: 600_000, Redis: &plan.RedisAffinity{URL: "file:" + file, OnFailure: f, TimeoutMS: 100}}
}

// TestRedisStopsAndComesBack follows both choices through an outage.
func TestRedisStopsAndComesBack(t *testing.T) {
	s := startRedis(t)
	all := engines(t, 3, nil)
	b := body(t, all, sessionAware())
	b.State.Affinity = s.state(plan.FailFallback)
	lenient := serve(t, b)
	b.State.Affinity = s.state(plan.FailReject)
	strict := serve(t, b)

	bound := lenient.chat("alice", "hello")
	for _, r := range []*router{lenient, strict} {
		if a := r.chat("alice", "hello"); a.engine != bound.engine || a.reason != "session_primary" {
			t.Errorf("got %+v, bound to %s", a, bound.engine)
		}
	}
	s.stop()
	if a := lenient.chat("alice", "hello"); a.status != http.StatusOK || a.reason != "affinity_unavailable" {
		t.Errorf("without Redis, fallback: %+v", a)
	}
	if a := strict.chat("alice", "hello"); a.status != http.StatusServiceUnavailable || a.code != "state_unavailable" {
		t.Errorf("without Redis, reject: %+v", a)
	}
	if a := strict.chat("", "hello"); a.status != http.StatusOK || a.reason != "no_session" {
		t.Errorf("a request without session needs no store: %+v", a)
	}
	eventually(t, "the outage is in the metrics", func() (string, bool) {
		strict.chat("alice", "hello")
		return "", strict.metric("shunt_affinity_down") == 1 && strict.metric(`shunt_affinity_total{outcome="failed"}`) > 0
	})
	s.start()
	for _, r := range []*router{lenient, strict} {
		eventually(t, "bindings come back", func() (string, bool) {
			a := r.chat("bob", "hello")
			return fmt.Sprintf("%+v", a), a.reason == "session_primary" || a.reason == "assigned"
		})
		r.until("shunt_affinity_down", equals(0))
	}
	if a, b := lenient.chat("bob", "hello"), strict.chat("bob", "hello"); a.engine != b.engine || a.reason != "session_primary" {
		t.Errorf("after the outage: %+v and %+v", a, b)
	}
}

// sessionsEnv is the number of sessions of TestReplicasBindOnce, 10000 for the full
// size; without it there are 100.
const sessionsEnv = "SHUNT_SESSIONS"

func sessionCount(t *testing.T) int {
	t.Helper()
	text := os.Getenv(sessionsEnv)
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number", sessionsEnv, text)
	}
	return n
}

// TestReplicasBindOnce sends 64 first requests of each session to two routers at the
// same time: one engine serves them all, exactly one binding is made, and both
// routers find it afterwards. Redis has all the time it needs, so that no answer
// is a late one and every count is exact.
func TestReplicasBindOnce(t *testing.T) {
	s := startRedis(t)
	all := engines(t, 4, func(o *enginetest.Options) { o.RecordLimit = -1 })
	b := body(t, all, sessionAware())
	b.Server.Log.Level = "warn"
	b.State.Affinity = s.state(plan.FailReject)
	b.State.Affinity.Redis.TimeoutMS = patience.Milliseconds()
	routers := [2]*router{serve(t, b), serve(t, b)}
	sessions, each := sessionCount(t), 64
	const parallel = 4 // sessions at a time
	bound := make([]string, sessions)
	var next atomic.Int64
	var racing sync.WaitGroup
	for range parallel {
		racing.Go(func() {
			for n := int(next.Add(1)) - 1; n < sessions; n = int(next.Add(1)) - 1 {
				bound[n] = firstRequests(t, routers, fmt.Sprint("s", n), each)
			}
		})
	}
	racing.Wait()
	count := func(outcome string) (n float64) {
		for _, r := range routers {
			n += r.metric(fmt.Sprintf("shunt_affinity_total{outcome=%q}", outcome))
		}
		return n
	}
	if v := count("assigned"); v != float64(sessions) {
		t.Errorf("%v bindings made, want %d", v, sessions)
	}
	for _, outcome := range []string{"replaced", "failed", "skipped"} {
		if v := count(outcome); v != 0 {
			t.Errorf("%v bindings %s", v, outcome)
		}
	}
	for n, engine := range bound {
		for _, r := range routers {
			if a := r.chat(fmt.Sprint("s", n), "hello"); a.engine != engine || a.reason != "session_primary" {
				t.Fatalf("session %d is bound to %s: got %+v", n, engine, a)
			}
		}
	}
	if v := count("assigned"); v != float64(sessions) {
		t.Errorf("%v bindings after all, want %d", v, sessions)
	}
}

// firstRequests sends the first requests of a session and returns the engine that
// served them.
func firstRequests(t *testing.T, routers [2]*router, session string, n int) string {
	got := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { got[i] = routers[i%2].chat(session, "hello") })
	}
	wg.Wait()
	for _, a := range got {
		if a.status != http.StatusOK || a.engine == "" || a.engine != got[0].engine {
			t.Errorf("%s: got %+v beside %+v", session, a, got[0])
		}
	}
	return got[0].engine
}

// replica is one router's view of engines and of the store.
type replica struct {
	engines []*fleet.Engine
	store   *affinity.Redis
	policy  *policy.SessionAware
}

func replicas(t *testing.T, s *redisServer, n int) []*replica {
	t.Helper()
	var out []*replica
	for range n {
		f := new(fleet.Fleet)
		var specs []fleet.Spec
		for i := range 8 {
			specs = append(specs, fleet.Spec{ID: fmt.Sprint("e", i), URL: fmt.Sprint("http://e", i), Role: fleet.Plain})
		}
		if err := f.Apply("m", fleet.BreakerConfig{}, specs); err != nil {
			t.Fatal(err)
		}
		store, err := affinity.NewRedis(affinity.RedisOptions{URL: "unix://" + s.socket, Reject: true, Timeout: 20 * time.Second, Connections: 16})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			f.Close()
		})
		out = append(out, &replica{engines: f.Engines("m"), store: store,
			policy: &policy.SessionAware{Bindings: store, Fallback: &policy.Random{IntN: rand.IntN}}})
	}
	return out
}

func (r *replica) pick(p policy.Policy, session string) (policy.Pick, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.Pick(ctx, r.engines, &policy.Request{
		Model: "m", Stage: fleet.Plain, Bucket: "b", Input: 1, SessionKey: session,
	})
}

// TestManySessions has 64 first requests of each of 10,000 sessions race over two
// routers: exactly one binding each, and all are served by it. Then refusals leave
// every binding as it was. With -short, or
// the race detector, there are 200 sessions.
func TestManySessions(t *testing.T) {
	s := startRedis(t)
	sessions := 10_000
	if testing.Short() || raced {
		sessions = 200
	}
	const racing, parallel = 64, 8 // sessions at a time
	two := replicas(t, s, 2)
	bound := make([]string, sessions)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < sessions; n = int(next.Add(1)) - 1 {
				bound[n] = race(t, two, fmt.Sprint("session-", n), racing)
			}
		})
	}
	wg.Wait()
	var assigned uint64
	for _, r := range two {
		assigned += r.store.Counts().Assigned
	}
	if assigned != uint64(sessions) {
		t.Errorf("%d bindings made for %d sessions", assigned, sessions)
	}
	full := policy.Limits{Inflight: policy.Max(0)}
	for i, r := range two {
		refusing := &policy.SessionAware{Admission: &full, Bindings: r.store, Fallback: &policy.Random{IntN: rand.IntN}}
		_, err := r.pick(refusing, fmt.Sprint("refused-", i))
		if e, ok := errors.AsType[*policy.Error](err); !ok || e.Kind != policy.AdmissionRejected {
			t.Fatalf("a full engine gave %v to a new session", err)
		}
		key := affinity.Key{Kind: affinity.Session, Stage: fleet.Plain, Model: "m", Bucket: "b", Name: fmt.Sprint("refused-", i)}
		if e, err := two[1-i].store.Bound(t.Context(), key, r.engines); e != nil || err != nil {
			t.Errorf("a refused session is bound to %v, %v", e, err)
		}
	}
	for n := 0; n < sessions; n += max(1, sessions/200) {
		r, name := two[n%2], fmt.Sprint("session-", n)
		refusing := &policy.SessionAware{Admission: &full, Bindings: r.store, Fallback: &policy.Random{IntN: rand.IntN}}
		_, err := r.pick(refusing, name)
		if e, ok := errors.AsType[*policy.Error](err); !ok || e.Kind != policy.AdmissionRejected {
			t.Fatalf("a full engine gave %v", err)
		}
		if p, err := two[1-n%2].pick(two[1-n%2].policy, name); err != nil || p.Engine.ID() != bound[n] || p.Reason != policy.ReasonSession {
			t.Fatalf("after a refusal %s has %v, %v; it was bound to %s", name, p, err, bound[n])
		}
	}
}

// race picks for one session many times at once and returns the engine that all
// got.
func race(t *testing.T, two []*replica, session string, racing int) string {
	got := make([]string, racing)
	var wg sync.WaitGroup
	for i := range racing {
		wg.Go(func() {
			r := two[i%2]
			p, err := r.pick(r.policy, session)
			if err != nil {
				t.Errorf("%s: %v", session, err)
				return
			}
			got[i] = p.Engine.ID()
		})
	}
	wg.Wait()
	for _, id := range got {
		if id != got[0] {
			t.Errorf("%s was served by %s and %s", session, got[0], id)
		}
	}
	return got[0]
}
