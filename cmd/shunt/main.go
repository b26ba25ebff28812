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
	"time"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/source"
)

// The exit statuses.
const (
	exitFine     = 0
	exitFindings = 1
	exitUsage    = 2
	exitFailed   = 3
)

func main() {
	source.ScrubEnvironment()
	if code, ok := source.ChildMain(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	done := make(chan int, 1)
	go func() { done <- run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr) }()
	select {
	case code := <-done:
		os.Exit(code)
	case <-ctx.Done():
	}
	// Another signal ends the process at once. One is enough when the command
	// cannot stop by itself, such as when it waits for input.
	stop()
	select {
	case code := <-done:
		os.Exit(code)
	case <-time.After(stopTime):
		fmt.Fprintf(os.Stderr, "shunt: %v\n", context.Cause(ctx))
		os.Exit(exitFailed)
	}
}

// stopTime is how long a command may take to end after a signal.
const stopTime = 500 * time.Millisecond

// run is the command without its process. A panic is a failure of the tool, and
// not the wrong usage that the status of a crashed Go program stands for.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "shunt: internal error: %v\n%s", p, debug.Stack())
			code = exitFailed
		}
	}()
	app := newApp(&streams{in: stdin, out: stdout, err: stderr})
	args, err := arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err == nil {
		return exitFine
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	complain(stderr, err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// complain writes an error, each of several on a line of its own. Names of files
// and arguments are part of it, so it is cleaned of what a terminal or the log
// of a build could act on, and of a key that was given in the place of its file.
func complain(w io.Writer, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			complain(w, one)
		}
		return
	}
	fmt.Fprintf(w, "shunt: %s\n", report.Clean(diag.MaskText(err.Error())))
}

// streams are the standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// exitStatus ends the process with a status; everything has been said already.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// wrongUsage makes a mistake on the command line of a message.
func wrongUsage(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func newApp(s *streams) *cli.App {
	app := &cli.App{
		Name:      "shunt",
		Usage:     "check and compile routing configurations for LLM engines",
		UsageText: "shunt COMMAND [OPTION]... [ARGUMENT]...",
		Description: "A configuration in CUE, YAML or JSON describes engines and how requests are routed to them.\n" +
			"shunt check finds its mistakes, shunt compile makes a plan of it, and shuntd serves that plan.\n\n" +
			"Exit status: 0 fine, 1 findings, 2 wrong usage, 3 the job could not be done.",
		Version:                   version(),
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Reader:                    s.in,
		Writer:                    s.out,
		ErrWriter:                 s.err,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Commands: []*cli.Command{
			checkCommand(s), compileCommand(s), verifyCommand(s), showCommand(s),
			fmtCommand(s), schemaCommand(s), reportCommand(s),
			testCommand(s), diffCommand(s),
			migrateCommand(s),
			explainCommand(s), rulesCommand(s), keygenCommand(s), versionCommand(s),
			completionCommand(s), manCommand(s),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.App, c.Args().First())
			}
			_ = cli.ShowAppHelp(c)
			return exitStatus(exitUsage)
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = onUsageError
		c.HideHelpCommand = true
	}
	return app
}

// onUsageError marks the mistakes that the flag parser finds.
func onUsageError(_ *cli.Context, err error, _ bool) error { return usageError{err} }

// version is the version of the module, or of the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

func versionCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", UsageText: "shunt version",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return wrongUsage("version takes no argument")
			}
			_, err := fmt.Fprintln(s.out, "shunt "+version())
			return err
		},
	}
}
