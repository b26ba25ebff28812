package suppress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/compiler/suppress"
)

// at is a finding of a code in a line of c.yaml.
func at(code diag.Code, line int) diag.Finding {
	return diag.New(code, diag.Pos{File: "c.yaml", Line: line, Column: 1}, fmt.Sprint("/", line), "text")
}

func note(f diag.Finding) diag.Finding {
	f.Severity = diag.Note
	return f
}

func failing(f diag.Finding) diag.Finding {
	f.Severity = diag.Error
	return f
}

// brief is one line for each finding: code, line, severity and what suppresses
// it.
func brief(l diag.List) string {
	var out []string
	for _, f := range l {
		s := fmt.Sprintf("%s %d %s", f.Code, f.Pos.Line, f.Severity)
		if f.Suppressed != nil {
			s += fmt.Sprintf(", %s: %s", f.Suppressed.By, f.Suppressed.Reason)
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func want(t *testing.T, got diag.List, lines ...string) {
	t.Helper()
	slices.Sort(lines)
	if d := cmp.Diff(strings.Join(lines, "\n"), brief(got)); d != "" {
		t.Error(d)
	}
}

func TestComments(t *testing.T) {
	f := func(text string, line int, findings diag.List, lines ...string) {
		t.Helper()
		d := source.Directive{Pos: diag.Pos{File: "c.yaml", Line: 1, Column: 1}, Line: line, Text: text}
		before := brief(findings)
		want(t, suppress.Comments(findings, []source.Directive{d}), lines...)
		if brief(findings) != before {
			t.Error("the list of the caller was changed")
		}
	}
	gap := diag.List{at("SH0301", 2)}
	f("ignore SH0301 it is so", 2, gap, "SH0301 2 warning, comment: it is so")
	f("ignore SH0301\tit is so", 2, diag.List{note(at("SH0301", 2)), at("SH0301", 2), at("SH0301", 3), at("SH0302", 2)},
		"SH0301 2 note, comment: it is so", "SH0301 2 warning, comment: it is so", "SH0301 3 warning", "SH0302 2 warning")
	f("ignore SH0301,SH0302, both", 2, diag.List{at("SH0301", 2), at("SH0302", 2)}, "SH0301 2 warning, comment: both", "SH0302 2 warning, comment: both")
	f("ignore SH0301 it is so", 3, gap, "SH0301 2 warning", "SH0804 1 warning")
	f("ignore SH0302 it is so", 2, gap, "SH0301 2 warning", "SH0804 1 warning")
	f("ignore SH0301", 2, gap, "SH0301 2 warning", "SH0801 1 warning")
	f("ignore SH0301 --", 2, gap, "SH0301 2 warning", "SH0801 1 warning")
	f("ignore SH9999 it is so", 2, gap, "SH0301 2 warning", "SH0802 1 warning")
	f("ignore sh0301 it is so", 2, gap, "SH0301 2 warning", "SH0802 1 warning")
	f("ignore it is so", 2, gap, "SH0301 2 warning", "SH0802 1 warning")
	f("ignore * it is so", 2, gap, "SH0301 2 warning", "SH0802 1 warning")
	f("ignore SH0206 it is so", 2, diag.List{at("SH0206", 2)}, "SH0206 2 error", "SH0803 1 warning")
	f("ignore SH0301 it is so", 2, diag.List{failing(at("SH0301", 2))}, "SH0301 2 error")
	f("ignore SH0804 it is so", 2, gap, "SH0301 2 warning", "SH0803 1 warning")
	f("ignore", 2, gap, "SH0301 2 warning", "SH0805 1 warning")
	f("ingore SH0301 it is so", 2, gap, "SH0301 2 warning", "SH0805 1 warning")
	f("", 2, gap, "SH0301 2 warning", "SH0805 1 warning")
	// With errors, not every rule ran, and nothing is known to be unused.
	f("ignore SH0302 it is so", 2, diag.List{at("SH0206", 9)}, "SH0206 9 error")
}

func acceptance(files ...string) *suppress.Acceptance {
	return &suppress.Acceptance{Files: files, Identity: func(f *diag.Finding) diag.Identity {
		return diag.Identity{Code: f.Code, File: f.Pos.File, Path: f.Path, Message: f.Message}
	}}
}

func TestIgnores(t *testing.T) {
	f := func(options string, findings diag.List, lines ...string) {
		t.Helper()
		a := acceptance("c.yaml")
		for o := range strings.FieldsSeq(options) {
			g, err := suppress.ParseIgnore(o)
			if err != nil {
				t.Fatal(err)
			}
			a.Ignores = append(a.Ignores, g)
		}
		want(t, a.Apply(findings), lines...)
	}
	in := func(name string) diag.List {
		g := at("SH0301", 2)
		g.Pos.File = name
		return diag.List{g}
	}
	f("SH0301", in("c.yaml"), "SH0301 2 warning, option: --ignore SH0301")
	f("SH0301=c.yaml", in("c.yaml"), "SH0301 2 warning, option: --ignore SH0301=c.yaml")
	f("SH0301=*.yaml", in("a/b/c.yaml"), "SH0301 2 warning, option: --ignore SH0301=*.yaml")
	f("SH0301=a/**", in("a/b/c.yaml"), "SH0301 2 warning, option: --ignore SH0301=a/**")
	f("SH0301=./a/*/c.yaml", in("a/b/c.yaml"), "SH0301 2 warning, option: --ignore SH0301=./a/*/c.yaml")
	f("SH0301=a/*.yaml", in("a/b/c.yaml"), "SH0301 2 warning", "SH0806 0 note")
	f("SH0301=b/*", in("a/b/c.yaml"), "SH0301 2 warning", "SH0806 0 note")
	f("SH0302 SH0301", in("c.yaml"), "SH0301 2 warning, option: --ignore SH0301", "SH0806 0 note")
	f("SH0302", append(in("c.yaml"), at("SH0206", 3)), "SH0301 2 warning", "SH0206 3 error")
	f("SH0301", diag.List{failing(at("SH0301", 2))}, "SH0301 2 error")
	f("SH0804", diag.List{at("SH0804", 2)}, "SH0804 2 warning, option: --ignore SH0804")

	for _, bad := range []string{"", "SH0206", "SH9999", "sh0301", "SH0301=", "SH0301=[", "=x", "SH0301,SH0302"} {
		if _, err := suppress.ParseIgnore(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestBaseline(t *testing.T) {
	old := diag.List{at("SH0301", 2), at("SH0301", 2), note(at("SH0305", 3)), at("SH0206", 4), at("SH0804", 5)}
	data, err := suppress.WriteBaseline(old, acceptance().Identity)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{
  "format": "shunt-baseline/1",
  "findings": [
    {"code":"SH0301","file":"c.yaml","path":"/2","message":"text"},
    {"code":"SH0301","file":"c.yaml","path":"/2","message":"text"},
    {"code":"SH0305","file":"c.yaml","path":"/3","message":"text"}
  ]
}
`
	if d := cmp.Diff(text, string(data)); d != "" {
		t.Fatal(d)
	}
	b, problems := suppress.ReadBaseline("base.json", data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	f := func(files string, findings diag.List, lines ...string) {
		t.Helper()
		a := acceptance(strings.Fields(files)...)
		a.Baseline = b
		want(t, a.Apply(findings), lines...)
	}
	moved := at("SH0301", 2)
	moved.Pos.Line = 99
	f("c.yaml", diag.List{moved, moved, at("SH0305", 3)}, "SH0301 99 warning, baseline: ", "SH0301 99 warning, baseline: ", "SH0305 3 warning, baseline: ")
	f("c.yaml", diag.List{moved, moved, moved, at("SH0305", 3)}, "SH0301 99 warning", "SH0301 99 warning, baseline: ", "SH0301 99 warning, baseline: ", "SH0305 3 warning, baseline: ")
	f("c.yaml", diag.List{moved, moved}, "SH0301 99 warning, baseline: ", "SH0301 99 warning, baseline: ", "SH0807 6 note")
	f("c.yaml", diag.List{at("SH0206", 1)}, "SH0206 1 error")
	f("d.yaml", nil)
	other := moved
	other.Message = "another"
	f("c.yaml", diag.List{other, moved, moved, at("SH0305", 3)}, "SH0301 99 warning", "SH0301 99 warning, baseline: ", "SH0301 99 warning, baseline: ", "SH0305 3 warning, baseline: ")

	if data, err := suppress.WriteBaseline(nil, acceptance().Identity); err != nil || string(data) != "{\n  \"format\": \"shunt-baseline/1\",\n  \"findings\": []\n}\n" {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestBadBaseline(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		b, problems := suppress.ReadBaseline("base.json", []byte(text))
		if b != nil || len(problems) != 1 || !strings.Contains(problems.String(), want) {
			t.Errorf("%q: got %v, want %s", text, problems, want)
		}
	}
	f("", "base.json:1:1: error: the baseline cannot be used: it ends too early [SH0808]")
	f("{\n", "base.json:2:1: error")
	f("{}", `its format is ""`)
	f(`{"format": "shunt-baseline/2", "findings": []}`, `its format is "shunt-baseline/2", not "shunt-baseline/1"`)
	f(`{"format": "shunt-baseline/1"}`, "no list findings")
	f(`{"format": "shunt-baseline/1", "findings": [], "more": 1}`, `unknown field "more"`)
	f(`{"format": "shunt-baseline/1", "findings": []} x`, "behind its end")
	f("{\"format\": \"shunt-baseline/1\", \"findings\": [\n {\"code\": \"SH0301\"},\n {\"code\": \"SH9999\"}]}", `base.json:3:2: error: the baseline cannot be used: no finding has the code "SH9999"`)
	f("{\"format\": \"shunt-baseline/1\", \"findings\": [\n {\"code\": \"SH0301\"},\n {\"code\": 5}]}", "base.json:3:")
	f("{\"format\": \"shunt-baseline/1\", \"findings\": [\n {\"kode\": 5}]}", "base.json:2:")

	b, problems := suppress.ReadBaseline("base.json", []byte(`{"format": "shunt-baseline/1", "findings": [{"code": "SH0206"}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	a := acceptance("c.yaml")
	a.Baseline = b
	want(t, a.Apply(diag.List{at("SH0206", 2)}), "SH0206 2 error", "SH0803 1 warning")
}

// FuzzReadBaseline: what is read can be written and read again.
func FuzzReadBaseline(f *testing.F) {
	f.Add([]byte(`{"format": "shunt-baseline/1", "findings": [{"code": "SH0301", "file": "c", "path": "/x", "message": "m"}]}`))
	f.Add([]byte(`{"format": "shunt-baseline/1", "findings": [{}, {}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, problems := suppress.ReadBaseline("b.json", data)
		if (b == nil) != (len(problems) > 0) {
			t.Errorf("%v %v", b, problems)
		}
	})
}
