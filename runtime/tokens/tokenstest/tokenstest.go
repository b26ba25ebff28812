package tokenstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"shunt/runtime/tokens"
)

// Dir writes the files of a model into a folder of the test: the tokenizer, whose
// only special token is "<s>" with the id 256, and config as its
// tokenizer_config.json.
func Dir(t testing.TB, config map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for name, v := range map[string]any{"tokenizer.json": tokenizer(), "tokenizer_config.json": config} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Load loads a model of Dir.
func Load(t testing.TB, dir string, o tokens.Options) *tokens.Model {
	t.Helper()
	files, err := tokens.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := tokens.Load(files, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Contents is a model whose prompt is the contents of the messages and nothing
// else.
func Contents(t testing.TB) *tokens.Model {
	t.Helper()
	config := map[string]any{"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}
	return Load(t, Dir(t, config), tokens.Options{})
}

// tokenizer has no merges. Its vocabulary writes each byte as the character that
// byte-level tokenizers have for it.
func tokenizer() map[string]any {
	vocab, next := make(map[string]int), 0x100
	for b := range 256 {
		c := b
		if !('!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF) {
			c = next
			next++
		}
		vocab[string(rune(c))] = b
	}
	const split = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	return map[string]any{
		"added_tokens": []any{map[string]any{"id": 256, "content": "<s>", "normalized": false, "special": true}},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": split}, "behavior": "Isolated", "invert": false},
			map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
		}},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}},
	}
}
