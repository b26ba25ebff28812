package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"shunt/compiler/diag"
	"shunt/compiler/report"
)

// of is a report of one finding in a text of one line.
func of(line string, column, end int) *report.Report {
	f := diag.New(diag.UnknownEngine, diag.Pos{File: "c.yaml", Line: 1, Column: column}, "/x", `no engine "X"`)
	if end > 0 {
		f.End = diag.Pos{File: "c.yaml", Line: 1, Column: end}
	}
	return &report.Report{Tool: "shunt", Version: "1", Findings: diag.List{f}, Lines: func(file string, first, last int) []string {
		if file != "c.yaml" || first != 1 || last != 1 {
			return nil
		}
		return []string{line}
	}}
}

func text(t *testing.T, r *report.Report, f report.Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExcerpt(t *testing.T) {
	f := func(line string, column, end int, want ...string) {
		t.Helper()
		got := strings.Split(text(t, of(line, column, end), report.Text), "\n")
		if got[0] != `c.yaml:1:`+itoa(column)+`: error: no engine "X" [SH0206]` {
			t.Errorf("first line %q", got[0])
		}
		if strings.Join(got[1:3], "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got[1:3], "\n"), strings.Join(want, "\n"))
		}
	}
	f("a: X", 4, 5,
		"  1 | a: X",
		"    |    ^")
	f("abc: def", 6, 9,
		"  1 | abc: def",
		"    |      ^~~")
	f("\ta: X", 5, 0,
		"  1 | \ta: X",
		"    | \t   ^")
	f("名: X", 6, 7,
		"  1 | 名: X",
		"    |     ^")
	f("a: \x1b[31mX\xff", 4, 0,
		"  1 | a: \uFFFD[31mX\uFFFD",
		"    |    ^")
	f("u: http://me:pw@h", 4, 0,
		"  1 | u: http://*****@h",
		"    |    ^")
	f("u: [http://h/, a@b]", 4, 0,
		"  1 | u: [http://h/, a@b]",
		"    |    ^")
	f("a:", 3, 0,
		"  1 | a:",
		"    |   ^")
}

func itoa(n int) string { return string(rune('0' + n)) }

// A configuration on one line of JSON is shown around the mistake.
func TestExcerptOfLongLine(t *testing.T) {
	line := strings.Repeat("a", 5000) + "X" + strings.Repeat("b", 5000)
	lines := strings.Split(text(t, of(line, 5001, 5002), report.Text), "\n")
	if len(lines[1]) > 150 || !strings.Contains(lines[1], "aXb") || strings.IndexByte(lines[2], '^') != strings.IndexByte(lines[1], 'X') {
		t.Errorf("got\n%s\n%s", lines[1], lines[2])
	}
	lines = strings.Split(text(t, of(strings.Repeat("X", 5000), 1, 5001), report.Text), "\n")
	if len(lines[1]) > 150 || len(lines[2]) > 150 {
		t.Errorf("got\n%s\n%s", lines[1], lines[2])
	}
}

func TestNoExcerptWithoutLine(t *testing.T) {
	for _, r := range []*report.Report{of("a", 7, 0), {Findings: of("a", 1, 0).Findings}} {
		if got := text(t, r, report.Text); strings.Contains(got, "|") {
			t.Errorf("got %q", got)
		}
	}
}

// Colours are escape sequences only around text that was cleaned.
func TestColor(t *testing.T) {
	r := of("a: X", 4, 5)
	r.Findings[0].Message = "bad \x1b[2J text"
	got := text(t, r, report.TextColor)
	if !strings.Contains(got, "\x1b[1;31merror\x1b[0m") || strings.Contains(got, "\x1b[2J") {
		t.Errorf("got %q", got)
	}
	if plain := text(t, r, report.Text); strings.Contains(plain, "\x1b") {
		t.Errorf("got %q", plain)
	}
}

func TestMax(t *testing.T) {
	r := of("a: X", 4, 5)
	r.Findings = append(r.Findings, r.Findings[0], r.Findings[0])
	r.Max = 1
	got := text(t, r, report.Text)
	if strings.Count(got, "SH0206") != 1 || !strings.Contains(got, "2 more findings") || !strings.Contains(got, "3 errors, 0 warnings") {
		t.Errorf("got %q", got)
	}
	var doc struct {
		Truncated  bool
		ErrorCount int `json:"error_count"`
		Findings   []any
	}
	if err := json.Unmarshal([]byte(text(t, r, report.JSON)), &doc); err != nil || !doc.Truncated || doc.ErrorCount != 3 || len(doc.Findings) != 1 {
		t.Errorf("%v %+v", err, doc)
	}
}

// The shape of JSON does not depend on what is known about a finding.
func TestJSONShape(t *testing.T) {
	keys := func(r *report.Report) string {
		var doc struct{ Findings []map[string]any }
		if err := json.Unmarshal([]byte(text(t, r, report.JSON)), &doc); err != nil {
			t.Fatal(err)
		}
		var out []string
		for key := range doc.Findings[0] {
			out = append(out, key)
		}
		return strings.Join(out, " ")
	}
	bare := &report.Report{Findings: diag.List{diag.New(diag.Unreadable, diag.Pos{File: "x"}, "", "no such file")}}
	if a, b := len(strings.Fields(keys(bare))), len(strings.Fields(keys(of("a: X", 4, 5)))); a != b {
		t.Errorf("%d and %d keys", a, b)
	}
	if got := text(t, &report.Report{}, report.JSON); !strings.Contains(got, `"findings": []`) || !strings.Contains(got, `"valid": true`) {
		t.Errorf("clean: %s", got)
	}
	if err := bare.Write(new(bytes.Buffer), "xml"); err == nil {
		t.Error("an unknown format was accepted")
	}
}
