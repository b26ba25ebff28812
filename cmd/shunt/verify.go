package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/schema/plan"
)

func verifyCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check that a plan is one that shuntd serves",
		UsageText: "shunt verify [OPTION]... plan.json",
		Description: "Loads the plan as shuntd does: its format, its bytes, its digest and its values. - is standard input.\n" +
			"With --verify-key the plan must also be signed. Prints ok, the digest and the file, and the id of the key\n" +
			"that signed it, as shunt keygen printed it.\n\n" + exitFailOnText,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "digest", Usage: "demand that the plan has the digest `SHA256`, as sha256:..."},
		}, verifyFlags(), reportFlags()),
		Action: func(c *cli.Context) error { return verify(c, s) },
	}
}

func verify(c *cli.Context, s *streams) error {
	rep, err := newReporting(c, s.out)
	if err != nil {
		return err
	}
	want := c.String("digest")
	if c.IsSet("digest") && !plan.IsDigest(want) {
		return wrongUsage("--digest %q is no digest, which is sha256: and 64 hexadecimal digits", want)
	}
	if c.NArg() != 1 {
		return wrongUsage("verify needs one plan")
	}
	name := c.Args().First()
	reads := append([]string{name, name + plan.SignatureSuffix}, c.StringSlice("verify-key")...)
	if err := distinct(rep.files(), append(reads, named(c.String("signature"))...)); err != nil {
		return err
	}
	data, err := readArgument(s, name, maxPlanBytes)
	if err != nil {
		return err
	}
	signer, findings, err := verifySignature(c, s, name, data)
	if err != nil {
		return err
	}
	document, err := plan.Load(data)
	if err != nil {
		findings = append(findings, planFinding(name, err))
	} else if want != "" && want != document.Digest {
		f := diag.New(diag.PlanDigest, diag.Pos{File: name}, "/digest", fmt.Sprintf("the plan has the digest %s, not %s", document.Digest, want))
		findings = append(findings, f)
	}
	if err := rep.write(findings, linesOf(data)); err != nil {
		return err
	}
	if err := rep.verdict(findings); err != nil || rep.occupies(s.out) {
		return err
	}
	text := fmt.Sprintf("ok %s  %s\n", document.Digest, report.Clean(name))
	if signer != "" {
		text += "signed by " + signer + "\n"
	}
	_, err = s.out.Write([]byte(text))
	return err
}

// planFinding makes a finding of the error of the plan loader.
func planFinding(name string, err error) diag.Finding {
	e, ok := errors.AsType[*plan.Error](err)
	if !ok {
		return diag.New(diag.Internal, diag.Pos{File: name}, "", err.Error())
	}
	f := diag.New(diag.Code(e.Code), diag.Pos{File: name, Line: e.Line, Column: e.Column}, e.Pointer, e.Message)
	f.Hint = e.Hint
	if e.Pointer != "" && e.Pointer != "/" {
		f.Message = e.Pointer + ": " + e.Message
	}
	return f
}

// longestExcerpt bounds the lines that excerpts are made of, in bytes. A plan may
// be large, and bytes that are none may stand on one line.
const longestExcerpt = 8 << 20

// linesOf gives lines of one text, whatever file is asked for.
func linesOf(data []byte) func(string, int, int) []string {
	return func(_ string, first, last int) []string {
		data := data // the next call starts at the first line again
		var out []string
		for n := 1; n <= last; n++ {
			line, rest, more := bytes.Cut(data, []byte("\n"))
			if n >= first && len(line) > longestExcerpt {
				return nil
			}
			if n >= first {
				out = append(out, strings.TrimSuffix(string(line), "\r"))
			}
			if !more {
				break
			}
			data = rest
		}
		return out
	}
}
