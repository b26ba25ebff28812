package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecret(t *testing.T) {
	const hidden = "redis://user:hush@host"
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + p
	}
	t.Setenv("SHUNT_TEST_SECRET", hidden)
	t.Setenv("SHUNT_TEST_EMPTY", "")
	f := func(reference, failure string) {
		t.Helper()
		got, err := secret(reference)
		switch {
		case failure == "" && (err != nil || got != hidden):
			t.Errorf("%s: %q, %v", reference, got, err)
		case failure != "" && (err == nil || !strings.Contains(err.Error(), failure) || strings.Contains(err.Error(), "hush")):
			t.Errorf("%s: %v", reference, err)
		}
	}
	f("env:SHUNT_TEST_SECRET", "")
	f(file("plain", hidden), "")
	f(file("line", hidden+"\r\n"), "")
	f("env:SHUNT_TEST_EMPTY", "the secret env:SHUNT_TEST_EMPTY is empty or not set")
	f("env:SHUNT_TEST_NONE", "empty or not set")
	f(file("empty", "\n"), "empty or not set")
	f(file("large", hidden+strings.Repeat("x", maxSecret)), "too large")
	f("file:"+filepath.Join(dir, "none"), "no such file")
	f(hidden, "no reference to a secret")
}
