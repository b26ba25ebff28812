package argv_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"shunt/compiler/migrate/argv"
)

// FuzzRead holds the reader to what it promises for any input: it ends without a
// panic, says the same twice, and every place is in the input.
func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			if !strings.HasPrefix(file.Name, "want/") {
				f.Add(file.Name, file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		read := func() (argv.Invocation, string) {
			inv, findings := argv.Read(name, data, argv.Options{})
			return inv, findings.String()
		}
		inv, findings := read()
		if strings.Contains(findings, "SH0004") {
			t.Fatal(findings)
		}
		again, findingsAgain := read()
		if findings != findingsAgain || !reflect.DeepEqual(inv.Args, again.Args) {
			t.Errorf("two runs differ: %v and %v", inv, again)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, a := range inv.Args {
			if a.Pos.File != name || a.Pos.Line < 1 || a.Pos.Line > lines || a.Pos.Column < 1 || a.Pos.Column > len(data)+1 {
				t.Errorf("the argument %q is at %+v", a.Text, a.Pos)
			}
		}
		for _, file := range inv.Files {
			if c := file.Content(); len(c) > len(data)*4+64 {
				t.Errorf("a file of %d bytes in an input of %d", len(c), len(data))
			}
		}
	})
}
