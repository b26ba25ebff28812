package tokens_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"shunt/runtime/tokens/template"
)

type rendering struct {
	Model string
	Name  string
	Vars  json.RawMessage
	Text  *string
	Error string
	// Python is what Jinja for Python answers, if it was asked.
	Python *struct {
		Text  *string
		Error string
	}
}

func chatTemplate(t testing.TB, npm, model string) *template.Template {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(modelFolder(npm, model), "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		ChatTemplate string `json:"chat_template"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	compiled, err := template.Compile(config.ChatTemplate)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// TestTemplates compares texts. The law is Jinja for Python, which engines run, if
// it was asked. Npm's renderer must agree wherever both render: it refuses some
// values that Python prints, and passes over some that Python refuses.
func TestTemplates(t *testing.T) {
	answers, npm := folders(t)
	compiled := make(map[string]*template.Template)
	var total, same, bothFail, strict, python int
	lines(t, filepath.Join(answers, "templates.jsonl"), func(r rendering) {
		total++
		vars, err := template.Parse(string(r.Vars))
		if err != nil {
			t.Fatal(err)
		}
		if compiled[r.Model] == nil {
			compiled[r.Model] = chatTemplate(t, npm, r.Model)
		}
		got, err := compiled[r.Model].Render(t.Context(), vars.Dict(), template.Options{Now: time.Now()})
		if r.Python != nil {
			python++
			if (err == nil) != (r.Python.Text != nil) || err == nil && got != *r.Python.Text {
				t.Errorf("%s %s: %v\n got %q\nPython %q %s", r.Model, r.Name, err, got, deref(r.Python.Text), r.Python.Error)
			}
		}
		switch {
		case err != nil && r.Text == nil:
			bothFail++
		case err != nil || r.Text == nil:
			strict++
		case got == *r.Text:
			same++
		default:
			t.Errorf("%s %s\n got %q\nnpm %q", r.Model, r.Name, got, *r.Text)
		}
	})
	t.Logf("npm: %d renderings: %d equal, both fail on %d, one of the two fails on %d", total, same, bothFail, strict)
	t.Logf("Python: %d compared", python)
	if same < 1000 {
		t.Errorf("only %d renderings were equal", same)
	}
}

func deref(s *string) string {
	if s == nil {
		return "an error"
	}
	return *s
}
