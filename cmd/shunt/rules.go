package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
)

func rulesCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "rules",
		Usage:     "list the codes of findings",
		UsageText: "shunt rules [--format text|json|markdown]",
		Description: "Prints the code, severity and title of everything that the commands find. shunt explain CODE prints the\n" +
			"page of one, with examples.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "format", Value: "text", Usage: "print as `NAME`: text, json or markdown"}},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return wrongUsage("rules takes no argument; see shunt explain CODE")
			}
			switch format := c.String("format"); format {
			case "text":
				return rulesText(s.out)
			case "json":
				return rulesJSON(s.out)
			case "markdown":
				return rulesMarkdown(s.out)
			default:
				return wrongUsage("--format %q is not text, json or markdown", format)
			}
		},
	}
}

func rulesText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, e := range diag.Table() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.Code, e.Severity, e.Title)
	}
	return w.Flush()
}

func rulesJSON(out io.Writer) error {
	type rule struct {
		Code        diag.Code `json:"code"`
		Severity    string    `json:"severity"`
		Title       string    `json:"title"`
		Explanation string    `json:"explanation"`
		Hint        string    `json:"hint"`
	}
	var list []rule
	for _, e := range diag.Table() {
		list = append(list, rule{e.Code, e.Severity.String(), e.Title, e.Explanation, e.Hint})
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}

func rulesMarkdown(out io.Writer) error {
	var b strings.Builder
	b.WriteString("| code | severity | finding |\n|---|---|---|\n")
	for _, e := range diag.Table() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.Code, e.Severity, strings.ReplaceAll(e.Title, "|", `\|`))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// explainCode prints the page of a code.
func explainCode(out io.Writer, code string) error {
	page, ok := diag.PageOf(diag.Code(strings.ToUpper(code)))
	if !ok && !strings.HasPrefix(strings.ToUpper(code), "SH") {
		return wrongUsage("%q is not a code such as SH0206; to decide a request, give --plan FILE and --request FILE or --body FILE", code)
	}
	if !ok {
		var codes []string
		for _, e := range diag.Table() {
			codes = append(codes, string(e.Code))
		}
		if near := nearest(strings.ToUpper(code), codes); near != "" {
			return wrongUsage("there is no code %q; did you mean %s? shunt rules lists them", code, near)
		}
		return wrongUsage("there is no code %q; shunt rules lists them", code)
	}
	return report.Page(out, page)
}
