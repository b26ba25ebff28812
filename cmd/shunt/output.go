package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
)

// reportFlags are the options of every command that reports findings.
func reportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "format", Usage: "report findings as `NAME[=FILE]`, text or json; repeat it for several (default: text)"},
		&cli.StringFlag{Name: "fail-on", Value: "error", Usage: "least `SEVERITY` that gives exit status 1: error, warning or note"},
		&cli.IntFlag{Name: "max-findings", Value: 200, Usage: "report at most `N` findings, 0 for all"},
		noColorFlag(),
	}
}

func noColorFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-color", Usage: "no colour on terminals; NO_COLOR in the environment does the same"}
}

// target is one report to write; no file is the stream of the command.
type target struct {
	format report.Format
	file   string
}

// reporting is how a command reports.
type reporting struct {
	targets []target
	failOn  diag.Severity
	max     int
	out     io.Writer
}

// newReporting reads the options. Out is where reports without a file go.
func newReporting(c *cli.Context, out io.Writer) (*reporting, error) {
	r := &reporting{max: c.Int("max-findings"), out: out}
	if r.max < 0 {
		return nil, wrongUsage("--max-findings %d is negative", r.max)
	}
	switch word := c.String("fail-on"); word {
	case "error":
		r.failOn = diag.Error
	case "warning":
		r.failOn = diag.Warning
	case "note":
		r.failOn = diag.Note
	default:
		return nil, wrongUsage("--fail-on %q is not error, warning or note", word)
	}
	words := c.StringSlice("format")
	if len(words) == 0 {
		words = []string{string(report.Text)}
	}
	streams := 0
	for _, word := range words {
		name, file, toFile := strings.Cut(word, "=")
		f := report.Format(name)
		if f != report.Text && f != report.JSON {
			return nil, wrongUsage("--format %q is not text or json", name)
		}
		if toFile && file == "" {
			return nil, wrongUsage("--format %q names no file", word)
		}
		if !toFile {
			streams++
			if f == report.Text && colors(c, out) {
				f = report.TextColor
			}
		}
		r.targets = append(r.targets, target{f, file})
	}
	if streams > 1 {
		return nil, wrongUsage("only one --format goes to the same stream; give the others a file, as in --format json=FILE")
	}
	return r, nil
}

// files lists the files that reports go to.
func (r *reporting) files() []string {
	var out []string
	for _, t := range r.targets {
		if t.file != "" {
			out = append(out, t.file)
		}
	}
	return out
}

// distinct refuses to write a file twice, or to write what is read: the last
// writer would win, and a configuration be lost.
func distinct(written, read []string) error {
	for i, name := range written {
		for _, other := range written[:i] {
			if sameFile(name, other) {
				return wrongUsage("%s would be written twice", name)
			}
		}
		for _, other := range read {
			if other != "-" && sameFile(name, other) {
				return wrongUsage("%s is an input and would be overwritten", name)
			}
		}
	}
	return nil
}

// sameFile reports whether two names are one file, perhaps one that does not
// exist yet. Devices and pipes take any number of writers.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err == nil && !one.Mode().IsRegular() {
		return false
	}
	other, err2 := os.Stat(b)
	if err == nil && err2 == nil {
		return os.SameFile(one, other)
	}
	a, err = filepath.Abs(a)
	b, err2 = filepath.Abs(b)
	return err == nil && err2 == nil && a == b
}

// colors reports whether text on w is coloured: on a terminal, unless that was
// forbidden.
func colors(c *cli.Context, w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || c.Bool("no-color") || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// write writes the findings everywhere they are wanted.
func (r *reporting) write(findings diag.List, lines func(string, int, int) []string) error {
	rep := report.Report{Tool: "shunt", Version: version(), Findings: findings, Max: r.max, Lines: lines}
	for _, t := range r.targets {
		if t.file == "" {
			if err := rep.Write(r.out, t.format); err != nil {
				return fmt.Errorf("write report: %w", err)
			}
			continue
		}
		var b bytes.Buffer
		if err := rep.Write(&b, t.format); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		if err := writeFile(t.file, b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// verdict is the exit status of findings, nil for fine.
func (r *reporting) verdict(findings diag.List) error {
	if findings.Failed() {
		return exitStatus(exitFailed)
	}
	if worst, ok := findings.Worst(); ok && worst.AtLeast(r.failOn) {
		return exitStatus(exitFindings)
	}
	return nil
}

// writeFile replaces a file as a whole: readers see the old or the new content.
// A device or pipe is written to directly.
func writeFile(name string, data []byte) error { return replaceFile(name, data, 0o644) }

// replaceFile is writeFile for a file of another mode.
func replaceFile(name string, data []byte, mode os.FileMode) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		if err := os.WriteFile(name, data, mode); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error is the one to tell
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	// CreateTemp makes private files; plans and reports are not.
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// occupies reports whether a document for programs goes to the stream, so that
// nothing else may.
func (r *reporting) occupies(w io.Writer) bool {
	for _, t := range r.targets {
		if t.file == "" && t.format == report.JSON && r.out == w {
			return true
		}
	}
	return false
}
