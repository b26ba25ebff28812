package tokens_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"shunt/runtime/tokens"
)

func loadModel(t testing.TB, npm, model string) *tokens.Model {
	t.Helper()
	files, err := tokens.Find(modelFolder(npm, model))
	if err != nil {
		t.Fatal(err)
	}
	m, err := tokens.Load(files, tokens.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.TemplateError() != nil {
		t.Fatal(m.TemplateError())
	}
	return m
}

// TestChats gives whole requests to the façade and compares the ids with those of
// the reference's renderer and tokenizer together.
func TestChats(t *testing.T) {
	answers, npm := folders(t)
	type chat struct {
		Model    string
		Name     string
		IDs      []uint32
		Messages json.RawMessage
	}
	loaded := make(map[string]*tokens.Model)
	exact, total := 0, 0
	lines(t, filepath.Join(answers, "chats.jsonl"), func(c chat) {
		if loaded[c.Model] == nil {
			loaded[c.Model] = loadModel(t, npm, c.Model)
		}
		body, err := json.Marshal(map[string]any{"model": c.Model, "messages": c.Messages})
		if err != nil {
			t.Fatal(err)
		}
		got, source, err := loaded[c.Model].Encode(t.Context(), nil, body)
		if err != nil {
			t.Fatal(err)
		}
		total++
		if source.Trust == tokens.Exact {
			exact++
		}
		if source.Trust == tokens.Exact && !slices.Equal(got, c.IDs) {
			t.Errorf("%s %s: ids differ\n got %v\nwant %v", c.Model, c.Name, got, c.IDs)
		}
	})
	t.Logf("%d of %d requests are exact, and all of those have the reference's ids", exact, total)
	if exact < 30 {
		t.Errorf("only %d requests were exact", exact)
	}
}
