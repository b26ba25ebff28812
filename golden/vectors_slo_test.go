package golden_test

import (
	"slices"
	"strconv"
	"testing"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
)

// sloFile is vectors/slo.json.
type sloFile struct {
	About string               `json:"about"`
	Sets  map[string][]sloSpec `json:"sets"`
	Cases []sloCase            `json:"cases"`
}

// sloSpec is a bucket with estimates.
type sloSpec struct {
	bucketSpec
	TTFTMS uint64 `json:"ttft_ms"`
	TPS    string `json:"tps"`
}

type sloCase struct {
	ID    string    `json:"id"`
	Note  string    `json:"note"`
	Set   string    `json:"set"`
	Input int64     `json:"input"`
	Peak  int64     `json:"peak"`
	Modes [2]string `json:"modes"`
	// TTFTMS and TPS are the request's targets.
	TTFTMS *uint64  `json:"ttft_ms"`
	TPS    string   `json:"tps"`
	Want   []string `json:"want"`
	Fails  string   `json:"fails"`
}

func runSLO(t *testing.T, data []byte) (ran []string) {
	var file sloFile
	decode(t, data, &file)
	for _, c := range file.Cases {
		buckets, ok := file.Sets[c.Set]
		if !ok {
			t.Errorf("%s: no set %q", c.ID, c.Set)
			continue
		}
		t.Run(c.ID, func(t *testing.T) { c.run(t, buckets) })
		ran = append(ran, c.ID)
	}
	return ran
}

func (c *sloCase) run(t *testing.T, buckets []sloSpec) {
	t.Helper()
	r := c.resolver(t, buckets)
	var targets routing.Targets
	if c.TTFTMS != nil {
		targets.TTFTMS, targets.HasTTFT = *c.TTFTMS, true
	}
	targets.TPS, targets.HasTPS = rate(t, c.TPS)
	matches, err := r.ResolveFor(c.Input, c.Peak, targets)
	if kind(err) != c.Fails {
		t.Fatalf("failed with %q, want %q (%v)", kind(err), c.Fails, err)
	}
	var got []string
	for b := matches.Next(); b != nil; b = matches.Next() {
		got = append(got, b.ID)
	}
	if !slices.Equal(got, c.Want) {
		t.Errorf("got %v, want %v", got, c.Want)
	}
	if err == nil {
		c.explained(t, r, targets)
	}
}

// explained checks that a decision lists the buckets in the same order.
func (c *sloCase) explained(t *testing.T, r *routing.Resolver, targets routing.Targets) {
	t.Helper()
	var d routing.Decision
	req := routing.Request{Request: policy.Request{Model: "m", Input: c.Input, Peak: c.Peak}, Targets: targets, Decision: &d}
	if _, err := r.Route(t.Context(), &req); kind(err) != "no_candidates" {
		t.Fatalf("routed: %v", err)
	}
	var got []string
	for _, b := range d.Buckets {
		if b.Fate == routing.Failed {
			got = append(got, b.ID)
		}
	}
	if !slices.Equal(got, c.Want) {
		t.Errorf("explained as %v, want %v", got, c.Want)
	}
}

// resolver tabulates the buckets, each with a group that has no engine.
func (c *sloCase) resolver(t *testing.T, buckets []sloSpec) *routing.Resolver {
	t.Helper()
	var bounds []bucketSpec
	estimates := make(map[string]routing.Estimates)
	for _, b := range buckets {
		bounds = append(bounds, b.bucketSpec)
		tps, _ := rate(t, b.TPS)
		estimates[b.ID] = routing.Estimates{TTFTMS: b.TTFTMS, TPS: tps}
	}
	r := tabulated(t, bounds)
	for _, b := range r.Buckets {
		b.Estimates = estimates[b.ID]
		b.Groups = routing.PlainGroups{Plain: &routing.Group{Engines: fixed(nil)}}
	}
	r.SLO = routing.SLO{TTFT: mode(t, c.Modes[0]), TPS: mode(t, c.Modes[1])}
	return r
}

func mode(t *testing.T, s string) routing.SLOMode {
	t.Helper()
	m, ok := routing.ParseSLOMode(s)
	if !ok {
		t.Fatalf("%q is no mode", s)
	}
	return m
}

// rate reads a number of tokens per second; an empty text is none.
func rate(t *testing.T, s string) (tps float64, ok bool) {
	t.Helper()
	if s == "" {
		return 0, false
	}
	tps, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return tps, true
}
