package diag_test

import (
	"slices"
	"strings"
	"testing"

	"shunt/compiler/diag"
)

// TestPages holds the files of all pages to their form; that the examples are what
// they say is a test of the compiler.
func TestPages(t *testing.T) {
	if _, ok := diag.PageOf("SH9999"); ok {
		t.Error("a page of a code that does not exist")
	}
	for _, e := range diag.Table() {
		p, ok := diag.PageOf(e.Code)
		if !ok || p.Entry != e {
			t.Errorf("%s: page %v of %v", e.Code, ok, p.Entry)
		}
		for _, f := range slices.Concat(p.Bad, p.Good) {
			if !strings.HasPrefix(f.Name, "bad") && !strings.HasPrefix(f.Name, "good") {
				t.Errorf("%s: %s is neither bad nor good", e.Code, f.Name)
			}
			if !strings.HasSuffix(f.Data, "\n") || strings.Count(f.Data, "\n") > 60 {
				t.Errorf("%s: %s is no short text that ends with a line", e.Code, f.Name)
			}
			if name, data := f.Raw(); f.Quoted() && (strings.HasSuffix(name, ".quoted") || data == "" || data == f.Data) {
				t.Errorf("%s: %s stands for %q, %q", e.Code, f.Name, name, data)
			}
		}
		for _, c := range p.Commands {
			if !strings.HasPrefix(c, "shunt") {
				t.Errorf("%s: command %q", e.Code, c)
			}
		}
	}
}
