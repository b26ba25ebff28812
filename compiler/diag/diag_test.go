package diag_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/diag"
)

func TestTableIsOrderedUniqueAndComplete(t *testing.T) {
	form := regexp.MustCompile(`^SH\d{4}$`)
	table := diag.Table()
	for i, e := range table {
		if !form.MatchString(string(e.Code)) {
			t.Errorf("code %q has not the form SHnnnn", e.Code)
		}
		if i > 0 && table[i-1].Code >= e.Code {
			t.Errorf("%s does not follow %s", e.Code, table[i-1].Code)
		}
		if e.Title == "" || strings.HasSuffix(e.Title, ".") {
			t.Errorf("%s: title %q", e.Code, e.Title)
		}
		if !strings.HasSuffix(e.Explanation, ".") || !strings.HasSuffix(e.Hint, ".") {
			t.Errorf("%s: explanation and hint are full sentences", e.Code)
		}
		if got, ok := diag.Lookup(e.Code); !ok || got != e {
			t.Errorf("Lookup(%s) = %v, %v", e.Code, got, ok)
		}
	}
	if _, ok := diag.Lookup("SH9999"); ok {
		t.Error("Lookup found a code that does not exist")
	}
}

func TestNewTakesSeverityFromTable(t *testing.T) {
	for _, e := range diag.Table() {
		if got := diag.New(e.Code, diag.Pos{}, "", "x").Severity; got != e.Severity {
			t.Errorf("%s: severity %v, want %v", e.Code, got, e.Severity)
		}
	}
	if got := diag.New("SH9999", diag.Pos{}, "", "x").Severity; got != diag.Error {
		t.Errorf("unknown code has severity %v", got)
	}
}

func TestPosString(t *testing.T) {
	f := func(p diag.Pos, want string) {
		t.Helper()
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(diag.Pos{}, "-")
	f(diag.Pos{File: "a.yaml"}, "a.yaml")
	f(diag.Pos{File: "argv", Column: 7}, "argv 7")
	f(diag.Pos{File: "a.yaml", Line: 3}, "a.yaml:3")
	f(diag.Pos{File: "a.yaml", Line: 3, Column: 7}, "a.yaml:3:7")
}

func TestListSortAndWorst(t *testing.T) {
	at := func(file string, line, col int, code diag.Code) diag.Finding {
		return diag.Finding{Code: code, Severity: diag.Warning, Pos: diag.Pos{File: file, Line: line, Column: col}}
	}
	l := diag.List{at("b", 1, 1, "SH0101"), at("a", 2, 1, "SH0101"), at("a", 1, 9, "SH0101"), at("a", 1, 9, "SH0001"), at("a", 1, 2, "SH0102")}
	want := slices.Clone(l)
	slices.Reverse(want)
	want = diag.List{want[0], want[1], want[2], want[3], want[4]}
	l.Sort()
	if l.String() != want.String() {
		t.Errorf("got\n%swant\n%s", l, want)
	}
	if s, ok := l.Worst(); s != diag.Warning || !ok {
		t.Errorf("Worst = %v, %v", s, ok)
	}
	if l.Failed() || l.HasErrors() {
		t.Error("warnings are neither failures nor errors")
	}
	l.Add(diag.New(diag.TooLarge, diag.Pos{File: "z"}, "", "too large")).Hint = "h"
	if s, _ := l.Worst(); s != diag.Error || !l.Failed() || l.Count(diag.Error) != 1 || l[len(l)-1].Hint != "h" {
		t.Errorf("after a failure: %v", l)
	}
	if _, ok := (diag.List)(nil).Worst(); ok {
		t.Error("an empty list has no worst finding")
	}
	if !diag.Error.AtLeast(diag.Warning) || diag.Note.AtLeast(diag.Warning) {
		t.Error("AtLeast orders the severities wrongly")
	}
}
