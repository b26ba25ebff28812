package affinity

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"shunt/runtime/fleet"
)

// DefaultMax is how many bindings a Memory holds unless told otherwise.
const DefaultMax = 1_000_000

// The shards split a store so that picks of different keys seldom wait for each
// other. A small store has fewer, because each shard has its share of the bound.
const (
	mostShards    = 64
	shardBindings = 1024 // a store below this many has one shard
)

// MemoryOptions configure a Memory. The zero options are the defaults.
type MemoryOptions struct {
	// Max bounds the bindings; 0 is DefaultMax. Each shard has an equal share,
	// and when it is full the binding that was not used for longest goes.
	Max int
	// Idle is how long an unused binding lives at least; 0 is DefaultIdle.
	Idle time.Duration
	// Sweep is the time between two removals of idle bindings; 0 is
	// DefaultSweep.
	Sweep time.Duration
	// Now is a monotonic clock; nil is time.Now.
	Now func() time.Time
}

// Memory is the store of one process.
type Memory struct {
	idle, sweep time.Duration
	now         func() time.Time
	seed        maphash.Seed
	shards      []shard
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory(o MemoryOptions) *Memory {
	m := &Memory{idle: o.Idle, sweep: o.Sweep, now: o.Now, seed: maphash.MakeSeed()}
	if m.idle <= 0 {
		m.idle = DefaultIdle
	}
	if m.sweep <= 0 {
		m.sweep = DefaultSweep
	}
	if m.now == nil {
		m.now = time.Now
	}
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	n := min(max(o.Max/shardBindings, 1), mostShards)
	m.shards = make([]shard, n)
	for i := range m.shards {
		m.shards[i].max = o.Max / n
		m.shards[i].entries = make(map[string]*entry)
	}
	return m
}

// shard is a part of the bindings. The list orders them by last use; its clock
// is read under the lock, so that the order is that of the times.
type shard struct {
	mu      sync.Mutex
	max     int
	entries map[string]*entry
	list    list
	counts  Counts
}

// entry is a binding.
type entry struct {
	key        string
	engine     string // id
	used       time.Time
	prev, next *entry
}

// of returns the locked shard of a key.
func (m *Memory) of(key []byte) *shard {
	s := &m.shards[0]
	if n := uint64(len(m.shards)); n > 1 {
		s = &m.shards[maphash.Bytes(m.seed, key)%n]
	}
	s.mu.Lock()
	return s
}

// Bound implements Store. It returns no error.
func (m *Memory) Bound(_ context.Context, key Key, candidates []*fleet.Engine) (*fleet.Engine, error) {
	var space [keySpace]byte
	text := key.Append(space[:0])
	s := m.of(text)
	defer s.mu.Unlock()
	if b := s.entries[string(text)]; b != nil {
		if e := find(candidates, b.engine); e != nil {
			s.use(b, m.now())
			s.counts.Hits++
			return e, nil
		}
	}
	s.counts.Misses++
	return nil, nil
}

// keySpace holds most keys without an allocation.
const keySpace = 512

// Bind implements Store. It returns no error.
func (m *Memory) Bind(_ context.Context, key Key, e *fleet.Engine, candidates []*fleet.Engine) (Binding, error) {
	var space [keySpace]byte
	text := key.Append(space[:0])
	s := m.of(text)
	defer s.mu.Unlock()
	b := s.entries[string(text)]
	if b == nil {
		s.add(&entry{key: string(text), engine: e.ID(), used: m.now()})
		return Binding{Engine: e}, nil
	}
	s.use(b, m.now())
	if live := find(candidates, b.engine); live != nil {
		s.counts.Kept++
		return Binding{Engine: live}, nil
	}
	b.engine = e.ID()
	s.counts.Replaced++
	return Binding{Engine: e, Replaced: true}, nil
}

func (s *shard) use(b *entry, now time.Time) {
	b.used = now
	s.list.remove(b)
	s.list.push(b)
}

func (s *shard) add(b *entry) {
	if len(s.entries) >= s.max {
		s.drop(s.list.oldest)
		s.counts.Evicted++
	}
	s.entries[b.key] = b
	s.list.push(b)
	s.counts.Assigned++
}

func (s *shard) drop(b *entry) {
	delete(s.entries, b.key)
	s.list.remove(b)
}

// Lookup returns the id that a key is bound to, whether or not that engine
// lives, and does not count as use.
func (m *Memory) Lookup(key Key) (engine string, ok bool) {
	s := m.of(key.Append(nil))
	defer s.mu.Unlock()
	if b := s.entries[key.String()]; b != nil {
		return b.engine, true
	}
	return "", false
}

// Len counts the bindings.
func (m *Memory) Len() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}

// Counts implements Store.
func (m *Memory) Counts() Counts {
	var sum Counts
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		sum.Hits += s.counts.Hits
		sum.Misses += s.counts.Misses
		sum.Assigned += s.counts.Assigned
		sum.Replaced += s.counts.Replaced
		sum.Kept += s.counts.Kept
		sum.Expired += s.counts.Expired
		sum.Evicted += s.counts.Evicted
		s.mu.Unlock()
	}
	return sum
}

// Sweep removes the bindings that have been idle for longer than the bound and
// returns how many. A binding that is exactly that old stays.
func (m *Memory) Sweep() int {
	n := 0
	for i := range m.shards {
		n += m.shards[i].sweep(m.now, m.idle)
	}
	return n
}

// sweep costs as much as it removes, because the oldest bindings stand first.
func (s *shard) sweep(now func() time.Time, idle time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, at := 0, now()
	for b := s.list.oldest; b != nil && at.Sub(b.used) > idle; b = s.list.oldest {
		s.drop(b)
		n++
	}
	s.counts.Expired += uint64(n)
	return n
}

// Run sweeps at once and then at every interval until ctx ends.
func (m *Memory) Run(ctx context.Context) error {
	t := time.NewTicker(m.sweep)
	defer t.Stop()
	for {
		m.Sweep()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

// list links bindings from the one unused for longest to the latest.
type list struct{ oldest, latest *entry }

func (l *list) push(b *entry) {
	b.prev, b.next = l.latest, nil
	if l.latest == nil {
		l.oldest = b
	} else {
		l.latest.next = b
	}
	l.latest = b
}

func (l *list) remove(b *entry) {
	if b.prev == nil {
		l.oldest = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next == nil {
		l.latest = b.prev
	} else {
		b.next.prev = b.prev
	}
}
