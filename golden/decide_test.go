package golden_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"shunt/golden"
	"shunt/runtime/routing"
	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

// decideSeed makes the draws of the cases.
const decideSeed = 1

// TestDecide routes the requests of a case through its compiled configuration,
// in its world, one after the other: requests/NAME.json, or bodies/NAME.json as
// clients send them. The decisions are the text that people read, and world.json
// is optional.
func TestDecide(t *testing.T) {
	golden.Run(t, "decide/*.txtar", func(t *testing.T, c *golden.Case) {
		var requests, others []string
		for _, name := range c.Inputs {
			if strings.Contains(name, "/") || name == "world.json" {
				others = append(others, name)
			}
			if strings.Contains(name, "/") {
				requests = append(requests, name)
			}
		}
		options, names := arrange(t, c, others...)
		r := compileFiles(t.Context(), options, names...)
		if r.Plan == nil {
			t.Fatalf("no plan:\n%s", textReport(t, r))
		}
		var world simulate.World
		if data := c.Input("world.json"); data != nil {
			var err error
			if world, err = simulate.ParseWorld(data); err != nil {
				t.Fatal(err)
			}
		}
		sim, err := simulate.New(&r.Plan.Body, world, decideSeed)
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		for _, name := range requests {
			c.Want(strings.TrimSuffix(name[strings.Index(name, "/")+1:], ".json")+".txt", decision(t, sim, &r.Plan.Body, name, c.Input(name)))
		}
	})
}

// decision is the text of one decision, which must survive its JSON form.
func decision(t *testing.T, sim *simulate.Simulation, body *plan.Body, name string, data []byte) string {
	t.Helper()
	var request simulate.Request
	var err error
	if strings.HasPrefix(name, "bodies/") {
		request, err = simulate.ParseBody(t.Context(), body, data)
	} else {
		request, err = simulate.ParseRequest(body, data)
	}
	if err != nil {
		return err.Error()
	}
	d, err := sim.Decide(t.Context(), request)
	if errors.Is(err, simulate.ErrUnknownModel) {
		return err.Error()
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var text strings.Builder
	if err := simulate.Text(&text, d); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again routing.Decision
	if err := json.Unmarshal(encoded, &again); err != nil {
		t.Fatal(err)
	}
	var same strings.Builder
	if err := simulate.Text(&same, &again); err != nil || same.String() != text.String() {
		t.Errorf("%s: the JSON form of the decision reads\n%s", name, same.String())
	}
	return text.String()
}

// TestDecideIsDeterministic: the same plan, world and seed give the same
// decisions, and the seed decides the draws.
func TestDecideIsDeterministic(t *testing.T) {
	r := compileText(t, `{"version": 1, "models": [{"id": "m", "discovery": {"static": {"engines": [
		{"id": "a", "url": "http://a", "role": "plain"}, {"id": "b", "url": "http://b", "role": "plain"},
		{"id": "c", "url": "http://c", "role": "plain"}, {"id": "d", "url": "http://d", "role": "plain"}]}}}]}`)
	if r.Plan == nil {
		t.Fatalf("no plan: %s", r.Findings)
	}
	picks := func(seed uint64) (out []string) {
		sim, err := simulate.New(&r.Plan.Body, simulate.World{}, seed)
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		for range 40 {
			d, err := sim.Decide(t.Context(), simulate.Request{Model: "m", InputTokens: 1})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, d.Plain.Engine)
		}
		return out
	}
	if a, b := picks(7), picks(7); !slices.Equal(a, b) {
		t.Errorf("one seed gives %v and %v", a, b)
	}
	if a, b := picks(7), picks(8); slices.Equal(a, b) {
		t.Errorf("two seeds give %v", a)
	}
}
