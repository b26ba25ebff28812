package bpe

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"unicode/utf8"
)

// Options are the bounds of a tokenizer.
type Options struct {
	// MaxBytes is the longest text that is encoded, in bytes; 0 stands for
	// 8 MiB. Working memory is about 40 bytes for each byte of the longest word.
	MaxBytes int
	// CacheWords is the number of words whose ids are remembered, at 64 bytes
	// each, rounded up to a power of two; 0 stands for 16,384 and a negative
	// number for none.
	CacheWords int
}

const (
	defaultMaxBytes   = 8 << 20
	defaultCacheWords = 16 << 10
)

var (
	// ErrTooLong is a text longer than Options.MaxBytes.
	ErrTooLong = errors.New("text is too long to be tokenized")
	// ErrUTF8 is a text that is not UTF-8, which has no ids.
	ErrUTF8 = errors.New("text is not valid UTF-8")
)

// Tokenizer encodes text as one tokenizer.json says.
type Tokenizer struct {
	family       family
	normalizer   *normalizer // nil: text stays as it is
	raw          *matcher    // added tokens found before normalization
	normalized   *matcher    // and after it
	prefix       []uint32    // special tokens before and after a text
	suffix       []uint32
	ignoreMerges bool

	bytes  [256]uint32
	pairs  pairTable
	merged []uint32 // by rank
	words  wordTable
	size   int

	seed     maphash.Seed
	cache    cache
	chains   sync.Pool // of *chain
	maxBytes int
}

// Size is the number of ids: one more than the highest.
func (t *Tokenizer) Size() int { return t.size }

// Family names the pre-tokenizer, for logs.
func (t *Tokenizer) Family() string { return familyNames[t.family] }

// Encode appends the ids of a text to dst. Added tokens are recognized wherever
// they stand. The special tokens that the file puts around a text are added only
// if special is set; a chat template writes them itself. It stops with the
// context's error when the context ends. On an error the ids are incomplete.
//
// It allocates nothing if dst is large enough and no word is longer than 64
// bytes, except one string for each stretch between added tokens that
// normalization changes.
func (t *Tokenizer) Encode(ctx context.Context, dst []uint32, text string, special bool) ([]uint32, error) {
	if len(text) > t.maxBytes {
		return dst, fmt.Errorf("%w: %d bytes, %d at most", ErrTooLong, len(text), t.maxBytes)
	}
	if !utf8.ValidString(text) {
		return dst, ErrUTF8
	}
	const bytesPerID = 4 // English; other text grows the slice once or twice
	dst = slices.Grow(dst, len(text)/bytesPerID+len(t.prefix)+len(t.suffix)+1)
	if special {
		dst = append(dst, t.prefix...)
	}
	e := encoder{t: t, ctx: ctx, ids: dst}
	if err := e.segments(t.raw, text); err != nil {
		return e.ids, err
	}
	if special {
		e.ids = append(e.ids, t.suffix...)
	}
	return e.ids, nil
}

// encoder is one call of Encode.
type encoder struct {
	t   *Tokenizer
	ctx context.Context
	ids []uint32
	// since counts bytes since the context was asked.
	since  int
	pieces []piece // working memory of normalization
}

// segments encodes the added tokens of text, and everything between them. Those
// found in the text as it is come first; the second round is after normalization.
func (e *encoder) segments(m *matcher, text string) error {
	from := 0
	for !m.empty() {
		start, end, id, ok := m.find(text, from)
		if !ok {
			break
		}
		if err := e.between(m, text[from:start]); err != nil {
			return err
		}
		e.ids = append(e.ids, id)
		from = end
	}
	return e.between(m, text[from:])
}

// between encodes text in which m found nothing.
func (e *encoder) between(m *matcher, text string) error {
	if m == e.t.normalized {
		return e.split(text)
	}
	if e.t.normalizer != nil {
		text, e.pieces = e.t.normalizer.nfc(text, e.pieces)
	}
	return e.segments(e.t.normalized, text)
}

// cancelBytes is how much text goes by between two looks at the context.
const cancelBytes = 32 << 10

// split encodes the words of a stretch in which there is no added token.
func (e *encoder) split(text string) error {
	s := splitter{text: text, family: e.t.family}
	for {
		word, ok := s.next()
		if !ok {
			return nil
		}
		if e.since += len(word); e.since >= cancelBytes {
			e.since = 0
			if err := e.ctx.Err(); err != nil {
				return err
			}
		}
		if err := e.word(word); err != nil {
			return err
		}
	}
}

// word encodes one word.
func (e *encoder) word(word string) error {
	t := e.t
	if len(word) > max(t.words.longest, cachedBytes) {
		return e.merge(word)
	}
	hash := hashOf(t.seed, word)
	if id, ok := t.words.get(hash, word); ok {
		e.ids = append(e.ids, id)
		return nil
	}
	if len(word) > cachedBytes {
		return e.merge(word)
	}
	var ok bool
	if e.ids, ok = t.cache.get(hash, word, e.ids); ok {
		return nil
	}
	from := len(e.ids)
	e.ids = t.mergeShort(e.ids, word)
	t.cache.put(hash, word, e.ids[from:])
	return nil
}

// merge encodes a word that is too long for the tables.
func (e *encoder) merge(word string) (err error) {
	if len(word) <= shortWord {
		e.ids = e.t.mergeShort(e.ids, word)
		return nil
	}
	e.ids, err = e.t.mergeLong(e.ctx, e.ids, word)
	return err
}
