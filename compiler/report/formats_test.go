package report_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shunt/compiler/diag"
	"shunt/compiler/report"
)

// schemaOf compiles a JSON Schema.
func schemaOf(t *testing.T, name, text string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// agrees holds a JSON document to a schema.
func agrees(t *testing.T, s *jsonschema.Schema, document string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	if err := s.Validate(value); err != nil {
		t.Errorf("%v\n%s", err, document)
	}
}

func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile("testdata/sarif/sarif-2.1.0-rtm.5.json")
	if err != nil {
		t.Fatal(err)
	}
	return schemaOf(t, "sarif.json", string(data))
}

// nasty are texts that one format or another takes for its own.
var nasty = []string{
	"plain", "", "50% off: a,b", "two\nlines\r\n", "::error file=x::injected", "]]>", "<!-- -->", "<a b='c'>&amp;\"",
	"bell\a esc\x1b[2J nul\x00", "not UTF-8 \xff\xc3", "\ufffe\uffff\ufffd", "emoji 😀 名", "[click](http://example.com) {0} {1}",
	"tab\there", "-- --", strings.Repeat("long ", 2000), "\u202eright to left", "\\", "'", "`",
}

// reports are runs with every kind of finding, and with nasty texts everywhere.
func reports() map[string]*report.Report {
	const line = "名😀: [X, Y]"
	lines := func(file string, first, last int) []string {
		if file == "missing.yaml" || first != last || first > 3 {
			return nil
		}
		return []string{line}
	}
	out := map[string]*report.Report{"clean": {Tool: "shunt", Version: "1", Inputs: []string{"a.yaml"}}}
	var all diag.List
	for i, text := range nasty {
		f := diag.New(diag.LengthGap, diag.Pos{File: "dir/" + text + ".yaml", Line: 1, Column: 11, Offset: 10}, "/models/0/"+text, text)
		f.Hint, f.Severity = text, diag.Severity(i%3)
		f.End = diag.Pos{File: f.Pos.File, Line: 1, Column: 12, Offset: 11}
		f.Related = []diag.Related{{Pos: diag.Pos{File: text, Line: 2, Column: 3}, Message: text}, {Message: text}}
		if f.CanSuppress() && i%2 == 0 {
			f.Suppressed = &diag.Suppression{By: diag.Means(i % 3), Reason: text, Pos: diag.Pos{File: text, Line: 3, Column: 1}}
		}
		all = append(all, f, f)
	}
	all = append(all,
		diag.New(diag.Interrupted, diag.Pos{}, "", "interrupted"),
		diag.New(diag.Unreadable, diag.Pos{File: "missing.yaml"}, "", "no such file"),
		diag.New(diag.Syntax, diag.Pos{File: "missing.yaml", Line: 4, Column: 2}, "", "no line"),
		diag.New(diag.Syntax, diag.Pos{File: "x.yaml", Line: 1}, "", "no column"),
		diag.New(diag.Syntax, diag.Pos{File: "x.yaml", Line: 1, Column: 99}, "", "beyond the line"),
		diag.New(diag.Syntax, diag.Pos{File: "/abs/a b.yaml", Line: 1, Column: 1}, "", "absolute"),
		diag.New("SH9999", diag.Pos{File: "c:drive.yaml", Line: 1, Column: 1}, "", "unknown code"),
	)
	all.Sort()
	out["nasty"] = &report.Report{Tool: "shunt", Version: "1", Findings: all, Lines: lines, ExitStatus: 3}
	short := *out["nasty"]
	short.Max = 3
	out["short"] = &short
	bare := *out["nasty"]
	bare.Lines = nil
	out["bare"] = &bare
	return out
}

func TestJSONAgreesWithItsSchema(t *testing.T) {
	s := schemaOf(t, "findings.json", report.FindingsSchema())
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) { agrees(t, s, text(t, r, report.JSON)) })
	}
	for _, bad := range []string{`{}`, `{"format_version": "2.0"}`} {
		value, _ := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		if s.Validate(value) == nil {
			t.Errorf("the schema accepts %s", bad)
		}
	}
}

func TestSARIFAgreesWithItsSchema(t *testing.T) {
	s := sarifSchema(t)
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) { agrees(t, s, text(t, r, report.SARIF)) })
	}
	value, _ := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(text(t, reports()["nasty"], report.SARIF), `"ruleId"`, `"ruleID"`, 1)))
	if s.Validate(value) == nil {
		t.Error("the schema accepts a misspelt field")
	}
}

// sarif is what the tests read of a SARIF log.
type sarif struct {
	Runs []struct {
		Tool struct {
			Driver struct{ Rules []struct{ ID string } }
		}
		Invocations []struct {
			ExecutionSuccessful        bool
			ExitCode                   int
			ToolExecutionNotifications []any
		}
		Results []struct {
			RuleID    string
			RuleIndex int
			Message   struct{ Text string }
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI string }
					Region           map[string]any
				}
			}
			PartialFingerprints map[string]string
			Suppressions        *[]struct{ Kind, Justification string }
		}
	}
}

func readSARIF(t *testing.T, r *report.Report) *sarif {
	t.Helper()
	var log sarif
	if err := json.Unmarshal([]byte(text(t, r, report.SARIF)), &log); err != nil {
		t.Fatal(err)
	}
	return &log
}

func TestSARIF(t *testing.T) {
	run := readSARIF(t, reports()["nasty"]).Runs[0]
	if i := run.Invocations[0]; i.ExitCode != 3 || i.ExecutionSuccessful || i.ToolExecutionNotifications != nil {
		t.Errorf("invocation %+v", i)
	}
	prints := make(map[string]bool)
	suppressed := 0
	for _, result := range run.Results {
		if got := run.Tool.Driver.Rules[result.RuleIndex].ID; got != result.RuleID {
			t.Errorf("rule %d of %s is %s", result.RuleIndex, result.RuleID, got)
		}
		print := result.PartialFingerprints["shuntFinding/v1"]
		if prints[print] {
			t.Errorf("fingerprint %s is not unique", print)
		}
		prints[print] = true
		if result.Suppressions == nil {
			t.Error("a result without suppressions next to one with")
		} else if len(*result.Suppressions) > 0 {
			suppressed++
		}
		for _, l := range result.Locations {
			if uri := l.PhysicalLocation.ArtifactLocation.URI; strings.ContainsAny(uri, "\\ \n\"<>") || strings.HasPrefix(uri, "c:") {
				t.Errorf("uri %q", uri)
			}
		}
	}
	if want := reports()["nasty"].Findings.Suppressed(); suppressed != want {
		t.Errorf("%d suppressed, want %d", suppressed, want)
	}
	if i := readSARIF(t, reports()["short"]).Runs[0].Invocations[0]; len(i.ToolExecutionNotifications) != 1 {
		t.Errorf("nothing says that findings are left out: %+v", i)
	}
}

// Columns count UTF-16 code units, whose number is not that of bytes or of
// characters, and long lines are counted in steps.
func TestSARIFColumns(t *testing.T) {
	f := func(line string, column, end int, want string) {
		t.Helper()
		region := readSARIF(t, of(line, column, end)).Runs[0].Results[0].Locations[0].PhysicalLocation.Region
		if got := fmt.Sprint(region["startColumn"], " ", region["endColumn"]); got != want {
			t.Errorf("%.20q at %d: got %s, want %s", line, column, got, want)
		}
	}
	f("a: X", 4, 5, "4 5")
	f("a: X", 4, 0, "4 5")
	f("a: X", 5, 0, "5 5")
	f("名😀: X", 10, 11, "6 7")
	f("a: 😀", 4, 0, "4 6")
	f("a: 😀", 9, 0, "<nil> <nil>")
	f("\xff\xff: X", 5, 6, "5 6")
	for _, long := range []string{strings.Repeat("😀名é", 3000), strings.Repeat("\xff", 9000), strings.Repeat("a", 1023) + strings.Repeat("😀", 2000)} {
		for column := 0; column < len(long); column += 997 {
			for !utf8.RuneStart(long[column]) {
				column++
			}
			n := len(utf16.Encode([]rune(long[:column]))) + 1
			f(long+"X", column+1, len(long)+1, fmt.Sprint(n, " ", len(utf16.Encode([]rune(long)))+1))
		}
	}
}

// A finding is known again when lines and elements are added before it, and
// another file, message or code is another finding.
func TestFingerprints(t *testing.T) {
	print := func(change func(*diag.Finding)) string {
		r := of("a: X", 4, 5)
		r.Named = func(_, pointer string) string { return strings.Replace(pointer, "/7", "/{m}", 1) }
		change(&r.Findings[0])
		return readSARIF(t, r).Runs[0].Results[0].PartialFingerprints["shuntFinding/v1"]
	}
	same := print(func(*diag.Finding) {})
	f := func(want bool, change func(*diag.Finding)) {
		t.Helper()
		if got := print(change) == same; got != want {
			t.Errorf("same %t, want %t", got, want)
		}
	}
	f(true, func(f *diag.Finding) { f.Pos.Line, f.Pos.Column = 99, 5 })
	f(true, func(f *diag.Finding) { f.Pos.File = "./c.yaml" })
	f(true, func(f *diag.Finding) { f.Hint = "another" })
	f(false, func(f *diag.Finding) { f.Pos.File = "d.yaml" })
	f(false, func(f *diag.Finding) { f.Path = "/7" })
	f(false, func(f *diag.Finding) { f.Message = "another" })
	f(false, func(f *diag.Finding) { f.Code = diag.Syntax })
	if print(func(f *diag.Finding) { f.Path = "/7" }) != print(func(f *diag.Finding) { f.Path = "/{m}" }) {
		t.Error("the index of an element counts, though it has a name")
	}
}

// Each finding that counts is one command on one line, and no text of a finding
// makes another.
func TestGitHub(t *testing.T) {
	r := reports()["nasty"]
	lines := strings.Split(strings.TrimSuffix(text(t, r, report.GitHub), "\n"), "\n")
	commands := lines[:len(lines)-1]
	if want := len(r.Findings) - r.Findings.Suppressed(); len(commands) != want {
		t.Errorf("%d commands, want %d", len(commands), want)
	}
	for _, line := range commands {
		properties, data, ok := strings.Cut(strings.TrimPrefix(line, "::"), "::")
		name, properties, _ := strings.Cut(properties, " ")
		if !ok || !slices.Contains([]string{"error", "warning", "notice"}, name) {
			t.Errorf("command %q", line)
		}
		for _, p := range strings.Split(properties, ",") {
			key, value, ok := strings.Cut(p, "=")
			if !ok || !slices.Contains([]string{"file", "line", "col", "endLine", "endColumn", "title"}, key) || strings.Contains(value, ":") {
				t.Errorf("property %q of %q", p, line)
			}
		}
		if strings.ContainsAny(line, "\r\x00\x1b") || !utf8.ValidString(line) {
			t.Errorf("control character in %q", line)
		}
		_ = data
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "suppressed") {
		t.Errorf("summary %q", last)
	}
	one := of("名😀: X", 10, 11)
	one.Findings[0].Pos.File = "a,b:c.yaml"
	one.Findings[0].Message = "100%\nsure: yes, no"
	want := "::error file=a%2Cb%3Ac.yaml,line=1,title=SH0206 unknown engine id::100%25\uFFFDsure: yes, no\n1 error, 0 warnings\n"
	if got := text(t, one, report.GitHub); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// xmlText parses a document strictly, and returns its root element and the
// number of its elements.
func xmlText(t *testing.T, document string) (root string, elements map[string]int) {
	t.Helper()
	elements = make(map[string]int)
	for d := xml.NewDecoder(strings.NewReader(document)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return root, elements
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if e, ok := token.(xml.StartElement); ok {
			if root == "" {
				root = e.Name.Local
			}
			elements[e.Name.Local]++
		}
	}
}

func TestXML(t *testing.T) {
	for name, r := range reports() {
		counted := len(r.Findings) - r.Findings.Suppressed()
		root, elements := xmlText(t, text(t, r, report.Checkstyle))
		if want := counted; root != "checkstyle" || r.Max == 0 && elements["error"] != want || r.Max > 0 && elements["error"] != r.Max+1 {
			t.Errorf("%s: checkstyle %s %v, want %d errors", name, root, elements, want)
		}
		root, elements = xmlText(t, text(t, r, report.JUnit))
		if root != "testsuites" || r.Max == 0 && len(r.Findings) > 0 && elements["testcase"] != len(r.Findings) {
			t.Errorf("%s: junit %s %v, want %d cases", name, root, elements, len(r.Findings))
		}
		if r.Max == 0 && elements["skipped"] != r.Findings.Suppressed() {
			t.Errorf("%s: junit %v, want %d skipped", name, elements, r.Findings.Suppressed())
		}
	}
	if got := text(t, reports()["clean"], report.JUnit); !strings.Contains(got, `<testsuite name="a.yaml" tests="1" failures="0"`) {
		t.Errorf("clean: %s", got)
	}
}

// A warning fails its case exactly when it fails the run.
func TestJUnitFailures(t *testing.T) {
	r := of("a: X", 4, 5)
	r.Findings[0].Severity = diag.Warning
	f := func(on diag.Severity, want string) {
		t.Helper()
		r.FailOn = on
		if got := text(t, r, report.JUnit); !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	f(diag.Error, `tests="1" failures="0" errors="0"`)
	f(diag.Warning, `tests="1" failures="1" errors="0"`)
	f(diag.Note, `<failure type="warning" message="no engine &#34;X&#34;">`)
	r.Findings[0].Suppressed = &diag.Suppression{Reason: "known"}
	f(diag.Note, `<skipped message="suppressed by comment: known">`)
}

func TestGitLab(t *testing.T) {
	for name, r := range reports() {
		var issues []struct {
			Description, Fingerprint, Severity string
			CheckName                          string `json:"check_name"`
			Location                           struct {
				Path      string
				Positions struct{ Begin, End struct{ Line, Column int } }
			}
		}
		if err := json.Unmarshal([]byte(text(t, r, report.GitLab)), &issues); err != nil || issues == nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen := make(map[string]bool)
		for _, i := range issues {
			p := i.Location.Positions
			if i.Fingerprint == "" || seen[i.Fingerprint] || i.CheckName == "" || i.Location.Path == "" || strings.HasPrefix(i.Location.Path, "./") ||
				p.Begin.Line < 1 || p.End.Line < p.Begin.Line || !slices.Contains([]string{"info", "minor", "major", "critical", "blocker"}, i.Severity) {
				t.Errorf("%s: %+v", name, i)
			}
			seen[i.Fingerprint] = true
		}
	}
}

// What does not fit is what matters least.
func TestMaxKeepsTheWorst(t *testing.T) {
	r := reports()["short"]
	if got := text(t, r, report.Text); strings.Count(got, ": error: ") != 3 || strings.Contains(got, ": warning: ") {
		t.Errorf("got %s", got)
	}
}

func TestQuiet(t *testing.T) {
	r := of("a: X", 4, 5)
	r.Quiet = true
	if got := text(t, r, report.Text); strings.Contains(got, "0 warnings") || !strings.Contains(got, "SH0206") {
		t.Errorf("got %q", got)
	}
	r.Findings[0].Severity = diag.Warning
	if got := text(t, r, report.Text); got != "" {
		t.Errorf("got %q", got)
	}
}
