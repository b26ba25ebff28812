package bucketfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// policies are the values that a policy of a later legacy file may have.
func policies() []string {
	return []string{
		"round_robin", "random", "power_of_two", "power_of_n", "load_based", "session_aware", "cache_aware", "sticky",
		"fused_score", "score_policy",
	}
}

// legacy reads a file of specs of one stage.
func (d *decoder) legacy(f *File) {
	o := d.object(d.tree.Root(), "", "buckets", "ttft_slo_policy", "tps_slo_policy")
	o.need("buckets")
	f.TTFTSLO = o.word("ttft_slo_policy", sloWords()...)
	f.TPSSLO = o.word("tps_slo_policy", sloWords()...)
	o.list("buckets", func(n *source.Node, pointer string) {
		f.Specs = append(f.Specs, d.spec(n, pointer))
	})
	if n := o.field("buckets"); n != nil && n.Kind == source.List && len(n.Elems) == 0 {
		d.add(diag.NoBuckets, d.tree.NodePos(n), "/buckets", "the file has no buckets", "add one, or leave the option out")
	}
	d.together(f)
	d.doubts(f)
}

// spec reads one bucket of one stage.
func (d *decoder) spec(n *source.Node, pointer string) Spec {
	o := d.object(n, pointer, "id", "stage", "rank", "worker_ids", "min_extend_tokens", "max_extend_tokens",
		"min_sequence_tokens", "max_sequence_tokens", "max_context_tokens", "ttft_p95_at_capacity_ms",
		"tps_p05_at_capacity", "max_pending_prefill_tokens", "policy")
	s := Spec{Origin: d.origin(n, pointer)}
	o.need("id", "stage", "rank", "worker_ids")
	s.ID = o.text("id")
	if v := o.word("stage", string(Prefill), string(Decode)); v != nil {
		s.Stage = Stage(v.Value)
	}
	s.Rank = o.whole("rank", math.MaxUint32)
	s.WorkerIDs = o.texts("worker_ids")
	s.MaxContextTokens = o.u64("max_context_tokens")
	s.Policy = o.word("policy", policies()...)
	lower, upper := "min_extend_tokens", "max_extend_tokens"
	if s.Stage == Decode {
		lower, upper = "min_sequence_tokens", "max_sequence_tokens"
	}
	values := map[string]*Value[uint64]{}
	for _, name := range []string{"min_extend_tokens", "max_extend_tokens", "min_sequence_tokens", "max_sequence_tokens"} {
		values[name] = o.u64(name)
	}
	s.MinTokens, s.MaxTokens = values[lower], values[upper]
	s.TTFTMillis = o.u64("ttft_p95_at_capacity_ms")
	s.MaxPendingPrefillTokens = o.u64("max_pending_prefill_tokens")
	s.TokensPerSecond = o.number("tps_p05_at_capacity")
	o.otherStage(&s)
	o.specRules(&s, lower)
	return s
}

// otherStage reports the fields of the other stage, which the router refuses
// rather than ignore them.
func (o object) otherStage(s *Spec) {
	names := map[Stage][]string{
		Prefill: {"min_sequence_tokens", "max_sequence_tokens", "tps_p05_at_capacity"},
		Decode:  {"min_extend_tokens", "max_extend_tokens", "ttft_p95_at_capacity_ms", "max_pending_prefill_tokens"},
	}
	other := map[Stage]Stage{Prefill: Decode, Decode: Prefill}[s.Stage]
	for _, name := range names[s.Stage] {
		n := o.field(name)
		if n == nil {
			continue
		}
		o.add(diag.BucketStage, o.tree.NodePos(n), o.at(name), fmt.Sprintf("%s belongs to %s buckets, and this is a %s bucket", name, other, s.Stage),
			fmt.Sprintf("move it to a %s bucket or remove it", other))
	}
	if s.Stage == Decode {
		s.TTFTMillis, s.MaxPendingPrefillTokens = nil, nil
	} else if s.Stage == Prefill {
		s.TokensPerSecond = nil
	}
}

// specRules checks one spec by itself.
func (o object) specRules(s *Spec, lower string) {
	if s.ID != nil && s.ID.Value == "" {
		o.add(diag.BucketName, posOf(s.ID), o.at("id"), "the id is empty", "give the bucket a name")
	}
	o.engines(s.WorkerIDs, "worker_ids", true)
	if s.MinTokens != nil && s.MaxTokens != nil && s.MinTokens.Value > s.MaxTokens.Value {
		o.add(diag.BucketRange, posOf(s.MinTokens), o.at(lower), fmt.Sprintf("%s %d is above the upper bound %d, so no request fits", lower, s.MinTokens.Value, s.MaxTokens.Value),
			"exchange the two or correct one of them")
	}
	o.positive(s.MaxContextTokens, "max_context_tokens")
	o.positive(s.TTFTMillis, "ttft_p95_at_capacity_ms")
	o.positive(s.MaxPendingPrefillTokens, "max_pending_prefill_tokens")
	o.positiveNumber(s.TokensPerSecond, "tps_p05_at_capacity")
}

func (o object) positiveNumber(v *Value[float64], name string) {
	if v != nil && v.Value <= 0 {
		o.add(diag.BucketNumber, posOf(v), o.at(name), fmt.Sprintf("%s is %v, and must be positive", name, v.Value), "write a positive number, or remove the field")
	}
}

// engines checks a list of engines: no blank name and none twice.
func (o object) engines(v *Value[[]string], name string, needed bool) {
	if v == nil {
		return
	}
	n := o.field(name)
	if needed && len(n.Elems) == 0 {
		o.add(diag.BucketEngines, posOf(v), o.at(name), name+" is empty", "name at least one engine")
	}
	seen := make(map[string]int)
	for i, e := range n.Elems {
		if e.Kind != source.String {
			continue
		}
		pos, pointer := o.tree.NodePos(e), source.Join(o.at(name), strconv.Itoa(i))
		if strings.TrimSpace(e.Text) == "" {
			o.add(diag.BucketEngines, pos, pointer, "the name of an engine is blank", "name an engine or remove the element")
			continue
		}
		if first, ok := seen[e.Text]; ok {
			f := o.add(diag.BucketEngines, pos, pointer, fmt.Sprintf("the engine %s is in the list twice", quote(e.Text)), "remove one of the two")
			f.Related = []diag.Related{{Pos: o.tree.NodePos(n.Elems[first]), Message: "the first one is here"}}
			continue
		}
		seen[e.Text] = i
	}
}

// together checks the specs against each other.
func (d *decoder) together(f *File) {
	type key struct {
		stage Stage
		what  string
	}
	ids, ranks, engines := make(map[string]*Spec), make(map[key]*Spec), make(map[key]*Spec)
	prefill := false
	for i := range f.Specs {
		s := &f.Specs[i]
		prefill = prefill || s.Stage == Prefill || s.Stage == ""
		if s.ID != nil && s.ID.Value != "" {
			if first := ids[s.ID.Value]; first != nil {
				d.related(diag.BucketName, s.ID, fmt.Sprintf("the id %s is used twice; ids are unique over both stages", quote(s.ID.Value)), "rename one of the two", posOf(first.ID))
			} else {
				ids[s.ID.Value] = s
			}
		}
		if s.Stage == "" {
			continue
		}
		if s.Rank != nil {
			k := key{s.Stage, strconv.FormatUint(s.Rank.Value, 10)}
			if first := ranks[k]; first != nil {
				d.related(diag.BucketRank, s.Rank, fmt.Sprintf("rank %d is used twice among the %s buckets", s.Rank.Value, s.Stage), "give each bucket of a stage a rank of its own", posOf(first.Rank))
			} else {
				ranks[k] = s
			}
		}
		d.shared(s, func(engine string) **Spec {
			k := key{s.Stage, engine}
			first := engines[k]
			if first == nil {
				engines[k] = s
			}
			return &first
		})
	}
	if len(f.Specs) > 0 && !prefill {
		d.add(diag.NoBuckets, f.Specs[0].Origin.Pos, "/buckets", "the file has no prefill bucket", "add one; only decode buckets are optional")
	}
}

// shared reports the engines of a spec that another one of its stage has.
func (d *decoder) shared(s *Spec, first func(engine string) **Spec) {
	if s.WorkerIDs == nil {
		return
	}
	list := d.tree.Node(s.WorkerIDs.Origins[0].Pointer)
	for i, e := range list.Elems {
		if e.Kind != source.String || strings.TrimSpace(e.Text) == "" {
			continue
		}
		if other := *first(e.Text); other != nil && other != s {
			o := Value[string]{Origins: []Origin{d.origin(e, source.Join(s.WorkerIDs.Origins[0].Pointer, strconv.Itoa(i)))}}
			d.related(diag.BucketEngines, &o, fmt.Sprintf("the engine %s is in two %s buckets", quote(e.Text), s.Stage), "an engine may be in one bucket of a stage only; remove it from one", posOf(other.WorkerIDs))
		}
	}
}

// related reports a value that clashes with an earlier one.
func (d *decoder) related(code diag.Code, v interface{ origin() Origin }, message, hint string, first diag.Pos) {
	f := d.add(code, v.origin().Pos, v.origin().Pointer, message, hint)
	f.Related = []diag.Related{{Pos: first, Message: "the first one is here"}}
}

func (v *Value[T]) origin() Origin { return v.Origins[0] }

// doubts warns of what the router accepted without a word and nobody means.
func (d *decoder) doubts(f *File) {
	slashed := make(map[string]string)
	ttft, tps := false, false
	for i := range f.Specs {
		s := &f.Specs[i]
		ttft = ttft || s.TTFTMillis != nil
		tps = tps || s.TokensPerSecond != nil
		if s.MinTokens != nil && s.MaxContextTokens != nil && s.MaxContextTokens.Value > 0 && s.MinTokens.Value > s.MaxContextTokens.Value {
			d.add(diag.BucketDoubt, posOf(s.MinTokens), s.MinTokens.Origins[0].Pointer,
				fmt.Sprintf("the lower bound %d is above max_context_tokens %d, so no request fits", s.MinTokens.Value, s.MaxContextTokens.Value), "correct one of the two")
		}
		if s.WorkerIDs == nil {
			continue
		}
		for _, id := range s.WorkerIDs.Value {
			plain := strings.TrimRight(id, "/")
			if other, ok := slashed[plain]; ok && other != id {
				d.add(diag.BucketDoubt, posOf(s.WorkerIDs), s.WorkerIDs.Origins[0].Pointer,
					fmt.Sprintf("the engines %s and %s differ only by a slash at the end, and names are compared exactly", quote(other), quote(id)), "write the name of the engine the same way everywhere")
			}
			slashed[plain] = id
		}
	}
	d.unusedSLO(f.TTFTSLO, ttft, "ttft_p95_at_capacity_ms")
	d.unusedSLO(f.TPSSLO, tps, "tps_p05_at_capacity")
}

// unusedSLO warns of an order by estimates of which no bucket has one.
func (d *decoder) unusedSLO(v *Value[string], any bool, name string) {
	if v != nil && v.Value != "disabled" && !any {
		d.add(diag.BucketDoubt, posOf(v), v.Origins[0].Pointer, fmt.Sprintf("buckets are ordered by their estimate %s, and none has one", name), "add the estimates or remove the order")
	}
}
