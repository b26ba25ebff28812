package main

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/report"
	"shunt/schema"
)

func schemaCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "schema",
		Usage:     "print the schema of configurations, or of files of tests",
		UsageText: "shunt schema [--test] [--cue]\n   shunt schema --findings",
		Description: "Prints the JSON Schema (draft 7) of a configuration, for editors: with it they complete and explain fields\n" +
			"and mark mistakes of shape while you write. It is made from the CUE schema, which judges in shunt check and\n" +
			"which --cue prints. Rules between fields are in neither; shunt check has them. --test is the same for the\n" +
			"files that shunt test runs.\n\n" +
			"VS Code with the YAML extension and Neovim with yaml-language-server read this line at the top of a file:\n" +
			"  # yaml-language-server: $schema=config.schema.json",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "test", Usage: "print the schema of files of tests"},
			&cli.BoolFlag{Name: "cue", Usage: "print the CUE schema, as one file"},
			&cli.BoolFlag{Name: "findings", Usage: "print the JSON Schema of findings as --format json writes them"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return wrongUsage("schema takes no argument")
			}
			var err error
			switch {
			case c.Bool("findings") && (c.Bool("cue") || c.Bool("test")):
				return wrongUsage("--findings and the others print different schemas; ask for one")
			case c.Bool("cue") && c.Bool("test"):
				_, err = io.WriteString(s.out, cueSchema(schema.TestFiles()))
			case c.Bool("cue"):
				_, err = io.WriteString(s.out, cueSchema(schema.Files()))
			case c.Bool("test"):
				_, err = s.out.Write(schema.TestJSON())
			case c.Bool("findings"):
				_, err = io.WriteString(s.out, report.FindingsSchema())
			default:
				_, err = s.out.Write(schema.JSON())
			}
			return err
		},
	}
}

// cueSchema joins the files of the schema's package to one.
func cueSchema(files []schema.File) string {
	var b strings.Builder
	for i, f := range files {
		head, body, _ := strings.Cut(f.Text, "package schema\n")
		if i == 0 {
			b.WriteString(head + "package schema\n")
		} else {
			b.WriteString("\n" + head)
		}
		b.WriteString(body)
	}
	return b.String()
}
