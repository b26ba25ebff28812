package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/schema/plan"
)

func checkCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name: "check", Aliases: []string{"lint", "validate"},
		Usage:     "find the mistakes of a configuration",
		UsageText: "shunt check [OPTION]... FILE...",
		Description: "Reads the files, unifies them into one configuration and reports every mistake and warning at its\n" +
			"place. - is standard input. Nothing else is read, and nothing is written except reports.\n\n" + acceptText + "\n\n" + exitFailOnText,
		Flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "each", Usage: "take each file for a configuration of its own"},
		}, reportFlags(), acceptFlags(), inputFlags()),
		Action: func(c *cli.Context) error {
			r, err := newJudging(c, s, s.out, c.Bool("each"))
			if err != nil {
				return err
			}
			r.written = r.writes()
			if err := distinct(r.written, r.reads()); err != nil {
				return err
			}
			_, err = r.judge(c.Context)
			return err
		},
	}
}

// acceptText says in the help of commands how findings are accepted.
const acceptText = "A comment # shunt:ignore CODE reason on the line of a warning or note, or above it, accepts it; CUE has\n" +
	"the same behind //. So do --ignore and --baseline. Errors cannot be accepted, every format but checkstyle\n" +
	"and gitlab shows what was, and what accepts nothing is reported."

// exitText and exitFailOnText are the exit statuses in the help of commands.
const (
	exitText       = "Exit status: 0 fine, 1 an error was found, 2 wrong usage, 3 the job could not be done."
	exitFailOnText = "Exit status: 0 fine, 1 findings at or above --fail-on, 2 wrong usage, 3 the job could not be done."
)

// judging is a command that compiles configurations and reports what it finds.
type judging struct {
	rep    *reporting
	accept *acceptance
	// list has one element, or one for each configuration.
	list []*inputs
	// written are the files that the command writes.
	written []string
	s       *streams
}

// newJudging reads options and arguments. Out is where reports without a file
// go.
func newJudging(c *cli.Context, s *streams, out io.Writer, each bool) (*judging, error) {
	r := &judging{s: s}
	var err error
	if r.rep, err = newReporting(c, out); err != nil {
		return nil, err
	}
	if r.accept, err = newAcceptance(c); err != nil {
		return nil, err
	}
	names := c.Args().Slice()
	all, err := newInputs(c, s, names)
	if err != nil {
		return nil, err
	}
	if !each {
		r.list = []*inputs{all}
		return r, nil
	}
	for i := range all.list {
		one := *all
		one.list = all.list[i : i+1]
		if slices.Index(names, names[i]) == i {
			r.list = append(r.list, &one)
		}
	}
	return r, nil
}

// reads and writes are the files that are read and written.
func (r *judging) reads() []string {
	out := r.accept.reads()
	for _, in := range r.list {
		out = append(out, in.names()...)
	}
	return out
}

func (r *judging) writes() []string { return append(r.rep.files(), r.accept.writes()...) }

// judge compiles and reports. The error is the verdict, or that something could
// not be written. The result is that of the last configuration.
func (r *judging) judge(ctx context.Context) (compiler.Result, error) {
	var findings diag.List
	var last compiler.Result
	var views []view
	for _, in := range r.list {
		last = in.compile(ctx)
		findings = append(findings, last.Findings...)
		v := view{files: in.files(last), lines: in.lines(last)}
		if last.Tree != nil {
			v.named = last.Tree.Named
		}
		views = append(views, v)
		r.rep.inputs = append(r.rep.inputs, v.files...)
	}
	// What a CUE program imports is known only now.
	if err := distinct(r.written, r.rep.inputs); err != nil {
		return last, err
	}
	findings.Sort()
	r.rep.named = func(file, pointer string) string {
		if v := viewOf(views, file); v != nil && v.named != nil {
			return v.named(pointer)
		}
		return pointer
	}
	lines := func(file string, first, last int) []string {
		if v := viewOf(views, file); v != nil {
			return v.lines(file, first, last)
		}
		return nil
	}
	findings, baseline, err := r.accept.apply(r.rep, findings)
	if err != nil {
		return last, err
	}
	last.Findings = findings
	if err := r.rep.write(findings, lines); err != nil {
		return last, err
	}
	if err := r.accept.finish(r.rep, findings, baseline, r.s); err != nil {
		return last, err
	}
	return last, r.rep.verdict(findings)
}

// view is how reports look at a configuration.
type view struct {
	files []string
	lines func(file string, first, last int) []string
	// named is nil where nothing could be read.
	named func(pointer string) string
}

func viewOf(views []view, file string) *view {
	for i := range views {
		if slices.Contains(views[i].files, file) {
			return &views[i]
		}
	}
	return nil
}

func compileCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "compile",
		Usage:     "make a plan of a configuration",
		UsageText: "shunt compile [OPTION]... FILE... -o plan.json",
		Description: "Checks the files as shunt check does and writes the plan: defaults filled in, buckets in try order,\n" +
			"names resolved. The plan is replaced as a whole, and not touched when there are findings.\n" +
			"Prints the digest and the file. Without -o the plan goes to standard output and findings to standard error.\n\n" + acceptText + "\n\n" + exitFailOnText,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the plan to `FILE`; - is standard output"},
			signFlag(),
		}, reportFlags(), acceptFlags(), inputFlags()),
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
	j, err := newJudging(c, s, out, false)
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
	written := j.writes()
	if output != "" {
		written = append(written, output)
	}
	if key != nil {
		written = append(written, output+plan.SignatureSuffix)
	}
	if err := distinct(written, append(j.reads(), fileOf(c.String("sign"))...)); err != nil {
		return err
	}
	j.written = written
	r, err := j.judge(c.Context)
	if err != nil {
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
	if j.rep.quiet || j.rep.occupies(s.out) {
		return nil
	}
	_, err = fmt.Fprintf(s.out, "%s  %s\n", r.Plan.Digest, report.Clean(output))
	return err
}
