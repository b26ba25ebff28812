package plan

import (
	"fmt"
	"strings"
)

// engineKind checks what the engines of a model run: a section is there only for
// vLLM, which has no pairs and takes no ids, and its hashing exactly where a
// policy looks up prefixes.
func (v *validator) engineKind(at string, m *Model) {
	k := m.Engine
	if k == nil {
		return
	}
	v.word(at+"/type", string(k.Type), string(VLLM))
	v.needed(at+"/hashing", len(m.Requires.PrefixSource) > 0, k.Hashing != nil)
	if h := k.Hashing; h != nil {
		v.word(at+"/hashing/algorithm", string(h.Algorithm), string(SHA256CBOR))
		v.span(at+"/hashing/block_size", h.BlockSize, 1, MaxBlockSize)
		if h.Seed == "" || !Printable(h.Seed) {
			v.bad(at+"/hashing/seed", fmt.Sprintf("%q is empty or does not print", h.Seed), "")
		}
	}
	for _, e := range m.Engines() {
		if e.Role != Plain {
			v.bad(at+"/type", fmt.Sprintf("engine %q is a %s engine, and vLLM engines do not pair here", e.ID, e.Role), "")
		}
	}
	if m.Tokenizer != nil && m.Tokenizer.ForwardInputIDs {
		v.bad(at+"/type", "ids are forwarded, which vLLM does not take", "")
	}
}

func (v *validator) kvEvents(at string, m *Model, e *KVEvents) {
	v.needed(at, m.Engine != nil && m.Engine.Hashing != nil, true)
	if !IsHost(e.Host) && e.Host != "" {
		v.bad(at+"/host", fmt.Sprintf("%q is no host", e.Host), "")
	}
	v.span(at+"/ranks", e.Ranks, 1, MaxRanks)
	v.span(at+"/port", e.Port, 1, MaxPort+1-e.Ranks)
	v.optional(at, "/replay_port", e.ReplayPort, 1, MaxPort+1-e.Ranks)
	if !Printable(e.Topic) {
		v.bad(at+"/topic", fmt.Sprintf("%q holds characters that do not print", e.Topic), "")
	}
}

// IsHost reports whether s has only characters of host names and IP addresses.
func IsHost(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:%-", c) >= 0) {
			return false
		}
	}
	return s != "" && len(s) <= 255
}
