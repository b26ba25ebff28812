package bucketfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// DecisionsVersion is the version of decisions files that this package reads and
// writes.
const DecisionsVersion = 1

// placeholder stands in a template for what only people know.
const placeholder = "TODO"

// Decisions are what people answered. The zero value answers nothing.
type Decisions struct {
	// Name is the decisions file, empty if there is none.
	Name  string
	Pairs []Pair
	Lone  []Lone
	// Engines are by URL, for addresses whose role nothing else says and for
	// discovery that a configuration does not have.
	Engines []Engine
	// Choices is the sample of power_of_n.
	Choices *Value[uint64]
	// Tokenizer is a path, engine or none.
	Tokenizer *Value[string]
}

// Pair makes one PD bucket of a prefill and a decode spec. The same spec may be
// in several pairs.
type Pair struct {
	Origin          Origin
	Prefill, Decode Value[string]
	// ID is the name of the bucket, nil for both names with a dash between them.
	ID *Value[string]
	// Rank and MaxContextTokens are needed only where the specs differ.
	Rank             *Value[uint64]
	MaxContextTokens *Value[uint64]
}

// Use is what becomes of a spec that is in no pair.
type Use string

// The uses. A prefill spec may become a plain bucket, or a PD bucket with all
// decode engines; any spec may be left out.
const (
	UsePlain Use = "plain"
	UsePD    Use = "pd"
	UseDrop  Use = "drop"
)

// Lone is what becomes of a spec that is in no pair.
type Lone struct {
	Origin Origin
	Spec   Value[string]
	Use    Use
	// ID is the name of the bucket, nil for that of the spec.
	ID *Value[string]
}

// Engine is an engine with what an address alone does not say. Role is plain,
// prefill or decode.
type Engine struct {
	Origin        Origin
	URL           *Value[string]
	ID            *Value[string]
	Role          *Value[string]
	BootstrapPort *Value[uint64]
}

// ParsePair reads PREFILL=DECODE or PREFILL=DECODE=ID, the number-th of its kind
// from 1.
func ParsePair(text string, number int) (Pair, error) {
	parts := strings.Split(text, "=")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Pair{}, errors.New("a pair is PREFILL=DECODE or PREFILL=DECODE=ID, each of them a name of a bucket")
	}
	from := []Origin{{Pos: diag.Pos{File: "--pair", Column: number}}}
	p := Pair{Origin: from[0], Prefill: Value[string]{parts[0], from}, Decode: Value[string]{parts[1], from}}
	if len(parts) == 3 {
		p.ID = &Value[string]{parts[2], from}
	}
	return p, nil
}

// ReadDecisions reads a decisions file in YAML or JSON. Unknown fields and
// placeholders are mistakes.
func ReadDecisions(ctx context.Context, name string, data []byte) (Decisions, diag.List) {
	extension := ".yaml"
	if strings.HasSuffix(strings.ToLower(name), ".json") {
		extension = ".json"
	}
	d, findings := parse(ctx, name, data, extension)
	if d == nil {
		return Decisions{Name: name}, findings
	}
	out := Decisions{Name: name}
	o := d.object(d.tree.Root(), "", "version", "pairs", "lone", "engines", "choices", "tokenizer")
	o.need("version")
	if v := o.u64("version"); v != nil && v.Value != DecisionsVersion {
		d.add(diag.BadDecision, posOf(v), "/version", fmt.Sprintf("the version is %d, and only %d is known", v.Value, DecisionsVersion), fmt.Sprintf("write version: %d", DecisionsVersion))
	}
	o.list("pairs", func(n *source.Node, pointer string) { out.Pairs = append(out.Pairs, d.pair(n, pointer)) })
	o.list("lone", func(n *source.Node, pointer string) { out.Lone = append(out.Lone, d.lone(n, pointer)) })
	o.list("engines", func(n *source.Node, pointer string) { out.Engines = append(out.Engines, d.engine(n, pointer)) })
	if out.Choices = o.whole("choices", 1<<32-1); out.Choices != nil {
		o.positive(out.Choices, "choices")
	}
	out.Tokenizer = o.text("tokenizer")
	d.placeholders(&out)
	d.twice(out)
	d.out.Sort()
	return out, d.out
}

// placeholders reports answers that are still those of the template. An entry
// that does not say what it is about is left out, for whatever else is wrong with
// it is no news.
func (d *decoder) placeholders(x *Decisions) {
	for _, f := range d.fields {
		if n := d.tree.Node(f.Pointer); n != nil && n.Kind == source.String && n.Text == placeholder {
			d.out = slices.DeleteFunc(d.out, func(old diag.Finding) bool { return old.Path == f.Pointer })
			d.add(diag.BadDecision, f.Pos, f.Pointer, nameOf(f.Pointer)+" is still the placeholder "+placeholder, "write the answer in place of it, or remove the entry")
		}
	}
	x.Pairs = slices.DeleteFunc(x.Pairs, func(p Pair) bool { return p.Prefill.Value == placeholder || p.Decode.Value == placeholder })
	x.Lone = slices.DeleteFunc(x.Lone, func(l Lone) bool { return l.Spec.Value == placeholder })
	x.Engines = slices.DeleteFunc(x.Engines, func(e Engine) bool { return e.URL != nil && e.URL.Value == placeholder })
}

func (d *decoder) pair(n *source.Node, pointer string) Pair {
	o := d.object(n, pointer, "prefill", "decode", "id", "rank", "max_context_tokens")
	o.need("prefill", "decode")
	p := Pair{
		Origin: d.origin(n, pointer), Prefill: o.orEmpty("prefill"), Decode: o.orEmpty("decode"),
		ID: o.name("id"), Rank: o.whole("rank", 1<<32-1), MaxContextTokens: o.u64("max_context_tokens"),
	}
	o.positive(p.MaxContextTokens, "max_context_tokens")
	return p
}

// orEmpty is the text of a field that is needed; a mistake in it is reported.
func (o object) orEmpty(name string) Value[string] {
	if v := o.text(name); v != nil {
		return *v
	}
	return Value[string]{Origins: []Origin{{Pointer: o.at(name), Pos: o.posOfObject()}}}
}

func (o object) posOfObject() diag.Pos {
	if o.node == nil {
		return o.tree.Pos(o.pointer)
	}
	return o.tree.NodePos(o.node)
}

// name reads a name for a bucket or an engine.
func (o object) name(name string) *Value[string] {
	v := o.text(name)
	if v != nil && strings.TrimSpace(v.Value) == "" {
		o.add(diag.BadDecision, posOf(v), o.at(name), name+" is blank", "write a name or remove the field")
		return nil
	}
	return v
}

func (d *decoder) lone(n *source.Node, pointer string) Lone {
	o := d.object(n, pointer, "spec", "as", "id")
	o.need("spec", "as")
	l := Lone{Origin: d.origin(n, pointer), Spec: o.orEmpty("spec"), ID: o.name("id")}
	if v := o.word("as", string(UsePlain), string(UsePD), string(UseDrop)); v != nil {
		l.Use = Use(v.Value)
	}
	return l
}

func (d *decoder) engine(n *source.Node, pointer string) Engine {
	o := d.object(n, pointer, "url", "id", "role", "bootstrap_port")
	o.need("url", "role")
	e := Engine{
		Origin: d.origin(n, pointer), URL: o.name("url"), ID: o.name("id"),
		Role: o.word("role", "plain", "prefill", "decode"), BootstrapPort: o.whole("bootstrap_port", 1<<16-1),
	}
	o.positive(e.BootstrapPort, "bootstrap_port")
	if e.BootstrapPort != nil && e.Role != nil && e.Role.Value != "prefill" {
		o.add(diag.BadDecision, posOf(e.BootstrapPort), o.at("bootstrap_port"), "only engines of the role prefill have a bootstrap port", "remove it or correct the role")
	}
	return e
}

// twice reports answers to the same question.
func (d *decoder) twice(x Decisions) {
	seen := make(map[string]Origin)
	once := func(key string, o Origin, what string) {
		if first, ok := seen[key]; ok {
			f := d.add(diag.ClashingDecisions, o.Pos, o.Pointer, what+" is answered twice", "keep one of the answers")
			f.Related = []diag.Related{{Pos: first.Pos, Message: "the first one is here"}}
			return
		}
		seen[key] = o
	}
	for _, p := range x.Pairs {
		if p.Prefill.Value != "" && p.Decode.Value != "" {
			once("pair\x00"+p.Prefill.Value+"\x00"+p.Decode.Value, p.Origin, "the pair of "+quote(p.Prefill.Value)+" and "+quote(p.Decode.Value))
		}
	}
	for _, l := range x.Lone {
		if l.Spec.Value != "" {
			once("lone\x00"+l.Spec.Value, l.Origin, "what becomes of "+quote(l.Spec.Value))
		}
	}
	for _, e := range x.Engines {
		if e.URL != nil {
			once("engine\x00"+e.URL.Value, e.Origin, "the engine "+quote(e.URL.Value))
		}
	}
}

// Add takes over the pairs of the command line. A pair that the decisions file
// has too must say the same.
func (x *Decisions) Add(pairs []Pair) (out diag.List) {
	for _, p := range pairs {
		i := slices.IndexFunc(x.Pairs, func(old Pair) bool {
			return old.Prefill.Value == p.Prefill.Value && old.Decode.Value == p.Decode.Value
		})
		if i < 0 {
			x.Pairs = append(x.Pairs, p)
			continue
		}
		old := &x.Pairs[i]
		switch {
		case p.ID == nil || old.ID != nil && old.ID.Value == p.ID.Value:
		case old.ID == nil:
			old.ID = p.ID
		default:
			f := out.Add(diag.New(diag.ClashingDecisions, p.Origin.Pos, "", fmt.Sprintf("the pair of %s and %s has the name %s here and %s elsewhere",
				quote(p.Prefill.Value), quote(p.Decode.Value), quote(p.ID.Value), quote(old.ID.Value))))
			f.Hint = "keep one of the answers"
			f.Related = []diag.Related{{Pos: old.ID.Origins[0].Pos, Message: "the other name is here"}}
		}
	}
	return out
}
