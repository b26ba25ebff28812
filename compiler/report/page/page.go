package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/plandiff"
	"shunt/compiler/report"
	"shunt/schema/plan"
)

//go:embed style.css
var style string

//go:embed script.js
var script string

//go:embed page.tmpl
var text string

// Plan is what a page is about.
type Plan struct {
	// Name is the file that the plan came from, for people.
	Name     string
	Document *plan.Document
	// Compiled says that the plan was compiled for the page, so that Findings
	// are those of its configuration. A plan that was read has none.
	Compiled bool
	Findings diag.List
}

// Write writes the page of a plan.
func Write(w io.Writer, p Plan) error {
	b, err := newBuilder(p.Document)
	if err != nil {
		return err
	}
	v := &view{Title: "Plan of " + p.Name, Plan: b.plan(p)}
	return v.write(w)
}

// WriteDiff writes the page that compares two plans.
func WriteDiff(w io.Writer, before, after Plan) error {
	old, err := newBuilder(before.Document)
	if err != nil {
		return err
	}
	now, err := newBuilder(after.Document)
	if err != nil {
		return err
	}
	d := plandiff.Compare(before.Name, before.Document, after.Name, after.Document)
	v := &view{Title: "From " + before.Name + " to " + after.Name, Diff: newDiffView(d, old, now, before, after)}
	return v.write(w)
}

// view is what the template shows: a plan or a difference.
type view struct {
	Title string
	Plan  *planView
	Diff  *diffView
}

// Style, Script and Policy go into the head. The policy names the two by their
// hash and forbids everything else.
func (*view) Style() template.CSS { return template.CSS(style) }

// Script is the page's own script.
func (*view) Script() template.JS { return template.JS(script) }

// Policy is the content security policy.
func (*view) Policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) + "; base-uri 'none'; form-action 'none'"
}

func (v *view) write(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"clean": report.Clean}).Parse(text)
	if err != nil {
		return fmt.Errorf("page template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	_, err = w.Write(trimmed(b.Bytes()))
	return err
}

// trimmed removes the indent of lines and empty ones, which a page of many
// buckets would have a lot of. Nothing in a page is preformatted but its style
// and script, to whose bytes the policy holds the browser.
func trimmed(page []byte) []byte {
	var out bytes.Buffer
	raw := false
	for line := range bytes.Lines(page) {
		short := bytes.TrimLeft(line, " \t")
		if !raw && len(bytes.TrimSpace(short)) > 0 {
			out.Write(short)
		} else if raw {
			out.Write(line)
		}
		for _, tag := range []string{"style", "script"} {
			if bytes.Contains(line, []byte("<"+tag+">")) {
				raw = true
			}
			if bytes.Contains(line, []byte("</"+tag+">")) {
				raw = false
			}
		}
	}
	return out.Bytes()
}

// shortDigest is the start of a digest, which is enough to tell plans apart.
func shortDigest(digest string) string {
	name, sum, _ := strings.Cut(digest, ":")
	return name + ":" + sum[:min(len(sum), 12)]
}
