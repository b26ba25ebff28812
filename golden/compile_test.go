package golden_test

import (
	"bytes"
	"context"
	"testing"

	"shunt/compiler"
	"shunt/compiler/report"
	"shunt/compiler/source"
	"shunt/golden"
	"shunt/runtime/simulate"
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
		loaded, err := plan.Load(data)
		if err != nil {
			t.Fatal(err)
		}
		sim, err := simulate.New(&loaded.Body, simulate.World{}, decideSeed)
		if err != nil {
			t.Fatalf("the plan does not assemble: %v", err)
		}
		sim.Close()
		c.Want("plan.json", string(data))
	})
}
