package main

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/source"
	"shunt/schema/plan"
)

func showCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print a plan or configuration with everything filled in",
		UsageText: "shunt show [OPTION]... plan.json|FILE...",
		Description: "Prints a plan for people, or the plan that configurations compile to. With --origin it prints every\n" +
			"value on a line of its own, with the file and line it was written at, or default, or derived.\n" +
			"Errors go to standard error; shunt check has the warnings.\n\n" +
			exitText,
		Flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "origin", Usage: "print each value and where it comes from"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "print as `NAME`: text or json"},
			noColorFlag(),
		}, inputFlags()),
		Action: func(c *cli.Context) error { return show(c, s) },
	}
}

func show(c *cli.Context, s *streams) error {
	format := c.String("format")
	if format != "text" && format != "json" {
		return wrongUsage("--format %q is not text or json", format)
	}
	document, err := showInput(c, s)
	if err != nil {
		return err
	}
	if !c.Bool("origin") {
		if format == "text" {
			return report.WritePlan(s.out, document)
		}
		data, err := plan.Encode(document)
		if err != nil {
			return err
		}
		_, err = s.out.Write(data)
		return err
	}
	values, err := report.Values(document)
	if err != nil {
		return err
	}
	if format == "text" {
		return report.WriteValues(s.out, values)
	}
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(values)
}

// showInput loads the plan of the arguments or compiles them.
func showInput(c *cli.Context, s *streams) (*plan.Document, error) {
	return planOf(c, s, c.Args().Slice())
}

// planOf loads a plan, or compiles configurations. Errors go to standard error.
func planOf(c *cli.Context, s *streams, names []string) (*plan.Document, error) {
	p, err := planWithFindings(c, s, names)
	return p.document, err
}

// foundPlan is a plan, and what was found about its configuration when it was
// compiled and not read.
type foundPlan struct {
	document *plan.Document
	compiled bool
	findings diag.List
}

func planWithFindings(c *cli.Context, s *streams, names []string) (foundPlan, error) {
	// Only what stops the command is news: warnings are for shunt check, where they
	// can be accepted.
	rep := &reporting{failOn: diag.Error, max: 200, quiet: true, out: s.err, targets: []target{{format: report.Text}}}
	if colors(c, s.err) {
		rep.targets[0].format = report.TextColor
	}
	in, err := newInputs(c, s, names)
	if err != nil {
		return foundPlan{}, err
	}
	if len(names) == 1 {
		data, err := readArgument(s, names[0], maxPlanBytes)
		if err != nil {
			return foundPlan{}, err
		}
		if isPlan(data) {
			document, err := plan.Load(data)
			if err == nil {
				return foundPlan{document: document}, nil
			}
			findings := diag.List{planFinding(names[0], err)}
			if err := rep.write(findings, linesOf(data)); err != nil {
				return foundPlan{}, err
			}
			return foundPlan{}, rep.verdict(findings)
		}
		name := names[0]
		if name == "-" {
			name = c.String("stdin-name")
			in.stdin.Write(data)
		}
		in.list = []source.Input{{Name: name, Reader: bytes.NewReader(data)}}
	}
	r := in.compile(c.Context)
	if err := rep.write(r.Findings, in.lines(r)); err != nil {
		return foundPlan{}, err
	}
	return foundPlan{r.Plan, true, r.Findings}, rep.verdict(r.Findings)
}

// isPlan tells a plan from a configuration: only a plan names its format, and
// that first.
func isPlan(data []byte) bool {
	head, ok := bytes.CutPrefix(bytes.TrimSpace(data[:min(len(data), 200)]), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimSpace(head), []byte(`"format"`))
}
