package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// output is what a command prints, which must succeed.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	if code := run(t.Context(), append([]string{"shunt"}, args...), strings.NewReader(""), &out, &problems); code != 0 {
		t.Fatalf("%v: status %d: %s", args, code, &problems)
	}
	return out.String()
}

// shell runs a program if it is there.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s here", name)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TERM=dumb")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func script(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(output(t, "completion", name)), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// holds reports words that are missing or that should be.
func holds(t *testing.T, got string, words ...string) {
	t.Helper()
	have := strings.Fields(got)
	for _, w := range words {
		name, absent := strings.CutPrefix(w, "!")
		if slices.Contains(have, name) == absent {
			t.Errorf("got %q, want %s", have, w)
		}
	}
}

func TestBashCompletion(t *testing.T) {
	file := script(t, "bash")
	f := func(line string, words ...string) {
		t.Helper()
		// As bash does, words end at spaces and at the equals sign.
		got := shell(t, "bash", "--norc", "-c", `source "$1"
COMP_WORDS=(); for w in $2; do [ "$w" = EMPTY ] && w=; COMP_WORDS+=("$w"); done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shunt; echo "${COMPREPLY[*]}"`, "bash", file, line)
		holds(t, got, words...)
	}
	f("shunt EMPTY", "check", "lint", "compile", "completion", "help", "!--help")
	f("shunt ch", "check", "!compile")
	f("shunt -", "--help", "--version")
	f("shunt check --f", "--format", "--fail-on", "!--ignore")
	f("shunt lint -", "--format", "-q", "--help")
	f("shunt check --format EMPTY", "text", "json", "sarif", "gitlab")
	f("shunt check --format s", "sarif", "!json")
	f("shunt check --fail-on = w", "warning", "!error")
	f("shunt check --fail-on =", "error", "warning", "note")
	f("shunt check --ignore SH030", "SH0301", "!SH0206")
	f("shunt rules --format EMPTY", "text", "json", "markdown", "!sarif")
	f("shunt completion EMPTY", "bash", "zsh", "fish")
	f("shunt explain SH020", "SH0206", "!SH0301")
	f("shunt help com", "compile", "completion")
	for _, files := range []string{"shunt check EMPTY", "shunt check --baseline EMPTY", "shunt check --format json = EMPTY", "shunt nothing EMPTY"} {
		if got := strings.TrimSpace(shell(t, "bash", "--norc", "-c", `source "$1"
COMP_WORDS=(); for w in $2; do [ "$w" = EMPTY ] && w=; COMP_WORDS+=("$w"); done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shunt; echo "${COMPREPLY[*]}"`, "bash", file, files)); got != "" {
			t.Errorf("%s: got %q, which keeps names of files from being completed", files, got)
		}
	}
	if got := shell(t, "bash", "--norc", "-c", `source "$1"; complete -p shunt`, "bash", file); !strings.Contains(got, "-o default -F _shunt shunt") {
		t.Errorf("got %q", got)
	}
}

func TestZshCompletion(t *testing.T) {
	file := script(t, "zsh")
	shell(t, "zsh", "-n", file)
	if got := shell(t, "zsh", "-f", "-c", `autoload -U compinit; compinit -u -D; source "$1"; print $_comps[shunt]`, "zsh", file); strings.TrimSpace(got) != "_shunt" {
		t.Errorf("got %q", got)
	}
}

func TestFishCompletion(t *testing.T) {
	file := script(t, "fish")
	shell(t, "fish", "-n", file)
	f := func(line string, words ...string) {
		t.Helper()
		holds(t, shell(t, "fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2] | string replace -r '\t.*' ''; true`, file, line), words...)
	}
	f("shunt ", "check", "compile", "!--format")
	f("shunt check --f", "--format", "--fail-on", "!--ignore")
	f("shunt check --format ", "sarif", "junit")
	f("shunt rules --format ", "markdown", "!sarif")
	f("shunt completion ", "fish")
}

// The page has every command and every option, and no line that would be taken
// for a request by accident.
func TestManPage(t *testing.T) {
	page := output(t, "man")
	plain := strings.NewReplacer(`\-`, "-", `\(dq`, `"`).Replace(page)
	for _, c := range documented(newApp(&streams{})) {
		if !strings.Contains(plain, ".SS "+strings.Join(c.names, ", ")) {
			t.Errorf("no command %s", c.names[0])
		}
		for _, o := range c.options {
			if !strings.Contains(plain, `\fB`+o.names[0]+`\fR`) {
				t.Errorf("no option %s", o.names[0])
			}
		}
	}
	for line := range strings.Lines(page) {
		if request, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(line, ".") &&
			!slices.Contains([]string{".TH", ".SH", ".SS", ".PP", ".TP", ".EX", ".EE"}, request) {
			t.Errorf("line %q", line)
		}
	}
	file := filepath.Join(t.TempDir(), "shunt.1")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("mandoc", func(t *testing.T) {
		// A page without a date is the same on every day.
		if got := shell(t, "sh", "-c", `command -v mandoc >/dev/null || exit 0; mandoc -T lint -W warning "$1" | grep -v 'missing date' || true`, "sh", file); got != "" {
			t.Error(got)
		}
	})
	t.Run("groff", func(t *testing.T) {
		if got := shell(t, "groff", "-man", "-ww", "-Tutf8", "-z", file); got != "" {
			t.Error(got)
		}
	})
}

func TestRoff(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var b strings.Builder
		roffText(&b, text)
		if b.String() != want {
			t.Errorf("%q: got %q, want %q", text, b.String(), want)
		}
	}
	f("a\nb", "a\nb\n")
	f("a\n\nb", "a\n.PP\nb\n")
	f("a\n\n  x\n\n  y\nb", "a\n.PP\n.EX\n  x\n\\&\n  y\n.EE\n.PP\nb\n")
	f(".a\n'b\nc\\d--e", "\\&.a\n\\&'b\nc\\ed\\-\\-e\n")
}
