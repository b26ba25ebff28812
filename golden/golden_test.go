package golden

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

const archive = `Why.
-- in/a.txt --
a
-- b.quoted --
"x\x00"
"\xffy"
-- want/one --
1
-- want/two --
2
`

// problems runs a case that produces the given sections on the archive above.
func problems(t *testing.T, sections ...string) string {
	t.Helper()
	a := txtar.Parse([]byte(archive))
	c, err := newCase(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		name, text, _ := strings.Cut(s, "=")
		c.Want(name, text)
	}
	return strings.Join(c.compare(a), "\n")
}

func TestCompare(t *testing.T) {
	f := func(wanted string, sections ...string) {
		t.Helper()
		got := problems(t, sections...)
		if wanted == "" && got != "" || !strings.Contains(got, wanted) {
			t.Errorf("%q: got %q, want %q", sections, got, wanted)
		}
	}
	f("", "one=1", "two=2\n")
	f("", "two=2", "one=1")
	f("want/two: nothing produced", "one=1")
	f("-2\n+3", "one=1", "two=3")
	f("want/three: the archive lacks", "one=1", "two=2", "three=3")
	f("want/one: produced twice", "one=1", "two=2", "one=1")
}

func TestInputs(t *testing.T) {
	c, err := newCase(txtar.Parse([]byte(archive)))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Inputs, []string{"in/a.txt", "b"}) || string(c.Input("b")) != "x\x00\xffy" || c.Input("c") != nil {
		t.Errorf("inputs %q, b %q", c.Inputs, c.Input("b"))
	}
	for _, bad := range []string{"-- a --\n-- a --\n", "-- ../a --\n", "-- /a --\n", "-- a.quoted --\nx\n"} {
		if _, err := newCase(txtar.Parse([]byte(bad))); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestRewrite keeps comment and inputs and replaces what was wanted.
func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txtar")
	a := txtar.Parse([]byte(archive))
	c, err := newCase(a)
	if err != nil {
		t.Fatal(err)
	}
	c.Want("three", "3")
	if err := c.rewrite(path, a); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	inputs, _, _ := strings.Cut(archive, "-- want/")
	if want := inputs + "-- want/three --\n3\n"; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
