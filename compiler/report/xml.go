package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"shunt/compiler/diag"
)

// writeXML writes one document. The encoder escapes what markup could be and
// replaces characters that XML does not have.
func writeXML(w io.Writer, value any) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// A checkstyle report.
type (
	checkstyleReport struct {
		XMLName xml.Name          `xml:"checkstyle"`
		Version string            `xml:"version,attr"`
		Comment string            `xml:",comment"`
		Files   []*checkstyleFile `xml:"file"`
	}
	checkstyleFile struct {
		Name   string            `xml:"name,attr"`
		Errors []checkstyleError `xml:"error"`
	}
	checkstyleError struct {
		Line     int    `xml:"line,attr,omitempty"`
		Column   int    `xml:"column,attr,omitempty"`
		Severity string `xml:"severity,attr"`
		Message  string `xml:"message,attr"`
		Source   string `xml:"source,attr"`
	}
)

// checkstyleVersion is that of the tool whose format this is.
const checkstyleVersion = "10.0"

func (r *Report) writeCheckstyle(w io.Writer) error {
	list, left := r.shown(active)
	out := checkstyleReport{Version: checkstyleVersion}
	files := make(map[string]*checkstyleFile)
	file := func(name string) *checkstyleFile {
		name = r.located(name)
		if files[name] == nil {
			files[name] = &checkstyleFile{Name: name}
			out.Files = append(out.Files, files[name])
		}
		return files[name]
	}
	for _, name := range r.Inputs {
		file(name)
	}
	lines := r.excerpts()
	for _, i := range list {
		f := &r.Findings[i]
		at, into := lines.region(f), file(f.Pos.File)
		into.Errors = append(into.Errors, checkstyleError{
			Line: at.line, Column: at.column, Severity: checkstyleSeverity(f.Severity),
			Message: withHint(f), Source: r.Tool + "." + string(f.Code),
		})
	}
	if left > 0 {
		into := file("")
		into.Errors = append(into.Errors, checkstyleError{Severity: "info", Message: notShown(left), Source: r.Tool})
	}
	if n := r.Findings.Suppressed(); n > 0 {
		out.Comment = fmt.Sprintf(" %d suppressed ", n)
	}
	return writeXML(w, &out)
}

func checkstyleSeverity(s diag.Severity) string {
	if s == diag.Note {
		return "info"
	}
	return s.String()
}

// withHint is the message of a finding with its hint on one line.
func withHint(f *diag.Finding) string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + " (hint: " + diag.Shorten(f.Hint) + ")"
}

// A JUnit report: a suite for each file, a case for each finding.
type (
	junitReport struct {
		XMLName  xml.Name      `xml:"testsuites"`
		Name     string        `xml:"name,attr"`
		Tests    int           `xml:"tests,attr"`
		Failures int           `xml:"failures,attr"`
		Errors   int           `xml:"errors,attr"`
		Suites   []*junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
		Out      string      `xml:"system-out,omitempty"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Skipped *junitMessage `xml:"skipped"`
		Error   *junitMessage `xml:"error"`
		Failure *junitMessage `xml:"failure"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a case that fails for each finding that fails the run, and
// one that passes for the others, so that the report says what the exit status
// says. A file without findings is one case that passes.
func (r *Report) writeJUnit(w io.Writer) error {
	list, left := r.shown(every)
	out := junitReport{Name: r.Tool}
	suites := make(map[string]*junitSuite)
	suite := func(name string) *junitSuite {
		name = r.located(name)
		if suites[name] == nil {
			suites[name] = &junitSuite{Name: name}
			out.Suites = append(out.Suites, suites[name])
		}
		return suites[name]
	}
	for _, name := range r.Inputs {
		suite(name)
	}
	names := make(map[string]int)
	for _, i := range list {
		f := &r.Findings[i]
		into := suite(f.Pos.File)
		c := r.junitCase(f)
		c.Class = into.Name
		key := c.Class + "\x00" + c.Name
		if names[key]++; names[key] > 1 {
			c.Name += fmt.Sprintf(" (%d)", names[key])
		}
		into.add(c)
	}
	if left > 0 {
		into := suite("")
		into.Out = notShown(left)
	}
	for _, s := range out.Suites {
		if s.Tests == 0 {
			s.add(junitCase{Class: s.Name, Name: r.Tool})
		}
		out.Tests += s.Tests
		out.Failures += s.Failures
		out.Errors += s.Errors
	}
	return writeXML(w, &out)
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case c.Skipped != nil:
		s.Skipped++
	case c.Error != nil:
		s.Errors++
	case c.Failure != nil:
		s.Failures++
	}
}

func (r *Report) junitCase(f *diag.Finding) junitCase {
	path := f.Path
	if r.Named != nil {
		path = r.Named(f.Pos.File, path)
	}
	c := junitCase{Name: strings.TrimSpace(string(f.Code) + " " + path)}
	text := fmt.Sprintf("%s: %s: %s [%s]\n", f.Pos, f.Severity, f.Message, f.Code)
	if f.Hint != "" {
		text += "hint: " + diag.Shorten(f.Hint) + "\n"
	}
	for _, other := range f.Related {
		text += fmt.Sprintf("see: %s: %s\n", other.Pos, diag.Shorten(other.Message))
	}
	message := &junitMessage{Type: f.Severity.String(), Message: f.Message, Text: text}
	switch {
	case f.Suppressed != nil:
		c.Skipped = &junitMessage{Message: strings.TrimSuffix("suppressed by "+f.Suppressed.By.String()+": "+diag.Shorten(f.Suppressed.Reason), ": "), Text: text}
	case f.Severity == diag.Error && f.Code.Failure():
		c.Error = message
	case f.Severity.AtLeast(r.FailOn):
		c.Failure = message
	default:
		c.Out = text
	}
	return c
}
