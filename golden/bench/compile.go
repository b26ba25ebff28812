package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// config is a configuration of n PD buckets over 64 engines, disjoint in length.
func config(n int) []byte {
	var b bytes.Buffer
	b.WriteString("version: 1\nmodels:\n  - id: m\n    discovery:\n      static:\n        engines:\n")
	for i := range 32 {
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
