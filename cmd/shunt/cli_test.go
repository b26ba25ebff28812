package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"shunt/compiler/source"
)

// TestMain makes the test binary usable as the command and as the child that
// evaluates CUE.
func TestMain(m *testing.M) {
	if code, ok := source.ChildMain(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"shunt": main})
}

// TestCommandLine runs the scripts of golden/cli against this command. UPDATE=1
// rewrites the outputs that they compare with.
func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../golden/cli",
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status runs a command and compares its exit status: status 1 shunt check x.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND [ARGUMENT]...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if exit, ok := err.(interface{ ExitCode() int }); ok {
		got = string(rune('0' + exit.ExitCode()))
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}
