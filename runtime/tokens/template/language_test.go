package template_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"shunt/runtime/tokens/template"
)

// TestLanguage compares with what Jinja for Python answered, feature by feature.
// golden/interop/tokens/language.py writes the file.
func TestLanguage(t *testing.T) {
	text, err := os.ReadFile("testdata/language.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Now   time.Time
		Vars  json.RawMessage
		Cases []struct {
			Template string
			Text     *string
			Error    string
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	vars, err := template.Parse(string(file.Vars))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		got, err := render(t, c.Template, vars.Dict(), template.Options{Now: file.Now})
		switch {
		case c.Text == nil && err == nil:
			t.Errorf("%s\n got %q\nwant an error (%s)", c.Template, got, c.Error)
		case c.Text != nil && err != nil:
			t.Errorf("%s\n got the error %v\nwant %q", c.Template, err, *c.Text)
		case c.Text != nil && got != *c.Text:
			t.Errorf("%s\n got %q\nwant %q", c.Template, got, *c.Text)
		}
	}
}

func render(t testing.TB, source string, vars *template.Dict, o template.Options) (string, error) {
	compiled, err := template.Compile(source)
	if err != nil {
		return "", err
	}
	return compiled.Render(t.Context(), vars, o)
}
