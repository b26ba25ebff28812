package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"shunt/schema/plan"
)

func checkCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name: "check", Aliases: []string{"lint", "validate"},
		Usage:     "find the mistakes of a configuration",
		UsageText: "shunt check [OPTION]... FILE...",
		Description: "Reads the files, unifies them into one configuration and reports every mistake and warning at its\n" +
			"place. - is standard input. Nothing else is read, and nothing is written except reports.",
		Flags: slices.Concat(reportFlags(), inputFlags()),
		Action: func(c *cli.Context) error {
			rep, err := newReporting(c, s.out)
			if err != nil {
				return err
			}
			in, err := newInputs(c, s, c.Args().Slice())
			if err != nil {
				return err
			}
			if err := distinct(rep.files(), in.names()); err != nil {
				return err
			}
			r := in.compile(c.Context)
			if err := rep.write(r.Findings, in.lines(r)); err != nil {
				return err
			}
			return rep.verdict(r.Findings)
		},
	}
}

func compileCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "compile",
		Usage:     "make a plan of a configuration",
		UsageText: "shunt compile [OPTION]... FILE... -o plan.json",
		Description: "Checks the files as shunt check does and writes the plan: defaults filled in, buckets in try order,\n" +
			"names resolved. The plan is replaced as a whole, and not touched when there are findings.\n" +
			"Prints the digest and the file. Without -o the plan goes to standard output and findings to standard error.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the plan to `FILE`; - is standard output"},
			signFlag(),
		}, reportFlags(), inputFlags()),
		Action: func(c *cli.Context) error { return compile(c, s) },
	}
}

func compile(c *cli.Context, s *streams) error {
	output, out := c.String("output"), s.out
	if output == "" && c.IsSet("output") {
		return wrongUsage("--output names no file")
	}
	if output == "" || output == "-" {
		output, out = "", s.err
	}
	rep, err := newReporting(c, out)
	if err != nil {
		return err
	}
	in, err := newInputs(c, s, c.Args().Slice())
	if err != nil {
		return err
	}
	if output == "" && c.IsSet("sign") {
		return wrongUsage("--sign needs -o FILE, since the signature goes beside that file")
	}
	key, err := signKey(c, s)
	if err != nil {
		return err
	}
	written := rep.files()
	if output != "" {
		written = append(written, output)
	}
	if key != nil {
		written = append(written, output+plan.SignatureSuffix)
	}
	if err := distinct(written, in.names()); err != nil {
		return err
	}
	r := in.compile(c.Context)
	if err := rep.write(r.Findings, in.lines(r)); err != nil {
		return err
	}
	if err := rep.verdict(r.Findings); err != nil {
		return err
	}
	if r.Plan == nil {
		// Only findings of severity error stop a compilation, and those give a
		// status of their own.
		return fmt.Errorf("no plan was made")
	}
	data, err := plan.Encode(r.Plan)
	if err != nil {
		return err
	}
	if output == "" {
		_, err := s.out.Write(data)
		return err
	}
	if err := writePlan(output, data, key, s.err); err != nil {
		return err
	}
	// A report in JSON on the same stream has to stay one document.
	if rep.quiet || rep.occupies(s.out) {
		return nil
	}
	_, err = fmt.Fprintf(s.out, "%s  %s\n", r.Plan.Digest, output)
	return err
}
