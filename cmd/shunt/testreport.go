package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/runtime/simulate/suite"
)

// write writes the results everywhere they are wanted.
func (t *testRun) write(s *streams) error {
	for _, to := range t.targets {
		out, b := s.out, new(bytes.Buffer)
		if to.file != "" {
			out = b
		}
		var err error
		switch to.format {
		case report.JUnit:
			err = t.junit(out)
		case report.JSON:
			enc := json.NewEncoder(out)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			err = enc.Encode(t.document())
		default:
			err = t.text(out)
		}
		if err == nil && to.file != "" {
			err = writeFile(to.file, b.Bytes())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// excerpt gives the lines of whatever file has them.
func (t *testRun) excerpt(name string, first, last int) []string {
	for _, lines := range t.lines {
		if found := lines(name, first, last); len(found) > 0 {
			return found
		}
	}
	return nil
}

// Escape sequences of ANSI terminals.
const (
	green = "\x1b[32m"
	red   = "\x1b[1;31m"
	plain = "\x1b[0m"
)

// text writes the results for people.
func (t *testRun) text(out io.Writer) error {
	var b strings.Builder
	color := colors(t.c, out)
	paint := func(c, word string) string {
		if !color {
			return word
		}
		return c + word + plain
	}
	if len(t.findings) > 0 {
		f := report.Text
		if color {
			f = report.TextColor
		}
		rep := report.Report{Tool: "shunt", Version: version(), Findings: t.findings, Lines: t.excerpt}
		if err := rep.Write(&b, f); err != nil {
			return err
		}
	}
	for _, f := range t.files {
		if len(t.files) > 1 && len(f.results) > 0 {
			fmt.Fprintf(&b, "%s\n", report.Clean(f.name))
		}
		for i := range f.results {
			r := &f.results[i]
			if !r.Passed() {
				fmt.Fprintf(&b, "%s  %s\n", paint(red, "FAIL"), report.Clean(r.Name))
				f.failures(&b, r)
			} else if !t.c.Bool("quiet") {
				fmt.Fprintf(&b, "%s  %s%s\n", paint(green, "PASS"), report.Clean(r.Name), decisions(r))
			}
		}
	}
	t.coverageText(&b)
	passed, failed := t.counts()
	fmt.Fprintf(&b, "%d passed, %d failed\n", passed, failed)
	_, err := io.WriteString(out, b.String())
	return err
}

// decisions counts what was decided, unless it is one thing.
func decisions(r *suite.Result) string {
	switch steps := len(r.Steps); {
	case steps > 0 && r.Decisions != steps:
		return fmt.Sprintf(" (%d steps, %d decisions)", steps, r.Decisions)
	case steps > 0:
		return fmt.Sprintf(" (%d steps)", steps)
	case r.Decisions == 1:
		return ""
	}
	return fmt.Sprintf(" (%d decisions)", r.Decisions)
}

// failures writes what was not as expected, with its place, and what was decided.
func (f *testFile) failures(b *strings.Builder, r *suite.Result) {
	for _, line := range f.story(r) {
		fmt.Fprintf(b, "      %s\n", report.Clean(line))
	}
}

// story is a failed case in lines.
func (f *testFile) story(r *suite.Result) (lines []string) {
	for i := range r.Failures {
		lines = append(lines, f.failure(&r.Failures[i]))
	}
	for i := range r.Steps {
		failed := ""
		if r.Steps[i].Failed {
			failed = " (failed)"
		}
		lines = append(lines, fmt.Sprintf("%s decided%s: %s", r.Steps[i].Name, failed, r.Steps[i].Outcome))
	}
	if len(r.Steps) == 0 {
		lines = append(lines, "decided: "+r.Outcome)
	}
	return lines
}

func (f *testFile) failure(x *suite.Failure) string {
	s := fmt.Sprintf("%s: %s", f.pos(x.Pointer), expected(x))
	switch {
	case x.Times > 1 && x.When != "":
		s += fmt.Sprintf(" (%s, and %d more)", x.When, x.Times-1)
	case x.When != "":
		s += " (" + x.When + ")"
	}
	return s
}

func expected(x *suite.Failure) string {
	return fmt.Sprintf("%s: expected %s, got %s", x.Field, x.Want, x.Got)
}

// maxMissed bounds what text lists of the places that were not reached.
const maxMissed = 50

// coverageText writes the coverage, if it is wanted.
func (t *testRun) coverageText(b *strings.Builder) {
	if !t.c.Bool("coverage") && !t.c.IsSet("fail-under") {
		return
	}
	for _, p := range t.coverages {
		fmt.Fprintf(b, "coverage of %s: %.1f%%\n", report.Clean(p.name), p.Percent())
		for _, part := range p.Parts() {
			fmt.Fprintf(b, "  %-18s %d of %d\n", part.Kind, part.Reached, part.Total)
		}
		missed := p.Missed()
		if !t.c.Bool("coverage") {
			missed = nil
		}
		for i, item := range missed {
			if i == maxMissed {
				fmt.Fprintf(b, "  and %d more were not reached\n", len(missed)-i)
				break
			}
			fmt.Fprintf(b, "  not reached: %s, %s\n", item.Kind, report.Clean(item.String()))
		}
	}
	for _, p := range t.under(t.c.Float64("fail-under")) {
		fmt.Fprintf(b, "FAIL  %.1f%% of %s were reached, and --fail-under is %v\n", p.Percent(), report.Clean(p.name), t.c.Float64("fail-under"))
	}
}

// testFormat names the JSON document and its version.
const testFormat = "shunt.test/1"

// The JSON form of results.
type (
	testDocument struct {
		Format   string         `json:"format"`
		Passed   bool           `json:"passed"`
		Counts   testCounts     `json:"counts"`
		Files    []testJSONFile `json:"files"`
		Coverage []testCoverage `json:"coverage"`
		Findings []testFinding  `json:"findings"`
	}
	testCounts struct {
		Passed   int `json:"passed"`
		Failed   int `json:"failed"`
		Findings int `json:"findings"`
	}
	testJSONFile struct {
		File   string       `json:"file"`
		Plan   string       `json:"plan,omitempty"`
		Digest string       `json:"digest,omitempty"`
		Tests  []testResult `json:"tests"`
	}
	testResult struct {
		Name      string        `json:"name"`
		Passed    bool          `json:"passed"`
		Line      int           `json:"line"`
		Column    int           `json:"column"`
		Decisions int           `json:"decisions"`
		Decided   string        `json:"decided"`
		Failures  []testFailure `json:"failures"`
		Steps     []testStep    `json:"steps,omitempty"`
	}
	testStep struct {
		Name    string `json:"name"`
		Passed  bool   `json:"passed"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Decided string `json:"decided"`
	}
	testFailure struct {
		Field    string `json:"field"`
		Expected string `json:"expected"`
		Got      string `json:"got"`
		When     string `json:"when,omitempty"`
		Times    int    `json:"times"`
		Line     int    `json:"line"`
		Column   int    `json:"column"`
	}
	testCoverage struct {
		Plan    string       `json:"plan"`
		Digest  string       `json:"digest"`
		Percent float64      `json:"percent"`
		Parts   []suite.Part `json:"parts"`
		Missed  []suite.Item `json:"missed"`
	}
	testFinding struct {
		Code     diag.Code `json:"code"`
		Severity string    `json:"severity"`
		Message  string    `json:"message"`
		Hint     string    `json:"hint,omitempty"`
		File     string    `json:"file"`
		Line     int       `json:"line"`
		Column   int       `json:"column"`
	}
)

func (t *testRun) document() *testDocument {
	passed, failed := t.counts()
	d := &testDocument{
		Format: testFormat, Passed: t.verdict(t.c.Float64("fail-under")) == nil, Counts: testCounts{passed, failed, len(t.findings)},
		Files: []testJSONFile{}, Coverage: []testCoverage{}, Findings: []testFinding{},
	}
	for _, f := range t.files {
		file := testJSONFile{File: f.name, Plan: f.planName, Tests: []testResult{}}
		if f.plan != nil {
			file.Digest = f.plan.Digest
		}
		for i := range f.results {
			file.Tests = append(file.Tests, f.result(&f.results[i]))
		}
		d.Files = append(d.Files, file)
	}
	for _, p := range t.coverages {
		d.Coverage = append(d.Coverage, testCoverage{p.name, p.digest, p.Percent(), p.Parts(), p.Missed()})
	}
	for i := range t.findings {
		x := &t.findings[i]
		d.Findings = append(d.Findings, testFinding{x.Code, x.Severity.String(), x.Message, diag.Shorten(x.Hint), x.Pos.File, x.Pos.Line, x.Pos.Column})
	}
	return d
}

func (f *testFile) result(r *suite.Result) testResult {
	at := f.pos(r.Pointer)
	out := testResult{r.Name, r.Passed(), at.Line, at.Column, r.Decisions, r.Outcome, []testFailure{}, nil}
	for i := range r.Failures {
		x := &r.Failures[i]
		at := f.pos(x.Pointer)
		out.Failures = append(out.Failures, testFailure{x.Field, x.Want, x.Got, x.When, x.Times, at.Line, at.Column})
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		at := f.pos(s.Pointer)
		out.Steps = append(out.Steps, testStep{s.Name, !s.Failed, at.Line, at.Column, s.Outcome})
	}
	return out
}

// A JUnit report.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string     `xml:"name,attr"`
		Class   string     `xml:"classname,attr"`
		File    string     `xml:"file,attr,omitempty"`
		Line    int        `xml:"line,attr,omitempty"`
		Failure *junitText `xml:"failure"`
		Error   *junitText `xml:"error"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit writes a suite for each file. Mistakes of files are cases with an error,
// in a suite of their own.
func (t *testRun) junit(w io.Writer) error {
	out := junitSuites{}
	for _, f := range t.files {
		s := junitSuite{Name: f.name}
		for i := range f.results {
			s.Cases = append(s.Cases, f.junit(&f.results[i]))
			if !f.results[i].Passed() {
				s.Failures++
			}
		}
		out.Suites = append(out.Suites, s)
	}
	if len(t.findings) > 0 {
		s := junitSuite{Name: "mistakes", Errors: len(t.findings)}
		for i := range t.findings {
			x := &t.findings[i]
			s.Cases = append(s.Cases, junitCase{
				Name: fmt.Sprintf("%s %s", x.Code, x.Pos), Class: x.Pos.File, File: x.Pos.File, Line: x.Pos.Line,
				Error: &junitText{Message: x.Message, Text: x.String()},
			})
		}
		out.Suites = append(out.Suites, s)
	}
	for i := range out.Suites {
		s := &out.Suites[i]
		s.Tests = len(s.Cases)
		out.Tests, out.Failures, out.Errors = out.Tests+s.Tests, out.Failures+s.Failures, out.Errors+s.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(&out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (f *testFile) junit(r *suite.Result) junitCase {
	at := f.pos(r.Pointer)
	c := junitCase{Name: r.Name, Class: f.name, File: f.name, Line: at.Line}
	if r.Passed() {
		return c
	}
	c.Failure = &junitText{Message: expected(&r.Failures[0]), Text: strings.Join(f.story(r), "\n")}
	return c
}
