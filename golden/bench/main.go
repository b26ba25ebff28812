package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// engineArgument marks a process as the engine of the forwarding benchmark.
const engineArgument = "engine"

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }

// options of a run.
type options struct {
	bin     string
	rounds  int
	seconds time.Duration
	conns   int
	streams int
	out     io.Writer
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 3 && args[1] == engineArgument {
		return exit(serveEngine(args[2]), stderr)
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.bin, "bin", "bin", "`folder` of shunt and shuntd")
	flags.IntVar(&o.rounds, "rounds", 5, "`rounds` of the forwarding benchmark")
	flags.DurationVar(&o.seconds, "time", 2*time.Second, "`time` of one target in one round")
	flags.IntVar(&o.conns, "conns", 32, "`connections` of the load generator")
	flags.IntVar(&o.streams, "streams", 64, "concurrent event `streams`")
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	o.out = stdout
	parts := []struct {
		name string
		run  func(context.Context, options) error
	}{{"compile", benchCompile}, {"check", benchCheck}, {"start", benchStart}, {"forward", benchForward}}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintln(stdout, machine())
	for _, p := range parts {
		if flags.NArg() > 0 && !slices.Contains(flags.Args(), p.name) {
			continue
		}
		fmt.Fprintf(stdout, "\n%s\n", p.name)
		if err := p.run(ctx, o); err != nil {
			return exit(fmt.Errorf("%s: %w", p.name, err), stderr)
		}
	}
	return 0
}

func exit(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, context.Canceled) {
		return 0
	}
	fmt.Fprintln(stderr, "bench:", err)
	return 1
}

// machine describes where the figures come from.
func machine() string {
	model := "unknown CPU"
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close() // it is only read
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load := ""
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = ", load " + strings.Join(strings.Fields(string(data))[:1], "")
	}
	return fmt.Sprintf("%s, %d CPUs, %s %s/%s%s", model, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, load)
}

// tool is the path of one of our binaries.
func (o *options) tool(name string) string { return filepath.Join(o.bin, name) }

// table writes rows with aligned columns, the first one to the left.
func table(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for n, r := range rows {
		fmt.Fprint(w, "|")
		for i, cell := range r {
			if i == 0 {
				fmt.Fprintf(w, " %-*s |", widths[i], cell)
			} else {
				fmt.Fprintf(w, " %*s |", widths[i], cell)
			}
		}
		fmt.Fprintln(w)
		if n == 0 {
			fmt.Fprint(w, "|")
			for i, width := range widths {
				rule := strings.Repeat("-", width+1) + ":|"
				if i == 0 {
					rule = strings.Repeat("-", width+2) + "|"
				}
				fmt.Fprint(w, rule)
			}
			fmt.Fprintln(w)
		}
	}
}

func median[T ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
