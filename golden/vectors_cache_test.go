package golden_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
)

// cacheFile is vectors/cache.json.
type cacheFile struct {
	About string          `json:"about"`
	Base  json.RawMessage `json:"base"`
	Cases []cacheCase     `json:"cases"`
}

type cacheCase struct {
	ID      string       `json:"id"`
	Note    string       `json:"note"`
	Engines []engineSpec `json:"engines"`
	// Count makes so many engines instead.
	Count int      `json:"count"`
	Group []string `json:"group"`
	// Stages are plain unless said.
	Stages  []string          `json:"stages"`
	Input   int64             `json:"input"`
	Blocks  uint32            `json:"blocks"`
	Depths  map[string]uint32 `json:"depths"`
	Reports []reportStep      `json:"reports"`
	Tuning  json.RawMessage   `json:"tuning"`
	// Refuse are the engines that admission refuses, at the limit full.
	Refuse []string `json:"refuse"`
	// Attach only attaches the policy to a stage of a PD bucket.
	Attach   string   `json:"attach"`
	Want     string   `json:"want"`
	Reason   string   `json:"reason"`
	Fails    string   `json:"fails"`
	Rejected []string `json:"rejected"`
	// Sees is what admission saw, in order.
	Sees []string `json:"sees"`
	// Trace are words in the order of cacheWords; only those named count.
	Trace string `json:"trace"`
	// Holders are all holders of the trace, and Evaluated those with this fate.
	Holders   []string `json:"holders"`
	Evaluated []string `json:"evaluated"`
}

// cacheTuning has the names of the configuration.
type cacheTuning struct {
	MinMatched   int64   `json:"min_matched_tokens"`
	MinRatio     number  `json:"min_match_ratio"`
	CandidateMin int     `json:"candidate_min_workers"`
	Ratio        number  `json:"candidate_ratio"`
	CandidateMax int     `json:"candidate_max_workers"`
	Margin       int64   `json:"switch_margin_tokens"`
	Guard        bool    `json:"pressure_guard"`
	AbsTokens    uint64  `json:"pressure_abs_threshold_tokens"`
	AbsMS        *number `json:"pressure_abs_threshold_ms"`
	Rel          number  `json:"pressure_rel_threshold"`
	QueueLimit   *uint64 `json:"worker_queue_limit"`
	QueueFloor   *uint64 `json:"saturation_queue_floor"`
	Choices      int     `json:"min_load_choices"`
}

// number is a JSON number, or a text for what JSON cannot write.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	*n = number(v)
	return err
}

func (c *cacheTuning) live() policy.CacheTuning {
	limit := func(n *uint64) policy.Cap {
		if n == nil {
			return policy.Cap{}
		}
		return policy.Max(*n)
	}
	t := policy.CacheTuning{
		MinMatched: c.MinMatched, MinRatio: float64(c.MinRatio),
		CandidateMin: c.CandidateMin, CandidateMax: c.CandidateMax, CandidateRatio: float64(c.Ratio),
		SwitchMargin: c.Margin, Guard: c.Guard, GuardTokens: c.AbsTokens, GuardFactor: float64(c.Rel),
		QueueLimit: limit(c.QueueLimit), QueueFloor: limit(c.QueueFloor),
	}
	if c.AbsMS != nil {
		t.GuardMS = policy.Above(float64(*c.AbsMS))
	}
	return t
}

func runCache(t *testing.T, data []byte) (ran []string) {
	var file cacheFile
	decode(t, data, &file)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			var tuning cacheTuning
			decode(t, file.Base, &tuning)
			if c.Tuning != nil {
				decode(t, c.Tuning, &tuning)
			}
			if c.Attach != "" {
				c.attach(t, tuning)
				return
			}
			if c.Stages == nil {
				c.Stages = []string{"plain"}
			}
			for _, stage := range c.Stages {
				c.run(t, stage, tuning)
			}
		})
		ran = append(ran, c.ID)
	}
	return ran
}

// attach is about the check of a resolver that was built.
func (c *cacheCase) attach(t *testing.T, tuning cacheTuning) {
	t.Helper()
	w := newWorld(t, nil)
	cached, err := policy.NewCacheAware(policy.CacheOptions{Prefixes: ownership{}, Fallback: &policy.Random{}, Tuning: tuning.live()})
	if err != nil {
		t.Fatal(err)
	}
	groups := routing.PDGroups{
		Prefill: &routing.Group{Stage: fleet.Prefill, Policy: &policy.Random{}},
		Decode:  &routing.Group{Stage: fleet.Decode, Policy: &policy.Random{}},
	}
	if w.role(c.Attach) == fleet.Decode {
		groups.Decode.Policy = cached
	} else {
		groups.Prefill.Policy = cached
	}
	r := routing.Resolver{Buckets: []*routing.Bucket{{ID: "pd", Groups: groups}}}
	if err := r.Check(); kind(err) != c.Fails {
		t.Errorf("failed with %q, want %q (%v)", kind(err), c.Fails, err)
	}
}

func (c *cacheCase) run(t *testing.T, stage string, tuning cacheTuning) {
	t.Helper()
	for i := range c.Count {
		c.Engines = append(c.Engines, engineSpec{ID: fmt.Sprintf("e%04d", i)})
	}
	w := newWorld(t, c.Engines)
	for i := range c.Reports {
		r := &c.Reports[i]
		w.table.Put(w.engine(r.Engine), r.Rank, r.report(), epoch().Add(w.span(r.At)))
	}
	d, doors := new(draws), &door{refuse: c.Refuse}
	p, err := policy.NewCacheAware(policy.CacheOptions{
		Loads: w.reader(), Admission: doors,
		Prefixes: ownership{blocks: c.blocks(), depths: c.Depths},
		Fallback: &policy.PowerOfTwo{Loads: w.reader(), Choices: tuning.Choices, IntN: d.intN},
		Tuning:   tuning.live(),
	})
	if err != nil {
		if kind(err) != c.Fails {
			t.Errorf("failed with %q, want %q (%v)", kind(err), c.Fails, err)
		}
		return
	}
	candidates := w.all()
	if c.Group != nil {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(e *fleet.Engine) bool { return !slices.Contains(c.Group, e.ID()) })
	}
	input := c.Input
	if input == 0 {
		input = 8
	}
	for once := true; once || c.Count == 0 && d.next(); once = false {
		doors.saw = nil
		req := policy.Request{Model: "m", Stage: w.role(stage), Input: input, Trace: new(policy.Trace)}
		got, err := p.Pick(t.Context(), candidates, &req)
		if err := errors.Join(c.judge(got, err), c.judgeTrace(&req, doors)); err != nil {
			t.Errorf("%s, draws %v: %v", stage, d.values, err)
		}
	}
}

func (c *cacheCase) blocks() uint32 {
	if c.Blocks == 0 {
		return 8
	}
	return c.Blocks
}

func (c *cacheCase) judge(got policy.Pick, err error) error {
	if kind(err) != c.Fails {
		return fmt.Errorf("failed with %q, want %q (%w)", kind(err), c.Fails, err)
	}
	if r := rejected(err); !slices.Equal(r, c.Rejected) {
		return fmt.Errorf("rejected %v, want %v", r, c.Rejected)
	}
	if c.Want != "" && (got.Engine == nil || got.Engine.ID() != c.Want) {
		return fmt.Errorf("picked %v, want %s", got, c.Want)
	}
	if string(got.Reason) != c.Reason {
		return fmt.Errorf("reason %q, want %q", got.Reason, c.Reason)
	}
	return nil
}

func (c *cacheCase) judgeTrace(req *policy.Request, doors *door) error {
	if c.Sees != nil && !slices.Equal(doors.saw, c.Sees) {
		return fmt.Errorf("admission saw %q, want %q", doors.saw, c.Sees)
	}
	trace := req.Trace.Cache
	if trace == nil {
		return nil // refused before the lookup
	}
	words := cacheWords(trace)
	for word := range strings.FieldsSeq(c.Trace) {
		if !slices.Contains(words, word) {
			return fmt.Errorf("trace %q, want %q", words, word)
		}
	}
	var all, evaluated []string
	for _, h := range trace.Holders {
		text := fmt.Sprintf("%s %d %d/%d", h.Engine, h.Blocks, h.Matched, h.Uncached)
		all = append(all, text+" "+string(h.Fate))
		if h.Fate == policy.HolderEvaluated {
			evaluated = append(evaluated, text)
		}
	}
	if c.Holders != nil && !slices.Equal(all, c.Holders) {
		return fmt.Errorf("holders %q, want %q", all, c.Holders)
	}
	if c.Evaluated != nil && !slices.Equal(evaluated, c.Evaluated) {
		return fmt.Errorf("evaluated %q, want %q", evaluated, c.Evaluated)
	}
	return nil
}

func cacheWords(t *policy.CacheTrace) []string {
	out := []string{
		"lookup=" + t.Lookup, "why=" + t.Why, fmt.Sprintf("blocks=%d", t.Blocks), fmt.Sprintf("limit=%d", t.Bound),
		fmt.Sprintf("saturated=%t", t.Saturated), fmt.Sprintf("pinned=%t", t.Pinned),
		"source=" + t.Source, fmt.Sprintf("guarded=%t", t.Guarded),
		fmt.Sprintf("compared=%d", t.Compared), fmt.Sprintf("overruled=%d", t.Overruled),
		"fallback=" + strings.Join(t.Fallback, ","), "outcome=" + string(t.Outcome),
	}
	if t.Ceiling != nil {
		out = append(out, fmt.Sprintf("ceiling=%d", *t.Ceiling))
	}
	return out
}

// ownership answers lookups from a vector: leading blocks by engine id.
type ownership struct {
	blocks uint32
	depths map[string]uint32
}

func (o ownership) Match(_ context.Context, _ *policy.Request, candidates []*fleet.Engine, depths []uint32) (policy.PrefixMatch, error) {
	if len(o.depths) == 0 {
		return policy.PrefixMatch{Blocks: o.blocks}, nil
	}
	for i, e := range candidates {
		depths[i] = o.depths[e.ID()]
	}
	return policy.PrefixMatch{Outcome: policy.PrefixHit, Blocks: o.blocks}, nil
}

// door is an admission that refuses some engines.
type door struct {
	refuse []string

	mu  sync.Mutex
	saw []string
}

func (d *door) Check(e *fleet.Engine, m policy.Metrics) (policy.Limit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saw = append(d.saw, metricsText(e.ID(), m))
	if slices.Contains(d.refuse, e.ID()) {
		return "full", nil
	}
	return "", nil
}
