package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// limit bounds the demonstration without --keep and --exec, so that whatever
// goes wrong does not hang a build. Compiling the commands does not count: a
// machine that never built them may need longer.
const limit = 60 * time.Second

// buckets shows routing by length, with four engines for each stage.
func buckets() setup {
	out := setup{example: "examples/pd-two-buckets/routing.yaml"}
	for i := range 8 {
		e := engineArgs{id: fmt.Sprintf("P%d", i+1), role: "prefill"}
		if i >= 4 {
			e.id, e.role = fmt.Sprintf("D%d", i-3), "decode"
		}
		e.args = []string{"--prefill-tokens-per-second", "50000", "--inter-token", "15ms", "--output-tokens", "24"}
		out.engines = append(out.engines, e)
	}
	return out
}

// options are the flags.
type options struct {
	bin  string // folder of ready-made commands; empty builds them
	keep bool
	exec string
	// cache shows conversations that follow their prefix.
	cache bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command without its process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.bin, "bin", "", "use the commands in this `folder` instead of building them")
	fs.BoolVar(&o.cache, "cache", false, "show conversations that follow their prefix instead of requests of three sizes")
	fs.BoolVar(&o.keep, "keep", false, "keep everything running until interrupted")
	fs.StringVar(&o.exec, "exec", "", "run a shell `command` against the stack instead of the requests")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || fs.NArg() > 0 {
		return 2
	}
	err := demonstrate(ctx, o, stdout)
	switch exit := new(exec.ExitError); {
	case err == nil:
		return 0
	case o.exec != "" && errors.As(err, &exit):
		return exit.ExitCode()
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "demo: interrupted")
	default:
		fmt.Fprintf(stderr, "demo: FAILED: %v\n", err)
	}
	return 1
}

// demonstrate starts the stack, uses it and always stops it again.
func demonstrate(ctx context.Context, o options, out io.Writer) (err error) {
	began := time.Now()
	shown := buckets()
	if o.cache {
		shown = conversations()
	}
	if _, err := os.Stat(shown.example); err != nil {
		return fmt.Errorf("run this from the root of the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "shunt-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &stack{setup: shown, out: out, dir: dir, bin: o.bin}
	defer func() {
		s.stop()
		if err != nil && ctx.Err() == nil {
			s.showLogs()
		}
	}()
	build := s.build
	if o.bin == "" {
		build = func(ctx context.Context) error { return s.step(ctx, "Build the commands", s.build) }
	}
	if err := build(ctx); err != nil {
		return err
	}
	limited := ctx
	if !o.keep && o.exec == "" {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("not finished within %s", limit))
		defer cancel()
	}
	if err := s.start(limited); err != nil {
		return err
	}
	if o.exec != "" {
		return s.command(ctx, o.exec)
	}
	show := s.requests
	if o.cache {
		show = s.conversations
	}
	if err := show(limited); err != nil {
		return err
	}
	if o.keep {
		return s.keep(ctx)
	}
	fmt.Fprintf(out, "\nAll as expected, in %.1f s.\n", time.Since(began).Seconds())
	return nil
}

// command runs a shell command that finds the stack in its environment.
func (s *stack) command(ctx context.Context, line string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env = append(os.Environ(), "SHUNT_URL="+s.url, "SHUNT_MODEL="+model)
	cmd.Stdout, cmd.Stderr = s.out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

// keep tells how to use the stack and waits for Ctrl-C or for a part to fail.
func (s *stack) keep(ctx context.Context) error {
	fmt.Fprintf(s.out, `
Running until Ctrl-C. Try, in another terminal:

  curl -N %[1]s/v1/chat/completions -d '{"model":"%[2]s","stream":true,"max_tokens":20,"messages":[{"role":"user","content":"hello"}]}' -i
  curl %[1]s/v1/models
  curl %[1]s/metrics
  curl %[3]s/admin/plan
  curl %[3]s/admin/engines
  curl -X POST %[4]s/_sim/fault -d '{"kind":"cut_mid_stream","times":1}'     # %[5]s misbehaves once
  curl %[4]s/_sim/requests                                                  # what it received

The plan is %[6]s, made from %[7]s.
`, s.url, model, s.admin, s.started[4].URL, s.started[4].ID, s.plan, s.config)
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.out, "\nStopping.")
		return nil
	case p := <-s.failed:
		// Ctrl-C in a terminal reaches all processes at about the same time.
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
		return fmt.Errorf("%s ended: %w", p.name, p.err)
	}
}
