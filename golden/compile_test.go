package golden_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/source"
	"shunt/golden"
	"shunt/schema/plan"
)

// compileCase compiles all input files of a case together.
func compileCase(c *golden.Case) compiler.Result {
	var in []source.Input
	for _, name := range c.Inputs {
		in = append(in, source.Input{Name: name})
	}
	return compiler.Compile(context.Background(), compiler.Options{Compiler: "golden"}, in)
}

// findings is what shunt check prints.
func findings(t *testing.T, r compiler.Result) string {
	t.Helper()
	rep := report.Report{Findings: r.Findings}
	if r.Tree != nil {
		rep.Lines = r.Tree.Lines
	}
	var b bytes.Buffer
	if err := rep.Write(&b, report.Text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRules: each case of rules is a configuration that breaks a rule, has
// something to warn about, or asks for what is not available yet.
func TestRules(t *testing.T) {
	golden.Run(t, "rules/*.txtar", func(t *testing.T, c *golden.Case) {
		r := compileCase(c)
		if (r.Plan == nil) != r.Findings.HasErrors() {
			t.Errorf("plan made: %v", r.Plan != nil)
		}
		c.Want("findings", findings(t, r))
	})
}

// TestPlans: each case of compile is a configuration and the bytes of its plan.
func TestPlans(t *testing.T) {
	golden.Run(t, "compile/*.txtar", func(t *testing.T, c *golden.Case) {
		r := compileCase(c)
		if r.Plan == nil {
			t.Fatalf("no plan:\n%s", findings(t, r))
		}
		data, err := plan.Encode(r.Plan)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Load(data); err != nil {
			t.Error(err)
		}
		c.Want("plan.json", string(data))
	})
}

// Every code of a rule, a warning or something not available yet has a case.
func TestEveryRuleHasACase(t *testing.T) {
	paths, err := filepath.Glob("rules/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	for _, e := range diag.Table() {
		family := e.Code[:4]
		if e.Code >= diag.DroppedPolicy && family == "SH04" || family != "SH02" && family != "SH03" && family != "SH04" || e.Code == diag.TooManyRuns {
			continue // shape and input have cases of their own, and that one needs thousands of buckets
		}
		if !strings.Contains(all.String(), "["+string(e.Code)+"]") {
			t.Errorf("%s %s: no case", e.Code, e.Title)
		}
	}
}
