package plandiff

import (
	"encoding/json"
	"slices"

	"shunt/schema/plan"
)

// pairing says which element of one list is which of the other, -1 for none.
type pairing struct {
	partner []int // by old index
	back    []int // by new index
}

func newPairing(before, after int) pairing {
	p := pairing{make([]int, before), make([]int, after)}
	for i := range p.partner {
		p.partner[i] = -1
	}
	for i := range p.back {
		p.back[i] = -1
	}
	return p
}

func (p *pairing) join(i, j int) { p.partner[i], p.back[j] = j, i }

// byKey joins what has no partner yet and the same key, which is not empty. Keys
// that several have are joined in order.
func (p *pairing) byKey(before, after func(int) string) {
	waiting := make(map[string][]int)
	for i, j := range p.partner {
		if j < 0 {
			if key := before(i); key != "" {
				waiting[key] = append(waiting[key], i)
			}
		}
	}
	if len(waiting) == 0 {
		return
	}
	for j, i := range p.back {
		if i >= 0 {
			continue
		}
		key := after(j)
		if list := waiting[key]; len(list) > 0 {
			p.join(list[0], j)
			waiting[key] = list[1:]
		}
	}
}

// pairEngines pairs engines by id, then by URL: an engine with another id at the
// same address was renamed.
func pairEngines(before, after []plan.Engine) pairing {
	p := newPairing(len(before), len(after))
	p.byKey(func(i int) string { return before[i].ID }, func(j int) string { return after[j].ID })
	p.byKey(func(i int) string { return before[i].URL + " " + string(before[i].Role) },
		func(j int) string { return after[j].URL + " " + string(after[j].Role) })
	return p
}

// pairBuckets pairs buckets by id, then by content, then by range and engines:
// those were renamed.
func (m *modelDiff) pairBuckets() pairing {
	before, after := m.before.Buckets, m.after.Buckets
	p := newPairing(len(before), len(after))
	p.byKey(func(i int) string { return before[i].ID }, func(j int) string { return after[j].ID })
	names := make(map[string]string) // the new ids of renamed engines
	for i, j := range m.engines.partner {
		if j >= 0 {
			names[m.before.Engines()[i].ID] = m.after.Engines()[j].ID
		}
	}
	for _, whole := range [...]bool{true, false} {
		p.byKey(func(i int) string { return bucketKey(&before[i], names, whole) },
			func(j int) string { return bucketKey(&after[j], nil, whole) })
	}
	old := p.single(before, p.partner)
	now := p.single(after, p.back)
	p.byKey(func(i int) string { return old[i] }, func(j int) string { return now[j] })
	return p
}

// single lists the ranges of buckets without a partner, empty for a range that
// several of them have: only one is surely the same bucket.
func (p *pairing) single(buckets []plan.Bucket, partner []int) []string {
	out, first := make([]string, len(buckets)), make(map[string]int)
	for i := range buckets {
		if partner[i] >= 0 {
			continue
		}
		b := &buckets[i]
		key := string(kindOf(&b.Groups))
		for _, bound := range [...]*int64{b.Min, b.Max, b.MaxContextTokens} {
			key += " " + string(raw(bound))
		}
		if at, repeated := first[key]; repeated {
			out[at] = ""
			continue
		}
		first[key], out[i] = i, key
	}
	return out
}

// bucketKey is what a bucket is apart from its id; not whole, only its range and
// the engines of its groups, and nothing if these are every engine.
func bucketKey(b *plan.Bucket, names map[string]string, whole bool) string {
	out := *b
	out.ID = ""
	listed := false
	group := func(g plan.Group) plan.Group {
		if g.WorkerIDs != nil {
			g.WorkerIDs = new(renamedIDs(*g.WorkerIDs, names))
			listed = true
		}
		listed = listed || len(g.Labels) > 0
		if !whole {
			g.Policy = plan.Policy{}
		}
		return g
	}
	if g := b.Groups.Plain; g != nil {
		out.Groups.Plain = new(group(*g))
	}
	if g := b.Groups.PD; g != nil {
		pd := *g
		pd.Prefill, pd.Decode = group(g.Prefill), group(g.Decode)
		out.Groups.PD = &pd
	}
	if !whole {
		if !listed {
			return ""
		}
		out.Rank, out.TTFTMS, out.TokensPerSecond = 0, nil, nil
	}
	key, err := json.Marshal(&out)
	if err != nil {
		return "" // plans always have a JSON form
	}
	return string(key)
}

func renamedIDs(ids []string, names map[string]string) []string {
	out := slices.Clone(ids)
	for i, id := range out {
		if name, ok := names[id]; ok {
			out[i] = name
		}
	}
	slices.Sort(out)
	return out
}
