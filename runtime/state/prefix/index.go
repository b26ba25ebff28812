package prefix

import (
	"math/bits"
	"sync"

	"shunt/runtime/state/prefix/wire"
)

// DefaultMaxBlocks is the cap of an index that names none: about 400 MB when
// full.
const DefaultMaxBlocks = 10 << 20

// lockStep is how many blocks a writer applies before it lets readers in.
const lockStep = 2048

// Index knows which owner holds which blocks. An owner is one rank of one
// engine; blocks form a forest of hash chains, as the engines publish them.
//
// It holds at most a configured number of blocks. When that is reached, the leaf
// that was stored longest ago makes room, for all its owners: forgetting a block
// costs a cache hit, never correctness.
//
// All methods are safe for concurrent use. Writers run one at a time and let
// readers in every few thousand blocks.
type Index struct {
	writer sync.Mutex // serialises mutations
	mu     sync.RWMutex
	// Guarded by mu; written only with writer held, too.
	nodes   *arena
	sets    *sets
	slots   []slot
	spare   []uint32 // numbers of unused slots
	engines []engine
	max     int
	counts  Counts
	warmed  bucket // keeps the compiler from dropping the loads of warm

	pool sync.Pool // of *query
}

// slot is the index's side of an owner.
type slot struct {
	engine uint32
	rank   int
	// dead slots are invisible to lookups while their blocks are swept out.
	dead   bool
	blocks int
	tiers  [tierBits]int
}

// engine is an address with owners.
type engine struct {
	address string
	owners  int
}

// Counts are totals since the index was made.
type Counts struct {
	// Stored and Removed count block hashes of applied events, Cleared the clears.
	Stored, Removed, Cleared uint64
	// Evicted counts blocks dropped at the cap, Dropped those that could not be
	// stored because the cap is smaller than one chain, or because a hash was in
	// too many places.
	Evicted, Dropped uint64
	// Ignored counts stores on a medium that the index does not know.
	Ignored uint64
	// Orphans counts chains whose parent was not known; they match no prompt.
	Orphans uint64
}

// Stats is a snapshot of an index.
type Stats struct {
	Counts
	Blocks    int // distinct blocks
	Carried   int // blocks, counted once for each owner
	Owners    int
	MaxBlocks int
	Bytes     int // memory of nodes and hash table
	Sets      int // distinct sets of owners
}

// NewIndex makes an index of at most maxBlocks blocks; 0 or less is
// DefaultMaxBlocks.
func NewIndex(maxBlocks int) *Index {
	if maxBlocks <= 0 {
		maxBlocks = DefaultMaxBlocks
	}
	x := &Index{nodes: newArena(), sets: newSets(), max: maxBlocks}
	x.pool.New = func() any { return new(query) }
	return x
}

// Owner is a handle for the events of one rank of one engine. After Detach it
// does nothing.
type Owner struct {
	Address string
	Rank    int

	index *Index
	slot  uint32 // guarded by the index's writer lock
	gone  bool
}

// Attach makes an owner. Two owners of the same address and rank are separate;
// lookups report the better one.
func (x *Index) Attach(address string, rank int) *Owner {
	x.writer.Lock()
	defer x.writer.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	return &Owner{Address: address, Rank: rank, index: x, slot: x.newSlot(x.engineOf(address), rank)}
}

func (x *Index) engineOf(address string) uint32 {
	empty := -1
	for i := range x.engines {
		if x.engines[i].owners > 0 && x.engines[i].address == address {
			return uint32(i)
		}
		if x.engines[i].owners == 0 {
			empty = i
		}
	}
	if empty < 0 {
		empty = len(x.engines)
		x.engines = append(x.engines, engine{})
	}
	x.engines[empty] = engine{address: address}
	return uint32(empty)
}

func (x *Index) newSlot(engine uint32, rank int) uint32 {
	x.engines[engine].owners++
	s := slot{engine: engine, rank: rank}
	if n := len(x.spare); n > 0 {
		i := x.spare[n-1]
		x.spare, x.slots[i] = x.spare[:n-1], s
		return i
	}
	x.slots = append(x.slots, s)
	return uint32(len(x.slots) - 1)
}

// Apply applies the events of a batch, in order.
func (o *Owner) Apply(b *wire.Batch) {
	x := o.index
	x.writer.Lock()
	defer x.writer.Unlock()
	if o.gone {
		return
	}
	events := b.Events
	if i := lastClear(events); i > 0 {
		// All that comes before concerns the same owner, and is void. A clear goes
		// through the whole index, so one of them must do.
		events = events[i:]
	}
	w := writing{x: x}
	defer w.end()
	for i := range events {
		e := &events[i]
		if i%warmAhead == 0 && len(events) > 1 {
			x.warmEvents(events[i:min(i+warmAhead, len(events))])
		}
		if e.Group > 0 {
			// Further cache groups of a hybrid model repeat the hashes of the first.
			continue
		}
		switch e.Kind {
		case wire.Stored:
			w.store(o.slot, e)
		case wire.Removed:
			w.remove(o.slot, e)
		case wire.Cleared:
			w.end()
			x.clear(o)
		}
	}
}

// lastClear is the index of the last clear, -1 for none.
func lastClear(events []wire.Event) int {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Kind == wire.Cleared && events[i].Group <= 0 {
			return i
		}
	}
	return -1
}

// warmEvents fetches what the first blocks of events need side by side: engines
// may send many events of one block each.
func (x *Index) warmEvents(events []wire.Event) {
	for i := range events {
		if h := events[i].Hashes; len(h) > 0 {
			x.warmed ^= x.nodes.warm(h[:1])
		}
	}
}

// Clear forgets everything that the owner holds.
func (o *Owner) Clear() {
	o.index.writer.Lock()
	defer o.index.writer.Unlock()
	if !o.gone {
		o.index.clear(o)
	}
}

// Detach forgets owners and everything they hold, in one pass over the index.
func (x *Index) Detach(owners ...*Owner) {
	x.writer.Lock()
	defer x.writer.Unlock()
	var dead []uint32
	for _, o := range owners {
		if o.index == x && !o.gone {
			o.gone = true
			dead = append(dead, o.slot)
		}
	}
	x.bury(dead, nil)
}

// clear gives the owner a fresh slot and sweeps the old one out.
func (x *Index) clear(o *Owner) {
	x.bury([]uint32{o.slot}, func() {
		x.counts.Cleared++
		o.slot = x.newSlot(x.slots[o.slot].engine, o.Rank)
	})
}

// bury hides slots from lookups at once, then removes them from every node, a
// chunk at a time. also runs when they are hidden.
func (x *Index) bury(dead []uint32, also func()) {
	x.mu.Lock()
	for _, s := range dead {
		x.slots[s].dead = true
	}
	if also != nil {
		also()
	}
	chunks := len(x.nodes.chunks)
	x.mu.Unlock()
	for c := range chunks {
		x.mu.Lock()
		dead := x.sweep(c, dead)
		x.mu.Unlock()
		if !dead {
			break
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range dead {
		x.engines[x.slots[s].engine].owners--
		x.spare = append(x.spare, s)
	}
	x.sets.collect()
}

// sweep takes dead slots out of one chunk, and reports whether any of them may
// hold more.
func (x *Index) sweep(chunk int, dead []uint32) bool {
	left := 0
	for _, s := range dead {
		left += x.slots[s].blocks
	}
	if left == 0 {
		return false
	}
	nodes := x.nodes.chunks[chunk]
	for j := range nodes {
		n := &nodes[j]
		if n.set == 0 || n.set == freed {
			continue
		}
		i := uint32(chunk<<chunkBits | j)
		for _, s := range dead {
			x.carry(n, s, x.sets.without(n.set, s, allTiers))
		}
		if n.set == 0 {
			x.prune(i)
		}
	}
	return true
}

// carry gives a node another set of carriers, and keeps the slot's counts.
func (x *Index) carry(n *node, slot uint32, m move) {
	if m.before == m.after {
		return
	}
	x.sets.refer(n.set, m.to)
	n.set = m.to
	x.count(slot, m.before, m.after)
}

func (x *Index) count(slot uint32, before, after uint8) {
	s := &x.slots[slot]
	if before == 0 {
		s.blocks++
	} else if after == 0 {
		s.blocks--
	}
	for d := before ^ after; d != 0; d &= d - 1 {
		t := bits.TrailingZeros8(d)
		if after&(1<<t) != 0 {
			s.tiers[t]++
		} else {
			s.tiers[t]--
		}
	}
}

// prune removes a node that nobody carries and that has no children, and what
// this leaves behind above it.
func (x *Index) prune(i uint32) {
	a := x.nodes
	for i != 0 {
		n := a.at(i)
		if n.children > 0 {
			return
		}
		if n.set != 0 {
			if !a.inRing(i) {
				a.pushOldest(i)
			}
			return
		}
		parent := n.parent
		a.remove(i)
		i = parent
	}
}

// evict drops the oldest leaf; false if there is none.
func (x *Index) evict() bool {
	i := x.nodes.oldestLeaf()
	if i == 0 {
		return false
	}
	n := x.nodes.at(i)
	for _, c := range x.sets.members(n.set) {
		x.count(c>>tierBits, uint8(c&allTiers), 0)
	}
	x.sets.refer(n.set, 0)
	n.set = 0
	x.prune(i)
	x.counts.Evicted++
	// The next victim's hash table entry is fetched while the caller works.
	x.warmed ^= *x.nodes.bucketOf(spread(x.nodes.at(x.nodes.at(0).newer).hash))
	return true
}

// Stats is a snapshot for metrics and admin views.
func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := Stats{Counts: x.counts, Blocks: x.nodes.live, MaxBlocks: x.max, Bytes: x.nodes.bytes()}
	s.Sets = len(x.sets.all) - len(x.sets.free) - 1
	for i := range x.engines {
		s.Owners += x.engines[i].owners
	}
	for i := range x.slots {
		s.Carried += x.slots[i].blocks
	}
	return s
}

// Held counts the blocks of all owners of an address; what several of them hold
// counts as often.
func (x *Index) Held(address string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := 0
	for i := range x.slots {
		if s := &x.slots[i]; !s.dead && x.engines[s.engine].owners > 0 && x.engines[s.engine].address == address {
			n += s.blocks
		}
	}
	return n
}

// Held counts the blocks of an owner: in all, and by tier in the order device,
// host, disk, external.
func (o *Owner) Held() (blocks int, tiers [tierBits]int) {
	x := o.index
	x.writer.Lock()
	defer x.writer.Unlock()
	if o.gone {
		return 0, tiers
	}
	s := &x.slots[o.slot]
	return s.blocks, s.tiers
}
