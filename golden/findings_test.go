package golden_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/source"
	"shunt/compiler/suppress"
	"shunt/golden"
	"shunt/schema/plan"
)

// TestMain makes the test binary usable as the child that evaluates CUE.
func TestMain(m *testing.M) {
	source.ScrubEnvironment()
	if code, ok := source.ChildMain(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// optionsFile is the input of a case that says how its other inputs are
// compiled. Without it, all of them are, in their order.
const optionsFile = "options.json"

type caseOptions struct {
	// Inputs are the configurations; the others are there to be read or not.
	Inputs       []string `json:"inputs"`
	AllowCUECode bool     `json:"allow_cue_code"`
	MaxBytes     int64    `json:"max_bytes"`
	EvalTimeout  string   `json:"eval_timeout"`
	// Links are symbolic links to make, by name.
	Links map[string]string `json:"links"`
	// Folders are empty folders to make.
	Folders []string `json:"folders"`
}

// arrange makes what text files cannot express, and returns what to compile
// and how. The inputs named in without are no configurations.
func arrange(t *testing.T, c *golden.Case, without ...string) (compiler.Options, []string) {
	t.Helper()
	var o caseOptions
	if data := c.Input(optionsFile); data != nil {
		decode(t, data, &o)
	}
	for name, target := range o.Links {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range o.Folders {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := compiler.Options{Compiler: "golden", Source: source.Options{AllowCUECode: o.AllowCUECode, MaxBytes: o.MaxBytes}}
	if o.EvalTimeout != "" {
		timeout, err := time.ParseDuration(o.EvalTimeout)
		if err != nil {
			t.Fatal(err)
		}
		options.Source.EvalTimeout = timeout
	}
	if o.Inputs != nil {
		return options, o.Inputs
	}
	names := slices.DeleteFunc(slices.Clone(c.Inputs), func(n string) bool {
		return n == optionsFile || slices.Contains(without, n)
	})
	return options, names
}

// compileFiles compiles as the command does, which applies comments that suppress
// findings.
func compileFiles(ctx context.Context, o compiler.Options, names ...string) compiler.Result {
	var inputs []source.Input
	for _, name := range names {
		inputs = append(inputs, source.Input{Name: name})
	}
	r := compiler.Compile(ctx, o, inputs)
	if r.Tree != nil {
		r.Findings = suppress.Comments(r.Findings, r.Tree.Directives())
	}
	return r
}

// textReport is the report of a compilation, with excerpts also of files that
// gave no tree.
func textReport(t *testing.T, r compiler.Result) string {
	t.Helper()
	rep := report.Report{Findings: r.Findings, Lines: fileLines}
	if r.Tree != nil {
		rep.Lines = r.Tree.Lines
	}
	var out strings.Builder
	if err := rep.Write(&out, report.Text); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func fileLines(name string, first, last int) []string {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	lines := strings.Split(string(data), "\n")
	if first < 1 || last > len(lines) {
		return nil
	}
	return lines[first-1 : last]
}

// TestCheck compares the findings of configurations that have some.
func TestCheck(t *testing.T) {
	golden.Run(t, "check/*.txtar", func(t *testing.T, c *golden.Case) {
		o, names := arrange(t, c)
		r := compileFiles(t.Context(), o, names...)
		if (r.Plan == nil) != r.Findings.HasErrors() {
			t.Errorf("plan made: %t, with findings\n%s", r.Plan != nil, r.Findings)
		}
		if len(r.Findings) == 0 {
			t.Error("no findings")
		}
		c.Want("findings", textReport(t, r))
	})
}

// made is the plan of a configuration without errors, as a file. Warnings are
// allowed: these configurations use every setting, not every setting well.
func made(t *testing.T, o compiler.Options, names ...string) []byte {
	t.Helper()
	r := compileFiles(t.Context(), o, names...)
	if r.Plan == nil {
		t.Fatalf("findings:\n%s", textReport(t, r))
	}
	data, err := plan.Encode(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := plan.Load(data)
	if err != nil {
		t.Fatalf("the loader refuses what the compiler wrote: %v", err)
	}
	if again, err := plan.Encode(loaded); err != nil || !bytes.Equal(again, data) {
		t.Fatalf("a loaded plan is encoded differently (%v)", err)
	}
	return data
}

// body is a plan file without its provenance; it starts with the digest.
func body(data []byte) string {
	head, _, _ := strings.Cut(string(data), "\n  \"provenance\"")
	return head
}

// TestForms compiles one configuration in several forms, each a folder of the
// case or a file at its top: all give the same body, digest included.
func TestForms(t *testing.T) {
	golden.Run(t, "forms/*.txtar", func(t *testing.T, c *golden.Case) {
		forms := make(map[string][]string)
		o, names := arrange(t, c)
		for _, name := range names {
			folder := filepath.Dir(name)
			if folder == "." {
				folder = name
			}
			forms[folder] = append(forms[folder], name)
		}
		if len(forms) < 2 {
			t.Fatal("one form only")
		}
		var first string
		for _, form := range slices.Sorted(maps.Keys(forms)) {
			files := forms[form]
			for range 2 {
				got := body(made(t, o, files...))
				if first == "" {
					first = got
				}
				if got != first {
					t.Errorf("%s gives another body:\n%s\nthan the first form:\n%s", form, got, first)
				}
				slices.Reverse(files) // the order of files means nothing
			}
		}
		_, digest, _ := strings.Cut(first, `"digest": "`)
		digest, _, _ = strings.Cut(digest, `"`)
		c.Want("digest", digest)
	})
}

// TestExamples: every configuration under examples is without findings.
func TestExamples(t *testing.T) {
	var paths []string
	for _, ext := range []string{"yaml", "yml", "json", "cue"} {
		found, err := filepath.Glob("../examples/*/*." + ext)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, "_test.yaml") })
	if len(paths) < 3 {
		t.Fatalf("examples are %q", paths)
	}
	for _, path := range paths {
		if filepath.Base(filepath.Dir(path)) == "ci" {
			continue // files of other programs
		}
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			r := compileFiles(t.Context(), compiler.Options{}, path)
			if len(r.Findings) > 0 || r.Plan == nil {
				t.Errorf("plan made: %t, with findings\n%s", r.Plan != nil, textReport(t, r))
			}
		})
	}
}

// TestInterrupted: a cancelled run gives no verdict.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := compileFiles(ctx, compiler.Options{}, "../examples/plain/routing.yaml")
	if r.Plan != nil || !r.Findings.Failed() || r.Findings[0].Code != diag.Interrupted {
		t.Errorf("got %v, plan %t", r.Findings, r.Plan != nil)
	}
}

// TestEvaluationLimit: programs that run for ever or take all memory are ended
// by their limits (reference: two nested loops over a thousand, strings that
// double, a sum that nests too deeply for any stack).
func TestEvaluationLimit(t *testing.T) {
	double := "a0: \"xxxxxxxxxxxxxxxx\"\n"
	for i := range 30 {
		double += fmt.Sprintf("a%d: \"\\(a%d)\\(a%d)\"\n", i+1, i, i)
	}
	programs := map[string]string{
		"loops":   "import \"list\"\n\nmodels: [for i in list.Range(0, 1000, 1) for j in list.Range(0, 1000, 1) {id: i * j}]\n",
		"strings": double,
		"sum":     "version: " + strings.Repeat("1+", 400_000) + "1\n",
	}
	for name, text := range programs {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bomb.cue")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			o := compiler.Options{Source: source.Options{AllowCUECode: true, EvalTimeout: 300 * time.Millisecond}}
			r := compileFiles(t.Context(), o, path)
			if r.Plan != nil || !r.Findings.Failed() {
				t.Errorf("got %v, plan %t", r.Findings, r.Plan != nil)
			}
			for _, f := range r.Findings {
				if f.Code == diag.Internal {
					t.Errorf("internal error: %s", f)
				}
			}
		})
	}
}

// TestEveryCodeHasACase looks for each code of the table in the wanted sections
// and among the examples of the pages.
func TestEveryCodeHasACase(t *testing.T) {
	const signing = "golden/cli/sign.txtar"
	const accepting = "golden/cli/accept.txtar; only the command has options"
	elsewhere := map[diag.Code]string{
		diag.Internal:        "no input leads to it",
		diag.Interrupted:     "TestInterrupted",
		diag.EvaluationLimit: "TestEvaluationLimit; its text depends on the time",
		diag.TooManyRuns:     "it needs thousands of buckets",
		diag.BadTokenizer:    "golden/cli/tokenizer.txtar; only the command reads tokenizers",
		diag.NoTemplate:      "golden/cli/tokenizer.txtar",
		diag.BadKey:          signing,
		diag.Unsigned:        signing,
		diag.BadSignature:    signing,
		diag.WrongSignature:  signing,
		diag.UnusedIgnore:    accepting,
		diag.StaleBaseline:   accepting,
		diag.BadBaseline:     accepting,
		diag.OtherShape:      "it needs thousands of mistakes; the walk explains all others",
	}
	for _, c := range []diag.Code{diag.TestVacuous, diag.TestConflict, diag.TestUnknown, diag.TestWorld, diag.TestRequest, diag.TestTooMany, diag.TestNoSubject} {
		elsewhere[c] = "golden/cli/test_mistakes.txtar"
	}
	var texts []byte
	for _, pattern := range []string{"check/*.txtar", "verify/*.txtar", "migrate/*.txtar", "../compiler/migrate/*/testdata/*.txtar"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, wanted, _ := bytes.Cut(data, []byte("\n-- want/"))
			texts = append(texts, wanted...)
		}
	}
	for _, e := range diag.Table() {
		if strings.HasPrefix(string(e.Code), "SH06") {
			continue // compiler/migrate has a test for each
		}
		if page, _ := diag.PageOf(e.Code); len(page.Bad) > 0 {
			continue // TestEveryCodeHasAPage compiles it
		}
		if elsewhere[e.Code] == "" && !bytes.Contains(texts, fmt.Appendf(nil, "[%s]", e.Code)) {
			t.Errorf("no golden case for %s, %s", e.Code, e.Title)
		}
	}
}
