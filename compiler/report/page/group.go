package page

import (
	"slices"
	"strconv"
	"strings"

	"shunt/schema/plan"
)

// engines lists the engines and the buckets that each may serve.
func (b *builder) engines(v *modelView, m *plan.Model) {
	at := make(map[string]int)
	for i, e := range m.Engines() {
		one := engineView{ID: e.ID, Anchor: v.Anchor + "e" + itoa(i), Role: string(e.Role), URL: e.URL, Labels: labels(e.Labels)}
		if e.BootstrapPort != nil {
			one.Port = strconv.FormatInt(*e.BootstrapPort, 10)
		}
		v.WithPorts, v.WithLabels = v.WithPorts || one.Port != "", v.WithLabels || one.Labels != ""
		at[e.ID] = i
		v.Engines = append(v.Engines, one)
	}
	const shown = 6
	for j := range m.Buckets {
		for _, g := range m.Buckets[j].Groups.All() {
			for _, e := range membersOf(m, g) {
				one := &v.Engines[at[e.ID]]
				if len(one.Buckets) == shown {
					one.More++
					continue
				}
				one.Buckets = append(one.Buckets, newLink(v.Anchor+"b"+itoa(j), m.Buckets[j].ID))
			}
		}
	}
}

// membersOf are the engines that a group selects.
func membersOf(m *plan.Model, g plan.StagedGroup) (out []*plan.Engine) {
	engines := m.Engines()
	for i := range engines {
		e := &engines[i]
		if string(e.Role) != string(g.Stage) {
			continue
		}
		if ids := g.Group.WorkerIDs; ids != nil {
			if _, ok := slices.BinarySearch(*ids, e.ID); !ok {
				continue
			}
		}
		fits := true
		for name, value := range g.Group.Labels {
			has, ok := e.Labels[name]
			fits = fits && ok && has == value
		}
		if fits {
			out = append(out, e)
		}
	}
	return out
}

func labels(m map[string]string) string {
	words := make([]string, 0, len(m))
	for name, value := range m {
		words = append(words, name+"="+value)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func (b *builder) bucket(i, j int, shared *sharer) *bucketView {
	m := &b.document.Body.Models[i]
	one := &m.Buckets[j]
	pointer := plan.BucketPointer(i, j)
	v := &bucketView{ID: one.ID, Anchor: "m" + itoa(i) + "b" + itoa(j), Number: j + 1, Min: least(one.Min), Compact: !b.small}
	if one.Max != nil {
		v.Max = strconv.FormatInt(*one.Max, 10)
	}
	if one.MaxContextTokens != nil {
		v.Context = strconv.FormatInt(*one.MaxContextTokens, 10)
	}
	room := most(one.MaxContextTokens)
	v.Lengths = briefLengths(v.Min, min(most(one.Max), room), room)
	v.Settings = b.below(pointer, func(name string) bool {
		return name == "id" || strings.HasPrefix(name, "groups/") && name != "groups/pd/match_labels"
	})
	var types []string
	for _, g := range one.Groups.All() {
		types = append(types, string(g.Group.Policy.Type))
		group := b.group(i, m, g, pointer+"/groups/"+g.Member())
		if !b.small {
			shared.fold(group, newLink(v.Anchor, shortened(one.ID, 60)+", "+group.Stage))
		}
		v.Groups = append(v.Groups, group)
	}
	v.Policies = strings.Join(types, " / ")
	return v
}

// sharer collects what groups of a large page have in common.
type sharer struct {
	prefix string
	// at are the sets of defaults, seen the places of whole policies.
	at   map[string]int
	seen map[string]link
	list []sharedView
}

// keyOf is the same for the same values.
func keyOf(policy string, lists ...[]valueView) string {
	key := policy
	for _, list := range lists {
		for _, v := range list {
			key += "\x00" + v.Name + "\x00" + v.Value
		}
		key += "\x01"
	}
	return key
}

func (s *sharer) ref(policy string, values []valueView) *link {
	key := keyOf(policy, values)
	i, ok := s.at[key]
	if !ok {
		i = len(s.list)
		s.at[key] = i
		s.list = append(s.list, sharedView{s.prefix + itoa(i), policy, values})
	}
	return &link{s.list[i].Anchor, plural(len(values), "default")}
}

// fold replaces what another group has told before.
func (s *sharer) fold(g *groupView, at link) {
	key := keyOf(g.Policy, g.Limits, g.Written, g.Defaults)
	if same, ok := s.seen[key]; ok {
		g.Same = &same
		g.Limits, g.Written, g.Defaults = nil, nil, nil
		return
	}
	s.seen[key] = at
	if len(g.Defaults) > 0 {
		g.Ref, g.Defaults = s.ref(g.Policy, g.Defaults), nil
	}
}

func (b *builder) group(model int, m *plan.Model, g plan.StagedGroup, pointer string) *groupView {
	v := &groupView{Stage: string(g.Stage), Policy: string(g.Group.Policy.Type), Members: "every engine of the role"}
	if g.Group.WorkerIDs != nil {
		v.Members = "listed engines"
	}
	if len(g.Group.Labels) > 0 {
		v.Members += " with " + labels(g.Group.Labels)
	}
	shown := 24
	if !b.small {
		shown = 4
	}
	members := membersOf(m, g)
	if len(members) == 0 {
		v.Members += ": none"
	}
	position := make(map[string]int, len(m.Engines()))
	if len(members) > 0 {
		for i, e := range m.Engines() {
			position[e.ID] = i
		}
	}
	for _, e := range members[:min(len(members), shown)] {
		to := newLink("", e.ID)
		if b.small {
			to.Anchor = "m" + itoa(model) + "e" + itoa(position[e.ID])
		}
		v.Engines = append(v.Engines, to)
	}
	v.More = len(members) - len(v.Engines)
	for _, one := range b.below(pointer, func(name string) bool { return strings.HasPrefix(name, "policy/") }) {
		if one.Written && v.MembersPlace == "" {
			v.MembersPlace = one.Origin
		}
	}
	b.tuning(v, pointer+"/policy")
	return v
}

// tuning sorts the values of a policy.
func (b *builder) tuning(v *groupView, pointer string) {
	for _, one := range b.below(pointer, nil) {
		limit, isLimit := strings.CutPrefix(one.Name, "admission ")
		_, short, _ := strings.Cut(one.Name, " ")
		switch {
		case one.Name == "type":
			if one.Written {
				v.Place = one.Origin
			}
		case isLimit:
			one.Name = limit
			v.Limits = append(v.Limits, one)
		case one.Written:
			one.Name = short
			v.Written = append(v.Written, one)
		default:
			one.Name = short
			v.Defaults = append(v.Defaults, one)
		}
	}
}

func (b *builder) requires(v *modelView, m *plan.Model) {
	r := &m.Requires
	need := func(what, why string, reasons []string) {
		if len(reasons) == 0 {
			return
		}
		one := requireView{What: what, Why: why}
		for _, pointer := range reasons[:min(len(reasons), 8)] {
			one.Because = append(one.Because, b.reason(pointer))
		}
		one.More = len(reasons) - len(one.Because)
		v.Requires = append(v.Requires, one)
	}
	need("Tokens", "the prompt is tokenized, for its length, its prefix or its ids", r.Tokens)
	need("Length estimates", "there is no tokenizer, so the length is estimated from the size of the body", r.LengthEstimate)
	need("Load reports", "engines are compared or admitted by the load that they report", r.LoadReports)
	need("Dispatch timestamps", "reports are corrected by what was sent since", r.DispatchTimestamps)
	need("A prefix source", "engines are chosen by the prefix that they hold", r.PrefixSource)
	need("A session header", "sessions are bound to engines", r.SessionHeader)
	need("A routing key header", "routing keys are bound to engines", r.RoutingKeyHeader)
}

// reason names what a pointer of the plan leads to.
func (b *builder) reason(pointer string) link {
	steps := strings.Split(pointer, "/")
	if len(steps) < 5 || steps[3] != "buckets" {
		return link{"", strings.Join(steps[min(len(steps), 3):], " ")}
	}
	model, err1 := strconv.Atoi(steps[2])
	bucket, err2 := strconv.Atoi(steps[4])
	if err1 != nil || err2 != nil || model >= len(b.document.Body.Models) || bucket >= len(b.document.Body.Models[model].Buckets) {
		return link{"", pointer}
	}
	text := shortened(b.document.Body.Models[model].Buckets[bucket].ID, 60)
	if len(steps) > 6 && steps[len(steps)-1] == "policy" {
		text += ", " + steps[len(steps)-2]
	}
	return link{"m" + steps[2] + "b" + steps[4], text}
}
