package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Fleet is the set of live engines of all models. The zero Fleet is empty and
// ready; Close stops its breaker timers.
type Fleet struct {
	mu     sync.Mutex
	models map[string]*members
	views  map[*View]struct{}
	closed bool
}

// members are the engines of one model, by id and sorted by id.
type members struct {
	byID   map[string]*Engine
	sorted []*Engine
}

// Apply makes specs the engines of a model. An engine whose spec is unchanged
// stays the same engine with its counters, breaker and load; a changed one is
// replaced. It refuses repeated ids, and plain beside prefill or decode engines;
// then nothing changes.
func (f *Fleet) Apply(model string, cfg BreakerConfig, specs []Spec) error {
	if err := checkSpecs(model, specs); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.models[model]
	next := &members{byID: make(map[string]*Engine, len(specs))}
	for _, s := range specs {
		next.byID[s.ID] = f.keepOrMake(old, model, cfg, s)
	}
	for _, e := range next.byID {
		next.sorted = append(next.sorted, e)
	}
	slices.SortFunc(next.sorted, func(a, b *Engine) int { return cmp.Compare(a.ID(), b.ID()) })
	for i, e := range next.sorted {
		e.place.Store(int64(i))
	}
	if old != nil {
		for id, e := range old.byID {
			if next.byID[id] != e {
				e.breaker.stop()
			}
		}
	}
	if f.models == nil {
		f.models = make(map[string]*members)
	}
	f.models[model] = next
	for v := range f.views {
		if v.sel.Model == model {
			v.refill(next)
		}
	}
	return nil
}

func (f *Fleet) keepOrMake(old *members, model string, cfg BreakerConfig, s Spec) *Engine {
	if old != nil {
		if e := old.byID[s.ID]; e != nil && e.spec.equal(s) {
			e.breaker.configure(cfg)
			return e
		}
	}
	e := newEngine(model, s, cfg, f.announce)
	if f.closed {
		e.breaker.stop()
	}
	return e
}

func checkSpecs(model string, specs []Spec) error {
	seen := make(map[string]Role, len(specs))
	var plain, pd string
	for _, s := range specs {
		if s.Role < Plain || s.Role > Decode {
			return fmt.Errorf("model %q: engine %q has no role", model, s.ID)
		}
		if _, ok := seen[s.ID]; ok {
			return fmt.Errorf("model %q: engine id %q is used twice", model, s.ID)
		}
		seen[s.ID] = s.Role
		if s.Role == Plain {
			plain = s.ID
		} else {
			pd = s.ID
		}
	}
	if plain != "" && pd != "" {
		return fmt.Errorf("model %q mixes plain engine %q and %s engine %q", model, plain, seen[pd], pd)
	}
	return nil
}

// Remove takes a model and its engines out of the fleet.
func (f *Fleet) Remove(model string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.models[model]
	if old == nil {
		return
	}
	for _, e := range old.sorted {
		e.breaker.stop()
	}
	delete(f.models, model)
	for v := range f.views {
		if v.sel.Model == model {
			v.refill(&members{})
		}
	}
}

// Models lists the model ids that have been applied, sorted.
func (f *Fleet) Models() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.models {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Engines lists a model's engines, healthy or not, sorted by id. The caller
// must not change the slice.
func (f *Fleet) Engines(model string) []*Engine {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.models[model]; m != nil {
		return m.sorted
	}
	return nil
}

// Close stops the breaker timers. Views keep their last lists.
func (f *Fleet) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, m := range f.models {
		for _, e := range m.sorted {
			e.breaker.stop()
		}
	}
}

// announce republishes the views that hold an engine whose breaker changed.
func (f *Fleet) announce(e *Engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for v := range f.views {
		if v.holds(e) {
			v.publish()
		}
	}
}

// Selector names the engines of a group: those of a model and role that are
// members and carry the labels.
type Selector struct {
	Model string
	Role  Role
	// All takes every id; otherwise IDs are the members, none if empty.
	All    bool
	IDs    []string
	Labels map[string]string
}

// Key is unique per selection, whatever order the ids came in.
func (s Selector) Key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %d %t", s.Model, s.Role, s.All)
	ids := slices.Clone(s.IDs)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		fmt.Fprintf(&b, " %q", id)
	}
	names := make([]string, 0, len(s.Labels))
	for n := range s.Labels {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(&b, " %q=%q", n, s.Labels[n])
	}
	return b.String()
}

// View is the live candidate list of a selector: healthy engines sorted by id.
type View struct {
	sel     Selector
	fleet   *Fleet
	members []*Engine // guarded by fleet.mu; healthy or not, sorted by id
	healthy atomic.Pointer[[]*Engine]
}

// Watch returns a view of a selector. Each view costs something at every change,
// so those with equal selectors are worth sharing by Selector.Key.
func (f *Fleet) Watch(sel Selector) *View {
	v := &View{sel: sel, fleet: f}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.models[sel.Model]
	if m == nil {
		m = &members{}
	}
	v.refill(m)
	if f.views == nil {
		f.views = make(map[*View]struct{})
	}
	f.views[v] = struct{}{}
	return v
}

// Close ends the view: it keeps its last list, for those who still read it.
func (v *View) Close() {
	v.fleet.mu.Lock()
	defer v.fleet.mu.Unlock()
	delete(v.fleet.views, v)
}

// Engines is the current candidate list, immutable and sorted by id.
func (v *View) Engines() []*Engine { return *v.healthy.Load() }

func (v *View) refill(m *members) {
	v.members = nil
	if v.sel.All {
		for _, e := range m.sorted {
			v.take(e)
		}
	} else {
		for _, id := range v.sel.IDs {
			if e := m.byID[id]; e != nil {
				v.take(e)
			}
		}
		slices.SortFunc(v.members, func(a, b *Engine) int { return cmp.Compare(a.ID(), b.ID()) })
		v.members = slices.Compact(v.members)
	}
	v.publish()
}

func (v *View) take(e *Engine) {
	if e.Role() != v.sel.Role {
		return
	}
	for name, value := range v.sel.Labels {
		if got, ok := e.spec.Labels[name]; !ok || got != value {
			return
		}
	}
	v.members = append(v.members, e)
}

func (v *View) holds(e *Engine) bool { return Contains(v.members, e) }

func (v *View) publish() {
	list := make([]*Engine, 0, len(v.members))
	for _, e := range v.members {
		if e.Admits() {
			list = append(list, e)
		}
	}
	v.healthy.Store(&list)
}

// Contains reports whether exactly this engine, not merely its id, is in a list
// sorted by id. In a full list an engine stands at its place among the engines of
// its model; a search by id, which reads a distant engine at every step, is for
// the others.
func Contains(list []*Engine, e *Engine) bool {
	if i := e.place.Load(); i < int64(len(list)) && list[i] == e {
		return true
	}
	i, ok := slices.BinarySearchFunc(list, e, func(a, b *Engine) int { return cmp.Compare(a.ID(), b.ID()) })
	return ok && list[i] == e
}
