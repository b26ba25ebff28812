package bucketfile

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// bucketFields are the fields of a complete bucket besides its groups.
func bucketFields() []string {
	return []string{
		"id", "rank", "min_input_tokens", "max_input_tokens", "max_context_tokens", "ttft_ms", "tokens_per_second",
	}
}

// reorg reads a file whose buckets have groups of a mode.
func (d *decoder) reorg(f *File) {
	o := d.object(d.tree.Root(), "", "buckets", "ttft_slo", "tps_slo", "session", "kv_indexer")
	d.complete(f, o, func(n *source.Node, pointer string) Bucket {
		b := d.object(n, pointer, append(bucketFields(), "groups")...)
		b.need("groups")
		out := b.bucket(n)
		b.modes(&out)
		return out
	})
	d.session(f, o)
	d.indexer(f, o)
}

// new reads a file whose buckets have their groups in them.
func (d *decoder) new(f *File) {
	o := d.object(d.tree.Root(), "", "buckets", "ttft_slo", "tps_slo")
	d.complete(f, o, func(n *source.Node, pointer string) Bucket {
		b := d.object(n, pointer, append(bucketFields(), "plain", "prefill", "decode")...)
		out := b.bucket(n)
		out.Plain = b.group("plain", FormatNew)
		out.Prefill = b.group("prefill", FormatNew)
		out.Decode = b.group("decode", FormatNew)
		b.oneShape(&out)
		return out
	})
}

// complete reads what the two formats have in common.
func (d *decoder) complete(f *File, o object, bucket func(n *source.Node, pointer string) Bucket) {
	o.need("buckets")
	f.TTFTSLO = o.word("ttft_slo", sloWords()...)
	f.TPSSLO = o.word("tps_slo", sloWords()...)
	first := make(map[string]diag.Pos)
	ttft, tps := false, false
	o.list("buckets", func(n *source.Node, pointer string) {
		b := bucket(n, pointer)
		f.Buckets = append(f.Buckets, b)
		ttft = ttft || b.TTFTMillis != nil
		tps = tps || b.TokensPerSecond != nil
		if b.ID == nil {
			return
		}
		if at, ok := first[b.ID.Value]; ok {
			d.related(diag.BucketName, b.ID, fmt.Sprintf("the id %s is used twice", quote(b.ID.Value)), "rename one of the two", at)
			return
		}
		first[b.ID.Value] = posOf(b.ID)
	})
	if n := o.field("buckets"); n != nil && n.Kind == source.List && len(n.Elems) == 0 {
		d.add(diag.NoBuckets, d.tree.NodePos(n), "/buckets", "the file has no buckets", "add one, or leave the option out")
	}
	d.unusedSLO(f.TTFTSLO, ttft, "ttft_ms")
	d.unusedSLO(f.TPSSLO, tps, "tokens_per_second")
}

// bucket reads the fields of a bucket besides its groups.
func (o object) bucket(n *source.Node) Bucket {
	o.need("id")
	b := Bucket{
		Origin: o.origin(n, o.pointer), ID: o.text("id"), Rank: o.whole("rank", math.MaxUint32),
		MinInputTokens: o.u64("min_input_tokens"), MaxInputTokens: o.u64("max_input_tokens"),
		MaxContextTokens: o.u64("max_context_tokens"), TTFTMillis: o.u64("ttft_ms"), TokensPerSecond: o.number("tokens_per_second"),
	}
	if b.ID != nil && strings.TrimSpace(b.ID.Value) == "" {
		o.add(diag.BucketName, posOf(b.ID), o.at("id"), "the id is blank", "give the bucket a name")
	}
	o.positive(b.MaxContextTokens, "max_context_tokens")
	o.positive(b.TTFTMillis, "ttft_ms")
	o.positiveNumber(b.TokensPerSecond, "tokens_per_second")
	for _, upper := range []struct {
		name string
		v    *Value[uint64]
	}{{"max_input_tokens", b.MaxInputTokens}, {"max_context_tokens", b.MaxContextTokens}} {
		if b.MinInputTokens != nil && upper.v != nil && upper.v.Value > 0 && b.MinInputTokens.Value > upper.v.Value {
			o.add(diag.BucketRange, posOf(b.MinInputTokens), o.at("min_input_tokens"),
				fmt.Sprintf("min_input_tokens %d is above %s %d, so no request fits", b.MinInputTokens.Value, upper.name, upper.v.Value), "correct one of the two")
		}
	}
	return b
}

// modes reads the groups of a bucket that say whether it is plain or PD.
func (o object) modes(b *Bucket) {
	n := o.field("groups")
	if n == nil {
		return
	}
	g := o.object(n, o.at("groups"), "mode", "plain", "prefill", "decode")
	g.need("mode")
	mode := g.word("mode", "plain", "pd")
	if mode == nil {
		return
	}
	needed, foreign := []string{"plain"}, []string{"prefill", "decode"}
	if mode.Value == "pd" {
		needed, foreign = foreign, needed
	}
	g.need(needed...)
	for _, name := range foreign {
		if v := g.field(name); v != nil {
			g.add(diag.BucketShape, g.tree.NodePos(v), g.at(name), fmt.Sprintf("a bucket of mode %s has no group %s", mode.Value, name), "remove the group or change the mode")
		}
	}
	if mode.Value == "plain" {
		b.Plain = g.group("plain", FormatReorg)
		return
	}
	b.Prefill, b.Decode = g.group("prefill", FormatReorg), g.group("decode", FormatReorg)
}

// oneShape reports groups that are neither plain alone nor prefill with decode.
func (o object) oneShape(b *Bucket) {
	if o.node == nil || b.Plain != nil && b.Prefill == nil && b.Decode == nil || b.Plain == nil && b.Prefill != nil && b.Decode != nil {
		return
	}
	var have []string
	for _, name := range []string{"plain", "prefill", "decode"} {
		if o.field(name) != nil {
			have = append(have, name)
		}
	}
	what := "no group"
	if len(have) > 0 {
		what = strings.Join(have, " and ")
	}
	o.add(diag.BucketShape, o.tree.NodePos(o.node), o.pointer, "the bucket has "+what+", and must have plain alone or prefill with decode", "make it a plain bucket or a PD bucket")
}

// caps are the limits of admission of a format, and those that are shares.
func caps(f Format) (names []string, share []string) {
	if f == FormatReorg {
		return []string{"max_running_requests", "max_waiting_requests", "max_kv_tokens", "max_pending_prefill_tokens", "max_inflight_requests"}, nil
	}
	return []string{"max_inflight_requests", "max_waiting_requests", "max_pending_prefill_tokens"}, []string{"max_running_usage", "max_kv_usage"}
}

// group reads a group of engines, nil when it is absent.
func (o object) group(name string, format Format) *Group {
	n := o.field(name)
	if n == nil {
		return nil
	}
	known := []string{"worker_ids", "policy", "admission"}
	if format == FormatNew {
		known = append(known, "worker_services", "affinity")
	}
	g := o.object(n, o.at(name), known...)
	out := &Group{Origin: o.origin(n, g.pointer), WorkerIDs: g.texts("worker_ids"), Policy: g.word("policy", "power_of_two", "power_of_n", "cache_aware", "session_aware")}
	g.engines(out.WorkerIDs, "worker_ids", format == FormatNew)
	if format == FormatReorg {
		g.need("policy")
	}
	if out.Policy != nil && out.Policy.Value == "cache_aware" && name == "decode" {
		g.add(diag.BucketStage, posOf(out.Policy), g.at("policy"), "the policy cache_aware is not for decode groups", "use power_of_two or session_aware")
	}
	if a := g.field("admission"); a != nil {
		g.admission(a, format, out)
	}
	if format == FormatNew {
		g.services(out)
		g.affinity(out)
	}
	return out
}

func (o object) admission(n *source.Node, format Format, out *Group) {
	limits, shares := caps(format)
	a := o.object(n, o.at("admission"), append(append([]string{}, limits...), shares...)...)
	if a.node == nil {
		return
	}
	for i := range a.node.Fields {
		name := a.node.Fields[i].Name
		for _, l := range limits {
			if v := (*Value[uint64])(nil); l == name {
				if v = a.u64(name); v == nil {
					continue
				}
				if format == FormatNew {
					a.positive(v, name)
				}
				out.Caps = append(out.Caps, Cap{Name: name, Limit: v})
			}
		}
		for _, s := range shares {
			if s != name {
				continue
			}
			v := a.number(name)
			if v == nil {
				continue
			}
			if !(v.Value > 0 && v.Value <= 1) {
				a.add(diag.BucketNumber, posOf(v), a.at(name), fmt.Sprintf("%s is %v, and must be above 0 and at most 1", name, v.Value), "write a share")
			}
			out.Caps = append(out.Caps, Cap{Name: name, Share: v})
		}
	}
}

// serviceName is namespace/service.
var serviceName = regexp.MustCompile(`^[^/\s]+/[^/\s]+$`)

func (o object) services(out *Group) {
	out.WorkerServices = o.texts("worker_services")
	v := out.WorkerServices
	if v == nil {
		return
	}
	o.engines(v, "worker_services", true)
	for _, s := range v.Value {
		if !serviceName.MatchString(s) && strings.TrimSpace(s) != "" {
			o.add(diag.BucketEngines, posOf(v), o.at("worker_services"), quote(s)+" is not namespace/service", "write the namespace, a slash and the name of the service")
		}
	}
	if out.WorkerIDs != nil {
		o.add(diag.BucketShape, posOf(v), o.at("worker_services"), "worker_services and worker_ids exclude each other", "keep one of the two")
	}
}

func (o object) affinity(out *Group) {
	n := o.field("affinity")
	if n == nil {
		return
	}
	a := o.object(n, o.at("affinity"), "mode", "balanced_by", "load_factor", "load_gap")
	out.Affinity = &Affinity{
		Origin: o.origin(n, a.pointer), Mode: a.word("mode", "prefer", "balanced"), BalancedBy: a.word("balanced_by", "prefill_tokens", "running_requests"),
		LoadFactor: a.number("load_factor"), LoadGap: a.u64("load_gap"),
	}
	if out.Policy != nil && strings.HasPrefix(out.Policy.Value, "power_of_") {
		a.add(diag.BucketShape, o.tree.NodePos(n), a.pointer, "a group of the policy "+out.Policy.Value+" has no affinity", "remove the affinity or change the policy")
	}
	if v := out.Affinity.LoadFactor; v != nil && v.Value < 1 {
		a.add(diag.BucketNumber, posOf(v), a.at("load_factor"), fmt.Sprintf("load_factor is %v, and must be at least 1", v.Value), "write a factor of at least 1")
	}
	if m := out.Affinity.Mode; m != nil && m.Value == "balanced" {
		return
	}
	for _, name := range []string{"balanced_by", "load_factor", "load_gap"} {
		if v := a.field(name); v != nil {
			a.add(diag.BucketShape, a.tree.NodePos(v), a.at(name), name+" is only for the affinity mode balanced", "set the mode to balanced or remove the field")
		}
	}
}

// headerName is a name of an HTTP header.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func (d *decoder) session(f *File, o object) {
	n := o.field("session")
	if n == nil {
		return
	}
	s := d.object(n, "/session", "header", "idle_secs", "eviction_interval_secs")
	f.Session = &Session{Header: s.text("header"), IdleSecs: s.u64("idle_secs"), EvictionIntervalSecs: s.u64("eviction_interval_secs")}
	if v := f.Session.Header; v != nil && !headerName.MatchString(v.Value) {
		s.add(diag.BadSpelling, posOf(v), s.at("header"), quote(v.Value)+" is no name of an HTTP header", "use letters, digits and dashes")
	}
	s.positive(f.Session.IdleSecs, "idle_secs")
	s.positive(f.Session.EvictionIntervalSecs, "eviction_interval_secs")
}

func (d *decoder) indexer(f *File, o object) {
	n := o.field("kv_indexer")
	if n == nil {
		return
	}
	x := d.object(n, "/kv_indexer", "url", "query_timeout_ms", "query_max_inflight")
	x.need("url")
	f.Indexer = &Indexer{URL: x.text("url"), QueryTimeoutMs: x.u64("query_timeout_ms"), QueryMaxInflight: x.u64("query_max_inflight")}
	x.http(f.Indexer.URL, "url")
	x.positive(f.Indexer.QueryTimeoutMs, "query_timeout_ms")
	x.positive(f.Indexer.QueryMaxInflight, "query_max_inflight")
	for i := range f.Buckets {
		for _, g := range []*Group{f.Buckets[i].Plain, f.Buckets[i].Prefill, f.Buckets[i].Decode} {
			if g != nil && g.Policy != nil && g.Policy.Value == "cache_aware" {
				return
			}
		}
	}
	d.add(diag.BucketShape, d.tree.NodePos(n), "/kv_indexer", "the file has an indexer and no group of the policy cache_aware", "remove the indexer or use the policy")
}
