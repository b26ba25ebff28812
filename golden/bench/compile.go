package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config is a configuration of n PD buckets over up to 64 engines, disjoint in length.
func config(n int) []byte {
	var b bytes.Buffer
	b.WriteString("version: 1\nmodels:\n  - id: m\n    discovery:\n      static:\n        engines:\n")
	for i := range min(32, n+1) { // each of them is in a bucket
		fmt.Fprintf(&b, "          - {id: P%d, url: \"http://10.0.1.%d:30000\", role: prefill, bootstrap_port: 8998}\n", i, i)
		fmt.Fprintf(&b, "          - {id: D%d, url: \"http://10.0.2.%d:30000\", role: decode}\n", i, i)
	}
	b.WriteString("    buckets:\n")
	for i := range n {
		fmt.Fprintf(&b, `      - id: bucket-%05d
        rank: %d
        limits: {min: %d, max: %d}
        max_context_tokens: %d
        groups:
          pd:
            prefill:
              worker_ids: [P%d, P%d]
              policy:
                type: power_of_two
                admission: {max_inflight_requests: 64}
            decode:
              worker_ids: [D%d, D%d]
              policy:
                type: power_of_two
                choices: 2
                admission: {max_inflight_requests: 64}
`, i, i%7, i*10, i*10+9, 1_000_000, i%32, (i+1)%32, i%32, (i+1)%32)
	}
	return b.Bytes()
}

// compiles is how often each size is compiled; the median counts.
const compiles = 5

func benchCompile(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // it was temporary
	rows := [][]string{{"PD buckets", "configuration KiB", "plan KiB", "time ms", "peak memory MiB"}}
	for _, n := range []int{2, 200, 2000, 10000} {
		in, out := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "plan.json")
		data := config(n)
		if err := os.WriteFile(in, data, 0o644); err != nil {
			return err
		}
		var times []time.Duration
		var peak int64
		for range compiles {
			cmd := exec.CommandContext(ctx, o.tool("shunt"), "compile", in, "-o", out, "--max-bytes", "67108864")
			begin := time.Now()
			if text, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, text)
			}
			times = append(times, time.Since(begin))
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
				peak = max(peak, int64(usage.Maxrss)) // in KiB
			}
		}
		plan, err := os.Stat(out)
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			fmt.Sprint(n), fmt.Sprint(len(data) >> 10), fmt.Sprint(plan.Size() >> 10),
			fmt.Sprintf("%.0f", float64(median(times).Microseconds())/1000), fmt.Sprint(peak >> 10),
		})
	}
	table(o.out, rows)
	return nil
}

// checked is a run of shunt check: its configuration, what is wrong with it, and
// its budgets.
type checked struct {
	name    string
	data    []byte
	mistake string
	time    time.Duration
	// memory is in MiB.
	memory int64
}

// benchCheck measures whole processes, and that a mistake is found.
func benchCheck(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // it was temporary
	large := config(10_000)
	rows := [][]string{{"shunt check", "time ms", "budget ms", "peak memory MiB", "budget MiB", "found"}}
	for _, c := range []checked{
		{"2 buckets", config(2), "", 30 * time.Millisecond, 0},
		{"10000 buckets", large, "", 5 * time.Second, 1024},
		{"10000 buckets, a misspelt field in the last one", replaceLast(large, "choices: 2", "choises: 2"), "SH0102", 5 * time.Second, 1024},
		{"10000 buckets, an unknown engine in the last one", replaceLast(large, "worker_ids: [D", "worker_ids: [E"), "SH0206", 5 * time.Second, 1024},
		{"10000 buckets, a gap of one token before the last one", replaceLast(large, "min: 99990", "min: 99991"), "SH0301", 5 * time.Second, 1024},
	} {
		path := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			return err
		}
		row, err := c.run(ctx, o, path)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, row)
	}
	table(o.out, rows)
	return nil
}

// run checks a file several times and returns its row.
func (c *checked) run(ctx context.Context, o options, path string) ([]string, error) {
	var times []time.Duration
	var peak int64
	for range compiles {
		cmd := exec.CommandContext(ctx, o.tool("shunt"), "check", "--max-bytes", "67108864", path)
		begin := time.Now()
		text, err := cmd.Output()
		times = append(times, time.Since(begin))
		if (err != nil) != (c.mistake != "" && c.mistake < "SH03") || strings.Contains(string(text), "SH0") != (c.mistake != "") || !strings.Contains(string(text), c.mistake) {
			return nil, fmt.Errorf("%v: %s", err, text)
		}
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, int64(usage.Maxrss)) // in KiB
		}
	}
	took := median(times)
	verdict := func(budget string, kept bool) string {
		if kept {
			return budget
		}
		return budget + " exceeded"
	}
	memory := "-"
	if c.memory > 0 {
		memory = verdict(fmt.Sprint(c.memory), peak>>10 <= c.memory)
	}
	return []string{
		c.name, fmt.Sprintf("%.0f", float64(took.Microseconds())/1000), verdict(fmt.Sprint(c.time.Milliseconds()), took <= c.time),
		fmt.Sprint(peak >> 10), memory, cmp.Or(c.mistake, "-"),
	}, nil
}

// replaceLast replaces the last occurrence of a text.
func replaceLast(data []byte, old, text string) []byte {
	at := bytes.LastIndex(data, []byte(old))
	return slices.Concat(data[:at], []byte(text), data[at+len(old):])
}

// benchStart measures from starting the server to its first answer.
func benchStart(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // it was temporary
	rows := [][]string{{"PD buckets in the plan", "until the first answer ms"}}
	for _, n := range []int{2, 10000} {
		in, out := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "plan.json")
		if err := os.WriteFile(in, config(n), 0o644); err != nil {
			return err
		}
		if text, err := exec.CommandContext(ctx, o.tool("shunt"), "compile", in, "-o", out, "--max-bytes", "67108864").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		var times []time.Duration
		for range compiles {
			took, err := coldStart(ctx, o, out)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		rows = append(rows, []string{fmt.Sprint(n), fmt.Sprintf("%.0f", float64(median(times).Microseconds())/1000)})
	}
	table(o.out, rows)
	return nil
}

func coldStart(ctx context.Context, o options, plan string) (time.Duration, error) {
	addr, err := freeAddress()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	p, err := start(ctx, nil, o.tool("shuntd"), "--plan", plan, "--listen", addr, "--admin", "off")
	if err != nil {
		return 0, err
	}
	defer p.stop()
	for time.Since(begin) < 20*time.Second {
		if resp, err := http.Get("http://" + addr + "/healthz"); err == nil {
			resp.Body.Close() // nothing of it is read
			return time.Since(begin), nil
		}
		time.Sleep(time.Millisecond)
	}
	return 0, fmt.Errorf("shuntd does not answer: %s", p.output())
}
