package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/format"
	"shunt/compiler/report"
	"shunt/compiler/source"
)

func fmtCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "fmt",
		Usage:     "lay configurations out",
		UsageText: "shunt fmt [OPTION]... FILE...",
		Description: "Prints YAML, JSON and CUE files with the indent and space that they should have. Only space changes:\n" +
			"comments, the order of keys, quotes and numbers stay, and so does the digest of the plan. - is standard input.\n" +
			"A file that cannot be read as its syntax is refused with its findings, on standard error, and left alone.\n\n" +
			"Exit status: 0 fine, 1 a file was refused or, with --check, is not laid out, 2 wrong usage, 3 the job could not be done.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "write", Aliases: []string{"w"}, Usage: "change the files instead of printing them"},
			&cli.BoolFlag{Name: "check", Usage: "print the names of files that are not laid out, and exit with 1 if there are any"},
			&cli.BoolFlag{Name: "diff", Aliases: []string{"d"}, Usage: "print the changes as a unified diff"},
			&cli.StringFlag{Name: "stdin-name", Value: "stdin.yaml", Usage: "`NAME` of standard input in findings; its extension is the syntax"},
			&cli.Int64Flag{Name: "max-bytes", Value: source.DefaultMaxBytes, Usage: "read at most `N` bytes of a file"},
			noColorFlag(),
		},
		Action: func(c *cli.Context) error { return fmtFiles(c, s) },
	}
}

func fmtFiles(c *cli.Context, s *streams) error {
	names := c.Args().Slice()
	switch {
	case len(names) == 0:
		return wrongUsage("fmt needs a file; see shunt fmt --help")
	case c.Bool("write") && c.Bool("check"):
		return wrongUsage("--check changes nothing, so --write cannot be with it")
	case c.Bool("write") && slices.Contains(names, "-"):
		return wrongUsage("--write cannot change standard input")
	case c.Int64("max-bytes") <= 0:
		return wrongUsage("--max-bytes must be positive")
	}
	if i := slices.Index(names, "-"); i >= 0 && slices.Contains(names[i+1:], "-") {
		return wrongUsage("standard input can be read only once")
	}
	f := &formatter{streams: s, write: c.Bool("write"), check: c.Bool("check"), diff: c.Bool("diff"), stdin: c.String("stdin-name")}
	f.options.MaxBytes = c.Int64("max-bytes")
	f.rep = &reporting{failOn: diag.Error, max: 200, out: s.err, targets: []target{{format: report.Text}}}
	if colors(c, s.err) {
		f.rep.targets[0].format = report.TextColor
	}
	var refused diag.List
	unformatted := false
	for _, name := range names {
		changed, findings, err := f.file(c, name)
		if err != nil {
			return err
		}
		refused = append(refused, findings...)
		unformatted = unformatted || changed
	}
	if err := f.rep.verdict(refused); err != nil {
		return err
	}
	if f.check && unformatted {
		return exitStatus(exitFindings)
	}
	return nil
}

// formatter is how fmt treats a file.
type formatter struct {
	*streams
	write, check, diff bool
	stdin              string
	options            source.Options
	rep                *reporting
}

// file lays one file out and reports whether that changes it.
func (f *formatter) file(c *cli.Context, name string) (changed bool, findings diag.List, err error) {
	text, shown, findings := f.read(c, name)
	var out []byte
	if len(findings) == 0 {
		out, findings = format.File(c.Context, f.options, shown, text)
	}
	if len(findings) > 0 {
		return false, findings, f.rep.write(findings, linesOf(text))
	}
	changed = !bytes.Equal(out, text)
	if f.check && changed && !f.diff {
		_, err = fmt.Fprintln(f.out, report.Clean(shown))
	}
	if f.diff && err == nil {
		_, err = f.out.Write(diff.Diff(report.Clean(shown)+".orig", text, report.Clean(shown), out))
	}
	if !f.check && !f.diff && !f.write && err == nil {
		_, err = f.out.Write(out)
	}
	if f.write && changed && err == nil {
		err = rewriteFile(name, out)
	}
	return changed, nil, err
}

// read returns the text of a file and the name to show for it.
func (f *formatter) read(c *cli.Context, name string) (text []byte, shown string, findings diag.List) {
	var err error
	shown = name
	if name == "-" {
		shown = f.stdin
		text, err = readUpTo(f.in, f.options.MaxBytes)
	} else {
		text, err = readBounded(name, f.options.MaxBytes)
	}
	if err == nil && (name == "-" || format.Knows(name)) {
		return text, shown, nil
	}
	// Reading it again as a configuration words the failure as everywhere.
	in := source.Input{Name: shown}
	if name == "-" {
		in.Reader = strings.NewReader(string(text))
	}
	if _, findings = source.Read(c.Context, f.options, []source.Input{in}); len(findings) == 0 {
		findings = diag.List{diag.New(diag.Unreadable, diag.Pos{File: shown}, "", fmt.Sprintf("the file cannot be read: %v", cause(err)))}
	}
	return nil, shown, findings
}

// rewriteFile changes the content of a file and keeps its mode. Of a symbolic
// link, the file that it leads to changes.
func rewriteFile(name string, data []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, cause(err))
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, cause(err))
	}
	return replaceFile(name, data, info.Mode().Perm())
}
