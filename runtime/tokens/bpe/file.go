package bpe

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"shunt/runtime/tokens/ordered"
)

// Unsupported says that a file asks for something that is not implemented.
type Unsupported struct {
	// Component is the path of the component in the file, such as
	// "pre_tokenizer".
	Component string
	// Found is what the file has there, shortened.
	Found string
	// Supported lists what could stand there.
	Supported string
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("tokenizer: %s %s is not supported; supported: %s", e.Component, e.Found, e.Supported)
}

// Invalid says that a file contradicts itself or is no tokenizer.json.
type Invalid struct {
	Component string
	Text      string
}

func (e *Invalid) Error() string { return fmt.Sprintf("tokenizer: %s: %s", e.Component, e.Text) }

// file is a tokenizer.json, as far as it bears on encoding.
type file struct {
	added      []addedToken
	normalizer node
	pre        node
	post       node
	model      model
	seen       map[string]bool
}

type addedToken struct {
	id         uint32
	content    string
	normalized bool
}

// model is the BPE section.
type model struct {
	vocab        map[string]uint32
	merges       [][2]string
	ignoreMerges bool
	kind         string
}

// parse reads a file and refuses what has no equal here.
func parse(text string) (*file, error) {
	if !utf8.ValidString(text) {
		return nil, &Invalid{"file", "not valid UTF-8"}
	}
	f := &file{seen: make(map[string]bool)}
	r := ordered.NewReader(text)
	err := r.Object(func(key string) error {
		if f.seen[key] {
			return &Invalid{key, "stands twice"}
		}
		f.seen[key] = true
		return f.member(r, key)
	})
	if err == nil {
		err = r.Done()
	}
	if err == nil && !f.seen["model"] {
		err = &Invalid{"file", "no model"}
	}
	if e, ok := errors.AsType[*ordered.Error](err); ok {
		return nil, &Invalid{"file", e.Error()}
	}
	return f, err
}

// member reads one section. A section that is unknown might change the ids, so it is
// refused.
func (f *file) member(r *ordered.Reader, key string) (err error) {
	switch key {
	case "version", "decoder": // of no effect on encoding
		return r.Skip()
	case "truncation", "padding":
		return wantNull(r, key)
	case "added_tokens":
		return r.Array(func(i int) error { return f.addedToken(r, i) })
	case "normalizer":
		f.normalizer, err = readNode(r)
	case "pre_tokenizer":
		f.pre, err = readNode(r)
	case "post_processor":
		f.post, err = readNode(r)
	case "model":
		return f.model.read(r)
	default:
		return &Unsupported{key, "section", "version, truncation, padding, added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model"}
	}
	return err
}

// wantNull refuses everything but null.
func wantNull(r *ordered.Reader, component string) error {
	k, err := r.Peek()
	if err == nil && k != ordered.Null {
		err = &Unsupported{component, k.String(), "null"}
	}
	if err != nil {
		return err
	}
	return r.Null()
}

// maxAdded bounds the length of an added token, in bytes.
const maxAdded = 1024

// addedToken reads one added token. A token without the member normalized is
// normalized, as the library has it.
func (f *file) addedToken(r *ordered.Reader, i int) error {
	component := fmt.Sprintf("added_tokens[%d]", i)
	t := addedToken{normalized: true}
	hasID := false
	err := r.Object(func(key string) (err error) {
		switch key {
		case "id":
			hasID = true
			t.id, err = readID(r)
		case "content":
			t.content, err = r.String()
		case "normalized":
			t.normalized, err = r.Bool()
		case "special": // changes only how ids become text
			_, err = r.Bool()
		case "single_word", "lstrip", "rstrip":
			var on bool
			if on, err = r.Bool(); on {
				err = &Unsupported{component + "." + key, "true", "false"}
			}
		default:
			err = &Unsupported{component, fmt.Sprintf("member %q", key), "id, content, single_word, lstrip, rstrip, normalized, special"}
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !hasID || t.content == "":
		return &Invalid{component, "has no id or no content"}
	case len(t.content) > maxAdded:
		return &Unsupported{component, fmt.Sprintf("of %d bytes", len(t.content)), fmt.Sprintf("up to %d bytes", maxAdded)}
	}
	f.added = append(f.added, t)
	return nil
}

// maxID bounds ids, and with them the memory that a file can claim.
const maxID = 1<<24 - 1

// readID reads a number that can be an id.
func readID(r *ordered.Reader) (uint32, error) {
	s, err := r.Number()
	if err != nil {
		return 0, err
	}
	var v uint32
	for _, c := range []byte(s) {
		if c < '0' || c > '9' || v > maxID {
			return 0, &Invalid{"id", fmt.Sprintf("%s is not an integer from 0 to %d", s, maxID)}
		}
		v = v*10 + uint32(c-'0')
	}
	if v > maxID {
		return 0, &Invalid{"id", fmt.Sprintf("%s is not an integer from 0 to %d", s, maxID)}
	}
	return v, nil
}

// read reads the model, which must be BPE and have a vocabulary.
func (m *model) read(r *ordered.Reader) error {
	seen := make(map[string]bool)
	err := r.Object(func(key string) error {
		if seen[key] {
			return &Invalid{"model." + key, "stands twice"}
		}
		seen[key] = true
		return m.member(r, key)
	})
	switch {
	case err != nil:
		return err
	case m.kind != "BPE":
		return &Unsupported{"model.type", fmt.Sprintf("%q", m.kind), `"BPE"`}
	case m.vocab == nil:
		return &Invalid{"model.vocab", "is missing"}
	}
	return nil
}

// member reads one member of the model, and refuses those that would change the ids.
func (m *model) member(r *ordered.Reader, key string) (err error) {
	component := "model." + key
	switch key {
	case "type":
		m.kind, err = r.String()
	case "dropout":
		err = wantNull(r, component)
	case "unk_token", "fuse_unk": // never needed: every byte has an id
		err = r.Skip()
	case "continuing_subword_prefix", "end_of_word_suffix":
		err = wantEmpty(r, component)
	case "byte_fallback":
		var on bool
		if on, err = r.Bool(); on {
			err = &Unsupported{component, "true", "false"}
		}
	case "ignore_merges":
		m.ignoreMerges, err = r.Bool()
	case "vocab":
		m.vocab = make(map[string]uint32, 1<<17)
		err = r.Object(func(token string) error {
			if _, ok := m.vocab[token]; ok {
				return &Invalid{component, fmt.Sprintf("%q stands twice", token)}
			}
			id, err := readID(r)
			m.vocab[token] = id
			return err
		})
	case "merges":
		err = r.Array(func(i int) error { return m.merge(r, i) })
	default:
		err = &Unsupported{component, "member", "type, dropout, unk_token, continuing_subword_prefix, end_of_word_suffix, fuse_unk, byte_fallback, ignore_merges, vocab, merges"}
	}
	return err
}

// wantEmpty takes null and "".
func wantEmpty(r *ordered.Reader, component string) error {
	k, err := r.Peek()
	if err != nil || k == ordered.Null {
		return errors.Join(err, r.Skip())
	}
	s, err := r.String()
	if err == nil && s != "" {
		err = &Unsupported{component, fmt.Sprintf("%q", s), "null"}
	}
	return err
}

// merge reads one merge in either of its two shapes: "a b" or ["a", "b"].
func (m *model) merge(r *ordered.Reader, i int) error {
	var pair [2]string
	k, err := r.Peek()
	if err != nil {
		return err
	}
	n := 0
	if k == ordered.String {
		var s string
		if s, err = r.String(); err == nil {
			pair, n = cutMerge(s)
		}
	} else {
		err = r.Array(func(j int) (err error) {
			s, err := r.String()
			if j < 2 {
				pair[j] = s
			}
			n++
			return err
		})
	}
	if err == nil && n != 2 {
		err = &Invalid{fmt.Sprintf("model.merges[%d]", i), "is not a pair of symbols"}
	}
	m.merges = append(m.merges, pair)
	return err
}

// cutMerge splits at spaces and counts the parts.
func cutMerge(s string) (pair [2]string, n int) {
	from := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != ' ' {
			continue
		}
		if n < 2 {
			pair[n] = s[from:i]
		}
		n++
		from = i + 1
	}
	return pair, n
}
