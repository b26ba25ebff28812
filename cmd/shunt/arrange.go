package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange moves the options of a command before its arguments, so that they may
// be mixed, and refuses unknown commands and options with a suggestion. The flag
// parser itself would take everything behind the first argument as arguments.
// Everything behind "--" is an argument.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) < 2 || strings.HasPrefix(args[1], "-") {
		return args, nil
	}
	if args[1] == "help" {
		return helpFor(app, args)
	}
	command := app.Command(args[1])
	if command == nil {
		return nil, unknownCommand(app, args[1])
	}
	var options, rest []string
	for i := 2; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			if command.Name != argumentsOf {
				i++
			}
			rest = append(rest, args[i:]...)
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			rest = append(rest, arg)
			continue
		}
		name, _, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		takesValue, known := option(command, name)
		if !known {
			return nil, unknownOption(command, name)
		}
		options = append(options, arg)
		if takesValue && !joined {
			if i++; i == len(args) {
				return nil, wrongUsage("option %s of %s needs a value", arg, command.Name)
			}
			options = append(options, args[i])
		}
	}
	out := slices.Concat(args[:2], options)
	if len(rest) > 0 {
		out = append(append(out, "--"), rest...)
	}
	return out, nil
}

// helpFor turns "help COMMAND" into "COMMAND --help".
func helpFor(app *cli.App, args []string) ([]string, error) {
	if len(args) == 2 {
		return []string{args[0], "--help"}, nil
	}
	if len(args) > 3 || app.Command(args[2]) == nil {
		return nil, unknownCommand(app, args[len(args)-1])
	}
	return []string{args[0], args[2], "--help"}, nil
}

// option reports whether a command has an option of that name and whether the
// option takes a value.
func option(c *cli.Command, name string) (takesValue, known bool) {
	if name == "help" || name == "h" {
		return false, true
	}
	for _, f := range c.Flags {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(cli.DocGenerationFlag)
			return ok && d.TakesValue(), true
		}
	}
	return false, false
}

func unknownOption(c *cli.Command, name string) error {
	var names []string
	for _, f := range c.Flags {
		names = append(names, f.Names()...)
	}
	dashes := "--"
	if len(name) == 1 {
		dashes = "-"
	}
	if near := nearest(name, names); near != "" {
		return wrongUsage("%s has no option %s%s; did you mean --%s?", c.Name, dashes, name, near)
	}
	return wrongUsage("%s has no option %s%s; see shunt %s --help", c.Name, dashes, name, c.Name)
}

func unknownCommand(app *cli.App, name string) error {
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.Names()...)
	}
	if near := nearest(name, names); near != "" {
		return wrongUsage("there is no command %q; did you mean %q?", name, near)
	}
	return wrongUsage("there is no command %q; see shunt --help", name)
}

// nearest returns the name that a word was probably meant to be, or nothing.
func nearest(word string, names []string) string {
	best, least := "", len(word)/3+2
	for _, name := range names {
		if d := distance(word, name); d < least && len(name) > 1 {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of insertions, deletions and replacements between two
// words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
