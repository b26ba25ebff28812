package check_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"shunt/compiler/check"
	"shunt/compiler/source"
)

// fleet writes a configuration of one model with n PD buckets and two engines
// for each stage of each bucket.
func fleet(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\nmodels:\n- id: m\n  discovery:\n    static:\n      engines:\n")
	for i := range 2 * n {
		fmt.Fprintf(&b, "      - {id: P%d, url: \"http://10.0.0.1:%d\", role: prefill, bootstrap_port: 8998}\n", i, 1000+i)
		fmt.Fprintf(&b, "      - {id: D%d, url: \"http://10.0.0.2:%d\", role: decode}\n", i, 1000+i)
	}
	b.WriteString("  buckets:\n")
	for i := range n {
		fmt.Fprintf(&b, `  - id: bucket-%d
    rank: %d
    limits: {min: %d, max: %d}
    max_context_tokens: %d
    groups:
      pd:
        prefill:
          worker_ids: [P%d, P%d]
          policy:
            type: power_of_two
            choices: 3
            admission: {max_running_requests: 64, max_kv_tokens: 1048576}
        decode:
          worker_ids: [D%d, D%d]
          policy:
            type: power_of_two
            admission: {max_running_requests: 64}
`, i, i, i, i+4096, i+8192, 2*i, 2*i+1, 2*i, 2*i+1)
	}
	return b.String()
}

func BenchmarkShape(b *testing.B) {
	for _, n := range [...]int{2, 200, 2_000, 10_000} {
		tree, l := source.Read(context.Background(), source.Options{}, []source.Input{{Name: "fleet.yaml", Reader: strings.NewReader(fleet(n))}})
		if len(l) > 0 {
			b.Fatal(l)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if l := check.Shape(context.Background(), tree); len(l) > 0 {
					b.Fatal(l)
				}
			}
		})
	}
}
