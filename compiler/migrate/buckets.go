package migrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/bucketfile"
)

// decide reads the decisions file and adds the decisions of the command line.
func (m *migration) decide(ctx context.Context) {
	if d := m.options.Decisions; d.Data != nil {
		var list diag.List
		m.answers, list = bucketfile.ReadDecisions(ctx, d.Name, d.Data)
		m.report.Findings = append(m.report.Findings, list...)
	}
	m.report.Findings = append(m.report.Findings, m.answers.Add(m.options.Pairs)...)
	switch t := m.answers.Tokenizer; {
	case t == nil:
	case m.options.Tokenizer == "":
		m.options.Tokenizer = t.Value
	case m.options.Tokenizer != t.Value:
		f := diag.New(diag.ClashingDecisions, t.Origins[0].Pos, t.Origins[0].Pointer, fmt.Sprintf("the tokenizer is %q here and %q by --tokenizer", t.Value, m.options.Tokenizer))
		f.Hint = "keep one of the answers"
		m.report.Findings.Add(f)
	}
}

// ask adds an open question for the template of decisions.
func (m *migration) ask(o bucketfile.Open) { m.open = append(m.open, o) }

// bucketFile reads the bucket file and makes complete buckets of it.
func (m *migration) bucketFile(ctx context.Context, in argv.Invocation) {
	doc, ok := m.findBuckets(in)
	if !ok {
		if !m.line.Has("bucket-config") && !m.line.Has("reorg-config") {
			m.associate(bucketfile.File{})
		}
		return
	}
	file, list := bucketfile.Read(ctx, doc.Name, doc.Data, bucketfile.Options{})
	m.file = file
	for _, f := range file.Fields {
		if m.fields[f.Pointer] != nil {
			continue // a repeated key, which is a mistake
		}
		l := &Line{Source: f.Pointer + " " + clip(f.Raw, maxSource), Pos: f.Pos, Field: f.Pointer, brief: f.Pointer}
		m.fields[f.Pointer] = l
		m.report.Lines = append(m.report.Lines, l)
		m.report.fields = append(m.report.fields, f.Pointer)
	}
	m.distribute(list)
	for i := range file.Specs {
		m.droppedPolicy(file.Specs[i].Policy)
	}
	if list.HasErrors() {
		return
	}
	m.formatRules()
	m.associate(file)
}

// droppedPolicy refuses a policy of a bucket that was dropped on purpose.
func (m *migration) droppedPolicy(v *bucketfile.Value[string]) {
	if v != nil && (v.Value == "fused_score" || v.Value == "score_policy") {
		m.from(v.Origins)[0].find(diag.LegacyDropped, "the policy "+v.Value+" was dropped: "+fusion, noFusion)
	}
}

// formatRules holds the format of the bucket file to the argument that names it:
// no version reads each format by each of them.
func (m *migration) formatRules() {
	wrong := func(message, hint string) {
		name := "bucket-config"
		if m.line.Has("reorg-config") && !m.line.Has(name) {
			name = "reorg-config"
		}
		if m.line.Has(name) {
			m.source(name).find(diag.LegacyConflict, message, hint)
			return
		}
		m.report.Findings.Add(diag.New(diag.LegacyConflict, diag.Pos{File: m.file.Name}, "", message)).Hint = hint
	}
	reorgFile := m.line.Has("reorg-config")
	switch format := m.file.Format; {
	case reorgFile && format != bucketfile.FormatReorg:
		wrong("--reorg-config reads buckets whose groups have a mode, and this file has none", "name it with --bucket-config")
	case format == bucketfile.FormatReorg && m.line.Has("bucket-config"):
		wrong("--bucket-config does not read buckets whose groups have a mode", "name it with --reorg-config")
	case format == bucketfile.FormatLegacy && m.line.Reorg(): // R82
		wrong("buckets of one stage are not possible with --chat-routing reorg", "remove --chat-routing if the legacy path is meant")
	case format == bucketfile.FormatNew && !m.line.Reorg():
		wrong("buckets with their groups are read with --chat-routing reorg only, which also says which policy the groups have", "add --chat-routing reorg and, if it is not power_of_two, --policy")
	case format == bucketfile.FormatNew:
		m.newPolicies()
	}
}

// newPolicies refuses policies of groups that are neither that of the model nor
// power_of_two.
func (m *migration) newPolicies() {
	model := m.mainPolicy()
	for _, b := range m.file.Buckets {
		for _, g := range []*bucketfile.Group{b.Plain, b.Prefill, b.Decode} {
			if g == nil || g.Policy == nil || model == "" {
				continue
			}
			if own := g.Policy.Value; own != model && own != "power_of_two" && own != "power_of_n" {
				m.from(g.Policy.Origins)[0].find(diag.LegacyConflict, fmt.Sprintf("a group has the policy of the model, %s, or power_of_two, and not %s", model, own), "correct it, or --policy")
			}
		}
	}
}

// findBuckets finds the bucket file: the one of the options, or the one that the
// command line names, in the input or on this machine.
func (m *migration) findBuckets(in argv.Invocation) (Document, bool) {
	name := "bucket-config"
	if !m.line.Has(name) && m.line.Has("reorg-config") {
		name = "reorg-config"
	}
	v := m.line.Value(name)
	if m.line.Has(name) {
		m.source(name).raise(Carried)
	}
	if m.options.Buckets.Data != nil {
		return m.options.Buckets, true
	}
	if v == nil {
		return Document{}, false
	}
	l := m.source(name)
	if f, ok := in.Files[path.Clean(v.Text)]; ok && f.Host == "" {
		return Document{f.Name, f.Content()}, true
	}
	what := fmt.Sprintf("the bucket file %q is not in the input", v.Text)
	if m.options.ReadFile != nil {
		data, err := m.options.ReadFile(v.Text)
		if err == nil {
			return Document{v.Text, data}, true
		}
		what = fmt.Sprintf("the bucket file cannot be read: %v", err)
	}
	l.find(diag.LegacyDecision, what, "name it with --bucket-config FILE before the input")
	return Document{}, false
}

// distribute gives findings to the lines of the fields that they are about.
func (m *migration) distribute(list diag.List) {
	for _, f := range list {
		if l := m.fieldLine(f.Path, f.Pos); l != nil {
			l.Findings = append(l.Findings, f)
		} else {
			m.report.Findings = append(m.report.Findings, f)
		}
	}
}

// fieldLine is the line of a field of the bucket file. Of an object it is its
// name, if it has one.
func (m *migration) fieldLine(pointer string, pos diag.Pos) *Line {
	if m.file.Name == "" || pos.File != m.file.Name {
		return nil
	}
	if l := m.fields[pointer]; l != nil {
		return l
	}
	return m.fields[pointer+"/id"]
}

// from returns the lines of the fields that a value comes from. A decision has a
// line of its own, which is not part of the report.
func (m *migration) from(origins []bucketfile.Origin) (out []*Line) {
	for _, o := range origins {
		l := m.fieldLine(o.Pointer, o.Pos)
		if l == nil {
			key := o.Pos.String() + " " + o.Pointer
			if l = m.decisions[key]; l == nil {
				l = &Line{Source: "decision", Pos: o.Pos}
				m.decisions[key] = l
			}
		}
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// associate makes complete buckets and asks what is open.
func (m *migration) associate(file bucketfile.File) {
	complete, open, list := bucketfile.Associate(file, m.answers)
	m.distribute(list)
	for _, q := range open {
		m.ask(q)
		l := m.from(q.Origins[:1])[0]
		hint := "name the pair with --pair PREFILL=DECODE or answer in the decisions file"
		if len(q.Answer) > 0 {
			hint = "answer in the decisions file: " + q.Text()
			if len(q.Choices) > 0 {
				hint += " (" + strings.Join(q.Choices, "; ") + ")"
			}
		}
		l.find(diag.LegacyDecision, q.Question, hint)
	}
	for i := range complete {
		m.take(&complete[i])
	}
	m.leftOut()
}

// sourced is a value with the lines that it comes from.
type sourced[T any] struct {
	value T
	set   bool
	from  []*Line
}

func sourcedOf[T any](m *migration, v *bucketfile.Value[T]) (out sourced[T]) {
	if v != nil {
		out = sourced[T]{v.Value, true, m.from(v.Origins)}
	}
	return out
}

// limit is an admission limit by the name of its field.
type limit struct {
	name  string
	value uint64
	from  []*Line
}

// group is the engines of a stage in a bucket.
type group struct {
	stage  string
	ids    sourced[[]string]
	policy sourced[string]
	caps   []limit
}

// bucket is a complete bucket of the configuration.
type bucket struct {
	id                      sourced[string]
	rank, min, max, context sourced[uint64]
	ttft                    sourced[uint64]
	tps                     sourced[float64]
	groups                  []group
	// before is the order of the older router in each stage that the bucket is
	// made of.
	before []place
	// moved is set once its order is reported to be another one.
	moved bool
	// paired is the line of the last stage of a pair, nil without one.
	paired *Line
}

// place is where a bucket stood in the order of a stage.
type place struct {
	stage string
	rank  uint64
	id    string
}

// take makes a bucket of the configuration.
func (m *migration) take(b *bucketfile.Bucket) {
	out := bucket{
		id: sourcedOf(m, b.ID), rank: sourcedOf(m, b.Rank), min: sourcedOf(m, b.MinInputTokens), max: sourcedOf(m, b.MaxInputTokens),
		context: sourcedOf(m, b.MaxContextTokens), ttft: sourcedOf(m, b.TTFTMillis), tps: sourcedOf(m, b.TokensPerSecond),
	}
	if l := m.fields[b.Origin.Pointer+"/groups/mode"]; l != nil {
		l.raise(Renamed)
		l.note("the groups say it")
	}
	for _, r := range b.Rejected {
		m.from([]bucketfile.Origin{r.Origin})[0].find(diag.LegacyDropped, r.Message, r.Hint)
	}
	for _, g := range []struct {
		stage string
		*bucketfile.Group
	}{{plain, b.Plain}, {prefill, b.Prefill}, {decode, b.Decode}} {
		if g.Group == nil {
			continue
		}
		out.groups = append(out.groups, m.group(g.stage, g.Group))
		if s := m.spec(g.Origin); s != nil {
			out.before = append(out.before, place{string(s.Stage), s.Rank.Value, s.ID.Value})
			if g.stage != plain {
				out.paired = m.fields[s.Origin.Pointer+"/stage"]
			}
			m.ofSpec(s, b, fmt.Sprintf("%s/buckets/%d%s", m.at, len(m.buckets), groupPath(g.stage)))
		}
	}
	m.buckets = append(m.buckets, out)
}

// spec is the legacy spec at a place.
func (m *migration) spec(o bucketfile.Origin) *bucketfile.Spec {
	if m.specs == nil {
		m.specs = make(map[bucketfile.Origin]*bucketfile.Spec, len(m.file.Specs))
		for i := range m.file.Specs {
			if s := &m.file.Specs[i]; s.Rank != nil && s.ID != nil {
				m.specs[s.Origin] = s
			}
		}
	}
	return m.specs[o]
}

// group makes a group of the configuration.
func (m *migration) group(stage string, g *bucketfile.Group) group {
	out := group{stage: stage, ids: sourcedOf(m, g.WorkerIDs), policy: sourcedOf(m, g.Policy)}
	switch policy := out.policy.value; {
	case policy == "power_of_n":
		out.policy.value = "power_of_two"
	case policy == "cache_aware" && stage == decode:
		out.policy.from[0].find(diag.LegacyNoEquivalent, "cache_aware is not possible for decode engines, which compute no prefix", "write power_of_two, or remove the policy")
	}
	for _, c := range g.Caps {
		if c.Limit != nil {
			out.caps = append(out.caps, limit{c.Name, c.Limit.Value, m.from(c.Limit.Origins)})
			continue
		}
		m.from(c.Share.Origins)[0].find(diag.LegacyNoEquivalent, c.Name+" is a share of a capacity that a configuration does not know, and limits are counts",
			"remove it, and write max_running_requests or max_kv_tokens as a number into the migrated policy")
	}
	if v := g.WorkerServices; v != nil {
		m.from(v.Origins)[0].find(diag.LegacyNoEquivalent, "services of Kubernetes are not asked for their engines", "list the engines as worker_ids")
	}
	if a := g.Affinity; a != nil {
		for _, v := range []*bucketfile.Value[string]{a.Mode, a.BalancedBy} {
			if v != nil && v.Value == "prefer" {
				m.from(v.Origins)[0].change(SessionAffinity, "bindings are reused while admitted, and prefixes followed by the rules of cache_aware; there is no mode to choose")
			} else if v != nil {
				m.noBalance(v.Origins)
			}
		}
		if a.LoadFactor != nil {
			m.noBalance(a.LoadFactor.Origins)
		}
		if a.LoadGap != nil {
			m.noBalance(a.LoadGap.Origins)
		}
	}
	return out
}

func (m *migration) noBalance(origins []bucketfile.Origin) {
	m.from(origins)[0].find(diag.LegacyNoEquivalent, "affinity is not balanced against load", "remove it; the pressure guard of cache_aware is the nearest")
}

// ofSpec states what the fields of a legacy spec mean in a bucket that is made of
// it.
func (m *migration) ofSpec(s *bucketfile.Spec, b *bucketfile.Bucket, target string) {
	at := s.Origin.Pointer + "/"
	if l := m.fields[at+"stage"]; l != nil {
		l.raise(Renamed)
		l.note("it is the group of a complete bucket now")
		l.Targets = append(l.Targets, target)
	}
	if l := m.fields[at+"rank"]; l != nil && b.Rank != nil && b.Rank.Value != s.Rank.Value {
		l.change(BucketOrder, "the bucket has the rank %d of the decisions file", b.Rank.Value)
	}
	for name, v := range map[string]*bucketfile.Value[uint64]{"max_context_tokens": s.MaxContextTokens, "max_sequence_tokens": s.MaxTokens} {
		l := m.fields[at+name]
		if l != nil && v != nil && b.MaxContextTokens != nil && b.MaxContextTokens.Value != v.Value {
			l.change(ContextCheck, "the bucket is bounded by the %d tokens of the decisions file", b.MaxContextTokens.Value)
		}
	}
	for _, name := range []string{"id", "min_extend_tokens", "max_extend_tokens", "ttft_p95_at_capacity_ms", "tps_p05_at_capacity", "policy", "max_sequence_tokens"} {
		if l := m.fields[at+name]; l != nil {
			l.raise(Renamed)
		}
	}
	if l := m.fields[at+"max_context_tokens"]; l != nil && s.Stage == bucketfile.Prefill {
		l.change(ContextCheck, "it bounds the expected peak, input and requested output together, when that is known; the older router held the prefill stage to the input alone, so a short request with a long output may go to another bucket now")
	}
	if l := m.fields[at+"max_sequence_tokens"]; l != nil {
		l.change(ContextCheck, "a request whose output length is not known is held to its input; the older router kept such requests out of decode buckets with a bound of the sequence")
	}
	if l := m.fields[at+"max_pending_prefill_tokens"]; l != nil {
		l.change(PendingBudget, "an engine is admitted while its waiting tokens are below %d; the older router added the tokens of the request and compared with at most %[1]d", s.MaxPendingPrefillTokens.Value)
		l.change(OnePick, "a picked engine over the budget is not replaced by another one of its bucket; the request goes on to its next bucket")
		l.change(CapacityExhaustion, "when all buckets refuse, the answer is 503 with the reasons; the older router then picked by load without the budget")
	}
}

// apart states that the stages of a pair are not picked by themselves any more.
// With one bucket there was nothing else to pick from.
func (m *migration) apart() {
	for _, b := range m.buckets {
		if l := b.paired; l != nil && len(m.buckets) > 1 {
			l.change(PairedStages, "both engines of a request come from one bucket, and when a stage of it refuses both are picked again from the next; the older router picked each stage by itself")
		}
	}
}

// leftOut settles the fields of specs that the decisions leave out.
func (m *migration) leftOut() {
	dropped := make(map[string]diag.Pos)
	for _, d := range m.answers.Lone {
		if d.Use == bucketfile.UseDrop {
			dropped[d.Spec.Value] = d.Origin.Pos
		}
	}
	places := make(map[string]diag.Pos)
	for i := range m.file.Specs {
		if s := &m.file.Specs[i]; s.ID != nil {
			if pos, ok := dropped[s.ID.Value]; ok {
				places[s.Origin.Pointer] = pos
			}
		}
	}
	for pointer, l := range m.fields {
		if parts := strings.SplitN(pointer, "/", 4); len(parts) == 4 {
			if pos, ok := places[strings.Join(parts[:3], "/")]; ok {
				l.change(PolicyAttachment, "the decisions file leaves the bucket out (%s)", pos)
			}
		}
	}
}

// waits says that the limits of a group depend on something that is not known.
func (g *group) waits(why string) {
	for _, c := range g.caps {
		for _, l := range c.from {
			l.raise(NeedsDecision)
			l.note("%s", why)
		}
	}
}

// bounded reports whether a bucket depends on the length of a request.
func (m *migration) bounded() bool {
	return slices.ContainsFunc(m.buckets, func(b bucket) bool { return b.min.set || b.max.set || b.context.set })
}

// settings writes what a bucket file says about the model.
func (m *migration) settings() {
	modes := []struct {
		field string
		v     *bucketfile.Value[string]
		used  func(b bucket) bool
	}{
		{"ttft_slo", m.file.TTFTSLO, func(b bucket) bool { return b.ttft.set }},
		{"tps_slo", m.file.TPSSLO, func(b bucket) bool { return b.tps.set }},
	}
	for _, mode := range modes {
		pointer := m.at + "/" + mode.field
		switch {
		case mode.v != nil:
			from := m.from(mode.v.Origins)
			m.put(pointer, text(mode.v.Value), from...)
			for _, l := range from {
				l.raise(Renamed)
			}
		case slices.ContainsFunc(m.buckets, mode.used):
			m.put(pointer, text("disabled"), m.fixed(mode.field+": disabled", "the bucket file has estimates and no mode, so nothing follows from them, as before"))
		}
	}
}

// writeBuckets writes the buckets, and the policies that most groups have as
// defaults.
func (m *migration) writeBuckets() {
	needs := map[bool]bool{}
	for _, b := range m.buckets {
		for _, g := range b.groups {
			if own := g.policy.set || len(g.caps) > 0; !own {
				needs[g.stage == decode] = true
			}
		}
	}
	if needs[false] {
		m.writePolicy(m.at+"/defaults/policy", false, nil)
	}
	if needs[true] {
		m.writePolicy(m.at+"/defaults/decode_policy", true, nil)
	}
	list := m.at + "/buckets"
	m.root.at(list).kind = listNode
	for _, name := range []string{"bucket-config", "reorg-config"} {
		if m.line.Has(name) {
			l := m.source(name)
			l.raise(Renamed)
			l.Targets = append(l.Targets, list)
		}
	}
	for i := range m.buckets {
		m.writeBucket(fmt.Sprintf("%s/buckets/%d", m.at, i), &m.buckets[i])
	}
	m.swaps()
	m.apart()
}

// groupPath is where the group of a stage is in its bucket.
func groupPath(stage string) string {
	if stage == plain {
		return "/groups/plain"
	}
	return "/groups/pd/" + stage
}

// writeBucket writes one bucket.
func (m *migration) writeBucket(at string, b *bucket) {
	m.put(at+"/id", text(b.id.value), b.id.from...)
	counts := []struct {
		field string
		value sourced[uint64]
	}{
		{"rank", b.rank}, {"limits/min", b.min}, {"limits/max", b.max}, {"max_context_tokens", b.context}, {"ttft_ms", b.ttft},
	}
	for _, c := range counts {
		if c.value.set {
			m.put(at+"/"+c.field, number(c.value.value), c.value.from...)
		}
	}
	if b.tps.set {
		m.put(at+"/tokens_per_second", real(b.tps.value), b.tps.from...)
	}
	for i := range b.groups {
		g := &b.groups[i]
		path := at + groupPath(g.stage)
		m.root.at(path)
		if g.ids.set {
			m.put(path+"/worker_ids", texts(m.known(g)), g.ids.from...)
		}
		if g.policy.set || len(g.caps) > 0 {
			m.writePolicy(path+"/policy", g.stage == decode, g)
		}
	}
}

// known returns the ids of the engines of a group, and reports those that the
// model does not have.
func (m *migration) known(g *group) (out []string) {
	for _, id := range g.ids.value {
		if e := m.engine(id); e != nil {
			out = append(out, e.id)
			continue
		}
		out = append(out, diag.Mask(id))
		if len(m.engines) == 0 {
			continue // that is reported by itself
		}
		hint := "remove it, or name the engine with --worker-urls"
		for _, e := range m.engines {
			if sameURL(e.url, id) {
				hint = fmt.Sprintf("write %s, exactly as --worker-urls has it; the older router never matched the two", e.legacy)
			}
		}
		g.ids.from[0].find(diag.LegacyNoEquivalent, fmt.Sprintf("the model has no engine %q", diag.Mask(id)), hint)
	}
	return out
}

// maxSwaps bounds the pairs that a report lists.
const maxSwaps = 200

// capacity is the longest input that a bucket takes, by which buckets are tried.
func (b *bucket) capacity() uint64 {
	most := uint64(math.MaxUint64)
	if b.max.set {
		most = b.max.value
	}
	if b.context.set {
		most = min(most, b.context.value)
	}
	return most
}

// swaps finds the pairs of buckets that change their order, among those that one
// request may fit both of.
func (m *migration) swaps() {
	order := make([]*bucket, len(m.buckets))
	for i := range m.buckets {
		order[i] = &m.buckets[i]
	}
	slices.SortStableFunc(order, func(a, b *bucket) int {
		return cmp.Or(cmp.Compare(a.capacity(), b.capacity()), cmp.Compare(a.rank.value, b.rank.value), strings.Compare(a.id.value, b.id.value))
	})
	for i, first := range order {
		for _, second := range order[i+1:] {
			for _, stage := range []string{prefill, decode} {
				if first.placed(stage).after(second.placed(stage)) && first.overlaps(second) {
					m.swap(first, second, stage)
				}
			}
		}
	}
}

func (b *bucket) placed(stage string) *place {
	for i := range b.before {
		if b.before[i].stage == stage {
			return &b.before[i]
		}
	}
	return nil
}

// after reports whether the older router tried p after q.
func (p *place) after(q *place) bool {
	return p != nil && q != nil && cmp.Or(cmp.Compare(p.rank, q.rank), strings.Compare(p.id, q.id)) > 0
}

// overlaps reports whether some input length fits both buckets.
func (b *bucket) overlaps(other *bucket) bool {
	return max(b.min.value, other.min.value) <= min(b.capacity(), other.capacity())
}

func (m *migration) swap(first, second *bucket, stage string) {
	for _, b := range []*bucket{first, second} {
		if b.moved {
			continue
		}
		b.moved = true
		for _, l := range b.rank.from {
			l.change(BucketOrder, "buckets are tried by capacity, and only those of equal capacity by rank; see the pairs that change places")
		}
	}
	if len(m.report.Swaps) == maxSwaps {
		m.report.MoreSwaps++
		return
	}
	m.report.Swaps = append(m.report.Swaps, Swap{First: first.id.value, Second: second.id.value, Stage: stage})
}
