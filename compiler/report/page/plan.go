package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/schema/plan"
)

func itoa(n int) string { return strconv.Itoa(n) }

// planView is the page of one plan.
type planView struct {
	Name, Digest, Short string
	Compiler            string
	Sources             []plan.Source
	Tiles               []tile
	Compiled            bool
	// Findings are the first ones, the worst before the others; OtherFindings
	// are folded, and LeftFindings is how many are not there.
	Findings, OtherFindings []findingView
	LeftFindings            int
	FindingCounts           string
	Worst                   string
	Models                  []*modelView
	Settings                []settings
}

// tile is a number at the top of a page.
// Class is what its number is about, if it should be seen.
type tile struct{ Number, Text, Link, Class string }

// findingView is a finding in words.
type findingView struct{ Severity, Code, Place, Message, Hint string }

// settings are values that stand together.
type settings struct {
	Title  string
	Values []valueView
}

// valueView is a value and where it comes from. Written is false for defaults
// and for what the compiler derived.
type valueView struct {
	Name, Value, Origin string
	Written             bool
}

// link leads to another place of the page, or is only text without an anchor.
type link struct{ Anchor, Text string }

// newLink names something that may have a long name.
func newLink(anchor, name string) link { return link{anchor, shortened(name, 80)} }

// modelView is a model.
type modelView struct {
	ID, Anchor string
	Summary    string
	Bands      *bands
	Regions    []regionView
	Buckets    []*bucketView
	Engines    []engineView
	// WithLabels and WithPorts say that some engine has them.
	WithLabels, WithPorts bool
	Requires              []requireView
	Settings              []valueView
	// Shared are the defaults that several policies have, on pages too large
	// to repeat them.
	Shared []sharedView
	Unfold bool
}

// regionView is a range of inputs and what they try.
type regionView struct {
	Input string
	Tries []link
	More  int
}

// bucketView is a bucket.
type bucketView struct {
	ID, Anchor   string
	Number       int
	Min          int64
	Max, Context string // empty is unbounded
	Lengths      string
	Policies     string
	Settings     []valueView
	Groups       []*groupView
	// Compact buckets are written in few bytes, because there are many.
	Compact bool
}

// groupView is a group of a bucket.
type groupView struct {
	Stage string
	// Members says how the engines were selected, and MembersPlace where.
	Members, MembersPlace string
	Engines               []link
	More                  int
	Policy                string
	// Place is where the policy was written, empty if nobody did.
	Place string
	// Written and Defaults are the tuning, Limits the admission.
	Written, Defaults, Limits []valueView
	// Ref leads to the defaults where they are not repeated, and Same to the
	// group that has the same policy, where that is not repeated.
	Ref, Same *link
}

// engineView is an engine.
type engineView struct {
	ID, Anchor, Role, URL, Port, Labels string
	Buckets                             []link
	More                                int
}

// requireView is a need of a model.
type requireView struct {
	What, Why string
	Because   []link
	More      int
}

// sharedView is a set of defaults.
type sharedView struct {
	Anchor, Title string
	Values        []valueView
}

// builder makes the view of a plan.
type builder struct {
	document *plan.Document
	values   []report.Value
	// start is the first of the values below a pointer; they stand together.
	start map[string]int
	// files are the names by which sources are known where values come from.
	files map[string]string
	// one says that all values come from one file, which large pages name once.
	one bool
	// small pages repeat what large ones share, and name more.
	small bool
}

func newBuilder(d *plan.Document) (*builder, error) {
	values, err := report.Values(d)
	if err != nil {
		return nil, err
	}
	b := &builder{document: d, values: values, start: make(map[string]int), files: shortFiles(d.Provenance.Sources)}
	before := ""
	for i := range values {
		pointer := values[i].Pointer
		common := 0
		for common < min(len(pointer), len(before)) && pointer[common] == before[common] {
			common++
		}
		for j := 1; j < len(pointer); j++ {
			// An ancestor ends before a slash. One that was there before has a start.
			if pointer[j] == '/' && (j >= common || j >= len(before) || before[j] != '/') {
				b.start[pointer[:j]] = i
			}
		}
		before = pointer
	}
	buckets := 0
	for i := range d.Body.Models {
		buckets += len(d.Body.Models[i].Buckets)
	}
	b.small = buckets <= smallBuckets
	b.one = len(d.Provenance.Sources) == 1
	return b, nil
}

// smallBuckets is how many buckets a page has at most that tells everything
// everywhere.
const smallBuckets = 60

// below lists the values under a pointer, with names relative to it, except
// those that skip leaves out.
func (b *builder) below(pointer string, skip func(name string) bool) []valueView {
	var out []valueView
	i, ok := b.start[pointer]
	for ; ok && i < len(b.values); i++ {
		name, inside := strings.CutPrefix(b.values[i].Pointer, pointer+"/")
		if !inside {
			break
		}
		if skip == nil || !skip(name) {
			out = append(out, b.value(strings.TrimPrefix(name, "groups/pd/"), b.values[i]))
		}
	}
	return out
}

func (b *builder) plan(p Plan) *planView {
	d := b.document
	v := &planView{
		Name: p.Name, Digest: d.Digest, Short: shortDigest(d.Digest), Compiled: p.Compiled,
		Compiler: cmp.Or(d.Provenance.Compiler, "an unnamed compiler"), Sources: d.Provenance.Sources,
	}
	engines, buckets := 0, 0
	for i := range d.Body.Models {
		m := b.model(i)
		v.Models = append(v.Models, m)
		engines, buckets = engines+len(m.Engines), buckets+len(m.Buckets)
	}
	first := "#m0"
	v.Tiles = []tile{
		{itoa(len(v.Models)), noun(len(v.Models), "model"), first, ""}, {itoa(buckets), noun(buckets, "bucket"), first + "buckets", ""},
		{itoa(engines), noun(engines, "engine"), first + "engines", ""},
	}
	if p.Compiled {
		v.findings(p.Findings)
	}
	v.Settings = []settings{{"Server", b.below("/server", nil)}, {"Shared state", b.below("/state", nil)}}
	return v
}

func noun(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// A page has so many findings, and so many that are not folded.
const (
	shownFindings    = 200
	unfoldedFindings = 6
)

// findings adds what the check of the configuration said.
func (v *planView) findings(list diag.List) {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b diag.Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	for i := range sorted {
		f := &sorted[i]
		one := findingView{f.Severity.String(), string(f.Code), f.Pos.String(), f.Message, f.Hint}
		switch {
		case i < unfoldedFindings:
			v.Findings = append(v.Findings, one)
		case i < shownFindings:
			v.OtherFindings = append(v.OtherFindings, one)
		default:
			v.LeftFindings++
		}
	}
	v.Worst = "fine"
	if worst, ok := list.Worst(); ok {
		v.Worst = worst.String()
	}
	var counts []string
	for _, s := range []diag.Severity{diag.Error, diag.Warning, diag.Note} {
		if n := list.Count(s); n > 0 {
			counts = append(counts, plural(n, s.String()))
		}
	}
	v.FindingCounts = cmp.Or(strings.Join(counts, ", "), "none")
	v.Tiles = append(v.Tiles, tile{itoa(len(list)), noun(len(list), "finding"), "#findings", v.Worst})
}

func (b *builder) model(i int) *modelView {
	m := &b.document.Body.Models[i]
	v := &modelView{ID: m.ID, Anchor: "m" + itoa(i), Unfold: b.small && len(m.Buckets) <= 6}
	v.Bands = newBands(m, newScale(m), "Lengths of "+m.ID, v.Anchor+"b", nil)
	v.Summary = plural(len(m.Buckets), "bucket") + ", " + plural(len(m.Engines()), "engine")
	v.Settings = b.below("/models/"+itoa(i), func(name string) bool {
		first, _, _ := strings.Cut(name, "/")
		return first == "id" || first == "discovery" || first == "buckets" || first == "breakpoints" || first == "requires"
	})
	shared := &sharer{prefix: v.Anchor + "d", at: make(map[string]int), seen: make(map[string]link)}
	for j := range m.Buckets {
		v.Buckets = append(v.Buckets, b.bucket(i, j, shared))
	}
	v.Shared = shared.list
	v.Regions = b.regions(m, v.Anchor)
	b.engines(v, m)
	b.requires(v, m)
	return v
}

// regions are the ranges of inputs, each with what it tries.
func (b *builder) regions(m *plan.Model, anchor string) (out []regionView) {
	shown := 8
	if !b.small {
		shown = 2
	}
	for i := range m.Breakpoints {
		r := regionView{Input: span(m.Breakpoints[i].From, endOf(m, i))}
		for _, run := range m.Breakpoints[i].Runs {
			for j := run[0]; j <= run[1]; j++ {
				if len(r.Tries) == shown {
					r.More += run[1] - j + 1
					break
				}
				to := newLink("", m.Buckets[j].ID)
				if b.small {
					to.Anchor = anchor + "b" + itoa(j)
				}
				r.Tries = append(r.Tries, to)
			}
		}
		out = append(out, r)
	}
	return out
}

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
