package prefix

import "slices"

// A carrier is one owner and the tiers on which it holds a block:
// slot<<tierBits | tiers.
type carrier = uint32

const (
	tierBits = 4
	allTiers = 1<<tierBits - 1
)

// set is one distinct set of carriers, sorted by slot. Many nodes share one, so
// a block costs the same whether one engine holds it or a hundred.
type set struct {
	members []carrier
	refs    int64
	chain   uint32 // next set of the same hash
}

// sets interns sets of carriers. Set 0 is the empty set.
//
// A set without references stays until many have gathered, so that the last
// block of an owner coming and going does not rebuild its set each time.
type sets struct {
	all    []set
	free   []uint32
	byHash map[uint64]uint32
	idle   int // sets without references, except the empty one

	// steps remembers recent transitions. It is emptied when sets are freed.
	steps   [1024]step
	scratch []carrier
}

// step is one remembered transition: the set from, with a carrier's tiers added
// or removed, is the set to. An op of zero is an empty entry.
type step struct {
	from uint32
	move
	op uint64
}

// move is the outcome of a transition: the set after it, and the tiers of the
// slot before and after.
type move struct {
	to            uint32
	before, after uint8
}

const maxIdleSets = 4096

func newSets() *sets {
	return &sets{all: make([]set, 1), byHash: make(map[uint64]uint32)}
}

func (s *sets) members(id uint32) []carrier { return s.all[id].members }

// tiersOf returns the tiers on which a slot holds what a set describes.
func (s *sets) tiersOf(id, slot uint32) uint32 {
	m := s.all[id].members
	// Sets are small, so a scan beats a search.
	for _, c := range m {
		if c>>tierBits == slot {
			return c & allTiers
		}
	}
	return 0
}

// with adds tiers of a slot to a set, without removes them.
func (s *sets) with(id, slot, tiers uint32) move { return s.step(id, slot, tiers, adding) }

func (s *sets) without(id, slot, tiers uint32) move { return s.step(id, slot, tiers, removing) }

const (
	adding   = 1
	removing = 2
)

func (s *sets) step(id, slot, tiers uint32, kind uint32) move {
	op := uint64(slot)<<8 | uint64(tiers)<<2 | uint64(kind)
	e := &s.steps[(id*31+slot*7+tiers+kind*513)%uint32(len(s.steps))]
	if e.op == op && e.from == id {
		return e.move
	}
	before := s.tiersOf(id, slot)
	after := before | tiers
	if kind == removing {
		after = before &^ tiers
	}
	m := move{to: id, before: uint8(before), after: uint8(after)}
	if after != before {
		m.to = s.replace(id, slot, after)
	}
	*e = step{from: id, move: m, op: op}
	return m
}

// replace is the set in which a slot holds exactly the given tiers.
func (s *sets) replace(id, slot, tiers uint32) uint32 {
	m := s.scratch[:0]
	placed := tiers == 0
	for _, c := range s.all[id].members {
		if !placed && c>>tierBits >= slot {
			m = append(m, slot<<tierBits|tiers)
			placed = true
		}
		if c>>tierBits != slot {
			m = append(m, c)
		}
	}
	if !placed {
		m = append(m, slot<<tierBits|tiers)
	}
	s.scratch = m
	return s.intern(m)
}

// intern returns the number of the set with these members.
func (s *sets) intern(m []carrier) uint32 {
	if len(m) == 0 {
		return 0
	}
	h := hashOf(m)
	for id := s.byHash[h]; id != 0; id = s.all[id].chain {
		if slices.Equal(s.all[id].members, m) {
			return id
		}
	}
	next := set{members: slices.Clone(m), chain: s.byHash[h]}
	var id uint32
	if n := len(s.free); n > 0 {
		id, s.free = s.free[n-1], s.free[:n-1]
		s.all[id] = next
	} else {
		id = uint32(len(s.all))
		s.all = append(s.all, next)
	}
	s.byHash[h] = id
	s.idle++
	return id
}

func hashOf(m []carrier) uint64 {
	h := uint64(len(m))
	for _, c := range m {
		h = (h ^ uint64(c)) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	return h
}

// refer moves one reference from one set to another.
func (s *sets) refer(from, to uint32) {
	if from != 0 {
		if s.all[from].refs--; s.all[from].refs == 0 {
			s.idle++
		}
	}
	if to != 0 {
		if s.all[to].refs++; s.all[to].refs == 1 {
			s.idle--
		}
	}
}

// collect frees the sets without references once there are many. No number of
// such a set may be held across the call.
func (s *sets) collect() {
	if s.idle <= maxIdleSets+len(s.all)/2 {
		return
	}
	s.free = s.free[:0]
	clear(s.byHash)
	s.steps = [1024]step{}
	for id := 1; id < len(s.all); id++ {
		x := &s.all[id]
		if x.refs == 0 {
			*x = set{}
			s.free = append(s.free, uint32(id))
		}
	}
	s.rehash()
	s.idle = 0
}

// rehash fills the table with the sets that are in use.
func (s *sets) rehash() {
	for id := 1; id < len(s.all); id++ {
		x := &s.all[id]
		if x.refs == 0 {
			continue
		}
		h := hashOf(x.members)
		x.chain = s.byHash[h]
		s.byHash[h] = uint32(id)
	}
}
