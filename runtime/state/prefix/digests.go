package prefix

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"unsafe"
)

// DefaultMaxDigests is the number of stretches that Digests keeps when it names
// none: about 14 MB, for 64 million tokens in blocks of 64.
const DefaultMaxDigests = 1 << 16

// stretchBlocks is how many blocks share one remembered digest.
const stretchBlocks = 16

// Digests remembers how far prompts were hashed before. The chain of SHA-256
// cannot be shortened, and it is most of the time of a lookup; but the next turn
// of a conversation begins with the last one, and then the chain is found here
// by a hash of the tokens that is many times faster.
//
// The keys are 64 bits under a random seed of this process: even after 10^10
// prompts the chance that two of them were ever confused is below one in ten
// thousand, and the harm would be one pick without its cache hit. It keeps the
// stretches used most recently, in two generations.
type Digests struct {
	max  int
	seed maphash.Seed

	mu         sync.Mutex
	young, old map[digestKey]*stretch
}

type digestKey uint64

// stretch is what hashing some blocks led to.
type stretch struct {
	parent [sha256.Size]byte
	hashes [stretchBlocks]int64
}

// NewDigests makes an empty memory of at most about n stretches; 0 or less is
// DefaultMaxDigests.
func NewDigests(n int) *Digests {
	if n <= 0 {
		n = DefaultMaxDigests
	}
	return &Digests{
		max:   max(n/2, 1),
		seed:  maphash.MakeSeed(),
		young: make(map[digestKey]*stretch),
	}
}

// extend is the key of a prompt's beginning, from the key of what came before.
func (d *Digests) extend(before digestKey, b []byte) digestKey {
	return digestKey(maphash.Comparable(d.seed, [2]uint64{uint64(before), maphash.Bytes(d.seed, b)}))
}

// bytesOf is the memory of tokens. Keys stay within the process, so the order of
// bytes does not matter; copying half a megabyte for a long prompt would.
func bytesOf(tokens []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(tokens))), 4*len(tokens))
}

func (d *Digests) get(k digestKey) *stretch {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.young[k]; s != nil {
		return s
	}
	s := d.old[k]
	if s != nil {
		d.insert(k, s)
	}
	return s
}

func (d *Digests) put(k digestKey, s *stretch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.insert(k, s)
}

func (d *Digests) insert(k digestKey, s *stretch) {
	if len(d.young) >= d.max {
		d.old, d.young = d.young, make(map[digestKey]*stretch, d.max)
	}
	d.young[k] = s
}

// Reuse lets a chain look up what was hashed before. It must be called before
// the first Append; nil does nothing.
func (c *Chain) Reuse(d *Digests) {
	if d == nil {
		return
	}
	h := c.hashing
	b := []byte{byte(h.Scheme), 0}
	if h.Bigram {
		b[1] = 1
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(h.BlockSize))
	b = append(append(b, c.parent[:]...), c.lora[:]...)
	if c.rooted {
		b = append(b, 1)
	}
	c.digests, c.key = d, d.extend(0, b)
}

// stretch appends the hashes of the next stretchBlocks blocks, all of which are
// full, from memory if they are there.
func (c *Chain) stretch(dst []int64) []int64 {
	size := c.hashing.BlockSize
	from, to := c.next*size, (c.next+stretchBlocks)*size
	if c.hashing.Bigram {
		to++ // the last pair reaches into the next block
	}
	c.key = c.digests.extend(c.key, bytesOf(c.tokens[from:to]))
	if s := c.digests.get(c.key); s != nil {
		c.parent, c.rooted = s.parent, true
		c.next += stretchBlocks
		return append(dst, s.hashes[:]...)
	}
	s := new(stretch)
	for i := range s.hashes {
		s.hashes[i] = c.step()
	}
	s.parent = c.parent
	c.digests.put(c.key, s)
	return append(dst, s.hashes[:]...)
}

// stretches reports whether the next n blocks begin with a whole stretch. Once a
// stretch was hashed block by block, the keys would not cover it.
func (c *Chain) stretches(n int) bool {
	if c.digests == nil {
		return false
	}
	need := (c.next + stretchBlocks) * c.hashing.BlockSize
	if c.hashing.Bigram {
		need++
	}
	if n < stretchBlocks || need > len(c.tokens) {
		c.digests = nil
	}
	return c.digests != nil
}
