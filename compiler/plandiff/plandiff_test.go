package plandiff_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"shunt/compiler/plandiff"
	"shunt/schema/plan"
)

// seal makes a plan of one model of plain buckets.
func seal(t testing.TB, engines []plan.Engine, buckets []plan.Bucket) *plan.Document {
	t.Helper()
	table, ok := plan.Breakpoints(buckets, plan.MaxRuns)
	if !ok {
		t.Fatal("too many runs")
	}
	m := plan.Model{
		ID: "m", Breaker: plan.Breaker{Threshold: 3, CoolDownMS: 1000},
		Discovery: plan.Discovery{Static: &plan.StaticDiscovery{Engines: engines}},
		Buckets:   buckets, Breakpoints: table,
	}
	return &plan.Document{Format: plan.Format, Digest: digestOf(&m), Body: plan.Body{Models: []plan.Model{m}}}
}

// digestOf tells two models apart, as far as these tests change them.
func digestOf(m *plan.Model) string {
	var b strings.Builder
	for i := range m.Buckets {
		k := &m.Buckets[i]
		if k.TTFTMS != nil {
			fmt.Fprint(&b, *k.TTFTMS)
		}
		fmt.Fprint(&b, k.ID, k.Capacity(), k.Groups.Plain.WorkerIDs, k.Groups.Plain.Policy.Type)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(b.String()+fmt.Sprint(m.Engines()))))
}

func fleetOf(n int) []plan.Engine {
	out := make([]plan.Engine, n)
	for i := range out {
		out[i] = plan.Engine{ID: fmt.Sprintf("e%05d", i), URL: fmt.Sprintf("http://e%d", i), Role: plan.Plain}
	}
	return out
}

// nested are buckets that all begin at 0, so that a length has up to n
// candidates; disjoint ones follow each other.
func ranges(n int, nested bool) []plan.Bucket {
	out := make([]plan.Bucket, n)
	for i := range out {
		ids := []string{fmt.Sprintf("e%05d", i%100)}
		out[i] = plan.Bucket{ID: fmt.Sprintf("b%05d", i), Max: new(int64(100 * (i + 1))), MaxContextTokens: new(int64(200*n + i))}
		if !nested {
			out[i].Min = new(int64(100*i + 1))
		}
		out[i].Groups.Plain = &plan.Group{WorkerIDs: &ids, Policy: plan.Policy{Type: plan.RoundRobin}}
	}
	return out
}

// TestAlikeChangesAreOne changes the policy of many buckets.
func TestAlikeChangesAreOne(t *testing.T) {
	after := ranges(500, false)
	for i := range after {
		after[i].Groups.Plain.Policy.Type = plan.Random
	}
	d := plandiff.Compare("a", seal(t, fleetOf(100), ranges(500, false)), "b", seal(t, fleetOf(100), after))
	if len(d.Changes) != 1 || len(d.Changes[0].Places) != 500 || len(d.Routes) != 0 {
		t.Fatalf("%d changes, %d routes", len(d.Changes), len(d.Routes))
	}
	if got := d.Changes[0].String(); !strings.Contains(got, "b00007 and 492 more, policy.type: \"round_robin\" -> \"random\"") {
		t.Error(got)
	}
}

// TestEngineJoinsEveryGroup adds an engine to groups that take all.
func TestEngineJoinsEveryGroup(t *testing.T) {
	open := func() []plan.Bucket {
		out := ranges(300, false)
		for i := range out {
			out[i].Groups.Plain.WorkerIDs = nil
		}
		return out
	}
	d := plandiff.Compare("a", seal(t, fleetOf(3), open()), "b", seal(t, fleetOf(5), open()))
	if len(d.Changes) != 1 || d.Changes[0].Kind != plandiff.EngineAdded || len(d.Changes[0].Engines) != 2 || len(d.Changes[0].To) != 300 {
		t.Fatalf("%+v", d.Changes)
	}
}

func TestOnlyBreaking(t *testing.T) {
	after := ranges(4, false)[:3]
	after[0].Groups.Plain.Policy.Type = plan.Random
	d := plandiff.Compare("a", seal(t, fleetOf(4), ranges(4, false)), "b", seal(t, fleetOf(4), after))
	got := d.OnlyBreaking()
	if d.Empty() || d.Same || len(got.Routes) != 1 || len(got.Changes) != 0 || got.Routes[0].Effect != plandiff.Unroutable {
		t.Errorf("%+v", got)
	}
	if got.Count != d.Count {
		t.Errorf("counts %v and %v", got.Count, d.Count)
	}
}

// TestMarkdownFits has more differences than a comment takes, and names that
// Markdown would read.
func TestMarkdownFits(t *testing.T) {
	before, after := ranges(3000, false), ranges(3000, false)
	for i := range after {
		*after[i].Max--
		after[i].ID, before[i].ID = after[i].ID+"|<b>@team`", before[i].ID+"|<b>@team`"
	}
	d := plandiff.Compare("a", seal(t, fleetOf(100), before), "b", seal(t, fleetOf(100), after))
	var b strings.Builder
	if err := d.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if len(text) > 65_536 || !strings.Contains(text, " more |") || !strings.Contains(text, "</details>") {
		t.Errorf("%d bytes, ends %q", len(text), text[len(text)-100:])
	}
	if strings.Contains(text, "@team") || strings.Contains(text, "<b>@") || strings.Contains(text, "b00000|") {
		t.Error("a name is not escaped")
	}
}

// aim gives a plan of one model a mode and its buckets estimates.
func aim(d *plan.Document, estimate func(i int) int64) *plan.Document {
	m := &d.Body.Models[0]
	m.SLO = &plan.SLO{TTFT: plan.SLOFirst, TPS: plan.SLODisabled}
	for i := range m.Buckets {
		m.Buckets[i].TTFTMS = new(estimate(i))
	}
	d.Digest = digestOf(m)
	return d
}

// TestTargetsOfManyBuckets has more candidates for a length than are sorted for
// every target, which the difference says.
func TestTargetsOfManyBuckets(t *testing.T) {
	f := func(n int, nested, shorter bool, routes, vary int, note bool) {
		t.Helper()
		before, after := ranges(n, nested), ranges(n, nested)
		if shorter {
			*after[n/2].Max--
		}
		a := aim(seal(t, fleetOf(100), before), func(i int) int64 { return int64(i + 1) })
		b := aim(seal(t, fleetOf(100), after), func(i int) int64 {
			if i == n-1 {
				return 1
			}
			return int64(i + 1)
		})
		d := plandiff.Compare("a", a, "b", b)
		if got := len(d.Routes); got < routes || got > 10_000 {
			t.Fatalf("%d buckets: %d routes, want %d or more", n, got, routes)
		}
		for i := range d.Routes {
			if strings.Contains(d.Routes[i].String(), "without latency targets: ") && d.Routes[i].TargetsVary {
				vary--
			}
		}
		if vary != 0 {
			t.Errorf("%d buckets: %d routes of requests without targets are missing", n, vary)
		}
		var text strings.Builder
		if err := d.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "; requests with a latency target may try buckets in another order") != note {
			t.Errorf("%d buckets:\n%s", n, &text)
		}
	}
	f(100, true, false, 100, 0, true) // lengths of few buckets are exact
	f(2000, true, true, 900, 1, true)
	f(2000, false, true, 1, 0, false)
	f(3, true, false, 3, 0, false)
}

// BenchmarkCompare changes one bound, or the order of all buckets, of a plan of
// 10,000 buckets.
func BenchmarkCompare(b *testing.B) {
	for _, nested := range []bool{false, true} {
		for _, all := range []bool{false, true} {
			b.Run(fmt.Sprintf("nested=%v/all=%v", nested, all), func(b *testing.B) {
				after := ranges(10_000, nested)
				*after[5000].Max--
				if all {
					for i := range after {
						*after[i].MaxContextTokens = int64(200*10_000 + (i*7919)%10_000)
					}
				}
				x, y := seal(b, fleetOf(100), ranges(10_000, nested)), seal(b, fleetOf(100), after)
				for b.Loop() {
					plandiff.Compare("a", x, "b", y)
				}
			})
		}
	}
}
