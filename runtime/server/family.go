package server

import (
	"sync"

	"github.com/VictoriaMetrics/metrics"
)

// family is one metric with its label values as a comparable key. Looking up a
// known key allocates nothing.
type family[K comparable, M any] struct {
	make func(name string) M
	name func(K) string
	mu   sync.RWMutex
	by   map[K]M
}

func (f *family[K, M]) init(makeMetric func(string) M, name func(K) string) {
	f.make, f.name, f.by = makeMetric, name, make(map[K]M)
}

// of returns the metric of a key, made on first use.
func (f *family[K, M]) of(k K) M {
	f.mu.RLock()
	m, ok := f.by[k]
	f.mu.RUnlock()
	if ok {
		return m
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok = f.by[k]; !ok {
		m = f.make(f.name(k))
		f.by[k] = m
	}
	return m
}

// drop unregisters the metrics whose keys are gone.
func (f *family[K, M]) drop(set *metrics.Set, gone func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.by {
		if gone(k) {
			set.UnregisterMetric(f.name(k))
			delete(f.by, k)
		}
	}
}
