package routing

import (
	"cmp"
	"errors"
	"slices"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
)

// Decision says what was considered for one request and why it ended so. The
// routing code fills it; a nil Decision costs nothing.
type Decision struct {
	Model string `json:"model"`
	// Input and Peak are token counts; a Peak of 0 is unknown.
	Input int64 `json:"input_tokens"`
	// InputSource says where Input came from, and InputReason why it is only an
	// estimate; empty where nothing was tokenized.
	InputSource string `json:"input_source,omitempty"`
	InputReason string `json:"input_reason,omitempty"`
	Peak        int64  `json:"expected_peak_tokens,omitempty"`
	// TTFTMS and TPS are the latency targets that counted.
	TTFTMS *uint64  `json:"ttft_target_ms,omitempty"`
	TPS    *float64 `json:"tps_target,omitempty"`
	// Buckets are all buckets of the model in try order.
	Buckets []BucketTrace `json:"buckets"`
	// Bucket and the picks are set on success.
	Bucket  string     `json:"bucket,omitempty"`
	Plain   *PickTrace `json:"plain,omitempty"`
	Prefill *PickTrace `json:"prefill,omitempty"`
	Decode  *PickTrace `json:"decode,omitempty"`
	// Error is set on failure.
	Error *ErrorTrace `json:"error,omitempty"`

	// OnlyTried is set before: Buckets are those that were tried, which is quicker
	// in a model of many.
	OnlyTried bool `json:"-"`

	tried map[string][]GroupTrace
}

// Fate is what became of a bucket.
type Fate string

// The fates. The first three are by length alone.
const (
	BelowMin     Fate = "below_min"     // the input is shorter than the range
	AboveMax     Fate = "above_max"     // the input is longer than the range
	AboveContext Fate = "above_context" // the peak, or the input, exceeds the context
	Picked       Fate = "picked"
	Failed       Fate = "failed"    // see the groups
	NotTried     Fate = "not_tried" // an earlier bucket was picked or ended the pass
)

// BucketTrace is one bucket, in try order.
type BucketTrace struct {
	ID   string `json:"id"`
	Fate Fate   `json:"fate"`
	// Penalty counts the latency targets for which others are preferred.
	Penalty uint8 `json:"slo_penalty,omitempty"`
	// Bound is the limit that the length missed, for the fates by length.
	Bound  *int64       `json:"bound,omitempty"`
	Groups []GroupTrace `json:"groups,omitempty"`
}

// GroupTrace is one group's pick.
type GroupTrace struct {
	Stage string `json:"stage"`
	policy.Trace
	Pick  *PickTrace  `json:"pick,omitempty"`
	Error *ErrorTrace `json:"error,omitempty"`
}

// PickTrace is a picked engine.
type PickTrace struct {
	Engine string        `json:"engine"`
	Reason policy.Reason `json:"reason"`
}

// ErrorTrace is a failed pick or pass.
type ErrorTrace struct {
	Kind     string             `json:"kind"`
	Stage    string             `json:"stage,omitempty"`
	Rejected []policy.Rejection `json:"rejected,omitempty"`
	Detail   string             `json:"detail,omitempty"`
}

// visit is the trace of the pick under way; its methods accept nil.
type visit struct {
	d      *Decision
	bucket string
	group  GroupTrace
}

// enter starts the trace of one group's pick.
func (r *Request) enter(stage fleet.Role) *visit {
	if r.Decision == nil {
		r.Trace = nil
		return nil
	}
	v := &visit{d: r.Decision, bucket: r.Bucket, group: GroupTrace{Stage: stage.String()}}
	r.Trace = &v.group.Trace
	return v
}

func (v *visit) offer(candidates []*fleet.Engine) {
	if v != nil {
		v.group.Offer(candidates)
	}
}

func (v *visit) leave(p policy.Pick, err error) {
	if v == nil {
		return
	}
	if err != nil {
		v.group.Error = traceError(err)
	} else {
		v.group.Pick = &PickTrace{Engine: p.Engine.ID(), Reason: p.Reason}
	}
	if v.d.tried == nil {
		v.d.tried = make(map[string][]GroupTrace)
	}
	v.d.tried[v.bucket] = append(v.d.tried[v.bucket], v.group)
}

// finish writes the outcome and the fate of every bucket.
func (d *Decision) finish(r *Resolver, req *Request, s *Selection, err error) {
	if d == nil {
		return
	}
	tried := d.tried
	*d = Decision{Model: r.Model, Input: req.Input, Peak: req.Peak,
		InputSource: req.InputSource, InputReason: req.InputReason, OnlyTried: d.OnlyTried}
	targets, invalid := r.SLO.targets(req.Targets)
	add := func(b *Bucket) {
		t := trace(b, req, s, tried[b.ID])
		if invalid == nil {
			t.Penalty = r.SLO.penalty(targets, b.Estimates)
		}
		d.Buckets = append(d.Buckets, t)
	}
	if d.OnlyTried {
		// Buckets are tried in the order of the walk, up to one.
		matches, _ := r.ResolveFor(req.Input, req.Peak, req.Targets) // on an error nothing was tried
		for range tried {
			add(matches.Next())
		}
	} else {
		d.Buckets = make([]BucketTrace, 0, len(r.Buckets))
		for _, b := range r.Buckets {
			add(b)
		}
		slices.SortStableFunc(d.Buckets, func(a, b BucketTrace) int { return cmp.Compare(a.Penalty, b.Penalty) })
	}
	d.aim(targets)
	if err != nil {
		d.Error = traceError(err)
		return
	}
	d.Bucket = s.Bucket.ID
	d.Plain, d.Prefill, d.Decode = tracePick(s.Plain), tracePick(s.Prefill), tracePick(s.Decode)
}

// aim notes the targets that counted.
func (d *Decision) aim(t Targets) {
	if t.HasTTFT {
		d.TTFTMS = &t.TTFTMS
	}
	if t.HasTPS {
		d.TPS = &t.TPS
	}
}

func trace(b *Bucket, req *Request, s *Selection, groups []GroupTrace) BucketTrace {
	t := BucketTrace{ID: b.ID, Groups: groups}
	switch {
	case s.Bucket == b:
		t.Fate = Picked
	case len(groups) > 0:
		t.Fate = Failed
	default:
		t.Fate, t.Bound = b.Fate(req.Input, req.Peak)
	}
	return t
}

// Fate is what becomes of a bucket that was not tried, by the lengths alone, and
// the limit that they miss. A peak of 0 is unknown.
func (b *Bucket) Fate(input, peak int64) (Fate, *int64) {
	switch {
	case input < b.Min:
		return BelowMin, &b.Min
	case !b.Max.admits(input):
		return AboveMax, &b.Max.max
	case !b.Context.admits(max(input, peak)):
		return AboveContext, &b.Context.max
	}
	return NotTried, nil
}

func tracePick(p policy.Pick) *PickTrace {
	if p.Engine == nil {
		return nil
	}
	return &PickTrace{Engine: p.Engine.ID(), Reason: p.Reason}
}

func traceError(err error) *ErrorTrace {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return &ErrorTrace{Kind: "interrupted", Detail: err.Error()}
	}
	t := &ErrorTrace{Kind: e.Kind.String(), Rejected: e.Rejected, Detail: e.Detail}
	if e.Stage != 0 {
		t.Stage = e.Stage.String()
	}
	return t
}
