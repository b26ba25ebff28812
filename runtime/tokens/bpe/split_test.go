package bpe

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestSplits compares with what the reference library answered.
// golden/interop/tokens/splits.py writes the file.
func TestSplits(t *testing.T) {
	text, err := os.ReadFile("testdata/splits.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text, NFC             string
		Qwen, Llama, Deepseek []string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	n := newNormalizer()
	for _, c := range cases {
		if got, _ := n.nfc(c.Text, nil); got != c.NFC {
			t.Errorf("NFC of %+q: got %+q, want %+q", c.Text, got, c.NFC)
		}
		for f, want := range map[family][]string{qwen: c.Qwen, llama: c.Llama, deepseek: c.Deepseek} {
			if got := allWords(c.Text, f); !slices.Equal(got, want) {
				t.Errorf("%s splits %+q: got %+q, want %+q", familyNames[f], c.Text, got, want)
			}
		}
	}
}

func allWords(text string, f family) []string {
	s := splitter{text: text, family: f}
	var out []string
	for {
		w, ok := s.next()
		if !ok {
			return out
		}
		out = append(out, w)
	}
}
