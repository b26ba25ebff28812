package golden_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

const cacheExample = "../examples/cache-aware-pd/"

// cachePlan is the plan of the example.
func cachePlan(t *testing.T) *plan.Body {
	t.Helper()
	r := compileFiles(t.Context(), compiler.Options{}, cacheExample+"routing.yaml")
	if r.Plan == nil || len(r.Findings) > 0 {
		t.Fatalf("findings:\n%s", textReport(t, r))
	}
	return &r.Plan.Body
}

// TestCacheExample: a conversation stays where its prefix is, until that engine is
// under pressure; its decode engine stays anyway.
func TestCacheExample(t *testing.T) {
	body := cachePlan(t)
	f := func(world, request, want string) {
		t.Helper()
		w, err := simulate.ParseWorld(read(t, cacheExample+"worlds/"+world))
		if err != nil {
			t.Fatal(err)
		}
		sim, err := simulate.New(body, w, decideSeed)
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		r, err := simulate.ParseRequest(body, read(t, cacheExample+"requests/"+request))
		if err != nil {
			t.Fatal(err)
		}
		d, err := sim.Decide(t.Context(), r)
		if err != nil || d.Error != nil {
			t.Fatalf("%v, %+v", err, d.Error)
		}
		if got := simulate.Compact(d); got != want {
			t.Errorf("%s in %s: %s, want %s", request, world, got, want)
		}
	}
	f("calm.json", "second-turn.json", "bucket chat, prefill P2 (cache_candidate), decode D1 (session_primary)")
	f("pressure.json", "second-turn.json", "bucket chat, prefill P3 (cache_candidate), decode D1 (session_primary)")
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBodiesAreTokenized: the length of a body is that of its prompt in tokens,
// of which the example's tokenizer makes one for each byte and special token.
func TestBodiesAreTokenized(t *testing.T) {
	const chat = `{"model": "qwen3-32b", "max_tokens": 100, "messages": [{"role": "user", "content": "Grüße"}]}`
	body := cachePlan(t)
	r, err := simulate.ParseBody(t.Context(), body, []byte(chat))
	if err != nil {
		t.Fatal(err)
	}
	prompt := "\x00user\nGrüße\x00\n\x00assistant\n" // special tokens as one byte
	if r.InputTokens != int64(len(prompt)) || len(r.TokenIDs) != len(prompt) || *r.ExpectedPeakTokens != int64(len(prompt))+100 {
		t.Errorf("input %d, %d ids, peak %d; want %d tokens", r.InputTokens, len(r.TokenIDs), *r.ExpectedPeakTokens, len(prompt))
	}
	body.Models[0].Tokenizer.Path = "nosuch"
	if _, err := simulate.ParseBody(t.Context(), body, []byte(chat)); err == nil || !strings.Contains(err.Error(), `tokenizer of model "qwen3-32b"`) {
		t.Errorf("without a tokenizer: %v", err)
	}
	body.Models[0].Requires.Tokens = nil
	if r, err := simulate.ParseBody(t.Context(), body, []byte(chat)); err != nil || r.InputTokens != int64(len(chat)/4) {
		t.Errorf("estimate: %d, %v", r.InputTokens, err)
	}
}
