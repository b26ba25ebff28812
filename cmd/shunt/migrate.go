package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/migrate"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/bucketfile"
)

// argumentsOf is the command whose arguments may be a whole command line of
// another program. arrange leaves the "--" before it where it is.
const argumentsOf = "migrate"

func migrateCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      argumentsOf,
		Usage:     "make a configuration of the command line of sgl-router",
		UsageText: "shunt migrate [OPTION]... FILE\nshunt migrate [OPTION]... -- ARGUMENT...",
		Description: "Reads how sgl-router, the older router, is started: its arguments behind --, or a file that holds them, which\n" +
			"is a shell script, a Kubernetes manifest, a compose file or a systemd unit. The configuration file of the\n" +
			"first versions, which had no arguments, is read too. - is standard input.\n\n" +
			"Writes a configuration whose comments name the origin of each value, and a report that accounts for every\n" +
			"argument and every field of the bucket file exactly once:\n\n" +
			"   carried          in the configuration with the same meaning\n" +
			"   renamed          the same under another name or in another place\n" +
			"   defaulted        not given; the older router's default is retained\n" +
			"   changed-meaning  in the configuration, but it does not mean quite the same; the report says how\n" +
			"   needs-decision   nobody can know it from the command line; the report asks\n" +
			"   rejected         dropped on purpose, or a mistake; the report says the way out\n\n" +
			"All mistakes are reported at once. The configuration is written only when nothing is rejected or needs a\n" +
			"decision and shunt check passes; with --partial it is written with marks TODO(shunt) otherwise.\n" +
			"It goes to standard output and the report to standard error, or with -o to a file and the report to\n" +
			"standard output.\n\n" +
			"A bucket file of one stage each becomes complete buckets only by --pair or a decisions file, which\n" +
			"--write-decisions makes as a template; nothing is inferred from ranks or names.\n\n" +
			"What an engine does is on no command line, because the older router asked the engines. --role says it:\n" +
			"--role plain for all of them, or --role http://10.0.0.1:30000=prefill:8998 for one, with the bootstrap port.\n\n" +
			"Exit status: 0 everything is in the configuration, 1 something is not, 2 wrong usage, 3 the job could not\n" +
			"be done.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the configuration to `FILE`; - is standard output"},
			&cli.StringFlag{Name: "format", Value: "yaml", Usage: "write the configuration as `NAME`: yaml or cue"},
			&cli.StringSliceFlag{Name: "report", Usage: "report as `NAME[=FILE]`: text, json or markdown; repeat it for several (default: text)"},
			&cli.BoolFlag{Name: "partial", Usage: "write the configuration with marks where something is missing"},
			&cli.StringSliceFlag{Name: "role", Usage: "`[URL=]ROLE` of an engine, or of all others: plain, prefill[:BOOTSTRAP_PORT] or decode"},
			&cli.StringFlag{Name: "tokenizer", Usage: "`PATH` of the tokenizer in place of the older router's, or engine to ask the engines, or none"},
			&cli.StringFlag{Name: "bucket-config", Usage: "the bucket `FILE`, in place of the one that the command line names"},
			&cli.StringSliceFlag{Name: "pair", Usage: "`PREFILL=DECODE[=ID]`: the two buckets of one stage that make one bucket"},
			&cli.StringFlag{Name: "workers", Usage: "the `FILE` of engines, in place of the one that a configuration file of the first versions names"},
			&cli.StringFlag{Name: "decisions", Usage: "the `FILE` with answers to the open questions"},
			&cli.StringFlag{Name: "write-decisions", Usage: "write the open questions to `FILE`, as decisions to fill in"},
			&cli.StringFlag{Name: "kind", Usage: "read FILE as `KIND`: " + kinds()},
			&cli.StringFlag{Name: "container", Usage: "`NAME` of the container, service or command when FILE has several"},
			&cli.StringSliceFlag{Name: "var", Usage: "`NAME=VALUE` of a variable that FILE leaves open"},
		},
		Action: func(c *cli.Context) error { return runMigrate(c, s) },
	}
}

// configKind is the kind of a configuration file of the first versions.
const configKind = "config"

func kinds() string {
	var out []string
	for _, k := range argv.Kinds() {
		out = append(out, string(k))
	}
	return strings.Join(append(out, configKind), ", ")
}

func runMigrate(c *cli.Context, s *streams) error {
	o, err := migrateOptions(c)
	if err != nil {
		return err
	}
	asked, err := optionFiles(c, s, &o)
	if err != nil {
		return err
	}
	output, out := c.String("output"), s.out
	if output == "" && c.IsSet("output") {
		return wrongUsage("--output names no file")
	}
	if output == "" || output == "-" {
		output, out = "", s.err
	}
	o.Output, o.Judge = output, checkTokenizers
	reports := &migrationReports{out: out}
	if reports.targets, err = parseTargets(c, "report", []string{"text", "json", "markdown"}); err != nil {
		return err
	}
	written := filesOf(reports.targets)
	template := c.String("write-decisions")
	for _, name := range []string{output, template} {
		if name != "" {
			written = append(written, name)
		}
	}
	in, read, err := legacyInput(c, s)
	if err != nil {
		return err
	}
	if in.invocation.Kind == "" || in.invocation.Kind == argv.KindShell {
		o.ReadFile = func(name string) ([]byte, error) {
			if err := distinct(written, []string{name}); err != nil {
				return nil, err
			}
			return readBounded(name, argv.MaxBytes)
		}
	}
	if err := distinct(written, append(read, asked...)); err != nil {
		return err
	}
	r := in.migrate(c.Context, o)
	if err := reports.write(r.Report); err != nil {
		return err
	}
	if template != "" {
		if err := writeFile(template, r.Template); err != nil {
			return err
		}
	}
	if r.Config != nil {
		if output == "" {
			_, err = s.out.Write(r.Config)
		} else {
			err = writeFile(output, r.Config)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case r.Report.All().Failed():
		return exitStatus(exitFailed)
	case r.Config == nil || r.Report.Partial || !r.Report.Fine():
		return exitStatus(exitFindings)
	}
	return nil
}

// migrateOptions reads the options of a migration.
func migrateOptions(c *cli.Context) (o migrate.Options, err error) {
	o = migrate.Options{Format: migrate.Format(c.String("format")), Partial: c.Bool("partial"), Tokenizer: c.String("tokenizer")}
	if o.Format != migrate.YAML && o.Format != migrate.CUE {
		return o, wrongUsage("--format %q is not yaml or cue", o.Format)
	}
	for _, word := range c.StringSlice("role") {
		a, err := migrate.ParseRole(word)
		if err != nil {
			return o, wrongUsage("--role %q: %v", word, err)
		}
		o.Roles = append(o.Roles, a)
	}
	for i, word := range c.StringSlice("pair") {
		p, err := bucketfile.ParsePair(word, i+1)
		if err != nil {
			return o, wrongUsage("--pair %q: %v", word, err)
		}
		o.Pairs = append(o.Pairs, p)
	}
	return o, nil
}

// optionFiles reads the files that options name, and lists them.
func optionFiles(c *cli.Context, s *streams, o *migrate.Options) (read []string, err error) {
	args := c.Args().Slice()
	uses := stdinUses(c, "bucket-config", "decisions", "workers")
	if len(args) > 0 && args[0] == "-" {
		uses++
	}
	if uses > 1 {
		return nil, wrongUsage("standard input can be read only once")
	}
	for _, f := range []struct {
		name string
		to   *migrate.Document
	}{{"bucket-config", &o.Buckets}, {"decisions", &o.Decisions}, {"workers", &o.Workers}} {
		name, to, file := f.name, f.to, c.String(f.name)
		if file == "" {
			if c.IsSet(name) {
				return nil, wrongUsage("--%s names no file", name)
			}
			continue
		}
		data, err := readArgument(s, file, argv.MaxBytes)
		if err != nil {
			return nil, err
		}
		if read = append(read, file); file == "-" {
			file = "stdin"
		}
		*to = migrate.Document{Name: file, Data: data}
	}
	if c.String("write-decisions") == "" && c.IsSet("write-decisions") {
		return nil, wrongUsage("--write-decisions names no file")
	}
	return read, nil
}

// legacy is what a migration starts from: an invocation, or a configuration file
// of the first versions.
type legacy struct {
	invocation argv.Invocation
	findings   diag.List
	file       *migrate.Document
}

func (l *legacy) migrate(ctx context.Context, o migrate.Options) migrate.Result {
	if l.file != nil {
		return migrate.MigrateFile(ctx, *l.file, o)
	}
	return migrate.Migrate(ctx, l.invocation, l.findings, o)
}

// legacyInput reads the arguments of the older router, or the file that has them.
// Read lists the files.
func legacyInput(c *cli.Context, s *streams) (in *legacy, read []string, err error) {
	args := c.Args().Slice()
	if i := slices.Index(args, "--"); i >= 0 {
		if i > 0 {
			return nil, nil, wrongUsage("give either FILE or -- with the arguments, not both")
		}
		for _, name := range []string{"kind", "container", "var"} {
			if c.IsSet(name) {
				return nil, nil, wrongUsage("--%s belongs to FILE, and the arguments are given directly", name)
			}
		}
		return &legacy{invocation: argv.FromArgs(args[1:])}, nil, nil
	}
	if len(args) != 1 {
		return nil, nil, wrongUsage("migrate needs one FILE, or -- and the arguments of sgl-router; see shunt migrate --help")
	}
	o, err := invocationOptions(c)
	if err != nil {
		return nil, nil, err
	}
	name := args[0]
	data, err := readArgument(s, name, argv.MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	if name == "-" {
		name = "stdin"
	}
	if o.Kind == configKind || o.Kind == argv.KindAuto && migrate.IsConfigFile(data) {
		return &legacy{file: &migrate.Document{Name: name, Data: data}}, args, nil
	}
	in = new(legacy)
	in.invocation, in.findings = argv.Read(name, data, o)
	return in, args, nil
}

// invocationOptions reads the options about FILE.
func invocationOptions(c *cli.Context) (o argv.Options, err error) {
	o = argv.Options{Kind: argv.Kind(c.String("kind")), Container: c.String("container"), Vars: make(map[string]string)}
	if o.Kind != argv.KindAuto && o.Kind != configKind && !slices.Contains(argv.Kinds(), o.Kind) {
		return o, wrongUsage("--kind %q is not one of %s", o.Kind, kinds())
	}
	for _, word := range c.StringSlice("var") {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return o, wrongUsage("--var %q is not NAME=VALUE", word)
		}
		o.Vars[name] = value
	}
	return o, nil
}

// migrationReports is where the report goes.
type migrationReports struct {
	targets []target
	out     io.Writer
}

func (r *migrationReports) write(rep *migrate.Report) error {
	for _, t := range r.targets {
		var b bytes.Buffer
		var err error
		switch t.format {
		case "json":
			err = rep.JSON(&b)
		case "markdown":
			err = rep.Markdown(&b)
		default:
			err = rep.Text(&b)
		}
		if err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		switch {
		case t.file == "":
			_, err = r.out.Write(b.Bytes())
		default:
			err = writeFile(t.file, b.Bytes())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
