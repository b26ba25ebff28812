package prefix_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/wire"
)

// model is the index as the rules say it, with maps and scans.
type model struct {
	root *block
	// ring holds the nodes by their last store, the oldest first. Inner nodes that
	// were passed over are out of it.
	ring []*block
	max  int
	born int
}

type block struct {
	hash   int64
	parent *block
	kids   []*block
	held   map[string]uint8
	born   int
	gone   bool
}

func newModel(limit int) *model { return &model{root: &block{}, max: limit} }

func (m *model) all() []*block {
	var list []*block
	var visit func(*block)
	visit = func(b *block) {
		for _, k := range b.kids {
			list = append(list, k)
			visit(k)
		}
	}
	visit(m.root)
	return list
}

// with returns the nodes of a hash, the newest first.
func (m *model) with(h int64) []*block {
	list := slices.DeleteFunc(m.all(), func(b *block) bool { return b.hash != h })
	slices.SortFunc(list, func(a, b *block) int { return b.born - a.born })
	return list
}

func (m *model) unring(b *block) {
	m.ring = slices.DeleteFunc(m.ring, func(x *block) bool { return x == b })
}

func (m *model) touch(b *block) {
	m.unring(b)
	m.ring = append(m.ring, b)
}

func (m *model) drop(b *block) {
	for b != m.root && len(b.kids) == 0 {
		if b.held["pin"] != 0 {
			return // whoever pinned it puts it into the ring
		}
		if len(b.held) > 0 {
			if !slices.Contains(m.ring, b) {
				m.ring = slices.Insert(m.ring, 0, b)
			}
			return
		}
		m.unring(b)
		b.gone = true
		b.parent.kids = slices.DeleteFunc(b.parent.kids, func(x *block) bool { return x == b })
		b = b.parent
	}
}

func (m *model) evict(keep *block) bool {
	for len(m.ring) > 0 {
		b := m.ring[0]
		if len(b.kids) > 0 || b == keep {
			m.ring = m.ring[1:]
			continue
		}
		clear(b.held)
		// The end of the chain being built must not go with its last child.
		keep.held["pin"] = 1
		m.drop(b)
		delete(keep.held, "pin")
		return true
	}
	return false
}

func (m *model) store(owner string, e wire.Event) {
	bit := uint8(1)
	if e.Medium > wire.Device {
		bit = 1 << (e.Medium - wire.Device)
	}
	if e.Medium == wire.Unknown {
		return
	}
	cur := m.root
	if e.HasParent {
		switch list := m.with(e.Parent); {
		case len(list) == 1:
			cur = list[0]
		default:
			for _, b := range list {
				if b.held[owner] != 0 {
					cur = b
					break
				}
			}
		}
	}
	for _, h := range e.Hashes {
		var next *block
		for _, k := range cur.kids {
			if k.hash == h {
				next = k
			}
		}
		if next == nil {
			if len(m.all()) >= m.max {
				if cur == m.root {
					cur.held = map[string]uint8{}
				}
				ok := m.evict(cur)
				if cur != m.root && !slices.Contains(m.ring, cur) {
					m.ring = append(m.ring, cur)
				}
				if !ok {
					return
				}
			}
			m.born++
			next = &block{hash: h, parent: cur, held: map[string]uint8{}, born: m.born}
			cur.kids = append(cur.kids, next)
		}
		m.touch(next)
		next.held[owner] |= bit
		cur = next
	}
}

func (m *model) remove(owner string, e wire.Event) {
	bits := uint8(15)
	if e.Medium != wire.None && e.Medium != wire.Unknown {
		bits = 1 << (e.Medium - wire.Device)
	}
	for _, h := range e.Hashes {
		for _, b := range m.with(h) {
			m.release(b, owner, bits)
		}
	}
}

func (m *model) release(b *block, owner string, bits uint8) {
	if b.gone || b.held[owner] == 0 {
		return
	}
	if b.held[owner] &^= bits; b.held[owner] == 0 {
		delete(b.held, owner)
		if len(b.held) == 0 {
			m.drop(b)
		}
	}
}

func (m *model) clear(owner string) {
	for _, b := range m.all() {
		m.release(b, owner, 15)
	}
}

// depths follows a chain for one owner.
func (m *model) depths(owner string, hashes []int64) int {
	cur, d := m.root, 0
	for _, h := range hashes {
		i := slices.IndexFunc(cur.kids, func(k *block) bool { return k.hash == h && k.held[owner] != 0 })
		if i < 0 {
			break
		}
		cur, d = cur.kids[i], d+1
	}
	return d
}

func (m *model) String() string {
	var s []string
	for _, b := range m.all() {
		at := 0
		for p := b; p != m.root; p = p.parent {
			at++
		}
		s = append(s, fmt.Sprintf("%d:%d%v", at, b.hash, b.held))
	}
	return strings.Join(s, " ")
}

// pair runs the same operations on an index and on the model.
type pair struct {
	t      *testing.T
	index  *prefix.Index
	model  *model
	owners map[string]*prefix.Owner
	log    []string
}

func newPair(t *testing.T, limit int) *pair {
	return &pair{t: t, index: prefix.NewIndex(limit), model: newModel(limit), owners: map[string]*prefix.Owner{}}
}

func (p *pair) owner(name string) *prefix.Owner {
	o := p.owners[name]
	if o == nil {
		address, rank, _ := strings.Cut(name, "#")
		o = p.index.Attach(address, int(rank[0]-'0'))
		p.owners[name] = o
	}
	return o
}

// step draws one operation from a source of small numbers.
func (p *pair) step(draw func(n int) int) {
	name := fmt.Sprintf("http://%c#%d", 'a'+draw(2), draw(2))
	hashes := func() []int64 {
		h := make([]int64, 1+draw(5))
		for i := range h {
			h[i] = int64(draw(9))
		}
		return h
	}
	switch op := draw(20); {
	case op < 11:
		e := wire.Event{Kind: wire.Stored, Hashes: hashes(), Medium: wire.Medium(draw(6)), HasParent: draw(2) == 0, Parent: int64(draw(9))}
		p.log = append(p.log, fmt.Sprintf("%s stores %+v", name, e))
		p.owner(name).Apply(&wire.Batch{Events: []wire.Event{e}})
		p.model.store(name, e)
	case op < 18:
		e := wire.Event{Kind: wire.Removed, Hashes: hashes(), Medium: wire.Medium(draw(6))}
		p.log = append(p.log, fmt.Sprintf("%s removes %+v", name, e))
		p.owner(name).Apply(&wire.Batch{Events: []wire.Event{e}})
		p.model.remove(name, e)
	case op == 18:
		p.log = append(p.log, name+" clears")
		p.owner(name).Apply(&wire.Batch{Events: []wire.Event{{Kind: wire.Cleared}}})
		p.model.clear(name)
	default:
		p.log = append(p.log, name+" leaves")
		p.index.Detach(p.owner(name))
		delete(p.owners, name)
		p.model.clear(name)
	}
	p.compare(hashes())
}

func (p *pair) compare(hashes []int64) {
	p.t.Helper()
	got := map[string]int{}
	for _, d := range p.index.Depths(hashes) {
		got[fmt.Sprintf("%s#%d", d.Address, d.Rank)] = d.Blocks
	}
	best := map[string]int{}
	for name := range p.owners {
		want := p.model.depths(name, hashes)
		if got[name] != want {
			p.fail("%s holds %d of %v, want %d", name, got[name], hashes, want)
		}
		address, _, _ := strings.Cut(name, "#")
		best[address] = max(best[address], want)
	}
	matches, deepest := p.index.Match(nil, hashes)
	for _, m := range matches {
		if m.Blocks != best[m.Address] || m.Blocks > deepest {
			p.fail("engine %s matches %d, want %d; best %d", m.Address, m.Blocks, best[m.Address], deepest)
		}
		delete(best, m.Address)
	}
	for address, n := range best {
		if n > 0 {
			p.fail("engine %s with depth %d is not a match", address, n)
		}
	}
	nodes, carried := p.model.all(), 0
	for _, b := range nodes {
		carried += len(b.held)
	}
	if s := p.index.Stats(); s.Blocks != len(nodes) || s.Carried != carried || s.Blocks > s.MaxBlocks {
		p.fail("%d blocks, %d carried; want %d, %d", s.Blocks, s.Carried, len(nodes), carried)
	}
}

func (p *pair) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\nmodel: %s\nafter:\n%s", fmt.Sprintf(format, args...), p.model, strings.Join(p.log, "\n"))
}

func TestIndexEqualsModel(t *testing.T) {
	for _, limit := range []int{1, 3, 10, 1000} {
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, uint64(limit)))
			p := newPair(t, limit)
			for range 150 {
				p.step(r.IntN)
			}
		}
	}
}

// FuzzIndex lets the fuzzer choose the operations.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), byte(4))
	f.Add([]byte{0, 0, 0, 1, 2, 3, 1, 0, 0, 0, 1, 11, 2, 1, 2}, byte(2))
	f.Fuzz(func(t *testing.T, data []byte, limit byte) {
		p := newPair(t, 1+int(limit%32))
		for len(data) > 0 {
			p.step(func(n int) int {
				if len(data) == 0 {
					return 0
				}
				v := int(data[0]) % n
				data = data[1:]
				return v
			})
		}
	})
}
