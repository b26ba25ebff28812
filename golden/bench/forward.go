package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// target is a way to the engines.
type target struct {
	name string
	addr string
	// process is nil for the direct way.
	process *process
	results []result
}

// proxies stand in front of the two engines in turn, each with as many threads
// as the machine has processors, keeping connections to engines open.
const nginxConfig = `
daemon off; worker_processes auto; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
  keepalive_requests 100000000; client_max_body_size 32m; client_body_buffer_size 64k;
  upstream engines { server %[3]s; server %[4]s; keepalive 256; keepalive_requests 100000000; }
  server {
    listen %[2]s;
    location / { proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`

const haproxyConfig = `
global
  maxconn 8192
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend in
  bind %[2]s
  default_backend engines
backend engines
  server a %[3]s
  server b %[4]s
`

const shuntConfig = `
version: 1
server: {admin: "off", log: {level: warn}}
models:
  - id: m
    discovery:
      static:
        engines:
          - {id: a, url: "http://%[3]s", role: plain}
          - {id: b, url: "http://%[4]s", role: plain}
    buckets:
      - {id: short, limits: {max: 4096}, max_context_tokens: 8192, groups: {plain: {policy: {type: power_of_two, admission: {max_inflight_requests: 100000}}}}}
      - {id: long, limits: {max: 131072}, groups: {plain: {}}}
`

func benchForward(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // it was temporary
	// The workers of nginx run as another user.
	if err := os.Chmod(dir, 0o777); err != nil {
		return err
	}
	stage := &stage{ctx: ctx, options: o, dir: dir}
	defer stage.stop()
	if err := stage.build(); err != nil {
		return err
	}
	for _, w := range []work{
		{name: "buffered", conns: o.conns},
		{name: "buffered, one connection", conns: 1},
		{name: "streams of 32 events at once", conns: o.conns, stream: true, events: 32},
		{name: fmt.Sprintf("%d streams of an event every 10 ms", o.streams), conns: o.streams, stream: true, events: 50, pause: 10 * time.Millisecond},
	} {
		if err := stage.measure(w); err != nil {
			return err
		}
	}
	return nil
}

// stage is the engines and all ways to them.
type stage struct {
	ctx     context.Context
	options options
	dir     string
	started []*process
	engines [2]string
	targets []*target
}

func (s *stage) stop() {
	for _, p := range s.started {
		p.stop()
	}
}

func (s *stage) start(addr, name string, args ...string) (*process, error) {
	p, err := start(s.ctx, nil, name, args...)
	if err != nil {
		return nil, err
	}
	s.started = append(s.started, p)
	return p, await(s.ctx, addr, p)
}

func (s *stage) build() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range s.engines {
		addr, err := freeAddress()
		if err != nil {
			return err
		}
		if _, err := s.start(addr, self, engineArgument, addr); err != nil {
			return err
		}
		s.engines[i] = addr
	}
	s.targets = []*target{{name: "direct", addr: s.engines[0]}}
	if err := s.add("shuntd", "shunt.yaml", shuntConfig, s.shuntd); err != nil {
		return err
	}
	for _, proxy := range []struct {
		name, text string
		run        func(addr, config string) (*process, error)
	}{
		{"nginx", nginxConfig, func(addr, config string) (*process, error) { return s.start(addr, "nginx", "-c", config, "-p", s.dir) }},
		{"haproxy", haproxyConfig, func(addr, config string) (*process, error) { return s.start(addr, "haproxy", "-db", "-f", config) }},
	} {
		if err := installed(s.ctx, proxy.name); err != nil {
			fmt.Fprintf(s.options.out, "without %s: %v\n", proxy.name, err)
			continue
		}
		if err := s.add(proxy.name, proxy.name+".conf", proxy.text, proxy.run); err != nil {
			return err
		}
	}
	return nil
}

// add writes the configuration of a proxy and starts it.
func (s *stage) add(name, file, text string, run func(addr, config string) (*process, error)) error {
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	config := filepath.Join(s.dir, file)
	if err := os.WriteFile(config, fmt.Appendf(nil, text, s.dir, addr, s.engines[0], s.engines[1]), 0o644); err != nil {
		return err
	}
	p, err := run(addr, config)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.targets = append(s.targets, &target{name: name, addr: addr, process: p})
	return nil
}

func (s *stage) shuntd(addr, config string) (*process, error) {
	plan := filepath.Join(s.dir, "plan.json")
	if text, err := exec.CommandContext(s.ctx, s.options.tool("shunt"), "compile", config, "-o", plan).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return s.start(addr, s.options.tool("shuntd"), "--plan", plan, "--listen", addr)
}

// installed makes sure that a proxy is there, from Debian if it may.
func installed(ctx context.Context, name string) error {
	if _, err := exec.LookPath(name); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return fmt.Errorf("it is not installed")
	}
	install := exec.CommandContext(ctx, "sh", "-c", "apt-get update -qq && apt-get install -y -qq --no-install-recommends "+name)
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	if text, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	_, err := exec.LookPath(name)
	return err
}

// measure drives all targets in turn, in another order each round, and prints
// the medians over the rounds.
func (s *stage) measure(w work) error {
	for _, t := range s.targets {
		t.results = nil
		if warm := drive(s.ctx, t.addr, w, 300*time.Millisecond); warm.failures > 0 {
			return fmt.Errorf("%s: %d requests failed", t.name, warm.failures)
		}
	}
	order := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for range s.options.rounds {
		for _, i := range order.Perm(len(s.targets)) {
			t := s.targets[i]
			before := t.cpu()
			r := drive(s.ctx, t.addr, w, s.options.seconds)
			r.cpu = t.cpu() - before
			t.results = append(t.results, r)
		}
	}
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	fmt.Fprintf(s.options.out, "\n%s (%d rounds of %s)\n\n", w.name, s.options.rounds, s.options.seconds)
	table(s.options.out, s.rows(w))
	return nil
}

func (t *target) cpu() time.Duration {
	if t.process == nil {
		return 0
	}
	return t.process.cpu()
}

// over is the median over the rounds.
func (t *target) over(f func(*result) float64) float64 {
	var values []float64
	for i := range t.results {
		values = append(values, f(&t.results[i]))
	}
	return median(values)
}

func (s *stage) rows(w work) [][]string {
	head := []string{"", "requests/s", "of the best proxy", "p50 us", "p99 us", "added p50 us", "CPU us/request", "failed"}
	if w.stream {
		head = append(head, "CPU us/event", "event p50 us", "event p99 us")
	}
	rows := [][]string{head}
	rate := func(r *result) float64 { return r.rate() }
	p50 := func(r *result) float64 { return micros(quantile(r.latencies, 0.5)) }
	var best float64
	for _, t := range s.targets {
		if t.name != "direct" && t.name != "shuntd" {
			best = max(best, t.over(rate))
		}
	}
	for _, t := range s.targets {
		var failed int
		for _, r := range t.results {
			failed += r.failures
		}
		ratio := "-"
		if best > 0 {
			ratio = fmt.Sprintf("%.2f", t.over(rate)/best)
		}
		cpu := t.over(func(r *result) float64 { return micros(r.cpu) / max(float64(len(r.latencies)), 1) })
		row := []string{
			t.name, fmt.Sprintf("%.0f", t.over(rate)), ratio, fmt.Sprintf("%.0f", t.over(p50)),
			fmt.Sprintf("%.0f", t.over(func(r *result) float64 { return micros(quantile(r.latencies, 0.99)) })),
			fmt.Sprintf("%.0f", t.over(p50)-s.targets[0].over(p50)), fmt.Sprintf("%.1f", cpu), fmt.Sprint(failed),
		}
		if w.stream {
			row = append(row, fmt.Sprintf("%.1f", cpu/float64(w.events)),
				fmt.Sprintf("%.0f", t.over(func(r *result) float64 { return micros(quantile(r.gaps, 0.5)) })),
				fmt.Sprintf("%.0f", t.over(func(r *result) float64 { return micros(quantile(r.gaps, 0.99)) })))
		}
		rows = append(rows, row)
	}
	return rows
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
