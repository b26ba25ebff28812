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
		Usage:     "print the schema of configurations",
		UsageText: "shunt schema [--cue|--findings]",
		Description: "Prints the JSON Schema (draft 7) of a configuration, for editors: with it they complete and explain fields\n" +
			"and mark mistakes of shape while you write. It is made from the CUE schema, which judges in shunt check and\n" +
			"which --cue prints. Rules between fields are in neither; shunt check has them.\n\n" +
			"VS Code with the YAML extension and Neovim with yaml-language-server read this line at the top of a file:\n" +
			"  # yaml-language-server: $schema=config.schema.json",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "cue", Usage: "print the CUE schema, as one file"},
			&cli.BoolFlag{Name: "findings", Usage: "print the JSON Schema of findings as --format json writes them"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return wrongUsage("schema takes no argument")
			}
			var err error
			switch {
			case c.Bool("cue") && c.Bool("findings"):
				return wrongUsage("--cue and --findings print different schemas; ask for one")
			case c.Bool("cue"):
				_, err = io.WriteString(s.out, cueSchema())
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
func cueSchema() string {
	var b strings.Builder
	for i, f := range schema.Files() {
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
