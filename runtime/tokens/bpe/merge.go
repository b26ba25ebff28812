package bpe

import (
	"context"
	"math"
)

// shortWord is the longest word, in bytes, for which looking through all pairs
// for each merge is quicker than a heap.
const shortWord = 64

// cancelEvery is how many merges of one word go by between two looks at the
// context.
const cancelEvery = 1 << 14

// mergeShort appends the ids of a word of at most shortWord bytes: the pair of
// the lowest rank is merged first, the leftmost among equals.
func (t *Tokenizer) mergeShort(dst []uint32, word string) []uint32 {
	var ids, ranks [shortWord + 1]uint32
	n := len(word)
	for i := range n {
		ids[i] = t.bytes[word[i]]
	}
	for i := 0; i+1 < n; i++ {
		ranks[i] = t.pairs.rank(ids[i], ids[i+1])
	}
	for n > 1 {
		best, rank := 0, none
		for i, r := range ranks[:n-1] {
			if r < rank {
				best, rank = i, r
			}
		}
		if rank == none {
			break
		}
		ids[best] = t.merged[rank]
		copy(ids[best+1:n-1], ids[best+2:n])
		copy(ranks[best:n-2], ranks[best+1:n-1])
		n--
		if best+1 < n {
			ranks[best] = t.pairs.rank(ids[best], ids[best+1])
		}
		if best > 0 {
			ranks[best-1] = t.pairs.rank(ids[best-1], ids[best])
		}
	}
	return append(dst, ids[:n]...)
}

// chain is the working memory of a long word: symbols in a doubly linked list,
// and a heap of the pairs that may be merged.
type chain struct {
	links []link
	heap  []uint64 // rank in the upper half, position in the lower
}

type link struct {
	id         uint32
	prev, next int32
}

// gone is the next of a symbol that was merged into the one before it.
const gone = math.MinInt32

// keptLinks bounds the working memory that is kept for the next word.
const keptLinks = 1 << 16

// mergeLong is mergeShort in n log n.
func (t *Tokenizer) mergeLong(ctx context.Context, dst []uint32, word string) ([]uint32, error) {
	c, _ := t.chains.Get().(*chain)
	if c == nil {
		c = new(chain)
	}
	defer func() {
		if cap(c.links) <= keptLinks {
			t.chains.Put(c)
		}
	}()
	t.link(c, word)
	for steps := 1; len(c.heap) > 0; steps++ {
		if steps%cancelEvery == 0 && ctx.Err() != nil {
			return dst, ctx.Err()
		}
		top := c.pop()
		at := int32(uint32(top))
		l := &c.links[at]
		if l.next < 0 || t.pairs.rank(l.id, c.links[l.next].id) != uint32(top>>32) {
			continue // one of the two was merged meanwhile
		}
		l.id = t.merged[top>>32]
		second := &c.links[l.next]
		l.next, second.next = second.next, gone
		if l.next >= 0 {
			c.links[l.next].prev = at
			t.offer(c, at, l.next)
		}
		if l.prev >= 0 {
			t.offer(c, l.prev, at)
		}
	}
	for i := int32(0); i >= 0; i = c.links[i].next {
		dst = append(dst, c.links[i].id)
	}
	return dst, nil
}

// link fills the chain with the bytes of a word.
func (t *Tokenizer) link(c *chain, word string) {
	c.links, c.heap = c.links[:0], c.heap[:0]
	for i := range len(word) {
		c.links = append(c.links, link{id: t.bytes[word[i]], prev: int32(i) - 1, next: int32(i) + 1})
	}
	c.links[len(word)-1].next = -1
	for i := range len(word) - 1 {
		t.offer(c, int32(i), int32(i)+1)
	}
}

// offer puts a pair of neighbours on the heap if it can be merged.
func (t *Tokenizer) offer(c *chain, left, right int32) {
	if r := t.pairs.rank(c.links[left].id, c.links[right].id); r != none {
		c.push(uint64(r)<<32 | uint64(uint32(left)))
	}
}

func (c *chain) push(v uint64) {
	c.heap = append(c.heap, v)
	i := len(c.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if c.heap[up] <= v {
			break
		}
		c.heap[i] = c.heap[up]
		i = up
	}
	c.heap[i] = v
}

func (c *chain) pop() uint64 {
	top := c.heap[0]
	last := len(c.heap) - 1
	v := c.heap[last]
	c.heap = c.heap[:last]
	for i := 0; last > 0; {
		down := 2*i + 1
		if down >= last {
			c.heap[i] = v
			break
		}
		if down+1 < last && c.heap[down+1] < c.heap[down] {
			down++
		}
		if v <= c.heap[down] {
			c.heap[i] = v
			break
		}
		c.heap[i] = c.heap[down]
		i = down
	}
	return top
}
