package prefix

// node is one block in one place of the forest: 32 bytes, without pointers, so
// that the garbage collector never looks at them. References are node numbers;
// 0 is the root and means none.
type node struct {
	hash   int64
	parent uint32
	// next is the chain of the hash table, or of the free list.
	next uint32
	// set is the number of the interned set of carriers; freed marks a node that
	// is not in use.
	set uint32
	// children counts the nodes below, plus one while the node is pinned.
	children uint32
	// older and newer link the nodes in the order of their last store, in a ring
	// through the root. A node linked to itself is out of the ring.
	older, newer uint32
}

const (
	freed = ^uint32(0)

	chunkBits = 13
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
)

// arena holds the nodes in chunks, so that growth copies nothing, and finds them
// by hash. The table grows by linear hashing: buckets are split as nodes are
// added, two for each, so no insertion pauses for a rehash.
//
// An index of ten million blocks is far larger than the caches, so what costs is
// touching a node. A bucket therefore carries, beside its first node, that
// node's hash bits and whether there are more: most questions about blocks that
// are not there, and most splits, are answered without a node.
type arena struct {
	chunks []*[chunkLen]node
	used   uint32 // numbers ever handed out, the root included
	free   uint32 // head of the free list
	live   int    // nodes in use, without the root

	buckets []*[chunkLen]bucket
	level   uint32 // buckets before the current round of splits, a power of two
	split   uint32 // buckets of this round that were split
}

// bucket is the head of a chain: node number in the upper half; then the bits of
// its spread hash, of which the lowest, implied by the place, makes room for the
// mark that the chain has more nodes. 0 is an empty chain.
type bucket uint64

const more = 1

func newBucket(i, spread uint32, chained bool) bucket {
	b := bucket(i)<<32 | bucket(spread&^more)
	if chained {
		b |= more
	}
	return b
}

func (b bucket) node() uint32 { return uint32(b >> 32) }

// misses reports that no node of the chain can have the spread hash.
func (b bucket) misses(spread uint32) bool {
	return b == 0 || b&more == 0 && uint32(b) != spread&^more
}

func newArena() *arena {
	a := &arena{used: 1, level: chunkLen}
	a.chunks = append(a.chunks, new([chunkLen]node))
	a.buckets = append(a.buckets, new([chunkLen]bucket))
	return a
}

func (a *arena) at(i uint32) *node { return &a.chunks[i>>chunkBits][i&chunkMask] }

func (a *arena) bucketAt(i uint32) *bucket { return &a.buckets[i>>chunkBits][i&chunkMask] }

// spread makes the low bits depend on all of them: engines may publish hashes
// that are not uniform.
func spread(h int64) uint32 {
	x := uint64(h) * 0x9E3779B97F4A7C15
	return uint32(x >> 32)
}

func (a *arena) bucketOf(spread uint32) *bucket {
	b := spread & (2*a.level - 1)
	if b >= a.level+a.split {
		b &= a.level - 1
	}
	return a.bucketAt(b)
}

// warm touches the buckets of hashes that are about to be looked up, so that the
// processor fetches them side by side and not one after the other.
func (a *arena) warm(hashes []int64) (sum bucket) {
	for _, h := range hashes {
		sum ^= *a.bucketOf(spread(h))
	}
	return sum
}

// first and following walk the nodes with a hash, the newest first.
func (a *arena) first(h int64) uint32 {
	s := spread(h)
	b := *a.bucketOf(s)
	if b.misses(s) {
		return 0
	}
	return a.match(b.node(), h)
}

func (a *arena) following(i uint32) uint32 {
	n := a.at(i)
	return a.match(n.next, n.hash)
}

func (a *arena) match(i uint32, h int64) uint32 {
	for i != 0 {
		n := a.at(i)
		if n.hash == h {
			return i
		}
		i = n.next
	}
	return 0
}

// child finds the block below a node. Chains are mostly stored in one go and lie
// side by side, so the neighbour is tried before the table. When there is none,
// twins is in how many other places the hash is.
func (a *arena) child(parent uint32, h int64) (i uint32, twins int) {
	if guess := parent + 1; guess < a.used {
		if n := a.at(guess); n.hash == h && n.parent == parent && n.set != freed {
			return guess, 0
		}
	}
	for i := a.first(h); i != 0; i = a.following(i) {
		if a.at(i).parent == parent {
			return i, 0
		}
		twins++
	}
	return 0, twins
}

// add makes a node below a parent, as the newest of the ring.
func (a *arena) add(parent uint32, h int64) uint32 {
	i := a.free
	if i != 0 {
		a.free = a.at(i).next
	} else {
		i = a.used
		a.used++
		if int(i>>chunkBits) == len(a.chunks) {
			a.chunks = append(a.chunks, new([chunkLen]node))
		}
	}
	s := spread(h)
	head := a.bucketOf(s)
	old := head.node()
	*a.at(i) = node{hash: h, parent: parent, next: old, older: i, newer: i}
	*head = newBucket(i, s, old != 0)
	a.at(parent).children++
	a.live++
	a.push(i)
	for range 2 {
		if uint32(a.live)*2 > a.level+a.split {
			a.grow()
		}
	}
	return i
}

// remove takes a childless node out. The caller has settled its carriers.
func (a *arena) remove(i uint32) {
	n := a.at(i)
	a.unchain(i, n)
	a.unlink(i)
	a.at(n.parent).children--
	n.set, n.next = freed, a.free
	a.free = i
	a.live--
}

// unchain takes a node out of the hash table.
func (a *arena) unchain(i uint32, n *node) {
	head := a.bucketOf(spread(n.hash))
	if head.node() == i {
		*head = a.headed(n.next)
		return
	}
	at := a.at(head.node())
	for at.next != i {
		at = a.at(at.next)
	}
	if at.next = n.next; head.node() != 0 && a.at(head.node()).next == 0 {
		*head &^= more
	}
}

// headed is the bucket of a chain that begins at a node.
func (a *arena) headed(i uint32) bucket {
	if i == 0 {
		return 0
	}
	n := a.at(i)
	return newBucket(i, spread(n.hash), n.next != 0)
}

// grow splits the next bucket and keeps the order of both chains.
func (a *arena) grow() {
	fresh := a.level + a.split
	if int(fresh>>chunkBits) == len(a.buckets) {
		a.buckets = append(a.buckets, new([chunkLen]bucket))
	}
	from, to := a.bucketAt(a.split), a.bucketAt(fresh)
	switch b := *from; {
	case b == 0:
	case b&more == 0:
		if uint32(b)&a.level != 0 {
			*from, *to = 0, b
		}
	default:
		*from, *to = a.divide(b.node())
	}
	if a.split++; a.split == a.level {
		a.level, a.split = 2*a.level, 0
	}
}

// divide splits a chain by the bit that the new bucket adds.
func (a *arena) divide(i uint32) (stay, move bucket) {
	var heads [2]uint32
	tails := [2]*uint32{&heads[0], &heads[1]}
	for i != 0 {
		n := a.at(i)
		following, side := n.next, 0
		if spread(n.hash)&a.level != 0 {
			side = 1
		}
		*tails[side], tails[side] = i, &n.next
		i = following
	}
	*tails[0], *tails[1] = 0, 0
	return a.headed(heads[0]), a.headed(heads[1])
}

// push makes a node that is out of the ring its newest.
func (a *arena) push(i uint32) {
	n, root := a.at(i), a.at(0)
	n.older, n.newer = root.older, 0
	a.at(root.older).newer = i
	root.older = i
}

// pushOldest makes a node that is out of the ring its oldest.
func (a *arena) pushOldest(i uint32) {
	n, root := a.at(i), a.at(0)
	n.newer, n.older = root.newer, 0
	a.at(root.newer).older = i
	root.newer = i
}

func (a *arena) unlink(i uint32) {
	n := a.at(i)
	if n.older == i {
		return
	}
	a.at(n.older).newer = n.newer
	a.at(n.newer).older = n.older
	n.older, n.newer = i, i
}

// touch makes a node the newest.
func (a *arena) touch(i uint32) {
	if a.at(0).older == i {
		return
	}
	a.unlink(i)
	a.push(i)
}

// oldestLeaf finds the leaf that was stored longest ago, 0 if every node has
// children. Inner nodes on the way leave the ring until they are leaves again,
// so each is passed over once.
func (a *arena) oldestLeaf() uint32 {
	for {
		i := a.at(0).newer
		if i == 0 || a.at(i).children == 0 {
			return i
		}
		a.unlink(i)
	}
}

// inRing reports whether a node may be found by oldestLeaf.
func (a *arena) inRing(i uint32) bool { return a.at(i).older != i }

// bytes is the memory held by nodes and table.
func (a *arena) bytes() int { return len(a.chunks)*chunkLen*32 + len(a.buckets)*chunkLen*8 }
