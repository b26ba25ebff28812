package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
)

// readYAML reads a file of another program, without knowing all its fields.
func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

const (
	goodYAML = `version: 1
models:
  - id: m
    discovery: {static: {engines: [{id: A, url: "http://127.0.0.1:1", role: plain}]}}
`
	badYAML = goodYAML + `    buckets:
      - {id: a, groups: {plain: {worker_ids: [B]}}}
`
)

// commands makes a folder with this test as the program shunt, and returns it.
func commands(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "shunt")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bash runs a script in a folder with shunt in the path, and returns its status
// and output.
func bash(t *testing.T, dir, text string, env ...string) (int, string) {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	cmd := exec.CommandContext(t.Context(), path, "--noprofile", "--norc", "-eo", "pipefail", "-c", text)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}

// TestAction runs the script of the action as GitHub does.
func TestAction(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Using string
			Steps []struct {
				Name, ID, Run, Shell string
				Env                  map[string]string
			}
		}
	}
	readYAML(t, "../../action.yml", &action)
	i := slices.IndexFunc(action.Runs.Steps, func(s struct {
		Name, ID, Run, Shell string
		Env                  map[string]string
	}) bool {
		return s.ID == "check"
	})
	if i < 0 || action.Runs.Using != "composite" {
		t.Fatalf("%+v", action)
	}
	step := action.Runs.Steps[i]
	for _, s := range action.Runs.Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %s has an input in its script, where it is code", s.Name)
		}
	}
	temp := commands(t)
	f := func(status int, want string, inputs map[string]string) {
		t.Helper()
		dir := t.TempDir()
		for name, text := range map[string]string{"good.yaml": goodYAML, "a b/x y.yaml": goodYAML, "a b/bad.yaml": badYAML, "c/n.yaml": strings.Replace(goodYAML, "id: m", "id: n", 1), "$(touch pwned).yaml": goodYAML} {
			writeInput(t, filepath.Join(dir, name), []byte(text))
		}
		out := filepath.Join(dir, "output")
		env := []string{"RUNNER_TEMP=" + temp, "GITHUB_OUTPUT=" + out}
		for variable, expression := range step.Env {
			name := strings.TrimSuffix(strings.TrimPrefix(expression, "${{ inputs."), " }}")
			input, ok := action.Inputs[name]
			if !ok {
				t.Fatalf("%s is of no input", variable)
			}
			value := input.Default
			if v, ok := inputs[name]; ok {
				value = v
			}
			env = append(env, variable+"="+value)
		}
		got, text := bash(t, dir, step.Run, env...)
		written, _ := os.ReadFile(out)
		if got != status || !strings.Contains(text, want) || string(written) != "exit-status="+string(rune('0'+status))+"\n" {
			t.Errorf("%v: status %d, want %d; output %q\n%s", inputs, got, status, written, text)
		}
		if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
			t.Errorf("%v: the name of a file was run", inputs)
		}
		if name := inputs["sarif"]; name != "" {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Contains(data, []byte(`"columnKind"`)) {
				t.Errorf("%v: no SARIF: %v", inputs, err)
			}
		}
	}
	f(0, "", map[string]string{"files": "good.yaml"})
	f(0, "", map[string]string{"files": "good.yaml\n\n  \na b/x y.yaml\n"})
	f(1, "::error file=a b/bad.yaml,line=6", map[string]string{"files": "**/*.yaml", "sarif": "out put.sarif"})
	f(1, "SH0109", map[string]string{"files": "good.yaml\nc/n.yaml", "each": "false"})
	f(0, "", map[string]string{"files": "*.yaml", "args": "--max-findings=3\n--fail-on=note"})
	f(2, "no file matches", map[string]string{"files": "nothing/*.yaml"})
	f(3, "does not exist", map[string]string{"files": "nothing.yaml"})
	f(2, "", map[string]string{"files": "good.yaml", "fail-on": "sometimes"})
	f(3, "", map[string]string{"files": "good.yaml", "baseline": "none.json"})
}

// TestGitLabJob runs the command of the job.
func TestGitLabJob(t *testing.T) {
	var jobs map[string]struct {
		Script    []string
		Artifacts struct{ Reports map[string]string }
	}
	readYAML(t, "../../examples/ci/gitlab-ci.yml", &jobs)
	job := jobs["shunt"]
	line := job.Script[len(job.Script)-1]
	f := func(text string, status int) {
		t.Helper()
		dir := t.TempDir()
		writeInput(t, filepath.Join(dir, "routing.yaml"), []byte(text))
		if got, out := bash(t, dir, line, "PATH="+commands(t)+":"+os.Getenv("PATH")); got != status {
			t.Errorf("status %d, want %d\n%s", got, status, out)
		}
		for kind, name := range job.Artifacts.Reports {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("no %s: %v", kind, err)
			}
		}
	}
	f(goodYAML, 0)
	f(badYAML, 1)
}

// TestHooks runs what pre-commit runs: the entry with names of files behind it.
func TestHooks(t *testing.T) {
	var hooks []struct {
		ID, Entry, Language, Files string
	}
	readYAML(t, "../../.pre-commit-hooks.yaml", &hooks)
	if len(hooks) < 2 {
		t.Fatalf("%+v", hooks)
	}
	for _, h := range hooks {
		files := regexp.MustCompile(h.Files)
		if !files.MatchString("a/routing.yaml") || !files.MatchString("routing.cue") || files.MatchString("a/routing.yaml.bak") || files.MatchString("my-routing.yaml") {
			t.Errorf("%s: files %s", h.ID, h.Files)
		}
		dir := t.TempDir()
		writeInput(t, filepath.Join(dir, "routing.yaml"), []byte(goodYAML))
		writeInput(t, filepath.Join(dir, "b/routing.yaml"), []byte(goodYAML))
		if got, out := bash(t, dir, h.Entry+" routing.yaml b/routing.yaml", "PATH="+commands(t)+":"+os.Getenv("PATH")); got != 0 {
			t.Errorf("%s: status %d\n%s", h.ID, got, out)
		}
	}
}

// TestProblemMatcher matches the texts of all cases of golden/check: each
// finding is matched once, and nothing else is.
func TestProblemMatcher(t *testing.T) {
	data, err := os.ReadFile("../../examples/ci/problem-matcher.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		ProblemMatcher []struct {
			Owner   string
			Pattern []struct {
				Regexp                      string
				File, Line, Column, Message int
				Code                        int
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	finding := regexp.MustCompile(`: (error|warning|note): .* \[SH\d{4}\]$`)
	paths, err := filepath.Glob("../../golden/check/*.txtar")
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d cases, %v", len(paths), err)
	}
	used := make(map[string]int)
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(archive.Files[len(archive.Files)-1].Data) +
			"c.yaml:7:31: note: a note [SH0307]\nC:\\x.yaml:7:31: warning: with a colon [SH0301]\n"
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			n := 0
			for _, m := range file.ProblemMatcher {
				p := m.Pattern[0]
				got := regexp.MustCompile(p.Regexp).FindStringSubmatch(line)
				if got == nil {
					continue
				}
				n++
				used[m.Owner]++
				place := got[p.File] + ":" + got[p.Line]
				if p.Column > 0 {
					place += ":" + got[p.Column]
				}
				if !strings.HasPrefix(line, strings.TrimSuffix(place, ":")+": ") || !strings.HasSuffix(line, got[p.Message]+" ["+got[p.Code]+"]") {
					t.Errorf("%s: %q becomes %q", path, line, got)
				}
			}
			if want := finding.MatchString(line); (n == 1) != want || n > 1 {
				t.Errorf("%s: %q is matched %d times", path, line, n)
			}
		}
	}
	for _, m := range file.ProblemMatcher {
		if used[m.Owner] == 0 {
			t.Errorf("nothing was matched by %s", m.Owner)
		}
	}
}
