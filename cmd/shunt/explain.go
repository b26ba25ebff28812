package main

import (
	"github.com/urfave/cli/v2"
)

func explainCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say what the code of a finding means",
		UsageText: "shunt explain CODE",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return wrongUsage("explain needs one code, such as SH0206")
			}
			return explainCode(s.out, c.Args().First())
		},
	}
}
