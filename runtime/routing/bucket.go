package routing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
)

// Bound is an optional inclusive upper bound; the zero Bound is none.
type Bound struct {
	max int64
	set bool
}

// AtMost bounds by n.
func AtMost(n int64) Bound { return Bound{max: n, set: true} }

func (b Bound) admits(n int64) bool { return !b.set || n <= b.max }

// Value is the bound, the largest integer if there is none.
func (b Bound) Value() int64 {
	if b.set {
		return b.max
	}
	return math.MaxInt64
}

// Bucket is a range of request lengths and the groups that serve it.
type Bucket struct {
	ID   string
	Rank int64
	// Min and Max bound the input tokens, both inclusive.
	Min int64
	Max Bound
	// Context bounds the expected peak, or the input when that is unknown.
	Context Bound
	// Estimates order buckets for requests with latency targets.
	Estimates Estimates
	Groups    Groups
}

// Capacity is the input length that the bucket can take at most.
func (b *Bucket) Capacity() int64 { return min(b.Max.Value(), b.Context.Value()) }

// Groups is PlainGroups or PDGroups.
type Groups interface {
	pick(ctx context.Context, req *Request) (Selection, error)
	// ready reports whether a complete selection has candidates right now.
	ready() bool
	// all lists the groups in the order in which they are asked.
	all() []*Group
}

// PlainGroups is the one group of a plain bucket.
type PlainGroups struct{ Plain *Group }

// PDGroups are the groups of a prefill/decode bucket. MatchLabels are label
// names whose values must be equal on both picked engines; the empty value
// counts like any other.
type PDGroups struct {
	Prefill, Decode *Group
	MatchLabels     []string
}

// Selection is a complete choice of engines from one bucket: Plain alone, or
// Prefill and Decode together.
type Selection struct {
	Bucket                 *Bucket
	Plain, Prefill, Decode policy.Pick
}

// PD reports whether the selection is a prefill/decode pair.
func (s *Selection) PD() bool { return s.Prefill.Engine != nil }

// Pick asks the bucket's groups for a complete selection. Failures are
// *policy.Error and name the stage; a prefill pick without a decode pick is
// discarded.
func (b *Bucket) Pick(ctx context.Context, req *Request) (Selection, error) {
	req.Bucket = b.ID
	s, err := b.Groups.pick(ctx, req)
	if err != nil {
		return Selection{}, err
	}
	s.Bucket = b
	return s, nil
}

func (g PlainGroups) pick(ctx context.Context, req *Request) (s Selection, err error) {
	s.Plain, err = g.Plain.pick(ctx, req, g.Plain.Engines.Engines(), "")
	return s, err
}

func (g PDGroups) pick(ctx context.Context, req *Request) (s Selection, err error) {
	prefills, decodes := g.Prefill.Engines.Engines(), g.Decode.Engines.Engines()
	if len(g.MatchLabels) > 0 {
		req.prefills = g.pairable(req.prefills[:0], prefills, decodes)
		if len(req.prefills) == 0 && len(prefills) > 0 {
			// Prefill engines are there; what is missing is a partner.
			_, err = g.Decode.pick(ctx, req, nil, fmt.Sprintf("no healthy decode engine has the same %s as a healthy prefill engine",
				strings.Join(g.MatchLabels, " and ")))
			return s, err
		}
		prefills = req.prefills
	}
	if s.Prefill, err = g.Prefill.pick(ctx, req, prefills, ""); err != nil {
		return s, err
	}
	if len(g.MatchLabels) > 0 {
		req.decodes = g.partners(req.decodes[:0], s.Prefill.Engine, decodes)
		decodes = req.decodes
	}
	s.Decode, err = g.Decode.pick(ctx, req, decodes, "")
	return s, err
}

// pairable keeps the prefill engines that some decode engine matches.
func (g PDGroups) pairable(dst, prefills, decodes []*fleet.Engine) []*fleet.Engine {
	for _, p := range prefills {
		if slices.ContainsFunc(decodes, func(d *fleet.Engine) bool { return g.match(p, d) }) {
			dst = append(dst, p)
		}
	}
	return dst
}

// partners keeps the decode engines that match a prefill engine.
func (g PDGroups) partners(dst []*fleet.Engine, p *fleet.Engine, decodes []*fleet.Engine) []*fleet.Engine {
	for _, d := range decodes {
		if g.match(p, d) {
			dst = append(dst, d)
		}
	}
	return dst
}

func (g PDGroups) match(p, d *fleet.Engine) bool {
	for _, name := range g.MatchLabels {
		if p.Label(name) != d.Label(name) {
			return false
		}
	}
	return true
}

// Candidates is the live list of a group's engines: healthy, of the group's
// model and stage, members, sorted by id. *fleet.View is one.
type Candidates interface {
	Engines() []*fleet.Engine
}

// Group is the engines of one stage in one bucket and the policy that picks.
type Group struct {
	Stage   fleet.Role
	Engines Candidates
	Policy  policy.Policy
}

// pick invokes the policy on the candidates and accepts only one of exactly
// them: a new engine under an old id is foreign. Absence says why there may be
// none.
func (g *Group) pick(ctx context.Context, req *Request, candidates []*fleet.Engine, absence string) (policy.Pick, error) {
	req.Stage = g.Stage
	seen := req.enter(g.Stage)
	seen.offer(candidates)
	p, err := g.choose(ctx, req, candidates, absence)
	seen.leave(p, err)
	return p, err
}

func (g *Group) choose(ctx context.Context, req *Request, candidates []*fleet.Engine, absence string) (policy.Pick, error) {
	if len(candidates) == 0 {
		return policy.Pick{}, &policy.Error{Kind: policy.NoCandidates, Stage: g.Stage, Detail: absence}
	}
	p, err := g.Policy.Pick(ctx, candidates, &req.Request)
	if err != nil {
		return policy.Pick{}, atStage(err, g.Stage)
	}
	if p.Engine == nil || !fleet.Contains(candidates, p.Engine) {
		return policy.Pick{}, &policy.Error{Kind: policy.OutsideCandidates, Stage: g.Stage,
			Detail: fmt.Sprintf("policy %T returned an engine outside its candidates", g.Policy)}
	}
	return p, nil
}

// atStage adds the stage to a failure of selection. Other errors, such as a
// cancelled context, pass as they are and end the pass.
func atStage(err error, stage fleet.Role) error {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok || e.Stage != 0 {
		return err
	}
	staged := *e
	staged.Stage = stage
	return &staged
}

func (g PlainGroups) ready() bool { return len(g.Plain.Engines.Engines()) > 0 }

func (g PDGroups) ready() bool {
	prefills, decodes := g.Prefill.Engines.Engines(), g.Decode.Engines.Engines()
	return len(g.pairable(nil, prefills, decodes)) > 0
}

func (g PlainGroups) all() []*Group { return []*Group{g.Plain} }

func (g PDGroups) all() []*Group { return []*Group{g.Prefill, g.Decode} }
