package bpe

import (
	"math/bits"
	"sync/atomic"
)

// The limits of what the cache keeps: a slot is one cache line.
const (
	cachedBytes = 24
	cachedIDs   = 8
)

// cache remembers the ids of words that take several. It is one array of slots,
// each written over by the latest word that falls on it, so its size is fixed,
// reading takes no lock and nothing is allocated.
type cache struct {
	slots []slot
	mask  uint64
}

// slot is guarded by its first word: the version in the upper half, odd while it
// is being written, and below it the lengths. A reader that sees the version
// change takes the slot for empty.
type slot struct {
	head atomic.Uint64
	key  [3]atomic.Uint64
	ids  [4]atomic.Uint64
}

const versionShift = 32

// newCache returns a cache of at least n slots, or none for 0.
func newCache(n int) cache {
	if n <= 0 {
		return cache{}
	}
	size := 1 << bits.Len(uint(n-1))
	return cache{slots: make([]slot, size), mask: uint64(size - 1)}
}

// packed is a word as it is kept.
type packed [3]uint64

// pack puts the bytes of a word into three words of memory, so that they can be read
// and written atomically.
func pack(word string) packed {
	var p packed
	for i := range len(word) {
		p[i/8] |= uint64(word[i]) << (i % 8 * 8)
	}
	return p
}

// get appends the ids of a word of at most cachedBytes bytes.
func (c *cache) get(hash uint64, word string, dst []uint32) ([]uint32, bool) {
	if len(c.slots) == 0 {
		return dst, false
	}
	s := &c.slots[hash&c.mask]
	head := s.head.Load()
	if int(head&0xff) != len(word) || head>>versionShift&1 == 1 {
		return dst, false
	}
	key := pack(word)
	for i := range key {
		if s.key[i].Load() != key[i] {
			return dst, false
		}
	}
	n := int(head >> 8 & 0xff)
	var ids [cachedIDs]uint32
	for i := 0; i < n; i += 2 {
		v := s.ids[i/2].Load()
		ids[i], ids[i+1] = uint32(v), uint32(v>>32)
	}
	if s.head.Load() != head {
		return dst, false
	}
	return append(dst, ids[:n]...), true
}

// put keeps a word unless another goroutine writes the slot just now.
func (c *cache) put(hash uint64, word string, ids []uint32) {
	if len(c.slots) == 0 || len(ids) > cachedIDs {
		return
	}
	s := &c.slots[hash&c.mask]
	head := s.head.Load()
	version := head >> versionShift
	if version&1 == 1 || !s.head.CompareAndSwap(head, (version+1)<<versionShift) {
		return
	}
	key := pack(word)
	for i := range key {
		s.key[i].Store(key[i])
	}
	var pair [cachedIDs]uint32
	copy(pair[:], ids)
	for i := range s.ids {
		s.ids[i].Store(uint64(pair[2*i]) | uint64(pair[2*i+1])<<32)
	}
	s.head.Store((version+2)<<versionShift | uint64(len(ids))<<8 | uint64(len(word)))
}
