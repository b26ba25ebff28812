package plandiff

import (
	"encoding/json"

	"shunt/schema/plan"
)

// Format names the JSON document and its version.
const Format = "shunt.diff/1"

// Class is how much a change matters.
type Class string

// The classes, the worst first.
const (
	Breaking  Class = "breaking"
	Behaviour Class = "behaviour"
	Cosmetic  Class = "cosmetic"
)

// Side is one of the two plans.
type Side struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Diff is how two plans differ.
type Diff struct {
	Format string `json:"format"`
	Old    Side   `json:"old"`
	New    Side   `json:"new"`
	// Same says that the plans do the same. Routes and Changes are empty then,
	// except after OnlyBreaking.
	Same bool `json:"same"`
	// Count has the number of routes and changes of each class.
	Count Count `json:"count"`
	// Routes are the requests that other buckets are offered to, by model, input
	// and peak.
	Routes []Route `json:"routes"`
	// Changes are all other differences.
	Changes []Change `json:"changes"`
}

// Count is a number for each class.
type Count struct {
	Breaking  int `json:"breaking"`
	Behaviour int `json:"behaviour"`
	Cosmetic  int `json:"cosmetic"`
}

func (c *Count) add(class Class) {
	switch class {
	case Breaking:
		c.Breaking++
	case Behaviour:
		c.Behaviour++
	case Cosmetic:
		c.Cosmetic++
	}
}

// Effect is what a route means for its requests.
type Effect string

// The effects.
const (
	Unroutable Effect = "unroutable" // no bucket takes them any more
	Unserved   Effect = "unserved"   // buckets take them, but none has engines any more
	Routable   Effect = "routable"   // a bucket takes them now
	First      Effect = "first"      // another bucket is tried first
	Fallback   Effect = "fallback"   // the first is the same, those after it are not
)

// Route is a rectangle of inputs and peaks and what became of its requests.
type Route struct {
	Class  Class   `json:"class"`
	Effect Effect  `json:"effect"`
	Model  string  `json:"model"`
	Input  Range   `json:"input"`
	Peak   Peak    `json:"peak"`
	Old    Buckets `json:"old"`
	New    Buckets `json:"new"`
	// TTFT and TPS are the latency targets of the requests, absent for whatever
	// target, also none.
	TTFT *TTFTTargets `json:"ttft_target_ms,omitempty"`
	TPS  *TPSTargets  `json:"tps_target,omitempty"`
	// TargetsVary says that the orders are those without latency targets, and that
	// the others were too many to compare.
	TargetsVary bool `json:"targets_vary,omitempty"`
	// Varies says that later candidates also differ within the rectangle; Old
	// and New are those of its lowest peak. Only models with many buckets for
	// one length have such.
	Varies bool `json:"varies,omitempty"`
}

// Range is inclusive; without To it has no end.
type Range struct {
	From int64  `json:"from"`
	To   *int64 `json:"to,omitempty"`
}

// Peak is a range of expected peaks. Unknown says that requests with an unknown
// peak belong to it, and those whose peak is the input; From is absent then.
type Peak struct {
	Unknown bool   `json:"unknown"`
	From    *int64 `json:"from,omitempty"`
	To      *int64 `json:"to,omitempty"`
}

// maxListed bounds the buckets of a route that are named.
const maxListed = 16

// Buckets are the ids of candidate buckets in try order. At most maxListed are
// named, Total counts all.
type Buckets struct {
	IDs   []string `json:"ids"`
	Total int      `json:"total"`
}

// Change is one difference beside routes. Places, Engines, From and To are ids:
// a place is BUCKET or BUCKET/STAGE.
type Change struct {
	Class Class  `json:"class"`
	Kind  Kind   `json:"kind"`
	Model string `json:"model,omitempty"`
	// Field is the changed value, as in a plan, relative to its places.
	Field string `json:"field,omitempty"`
	// Old and New are values in JSON; an absent one was not set.
	Old json.RawMessage `json:"old,omitempty"`
	New json.RawMessage `json:"new,omitempty"`
	// OldDefault and NewDefault say that nobody wrote the value.
	OldDefault bool `json:"old_default,omitempty"`
	NewDefault bool `json:"new_default,omitempty"`
	// Places are the buckets or groups that changed in the same way.
	Places []string `json:"places,omitempty"`
	// Engines changed in the same way: they left the groups From and joined
	// the groups To.
	Engines []string `json:"engines,omitempty"`
	From    []string `json:"from,omitempty"`
	To      []string `json:"to,omitempty"`
	// Note adds what follows from the change.
	Note string `json:"note,omitempty"`
}

// Kind is what was changed.
type Kind string

// The kinds.
const (
	ModelAdded    Kind = "model_added"
	ModelRemoved  Kind = "model_removed"
	BucketAdded   Kind = "bucket_added"
	BucketRemoved Kind = "bucket_removed"
	BucketRenamed Kind = "bucket_renamed"
	BucketStopped Kind = "bucket_stopped" // no group, pair or limit lets it serve any more
	BucketStarted Kind = "bucket_started" // the reverse
	EngineAdded   Kind = "engine_added"
	EngineRemoved Kind = "engine_removed"
	EngineRenamed Kind = "engine_renamed"
	EngineMoved   Kind = "engine_moved"
	EngineChanged Kind = "engine_changed"
	PolicyChanged Kind = "policy_changed"
	LimitChanged  Kind = "admission_changed"
	FieldChanged  Kind = "field_changed"
)

// Compare compares two valid plans. The names are for people.
func Compare(oldName string, before *plan.Document, newName string, after *plan.Document) *Diff {
	d := &Diff{
		Format: Format, Old: Side{oldName, before.Digest}, New: Side{newName, after.Digest},
		Routes: []Route{}, Changes: []Change{},
	}
	if d.Same = before.Digest == after.Digest; d.Same {
		return d
	}
	c := &comparison{diff: d, old: newSide(before), new: newSide(after), at: make(map[string]int)}
	c.fields(context{}, "server", "/server", "/server", &before.Body.Server, &after.Body.Server)
	c.fields(context{}, "state", "/state", "/state", &before.Body.State, &after.Body.State)
	c.models()
	for i := range d.Routes {
		d.Count.add(d.Routes[i].Class)
	}
	for i := range d.Changes {
		d.Count.add(d.Changes[i].Class)
	}
	// Other plans of one model in another order do the same.
	d.Same = d.Count == Count{}
	return d
}

// OnlyBreaking is the difference without what does not break. Count still counts
// everything.
func (d *Diff) OnlyBreaking() *Diff {
	out := *d
	out.Routes, out.Changes = []Route{}, []Change{}
	for _, r := range d.Routes {
		if r.Class == Breaking {
			out.Routes = append(out.Routes, r)
		}
	}
	for _, c := range d.Changes {
		if c.Class == Breaking {
			out.Changes = append(out.Changes, c)
		}
	}
	return &out
}

// Empty reports whether nothing is listed.
func (d *Diff) Empty() bool { return len(d.Routes)+len(d.Changes) == 0 }

// side is one plan with the places where its values were written.
type side struct {
	body   *plan.Body
	places map[string]plan.Place
}

func newSide(d *plan.Document) side {
	return side{&d.Body, d.Provenance.Places()}
}

// isDefault reports whether nobody wrote the value at a pointer, as far as the
// plan knows.
func (s *side) isDefault(pointer string) bool {
	if len(s.places) == 0 {
		return false
	}
	_, written := s.places[pointer]
	return !written
}

// comparison collects the difference.
type comparison struct {
	diff     *Diff
	old, new side
	// at has the index of each change by its key, so that what changed alike
	// in many places is one change.
	at map[string]int
}

// context is what a change belongs to.
type context struct {
	model, place string
}

// add adds a change, or its place to one that is alike.
func (c *comparison) add(change Change, place string) {
	key := string(change.Class) + "\x00" + string(change.Kind) + "\x00" + change.Model + "\x00" + change.Field + "\x00" +
		string(change.Old) + "\x00" + string(change.New) + "\x00" + change.Note
	if change.OldDefault {
		key += "o"
	}
	if change.NewDefault {
		key += "n"
	}
	i, alike := c.at[key]
	if !alike {
		i = len(c.diff.Changes)
		c.at[key] = i
		c.diff.Changes = append(c.diff.Changes, change)
	}
	if place != "" {
		c.diff.Changes[i].Places = append(c.diff.Changes[i].Places, place)
	}
}

func (c *comparison) models() {
	used := make(map[string]bool)
	for i := range c.old.body.Models {
		m := &c.old.body.Models[i]
		j := modelIndex(c.new.body, m.ID)
		if j < 0 {
			c.diff.Changes = append(c.diff.Changes, Change{Class: Breaking, Kind: ModelRemoved, Model: m.ID, Note: "requests for it are answered with status 404"})
			continue
		}
		used[m.ID] = true
		newModelDiff(c, i, j).compare()
	}
	for i := range c.new.body.Models {
		if id := c.new.body.Models[i].ID; !used[id] {
			c.diff.Changes = append(c.diff.Changes, Change{Class: Behaviour, Kind: ModelAdded, Model: id})
		}
	}
}

func modelIndex(b *plan.Body, id string) int {
	for i := range b.Models {
		if b.Models[i].ID == id {
			return i
		}
	}
	return -1
}
