package suite

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
)

// none is the text of what is not there.
const none = "none"

// mismatch is a member of an expectation that was not met.
type mismatch struct{ member, want, got string }

// compare lists what is not as expected, in the order of the schema.
func (o *outcome) compare(e *Expectation) []mismatch {
	var out []mismatch
	check := func(member, want, got string) {
		if want != "" && want != got {
			out = append(out, mismatch{member, want, got})
		}
	}
	d := o.d
	if d == nil {
		d = &routing.Decision{}
	}
	check("bucket", e.Bucket, orNone(d.Bucket, o))
	if e.Buckets != nil {
		check("buckets", ids(e.Buckets), ids(o.candidates()))
	}
	for _, id := range slices.Sorted(maps.Keys(e.Fates)) {
		check("fates/"+escape(id), string(e.Fates[id]), o.fate(id))
	}
	engine := func(member string, want Names, got *routing.PickTrace) {
		name := orNone("", o)
		if got != nil {
			name = got.Engine
		} else if o.kind() == none {
			name = none
		}
		if len(want) > 0 && !slices.Contains(want, name) {
			out = append(out, mismatch{member, strings.Join(want, " or "), name})
		}
	}
	engine("plain", e.Plain, d.Plain)
	engine("prefill", e.Prefill, d.Prefill)
	engine("decode", e.Decode, d.Decode)
	first := d.Plain
	if first == nil {
		first = d.Prefill
	}
	check("reason", string(e.Reason), reasonOf(first, o))
	check("decode_reason", string(e.DecodeReason), reasonOf(d.Decode, o))
	got := o.kind()
	if got == none {
		got = "none, picked bucket " + d.Bucket
	}
	check("error", e.Error, got)
	stage := none
	if d.Error != nil && d.Error.Stage != "" {
		stage = d.Error.Stage
	}
	check("stage", e.Stage, stage)
	status, code := o.answer()
	if e.Status != 0 {
		check("status", strconv.Itoa(e.Status), strconv.Itoa(status))
	}
	if code == "" {
		code = none
	}
	check("code", e.Code, code)
	if e.Rejections != nil {
		check("rejections", rejectionsText(e.Rejections), rejectionsText(o.rejections()))
	}
	return out
}

// orNone is a name, or none with the reason.
func orNone(name string, o *outcome) string {
	if name == "" {
		return none + " (" + o.kind() + ")"
	}
	return name
}

func ids(list []string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

// candidates are the buckets that take the length, in try order.
func (o *outcome) candidates() []string {
	if o.d == nil {
		return nil
	}
	return o.sim.Candidates(o.request)
}

// fate is what became of a bucket. Decisions name those that were tried; what
// became of others follows from the lengths.
func (o *outcome) fate(id string) string {
	if o.d == nil {
		return none
	}
	for i := range o.d.Buckets {
		if o.d.Buckets[i].ID == id {
			return string(o.d.Buckets[i].Fate)
		}
	}
	i, ok := o.index[id]
	if !ok {
		return none
	}
	return string(o.sim.Fate(o.request, i))
}

func reasonOf(p *routing.PickTrace, o *outcome) string {
	if p == nil {
		return orNone("", o)
	}
	return string(p.Reason)
}

func rejectionsText(list []policy.Rejection) string {
	if len(list) == 0 {
		return none
	}
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = rejectionText(r)
	}
	return strings.Join(texts, ", ")
}
