package page

import (
	"strings"

	"shunt/compiler/plandiff"
	"shunt/schema/plan"
)

// diffView is the page of a comparison.
type diffView struct {
	Old, New sideView
	Same     bool
	Tiles    []tile
	// Lists are the differences, the worst first.
	Lists  []diffList
	Models []diffModel
}

// sideView is one of the two plans.
type sideView struct{ Name, Digest, Short, Findings string }

// diffList is all differences of one class.
type diffList struct {
	Class, Meaning string
	Routes         []routeView
	Changes        []changeView
	// Left is how many of both are not shown.
	Left int
}

// A page shows so many routes and changes of a class, buckets of a route, and
// marks.
const (
	shownRoutes  = 150
	shownChanges = 300
	shownIDs     = 6
	shownMarks   = 400
)

// routeView is a set of requests that go elsewhere.
type routeView struct {
	Model, Effect, Input, Peak string
	OldOrder, NewOrder         orderView
}

// orderView is buckets in try order.
type orderView struct {
	IDs  []string
	More int
}

func newOrder(b plandiff.Buckets) orderView {
	ids := b.IDs[:min(len(b.IDs), shownIDs)]
	return orderView{ids, b.Total - len(ids)}
}

// changeView is another difference.
type changeView struct{ Model, Text string }

// diffModel is a model with the lengths of both plans on one axis.
type diffModel struct {
	ID       string
	Drawings []*bands
}

func newDiffView(d *plandiff.Diff, old, now *builder, before, after Plan) *diffView {
	v := &diffView{
		Old: newSide(before), New: newSide(after), Same: d.Same,
	}
	for _, class := range []struct {
		of      plandiff.Class
		count   int
		meaning string
	}{
		{plandiff.Breaking, d.Count.Breaking, "Requests that were served are refused whatever the load, or clients have to change something."},
		{plandiff.Behaviour, d.Count.Behaviour, "Requests are served elsewhere, in another order, or under other limits or times."},
		{plandiff.Cosmetic, d.Count.Cosmetic, "Nothing about requests changes."},
	} {
		one := tile{Number: itoa(class.count), Text: string(class.of)}
		if class.count > 0 {
			one.Link, one.Class = "#"+one.Text, one.Text
			v.Lists = append(v.Lists, newDiffList(d, class.of, class.meaning))
		}
		v.Tiles = append(v.Tiles, one)
	}
	v.models(d, old.document, now.document)
	return v
}

func newSide(p Plan) sideView {
	out := sideView{Name: p.Name, Digest: p.Document.Digest, Short: shortDigest(p.Document.Digest)}
	if p.Compiled {
		out.Findings = plural(len(p.Findings), "finding")
	}
	return out
}

func newDiffList(d *plandiff.Diff, class plandiff.Class, meaning string) diffList {
	l := diffList{Class: string(class), Meaning: meaning}
	for i := range d.Routes {
		if r := &d.Routes[i]; r.Class == class && len(l.Routes) == shownRoutes {
			l.Left++
		} else if r.Class == class {
			peak := r.Peak.String()
			if t := r.Targets(); t != "" {
				peak += ", " + t
			}
			l.Routes = append(l.Routes, routeView{
				Model: r.Model, Effect: effect(r.Effect), Input: r.Input.String(), Peak: peak,
				OldOrder: newOrder(r.Old), NewOrder: newOrder(r.New),
			})
		}
	}
	for i := range d.Changes {
		if c := &d.Changes[i]; c.Class == class && len(l.Changes) == shownChanges {
			l.Left++
		} else if c.Class == class {
			l.Changes = append(l.Changes, changeView{c.Model, c.String()})
		}
	}
	return l
}

func effect(e plandiff.Effect) string {
	switch e {
	case plandiff.Unroutable:
		return "no bucket takes them any more"
	case plandiff.Unserved:
		return "no engine serves them any more"
	case plandiff.Routable:
		return "a bucket takes them now"
	case plandiff.First:
		return "another bucket is tried first"
	case plandiff.Fallback:
		return "the same bucket first, others after it"
	}
	return string(e)
}

// models draws what both plans have of each model.
func (v *diffView) models(d *plandiff.Diff, old, now *plan.Document) {
	find := func(d *plan.Document, id string) *plan.Model {
		for i := range d.Body.Models {
			if d.Body.Models[i].ID == id {
				return &d.Body.Models[i]
			}
		}
		return nil
	}
	var ids []string
	for _, one := range []*plan.Document{old, now} {
		for i := range one.Body.Models {
			if id := one.Body.Models[i].ID; one == old || find(old, id) == nil {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		was, is := find(old, id), find(now, id)
		m := diffModel{ID: id}
		var both []*plan.Model
		for _, one := range []*plan.Model{was, is} {
			if one != nil {
				both = append(both, one)
			}
		}
		s := newScale(both...)
		if was != nil {
			m.Drawings = append(m.Drawings, newBands(was, s, "Old lengths of "+id, "", changedIn(was, is)))
		}
		if is != nil {
			m.Drawings = append(m.Drawings, newBands(is, s, "New lengths of "+id, "", changedIn(is, was)))
		}
		for _, drawing := range m.Drawings {
			drawing.Heading, _, _ = strings.Cut(drawing.Title, " ")
			drawing.mark(d, id, s)
		}
		v.Models = append(v.Models, m)
	}
}

// mark marks the inputs whose requests go elsewhere.
func (b *bands) mark(d *plandiff.Diff, model string, s scale) {
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Model != model {
			continue
		}
		x, end := s.x(r.Input.From), int(s.right)
		if r.Input.To != nil {
			end = s.x(*r.Input.To + 1)
		}
		m := gap{X: x, Width: max(end-x, 2), Class: string(r.Class)}
		if n := len(b.Marks); n > 0 && (b.Marks[n-1].X == m.X && b.Marks[n-1].Class == m.Class || n == shownMarks) {
			continue
		}
		b.Breaks, b.Moves = b.Breaks || r.Class == plandiff.Breaking, b.Moves || r.Class != plandiff.Breaking
		m.Text = "input " + r.Input.String() + ": " + effect(r.Effect)
		b.Marks = append(b.Marks, m)
	}
}

// changedIn are the buckets of a model that the other one has not, or with other
// lengths.
func changedIn(m, other *plan.Model) map[string]bool {
	type bounds struct{ min, max, room int64 }
	of := func(b *plan.Bucket) bounds { return bounds{least(b.Min), most(b.Max), most(b.MaxContextTokens)} }
	there := make(map[string]bounds)
	if other != nil {
		for i := range other.Buckets {
			there[other.Buckets[i].ID] = of(&other.Buckets[i])
		}
	}
	out := make(map[string]bool)
	for i := range m.Buckets {
		b := &m.Buckets[i]
		if was, ok := there[b.ID]; !ok || was != of(b) {
			out[b.ID] = true
		}
	}
	return out
}
