package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func manCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		UsageText:   "shunt man > shunt.1",
		Description: "Prints the manual page of shunt and all its commands, in the format of man(1).",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return wrongUsage("man takes no argument")
			}
			_, err := io.WriteString(s.out, manPage(c.App))
			return err
		},
	}
}

// manPage is the manual page of the command tree.
func manPage(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\"\n", roff(strings.ToUpper(app.Name)), roff(app.Name+" "+app.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(app.Name), roff(app.Usage))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n.SH DESCRIPTION\n", roff(app.UsageText))
	roffText(&b, app.Description)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range documented(app) {
		fmt.Fprintf(&b, ".SS %s\n%s.\n.PP\n.EX\n%s\n.EE\n", roff(strings.Join(c.names, ", ")), roff(upperFirst(c.usage)), roffLines(c.synopsis))
		if c.description != "" {
			b.WriteString(".PP\n")
			roffText(&b, c.description)
		}
		for _, o := range c.options {
			roffOption(&b, &o)
		}
	}
	b.WriteString(".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nText on terminals has no colour when it is set and not empty.\n")
	b.WriteString(".SH SEE ALSO\n\\fBshunt COMMAND \\-\\-help\\fR, \\fBshunt rules\\fR, \\fBshunt explain CODE\\fR\n")
	return b.String()
}

func roffOption(b *strings.Builder, o *optionDoc) {
	var names []string
	for _, name := range o.names {
		name = "\\fB" + roff(name) + "\\fR"
		if o.value != "" {
			name += " \\fI" + roff(o.value) + "\\fR"
		}
		names = append(names, name)
	}
	text := upperFirst(o.usage)
	if o.def != "" && !strings.Contains(text, "(default") {
		text += " (default: " + o.def + ")"
	}
	fmt.Fprintf(b, ".TP\n%s\n%s.\n", strings.Join(names, ", "), roff(text))
}

func upperFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// roffText writes paragraphs. Indented lines stay as they are.
func roffText(b *strings.Builder, text string) {
	literal, blank := false, false
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			blank = true
			continue
		}
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		switch {
		case indented && !literal:
			b.WriteString(".PP\n.EX\n")
		case !indented && literal:
			b.WriteString(".EE\n.PP\n")
		case literal && blank:
			b.WriteString("\\&\n")
		case blank:
			b.WriteString(".PP\n")
		}
		literal, blank = indented, false
		b.WriteString(roff(line) + "\n")
	}
	if literal {
		b.WriteString(".EE\n")
	}
}

func roffLines(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, roff(strings.TrimSpace(line)))
	}
	return strings.Join(out, "\n")
}

// roff escapes a line: a full stop or quote at its start would be a request.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
