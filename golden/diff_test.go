package golden_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/plandiff"
	"shunt/compiler/source"
	"shunt/golden"
	"shunt/runtime/assemble"
	"shunt/runtime/fleet"
	"shunt/runtime/routing"
	"shunt/schema/plan"
)

// TestDiff compares the two configurations of a case and writes the difference in
// every form.
func TestDiff(t *testing.T) {
	schemas, err := filepath.Abs("../compiler/plandiff")
	if err != nil {
		t.Fatal(err)
	}
	golden.Run(t, "diff/*.txtar", func(t *testing.T, c *golden.Case) {
		options, _ := arrange(t, c, c.Inputs...)
		old := compileFiles(t.Context(), options, "old.yaml")
		now := compileFiles(t.Context(), options, "new.yaml")
		if old.Plan == nil || now.Plan == nil {
			t.Fatalf("no plan:\n%s\n%s", old.Findings, now.Findings)
		}
		d := plandiff.Compare("old.yaml", old.Plan, "new.yaml", now.Plan)
		var text, markdown strings.Builder
		if err := d.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if err := d.WriteMarkdown(&markdown); err != nil {
			t.Fatal(err)
		}
		c.Want("diff.txt", text.String())
		c.Want("diff.md", markdown.String())
		data, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		matches(t, filepath.Join(schemas, "diff.schema.json"), data)
		if len(d.Routes)+len(d.Changes) <= 8 {
			c.Want("diff.json", string(data))
		}
	})
}

// lists asks the resolver of a plan which buckets it offers, and which of them
// have engines.
type lists struct {
	resolver *routing.Resolver
	body     *plan.Body
}

func listsOf(t *testing.T, d *plan.Document) lists {
	t.Helper()
	f := new(fleet.Fleet)
	t.Cleanup(f.Close)
	if err := assemble.Engines(&d.Body, f); err != nil {
		t.Fatal(err)
	}
	r, err := assemble.Build(&d.Body, assemble.State{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return lists{r.Resolvers["m"], &d.Body}
}

func (l lists) at(t *testing.T, input, peak int64) (ids []string, served bool) {
	t.Helper()
	return l.aimed(t, input, peak, routing.Targets{})
}

func (l lists) aimed(t *testing.T, input, peak int64, targets routing.Targets) (ids []string, served bool) {
	t.Helper()
	m, err := l.resolver.ResolveFor(input, peak, targets)
	if err != nil {
		t.Fatal(err)
	}
	for b := m.Next(); b != nil; b = m.Next() {
		ids = append(ids, b.ID)
		served = served || len(b.Groups.(routing.PlainGroups).Plain.Engines.Engines()) > 0
	}
	return ids, served
}

// mutate changes a few slots: bounds by one, ranks, engines, names; it removes
// and adds some.
func mutate(random *rand.Rand, slots []slot) []slot {
	out := slices.Clone(slots)
	for range 1 + random.IntN(3) {
		i := random.IntN(len(out))
		s := &out[i]
		switch random.IntN(9) {
		case 0:
			s.high = max(min(s.high, longest)-1, s.low)
		case 1:
			s.context = max(min(s.context, longest)-1, s.low, 1)
		case 2:
			s.low = min(s.low+1, s.capacity())
		case 3:
			s.rank = random.Int64N(3)
		case 4:
			s.engines = []int{}
		case 5:
			s.id = fmt.Sprintf("n%d", random.IntN(1000))
		case 6:
			if len(out) > 1 {
				out = slices.Delete(out, i, i+1)
			}
		case 7:
			more := randomSlots(random)[0]
			more.id = fmt.Sprintf("m%d", random.IntN(1000))
			out = append(out, more)
		case 8:
			return randomSlots(random)
		}
	}
	return out
}

// TestDiffIsExact compares random plans and holds the routes against what the
// resolvers answer for every input and peak: exactly what changed is listed.
func TestDiffIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	effects := make(map[plandiff.Effect]int)
	for range 400 {
		before := randomSlots(random)
		if random.IntN(8) == 0 {
			before[0].engines = []int{}
		}
		after := mutate(random, before)
		a, b := compileSlots(t, before), compileSlots(t, after)
		d := plandiff.Compare("old", a, "new", b)
		renamed := renamesOf(d)
		old, now := listsOf(t, a), listsOf(t, b)
		for input := int64(1); input < longest+3; input++ {
			for peak := input - 1; peak < longest+3; peak++ {
				p := peak
				if peak < input {
					p = 0 // unknown
				}
				route := oneRoute(t, d, input, p)
				compareRoute(t, route, renamed, old, now, input, p)
				if route != nil {
					effects[route.Effect]++
				}
			}
		}
		if t.Failed() {
			var text strings.Builder
			_ = d.WriteText(&text)
			t.Fatalf("%s\n%s\n%s", config(before), config(after), text.String())
		}
	}
	for _, e := range []plandiff.Effect{plandiff.Unroutable, plandiff.Unserved, plandiff.Routable, plandiff.First, plandiff.Fallback} {
		if effects[e] == 0 {
			t.Errorf("no case had the effect %s", e)
		}
	}
}

// TestDiffOfTargetsIsExact does the same with latency targets: every target at an
// estimate, between two and beyond all, in every pair of modes.
func TestDiffOfTargetsIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 13))
	modes := []string{"disabled", "slo_first", "best_effort"}
	mode := func() string {
		return fmt.Sprintf("  ttft_slo: %s\n  tps_slo: %s\n", modes[random.IntN(3)], modes[random.IntN(3)])
	}
	estimate := func(slots []slot) []slot {
		out := slices.Clone(slots)
		for i := range out {
			if random.IntN(2) == 0 {
				out[i].ttft = random.Int64N(4)
			}
			if random.IntN(2) == 0 {
				out[i].tps = float64(random.IntN(4)) / 2
			}
		}
		return out
	}
	targeted, whole, unchanged := 0, 0, 0
	for range 150 {
		before := estimate(randomSlots(random))
		after, was := before, mode()
		is := was
		switch random.IntN(4) {
		case 0:
			is = mode()
		case 1:
			after = mutate(random, before)
		case 2:
			after = estimate(before)
		case 3:
			after, is = estimate(mutate(random, before)), mode()
		}
		a, b := planOf(t, configWith(before, was)), planOf(t, configWith(after, is))
		d := plandiff.Compare("old", a, "new", b)
		renamed := renamesOf(d)
		old, now := listsOf(t, a), listsOf(t, b)
		for input := int64(1); input < longest+3; input += 2 {
			for peak := input; peak < longest+3; peak += 3 {
				for ttft := range uint64(5) {
					for tps := range 8 {
						targets := routing.Targets{TTFTMS: ttft, HasTTFT: ttft > 0, TPS: float64(tps) / 4, HasTPS: tps > 0}
						route := aimedRoute(t, d, input, peak, targets)
						compareAimed(t, route, renamed, old, now, input, peak, targets)
						switch {
						case route == nil && len(d.Routes) > 0:
							unchanged++
						case route != nil && (route.TTFT != nil || route.TPS != nil):
							targeted++
						case route != nil:
							whole++
						}
					}
				}
			}
		}
		if t.Failed() {
			var text strings.Builder
			_ = d.WriteText(&text)
			t.Fatalf("%s\n%s\n%s", configWith(before, was), configWith(after, is), text.String())
		}
	}
	if targeted == 0 || whole == 0 || unchanged == 0 {
		t.Errorf("%d with certain targets, %d with any, %d unchanged", targeted, whole, unchanged)
	}
}

func compileSlots(t *testing.T, slots []slot) *plan.Document {
	t.Helper()
	return planOf(t, config(slots))
}

func planOf(t *testing.T, text string) *plan.Document {
	t.Helper()
	r := compiler.Compile(t.Context(), compiler.Options{}, []source.Input{{Name: "c.yaml", Reader: strings.NewReader(text)}})
	if r.Plan == nil {
		t.Fatalf("no plan:\n%s\n%s", r.Findings, text)
	}
	return r.Plan
}

// oneRoute is the route that has an input and peak, nil if none has.
func oneRoute(t *testing.T, d *plandiff.Diff, input, peak int64) (found *plandiff.Route) {
	t.Helper()
	return aimedRoute(t, d, input, peak, routing.Targets{})
}

// aimedRoute is the route that also has the latency targets.
func aimedRoute(t *testing.T, d *plandiff.Diff, input, peak int64, targets routing.Targets) (found *plandiff.Route) {
	t.Helper()
	for i := range d.Routes {
		r := &d.Routes[i]
		in := input >= r.Input.From && (r.Input.To == nil || input <= *r.Input.To)
		need := max(input, peak)
		in = in && (r.Peak.From == nil || need >= *r.Peak.From) && (r.Peak.To == nil || need <= *r.Peak.To)
		if x := r.TTFT; x != nil && !targets.HasTTFT {
			in = in && x.None
		} else if x != nil {
			in = in && (x.From == nil || int64(targets.TTFTMS) >= *x.From) && (x.To == nil || int64(targets.TTFTMS) <= *x.To)
		}
		if x := r.TPS; x != nil && !targets.HasTPS {
			in = in && x.None
		} else if x != nil {
			in = in && (x.Above == nil || targets.TPS > *x.Above) && (x.To == nil || targets.TPS <= *x.To)
		}
		if in && found != nil {
			t.Errorf("input %d, peak %d is in two routes: %s; %s", input, peak, found, r)
		}
		if in {
			found = r
		}
	}
	return found
}

func compareRoute(t *testing.T, route *plandiff.Route, renamed map[string]string, old, now lists, input, peak int64) {
	t.Helper()
	compareAimed(t, route, renamed, old, now, input, peak, routing.Targets{})
}

func compareAimed(t *testing.T, route *plandiff.Route, renamed map[string]string, old, now lists, input, peak int64, targets routing.Targets) {
	t.Helper()
	a, served := old.aimed(t, input, peak, targets)
	b, left := now.aimed(t, input, peak, targets)
	same := renamedAll(a, renamed)
	var want plandiff.Effect
	switch {
	case len(a) > 0 && len(b) == 0:
		want = plandiff.Unroutable
	case served && !left:
		want = plandiff.Unserved
	case slices.Equal(same, b):
	case len(a) == 0:
		want = plandiff.Routable
	case same[0] != b[0]:
		want = plandiff.First
	default:
		want = plandiff.Fallback
	}
	if route == nil {
		if want != "" {
			t.Errorf("input %d, peak %d, %+v: no route, want %s: %v to %v", input, peak, targets, want, a, b)
		}
		return
	}
	breaks := want == plandiff.Unserved || want == plandiff.Unroutable && served
	if want != plandiff.First && want != plandiff.Fallback {
		// One route is for all targets, whose lists are those without targets.
		a, _ = old.at(t, input, peak)
		b, _ = now.at(t, input, peak)
	}
	if route.Effect != want || !slices.Equal(route.Old.IDs, a) || !slices.Equal(route.New.IDs, b) || (route.Class == plandiff.Breaking) != breaks {
		t.Errorf("input %d, peak %d, %+v: %s (%s, %s), want %s: %v to %v", input, peak, targets, route, route.Class, route.Effect, want, a, b)
	}
}

// TestDiffOfManyBuckets has so many candidates for each length that routes are
// not split wherever one ends; the requests that they list are still exact.
func TestDiffOfManyBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 12))
	varies := 0
	for range 6 {
		var before []slot
		for len(before) < 90 {
			for _, s := range randomSlots(random) {
				s.id, s.low = fmt.Sprintf("b%d", len(before)), s.low/4
				before = append(before, s)
			}
		}
		after := before
		for range 3 {
			after = mutate(random, after)
		}
		a, b := compileSlots(t, before), compileSlots(t, after)
		d := plandiff.Compare("old", a, "new", b)
		old, now := listsOf(t, a), listsOf(t, b)
		for _, r := range d.Routes {
			if r.Varies {
				varies++
			}
		}
		renamed := renamesOf(d)
		for input := int64(1); input < longest+3; input++ {
			for peak := input; peak < longest+3; peak++ {
				before, served := old.at(t, input, peak)
				after, left := now.at(t, input, peak)
				differs := !slices.Equal(renamedAll(before, renamed), after) || served && !left
				route := oneRoute(t, d, input, peak)
				if (route != nil) != differs {
					t.Errorf("input %d, peak %d: route %v, %v to %v", input, peak, route, before, after)
				}
				if route != nil && (route.Class == plandiff.Breaking) != (served && !left) {
					t.Errorf("input %d, peak %d: %s is %s", input, peak, route, route.Class)
				}
			}
		}
	}
	if varies == 0 {
		t.Error("no route was left whole")
	}
}

func renamesOf(d *plandiff.Diff) map[string]string {
	renamed := make(map[string]string)
	for _, c := range d.Changes {
		if c.Kind == plandiff.BucketRenamed {
			renamed[strings.Trim(string(c.Old), `"`)] = strings.Trim(string(c.New), `"`)
		}
	}
	return renamed
}

func renamedAll(ids []string, renamed map[string]string) []string {
	out := slices.Clone(ids)
	for i, id := range out {
		if name, ok := renamed[id]; ok {
			out[i] = name
		}
	}
	return out
}
