package prefix

import "slices"

// Depth is how much of a prompt one owner holds: the number of leading blocks
// without a hole.
type Depth struct {
	Address string
	Rank    int
	Blocks  int
}

// Match is how much of a prompt one engine holds, the best of its ranks.
type Match struct {
	// Address is the engine's URL, exactly as it was attached.
	Address string
	Blocks  int
}

// query is the scratch memory of one lookup.
type query struct {
	hashes []int64
	alive  []uint32
	found  []found
	best   []int // by engine
}

type found struct {
	slot  uint32
	depth int
}

// Depths reports every owner that holds the first block, in no special order.
func (x *Index) Depths(hashes []int64) []Depth {
	q := x.pool.Get().(*query)
	defer x.pool.Put(q)
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.walk(q, hashes)
	var d []Depth
	for _, f := range q.found {
		s := &x.slots[f.slot]
		d = append(d, Depth{Address: x.engines[s.engine].address, Rank: s.rank, Blocks: f.depth})
	}
	return d
}

// Match appends to dst the engines that hold the first block of a prompt, the
// deepest first and then by address, and returns the depth of the best.
func (x *Index) Match(dst []Match, hashes []int64) ([]Match, int) {
	q := x.pool.Get().(*query)
	defer x.pool.Put(q)
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.walk(q, hashes)
	return x.collect(dst, q)
}

// firstStretch is how many blocks MatchChain hashes before it looks whether
// anyone holds them; each further stretch is four times as long.
const firstStretch = 32

// MatchChain is Match for a prompt whose blocks are not hashed yet. It hashes
// only as far as somebody holds the prompt.
func (x *Index) MatchChain(dst []Match, c *Chain) ([]Match, int) {
	q := x.pool.Get().(*query)
	defer x.pool.Put(q)
	q.hashes = q.hashes[:0]
	for stretch := firstStretch; ; stretch *= 4 {
		q.hashes = c.Append(q.hashes, stretch)
		if matches, best, done := x.matchStretch(dst, q, c.Len()); done {
			return matches, best
		}
		// Everything so far is held: the next stretch begins from the root again,
		// because nodes may come and go while it is hashed.
	}
}

// matchStretch looks the hashes so far up. It is done unless somebody holds all of
// them and there are more. The lock is given back whatever happens: a lookup that
// panics must not stop the index.
func (x *Index) matchStretch(dst []Match, q *query, all int) (matches []Match, best int, done bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if depth := x.walk(q, q.hashes); depth == len(q.hashes) && depth < all {
		return nil, 0, false
	}
	matches, best = x.collect(dst, q)
	return matches, best, true
}

// walk follows a chain from the root for as long as an owner holds every block
// of it. It returns how far that was.
func (x *Index) walk(q *query, hashes []int64) int {
	q.alive, q.found = q.alive[:0], q.found[:0]
	cur, last, depth := uint32(0), uint32(0), 0
	for _, h := range hashes {
		i, _ := x.nodes.child(cur, h)
		if i == 0 {
			break
		}
		if s := x.nodes.at(i).set; s != last {
			if depth == 0 {
				x.admit(q, s)
			} else {
				q.narrow(x.sets.members(s), depth)
			}
			if len(q.alive) == 0 {
				break
			}
			last = s
		}
		if len(q.alive) == 0 {
			break
		}
		cur = i
		depth++
	}
	for _, s := range q.alive {
		q.found = append(q.found, found{slot: s, depth: depth})
	}
	return depth
}

// admit starts a walk with the living carriers of the first block.
func (x *Index) admit(q *query, set uint32) {
	for _, c := range x.sets.members(set) {
		if s := c >> tierBits; !x.slots[s].dead {
			q.alive = append(q.alive, s)
		}
	}
}

// narrow keeps the owners that carry the next block, too. Both lists are sorted
// by slot.
func (q *query) narrow(members []carrier, depth int) {
	kept := q.alive[:0]
	for _, s := range q.alive {
		for len(members) > 0 && members[0]>>tierBits < s {
			members = members[1:]
		}
		if len(members) > 0 && members[0]>>tierBits == s {
			kept = append(kept, s)
		} else {
			q.found = append(q.found, found{slot: s, depth: depth})
		}
	}
	q.alive = kept
}

// collect takes the best rank of each engine.
func (x *Index) collect(dst []Match, q *query) ([]Match, int) {
	q.best = slices.Grow(q.best[:0], len(x.engines))[:len(x.engines)]
	clear(q.best)
	from := len(dst)
	best := 0
	for _, f := range q.found {
		e := x.slots[f.slot].engine
		q.best[e] = max(q.best[e], f.depth)
		best = max(best, f.depth)
	}
	for _, f := range q.found {
		e := x.slots[f.slot].engine
		if q.best[e] > 0 {
			dst = append(dst, Match{Address: x.engines[e].address, Blocks: q.best[e]})
			q.best[e] = 0
		}
	}
	slices.SortFunc(dst[from:], func(a, b Match) int {
		if a.Blocks != b.Blocks {
			return b.Blocks - a.Blocks
		}
		if a.Address < b.Address {
			return -1
		}
		if a.Address > b.Address {
			return 1
		}
		return 0
	})
	return dst, best
}
