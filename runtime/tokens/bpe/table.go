package bpe

import (
	"hash/maphash"
	"math/bits"
)

// pairTable maps a pair of symbols to the rank of its merge. It is filled once
// and read without locks.
type pairTable struct {
	slots []pairSlot
	mask  uint32
}

// pairSlot is empty while its rank is none.
type pairSlot struct {
	left, right uint32
	rank        uint32
}

const none = ^uint32(0)

func newPairTable(n int) pairTable {
	size := 1 << bits.Len(uint(n)*2)
	t := pairTable{slots: make([]pairSlot, size), mask: uint32(size - 1)}
	for i := range t.slots {
		t.slots[i].rank = none
	}
	return t
}

func (t *pairTable) slot(left, right uint32) *pairSlot {
	h := (uint64(left)<<32 | uint64(right)) * 0x9E3779B97F4A7C15
	for i := uint32(h >> 32); ; i++ {
		s := &t.slots[i&t.mask]
		if s.rank == none || s.left == left && s.right == right {
			return s
		}
	}
}

// put enters a pair. The last rank of a pair wins, as in the library.
func (t *pairTable) put(left, right, rank uint32) { *t.slot(left, right) = pairSlot{left, right, rank} }

func (t *pairTable) rank(left, right uint32) uint32 { return t.slot(left, right).rank }

// wordTable maps whole words to the one id that they encode to. It is filled once
// and read without locks.
type wordTable struct {
	slots []wordSlot
	mask  uint32
	bytes []byte // all words, one after the other
	// longest is the length of the longest word.
	longest int
}

// wordSlot is empty while its length is 0.
type wordSlot struct {
	hash   uint32
	offset uint32
	length uint32
	id     uint32
}

func newWordTable(n int) wordTable {
	size := 1 << bits.Len(uint(n)*2)
	return wordTable{slots: make([]wordSlot, size), mask: uint32(size - 1)}
}

func (t *wordTable) put(hash uint64, word string, id uint32) {
	for i := uint32(hash); ; i++ {
		s := &t.slots[i&t.mask]
		if s.length == 0 {
			*s = wordSlot{uint32(hash >> 32), uint32(len(t.bytes)), uint32(len(word)), id}
			t.bytes = append(t.bytes, word...)
			t.longest = max(t.longest, len(word))
			return
		}
	}
}

func (t *wordTable) get(hash uint64, word string) (uint32, bool) {
	for i := uint32(hash); ; i++ {
		s := &t.slots[i&t.mask]
		if s.length == 0 {
			return 0, false
		}
		if s.hash == uint32(hash>>32) && int(s.length) == len(word) && string(t.bytes[s.offset:s.offset+s.length]) == word {
			return s.id, true
		}
	}
}

func hashOf(seed maphash.Seed, word string) uint64 { return maphash.String(seed, word) }
