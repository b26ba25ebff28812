package source_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

func TestMain(m *testing.M) {
	source.ScrubEnvironment()
	if code, ok := source.ChildMain(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// read reads one input from memory with the zero options.
func read(t testing.TB, name, text string) (*source.Tree, diag.List) {
	t.Helper()
	return source.Read(context.Background(), source.Options{}, []source.Input{{Name: name, Reader: strings.NewReader(text)}})
}
