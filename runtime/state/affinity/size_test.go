package affinity_test

import (
	"fmt"
	"runtime"
	"testing"

	"shunt/runtime/state/affinity"
)

// BenchmarkMemorySize reports what a binding costs, its key included.
func BenchmarkMemorySize(b *testing.B) {
	const n = 200_000
	all := engines(b, "a")
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := affinity.NewMemory(affinity.MemoryOptions{})
		for i := range n {
			name := fmt.Sprintf("session-%016d-%08d", i, i)
			if _, err := m.Bind(b.Context(), key(name), all[0], all); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/binding")
		runtime.KeepAlive(m)
	}
}
