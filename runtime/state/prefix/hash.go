package prefix

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// Scheme is how an engine hashes the blocks of a prompt.
type Scheme uint8

// The schemes. The zero Scheme is none of them.
const (
	// SGLang chains SHA-256 over little-endian tokens; a block's hash is the first
	// eight bytes of its digest.
	SGLang Scheme = iota + 1
	// VLLM is vLLM's sha256_cbor with a known seed; a block's hash is the last
	// eight bytes of its digest.
	VLLM
)

func (s Scheme) String() string {
	switch s {
	case SGLang:
		return "sglang"
	case VLLM:
		return "vllm"
	}
	return "none"
}

// DefaultVLLMSeed is what vLLM hashes for the parent of first blocks when
// PYTHONHASHSEED is not set.
const DefaultVLLMSeed = "vllm-none-hash"

// Hashing says how the prompts of one index namespace are cut and hashed. All
// engines of a namespace must agree on it.
type Hashing struct {
	Scheme Scheme
	// BlockSize is the number of tokens in a block, above zero.
	BlockSize int
	// Bigram hashes pairs of neighbouring tokens, as SGLang does under
	// speculative decoding of the EAGLE family.
	Bigram bool
	// Seed is vLLM's seed text; empty is DefaultVLLMSeed.
	Seed string
}

// Bigram reports whether SGLang hashes pairs under a speculative algorithm.
// unsure says that the name resembles one that does, but is not known.
func Bigram(algorithm string) (bigram, unsure bool) {
	a := strings.ToUpper(algorithm)
	switch a {
	case "EAGLE", "EAGLE3", "FROZEN_KV_MTP":
		return true, false
	}
	return false, strings.Contains(a, "EAGLE") || strings.Contains(a, "MTP")
}

// Check reports why the hashing cannot be used.
func (h Hashing) Check() error {
	switch {
	case h.Scheme != SGLang && h.Scheme != VLLM:
		return fmt.Errorf("prefix hashing: no scheme")
	case h.BlockSize <= 0:
		return fmt.Errorf("prefix hashing: a block of %d tokens", h.BlockSize)
	case h.Bigram && h.Scheme != SGLang:
		return fmt.Errorf("prefix hashing: %s has no bigram mode", h.Scheme)
	}
	return nil
}

// Prompt is what is hashed.
type Prompt struct {
	Tokens []uint32
	// Salt is the request's cache_salt and LoRA the name of its adapter; both are
	// usually empty, and each makes a chain of its own.
	Salt, LoRA string
}

// Blocks is the number of blocks in a prompt of n tokens. SGLang hashes a short
// last block, which matches nothing but counts; vLLM leaves it out.
func (h Hashing) Blocks(n int) int {
	if h.Bigram {
		n--
	}
	if n <= 0 {
		return 0
	}
	if h.Scheme == VLLM {
		return n / h.BlockSize
	}
	return (n + h.BlockSize - 1) / h.BlockSize
}

// Supports reports whether the chain of a prompt can be computed here. vLLM's
// salted and adapted chains cannot, so such prompts have no cache signal.
func (h Hashing) Supports(p Prompt) bool {
	return h.Scheme == SGLang || p.Salt == "" && p.LoRA == ""
}

// Append appends the hashes of all blocks of a prompt to dst.
func (h Hashing) Append(dst []int64, p Prompt) []int64 {
	c := h.Chain(p)
	return c.Append(dst, c.Len())
}

// Chain hashes a prompt block by block, so that a lookup which stops early pays
// only for what it asked. The tokens must not change meanwhile. A Chain belongs
// to one goroutine.
type Chain struct {
	hashing Hashing
	tokens  []uint32
	blocks  int
	next    int
	// buf is the input of the next digest: parent digest, if any, then tokens.
	buf    []byte
	parent [sha256.Size]byte
	rooted bool // parent holds a digest or a seed
	lora   [sha256.Size]byte
	mixed  bool
	// digests, if not nil, remembers stretches by the key of all tokens so far.
	digests *Digests
	key     digestKey
}

// Chain prepares the hashes of a prompt. The prompt must be supported and the
// hashing checked.
func (h Hashing) Chain(p Prompt) *Chain {
	c := &Chain{hashing: h, tokens: p.Tokens, blocks: h.Blocks(len(p.Tokens))}
	width := 4
	switch {
	case h.Bigram:
		width = 8
	case h.Scheme == VLLM:
		width = 5 // a token takes five bytes of CBOR at most
	}
	c.buf = make([]byte, 0, 64+width*min(h.BlockSize, len(p.Tokens)))
	if h.Scheme == VLLM {
		c.parent, c.rooted = vllmRoot(h.Seed), true
		return c
	}
	if p.Salt != "" {
		c.parent, c.rooted = sha256.Sum256([]byte("sglang-cache-salt-v1\x00"+p.Salt)), true
	}
	if p.LoRA != "" {
		c.lora, c.mixed = sha256.Sum256([]byte("sglang-kv-event-lora-v1\x00"+p.LoRA)), true
	}
	return c
}

// Len is the number of blocks of the whole prompt.
func (c *Chain) Len() int { return c.blocks }

// Append appends the hashes of the next n blocks, or of those that are left.
func (c *Chain) Append(dst []int64, n int) []int64 {
	n = min(n, c.blocks-c.next)
	for n > 0 {
		if c.stretches(n) {
			dst = c.stretch(dst)
			n -= stretchBlocks
			continue
		}
		dst = append(dst, c.step())
		n--
	}
	return dst
}

func (c *Chain) step() int64 {
	size := c.hashing.BlockSize
	from := c.next * size
	c.next++
	if c.hashing.Scheme == VLLM {
		c.parent = sha256.Sum256(c.vllmInput(c.tokens[from : from+size]))
		return int64(binary.BigEndian.Uint64(c.parent[sha256.Size-8:]))
	}
	b := c.buf[:0]
	if c.rooted {
		b = append(b, c.parent[:]...)
	}
	if c.hashing.Bigram {
		to := min(from+size, len(c.tokens)-1)
		for i := from; i < to; i++ {
			b = binary.LittleEndian.AppendUint32(b, c.tokens[i])
			b = binary.LittleEndian.AppendUint32(b, c.tokens[i+1])
		}
	} else {
		b = appendTokens(b, c.tokens[from:min(from+size, len(c.tokens))])
	}
	c.buf, c.parent, c.rooted = b, sha256.Sum256(b), true
	h := int64(binary.BigEndian.Uint64(c.parent[:8]))
	if c.mixed {
		return c.mix(h)
	}
	return h
}

// appendTokens is the innermost loop of every lookup.
func appendTokens(b []byte, tokens []uint32) []byte {
	at := len(b)
	if cap(b)-at < 4*len(tokens) {
		b = append(b, make([]byte, 4*len(tokens))...)
	}
	b = b[:at+4*len(tokens)]
	out := b[at:]
	for _, t := range tokens {
		binary.LittleEndian.PutUint32(out, t)
		out = out[4:]
	}
	return b
}

// mix moves a block's hash into the namespace of an adapter.
func (c *Chain) mix(h int64) int64 {
	var in [sha256.Size + 8]byte
	copy(in[:], c.lora[:])
	binary.BigEndian.PutUint64(in[sha256.Size:], uint64(h))
	sum := sha256.Sum256(in[:])
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// vllmRoot hashes the seed text as CBOR, which is the parent of first blocks.
func vllmRoot(seed string) [sha256.Size]byte {
	if seed == "" {
		seed = DefaultVLLMSeed
	}
	return sha256.Sum256(append(cborHead(nil, 3, uint64(len(seed))), seed...))
}

// vllmInput is the canonical CBOR of (parent digest, tokens, null).
func (c *Chain) vllmInput(tokens []uint32) []byte {
	b := append(c.buf[:0], 0x83, 0x58, sha256.Size)
	b = append(b, c.parent[:]...)
	b = cborHead(b, 4, uint64(len(tokens)))
	for _, t := range tokens {
		b = cborHead(b, 0, uint64(t))
	}
	c.buf = append(b, 0xf6)
	return c.buf
}

// cborHead appends the head of a CBOR item in its shortest form.
func cborHead(b []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}
