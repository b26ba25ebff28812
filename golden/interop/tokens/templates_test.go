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

// TestTemplates compares texts. Where the reference of npm fails and where it
// differs from Jinja for Python, Python is the law: engines run that.
func TestTemplates(t *testing.T) {
	answers, npm := folders(t)
	compiled := make(map[string]*template.Template)
	var total, same, bothFail, failing, python, pythonSame int
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
			if (err == nil) == (r.Python.Text != nil) && (err != nil || got == *r.Python.Text) {
				pythonSame++
			} else {
				t.Errorf("%s %s: differs from Python: %v\n got %q\nwant %v %s", r.Model, r.Name, err, got, deref(r.Python.Text), r.Python.Error)
			}
		}
		switch {
		case err != nil && r.Text == nil:
			bothFail++
		case err == nil && r.Text != nil && got == *r.Text:
			same++
		case r.Python != nil && (r.Python.Text == nil) == (err != nil): // judged above
			failing++
		case r.Python == nil && err != nil:
			failing++
			t.Logf("%s %s: fails here and not there: %v", r.Model, r.Name, err)
		default:
			t.Errorf("%s %s: %v\n got %q\nwant %s %s", r.Model, r.Name, err, got, deref(r.Text), r.Error)
		}
	})
	t.Logf("npm: of %d renderings %d equal, both fail on %d, %d differ with Python on our side", total, same, bothFail, failing)
	t.Logf("Python: %d of %d equal", pythonSame, python)
	if same < 500 {
		t.Errorf("only %d renderings were equal", same)
	}
}

func deref(s *string) string {
	if s == nil {
		return "an error"
	}
	return *s
}
