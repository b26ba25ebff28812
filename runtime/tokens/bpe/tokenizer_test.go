package bpe_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"shunt/runtime/tokens/bpe"
)

func encode(t testing.TB, tokenizer *bpe.Tokenizer, text string, special bool) string {
	t.Helper()
	ids, err := tokenizer.Encode(t.Context(), nil, text, special)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(fmt.Sprint(ids), "[]")
}

func TestMerges(t *testing.T) {
	f := func(merges, text, want string) {
		t.Helper()
		tokenizer := newFixture(strings.Split(merges, ",")...).load(t, bpe.Options{})
		for range 2 { // the second time from the cache
			if got := encode(t, tokenizer, text, false); got != want {
				t.Errorf("%q with %s: got %s, want %s", text, merges, got, want)
			}
		}
	}
	f("a b,b c", "abc", "256 99")                                                               // the lower rank first
	f("b c,a b", "abc", "97 256")                                                               // and not the first place
	f("a a", "aaaaa", "256 256 97")                                                             // the leftmost among equals
	f("a a,aa aa", "aaaaaaa", "257 256 97")                                                     // merges of merges
	f("a b,ab c,c d", "abcd", "257 100")                                                        // each after the rank before it
	f("c d,a b,ab cd", "abcd", "258")                                                           //
	f("a b", "ab ab", "256 32 256")                                                             // " ab" is one word of three bytes
	f("Ġ a,Ġa b", "ab ab", "97 98 257")                                                         // a space is a byte like others
	f("Ã ©", "e\u0301", "256")                                                                  // composed, then merged
	f("a b", "", "")                                                                            //
	f("a b,b a", "ab", "256")                                                                   //
	f("x y,x y", "xy", "256")                                                                   // a pair that stands twice
	f("1 2", "12", "49 50")                                                                     // digits stand alone
	f("' s", "it's", "105 116 256")                                                             //
	f("Ċ Ċ", "\n\n\n", "256 10")                                                                //
	f("a b,ab ab,abab abab,abababab abababab", strings.Repeat("ab", 40), "259 259 259 259 259") // a word of 80 bytes
}

func TestIgnoreMerges(t *testing.T) {
	f := newFixture("a b")
	f.vocab()["abc"] = 300 // no merge makes it
	if got := encode(t, f.load(t, bpe.Options{}), "abc", false); got != "256 99" {
		t.Errorf("without ignore_merges: %s", got)
	}
	f.setModel("ignore_merges", true)
	if got := encode(t, f.load(t, bpe.Options{}), "abc", false); got != "300" {
		t.Errorf("with ignore_merges: %s", got)
	}
}

func TestFamilies(t *testing.T) {
	f := newFixture("1 2", "12 3")
	f.set("pre_tokenizer", splitOf(llamaSplit))
	f.set("normalizer", nil)
	if got := encode(t, f.load(t, bpe.Options{}), "12345", false); got != "257 52 53" {
		t.Errorf("digits in threes: %s", got)
	}
	if got := encode(t, f.load(t, bpe.Options{}), "e\u0301", false); got != "101 204 129" {
		t.Errorf("without normalizer: %s", got)
	}
	// Both shapes of merges.
	f.setModel("merges", [][]string{{"1", "2"}, {"12", "3"}})
	if got := encode(t, f.load(t, bpe.Options{}), "123", false); got != "257" {
		t.Errorf("merges as pairs: %s", got)
	}
}

func TestAddedTokens(t *testing.T) {
	f := newFixture("a b")
	f.add(added(257, "<s>", false), added(258, "<s><s>", false), added(259, "\u00e9!", true), added(97, "a", false))
	tokenizer := f.load(t, bpe.Options{})
	check := func(text, want string) {
		t.Helper()
		if got := encode(t, tokenizer, text, false); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	check("<s>", "257")
	check("<s><s><s>", "258 257") // the longest first
	check("x<s>y", "120 257 121")
	check("<s", "60 115")
	check("e\u0301!", "259") // in normalized text
	check("ab", "97 98")     // an added token goes before merging
	if tokenizer.Size() != 260 {
		t.Errorf("size %d", tokenizer.Size())
	}
}

func TestSpecialTokens(t *testing.T) {
	f := newFixture("a b")
	f.add(added(257, "<s>", false))
	f.set("post_processor", map[string]any{"type": "Sequence", "processors": []any{
		map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true},
		map[string]any{
			"type": "TemplateProcessing", "pair": []any{},
			"single":         []any{map[string]any{"SpecialToken": map[string]any{"id": "<s>", "type_id": 0}}, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}},
			"special_tokens": map[string]any{"<s>": map[string]any{"id": "<s>", "ids": []int{257}, "tokens": []string{"<s>"}}},
		},
	}})
	tokenizer := f.load(t, bpe.Options{})
	if got := encode(t, tokenizer, "ab", true); got != "257 256" {
		t.Errorf("with special tokens: %s", got)
	}
	if got := encode(t, tokenizer, "ab", false); got != "256" {
		t.Errorf("without: %s", got)
	}
}

func TestRefusals(t *testing.T) {
	f := func(want string, change func(f fixture)) {
		t.Helper()
		file := newFixture("a b")
		change(file)
		_, err := bpe.New(file.text(t), bpe.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "tokenizer: "+want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	f(`model.type "Unigram" is not supported; supported: "BPE"`, func(f fixture) { f.setModel("type", "Unigram") })
	f(`model.dropout a number is not supported; supported: null`, func(f fixture) { f.setModel("dropout", 0.1) })
	f(`model.byte_fallback true is not supported`, func(f fixture) { f.setModel("byte_fallback", true) })
	f(`model.continuing_subword_prefix "##" is not supported`, func(f fixture) { f.setModel("continuing_subword_prefix", "##") })
	f(`model.new member is not supported`, func(f fixture) { f.setModel("new", 1) })
	f(`model.vocab without the character 'a' of byte 0x61`, func(f fixture) { delete(f.vocab(), "a") })
	f(`model.merges[0]: "a" and "q", or what they make`, func(f fixture) { f.setModel("merges", []string{"a q"}) })
	f(`model.merges[0]: is not a pair`, func(f fixture) { f.setModel("merges", []string{"a b c"}) })
	f(`id: -1 is not an integer`, func(f fixture) { f.vocab()["zz"] = -1 })
	f(`padding an object is not supported; supported: null`, func(f fixture) { f.set("padding", map[string]any{}) })
	f(`extra section is not supported`, func(f fixture) { f.set("extra", 1) })
	f(`normalizer {"type":"NFKC"} is not supported; supported: null, NFC`, func(f fixture) { f.set("normalizer", map[string]any{"type": "NFKC"}) })
	f(`pre_tokenizer `, func(f fixture) { f.set("pre_tokenizer", splitOf(`\p{N}`)) })
	f(`pre_tokenizer `, func(f fixture) { f.set("pre_tokenizer", nil) })
	f(`post_processor {"type":"BertProcessing"} is not supported`, func(f fixture) { f.set("post_processor", map[string]any{"type": "BertProcessing"}) })
	f(`added_tokens[0].lstrip true is not supported; supported: false`, func(f fixture) {
		a := added(257, "<s>", false)
		a["lstrip"] = true
		f.add(a)
	})
	f(`added_tokens[0] "<s>" with id 300 is not supported; supported: the id 257`, func(f fixture) { f.add(added(300, "<s>", false)) })
	f(`added_tokens[1]: "<s>" stands twice`, func(f fixture) { f.add(added(257, "<s>", false), added(257, "<s>", false)) })
	if _, err := bpe.New("{", bpe.Options{}); err == nil || err.Error() != "tokenizer: file: JSON at byte 1: want a string, found nothing" {
		t.Errorf("got %v", err)
	}
	if _, err := bpe.New("{}", bpe.Options{}); err == nil || err.Error() != "tokenizer: file: no model" {
		t.Errorf("got %v", err)
	}
}

func TestBounds(t *testing.T) {
	tokenizer := newFixture("a b").load(t, bpe.Options{MaxBytes: 1 << 20})
	if _, err := tokenizer.Encode(t.Context(), nil, strings.Repeat("a", 1<<20+1), false); !errors.Is(err, bpe.ErrTooLong) {
		t.Errorf("got %v", err)
	}
	if _, err := tokenizer.Encode(t.Context(), nil, "\xff", false); !errors.Is(err, bpe.ErrUTF8) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{strings.Repeat("ab ", 100_000), strings.Repeat("ab", 100_000)} { // between and inside of words
		if _, err := tokenizer.Encode(ctx, nil, text, false); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// randomFixture has many merges of few letters, so that ranks compete.
func randomFixture(r *rand.Rand) fixture {
	symbols := []string{"a", "b", "c", "Ġ"}
	var merges []string
	for range 60 {
		x, y := symbols[r.IntN(len(symbols))], symbols[r.IntN(len(symbols))]
		if len(x)+len(y) > 12 || slices.Contains(merges, x+" "+y) {
			continue
		}
		merges = append(merges, x+" "+y)
		symbols = append(symbols, x+y)
	}
	return newFixture(merges...)
}

func randomText(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abc"[r.IntN(3)]
	}
	return string(b)
}

// TestLongWords compares the heap with merging pair by pair, as it is defined.
func TestLongWords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		f := randomFixture(r)
		tokenizer := f.load(t, bpe.Options{})
		for _, n := range []int{2, 20, 63, 64, 65, 66, 300} {
			text := randomText(r, n)
			if got, want := encode(t, tokenizer, text, false), slowly(f, text); got != want {
				t.Fatalf("%s: got %s, want %s", text, got, want)
			}
		}
	}
}

// slowly encodes one word of ASCII letters by the definition of BPE.
func slowly(f fixture, word string) string {
	symbols := strings.Split(word, "")
	for {
		best, at := len(f.model()["merges"].([]string)), -1
		for i := range len(symbols) - 1 {
			if rank := slices.Index(f.model()["merges"].([]string), symbols[i]+" "+symbols[i+1]); rank >= 0 && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		symbols = slices.Replace(symbols, at, at+2, symbols[at]+symbols[at+1])
	}
	var ids []string
	for _, s := range symbols {
		ids = append(ids, fmt.Sprint(f.vocab()[s]))
	}
	return strings.Join(ids, " ")
}

// TestConcurrentUse has goroutines share a cache of two slots.
func TestConcurrentUse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	f := randomFixture(r)
	tokenizer := f.load(t, bpe.Options{CacheWords: 2})
	words := make([]string, 40)
	want := make([]string, len(words))
	for i := range words {
		words[i] = randomText(r, 3+r.IntN(20))
		want[i] = slowly(f, words[i])
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(g)))
			for range 2000 {
				i := r.IntN(len(words))
				ids, err := tokenizer.Encode(t.Context(), nil, words[i], false)
				if got := strings.Trim(fmt.Sprint(ids), "[]"); err != nil || got != want[i] {
					t.Errorf("%s: got %s, %v, want %s", words[i], got, err, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestAllocations(t *testing.T) {
	tokenizer := newFixture("a b", "ab c").load(t, bpe.Options{})
	text := strings.Repeat("abc xyz 123 it's, ", 200)
	buf := make([]uint32, 0, len(text))
	if n := testing.AllocsPerRun(100, func() {
		if _, err := tokenizer.Encode(t.Context(), buf[:0], text, true); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations for one text, want at most 1", n)
	}
}

// FuzzEncode checks that the ids spell the text, whatever it is.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"Hello, it's 1234 \n\n x", "e\u0301\u0323 한\u1100\u1161", "<s>ab<s", "日本語カタカナ゛\u3097", strings.Repeat("ab", 50), "\x00\u200b\u2028 \U0010ffff"} {
		f.Add(s)
	}
	var tokenizers []*bpe.Tokenizer
	spelling := make(map[uint32]string)
	for _, patterns := range [][]string{{qwenSplit}, {llamaSplit}} {
		file := newFixture("a b", "ab c", "Ġ a", "a a", "aa aa", "Ċ Ċ", "ã Ģ")
		file.set("pre_tokenizer", splitOf(patterns...))
		file.set("normalizer", nil)
		file.add(added(263, "<s>", false))
		for s, id := range file.vocab() {
			spelling[uint32(id)] = unmapped(s)
		}
		tokenizers = append(tokenizers, file.load(f, bpe.Options{CacheWords: 16}))
	}
	spelling[263] = "<s>"
	f.Fuzz(func(t *testing.T, text string) {
		for _, tokenizer := range tokenizers {
			ids, err := tokenizer.Encode(t.Context(), nil, text, false)
			if err != nil {
				continue
			}
			var b strings.Builder
			for _, id := range ids {
				b.WriteString(spelling[id])
			}
			if b.String() != text {
				t.Fatalf("%q became %q", text, b.String())
			}
		}
	})
}

// unmapped turns byte characters back into bytes.
func unmapped(s string) string {
	var b strings.Builder
	for _, r := range s {
		for c := range 256 {
			if byteChar(c) == string(r) {
				b.WriteByte(byte(c))
			}
		}
	}
	return b.String()
}

// FuzzNew looks for files that make loading panic.
func FuzzNew(f *testing.F) {
	f.Add(newFixture("a b").text(f))
	f.Add(`{"model":{"type":"BPE","vocab":{},"merges":[["a"]]},"added_tokens":[{"id":1}],"normalizer":{"type":"Sequence","normalizers":[null]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		tokenizer, err := bpe.New(text, bpe.Options{})
		if err == nil {
			_, _ = tokenizer.Encode(t.Context(), nil, "ab é 12\n", true)
		}
	})
}
