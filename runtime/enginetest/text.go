package enginetest

import "math/rand/v2"

// words is the whole vocabulary: one word is one token.
func words() [64]string {
	return [64]string{
		"a", "about", "after", "again", "all", "and", "answer", "at", "before", "between", "both", "bridge",
		"by", "calm", "clear", "day", "each", "early", "every", "far", "field", "first", "for", "from",
		"garden", "good", "green", "half", "harbour", "here", "high", "house", "in", "is", "keeps", "late",
		"light", "long", "many", "map", "more", "morning", "near", "not", "of", "often", "on", "one",
		"open", "over", "quiet", "rain", "river", "road", "small", "some", "stone", "the", "then", "to",
		"tree", "under", "water", "with",
	}
}

// text generates the tokens of one choice. Its output depends on the engine's
// seed, the prompt and the number of the choice only.
type text struct {
	rng   *rand.Rand
	words [64]string
	first bool
	// natural is the number of tokens after which the answer ends by itself.
	natural int
}

func newText(seed, promptHash uint64, choice, natural int) *text {
	t := &text{
		rng:   rand.New(rand.NewPCG(seed, promptHash+uint64(choice))),
		words: words(), first: true, natural: natural,
	}
	if n := 8 + t.rng.IntN(32); t.natural == 0 {
		t.natural = n
	}
	return t
}

// next returns the next token, with the space that separates it.
func (t *text) next() string {
	w := t.words[t.rng.IntN(len(t.words))]
	if t.first {
		t.first = false
		return w
	}
	return " " + w
}
