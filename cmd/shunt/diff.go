package main

import (
	"encoding/json"
	"slices"

	"github.com/urfave/cli/v2"

	"shunt/compiler/plandiff"
)

// exitDifferent is the status of diff --exit-code for plans that differ. It is
// the one of diff tools of plans; elsewhere 2 is wrong usage, which diff has too.
const exitDifferent = 2

func diffCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "say what changes between two plans or configurations",
		UsageText: "shunt diff [OPTION]... OLD NEW",
		Description: "Compares what two plans do, each given as a plan or as a configuration, which is compiled. - is standard\n" +
			"input. Prints the requests that go elsewhere, as exact ranges of input and expected peak with the buckets\n" +
			"in try order; engines that came, went or moved; policies, limits, times and other settings with their old\n" +
			"and new values. What only reads differently, such as comments or the order of engines, is no difference.\n\n" +
			"Every change has a class:\n\n" +
			"   breaking   requests that were served are refused whatever the load, or clients have to change something\n" +
			"   behaviour  requests are served elsewhere, in another order, or under other limits or times\n" +
			"   cosmetic   nothing about requests changes\n\n" +
			"A bucket or engine that only has another name counts as the same one; bindings of sessions and keys belong\n" +
			"to those names, and are lost. A request with an unknown peak counts as one whose peak is its input.\n\n" +
			"With ttft_slo or tps_slo a latency target of a request reorders buckets by their estimates. Ranges that say\n" +
			"nothing of targets hold for all; others name the targets for which the order changes. The text lists the\n" +
			"first of those, --format json all; where a length has very many buckets, only orders without targets are\n" +
			"compared, and the output says so.\n\n" +
			"Exit status: 0 compared, whatever the difference; with --exit-code 2 if a difference is listed, which with\n" +
			"--breaking-only means one that breaks. 1 findings in a configuration or plan, 3 the job could not be done.\n" +
			"Wrong usage is 2 as well, with a message on standard error and nothing on standard output.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Usage: "print as `NAME`: text, json, or markdown for a comment of at most 64 KiB"},
			&cli.BoolFlag{Name: "breaking-only", Usage: "list only what breaks"},
			&cli.BoolFlag{Name: "exit-code", Usage: "exit with 2 if a difference is listed"},
			noColorFlag(),
		}, inputFlags()),
		Action: func(c *cli.Context) error { return diffPlans(c, s) },
	}
}

func diffPlans(c *cli.Context, s *streams) error {
	format := c.String("format")
	if format != "text" && format != "json" && format != "markdown" {
		return wrongUsage("--format %q is not text, json or markdown", format)
	}
	names := c.Args().Slice()
	if len(names) != 2 {
		return wrongUsage("diff needs two plans or configurations, the old one first; see shunt diff --help")
	}
	if names[0] == "-" && names[1] == "-" {
		return wrongUsage("standard input can be read only once")
	}
	before, err := planOf(c, s, names[:1])
	if err != nil {
		return err
	}
	after, err := planOf(c, s, names[1:])
	if err != nil {
		return err
	}
	d := plandiff.Compare(names[0], before, names[1], after)
	if c.Bool("breaking-only") {
		d = d.OnlyBreaking()
	}
	switch format {
	case "json":
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(d)
	case "markdown":
		err = d.WriteMarkdown(s.out)
	default:
		err = d.WriteText(s.out)
	}
	if err == nil && c.Bool("exit-code") && !d.Empty() {
		return exitStatus(exitDifferent)
	}
	return err
}
