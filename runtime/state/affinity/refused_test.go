package affinity_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"shunt/runtime/state/affinity"
)

// raw is a client that is not a store.
func (s *redisServer) raw() *redis.Client {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket})
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return c
}

// TestForeignValue: a key that holds something that is no binding costs that key
// its bindings, and neither the foreign value nor the other keys theirs.
func TestForeignValue(t *testing.T) {
	server := startRedis(t)
	all := engines(t, "a", "b")
	var log bytes.Buffer
	s := server.store(affinity.RedisOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
	raw, foreign := server.raw(), affinity.DefaultPrefix+key("foreign").String()
	if err := raw.RPush(t.Context(), foreign, "x").Err(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := s.Bound(t.Context(), key("foreign"), all)
		if _, ok := errors.AsType[*affinity.Unavailable](err); !ok {
			t.Fatalf("bound: got %v", err)
		}
		_, err = s.Bind(t.Context(), key("foreign"), all[0], all)
		if _, ok := errors.AsType[*affinity.Unavailable](err); !ok {
			t.Fatalf("bind: got %v", err)
		}
	}
	if s.Down() {
		t.Error("one foreign value took the store down")
	}
	if _, err := s.Bind(t.Context(), key("other"), all[1], all); err != nil {
		t.Errorf("another key: %v", err)
	}
	if c := s.Counts(); c.Failed != 10 || c.Skipped != 0 {
		t.Errorf("counts %+v", c)
	}
	if v, err := raw.LRange(t.Context(), foreign, 0, -1).Result(); err != nil || len(v) != 1 {
		t.Errorf("the foreign value is %v, %v", v, err)
	}
	if got := log.String(); strings.Count(got, "affinity store refuses") != 1 || !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("log:\n%s", got)
	}
}

// TestReadOnlyReplica: a server that takes no writes is said to be one, although
// it answers lookups.
func TestReadOnlyReplica(t *testing.T) {
	server := startRedis(t)
	all := engines(t, "a")
	var log bytes.Buffer
	s := server.store(affinity.RedisOptions{Log: slog.New(slog.NewTextHandler(&log, nil)), Reject: true})
	if err := server.raw().Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, _ = s.Bound(t.Context(), key("k"), all) // a replica without its primary may answer or not
		_, err := s.Bind(t.Context(), key("k"), all[0], all)
		if u, ok := errors.AsType[*affinity.Unavailable](err); !ok || !u.Reject {
			t.Fatalf("got %v", err)
		}
	}
	if got := log.String(); strings.Count(got, "affinity store refuses") != 1 {
		t.Errorf("log:\n%s", got)
	}
	if err := server.raw().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bind(t.Context(), key("k"), all[0], all); err != nil {
		t.Errorf("after the promotion: %v", err)
	}
}
