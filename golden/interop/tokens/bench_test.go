package tokens_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"shunt/runtime/tokens"
	"shunt/runtime/tokens/bpe"
	"shunt/runtime/tokens/template"
)

// references are the speeds of the reference library in MB/s, by model and text.
func references(b *testing.B, answers string) map[string]float64 {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(answers, "bench.json"))
	if err != nil {
		b.Fatal(err)
	}
	var speeds map[string]float64
	if err := json.Unmarshal(data, &speeds); err != nil {
		b.Fatal(err)
	}
	return speeds
}

// BenchmarkEncode times the texts that the reference library was timed with, and
// prints its speed beside.
func BenchmarkEncode(b *testing.B) {
	answers, npm := folders(b)
	speeds := references(b, answers)
	for _, model := range models {
		for _, cached := range []bool{true, false} {
			o := bpe.Options{}
			if !cached {
				o.CacheWords = -1
			}
			tokenizer := load(b, npm, model, o)
			for _, size := range []int{4 << 10, 40 << 10, 400 << 10} {
				b.Run(fmt.Sprintf("%s/cache=%v/%d", model, cached, size), func(b *testing.B) {
					text, err := os.ReadFile(filepath.Join(answers, fmt.Sprintf("bench-%d.txt", size)))
					if err != nil {
						b.Fatal(err)
					}
					encodeAll(b, tokenizer, string(text))
					b.ReportMetric(speeds[fmt.Sprintf("%s/%d", model, size)], "reference-MB/s")
				})
			}
		}
	}
}

func encodeAll(b *testing.B, tokenizer *bpe.Tokenizer, text string) {
	buf := make([]uint32, 0, len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		ids, err := tokenizer.Encode(b.Context(), buf[:0], text, false)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(ids)), "tokens")
	}
}

// BenchmarkHostile times what a quadratic algorithm would choke on.
func BenchmarkHostile(b *testing.B) {
	_, npm := folders(b)
	tokenizer := load(b, npm, "deepseek_v3", bpe.Options{})
	for name, unit := range map[string]string{"a": "a", "spaces": " ", "marks": "\u0301", "control": "\x01", "angle": "<｜", "newlines": " \n", "ops": "=-", "cjk": "的是"} {
		for _, size := range []int{1 << 17, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				text := make([]byte, 0, size+len(unit))
				for len(text) < size {
					text = append(text, unit...)
				}
				encodeAll(b, tokenizer, string(text))
			})
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	_, npm := folders(b)
	for _, model := range models {
		b.Run(model, func(b *testing.B) {
			for b.Loop() {
				load(b, npm, model, bpe.Options{})
			}
		})
	}
}

// BenchmarkRender times a chat template, and BenchmarkChat everything from the
// body of a request to its ids.
func BenchmarkRender(b *testing.B) {
	_, npm := folders(b)
	compiled := chatTemplate(b, npm, "qwen3")
	for _, turns := range []int{2, 200} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			v, err := template.Parse(conversation(turns))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				text, err := compiled.Render(b.Context(), v.Dict(), template.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(text)))
			}
		})
	}
}

func BenchmarkChat(b *testing.B) {
	_, npm := folders(b)
	model := loadModel(b, npm, "qwen3")
	for _, turns := range []int{2, 200} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			body := []byte(conversation(turns))
			buf := make([]uint32, 0, len(body))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_, source, err := model.Encode(b.Context(), buf[:0], body)
				if err != nil || source.Trust == tokens.Estimated {
					b.Fatal(err, source.Err)
				}
			}
		})
	}
}

// conversation is the body of a request with so many turns of about 2 KB.
func conversation(turns int) string {
	out := `{"model":"m","add_generation_prompt":true,"messages":[{"role":"system","content":"You are helpful."}`
	for i := range turns {
		content := ""
		for k := range 40 {
			content += fmt.Sprintf("In turn %d, step %d, the router compared %d engines and picked one. ", i, k, i*k)
		}
		out += fmt.Sprintf(`,{"role":"%s","content":"%s"}`, []string{"user", "assistant"}[i%2], content)
	}
	return out + `,{"role":"user","content":"Why?"}]}`
}
