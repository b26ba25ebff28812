package golden

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
)

// want starts the names of the sections that hold wanted output.
const want = "want/"

// quoted ends the names of input sections whose lines are Go string literals,
// for bytes that text cannot hold. The file is named without it.
const quoted = ".quoted"

// Update says that the wanted sections are to be rewritten instead of compared.
// An environment variable, because a flag would be unknown to the packages that
// do not import this one, and because the test cache notices it.
func Update() bool { return os.Getenv("UPDATE") == "1" }

// Case is one archive: the comment says why, sections under want/ are what must
// come out, and all others are the input files.
type Case struct {
	// Inputs are the names of the input files, in the order of the archive.
	Inputs []string

	inputs map[string][]byte
	got    []txtar.File
}

// Input is the content of an input file, nil if there is none.
func (c *Case) Input(name string) []byte { return c.inputs[name] }

// Want says that the case produced the wanted section of that name. Text gets a
// final newline if it has none.
func (c *Case) Want(name, text string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	c.got = append(c.got, txtar.File{Name: want + name, Data: []byte(text)})
}

// Run runs f on every archive that matches the pattern, in a folder of its own
// that holds the input files and is the current one. A section that f produced
// and the archive lacks fails the test, and so does the reverse.
func Run(t *testing.T, pattern string, f func(t *testing.T, c *Case)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no case matches %s", pattern)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { run(t, path, f) })
	}
}

// Each calls f for every archive that matches the pattern, without running it:
// nothing is written, and no output is compared.
func Each(t *testing.T, pattern string, f func(c *Case)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no case matches %s: %v", pattern, err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCase(archive)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		f(c)
	}
}

func run(t *testing.T, path string, f func(t *testing.T, c *Case)) {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCase(archive)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	dir := t.TempDir()
	if err := c.writeInputs(dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	f(t, c)
	if t.Failed() {
		return
	}
	if Update() {
		if err := c.rewrite(path, archive); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, p := range c.compare(archive) {
		t.Errorf("%s\nrun the tests with UPDATE=1 to accept it", p)
	}
}

func newCase(archive *txtar.Archive) (*Case, error) {
	c := &Case{inputs: make(map[string][]byte)}
	for _, s := range archive.Files {
		if strings.HasPrefix(s.Name, want) {
			continue
		}
		name, data := s.Name, s.Data
		if plain, ok := strings.CutSuffix(name, quoted); ok {
			var err error
			if data, err = unquote(data); err != nil {
				return nil, fmt.Errorf("section %s: %w", s.Name, err)
			}
			name = plain
		}
		if !filepath.IsLocal(name) || c.inputs[name] != nil {
			return nil, fmt.Errorf("section %s is repeated or leads out of the case", s.Name)
		}
		c.Inputs = append(c.Inputs, name)
		c.inputs[name] = append([]byte{}, data...)
	}
	return c, nil
}

// unquote joins the string literals of the lines.
func unquote(data []byte) ([]byte, error) {
	var out []byte
	for line := range strings.Lines(string(data)) {
		s, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%q is no string literal", line)
		}
		out = append(out, s...)
	}
	return out, nil
}

func (c *Case) writeInputs(dir string) error {
	for _, name := range c.Inputs {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, c.inputs[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare says what differs between the wanted sections and those produced.
func (c *Case) compare(archive *txtar.Archive) (problems []string) {
	var names []string
	for _, s := range archive.Files {
		if !strings.HasPrefix(s.Name, want) {
			continue
		}
		if slices.Contains(names, s.Name) {
			problems = append(problems, s.Name+": the section is repeated")
			continue
		}
		names = append(names, s.Name)
		got := c.section(s.Name)
		switch {
		case got == nil:
			problems = append(problems, s.Name+": nothing produced this section")
		case !bytes.Equal(got.Data, s.Data):
			problems = append(problems, string(diff.Diff("want "+s.Name, s.Data, "got "+s.Name, got.Data)))
		}
	}
	for i, s := range c.got {
		if !slices.Contains(names, s.Name) {
			problems = append(problems, s.Name+": the archive lacks this section")
		}
		if c.section(s.Name) != &c.got[i] {
			problems = append(problems, s.Name+": produced twice")
		}
	}
	return problems
}

func (c *Case) section(name string) *txtar.File {
	for i := range c.got {
		if c.got[i].Name == name {
			return &c.got[i]
		}
	}
	return nil
}

// rewrite replaces the wanted sections of an archive, if they differ.
func (c *Case) rewrite(path string, archive *txtar.Archive) error {
	next := &txtar.Archive{Comment: archive.Comment}
	for _, s := range archive.Files {
		if !strings.HasPrefix(s.Name, want) {
			next.Files = append(next.Files, s)
		}
	}
	next.Files = append(next.Files, c.got...)
	data := txtar.Format(next)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return os.WriteFile(path, data, 0o644)
}
