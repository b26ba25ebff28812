package migrate_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"shunt/compiler"
	"shunt/compiler/migrate"
	"shunt/compiler/source"
)

// judge holds results against what is promised of all of them.
type judge struct{ schema *jsonschema.Schema }

func newJudge(t testing.TB) judge {
	t.Helper()
	text, err := os.ReadFile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("report", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("report")
	if err != nil {
		t.Fatal(err)
	}
	return judge{schema}
}

// result fails unless the JSON report is what its schema says, nothing went wrong
// inside, and each target is in the configuration.
func (j judge) result(t testing.TB, r migrate.Result, o migrate.Options) {
	t.Helper()
	var b bytes.Buffer
	if err := r.Report.JSON(&b); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.schema.Validate(value); err != nil {
		t.Errorf("the report is not what its schema says: %v", err)
	}
	for _, f := range r.Report.All() {
		if f.Code == "SH0004" {
			t.Error(f)
		}
	}
	if r.Config != nil {
		resolve(t, r, o.Format)
	}
}

// resolve fails unless each target of a report is in the configuration, and no
// two values have the same place.
func resolve(t testing.TB, r migrate.Result, format migrate.Format) {
	t.Helper()
	tree, findings := source.Read(t.Context(), source.Options{}, []source.Input{input(r.Config, format)})
	if tree == nil {
		t.Fatalf("%s\n%s", findings, r.Config)
	}
	for _, l := range r.Report.Lines {
		for _, target := range l.Targets {
			if tree.Node(target) == nil {
				t.Errorf("%s: no %s in\n%s", l.Source, target, r.Config)
			}
		}
	}
}

func input(data []byte, format migrate.Format) source.Input {
	as := ".yaml"
	if format == migrate.CUE {
		as = ".cue"
	}
	return source.Input{Name: "migrated" + as, As: as, Reader: bytes.NewReader(data)}
}

// digest is that of the plan of a configuration.
func digest(t testing.TB, data []byte, format migrate.Format) string {
	t.Helper()
	r := compiler.Compile(t.Context(), compiler.Options{}, []source.Input{input(data, format)})
	if r.Plan == nil {
		t.Fatalf("%s\n%s", r.Findings, data)
	}
	return r.Plan.Digest
}

// TestSchemaCanFail has a report with one mistake each.
func TestSchemaCanFail(t *testing.T) {
	j := newJudge(t)
	f := func(old, now string, ok bool) {
		t.Helper()
		var b strings.Builder
		if err := run(t, whole+"--stable-pair --policy session_aware", migrate.Options{}).Report.JSON(&b); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(b.String(), old, now, 1)
		if text == b.String() && !ok {
			t.Fatalf("no %s in %s", old, text)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := j.schema.Validate(value); (err == nil) != ok {
			t.Errorf("%s: %v", now, err)
		}
	}
	f("", "", true)
	f(`"version": 1`, `"version": 2`, false)
	f(`"outcome": "rejected"`, `"outcome": "lost"`, false)
	f(`"code": "SH0607"`, `"code": "607"`, false)
	f(`"targets": []`, `"targets": ["models"]`, false)
	f(`"elements": [`, `"elements": [0,`, false)
	f(`"changes": [`, `"changed": [`, false)
	f(`"written": false,`, ``, false)
}
