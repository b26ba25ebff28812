package enginetest

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
)

// prompt is what decides which blocks a request shares with others.
type prompt struct {
	tokens     []uint32
	salt, lora string
}

// sglangChain returns the hashes of the full blocks of a prompt, as SGLang publishes
// them: each block's digest covers the digest before it and the tokens.
func sglangChain(p prompt, size int) []int64 {
	var digest []byte
	if p.salt != "" {
		d := sha256.Sum256(append([]byte("sglang-cache-salt-v1\x00"), p.salt...))
		digest = d[:]
	}
	hashes := make([]int64, 0, len(p.tokens)/size)
	for i := 0; i+size <= len(p.tokens); i += size {
		h := sha256.New()
		h.Write(digest)
		for _, t := range p.tokens[i : i+size] {
			h.Write(binary.LittleEndian.AppendUint32(nil, t))
		}
		digest = h.Sum(nil)
		hashes = append(hashes, int64(binary.BigEndian.Uint64(digest)))
	}
	if p.lora == "" {
		return hashes
	}
	seed := sha256.Sum256(append([]byte("sglang-kv-event-lora-v1\x00"), p.lora...))
	for i, h := range hashes {
		d := sha256.Sum256(binary.BigEndian.AppendUint64(seed[:], uint64(h)))
		hashes[i] = int64(binary.BigEndian.Uint64(d[:]))
	}
	return hashes
}

// block is one cached block.
type block struct {
	hash, parent int64
	root         bool // without a parent
	children     int
	place        *list.Element
}

// cache is the prefix cache of one rank: a forest of blocks, of which the leaf
// that was not used for longest goes first. It belongs to its engine's lock.
type cache struct {
	size   int // tokens in a block
	limit  int // blocks
	blocks map[int64]*block
	// order has the block used last in front. A use moves a chain from its end to
	// its beginning, so the last one is always a leaf.
	order *list.List
}

func newCache(size, limit int) *cache {
	return &cache{size: size, limit: max(limit, 1), blocks: map[int64]*block{}, order: list.New()}
}

// match returns how many leading blocks are cached.
func (c *cache) match(hashes []int64) int {
	for i, h := range hashes {
		if c.blocks[h] == nil {
			return i
		}
	}
	return len(hashes)
}

// insert caches a prompt's blocks as far as they fit, and returns which are new
// and which had to go.
func (c *cache) insert(hashes []int64) (from int, stored, removed []int64) {
	hashes = hashes[:min(len(hashes), c.limit)]
	from = c.match(hashes)
	for i := from; i < len(hashes); i++ {
		b := &block{hash: hashes[i], root: i == 0}
		if i > 0 {
			b.parent = hashes[i-1]
			c.blocks[b.parent].children++
		}
		b.place = c.order.PushFront(b)
		c.blocks[b.hash] = b
	}
	for i := len(hashes) - 1; i >= 0; i-- {
		c.order.MoveToFront(c.blocks[hashes[i]].place)
	}
	for len(c.blocks) > c.limit {
		removed = append(removed, c.evict())
	}
	return from, hashes[from:], removed
}

// evict removes the block that was not used for longest.
func (c *cache) evict() int64 {
	b := c.order.Remove(c.order.Back()).(*block)
	delete(c.blocks, b.hash)
	if !b.root {
		c.blocks[b.parent].children--
	}
	return b.hash
}

// textTokens stands for a tokenizer: four bytes of text are one token.
func textTokens(text string) []uint32 {
	ids := make([]uint32, 0, (len(text)+3)/4)
	for i := 0; i < len(text); i += 4 {
		var b [4]byte
		copy(b[:], text[i:])
		ids = append(ids, binary.LittleEndian.Uint32(b[:]))
	}
	return ids
}
