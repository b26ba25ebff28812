package bucketfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"shunt/compiler/diag"
)

// Open is a question that nothing answers, with the text for the decisions file
// that would.
type Open struct {
	// Origins are the fields that the question is about.
	Origins []Origin
	// Question is one sentence.
	Question string
	// Section is the list of the decisions file that takes the answer, or a
	// field of it when Answer is its value.
	Section string
	// Answer is the entry, without its indent and dash, with TODO where a choice
	// is to be made. Choices say what may stand there. Without an answer of its own
	// the question is answered by what answers another one.
	Answer  []string
	Choices []string
}

// association is the state of one Associate.
type association struct {
	file    File
	byID    map[string]*Spec
	paired  map[string]bool
	lone    map[string]*Lone
	decodes bool
	out     []Bucket
	open    []Open
	list    diag.List
}

// Associate makes complete buckets of a file. Those of a legacy file are made
// only of what the decisions state: a pair of specs, or what becomes of a spec
// alone. The others are complete already. Every spec of which a bucket cannot be
// made has a question. A bucket whose values are all known is returned also while
// questions about others are open.
func Associate(f File, x Decisions) ([]Bucket, []Open, diag.List) {
	a := &association{
		file: f, byID: make(map[string]*Spec), paired: make(map[string]bool), lone: make(map[string]*Lone),
		out: slices.Clone(f.Buckets),
	}
	for i := range f.Specs {
		s := &f.Specs[i]
		a.decodes = a.decodes || s.Stage == Decode
		if s.ID != nil {
			a.byID[s.ID.Value] = s
		}
	}
	for i := range x.Pairs {
		a.pair(&x.Pairs[i])
	}
	for i := range x.Lone {
		a.single(&x.Lone[i])
	}
	for i := range f.Specs {
		a.question(&f.Specs[i])
	}
	a.names()
	a.list.Sort()
	return a.out, a.open, a.list
}

func (a *association) add(code diag.Code, o Origin, message, hint string, related ...diag.Related) {
	f := a.list.Add(diag.New(code, o.Pos, o.Pointer, message))
	f.Hint, f.Related = hint, related
}

// spec finds the spec that a decision names.
func (a *association) spec(v Value[string], stages ...Stage) *Spec {
	if len(a.file.Specs) == 0 {
		a.add(diag.UselessDecision, v.Origins[0], fmt.Sprintf("the decision about %s answers nothing, because there are no buckets of one stage", quote(v.Value)), "remove it")
		return nil
	}
	s := a.byID[v.Value]
	if s == nil {
		var ids []string
		for i := range a.file.Specs {
			if sp := &a.file.Specs[i]; sp.ID != nil && slices.Contains(stages, sp.Stage) {
				ids = append(ids, sp.ID.Value)
			}
		}
		hint := "the bucket file has " + listed(ids)
		if near := nearest(v.Value, ids); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		a.add(diag.UnknownSpec, v.Origins[0], "the bucket file has no bucket "+quote(v.Value), hint)
		return nil
	}
	if !slices.Contains(stages, s.Stage) {
		a.add(diag.UnknownSpec, v.Origins[0], fmt.Sprintf("%s is a %s bucket, and a %s bucket is needed here", quote(v.Value), s.Stage, stages[0]), "exchange the two, or name another bucket",
			diag.Related{Pos: s.Origin.Pos, Message: "the bucket is here"})
		return nil
	}
	return s
}

// nearest is diag.Nearest for names that are not all in lower case.
func nearest(wrong string, known []string) string {
	lower := make([]string, len(known))
	for i, k := range known {
		lower[i] = strings.ToLower(k)
	}
	if i := slices.Index(lower, diag.Nearest(wrong, lower)); i >= 0 {
		return known[i]
	}
	return ""
}

// listed shows the first few names.
func listed(names []string) string {
	const most = 8
	if len(names) == 0 {
		return "none"
	}
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, quote(n))
	}
	if len(names) > most {
		out = append(out, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(out, ", ")
}

// pair makes a bucket of a prefill and a decode spec.
func (a *association) pair(p *Pair) {
	prefill, decode := a.spec(p.Prefill, Prefill), a.spec(p.Decode, Decode)
	if prefill == nil || decode == nil {
		// The mistake is about this pair, so its other spec is not asked for too.
		for _, s := range []*Spec{prefill, decode} {
			if s != nil {
				a.paired[s.ID.Value] = true
			}
		}
		return
	}
	a.paired[prefill.ID.Value], a.paired[decode.ID.Value] = true, true
	b := a.of(prefill, p.Origin)
	b.ID = &Value[string]{prefill.ID.Value + "-" + decode.ID.Value, slices.Concat(prefill.ID.Origins, decode.ID.Origins)}
	if p.ID != nil {
		b.ID = &Value[string]{p.ID.Value, slices.Concat(p.ID.Origins, b.ID.Origins)}
	}
	b.Prefill, b.Plain = b.Plain, nil
	b.Decode = &Group{Origin: decode.Origin, WorkerIDs: decode.WorkerIDs, Policy: decode.Policy}
	b.TokensPerSecond = decode.TokensPerSecond
	if v := decode.MinTokens; v != nil {
		b.Rejected = append(b.Rejected, Rejected{v.Origins[0],
			fmt.Sprintf("min_sequence_tokens %d has no equivalent: a bucket has no lower bound of the expected peak", v.Value),
			"use min_extend_tokens of the prefill bucket, which bounds the input, and remove it here"})
	}
	// All of them, so that everything about the pair is said at once.
	fits := a.compatible(prefill, decode, p)
	ranked := a.rank(&b, prefill, decode, p)
	bounded := a.context(&b, prefill, decode, p)
	if fits && ranked && bounded {
		a.out = append(a.out, b)
	}
}

// of is what a bucket has of a prefill spec; its group is in Plain.
func (a *association) of(s *Spec, from Origin) Bucket {
	b := Bucket{
		Origin: from, ID: s.ID, Rank: s.Rank, MinInputTokens: s.MinTokens, MaxInputTokens: s.MaxTokens,
		MaxContextTokens: s.MaxContextTokens, TTFTMillis: s.TTFTMillis,
		Plain: &Group{Origin: s.Origin, WorkerIDs: s.WorkerIDs, Policy: s.Policy},
	}
	if v := s.MaxPendingPrefillTokens; v != nil {
		b.Plain.Caps = []Cap{{Name: "max_pending_prefill_tokens", Limit: v}}
	}
	return b
}

// rank sets the rank of a pair. Specs of different ranks are a question.
func (a *association) rank(b *Bucket, prefill, decode *Spec, p *Pair) bool {
	switch {
	case prefill.Rank == nil || decode.Rank == nil:
		return false // reported by Read
	case p.Rank != nil:
		if prefill.Rank.Value == decode.Rank.Value && prefill.Rank.Value != p.Rank.Value {
			a.add(diag.BadDecision, p.Rank.Origins[0], fmt.Sprintf("the rank is %d, and both buckets of the pair have the rank %d", p.Rank.Value, prefill.Rank.Value), "remove it; change the rank in the configuration afterwards")
			return false
		}
		b.Rank = &Value[uint64]{p.Rank.Value, slices.Concat(p.Rank.Origins, prefill.Rank.Origins, decode.Rank.Origins)}
	case prefill.Rank.Value != decode.Rank.Value:
		a.ask(p, prefill.Rank, decode.Rank, fmt.Sprintf("Which rank has the bucket of %s (rank %d) and %s (rank %d)?",
			quote(prefill.ID.Value), prefill.Rank.Value, quote(decode.ID.Value), decode.Rank.Value), "rank")
		return false
	default:
		b.Rank = &Value[uint64]{prefill.Rank.Value, slices.Concat(prefill.Rank.Origins, decode.Rank.Origins)}
	}
	return true
}

// ask adds a question about two numbers of a pair. Questions about the same pair
// are one.
func (a *association) ask(p *Pair, one, other *Value[uint64], question, name string) {
	low, high := min(one.Value, other.Value), max(one.Value, other.Value)
	line := fmt.Sprintf("%s: %s", name, placeholder)
	choice := fmt.Sprintf("%s: %d or %d", name, low, high)
	// They follow each other.
	if n := len(a.open); n > 0 {
		o := &a.open[n-1]
		if len(o.Answer) > 1 && o.Section == "pairs" && o.Answer[0] == "prefill: "+scalar(p.Prefill.Value) && o.Answer[1] == "decode: "+scalar(p.Decode.Value) {
			o.Question += " " + question
			o.Origins = append(o.Origins, one.Origins[0], other.Origins[0])
			o.Answer, o.Choices = append(o.Answer, line), append(o.Choices, choice)
			return
		}
	}
	answer := []string{"prefill: " + scalar(p.Prefill.Value), "decode: " + scalar(p.Decode.Value)}
	if p.ID != nil {
		answer = append(answer, "id: "+scalar(p.ID.Value))
	}
	a.open = append(a.open, Open{
		Origins: []Origin{one.Origins[0], other.Origins[0]}, Question: question, Section: "pairs",
		Answer: append(answer, line), Choices: []string{choice},
	})
}

// context sets the bound of the peak, which is the smallest that the specs
// have. Different ones are a question, for the older router held the two stages
// to different ones.
func (a *association) context(b *Bucket, prefill, decode *Spec, p *Pair) bool {
	var given []*Value[uint64]
	for _, v := range []*Value[uint64]{prefill.MaxContextTokens, decode.MaxContextTokens, decode.MaxTokens} {
		if v != nil {
			given = append(given, v)
		}
	}
	var origins []Origin
	for _, v := range given {
		origins = append(origins, v.Origins...)
	}
	if p.MaxContextTokens != nil {
		if len(given) == 0 {
			a.add(diag.UselessDecision, p.MaxContextTokens.Origins[0], "neither bucket of the pair has a bound of the context", "remove max_context_tokens")
			return false
		}
		b.MaxContextTokens = &Value[uint64]{p.MaxContextTokens.Value, slices.Concat(p.MaxContextTokens.Origins, origins)}
		return true
	}
	b.MaxContextTokens = nil
	if len(given) == 0 {
		return true
	}
	low := slices.MinFunc(given, func(x, y *Value[uint64]) int { return cmp.Compare(x.Value, y.Value) })
	high := slices.MaxFunc(given, func(x, y *Value[uint64]) int { return cmp.Compare(x.Value, y.Value) })
	if low.Value != high.Value {
		a.ask(p, low, high, fmt.Sprintf("Which context bounds the bucket of %s and %s? The smallest that they have is %d and the largest %d; only the smallest keeps all of their bounds.",
			quote(prefill.ID.Value), quote(decode.ID.Value), low.Value, high.Value), "max_context_tokens")
		return false
	}
	b.MaxContextTokens = &Value[uint64]{low.Value, origins}
	return true
}

// compatible explains ranges of a pair that exclude each other or that leave
// lengths out.
func (a *association) compatible(prefill, decode *Spec, p *Pair) bool {
	peak, name := bound(decode)
	input := prefill.MaxTokens
	where := []diag.Related{{Pos: prefill.Origin.Pos, Message: "the prefill bucket is here"}, {Pos: decode.Origin.Pos, Message: "the decode bucket is here"}}
	pair := fmt.Sprintf("%s and %s", quote(prefill.ID.Value), quote(decode.ID.Value))
	if v := prefill.MinTokens; v != nil && peak != nil && v.Value > peak.Value {
		a.add(diag.IncompatiblePair, p.Origin, fmt.Sprintf("no request fits %s: the prefill bucket takes inputs of %d tokens and more (min_extend_tokens), and the decode bucket takes at most %d in all (%s)", pair, v.Value, peak.Value, name),
			"pair the prefill bucket with a decode bucket of a larger bound", where...)
		return false
	}
	if v, c := decode.MinTokens, prefill.MaxContextTokens; v != nil && c != nil && v.Value > c.Value {
		a.add(diag.IncompatiblePair, p.Origin, fmt.Sprintf("no request fits %s: the decode bucket takes %d tokens and more in all (min_sequence_tokens), and the context of the prefill bucket ends at %d (max_context_tokens)", pair, v.Value, c.Value),
			"pair the decode bucket with a prefill bucket of a larger context", where...)
		return false
	}
	if peak != nil && input != nil && input.Value > peak.Value {
		a.add(diag.NarrowPair, p.Origin, fmt.Sprintf("inputs of %d to %d tokens fit the prefill bucket of %s and not its decode bucket, whose %s is %d", peak.Value+1, input.Value, pair, name, peak.Value),
			"check that another bucket takes them", where...)
	}
	if peak != nil && input == nil && prefill.MaxContextTokens == nil {
		a.add(diag.NarrowPair, p.Origin, fmt.Sprintf("inputs above %d tokens fit the prefill bucket of %s and not its decode bucket, whose %s is %d", peak.Value, pair, name, peak.Value),
			"check that another bucket takes them", where...)
	}
	return true
}

// bound is the smaller of the bounds of the peak of a decode spec, with its
// field.
func bound(s *Spec) (*Value[uint64], string) {
	if s.MaxContextTokens != nil && (s.MaxTokens == nil || s.MaxContextTokens.Value < s.MaxTokens.Value) {
		return s.MaxContextTokens, "max_context_tokens"
	}
	if s.MaxTokens != nil {
		return s.MaxTokens, "max_sequence_tokens"
	}
	return nil, ""
}

// single makes a bucket of a spec alone, or leaves it out.
func (a *association) single(l *Lone) {
	s := a.spec(l.Spec, Prefill, Decode)
	if s == nil || l.Use == "" {
		if s != nil {
			a.lone[s.ID.Value] = l
		}
		return
	}
	if a.paired[s.ID.Value] {
		a.add(diag.ClashingDecisions, l.Origin, fmt.Sprintf("%s is in a pair and is to be used alone too", quote(s.ID.Value)), "keep one of the answers")
		return
	}
	a.lone[s.ID.Value] = l
	if l.Use == UseDrop {
		if l.ID != nil {
			a.add(diag.BadDecision, l.ID.Origins[0], fmt.Sprintf("%s is left out, so it needs no name", quote(s.ID.Value)), "remove the id")
		}
		return
	}
	if s.Stage == Decode {
		a.add(diag.BadDecision, l.Origin, fmt.Sprintf("%s is a decode bucket, which is no bucket without a prefill bucket", quote(s.ID.Value)), "pair it, or write as: drop to leave it out",
			diag.Related{Pos: s.Origin.Pos, Message: "the bucket is here"})
		return
	}
	if s.Rank == nil {
		return // reported by Read
	}
	b := a.of(s, l.Origin)
	if l.ID != nil {
		b.ID = &Value[string]{l.ID.Value, slices.Concat(l.ID.Origins, s.ID.Origins)}
	}
	if l.Use == UsePD {
		b.Prefill, b.Plain = b.Plain, nil
		b.Decode = &Group{Origin: l.Origin}
	}
	a.out = append(a.out, b)
}

// question asks for what becomes of a spec that no decision is about.
func (a *association) question(s *Spec) {
	if s.ID == nil || s.Stage == "" || a.paired[s.ID.Value] || a.lone[s.ID.Value] != nil || a.byID[s.ID.Value] != s {
		return
	}
	id := quote(s.ID.Value)
	o := Open{Origins: []Origin{s.Origin}}
	if s.Stage == Prefill && !a.decodes {
		o.Question = fmt.Sprintf("Is the prefill bucket %s a plain bucket, or a PD bucket with all decode engines?", id)
		o.Section, o.Answer = "lone", []string{"spec: " + scalar(s.ID.Value), "as: " + placeholder}
		o.Choices = []string{"as: plain or pd"}
		a.open = append(a.open, o)
		return
	}
	other, field := Decode, "prefill"
	if s.Stage == Decode {
		other, field = Prefill, "decode"
	}
	var ids []string
	for i := range a.file.Specs {
		if sp := &a.file.Specs[i]; sp.Stage == other && sp.ID != nil {
			ids = append(ids, sp.ID.Value)
		}
	}
	o.Question = fmt.Sprintf("Which %s bucket belongs to the %s bucket %s?", other, s.Stage, id)
	if s.Stage == Decode && a.waiting() {
		// An entry for a prefill bucket answers this too.
		a.open = append(a.open, o)
		return
	}
	o.Section = "pairs"
	o.Answer = []string{"prefill: " + scalar(s.ID.Value), "decode: " + placeholder}
	alone := "plain, pd (with all decode engines) or drop"
	if field == "decode" {
		o.Answer = []string{"prefill: " + placeholder, "decode: " + scalar(s.ID.Value)}
		alone = "drop"
	}
	o.Choices = []string{
		fmt.Sprintf("%s: one of %s", other, listed(ids)),
		fmt.Sprintf("or, if it stays alone, under lone: {spec: %s, as: %s}", scalar(s.ID.Value), alone),
	}
	a.open = append(a.open, o)
}

// waiting reports whether a prefill spec waits for its decode spec.
func (a *association) waiting() bool {
	return slices.ContainsFunc(a.file.Specs, func(s Spec) bool {
		return s.Stage == Prefill && s.ID != nil && !a.paired[s.ID.Value] && a.lone[s.ID.Value] == nil
	})
}

// names reports buckets of the same name.
func (a *association) names() {
	first := make(map[string]Origin)
	for _, b := range a.out {
		if b.ID == nil || len(a.file.Specs) == 0 {
			continue
		}
		if o, ok := first[b.ID.Value]; ok {
			a.add(diag.ClashingDecisions, b.ID.Origins[0], "two buckets would have the name "+quote(b.ID.Value), "give one of them another id",
				diag.Related{Pos: o.Pos, Message: "the other one is here"})
			continue
		}
		first[b.ID.Value] = b.ID.Origins[0]
	}
}
