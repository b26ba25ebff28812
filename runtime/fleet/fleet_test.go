package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"shunt/runtime/fleet"
)

// specs makes specs from words "id", "id=role" or "id=role@url".
func specs(words string) []fleet.Spec {
	var out []fleet.Spec
	for word := range strings.FieldsSeq(words) {
		word, url, _ := strings.Cut(word, "@")
		id, role, _ := strings.Cut(word, "=")
		s := fleet.Spec{ID: id, URL: "http://" + id + url, Role: fleet.Plain}
		if role != "" {
			s.Role, _ = fleet.ParseRole(role)
		}
		out = append(out, s)
	}
	return out
}

func apply(t *testing.T, f *fleet.Fleet, model, words string) {
	t.Helper()
	if err := f.Apply(model, fleet.BreakerConfig{Threshold: 1, CoolDown: time.Hour}, specs(words)); err != nil {
		t.Fatal(err)
	}
}

func ids(engines []*fleet.Engine) string {
	var out []string
	for _, e := range engines {
		out = append(out, e.ID())
	}
	return strings.Join(out, " ")
}

func find(t *testing.T, f *fleet.Fleet, model, id string) *fleet.Engine {
	t.Helper()
	for _, e := range f.Engines(model) {
		if e.ID() == id {
			return e
		}
	}
	t.Fatalf("no engine %q", id)
	return nil
}

func TestApplyKeepsAndReplaces(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	apply(t, &f, "m", "b a c")
	if got := ids(f.Engines("m")); got != "a b c" {
		t.Fatalf("engines %q, want them sorted", got)
	}
	a, b := find(t, &f, "m", "a"), find(t, &f, "m", "b")
	lease, err := a.Lease(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	a.SetLoad(&fleet.Load{Running: 7})
	apply(t, &f, "m", "d b@-moved a")
	if got := ids(f.Engines("m")); got != "a b d" {
		t.Errorf("engines %q", got)
	}
	kept := find(t, &f, "m", "a")
	if kept != a || kept.Inflight() != 1 || kept.Load() == nil {
		t.Error("an unchanged engine is not the same engine with its counters")
	}
	if find(t, &f, "m", "b") == b {
		t.Error("an engine with another address is still the same engine")
	}
	lease.Release()
}

func TestApplyReplacesOnEveryChange(t *testing.T) {
	base := fleet.Spec{ID: "a", URL: "http://a", Role: fleet.Prefill, BootstrapPort: 1, Labels: map[string]string{"zone": "x"}}
	f := func(what string, change func(*fleet.Spec), same bool) {
		t.Helper()
		var fl fleet.Fleet
		defer fl.Close()
		next := base
		change(&next)
		if err := fl.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{base}); err != nil {
			t.Fatal(err)
		}
		old := fl.Engines("m")[0]
		if err := fl.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{next}); err != nil {
			t.Fatal(err)
		}
		if got := fl.Engines("m")[0] == old; got != same {
			t.Errorf("%s: same engine = %t, want %t", what, got, same)
		}
	}
	f("nothing", func(*fleet.Spec) {}, true)
	f("equal labels", func(s *fleet.Spec) { s.Labels = map[string]string{"zone": "x"} }, true)
	f("url", func(s *fleet.Spec) { s.URL = "http://b" }, false)
	f("role", func(s *fleet.Spec) { s.Role = fleet.Decode }, false)
	f("bootstrap port", func(s *fleet.Spec) { s.BootstrapPort = 2 }, false)
	f("labels", func(s *fleet.Spec) { s.Labels = map[string]string{"zone": "y"} }, false)
}

func TestApplyRefuses(t *testing.T) {
	f := func(words, want string) {
		t.Helper()
		var fl fleet.Fleet
		defer fl.Close()
		apply(t, &fl, "m", "old")
		err := fl.Apply("m", fleet.BreakerConfig{}, specs(words))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", words, err, want)
		}
		if got := ids(fl.Engines("m")); got != "old" {
			t.Errorf("%s: a refused set changed the engines to %q", words, got)
		}
	}
	f("a b a", `"a" is used twice`)
	f("a p=prefill", `mixes plain engine "a" and prefill engine "p"`)
	f("d=decode a", `mixes plain engine "a" and decode engine "d"`)
	f("a=nothing", `"a" has no role`)
}

func TestModelsAreApart(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	apply(t, &f, "n", "a")
	apply(t, &f, "m", "a b=plain")
	apply(t, &f, "pd", "p=prefill d=decode")
	if got := f.Models(); !slices.Equal(got, []string{"m", "n", "pd"}) {
		t.Errorf("models %q", got)
	}
	if find(t, &f, "m", "a") == find(t, &f, "n", "a") {
		t.Error("two models share an engine")
	}
	if e := find(t, &f, "m", "a"); e.Model() != "m" || e.Role() != fleet.Plain || e.URL() != "http://a" {
		t.Errorf("engine is %s %s %s", e.Model(), e.Role(), e.URL())
	}
	f.Remove("m")
	f.Remove("unknown")
	if got := f.Models(); !slices.Equal(got, []string{"n", "pd"}) || f.Engines("m") != nil {
		t.Errorf("models %q after removal", got)
	}
}

func TestViews(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	watch := func(s fleet.Selector) *fleet.View {
		v := f.Watch(s)
		t.Cleanup(v.Close)
		return v
	}
	early := watch(fleet.Selector{Model: "pd", Role: fleet.Prefill, All: true})
	if len(early.Engines()) != 0 {
		t.Error("a view of an unknown model has engines")
	}
	labelled := func(s fleet.Spec, zone string) fleet.Spec {
		s.Labels = map[string]string{"zone": zone}
		return s
	}
	all := specs("p2=prefill p1=prefill d=decode")
	all[0], all[1] = labelled(all[0], "x"), labelled(all[1], "y")
	if err := f.Apply("pd", fleet.BreakerConfig{Threshold: 1, CoolDown: time.Hour}, all); err != nil {
		t.Fatal(err)
	}
	expect := func(s fleet.Selector, want string) {
		t.Helper()
		s.Model = "pd"
		if got := ids(watch(s).Engines()); got != want {
			t.Errorf("%+v: got %q, want %q", s, got, want)
		}
	}
	if got := ids(early.Engines()); got != "p1 p2" {
		t.Errorf("early view has %q", got)
	}
	expect(fleet.Selector{Role: fleet.Decode, All: true}, "d")
	expect(fleet.Selector{Role: fleet.Plain, All: true}, "")
	expect(fleet.Selector{Role: fleet.Prefill}, "")
	expect(fleet.Selector{Role: fleet.Prefill, IDs: []string{"p2", "d", "nobody", "p1", "p2"}}, "p1 p2")
	expect(fleet.Selector{Role: fleet.Prefill, IDs: []string{"P1"}}, "")
	expect(fleet.Selector{Role: fleet.Prefill, All: true, Labels: map[string]string{"zone": "x"}}, "p2")
	expect(fleet.Selector{Role: fleet.Prefill, All: true, Labels: map[string]string{"zone": "x", "rack": ""}}, "")
	expect(fleet.Selector{Role: fleet.Prefill, IDs: []string{"p1"}, Labels: map[string]string{"zone": "x"}}, "")
}

// TestViewsAreRepublished follows one view through everything that changes it.
func TestViewsAreRepublished(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	apply(t, &f, "m", "a b c")
	apply(t, &f, "other", "a")
	v := f.Watch(fleet.Selector{Model: "m", Role: fleet.Plain, IDs: []string{"a", "b", "new"}})
	defer v.Close()
	expect := func(want string) {
		t.Helper()
		if got := ids(v.Engines()); got != want {
			t.Errorf("view has %q, want %q", got, want)
		}
	}
	expect("a b")
	before := v.Engines()
	find(t, &f, "m", "a").ForceFailures(1)
	expect("b")
	if ids(before) != "a b" {
		t.Error("a published list changed")
	}
	find(t, &f, "m", "c").ForceFailures(1)
	find(t, &f, "other", "a").ForceFailures(1)
	expect("b")
	apply(t, &f, "m", "a b new")
	expect("b new") // a is the same engine and still open
	apply(t, &f, "m", "a@-moved b")
	expect("a b") // another engine under the same id is healthy
	f.Remove("m")
	expect("")
	apply(t, &f, "m", "b")
	expect("b")
}

func TestSelectorKeys(t *testing.T) {
	key := func(list ...string) string {
		return fleet.Selector{Model: "m", Role: fleet.Plain, IDs: list}.Key()
	}
	if key("a", "b") != key("b", "a", "b") {
		t.Error("equal selectors have two keys")
	}
	if key("a", "b") == key("a") || key("a", "b") == key(`a" "b`) {
		t.Error("different selectors share a key")
	}
}

func TestAClosedViewKeepsItsList(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	apply(t, &f, "m", "a b")
	sel := fleet.Selector{Model: "m", Role: fleet.Plain, All: true}
	old, next := f.Watch(sel), f.Watch(sel)
	old.Close()
	apply(t, &f, "m", "c")
	f.Remove("m")
	if got := ids(old.Engines()); got != "a b" {
		t.Errorf("a closed view has %q", got)
	}
	if got := ids(next.Engines()); got != "" {
		t.Errorf("an open view has %q", got)
	}
	next.Close()
	next.Close()
}

func TestContains(t *testing.T) {
	var f, twins fleet.Fleet
	defer f.Close()
	defer twins.Close()
	apply(t, &f, "m", "a b c d e")
	apply(t, &twins, "m", "a b c d e z")
	list := f.Engines("m")
	for _, e := range list {
		if !fleet.Contains(list, e) {
			t.Errorf("%s is not in its own list", e.ID())
		}
	}
	for _, e := range twins.Engines("m") {
		if fleet.Contains(list, e) {
			t.Errorf("an engine that is only called %s passes", e.ID())
		}
	}
	if fleet.Contains(nil, list[0]) || fleet.Contains(list[1:], list[0]) {
		t.Error("a list holds what is not in it")
	}
}

func TestBootstrapHost(t *testing.T) {
	f := func(url, host string) {
		t.Helper()
		var fl fleet.Fleet
		defer fl.Close()
		if err := fl.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{{ID: "p", URL: url, Role: fleet.Prefill, BootstrapPort: 8998}}); err != nil {
			t.Fatal(err)
		}
		got, port := fl.Engines("m")[0].Bootstrap()
		if got != host || port != 8998 {
			t.Errorf("%s: got %s:%d, want %s:8998", url, got, port, host)
		}
	}
	f("http://10.0.0.1:30000", "10.0.0.1")
	f("https://engine.example", "engine.example")
	f("http://[2001:db8::1]:30000", "[2001:db8::1]")
	f("http://[::1]", "[::1]")
	f("://", "")
}

func TestRoles(t *testing.T) {
	for _, r := range []fleet.Role{fleet.Plain, fleet.Prefill, fleet.Decode} {
		if got, ok := fleet.ParseRole(r.String()); !ok || got != r {
			t.Errorf("%s parses to %s", r, got)
		}
	}
	for _, s := range []string{"", "none", "Plain"} {
		if r, ok := fleet.ParseRole(s); ok {
			t.Errorf("%q parses to %s", s, r)
		}
	}
}

func TestLabel(t *testing.T) {
	var f fleet.Fleet
	defer f.Close()
	s := fleet.Spec{ID: "a", URL: "http://a", Role: fleet.Plain, Labels: map[string]string{"zone": "x"}}
	if err := f.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{s}); err != nil {
		t.Fatal(err)
	}
	if e := f.Engines("m")[0]; e.Label("zone") != "x" || e.Label("rack") != "" {
		t.Error("labels are lost")
	}
}

// TestClosedFleet registers an engine after Close: its breaker works but no
// timer is left behind.
func TestClosedFleet(t *testing.T) {
	var f fleet.Fleet
	f.Close()
	apply(t, &f, "m", "a")
	e := find(t, &f, "m", "a")
	e.ForceFailures(1)
	if e.Admits() {
		t.Error("the breaker of an engine in a closed fleet does not open")
	}
}
