package golden_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/routing"
)

// groupsFile is vectors/groups.json: one registry, and picks from one bucket.
type groupsFile struct {
	About   string       `json:"about"`
	Engines []engineSpec `json:"engines"`
	Cases   []groupCase  `json:"cases"`
}

type groupCase struct {
	ID      string       `json:"id"`
	Note    string       `json:"note"`
	Add     []engineSpec `json:"add"`
	Remove  []string     `json:"remove"`
	Bucket  groupBucket  `json:"bucket"`
	Policy  string       `json:"policy"`
	Request requestSpec  `json:"request"`
	// Want names the picked engines, plain or prefill+decode.
	Want  string `json:"want"`
	Fails string `json:"fails"`
	// Rejected are "engine at limit".
	Rejected []string `json:"rejected"`
	// Sees is what the policy was called with, one line a call.
	Sees []string `json:"sees"`
}

// groupBucket has a plain group, or both others.
type groupBucket struct {
	ID      string     `json:"id"`
	Plain   *groupSpec `json:"plain"`
	Prefill *groupSpec `json:"prefill"`
	Decode  *groupSpec `json:"decode"`
	Match   []string   `json:"match_labels"`
}

// groupSpec: Members absent is every engine, and an empty list is none.
type groupSpec struct {
	Members *[]string `json:"members"`
}

type requestSpec struct {
	Model   string   `json:"model"`
	Input   int64    `json:"input"`
	Peak    int64    `json:"peak"`
	Tokens  []uint32 `json:"tokens"`
	Session string   `json:"session"`
	Routing string   `json:"routing"`
}

func runGroups(t *testing.T, data []byte) (ran []string) {
	var file groupsFile
	decode(t, data, &file)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			w := newWorld(t, append(slices.Clone(file.Engines), c.Add...))
			for _, id := range c.Remove {
				w.remove(id)
			}
			c.run(t, w)
		})
		ran = append(ran, c.ID)
	}
	return ran
}

func (c *groupCase) run(t *testing.T, w *world) {
	t.Helper()
	p := &scripted{script: c.Policy}
	b := c.Bucket.live(w, c.Request.Model, p)
	req := &routing.Request{Request: policy.Request{
		Model: c.Request.Model, Input: c.Request.Input, Peak: c.Request.Peak,
		TokenIDs: c.Request.Tokens, SessionKey: c.Request.Session, RoutingKey: c.Request.Routing,
	}}
	s, err := b.Pick(t.Context(), req)
	if got := kind(err); got != c.Fails {
		t.Fatalf("failed with %q, want %q (%v)", got, c.Fails, err)
	}
	if got := selected(&s); got != c.Want {
		t.Errorf("picked %q, want %q", got, c.Want)
	}
	if got := rejected(err); !slices.Equal(got, c.Rejected) {
		t.Errorf("rejected %q, want %q", got, c.Rejected)
	}
	if !slices.Equal(p.seen, c.Sees) {
		t.Errorf("policy saw\n%s\nwant\n%s", strings.Join(p.seen, "\n"), strings.Join(c.Sees, "\n"))
	}
}

// live builds the bucket on views of the world's fleet.
func (b *groupBucket) live(w *world, model string, p policy.Policy) *routing.Bucket {
	group := func(stage fleet.Role, s *groupSpec) *routing.Group {
		sel := fleet.Selector{Model: model, Role: stage, All: s.Members == nil}
		if s.Members != nil {
			sel.IDs = *s.Members
		}
		v := w.fleet.Watch(sel)
		w.t.Cleanup(v.Close)
		return &routing.Group{Stage: stage, Engines: v, Policy: p}
	}
	out := &routing.Bucket{ID: b.ID}
	if b.Plain != nil {
		out.Groups = routing.PlainGroups{Plain: group(fleet.Plain, b.Plain)}
		return out
	}
	out.Groups = routing.PDGroups{
		Prefill: group(fleet.Prefill, b.Prefill), Decode: group(fleet.Decode, b.Decode), MatchLabels: b.Match,
	}
	return out
}

func selected(s *routing.Selection) string {
	switch {
	case s.PD():
		return s.Prefill.Engine.ID() + "+" + s.Decode.Engine.ID()
	case s.Plain.Engine != nil:
		return s.Plain.Engine.ID()
	}
	return ""
}

// scripted is a policy that takes the first candidate, unless its script says
// otherwise: "reject", "miss", "invalid", "foreign", or "interrupt".
type scripted struct {
	script string
	seen   []string
}

func (p *scripted) Pick(_ context.Context, candidates []*fleet.Engine, req *policy.Request) (policy.Pick, error) {
	line := fmt.Sprintf("%s/%s %s", req.Bucket, req.Stage, strings.Join(ids(candidates), ","))
	if req.TokenIDs != nil {
		line += fmt.Sprintf(" model=%s input=%d peak=%d tokens=%v session=%s routing=%s",
			req.Model, req.Input, req.Peak, req.TokenIDs, req.SessionKey, req.RoutingKey)
	}
	p.seen = append(p.seen, line)
	first := candidates[0]
	switch p.script {
	case "":
		return policy.Pick{Engine: first, Reason: "first"}, nil
	case "reject":
		return policy.Pick{}, &policy.Error{
			Kind: policy.AdmissionRejected, Rejected: []policy.Rejection{{Engine: first.ID(), Limit: "full"}},
		}
	case "miss":
		return policy.Pick{}, &policy.Error{Kind: policy.NoCandidates}
	case "invalid":
		return policy.Pick{}, &policy.Error{Kind: policy.InvalidSignal}
	case "foreign":
		return policy.Pick{Engine: twin(first)}, nil
	}
	return policy.Pick{}, fmt.Errorf("no script %q", p.script)
}

// twin is another engine with the same description.
func twin(e *fleet.Engine) *fleet.Engine {
	var f fleet.Fleet
	spec := fleet.Spec{ID: e.ID(), URL: e.URL(), Role: e.Role()}
	if err := f.Apply(e.Model(), fleet.BreakerConfig{}, []fleet.Spec{spec}); err != nil {
		return nil
	}
	return f.Engines(e.Model())[0]
}

func ids(engines []*fleet.Engine) []string {
	var out []string
	for _, e := range engines {
		out = append(out, e.ID())
	}
	return out
}
