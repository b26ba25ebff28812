package state_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shunt/runtime/app"
	"shunt/schema/plan"
)

func memory() *plan.AffinityState {
	return &plan.AffinityState{IdleMS: 600_000, Memory: &plan.MemoryAffinity{MaxEntries: 1000, SweepMS: 60_000}}
}

// TestBindingsSurviveReloads swaps plans under sessions: bindings stay, also while
// no policy needs them, and another kind of store is refused.
func TestBindingsSurviveReloads(t *testing.T) {
	all := engines(t, 4, nil)
	b := body(t, all, sessionAware())
	b.State.Affinity = memory()
	r := serve(t, b)
	bound := map[string]string{}
	for n := range 20 {
		session := fmt.Sprint("s", n)
		bound[session] = r.chat(session, "hello").engine
	}
	f := func(change func(*plan.Body), status int, part string) {
		t.Helper()
		next := body(t, all, sessionAware())
		next.State.Affinity = memory()
		change(next)
		write(t, r.file, next)
		if got, text := r.reload(); got != status || !strings.Contains(text, part) {
			t.Errorf("reload: %d %s", got, text)
		}
	}
	check := func() {
		t.Helper()
		for session, engine := range bound {
			if a := r.chat(session, "hello"); a.engine != engine || a.reason != "session_primary" {
				t.Errorf("%s: %+v, bound to %s", session, a, engine)
			}
		}
	}
	f(func(p *plan.Body) { p.Server.MaxBodyBytes++ }, http.StatusOK, "")
	check()
	f(func(p *plan.Body) { p.State.Affinity.IdleMS++ }, http.StatusConflict, "state.affinity")
	f(func(p *plan.Body) {
		p.State.Affinity = &plan.AffinityState{IdleMS: 600_000, Redis: &plan.RedisAffinity{URL: "env:NONE", OnFailure: plan.FailReject, TimeoutMS: 100}}
	}, http.StatusConflict, "state.affinity")
	f(func(p *plan.Body) { p.State.Load.Transport = plan.LoadPoll }, http.StatusConflict, "state.load")
	check()
	f(func(p *plan.Body) {
		plain := body(t, all, plan.Policy{Type: plan.RoundRobin})
		p.Models, p.State.Affinity = plain.Models, nil
	}, http.StatusOK, "")
	f(func(*plan.Body) {}, http.StatusOK, "")
	check()
	if v := r.metric("shunt_affinity_bindings"); v != 20 {
		t.Errorf("%v bindings", v)
	}
}

func TestMissingSecretStopsTheStart(t *testing.T) {
	all := engines(t, 1, nil)
	b := body(t, all, sessionAware())
	file := filepath.Join(t.TempDir(), "plan.json")
	f := func(url, want string) {
		t.Helper()
		b.State.Affinity = &plan.AffinityState{IdleMS: 1000, Redis: &plan.RedisAffinity{URL: url, OnFailure: plan.FailReject, TimeoutMS: 100}}
		write(t, file, b)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := app.Run(ctx, app.Options{Plan: app.PlanSource{File: file}, Log: io.Discard, Signals: make(chan os.Signal)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", url, err)
		}
	}
	f("env:SHUNT_TEST_NOT_SET", "state.affinity: the secret env:SHUNT_TEST_NOT_SET is empty or not set")
	t.Setenv("SHUNT_TEST_BAD_URL", "http://user:hush@host")
	f("env:SHUNT_TEST_BAD_URL", "state.affinity")
}
