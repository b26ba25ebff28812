package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"shunt/runtime/enginetest"
)

// The exit codes of the command.
const (
	exitFine  = 0
	exitUsage = 2 // the command line or the fleet file makes no sense
	exitJob   = 3 // an engine could not be started
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is the command without its process: it returns when ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	code := exitFine
	app := &cli.App{
		Name:  "enginesim",
		Usage: "simulate SGLang engines",
		Description: "Starts one engine as the flags say or, with --fleet, those of a file: a JSON list of\n" +
			"objects whose members are named like the flags, with _ for -; flags stand for what an object leaves out:\n\n" +
			`[{"id":"P1","role":"prefill"},{"id":"D1","role":"decode","inter_token":"5ms"}]` + "\n\n" +
			"When all accept connections, one line on standard output tells the addresses:\n\n" +
			`{"engines":[{"id":"P1","role":"prefill","url":"http://127.0.0.1:4001","bootstrap_port":4002}]}`,
		Flags:           flags(),
		HideHelpCommand: true,
		// A fault is JSON, which has commas of its own.
		DisableSliceFlagSeparator: true,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              func(_ *cli.Context, err error, _ bool) error { return usageError{err} },
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError{fmt.Errorf("unexpected argument %q", c.Args().First())}
			}
			return serve(c, stdout, stderr)
		},
	}
	if err := app.RunContext(ctx, args); err != nil {
		code = exitJob
		if errors.As(err, new(usageError)) {
			code = exitUsage
		}
		fmt.Fprintf(stderr, "enginesim: %v\n", err)
	}
	return code
}

// usageError is a mistake of the caller.
type usageError struct{ error }

func flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "id", Usage: "`NAME` of the engine", Value: "engine"},
		&cli.StringFlag{Name: "role", Usage: "plain, prefill or decode", Value: "plain"},
		&cli.StringFlag{Name: "model", Usage: "`NAME` of the served model", Value: enginetest.DefaultModel},
		&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` of the HTTP endpoint; port 0 is a free one", Value: "127.0.0.1:0"},
		&cli.StringFlag{Name: "bootstrap-listen", Usage: "`ADDRESS` of a prefill engine's bootstrap server", DefaultText: "a free port of 127.0.0.1"},
		&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that selects the generated text"},
		&cli.IntFlag{Name: "prefill-tokens-per-second", Usage: "`SPEED` of prompts", DefaultText: "at once"},
		&cli.DurationFlag{Name: "inter-token", Usage: "`TIME` between two tokens", DefaultText: "none"},
		&cli.IntFlag{Name: "output-tokens", Usage: "natural `LENGTH` of an answer", DefaultText: "8 to 39, by the prompt"},
		&cli.IntFlag{Name: "max-running", Usage: "`NUMBER` of requests that generate at a time", Value: enginetest.DefaultMaxRunning},
		&cli.IntFlag{Name: "max-queued", Usage: "`NUMBER` of requests that may wait; -1 for none", Value: enginetest.DefaultMaxQueued},
		&cli.IntFlag{Name: "kv-tokens", Usage: "`SIZE` of the cache", Value: enginetest.DefaultKVTokens},
		&cli.IntFlag{Name: "context-tokens", Usage: "`LENGTH` of the longest prompt plus answer", Value: enginetest.DefaultContextTokens},
		&cli.DurationFlag{Name: "bootstrap-timeout", Usage: "`TIME` that prefill and decode wait for each other", Value: enginetest.DefaultBootstrapTimeout},
		&cli.IntFlag{Name: "block-size", Usage: "`TOKENS` in a block of the prefix cache", DefaultText: "no such cache"},
		&cli.IntFlag{Name: "cache-tokens", Usage: "`SIZE` of the prefix cache", DefaultText: "that of --kv-tokens"},
		&cli.IntFlag{Name: "ranks", Usage: "`NUMBER` of data-parallel ranks", Value: 1},
		&cli.BoolFlag{Name: "events", Usage: "publish what enters and leaves the prefix cache, over ZeroMQ"},
		&cli.BoolFlag{Name: "replay", Usage: "answer questions for missed events"},
		&cli.BoolFlag{Name: "publish-loads", Usage: "publish load reports over ZeroMQ"},
		&cli.IntFlag{Name: "event-port", Usage: "`PORT` of the first rank's events", DefaultText: "a free one"},
		&cli.IntFlag{Name: "replay-port", Usage: "`PORT` of the first rank's replays", DefaultText: "a free one"},
		&cli.IntFlag{Name: "load-port", Usage: "`PORT` of the first rank's load reports", DefaultText: "a free one"},
		&cli.BoolFlag{Name: "vllm", Usage: "pose as vLLM: its hashes and events of blocks, its /metrics, none of SGLang's reports"},
		&cli.StringFlag{Name: "hash-seed", Usage: "`TEXT` that vLLM hashes for the parent of first blocks", DefaultText: "vllm-none-hash"},
		&cli.BoolFlag{Name: "early-head", Usage: "send the head of a stream before its first token"},
		&cli.IntFlag{Name: "record-limit", Usage: "`NUMBER` of requests kept for /_sim/requests; -1 for none", Value: enginetest.DefaultRecordLimit},
		&cli.StringSliceFlag{Name: "fault", Usage: "inject a fault, the `JSON` that POST /_sim/fault takes; repeatable"},
		&cli.StringFlag{Name: "fleet", Usage: "start the engines of a `FILE`"},
		&cli.BoolFlag{Name: "verbose", Usage: "log each request on standard error"},
	}
}

// address is one engine in the line that tells that all are ready.
type address struct {
	ID            string          `json:"id"`
	Role          enginetest.Role `json:"role"`
	URL           string          `json:"url"`
	BootstrapPort int             `json:"bootstrap_port,omitempty"`
}

// serve runs the engines until the context of c ends.
func serve(c *cli.Context, stdout, stderr io.Writer) error {
	fleet, err := fleetOptions(c)
	if err != nil {
		return usageError{err}
	}
	faults, err := parseFaults(c.StringSlice("fault"))
	if err != nil {
		return usageError{err}
	}
	level := slog.LevelWarn
	if c.Bool("verbose") {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	ready := struct {
		Engines []address `json:"engines"`
	}{}
	for _, o := range fleet {
		o.Log = log
		e, err := enginetest.Start(o)
		if err != nil {
			return startError(o.ID, err)
		}
		defer e.Close()
		for _, f := range faults {
			if err := e.Inject(f); err != nil {
				return fmt.Errorf("engine %s: %w", o.ID, err)
			}
		}
		ready.Engines = append(ready.Engines, address{e.ID(), e.Role(), e.URL(), e.BootstrapPort()})
	}
	if err := json.NewEncoder(stdout).Encode(ready); err != nil {
		return err
	}
	<-c.Context.Done()
	return nil
}

// startError tells an option that makes no sense from an address that the
// system refuses.
func startError(id string, err error) error {
	err = fmt.Errorf("engine %s: %w", id, err)
	if errors.As(err, new(*net.OpError)) {
		return err
	}
	return usageError{err}
}

func parseFaults(texts []string) ([]enginetest.Fault, error) {
	var out []enginetest.Fault
	for _, text := range texts {
		f, err := enginetest.ParseFault([]byte(text))
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
