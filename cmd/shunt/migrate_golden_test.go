package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/migrate/flags"
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
