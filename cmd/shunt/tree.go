package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
)

// commandDoc is a command as completions and manual pages need it. Both are made
// of the same tree that parses the command line, so that they cannot differ from
// it.
type commandDoc struct {
	names       []string
	usage       string
	synopsis    string
	description string
	options     []optionDoc
	// words are what its arguments can be, empty for the names of files, and nil
	// for no arguments.
	words []string
}

// optionDoc is an option of a command.
type optionDoc struct {
	// names are with their dashes, the long ones first.
	names []string
	// value is the placeholder of the value, empty for an option without one.
	value string
	usage string
	// def is the default as text, empty for none.
	def string
	// words are the values that there are, if they can be listed.
	words    []string
	repeated bool
}

// file reports whether the value of the option is a file.
func (o *optionDoc) file() bool {
	return len(o.words) == 0 && (strings.Contains(o.value, "FILE") || strings.Contains(o.value, "DIR") || strings.Contains(o.value, "PATH"))
}

// documented lists the commands that a user sees, in their order.
func documented(app *cli.App) []commandDoc {
	var out []commandDoc
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		d := commandDoc{names: c.Names(), usage: c.Usage, synopsis: c.UsageText, description: c.Description, words: argumentWords(c)}
		for _, f := range c.Flags {
			if o, ok := optionOf(f); ok {
				d.options = append(d.options, o)
			}
		}
		d.options = append(d.options, optionDoc{names: []string{"--help", "-h"}, usage: "show help"})
		out = append(out, d)
	}
	return out
}

// argumentWords lists what the arguments of a command can be.
func argumentWords(c *cli.Command) []string {
	switch c.Name {
	case "explain":
		var codes []string
		for _, e := range diag.Table() {
			codes = append(codes, string(e.Code))
		}
		return codes
	case "completion":
		return shells()
	case "schema", "rules", "man", "version", "keygen":
		return nil
	}
	return []string{}
}

// An option's usage names its placeholder in backquotes, and its values, if they
// can be listed, behind a colon: "print as `NAME`: text or json".
var (
	placeholder = regexp.MustCompile("`([^`]+)`")
	valueList   = regexp.MustCompile("`.*: ([a-z0-9_-]+(?:, [a-z0-9_-]+)* or [a-z0-9_-]+)(?:;|$)")
)

func optionOf(f cli.Flag) (optionDoc, bool) {
	if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
		return optionDoc{}, false
	}
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return optionDoc{}, false
	}
	o := optionDoc{usage: strings.ReplaceAll(d.GetUsage(), "`", "")}
	for _, name := range f.Names() {
		if len(name) > 1 {
			o.names = append(o.names, "--"+name)
		} else {
			o.names = append(o.names, "-"+name)
		}
	}
	slices.SortStableFunc(o.names, func(a, b string) int { return len(b[:min(len(b), 3)]) - len(a[:min(len(a), 3)]) })
	if s, ok := f.(cli.DocGenerationSliceFlag); ok {
		o.repeated = s.IsSliceFlag()
	}
	if !d.TakesValue() {
		return o, true
	}
	o.value = "VALUE"
	if m := placeholder.FindStringSubmatch(d.GetUsage()); m != nil {
		o.value = m[1]
	}
	if m := valueList.FindStringSubmatch(d.GetUsage()); m != nil {
		o.words = strings.Fields(strings.NewReplacer(",", " ", " or ", " ").Replace(m[1]))
	}
	if strings.HasPrefix(o.value, "CODE") {
		for _, e := range diag.Table() {
			if e.Severity != diag.Error {
				o.words = append(o.words, string(e.Code))
			}
		}
	}
	if text := d.GetDefaultText(); text != "" && text != `""` {
		o.def = strings.Trim(text, `"`)
	}
	return o, true
}
