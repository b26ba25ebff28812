package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExitStatus(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "routing.yaml")
	if err := os.WriteFile(bad, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(status int, text string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := run(append([]string{"shuntd"}, args...), &stdout, &stderr); got != status {
			t.Errorf("%q: status %d, want %d", args, got, status)
		}
		if out := stdout.String() + stderr.String(); !strings.Contains(out, text) {
			t.Errorf("%q: got %q, want a part %q", args, out, text)
		}
	}
	f(0, "serve a routing plan", "--help")
	f(0, "shuntd version", "--version")
	f(exitUsage, "--plan FILE is required")
	f(exitUsage, "unexpected argument", "--plan", bad, "more")
	f(exitUsage, "flag provided but not defined", "--plam", bad)
	f(exitUsage, "is not host:port", "--plan", bad, "--listen", "nonsense")
	f(exitUsage, "outside 0..65535", "--plan", bad, "--listen", "127.0.0.1:99999")
	f(exitUsage, "not a loopback address", "--plan", bad, "--admin", "0.0.0.0:1")
	f(exitFailed, "no such file", "--plan", bad+"x")
	f(exitFailed, "shunt compile", "--plan", bad)
}
