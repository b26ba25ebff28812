package bpe

import (
	"cmp"
	"fmt"
	"hash/maphash"
)

// New reads a tokenizer.json. The error is an *Unsupported or an *Invalid.
func New(text string, o Options) (*Tokenizer, error) {
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		ignoreMerges: f.model.ignoreMerges,
		seed:         maphash.MakeSeed(),
		maxBytes:     cmp.Or(o.MaxBytes, defaultMaxBytes),
		cache:        newCache(cmp.Or(o.CacheWords, defaultCacheWords)),
	}
	if t.family, err = familyOf(f.pre); err != nil {
		return nil, err
	}
	if t.normalizer, err = normalizerOf(f.normalizer); err != nil {
		return nil, err
	}
	if t.prefix, t.suffix, err = aroundOf(f.post); err != nil {
		return nil, err
	}
	letters := alphabet()
	for b, r := range letters {
		id, ok := f.model.vocab[string(r)]
		if !ok {
			return nil, &Unsupported{"model.vocab", fmt.Sprintf("without the character %q of byte 0x%02x", r, b), "a vocabulary with all 256 byte characters"}
		}
		t.bytes[b] = id
	}
	if err := t.addMerges(&f.model); err != nil {
		return nil, err
	}
	if err := t.addTokens(f); err != nil {
		return nil, err
	}
	t.addWords(&f.model, letters)
	return t, nil
}

// alphabet returns the character that stands for each byte in a byte-level
// vocabulary: itself if it is printable, otherwise one from U+0100 on.
func alphabet() [256]rune {
	var letters [256]rune
	next := rune(0x100)
	for b := range rune(256) {
		switch {
		case '!' <= b && b <= '~', 0xA1 <= b && b <= 0xAC, 0xAE <= b && b <= 0xFF:
			letters[b] = b
		default:
			letters[b] = next
			next++
		}
	}
	return letters
}

// addMerges numbers the merges by rank. What a merge makes must be in the vocabulary,
// as the library demands.
func (t *Tokenizer) addMerges(m *model) error {
	t.pairs = newPairTable(len(m.merges))
	t.merged = make([]uint32, len(m.merges))
	var whole []byte
	for rank, pair := range m.merges {
		left, okLeft := m.vocab[pair[0]]
		right, okRight := m.vocab[pair[1]]
		whole = append(append(whole[:0], pair[0]...), pair[1]...)
		id, ok := m.vocab[string(whole)]
		if !okLeft || !okRight || !ok {
			return &Invalid{fmt.Sprintf("model.merges[%d]", rank), fmt.Sprintf("%q and %q, or what they make, are not in the vocabulary", pair[0], pair[1])}
		}
		t.pairs.put(left, right, uint32(rank))
		t.merged[rank] = id
	}
	return nil
}

// addTokens enters the added tokens. The library ignores the ids in the file: a
// token has the id of the vocabulary, or else the next free one. A file that says
// otherwise is refused, since nobody could tell which of the two is meant.
func (t *Tokenizer) addTokens(f *file) error {
	t.raw, t.normalized = newMatcher(), newMatcher()
	for _, id := range f.model.vocab {
		t.size = max(t.size, int(id)+1)
	}
	size := uint32(len(f.model.vocab))
	next := size
	seen := make(map[string]bool, len(f.added))
	for i, a := range f.added {
		if seen[a.content] {
			return &Invalid{fmt.Sprintf("added_tokens[%d]", i), fmt.Sprintf("%q stands twice", a.content)}
		}
		seen[a.content] = true
		id, ok := f.model.vocab[a.content]
		if !ok {
			id = next
		}
		if id != a.id {
			return &Unsupported{fmt.Sprintf("added_tokens[%d]", i), fmt.Sprintf("%q with id %d", a.content, a.id), fmt.Sprintf("the id %d that the library would give it", id)}
		}
		if id >= next {
			next = id + 1
		}
		t.size = max(t.size, int(id)+1)
		t.addToken(a)
	}
	return nil
}

// addToken enters a token where it is looked for: in the text as it is, or in the
// normalized text, in normalized form.
func (t *Tokenizer) addToken(a addedToken) {
	if !a.normalized {
		t.raw.add(a.content, a.id)
		return
	}
	if t.normalizer != nil {
		a.content, _ = t.normalizer.nfc(a.content, nil)
	}
	t.normalized.add(a.content, a.id)
}

// addWords enters the words that encode to one id, so that they need no merging:
// with ignore_merges the whole vocabulary, and without it those words that
// merging really arrives at.
func (t *Tokenizer) addWords(m *model, letters [256]rune) {
	byteOf := make(map[rune]byte, len(letters))
	for b, r := range letters {
		byteOf[r] = byte(b)
	}
	t.words = newWordTable(len(m.vocab))
	var word []byte
	var ids []uint32
next:
	for token, id := range m.vocab {
		word = word[:0]
		for _, r := range token {
			b, ok := byteOf[r]
			if !ok {
				continue next // not spelt in bytes: only an added token can be this
			}
			word = append(word, b)
		}
		if len(word) == 0 {
			continue
		}
		if !t.ignoreMerges {
			if len(word) > shortWord {
				continue
			}
			if ids = t.mergeShort(ids[:0], string(word)); len(ids) != 1 || ids[0] != id {
				continue
			}
		}
		t.words.put(hashOf(t.seed, string(word)), string(word), id)
	}
}
