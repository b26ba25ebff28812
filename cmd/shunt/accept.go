package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/suppress"
)

// maxBaselineBytes bounds the baselines that are read.
const maxBaselineBytes = 64 << 20

// acceptFlags are the options of commands that accept findings.
func acceptFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "ignore", Usage: "do not count warnings and notes with `CODE[=PATTERN]`, of all files or of those that match; repeat it for several"},
		&cli.StringFlag{Name: "baseline", Usage: "do not count the findings that `FILE` lists"},
		&cli.StringFlag{Name: "write-baseline", Usage: "write the warnings and notes of this run to `FILE`, for --baseline"},
	}
}

// acceptance is what the command line says about findings.
type acceptance struct {
	ignores []suppress.Ignore
	// baseline is read and next is written; both may be empty.
	baseline, next string
}

func newAcceptance(c *cli.Context) (*acceptance, error) {
	a := &acceptance{baseline: c.String("baseline"), next: c.String("write-baseline")}
	for _, name := range [...]string{"baseline", "write-baseline"} {
		if c.IsSet(name) && (c.String(name) == "" || c.String(name) == "-") {
			return nil, wrongUsage("--%s needs the name of a file", name)
		}
	}
	if a.baseline != "" && a.next != "" {
		return nil, wrongUsage("--write-baseline lists everything anew; leave --baseline out")
	}
	for _, text := range c.StringSlice("ignore") {
		g, err := suppress.ParseIgnore(text)
		if err != nil {
			return nil, wrongUsage("--ignore: %w", err)
		}
		a.ignores = append(a.ignores, g)
	}
	return a, nil
}

// reads and writes are the files that are read and written.
func (a *acceptance) reads() []string  { return named(a.baseline) }
func (a *acceptance) writes() []string { return named(a.next) }

func named(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// apply marks the findings that are accepted, and adds what is wrong with the
// acceptance. The second result is the baseline to write, nil for none.
func (a *acceptance) apply(rep *reporting, findings diag.List) (diag.List, []byte, error) {
	how := suppress.Acceptance{Ignores: a.ignores, Identity: rep.report(nil, nil).Identity}
	for _, name := range rep.inputs {
		how.Files = append(how.Files, how.Identity(&diag.Finding{Pos: diag.Pos{File: name}}).File)
	}
	if a.baseline != "" {
		b, problems := readBaseline(a.baseline)
		findings = append(findings, problems...)
		how.Baseline = b
	}
	if a.next == "" {
		return how.Apply(findings), nil, nil
	}
	findings = how.Apply(findings)
	if findings.HasErrors() {
		return findings, nil, nil
	}
	data, err := suppress.WriteBaseline(findings, how.Identity)
	if err != nil {
		return nil, nil, err
	}
	var problems diag.List
	if how.Baseline, problems = suppress.ReadBaseline(a.next, data); len(problems) > 0 {
		return nil, nil, errors.New(problems.String()) // we wrote it, so it can be read
	}
	how.Ignores = nil // they have been applied
	return how.Apply(findings), data, nil
}

func readBaseline(name string) (*suppress.Baseline, diag.List) {
	data, err := readBounded(name, maxBaselineBytes)
	if err == nil {
		return suppress.ReadBaseline(name, data)
	}
	reason := err.Error()
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		reason = p.Err.Error()
	}
	return nil, diag.List{diag.New(diag.Unreadable, diag.Pos{File: name}, "", "the baseline cannot be read: "+reason)}
}

// finish writes the baseline that apply made.
func (a *acceptance) finish(rep *reporting, findings diag.List, data []byte, s *streams) error {
	if a.next == "" {
		return nil
	}
	if data == nil {
		fmt.Fprintf(s.err, "shunt: %s is not written, since the run has errors\n", report.Clean(a.next))
		return nil
	}
	if err := writeFile(a.next, data); err != nil {
		return err
	}
	if !rep.quiet {
		n := 0
		for i := range findings {
			if by := findings[i].Suppressed; by != nil && by.By == diag.ByBaseline {
				n++
			}
		}
		what := "findings"
		if n == 1 {
			what = "finding"
		}
		fmt.Fprintf(s.err, "shunt: wrote %s, which accepts %d %s\n", report.Clean(a.next), n, what)
	}
	return nil
}
