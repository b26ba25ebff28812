package bpe

import (
	"fmt"
	"slices"

	"shunt/runtime/tokens/ordered"
)

// node is a component of a file: a JSON value with its members in order.
type node struct {
	kind ordered.Kind // End where the file has no such member
	// text is a string's content, or a number's or boolean's spelling.
	text string
	keys []string // of an object
	list []node   // the values of an object or array
	raw  string   // as it is written
}

// readNode reads a component of any shape. A key that stands twice is refused: which
// of the two counts depends on the reader.
func readNode(r *ordered.Reader) (node, error) {
	var n node
	var err error
	if n.kind, err = r.Peek(); err != nil {
		return n, err
	}
	from := r.Offset()
	switch n.kind {
	case ordered.String:
		n.text, err = r.String()
	case ordered.Number:
		n.text, err = r.Number()
	case ordered.Array:
		err = r.Array(func(int) error { return n.add(r) })
	case ordered.Object:
		err = r.Object(func(key string) error {
			if slices.Contains(n.keys, key) {
				return &Invalid{key, "stands twice"}
			}
			n.keys = append(n.keys, key)
			return n.add(r)
		})
	default:
		err = r.Skip()
	}
	n.raw = r.Since(from)
	if n.kind == ordered.True || n.kind == ordered.False {
		n.text = n.raw
	}
	return n, err
}

// add reads one more value into a node.
func (n *node) add(r *ordered.Reader) error {
	v, err := readNode(r)
	n.list = append(n.list, v)
	return err
}

// get returns a member of an object, or the node of kind End.
func (n node) get(key string) node {
	if i := slices.Index(n.keys, key); i >= 0 {
		return n.list[i]
	}
	return node{}
}

// absent reports whether nothing or null stands there.
func (n node) absent() bool { return n.kind == ordered.End || n.kind == ordered.Null }

// typed reports whether a node is an object of the given type with no members
// beside those named.
func (n node) typed(kind string, members ...string) bool {
	for _, k := range n.keys {
		if k != "type" && !slices.Contains(members, k) {
			return false
		}
	}
	return n.kind == ordered.Object && n.get("type").text == kind
}

// found shortens a node for a message.
func (n node) found() string {
	const most = 160
	if len(n.raw) > most {
		return n.raw[:most] + "…"
	}
	return n.raw
}

var familyNames = [...]string{qwen: "Qwen", llama: "Llama 3", deepseek: "DeepSeek V3"}

// familyOf recognizes a pre-tokenizer: Split components with known patterns, and
// then ByteLevel.
func familyOf(n node) (family, error) {
	steps := n.get("pretokenizers").list
	if !n.typed("Sequence", "pretokenizers") || len(steps) < 2 || !plainByteLevel(steps[len(steps)-1]) {
		return 0, unsupportedSplit(n)
	}
	var patterns []string
	for _, s := range steps[:len(steps)-1] {
		p := s.get("pattern")
		if !s.typed("Split", "pattern", "behavior", "invert") || s.get("behavior").text != "Isolated" || s.get("invert").text != "false" || !p.typed("", "Regex") {
			return 0, unsupportedSplit(n)
		}
		patterns = append(patterns, p.get("Regex").text)
	}
	known := [...][]string{
		qwen:     {qwenPattern},
		llama:    {llamaPattern},
		deepseek: {deepseekDigits, deepseekCJK, deepseekMain},
	}
	for f := qwen; f <= deepseek; f++ {
		if slices.Equal(patterns, known[f]) {
			return f, nil
		}
	}
	return 0, unsupportedSplit(n)
}

// plainByteLevel takes a ByteLevel that only maps bytes to characters.
func plainByteLevel(n node) bool {
	return n.typed("ByteLevel", "add_prefix_space", "trim_offsets", "use_regex") &&
		n.get("add_prefix_space").text == "false" && n.get("use_regex").text == "false"
}

func unsupportedSplit(n node) error {
	return &Unsupported{"pre_tokenizer", n.found(), "a Sequence of the Split patterns of Qwen 2 and 3, Llama 3 or DeepSeek V3, and ByteLevel without prefix space or regex"}
}

// normalizerOf recognizes NFC and the ways of writing none.
func normalizerOf(n node) (*normalizer, error) {
	switch {
	case n.absent():
		return nil, nil
	case n.typed("NFC"):
		return newNormalizer(), nil
	case n.typed("Sequence", "normalizers"):
		switch list := n.get("normalizers").list; len(list) {
		case 0:
			return nil, nil
		case 1:
			return normalizerOf(list[0])
		}
	}
	return nil, &Unsupported{"normalizer", n.found(), "null, NFC, or a Sequence of at most one of them"}
}

// aroundOf returns the special tokens that a post-processor puts before and
// after a text.
func aroundOf(n node) (prefix, suffix []uint32, err error) {
	switch {
	case n.absent(), n.typed("ByteLevel", "add_prefix_space", "trim_offsets", "use_regex"):
		return nil, nil, nil // ByteLevel concerns offsets, which nobody asks for
	case n.typed("Sequence", "processors"):
		for _, p := range n.get("processors").list {
			before, after, err := aroundOf(p)
			if err != nil {
				return nil, nil, err
			}
			prefix, suffix = append(before, prefix...), append(suffix, after...)
		}
		return prefix, suffix, nil
	case n.typed("TemplateProcessing", "single", "pair", "special_tokens"):
		return templateOf(n)
	}
	return nil, nil, &Unsupported{"post_processor", n.found(), "null, ByteLevel, TemplateProcessing, or a Sequence of them"}
}

// templateOf reads the template for a single text: special tokens around it.
func templateOf(n node) (prefix, suffix []uint32, err error) {
	texts := 0
	for _, part := range n.get("single").list {
		if part.typed("", "Sequence") {
			texts++
			continue
		}
		ids, err := specialIDs(n, part)
		if err != nil {
			return nil, nil, err
		}
		if texts == 0 {
			prefix = append(prefix, ids...)
		} else {
			suffix = append(suffix, ids...)
		}
	}
	if texts != 1 {
		return nil, nil, &Unsupported{"post_processor.single", n.get("single").found(), "one Sequence with special tokens around it"}
	}
	return prefix, suffix, nil
}

// specialIDs returns the ids of a special token in a template.
func specialIDs(n, part node) ([]uint32, error) {
	name := part.get("SpecialToken").get("id").text
	special := n.get("special_tokens").get(name)
	if !part.typed("", "SpecialToken") || special.kind != ordered.Object {
		return nil, &Invalid{"post_processor.single", fmt.Sprintf("no special token %s", part.found())}
	}
	var ids []uint32
	for _, v := range special.get("ids").list {
		id, err := readID(ordered.NewReader(v.raw))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
