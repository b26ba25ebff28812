package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shunt/compiler"
	"shunt/compiler/check"
	"shunt/compiler/source"
	"shunt/runtime/simulate/suite"
)

// shunt runs the command and returns its status and output.
func shunt(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"shunt"}, args...), strings.NewReader(""), &out, &errs)
	if errs.Len() > 0 {
		t.Logf("%s", &errs)
	}
	return code, out.String()
}

// TestExamples runs the tests of all examples; every example has some.
func TestExamples(t *testing.T) {
	configs, err := filepath.Glob("../../examples/*/routing.yaml")
	if err != nil || len(configs) == 0 {
		t.Fatal("no examples: ", err)
	}
	for _, config := range configs {
		name := filepath.Join(filepath.Dir(config), "routing_test.yaml")
		if code, out := shunt(t, "test", "--fail-under", "70", name); code != exitFine {
			t.Errorf("%s: exit status %d\n%s", name, code, out)
		}
	}
}

// TestPlantedBoundary moves bounds of an example by one token, each of which its
// tests have to find, and reports the place of the expectation.
func TestPlantedBoundary(t *testing.T) {
	f := func(old, changed, want string) {
		t.Helper()
		dir := t.TempDir()
		for _, name := range []string{"routing.yaml", "routing_test.yaml"} {
			data, err := os.ReadFile(filepath.Join("../../examples/pd-two-buckets", name))
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			if name == "routing.yaml" {
				if text = strings.Replace(text, old, changed, 1); text == string(data) {
					t.Fatalf("%s has no %q", name, old)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		code, out := shunt(t, "test", "--coverage", filepath.Join(dir, "routing_test.yaml"))
		if code != exitFindings || !strings.Contains(out, want) || !strings.Contains(out, "routing_test.yaml:8:") || !strings.Contains(out, "buckets served     2 of 2") {
			t.Errorf("%s: exit status %d, want a part %q\n%s", changed, code, want, out)
		}
	}
	f("{min: 0, max: 4096}", "{min: 0, max: 4095}", "bucket: expected short-context, got long-context (input 4096)")
	f("{min: 0, max: 4096}", "{min: 2, max: 4096}", "bucket: expected short-context, got long-context (input 1)")
	// Nothing in the file has this length; the range has.
	f("{min: 0, max: 131072}", "{min: 4001, max: 131072}", "buckets: expected short-context, long-context, got short-context (input 1, and 1 more)")
}

// TestOutputsAreValid holds JSON and JUnit of passes, failures and mistakes
// against the schema and an independent reading.
func TestOutputsAreValid(t *testing.T) {
	text, err := os.ReadFile("test.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("test", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("test")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	const config = `{"version": 1, "models": [{"id": "m", "discovery": {"static": {"engines": [{"id": "a", "url": "http://a", "role": "plain"}]}}}]}`
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("c.json", config)
	f := func(tests string, status, cases, failures, errors int) {
		t.Helper()
		write("t_test.json", `{"config": "c.json", "tests": [`+tests+`]}`)
		code, out := shunt(t, "test", "--format", "json", "--junit", "out.xml", "t_test.json")
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil || code != status {
			t.Errorf("%s: exit status %d, want %d: %v\n%s", tests, code, status, err, out)
		}
		data, err := os.ReadFile("out.xml")
		if err != nil {
			t.Fatal(err)
		}
		var junit struct {
			Tests  int `xml:"tests,attr"`
			Suites []struct {
				Cases []struct {
					Name    string `xml:"name,attr"`
					Failure []struct {
						Message string `xml:"message,attr"`
					} `xml:"failure"`
					Error []struct{} `xml:"error"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		if err := xml.Unmarshal(data, &junit); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		var gotCases, gotFailures, gotErrors int
		for _, s := range junit.Suites {
			for _, c := range s.Cases {
				gotCases, gotFailures, gotErrors = gotCases+1, gotFailures+len(c.Failure), gotErrors+len(c.Error)
			}
		}
		if gotCases != cases || gotFailures != failures || gotErrors != errors || junit.Tests != cases {
			t.Errorf("%s: %d cases, %d failures, %d errors\n%s", tests, gotCases, gotFailures, gotErrors, data)
		}
	}
	f(`{"name": "a", "request": {"input_tokens": 1}, "expect": {"plain": "a"}}`, 0, 1, 0, 0)
	f(`{"name": "]]><b a='1'>&\u00a0", "request": {"input_tokens": [1, 2]}, "expect": {"reason": "random"}}`, 1, 2, 2, 0)
	f(`{"name": "a", "request": {"input_tokens": 1}}, {"name": "b", "request": {"input_tokens": 0}}`, 1, 1, 0, 1)
	f(`{"name": "a", "request": {"input_tokens": 1}, "expect": {"plain": "c"}}, {"name": "b", "request": {}}`, 1, 3, 0, 3)
}

// FuzzTestFile runs whatever is a test file of an example.
func FuzzTestFile(f *testing.F) {
	paths, err := filepath.Glob("../../examples/*/routing_test.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(`{"config": "x", "tests": [{"name": "a", "request": {"prompt": "x", "headers": {"": "\u0000"}}, "repeat": 2, "expect": {"distribution": {"~/": {"min": 1}}}}]}`)
	f.Add(`{"config": ["x", "y"], "tests": [{"name": "a", "steps": [{"request": {"input_tokens": [1, 5000]}, "repeat": 2},
		{"change": {"engines": [{"id": "P1", "healthy": false, "inflight": 3, "loads": [{}]}], "bindings_unavailable": true}, "expect": {"bucket": "long-context"}}]}]}`)
	r := compiler.Compile(context.Background(), compiler.Options{}, []source.Input{{Name: "../../examples/pd-two-buckets/routing.yaml"}})
	if r.Plan == nil {
		f.Fatal(r.Findings)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, findings := source.Read(t.Context(), source.Options{}, []source.Input{{Name: "t.yaml", Reader: strings.NewReader(text)}})
		if tree == nil || findings.HasErrors() || check.Tests(t.Context(), tree).HasErrors() {
			return
		}
		file, err := suite.Decode(tree.JSON())
		if err != nil {
			t.Fatalf("a file of the right shape: %v", err)
		}
		for i := range file.Tests {
			file.Tests[i].Repeat = min(file.Tests[i].Repeat, 3)
			for j := range file.Tests[i].Steps {
				file.Tests[i].Steps[j].Repeat = min(file.Tests[i].Steps[j].Repeat, 3)
			}
		}
		if len(suite.Check(file, &r.Plan.Body)) > 0 {
			return
		}
		if _, err := suite.Run(t.Context(), file, &r.Plan.Body, func(string) bool { return true }, suite.NewCoverage(&r.Plan.Body)); err != nil {
			t.Logf("not decided: %v", err)
		}
	})
}
