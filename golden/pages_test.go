package golden_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/source"
	"shunt/golden"
)

const pagesFile = "../schema/RULES.md"

// TestReferencePages keeps the generated document true.
func TestReferencePages(t *testing.T) {
	var b bytes.Buffer
	if err := report.Pages(&b); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(pagesFile)
	if err == nil && bytes.Equal(old, b.Bytes()) {
		return
	}
	if golden.Update() {
		if err := os.WriteFile(pagesFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s\nrun the tests with UPDATE=1 to rewrite it", diff.Diff(pagesFile, old, "generated", b.Bytes()))
}

// unfit are the codes of configurations that have no example, and why.
var unfit = map[diag.Code]string{
	diag.OtherShape:  "it needs thousands of mistakes",
	diag.TooManyRuns: "it needs thousands of buckets",
	diag.NoTemplate:  "a tokenizer does not fit on a page",
}

// unavoidable are findings that an example has beside its own.
var unavoidable = map[diag.Code][]diag.Code{
	// What a comment fails to suppress is reported.
	diag.NoReason:     {diag.LengthGap},
	diag.UnknownCode:  {diag.LengthGap},
	diag.BadDirective: {diag.LengthGap},
}

// TestEveryCodeHasAPage compiles the examples of each page: the bad one has the finding and
// no other, the good one has none at all.
func TestEveryCodeHasAPage(t *testing.T) {
	for _, e := range diag.Table() {
		page, _ := diag.PageOf(e.Code)
		family := e.Code[:4]
		if len(page.Bad) == 0 || len(page.Good) == 0 {
			if len(page.Bad)+len(page.Good) > 0 || family >= "SH01" && family <= "SH04" && unfit[e.Code] == "" {
				t.Errorf("%s has no pair of examples", e.Code)
			}
			continue
		}
		if e.Code == diag.BadTokenizer {
			continue // only the command reads tokenizers, and has the test
		}
		t.Run(string(e.Code), func(t *testing.T) {
			r := compileExample(t, page, page.Bad)
			others := slices.DeleteFunc(slices.Clone(r.Findings), func(f diag.Finding) bool {
				return f.Code == e.Code || slices.Contains(unavoidable[e.Code], f.Code)
			})
			if len(others) == len(r.Findings) || len(others) > 0 {
				t.Errorf("the bad example gives\n%s", textReport(t, r))
			}
			if r := compileExample(t, page, page.Good); r.Plan == nil || len(r.Findings) > r.Findings.Suppressed() {
				t.Errorf("the good example gives\n%s", textReport(t, r))
			}
		})
	}
}

// compileExample compiles an example in a folder of its own, with the option that
// its page names.
func compileExample(t *testing.T, page diag.Page, files []diag.File) compiler.Result {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for _, f := range files {
		name, data := f.Raw()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(name, "/") {
			names = append(names, path)
		}
	}
	code := strings.Contains(strings.Join(page.Commands, "\n"), "--allow-cue-code")
	return compileFiles(t.Context(), compiler.Options{Source: source.Options{AllowCUECode: code}}, names...)
}

// TestExampleFiles: each archive of examples belongs to a code.
func TestExampleFiles(t *testing.T) {
	paths, err := filepath.Glob("../compiler/diag/examples/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		code, isArchive := strings.CutSuffix(filepath.Base(path), ".txtar")
		if _, ok := diag.Lookup(diag.Code(code)); !ok || !isArchive {
			t.Errorf("%s belongs to no code", path)
		}
	}
}
