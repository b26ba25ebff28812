package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
)

// reportFlags are the options of every command that reports findings.
func reportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "format", Usage: "report findings as `NAME[=FILE]`: " + formatNames() + "; repeat it for several (default: text)"},
		&cli.StringFlag{Name: "fail-on", Value: "error", Usage: "least `SEVERITY` that gives exit status 1: error, warning or note"},
		&cli.IntFlag{Name: "max-findings", Value: 200, Usage: "report at most `N` findings, the worst first, 0 for all"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only the findings that give exit status 1 or 3; other formats than text stay complete"},
		noColorFlag(),
	}
}

// formatNames lists the formats of findings for people.
func formatNames() string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	return alternatives(names)
}

// alternatives lists words for people.
func alternatives(words []string) string {
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
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
	quiet   bool
	out     io.Writer
	// inputs and named are those of report.Report; a command that reads
	// configurations sets them.
	inputs []string
	named  func(file, pointer string) string
}

// newReporting reads the options. Out is where reports without a file go.
func newReporting(c *cli.Context, out io.Writer) (*reporting, error) {
	r := &reporting{max: c.Int("max-findings"), quiet: c.Bool("quiet"), out: out}
	if r.max < 0 {
		return nil, wrongUsage("--max-findings %d is negative", r.max)
	}
	var err error
	if r.failOn, err = severity(c.String("fail-on")); err != nil {
		return nil, err
	}
	if err := r.addTargets(c); err != nil {
		return nil, err
	}
	return r, nil
}

// severity reads the value of --fail-on.
func severity(word string) (diag.Severity, error) {
	for _, s := range [...]diag.Severity{diag.Error, diag.Warning, diag.Note} {
		if word == s.String() {
			return s, nil
		}
	}
	return 0, wrongUsage("--fail-on %q is not error, warning or note", word)
}

// addTargets reads the values of --format.
func (r *reporting) addTargets(c *cli.Context) (err error) {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	r.targets, err = parseTargets(c, "format", names)
	for i := range r.targets {
		if t := &r.targets[i]; t.file == "" && t.format == report.Text && colors(c, r.out) {
			t.format = report.TextColor
		}
	}
	return err
}

// parseTargets reads the values NAME[=FILE] of an option. Without any there is
// text for the stream, and only one report may go there.
func parseTargets(c *cli.Context, option string, names []string) ([]target, error) {
	words := c.StringSlice(option)
	if len(words) == 0 {
		return []target{{format: report.Text}}, nil
	}
	var out []target
	streams := 0
	for _, word := range words {
		name, file, toFile := strings.Cut(word, "=")
		if !slices.Contains(names, name) {
			return nil, wrongUsage("--%s %q is not %s", option, name, alternatives(names))
		}
		if toFile && file == "" {
			return nil, wrongUsage("--%s %q names no file", option, word)
		}
		if file == "-" {
			file = ""
		}
		if file == "" {
			streams++
		}
		out = append(out, target{report.Format(name), file})
	}
	if streams > 1 {
		return nil, wrongUsage("only one --%s goes to the same stream; give the others a file, as in --%[1]s json=FILE", option)
	}
	return out, nil
}

// filesOf lists the files that reports go to.
func filesOf(targets []target) []string {
	var out []string
	for _, t := range targets {
		if t.file != "" {
			out = append(out, t.file)
		}
	}
	return out
}

// files lists the files that reports go to.
func (r *reporting) files() []string { return filesOf(r.targets) }

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
	return resolve(a) == resolve(b)
}

// resolve follows symbolic links, also one to a file that does not exist yet.
func resolve(name string) string {
	for range 40 { // as many as Linux follows
		if target, err := filepath.EvalSymlinks(name); err == nil {
			name = target
			break
		}
		target, err := os.Readlink(name)
		if err != nil {
			if dir, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
				name = filepath.Join(dir, filepath.Base(name))
			}
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(name), target)
		}
		name = target
	}
	if full, err := filepath.Abs(name); err == nil {
		return full
	}
	return name
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

// write writes the findings everywhere they are wanted. A report that cannot be
// written does not keep the others from being written.
func (r *reporting) write(findings diag.List, lines func(string, int, int) []string) error {
	findings.Mask()
	rep := r.report(findings, lines)
	var failed []error
	for _, t := range r.targets {
		if t.file == "" {
			quiet := *rep
			quiet.Quiet = r.quiet
			if err := quiet.Write(r.out, t.format); err != nil {
				failed = append(failed, fmt.Errorf("write report: %w", err))
			}
			continue
		}
		var b bytes.Buffer
		if err := rep.Write(&b, t.format); err != nil {
			failed = append(failed, fmt.Errorf("write report: %w", err))
			continue
		}
		if err := writeFile(t.file, b.Bytes()); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// report is the run for the formats.
func (r *reporting) report(findings diag.List, lines func(string, int, int) []string) *report.Report {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // names of files stay as they are
	}
	return &report.Report{
		Tool: "shunt", Version: version(), Findings: findings, Max: r.max, Lines: lines,
		FailOn: r.failOn, ExitStatus: r.status(findings), Inputs: r.inputs, Dir: dir, Named: r.named,
	}
}

// status is the exit status of findings. No format has a say in it.
func (r *reporting) status(findings diag.List) int {
	if findings.Failed() {
		return exitFailed
	}
	if worst, ok := findings.Worst(); ok && worst.AtLeast(r.failOn) {
		return exitFindings
	}
	return exitFine
}

// verdict is the exit status of findings as an error, nil for fine.
func (r *reporting) verdict(findings diag.List) error {
	if code := r.status(findings); code != exitFine {
		return exitStatus(code)
	}
	return nil
}

// writeFile replaces a file as a whole: readers see the old or the new content.
// A device or pipe is written to directly, and so is what only looks like a
// file, such as /dev/stdout that leads to one. A symbolic link stays one.
func writeFile(name string, data []byte) error { return replaceFile(name, data, 0o644) }

// replaceFile is writeFile for a file of another mode.
func replaceFile(name string, data []byte, mode os.FileMode) (err error) {
	if info, err := os.Stat(name); err == nil && (!info.Mode().IsRegular() || special(name)) {
		if err := os.WriteFile(name, data, mode); err != nil {
			return fmt.Errorf("write %s: %w", name, cause(err))
		}
		return nil
	}
	target := resolve(name)
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, cause(err))
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error is the one to tell
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", name, cause(err))
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
	return os.Rename(f.Name(), target)
}

// cause is an error without the name of a file, which would be that of a
// temporary one.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// special reports whether a name is a link that the system makes up.
func special(name string) bool {
	full, err := filepath.Abs(name)
	if err != nil || !strings.HasPrefix(full, "/dev/") && !strings.HasPrefix(full, "/proc/") {
		return false
	}
	info, err := os.Lstat(full)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// occupies reports whether a document for programs goes to the stream, so that
// nothing else may.
func (r *reporting) occupies(w io.Writer) bool {
	for _, t := range r.targets {
		if t.file == "" && t.format.Document() && r.out == w {
			return true
		}
	}
	return false
}
