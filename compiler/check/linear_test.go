//go:build unix

package check_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"shunt/compiler/check"
	"shunt/compiler/config"
	"shunt/compiler/source"
)

// large is a way to write a configuration with n engines and n buckets.
type large struct {
	name           string
	engine, bucket func(i, n int) string
}

// larges have in common that a rule which compares every bucket with every other
// one, or with every engine, takes the square of their size.
func larges() []large {
	plainEngine := func(labels string) func(i, n int) string {
		return func(i, _ int) string {
			return fmt.Sprintf("{id: E%d, url: \"http://10.0.%d.%d\", role: plain, labels: {"+labels+"}}", i, i/250, i%250, i)
		}
	}
	pair := func(i, _ int) string {
		return fmt.Sprintf("{id: E%d, url: \"http://10.0.%d.%d\", role: %s, labels: {zone: z%d}}", i, i/250, i%250, [...]string{"prefill", "decode"}[i%2], i%9)
	}
	return []large{
		{"each bucket has an engine of its own", plainEngine("n: n%d"), func(i, _ int) string {
			return fmt.Sprintf("{id: b%d, rank: %d, limits: {min: %d, max: %d}, groups: {plain: {worker_ids: [E%d]}}}", i, i, 10*i, 10*i+9, i)
		}},
		{"every bucket has every engine", plainEngine("n: n%d"), func(i, n int) string {
			return fmt.Sprintf("{id: b%d, rank: %d, limits: {max: %d}, groups: {plain: {policy: {type: random, admission: {max_inflight_requests: %d}}}}}", i, n-i, 10*i+9, i%2*9+1)
		}},
		{"every pair of every bucket by label", pair, func(i, _ int) string {
			return fmt.Sprintf("{id: b%d, limits: {max: %d}, groups: {pd: {prefill: {}, decode: {}, match_labels: [zone]}}}", i, 10*i+9)
		}},
		{"each bucket selects by a label of its own", plainEngine("gpu: h100, n: n%d"), func(i, _ int) string {
			return fmt.Sprintf("{id: b%d, limits: {max: %d}, groups: {plain: {labels: {gpu: h100, n: n%d}}}}", i, 10*i+9, i)
		}},
		{"every bucket has the same capacity and rank", plainEngine("n: n%d"), func(i, n int) string {
			return fmt.Sprintf("{id: b%d, limits: {min: %d}, groups: {plain: {worker_ids: [E%d, E%d]}}}", i, n-i, i, (i+1)%n)
		}},
		{"each engine has a label that is nearly read", plainEngine("zone%[4]d: x"), func(i, _ int) string {
			return fmt.Sprintf("{id: b%d, limits: {max: %d}, groups: {plain: {worker_ids: [E%d], labels: {zine%d: x}}}}", i, 10*i+9, i, i)
		}},
		{"every bucket has a warning", plainEngine("n: n%d"), func(i, _ int) string {
			return fmt.Sprintf("{id: b%d, limits: {min: %d, max: %d}, max_context_tokens: %d, groups: {plain: {labels: {n: x}, policy: {type: random, admission: {max_kv_tokens: 0}}}}}", i, 20*i, 20*i+9, 20*i+5)
		}},
	}
}

func (l large) text(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\nmodels:\n- id: m\n  discovery:\n    static:\n      engines:\n")
	for i := range n {
		b.WriteString("      - " + l.engine(i, n) + "\n")
	}
	b.WriteString("  buckets:\n")
	for i := range n {
		b.WriteString("  - " + l.bucket(i, n) + "\n")
	}
	return b.String()
}

// judging is the processor time that the rules take, the least of several runs.
func (l large) judging(t *testing.T, n int) time.Duration {
	t.Helper()
	tree, list := source.Read(context.Background(), source.Options{}, []source.Input{{Name: "c.yaml", Reader: strings.NewReader(l.text(n))}})
	if tree == nil {
		t.Fatal(list)
	}
	c, err := config.Decode(tree.JSON())
	if err != nil {
		t.Fatal(err)
	}
	least := time.Hour
	for range 4 {
		before := processorTime(t)
		check.Rules(tree, c, nil)
		least = min(least, processorTime(t)-before)
	}
	return least
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestRulesAreLinear compares the processor time of the rules for a size and for
// eight times that size: linear rules take eight times as long and a little more,
// quadratic ones 64 times.
func TestRulesAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it judges large configurations")
	}
	const n, factor, most = 400, 8, 28
	for _, l := range larges() {
		t.Run(l.name, func(t *testing.T) {
			small, large := l.judging(t, n), l.judging(t, factor*n)
			t.Logf("%v for %d, %v for %d", small, n, large, factor*n)
			if large > most*max(small, time.Millisecond) {
				t.Errorf("%v for %d buckets, %v for %d", small, n, large, factor*n)
			}
		})
	}
}
