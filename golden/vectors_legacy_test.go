package golden_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shunt/golden/legacy"
	"shunt/runtime/fleet"
	"shunt/runtime/prepare"
	"shunt/runtime/routing"
)

// legacyFile is vectors/legacy.json.
type legacyFile struct {
	About string       `json:"about"`
	Cases []legacyCase `json:"cases"`
}

type legacyCase struct {
	ID    string       `json:"id"`
	Note  string       `json:"note"`
	Specs []legacySpec `json:"specs"`
	// Stage is that of the specs if empty.
	Stage    string      `json:"stage"`
	TTFTMode legacy.Mode `json:"ttft_mode"`
	TPSMode  legacy.Mode `json:"tps_mode"`
	Input    uint64      `json:"input"`
	Output   *uint64     `json:"output"`
	TTFT     *uint64     `json:"ttft"`
	TPS      *float64    `json:"tps"`
	// Members are listed in a bucket of a fleet w0 to w9.
	Members []string     `json:"members"`
	Label   *legacyLabel `json:"label"`
	Want    []string     `json:"want"`
	Peak    uint64       `json:"peak"`
	// Retained cases give the same through the packages that serve.
	Retained bool `json:"retained"`
	// Outcome is the word for it in the trace of cache_aware, which
	// vectors/cache.json must know.
	Outcome string `json:"outcome"`
}

type legacySpec struct {
	ID          string       `json:"id"`
	Stage       legacy.Stage `json:"stage"`
	Rank        uint32       `json:"rank"`
	MinExtend   *uint64      `json:"min_extend"`
	MaxExtend   *uint64      `json:"max_extend"`
	MaxSequence *uint64      `json:"max_sequence"`
	MaxContext  *uint64      `json:"max_context"`
	TTFT        *uint64      `json:"ttft"`
	TPS         *float64     `json:"tps"`
}

type legacyLabel struct {
	Gated     int  `json:"gated"`
	Evaluated int  `json:"evaluated"`
	AllQueued bool `json:"all_queued"`
}

func runLegacy(t *testing.T, data []byte) (ran []string) {
	var file legacyFile
	decode(t, data, &file)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			switch {
			case c.Label != nil:
				c.label(t)
			case c.Peak != 0:
				c.peak(t)
			case c.Members != nil:
				c.members(t)
			default:
				c.domains(t)
			}
		})
		ran = append(ran, c.ID)
	}
	return ran
}

// domains compares the order of the buckets that a request fits.
func (c *legacyCase) domains(t *testing.T) {
	config := legacy.Config{TTFTMode: c.TTFTMode, TPSMode: c.TPSMode}
	stage := legacy.Stage(c.Stage)
	for _, s := range c.Specs {
		if c.Stage == "" {
			stage = s.Stage
		}
		config.Specs = append(config.Specs, legacy.Spec{
			ID: s.ID, Stage: s.Stage, Rank: s.Rank, Members: []string{"w0"},
			MinExtend: s.MinExtend, MaxExtend: s.MaxExtend, MaxSequence: s.MaxSequence, MaxContext: s.MaxContext,
			TTFT: s.TTFT, TPS: s.TPS,
		})
	}
	request := legacy.Request{Input: c.Input, Output: c.Output, TTFT: c.TTFT, TPS: c.TPS}
	got := []string{}
	for _, d := range config.Domains(stage, request, []string{"w0"}) {
		got = append(got, d.ID)
	}
	if !slices.Equal(got, c.Want) {
		t.Errorf("before: got %v, want %v", got, c.Want)
	}
	if c.Retained {
		c.resolved(t)
	}
}

// resolved asks the resolver, with a bucket for each spec.
func (c *legacyCase) resolved(t *testing.T) {
	n := sloCase{Input: int64(c.Input), Modes: [2]string{"disabled", "disabled"}}
	if c.Output != nil {
		n.Peak = int64(legacy.Peak(c.Input, c.Output))
	}
	if c.TTFTMode != "" {
		n.Modes[0] = string(c.TTFTMode)
	}
	if c.TPSMode != "" {
		n.Modes[1] = string(c.TPSMode)
	}
	var buckets []sloSpec
	for _, s := range c.Specs {
		b := sloSpec{bucketSpec: bucketSpec{ID: s.ID, Rank: int64(s.Rank), Min: signed(s.MinExtend), Max: signed(s.MaxExtend), Context: signed(s.MaxContext)}}
		if s.MaxSequence != nil {
			b.Context = signed(s.MaxSequence)
		}
		if s.TTFT != nil {
			b.TTFTMS = *s.TTFT
		}
		if s.TPS != nil {
			b.TPS = strconv.FormatFloat(*s.TPS, 'g', -1, 64)
		}
		buckets = append(buckets, b)
	}
	var targets routing.Targets
	if c.TTFT != nil {
		targets.TTFTMS, targets.HasTTFT = *c.TTFT, true
	}
	if c.TPS != nil {
		targets.TPS, targets.HasTPS = *c.TPS, true
	}
	matches, err := n.resolver(t, buckets).ResolveFor(n.Input, n.Peak, targets)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for b := matches.Next(); b != nil; b = matches.Next() {
		got = append(got, b.ID)
	}
	if !slices.Equal(got, c.Want) {
		t.Errorf("now: got %v, want %v", got, c.Want)
	}
}

func signed(n *uint64) *int64 {
	if n == nil {
		return nil
	}
	v := int64(*n)
	return &v
}

// members compares the engines of a bucket. A configuration refuses repeated
// and unknown ids, so that only the group itself can be asked.
func (c *legacyCase) members(t *testing.T) {
	var names []string
	var specs []fleet.Spec
	for n := range 10 {
		id := fmt.Sprintf("w%d", n)
		names = append(names, id)
		specs = append(specs, fleet.Spec{ID: id, URL: "http://" + id, Role: fleet.Plain})
	}
	live := new(fleet.Fleet)
	defer live.Close()
	if err := live.Apply("m", fleet.BreakerConfig{Threshold: 3}, specs); err != nil {
		t.Fatal(err)
	}
	if got := legacy.Members(c.Members, names); !slices.Equal(got, c.Want) {
		t.Errorf("before: got %v, want %v", got, c.Want)
	}
	var got []string
	view := live.Watch(fleet.Selector{Model: "m", Role: fleet.Plain, IDs: c.Members})
	defer view.Close()
	for _, e := range view.Engines() {
		got = append(got, e.ID())
	}
	if !slices.Equal(got, c.Want) {
		t.Errorf("now: got %v, want %v", got, c.Want)
	}
}

// peak compares the expected length at the end of a request.
func (c *legacyCase) peak(t *testing.T) {
	if got := legacy.Peak(c.Input, c.Output); got != c.Peak {
		t.Errorf("before: got %d, want %d", got, c.Peak)
	}
	body := `{"model":"m","messages":[]}`
	if c.Output != nil {
		body = fmt.Sprintf(`{"model":"m","messages":[],"max_tokens":%d}`, *c.Output)
	}
	if !c.Retained {
		return
	}
	r := new(prepare.Request)
	if err := r.Parse([]byte(body)); err != nil {
		t.Fatal(err)
	}
	_, got, err := r.LengthsOf(int64(c.Input))
	if err != nil || got != int64(c.Peak) {
		t.Errorf("now: got %d, %v, want %d", got, err, c.Peak)
	}
}

// label compares the word for a cache decision without a usable holder.
func (c *legacyCase) label(t *testing.T) {
	got := legacy.Decision(c.Label.Gated, c.Label.Evaluated, c.Label.AllQueued)
	if want := strings.Join(c.Want, ""); got != want {
		t.Errorf("before: got %s, want %s", got, want)
	}
	if c.Outcome == "" {
		return
	}
	data, err := os.ReadFile("vectors/cache.json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `outcome=`+c.Outcome) {
		t.Errorf("no case of vectors/cache.json has the outcome %s", c.Outcome)
	}
}
