package lower

import (
	"slices"
	"strconv"

	"shunt/compiler/config"
	"shunt/schema/plan"
)

// buckets lowers the buckets of a model in try order, or its catch-all bucket.
func buckets(m *config.Model, at string, t *tracer) []plan.Bucket {
	l := groupLowerer{model: m, at: at}
	if m.Buckets == nil {
		e := t.element(at+"/buckets/0", at)
		defer e.end()
		return []plan.Bucket{l.catchAll(e)}
	}
	written := *m.Buckets
	ranges := make([]plan.Bucket, len(written))
	for i := range written {
		ranges[i] = limits(&written[i])
	}
	out := make([]plan.Bucket, 0, len(written))
	for to, from := range sorted(len(written), func(a, b int) int { return plan.CompareBuckets(ranges[a], ranges[b]) }) {
		w, b := &written[from], ranges[from]
		e := t.element(at+"/buckets/"+strconv.Itoa(to), at+"/buckets/"+strconv.Itoa(from))
		e.note(true, "id", "id")
		e.note(w.Rank != nil, "rank", "rank")
		e.note(w.Limits.Min != nil, "min", "limits/min")
		e.note(w.Limits.Max != nil, "max", "limits/max")
		e.note(w.MaxContextTokens != nil, "max_context_tokens", "max_context_tokens")
		e.note(w.TTFTMS != nil, "ttft_ms", "ttft_ms")
		e.note(w.TokensPerSecond != nil, "tokens_per_second", "tokens_per_second")
		b.Groups = l.groups(&w.Groups, e)
		e.end()
		out = append(out, b)
	}
	return out
}

// limits is a bucket without its groups.
func limits(b *config.Bucket) plan.Bucket {
	return plan.Bucket{
		ID: b.ID, Rank: config.Or(b.Rank, config.DefaultRank),
		Min: b.Limits.Min, Max: b.Limits.Max, MaxContextTokens: b.MaxContextTokens,
		TTFTMS: b.TTFTMS, TokensPerSecond: b.TokensPerSecond,
	}
}

// groupLowerer lowers the groups of one model.
type groupLowerer struct {
	model *config.Model
	at    string
}

// catchAll is the bucket of a model that lists none: every engine, any length.
func (l groupLowerer) catchAll(e *element) plan.Bucket {
	roles := make(map[plan.Role]bool)
	for i := range l.model.Discovery.Static.Engines {
		roles[plan.Role(l.model.Discovery.Static.Engines[i].Role)] = true
	}
	if roles[plan.Plain] {
		return plan.Bucket{ID: config.CatchAllPlain, Groups: l.groups(&config.Groups{Plain: &config.Group{}}, e)}
	}
	return plan.Bucket{ID: config.CatchAllPD, Groups: l.groups(&config.Groups{PD: &config.PDGroups{}}, e)}
}

func (l groupLowerer) groups(g *config.Groups, e *element) plan.Groups {
	if g.PD == nil {
		group := l.group(g.Plain, plan.Plain, "groups/plain", e)
		return plan.Groups{Plain: &group}
	}
	labels := slices.Sorted(slices.Values(g.PD.MatchLabels))
	out := plan.PDGroups{
		Prefill:     l.group(&g.PD.Prefill, plan.Prefill, "groups/pd/prefill", e),
		Decode:      l.group(&g.PD.Decode, plan.Decode, "groups/pd/decode", e),
		MatchLabels: labels,
	}
	e.note(len(labels) > 0, "groups/pd/match_labels", "groups/pd/match_labels")
	return plan.Groups{PD: &out}
}

func (l groupLowerer) group(g *config.Group, stage plan.Role, at string, e *element) plan.Group {
	out := plan.Group{Labels: g.Labels}
	if g.WorkerIDs != nil {
		ids := slices.Clone(*g.WorkerIDs)
		slices.Sort(ids)
		if ids == nil {
			ids = []string{}
		}
		out.WorkerIDs = &ids
	}
	e.note(g.WorkerIDs != nil, at+"/worker_ids", at+"/worker_ids")
	e.note(len(g.Labels) > 0, at+"/labels", at+"/labels")
	out.Policy = l.policy(g, stage, at, e)
	return out
}

// policy resolves which policy a group runs. A group's own policy replaces the
// model's default as a whole.
func (l groupLowerer) policy(g *config.Group, stage plan.Role, at string, e *element) plan.Policy {
	to := at + "/policy/"
	if g.Policy != nil {
		return policy(g.Policy, func(present bool, member, written string) {
			e.note(present, to+member, to+written)
		})
	}
	if p := l.model.Defaults.For(string(stage)); p != nil {
		name := "policy/"
		if stage == plan.Decode {
			name = "decode_policy/"
		}
		return policy(p, func(present bool, member, written string) {
			e.noteElsewhere(present, to+member, l.at+"/defaults/"+name+written)
		})
	}
	return policy(&config.Policy{Type: config.DefaultPolicyType}, func(bool, string, string) {})
}
