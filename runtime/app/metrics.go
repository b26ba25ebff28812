package app

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"shunt/runtime/state/affinity"
)

// write adds the metrics of the shared state that are computed when they are read.
func (s *services) write(w io.Writer) {
	s.mu.Lock()
	models, bindings, index := s.models, s.bindings, s.index
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(models)) {
		c := models[id].caches
		if c == nil {
			continue
		}
		for _, d := range []struct {
			name  string
			count uint64
		}{
			{"hit", c.Hits.Load()}, {"miss", c.Misses.Load()}, {"queued", c.Queued.Load()},
			{"saturated", c.Saturated.Load()}, {"unavailable", c.Unavailable.Load()},
		} {
			fmt.Fprintf(w, "shunt_cache_decisions_total{model=%q,decision=%q} %d\n", id, d.name, d.count)
		}
		for _, d := range []struct {
			name  string
			count uint64
		}{
			{"admission_evaluated", c.Evaluated.Load()}, {"admission_refused", c.Refused.Load()},
			{"guard_compared", c.Compared.Load()}, {"guard_overruled", c.Overruled.Load()},
		} {
			fmt.Fprintf(w, "shunt_cache_%s_total{model=%q} %d\n", d.name, id, d.count)
		}
	}
	if index != nil {
		x := index.Stats()
		for _, g := range []struct {
			name  string
			value uint64
		}{
			{"blocks", uint64(x.Blocks)}, {"bytes", uint64(x.Bytes)},
			{"evicted_blocks", uint64(x.Evicted)}, {"orphan_chains", uint64(x.Orphans)},
		} {
			fmt.Fprintf(w, "shunt_prefix_index_%s %d\n", g.name, g.value)
		}
	}
	fmt.Fprintf(w, "shunt_load_tracked_engines %d\n", s.table.Engines())
	if bindings != nil {
		bindings.write(w)
	}
}

func (b *bindings) write(w io.Writer) {
	c := b.store.Counts()
	for _, d := range []struct {
		name  string
		count uint64
	}{
		{"hit", c.Hits}, {"miss", c.Misses}, {"assigned", c.Assigned}, {"replaced", c.Replaced}, {"kept", c.Kept},
		{"expired", c.Expired}, {"evicted", c.Evicted}, {"failed", c.Failed}, {"skipped", c.Skipped},
	} {
		fmt.Fprintf(w, "shunt_affinity_total{outcome=%q} %d\n", d.name, d.count)
	}
	switch s := b.store.(type) {
	case *affinity.Memory:
		fmt.Fprintf(w, "shunt_affinity_bindings %d\n", s.Len())
	case *affinity.Redis:
		down := 0
		if s.Down() {
			down = 1
		}
		fmt.Fprintf(w, "shunt_affinity_down %d\n", down)
	}
}
