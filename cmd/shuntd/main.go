// Command shuntd serves a routing plan.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/urfave/cli/v2"

	"shunt/runtime/app"
	"shunt/schema/plan"
)

// Exit codes, as those of shunt: wrong usage, and a job that could not be done.
const (
	exitUsage  = 2
	exitFailed = 3
)

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	err := command(stdout, stderr, signals).RunContext(context.Background(), args)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "shuntd: %v\n", err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func command(stdout, stderr io.Writer, signals <-chan os.Signal) *cli.App {
	return &cli.App{
		Name:      "shuntd",
		Usage:     "serve a routing plan that shunt compiled",
		UsageText: "shuntd --plan plan.json [OPTION]...\nshuntd index --plan plan.json [OPTION]...",
		Description: "shuntd loads a frozen plan, refuses one that it does not understand entirely, and routes\n" +
			"POST /v1/chat/completions by it. SIGTERM drains: /readyz turns to 503, the listener stays open for\n" +
			"the plan's drain_delay, then requests in flight end. SIGINT skips the delay; further signals hurry.\n" +
			"SIGHUP reads the plan again.\n\n" +
			"Exit status: 0 stopped in order, 2 wrong usage, 3 could not start or serve, or requests had to be cut\n" +
			"at the end of a drain.",
		Version:         version(),
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return usageError{err} },
		Flags: append(planFlags(),
			&cli.StringFlag{Name: "listen", Usage: "`HOST:PORT` instead of the plan's listen address, for this process only"},
			&cli.StringFlag{Name: "admin", Usage: "`HOST:PORT` or \"off\" instead of the plan's admin address, for this process only"},
		),
		Commands: []*cli.Command{indexCommand(stderr, signals)},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError{fmt.Errorf("unexpected argument %q", c.Args().First())}
			}
			source, err := planSource(c)
			if err != nil {
				return err
			}
			if err := checkAddresses(c.String("listen"), c.String("admin")); err != nil {
				return usageError{err}
			}
			return app.Run(c.Context, app.Options{
				Plan:    source,
				Listen:  c.String("listen"),
				Admin:   c.String("admin"),
				Version: version(),
				Log:     stderr,
				Signals: signals,
			})
		},
	}
}

// indexCommand serves the prefix index to several routers.
func indexCommand(stderr io.Writer, signals <-chan os.Signal) *cli.Command {
	return &cli.Command{
		Name:      "index",
		Usage:     "serve the prefix index of a plan's engines over gRPC",
		UsageText: "shuntd index --plan plan.json [OPTION]...",
		Description: "The index follows the cache events of the engines of every model with a cache-aware policy.\n" +
			"Routers whose plan names it under state.prefix.remote share it. SIGHUP reads the plan again.",
		HideHelpCommand: true,
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return usageError{err} },
		Flags: append(planFlags(),
			&cli.StringFlag{Name: "listen", Usage: "`HOST:PORT` of the service", Value: "127.0.0.1:50051"},
			&cli.StringFlag{Name: "metrics", Usage: "`HOST:PORT` of /metrics and /healthz", DefaultText: "none"},
			&cli.IntFlag{Name: "max-blocks", Usage: "`NUMBER` of blocks that the index holds", Value: 10 << 20},
			&cli.IntFlag{Name: "max-inflight", Usage: "`NUMBER` of queries at a time", Value: 32},
		),
		Action: func(c *cli.Context) error {
			switch {
			case c.Args().Present():
				return usageError{fmt.Errorf("unexpected argument %q", c.Args().First())}
			case c.Int("max-blocks") < 1 || c.Int("max-inflight") < 1:
				return usageError{errors.New("--max-blocks and --max-inflight are at least 1")}
			}
			source, err := planSource(c)
			if err != nil {
				return err
			}
			return app.Index(c.Context, app.IndexOptions{
				Plan: source, Listen: c.String("listen"), Metrics: c.String("metrics"),
				MaxBlocks: c.Int("max-blocks"), MaxInflight: c.Int("max-inflight"), Log: stderr, Signals: signals,
			})
		},
	}
}

// planFlags say which plan is served.
func planFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "plan", Usage: "the plan `FILE`, made by shunt compile"},
		&cli.StringSliceFlag{Name: "verify-key", Usage: "serve only plans that are signed by the public key in `FILE`; repeat it to accept any of several"},
		&cli.StringFlag{Name: "signature", Usage: "the signature is in `FILE`", DefaultText: "the plan's name and " + plan.SignatureSuffix},
	}
}

// planSource reads the options of planFlags. The keys are read once: a reload
// takes another plan, not another signer.
func planSource(c *cli.Context) (app.PlanSource, error) {
	s := app.PlanSource{File: c.String("plan"), Signature: c.String("signature")}
	if s.File == "" {
		return s, usageError{errors.New("--plan FILE is required")}
	}
	for _, name := range c.StringSlice("verify-key") {
		data, err := os.ReadFile(name)
		if err != nil {
			return s, fmt.Errorf("--verify-key: %w", err)
		}
		key, err := plan.ParseVerifyKey(data)
		if err != nil {
			return s, fmt.Errorf("--verify-key %s: %w", name, err)
		}
		s.Keys = append(s.Keys, key)
	}
	if s.Signature != "" && len(s.Keys) == 0 {
		return s, usageError{errors.New("--signature needs --verify-key")}
	}
	return s, nil
}

// checkAddresses judges the addresses that replace the plan's.
func checkAddresses(listen, admin string) error {
	if listen != "" {
		if err := plan.CheckListen(listen); err != nil {
			return fmt.Errorf("--listen %q %w", listen, err)
		}
	}
	if admin != "" && admin != "off" && !plan.IsLoopback(admin) {
		return fmt.Errorf("--admin %q is not a loopback address, and the admin views ask for no credentials", admin)
	}
	return nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
