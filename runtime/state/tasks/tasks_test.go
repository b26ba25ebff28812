package tasks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"shunt/runtime/fleet"
	"shunt/runtime/state/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGroup follows the set of live engines: a task begins once, ends before its
// engine's successor of the same id begins, and all have ended when Run returns.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		say := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, args...))
		}
		g := tasks.Group{Task: func(ctx context.Context, e *fleet.Engine) {
			say("+%s", e.ID())
			<-ctx.Done()
			say("-%s", e.ID())
		}}
		f := func(want string, engines ...*fleet.Engine) {
			t.Helper()
			g.Set(engines)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(log)
			if got := strings.Join(log, " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			log = nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { g.Run(ctx); close(done) }()
		a, b, again := engine(t, "a"), engine(t, "b"), engine(t, "a")
		f("+a +b", a, b)
		f("", b, a)
		f("-b", a)
		f("+a -a", again)
		f("-a")
		f("+b", b)
		cancel()
		<-done
		f("-b")
	})
}

func engine(t *testing.T, id string) *fleet.Engine {
	t.Helper()
	f := new(fleet.Fleet)
	if err := f.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{{ID: id, URL: "http://" + id, Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f.Engines("m")[0]
}
