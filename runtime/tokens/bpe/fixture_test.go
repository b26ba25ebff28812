package bpe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"shunt/runtime/tokens/bpe"
)

const (
	qwenSplit  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	llamaSplit = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// fixture is a small tokenizer file: the byte characters have the ids of their
// bytes, and what merges make follows from 256 on.
type fixture map[string]any

func (f fixture) model() map[string]any        { return f["model"].(map[string]any) }
func (f fixture) vocab() map[string]int        { return f.model()["vocab"].(map[string]int) }
func (f fixture) set(key string, v any)        { f[key] = v }
func (f fixture) setModel(k string, v any)     { f.model()[k] = v }
func (f fixture) add(tokens ...map[string]any) { f["added_tokens"] = tokens }

func byteChar(b int) string {
	switch {
	case '!' <= b && b <= '~', 0xA1 <= b && b <= 0xAC, 0xAE <= b && b <= 0xFF:
		return string(rune(b))
	}
	n := 0x100
	for c := range b {
		if !('!' <= c && c <= '~' || 0xA1 <= c && c <= 0xAC || 0xAE <= c && c <= 0xFF) {
			n++
		}
	}
	return string(rune(n))
}

// newFixture makes a file of Qwen's shape. Each merge is two symbols with a space
// between them.
func newFixture(merges ...string) fixture {
	vocab := make(map[string]int)
	for b := range 256 {
		vocab[byteChar(b)] = b
	}
	for _, m := range merges {
		whole := strings.ReplaceAll(m, " ", "")
		if _, ok := vocab[whole]; !ok {
			vocab[whole] = len(vocab)
		}
	}
	return fixture{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{},
		"normalizer":     map[string]any{"type": "NFC"},
		"pre_tokenizer":  splitOf(qwenSplit),
		"post_processor": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
		"decoder":        nil,
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "", "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": merges,
		},
	}
}

func splitOf(patterns ...string) map[string]any {
	var steps []any
	for _, p := range patterns {
		steps = append(steps, map[string]any{"type": "Split", "pattern": map[string]any{"Regex": p}, "behavior": "Isolated", "invert": false})
	}
	steps = append(steps, map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})
	return map[string]any{"type": "Sequence", "pretokenizers": steps}
}

func added(id int, content string, normalized bool) map[string]any {
	return map[string]any{"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": normalized, "special": true}
}

func (f fixture) text(t testing.TB) string {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (f fixture) load(t testing.TB, o bpe.Options) *bpe.Tokenizer {
	t.Helper()
	tokenizer, err := bpe.New(f.text(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}
