package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/migrate/flags"
	"shunt/compiler/source"
	"shunt/golden"
)

// TestMigrateCases runs shunt migrate on the cases of golden/migrate. The section
// args has one argument a line, all other sections are files.
func TestMigrateCases(t *testing.T) {
	golden.Run(t, "../../golden/migrate/*.txtar", func(t *testing.T, c *golden.Case) {
		before := files(t)
		var config, report bytes.Buffer
		args := append([]string{"shunt", "migrate"}, caseArgs(c)...)
		status := run(context.Background(), args, strings.NewReader(""), &config, &report)
		c.Want("status", string(rune('0'+status)))
		if config.Len() > 0 {
			c.Want("config", config.String())
			checkMigrated(t, args, config.Bytes())
			checkTargets(t, args)
		}
		c.Want("report", report.String())
		for _, name := range files(t) {
			if !slices.Contains(before, name) {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				c.Want(name, string(data))
			}
		}
		if status == exitFine && config.Len() == 0 {
			t.Error("fine, and nothing is written")
		}
	})
}

// caseArgs splits the section of arguments; an empty line is an empty argument.
func caseArgs(c *golden.Case) []string {
	return strings.Split(strings.TrimSuffix(string(c.Input("args")), "\n"), "\n")
}

func files(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// checkMigrated checks what was written, unless it is a draft.
func checkMigrated(t *testing.T, args []string, config []byte) {
	t.Helper()
	if slices.Contains(args, "--partial") {
		return
	}
	name := "stdin.yaml"
	if slices.Contains(args, "cue") {
		name = "stdin.cue"
	}
	var out bytes.Buffer
	check := []string{"shunt", "check", "--stdin-name", name, "-"}
	if status := run(context.Background(), check, bytes.NewReader(config), &out, &out); status != exitFine {
		t.Errorf("shunt check says %d\n%s", status, out.String())
	}
}

// checkTargets looks for all targets of the report in the configuration, and
// expects the same plan of both syntaxes.
func checkTargets(t *testing.T, args []string) {
	t.Helper()
	dir := t.TempDir()
	if i := slices.Index(args, "--format"); i >= 0 {
		args = slices.Delete(slices.Clone(args), i, i+2)
	}
	rerun := func(name string) []byte {
		t.Helper()
		file := filepath.Join(dir, name)
		more := []string{"--format", strings.TrimPrefix(filepath.Ext(name), "."), "-o", file, "--report", "json=" + file + ".json"}
		var out bytes.Buffer
		if status := run(context.Background(), slices.Concat(args[:2], more, args[2:]), strings.NewReader(""), &out, &out); status > exitFindings {
			t.Fatalf("exit status %d\n%s", status, out.String())
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	digests := make(map[string]string)
	for _, name := range []string{"c.yaml", "c.cue"} {
		in := func(data []byte) []source.Input {
			return []source.Input{{Name: name, As: filepath.Ext(name), Reader: bytes.NewReader(data)}}
		}
		data := rerun(name)
		tree, findings := source.Read(t.Context(), source.Options{}, in(data))
		if tree == nil {
			t.Fatalf("%s\n%s", findings, data)
		}
		var report struct {
			Lines []struct {
				Source  string
				Targets []string
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &report); err != nil {
			t.Fatal(err)
		}
		for _, l := range report.Lines {
			for _, target := range l.Targets {
				if tree.Node(target) == nil {
					t.Errorf("%s: no %s in\n%s", l.Source, target, data)
				}
			}
		}
		if r := compiler.Compile(t.Context(), compiler.Options{}, in(data)); r.Plan != nil {
			digests[name] = r.Plan.Digest
		}
	}
	if digests["c.yaml"] != digests["c.cue"] {
		t.Errorf("the two syntaxes say %v", digests)
	}
}

// TestMigrateCasesAreComplete looks for each argument of the older router, and
// each one that is dropped, among the cases.
func TestMigrateCasesAreComplete(t *testing.T) {
	var words []string
	cases := 0
	golden.Each(t, "../../golden/migrate/*.txtar", func(c *golden.Case) {
		cases++
		for _, name := range c.Inputs {
			words = append(words, strings.FieldsFunc(string(c.Input(name)), func(r rune) bool { return strings.ContainsRune(" \n=\",[]", r) })...)
		}
	})
	if cases < 60 {
		t.Errorf("%d cases, want 60 or more", cases)
	}
	for _, f := range flags.Table() {
		if !slices.Contains(words, "--"+f.Name) {
			t.Errorf("no case has --%s", f.Name)
		}
	}
	for _, word := range []string{
		"fused_score", "score_policy", "--fuse", "legacy_host_affinity", "--stable-pair", "soft",
		"prefix_cache", "--prefix-cache-min-share", "global-rebind", "global-preserve",
	} {
		if !slices.Contains(words, word) {
			t.Errorf("no case has the dropped option %s", word)
		}
	}
}
