package golden_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// matches reports an error when a document is not what a JSON Schema of this
// project says.
func matches(t *testing.T, schemaFile string, document []byte) {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := judged(schemaFile, text, document); err != nil {
		t.Errorf("%s: %v\n%s", schemaFile, err, document)
	}
}

func judged(name string, schema, document []byte) error {
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, text); err != nil {
		return err
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// TestOutputSchemasCanFail has a document with one mistake each.
func TestOutputSchemasCanFail(t *testing.T) {
	text, err := os.ReadFile("../compiler/plandiff/diff.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	const side = `{"name": "a", "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}`
	f := func(same, routes string, ok bool) {
		t.Helper()
		document := `{"format": "shunt.diff/1", "old": ` + side + `, "new": ` + side + `, "same": ` + same +
			`, "count": {"breaking": 0, "behaviour": 0, "cosmetic": 0}, "routes": ` + routes + `, "changes": []}`
		if err := judged("diff", text, []byte(document)); (err == nil) != ok {
			t.Errorf("%s: %v", document, err)
		}
	}
	f("true", "[]", true)
	f(`"yes"`, "[]", false)
	f("true", `[{}]`, false)
	f("true", `[], "other": 1`, false)
}
