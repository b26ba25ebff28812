package affinity_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shunt/runtime/fleet"
	"shunt/runtime/state/affinity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engines makes plain engines, sorted by id.
func engines(t testing.TB, ids ...string) []*fleet.Engine {
	t.Helper()
	f := new(fleet.Fleet)
	t.Cleanup(f.Close)
	var specs []fleet.Spec
	for _, id := range ids {
		specs = append(specs, fleet.Spec{ID: id, URL: "http://" + id, Role: fleet.Plain})
	}
	if err := f.Apply("m", fleet.BreakerConfig{}, specs); err != nil {
		t.Fatal(err)
	}
	return f.Engines("m")
}

func key(name string) affinity.Key {
	return affinity.Key{Kind: affinity.Session, Stage: fleet.Plain, Model: "m", Bucket: "bucket", Name: name}
}

// numbered are n ids that sort as they count.
func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("e%04d", i)
	}
	return ids
}

// redisServer is a real Redis on a Unix socket of its own.
type redisServer struct {
	t      testing.TB
	socket string
	cmd    *exec.Cmd
}

// requireRedis names the variable that makes a missing redis-server a failure.
const requireRedis = "SHUNT_REQUIRE_REDIS"

func startRedis(t testing.TB) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv(requireRedis) != "" {
			t.Fatalf("%s is set, and there is no redis-server: %v", requireRedis, err)
		}
		t.Skipf("needs redis-server (Debian package redis-server); set %s to make this a failure", requireRedis)
	}
	// Socket paths are limited to about 100 bytes, which t.TempDir may exceed.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	s := &redisServer{t: t, socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		s.kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.start()
	return s
}

// start runs the server and returns when it listens.
func (s *redisServer) start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", filepath.Dir(s.socket), "--loglevel", "warning")
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 500 {
		if c, err := net.Dial("unix", s.socket); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("redis-server does not listen")
}

// kill ends the server and forgets everything it held.
func (s *redisServer) kill() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.Remove(s.socket)
	s.cmd = nil
}

// freeze stops the server without closing a connection; thaw lets it go on.
func (s *redisServer) freeze() { s.signal(syscall.SIGSTOP) }
func (s *redisServer) thaw()   { s.signal(syscall.SIGCONT) }

func (s *redisServer) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// store opens one more router's view of the server.
func (s *redisServer) store(o affinity.RedisOptions) *affinity.Redis {
	s.t.Helper()
	o.URL = "unix://" + s.socket
	r, err := affinity.NewRedis(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return r
}
