package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"shunt/compiler/report/page"
)

func reportCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "write a plan, or what changed between two, as an HTML page",
		UsageText: "shunt report [OPTION]... PLAN|FILE [-o page.html]\nshunt report [OPTION]... OLD NEW [-o page.html]",
		Description: "Writes one HTML page for people who review a plan: the lengths of every bucket drawn to scale, the fallback\n" +
			"order of every length, groups, engines, policies with their tuning (what was written, with its place, apart\n" +
			"from defaults), admission, and what the plan requires and why. A configuration is compiled first, and its\n" +
			"findings are part of the page; errors go to standard error, and there is no page. With two plans or\n" +
			"configurations, the page has what shunt diff finds between the old and the new one. - is standard input.\n\n" +
			"The page is one file that asks the network for nothing, works without its script, and prints.\n\n" +
			exitText,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the page to `FILE`; without it, or with -, to standard output"},
			noColorFlag(),
		}, inputFlags()),
		Action: func(c *cli.Context) error { return writeReport(c, s) },
	}
}

func writeReport(c *cli.Context, s *streams) error {
	names, output := c.Args().Slice(), c.String("output")
	switch {
	case len(names) != 1 && len(names) != 2:
		return wrongUsage("report needs one plan or configuration, or two to compare; see shunt report --help")
	case len(names) == 2 && names[0] == "-" && names[1] == "-":
		return wrongUsage("standard input can be read only once")
	case output == "" && c.IsSet("output"):
		return wrongUsage("--output names no file")
	}
	if output == "-" {
		output = ""
	}
	if output != "" {
		if err := distinct([]string{output}, names); err != nil {
			return err
		}
	}
	var plans []page.Plan
	for _, name := range names {
		p, err := planWithFindings(c, s, []string{name})
		if err != nil {
			return err
		}
		if name == "-" {
			name = c.String("stdin-name")
		}
		plans = append(plans, page.Plan{Name: name, Document: p.document, Compiled: p.compiled, Findings: p.findings})
	}
	var b bytes.Buffer
	var err error
	if len(plans) == 2 {
		err = page.WriteDiff(&b, plans[0], plans[1])
	} else {
		err = page.Write(&b, plans[0])
	}
	if err != nil {
		return err
	}
	if output != "" {
		return writeFile(output, b.Bytes())
	}
	if _, err := s.out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
