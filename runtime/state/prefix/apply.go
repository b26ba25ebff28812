package prefix

import "shunt/runtime/state/prefix/wire"

// maxTwins bounds in how many places of the forest one hash may be. A hash covers
// what came before it, so of an honest engine it is in one, and in a second while
// its parent is not known; a search goes through them all.
const maxTwins = 256

// warmAhead is how many hash table entries are fetched side by side.
const warmAhead = 16

// writing is one batch being applied. It holds the index's lock for at most
// lockStep blocks at a time; nobody else writes in between, so node numbers stay
// good.
type writing struct {
	x      *Index
	locked bool
	used   int
}

// enter takes the lock if it is not held, and lets readers in when it was held
// for long enough.
func (w *writing) enter() {
	if w.locked && w.used >= lockStep {
		w.end()
	}
	if !w.locked {
		w.x.mu.Lock()
		w.locked, w.used = true, 0
	}
}

// end gives the lock back. It may be called at any time.
func (w *writing) end() {
	if w.locked {
		w.x.sets.collect()
		w.x.mu.Unlock()
		w.locked = false
	}
}

// tier is the tier bit of a medium. Engines that name no medium mean the device.
func tier(m wire.Medium) (bit uint32, known bool) {
	switch m {
	case wire.None, wire.Device:
		return 1, true
	case wire.Host:
		return 2, true
	case wire.Disk:
		return 4, true
	case wire.External:
		return 8, true
	}
	return 0, false
}

func (w *writing) store(slot uint32, e *wire.Event) {
	w.enter()
	bit, known := tier(e.Medium)
	if !known {
		w.x.counts.Ignored += uint64(len(e.Hashes))
		return
	}
	cur := uint32(0)
	if e.HasParent {
		if cur = w.x.locate(e.Parent, slot); cur == 0 {
			w.x.counts.Orphans++
		}
	}
	for rest := e.Hashes; len(rest) > 0; {
		w.enter()
		n := min(len(rest), lockStep-w.used)
		done, ok := w.x.extend(cur, slot, rest[:n], bit)
		w.used += n
		if !ok {
			w.x.counts.Dropped += uint64(len(rest))
			return
		}
		cur, rest = done, rest[n:]
	}
	w.x.counts.Stored += uint64(len(e.Hashes))
}

// locate finds the node that a parent hash means: the only one with that hash,
// or the newest of several that the slot holds; else the root.
func (x *Index) locate(h int64, slot uint32) uint32 {
	first := x.nodes.first(h)
	if first == 0 || x.nodes.following(first) == 0 {
		return first
	}
	for i := first; i != 0; i = x.nodes.following(i) {
		if x.sets.tiersOf(x.nodes.at(i).set, slot) != 0 {
			return i
		}
	}
	return 0
}

// extend walks or builds a chain below a node and marks it as held. It returns
// the last block, and false if there was no room for all of them, or one of them
// was in too many places.
func (x *Index) extend(cur, slot uint32, hashes []int64, bit uint32) (uint32, bool) {
	for at, h := range hashes {
		if at%warmAhead == 0 && len(hashes) > 1 {
			x.warmed ^= x.nodes.warm(hashes[at:min(at+warmAhead, len(hashes))])
		}
		i, twins := x.nodes.child(cur, h)
		if i != 0 {
			x.nodes.touch(i)
		} else {
			if twins >= maxTwins || x.nodes.live >= x.max && !x.makeRoom(cur) {
				return 0, false
			}
			i = x.nodes.add(cur, h)
		}
		n := x.nodes.at(i)
		x.carry(n, slot, x.sets.with(n.set, slot, bit))
		cur = i
	}
	return cur, true
}

// makeRoom evicts one leaf other than the end of the chain that is being built.
func (x *Index) makeRoom(cur uint32) bool {
	n := x.nodes.at(cur)
	n.children++
	ok := x.evict()
	n.children--
	if cur != 0 && !x.nodes.inRing(cur) {
		x.nodes.push(cur)
	}
	return ok
}

func (w *writing) remove(slot uint32, e *wire.Event) {
	bit, known := tier(e.Medium)
	if !known || e.Medium == wire.None {
		bit = allTiers
	}
	for at, h := range e.Hashes {
		w.enter()
		if at%warmAhead == 0 && len(e.Hashes) > 1 {
			w.x.warmed ^= w.x.nodes.warm(e.Hashes[at:min(at+warmAhead, len(e.Hashes))])
		}
		w.x.release(h, slot, bit)
		w.used++
	}
	w.x.counts.Removed += uint64(len(e.Hashes))
}

// release takes tiers of a slot from every node with a hash.
func (x *Index) release(h int64, slot, tiers uint32) {
	for i := x.nodes.first(h); i != 0; {
		n := x.nodes.at(i)
		following := x.nodes.following(i)
		x.carry(n, slot, x.sets.without(n.set, slot, tiers))
		if n.set == 0 && n.children == 0 {
			before := x.nodes.live
			x.prune(i)
			if before-x.nodes.live > 1 {
				// Ancestors went, too, and the next node may have been one of them.
				following = x.nodes.first(h)
			}
		}
		i = following
	}
}
