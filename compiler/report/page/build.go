package page

import (
	"cmp"
	"slices"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/schema/plan"
)

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
	rank := func(f *diag.Finding) int {
		if f.Suppressed != nil {
			return int(diag.Note) + 1
		}
		return int(f.Severity)
	}
	slices.SortStableFunc(sorted, func(a, b diag.Finding) int { return cmp.Compare(rank(&a), rank(&b)) })
	for i := range sorted {
		f := &sorted[i]
		one := findingView{f.Severity.String(), string(f.Code), f.Pos.String(), f.Message, f.Hint}
		if why := f.Suppressed; why != nil {
			one.Severity, one.Hint = "suppressed", "suppressed by "+why.By.String()+": "+why.Reason
		}
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
	if n := list.Suppressed(); n > 0 {
		counts = append(counts, itoa(n)+" suppressed")
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
