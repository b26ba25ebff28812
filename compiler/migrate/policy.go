package migrate

import (
	"fmt"
	"slices"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/bucketfile"
	"shunt/compiler/migrate/flags"
	"shunt/schema/plan"
)

// mainPolicy returns the policy of plain and prefill groups, and nothing when it
// is not known or was dropped.
func (m *migration) mainPolicy() string {
	policy, known := m.line.Policy()
	if !known || policy == "fused_score" || policy == "score_policy" {
		return ""
	}
	return policy
}

// policies writes the policies of all groups.
func (m *migration) policies() {
	m.dropped()
	m.neighbour()
	m.means()
	if len(m.buckets) > 0 {
		m.writeBuckets()
	} else {
		m.writePolicy(m.at+"/defaults/policy", false, nil)
		if m.kind == pd {
			m.writePolicy(m.at+"/defaults/decode_policy", true, nil)
		}
	}
	m.overruled()
}

const (
	fusion   = "scores are not fused any more, and a policy picks by one measure"
	noFusion = "use --policy cache_aware for prefix and load together, or power_of_two for load alone"
)

// dropped refuses the options that were dropped on purpose.
func (m *migration) dropped() {
	drop := func(name, value, why, way string) {
		for i, g := range m.line.All(name) {
			hit := value == "" || slices.ContainsFunc(g.Values, func(v flags.Value) bool { return v.Text == value })
			if !hit {
				continue
			}
			what := "--" + name
			if value != "" {
				what += " " + value
			}
			m.given[name][i].find(diag.LegacyDropped, what+" was dropped: "+why, way)
		}
	}
	const (
		share = "the filter by share of a cached prefix is gone, and the minimum hit of cache_aware is not equivalent to it"
		none  = "remove it, and review --cache-affinity-min-match-ratio with --policy cache_aware as a new setting"
	)
	drop("policy", "fused_score", fusion, noFusion)
	drop("policy", "score_policy", fusion, noFusion)
	drop("fuse", "", fusion, "remove it with its terms and weights")
	drop("decode-policy", "legacy_host_affinity", "decode engines are not picked by host any more", "write --decode-policy power_of_two; labels and match_labels keep pairs together")
	drop("stable-pair", "", "there are no backup engines any more: a policy picks one engine, and a refused pick moves to the next bucket", "remove it")
	drop("affinity-mode", "soft", "a binding is reused whenever its engine is admitted, whatever its load", "remove it or write strict, and review admission limits for hot sessions")
	drop("filter", "prefix_cache", share, none)
	drop("prefix-cache-min-share", "", share, none)
	const global = "bindings belong to a bucket, so there is no mode over all buckets"
	drop("session-affinity-mode", "global-rebind", global, "write bucket, and decide how sessions that change their bucket shall be treated")
	drop("session-affinity-mode", "global-preserve", global, "write bucket, and decide how sessions that change their bucket shall be treated")
	if policy, _ := m.line.Policy(); policy == "session_aware" {
		for _, name := range pressureFlags() {
			drop(name, "", "the pressure guard belongs to cache_aware, and sessions have no pressure escape any more", "remove it")
			for _, l := range m.given[name] {
				l.change(PressureTuning, "it applies to cache_aware alone")
			}
		}
	}
}

func pressureFlags() []string {
	return []string{"disable-pressure-guard", "pressure-abs-threshold-tokens", "pressure-abs-threshold-ms", "pressure-rel-threshold"}
}

// neighbour takes the arguments of the neighbouring version that say nothing
// new, and those without effect.
func (m *migration) neighbour() {
	for _, name := range []string{"chat-routing", "selection-engine"} {
		l := m.source(name)
		switch {
		case !m.line.Has(name):
			m.forget(name)
		case m.line.Text(name, "") == "reorg":
			l.raise(Carried)
			l.note("configurations always route by buckets first")
		case m.usable(name):
			l.change(RoutingPath, "configurations always route by buckets first; the legacy path is what this migration describes")
		}
	}
	for _, name := range []string{"policy", "decode-policy", "sticky-fallback-policy"} {
		if m.line.Text(name, "") == "power_of_n" {
			m.source(name).raise(Renamed)
			m.source(name).note("power_of_n is the name of power_of_two in a neighbouring version")
		}
	}
	for _, name := range []string{"affinity-mode", "session-affinity-mode"} {
		switch {
		case !m.line.Has(name):
		case m.line.Text(name, "") == "strict" || m.line.Text(name, "") == "bucket":
			m.source(name).raise(Carried)
			m.source(name).note("it is the only mode, so nothing is written")
		}
	}
	m.choices()
}

// forget takes the line of a default out of the report.
func (m *migration) forget(name string) {
	l := m.absent[name]
	delete(m.absent, name)
	m.report.Lines = slices.DeleteFunc(m.report.Lines, func(other *Line) bool { return other == l })
}

// choices decides about the sample size of the neighbouring version.
func (m *migration) choices() {
	l := m.source("power-of-n-choices")
	if c := m.answers.Choices; c != nil && (!m.line.Has("power-of-n-choices") || m.kind != "" && !m.samples()) {
		m.useless(c.Origins[0].Pos, "the answer choices is not needed: no group is told how many engines power_of_two compares", "remove it")
	}
	switch v := m.line.Value("power-of-n-choices"); {
	case !m.line.Has("power-of-n-choices"):
		m.forget("power-of-n-choices")
	case v == nil || l.Findings.HasErrors():
	case v.Number == 2:
		l.raise(Carried)
		l.note("two is what power_of_two compares")
	case m.kind != "" && !m.samples():
		l.change(PolicyAttachment, "no group has the policy power_of_two, so nothing is written; where another policy falls back to it, two engines are compared, or as many as the arguments of that policy say")
	case m.answers.Choices != nil:
		l.note("the decisions file says %d", m.answers.Choices.Value)
		if m.answers.Choices.Value == v.Number {
			l.raise(Carried)
		} else {
			l.change(PolicyAttachment, "the decisions file compares %d engines instead of %d", m.answers.Choices.Value, v.Number)
		}
	default:
		l.find(diag.LegacyDecision, fmt.Sprintf("power_of_two compares two engines, and a neighbouring version was told to compare %d", v.Number),
			fmt.Sprintf("answer choices in the decisions file: 2, or %d to keep it", v.Number))
		m.ask(bucketfile.Open{
			Question: fmt.Sprintf("How many engines shall power_of_two compare? A neighbouring version was told %d.", v.Number),
			Section:  "choices", Answer: []string{"TODO"}, Choices: []string{fmt.Sprintf("2 or %d", v.Number)},
		})
	}
}

// samples reports whether a group has the policy power_of_two by itself.
func (m *migration) samples() bool {
	if m.uses("power_of_two") || len(m.buckets) == 0 && m.kind == pd {
		return true
	}
	return slices.ContainsFunc(m.buckets, func(b bucket) bool {
		return slices.ContainsFunc(b.groups, func(g group) bool { return g.stage == decode && !g.policy.set })
	})
}

// means states the deliberate changes where they bite: at the policy of each
// group.
func (m *migration) means() {
	main, decodePolicy := m.source("policy"), m.source("decode-policy")
	groups, limited := make(map[*Line]int), make(map[*Line]bool)
	for _, b := range m.buckets {
		for i := range b.groups {
			l := m.policyLine(&b.groups[i])
			groups[l]++
			limited[l] = limited[l] || m.limits(&b.groups[i])
		}
	}
	if len(m.buckets) == 0 {
		groups[main], limited[main] = 1, m.limits(nil)
		if m.kind == pd {
			groups[decodePolicy], limited[decodePolicy] = 1, m.limits(nil)
		}
	}
	for _, b := range m.buckets {
		for i := range b.groups {
			if g := &b.groups[i]; g.policy.set {
				m.meaning(g.policy.value, meant{g.policy.from[0], 1, g.stage == decode, limited[g.policy.from[0]]})
			}
		}
	}
	if n := groups[main]; n > 0 {
		m.meaning(m.mainPolicy(), meant{main, n, false, limited[main]})
	} else {
		unused(main, "every group has its own policy")
	}
	switch n := groups[decodePolicy]; {
	case n > 0 && !m.refused("decode-policy"):
		m.meaning("power_of_two", meant{decodePolicy, n, true, limited[decodePolicy]})
	case n == 0 && m.kind == plain:
		unused(decodePolicy, "there are no decode engines")
	case n == 0 && len(m.buckets) > 0:
		unused(decodePolicy, "every decode group has its own policy")
	}
}

// unused notes that nothing depends on an argument.
func unused(l *Line, why string) {
	l.note("%s", why)
	if l.Outcome != Defaulted {
		l.raise(Carried)
	}
}

// policyLine is the line that the policy of a group comes from.
func (m *migration) policyLine(g *group) *Line {
	switch {
	case g.policy.set:
		return g.policy.from[0]
	case g.stage == decode:
		return m.source("decode-policy")
	}
	return m.source("policy")
}

// modern reports whether the older router was of a version, and told, to route by
// buckets first. Then policies and limits meant there what they mean here.
func (m *migration) modern() bool {
	return m.line.Reorg() || m.line.Has("reorg-config") || m.file.Format == bucketfile.FormatReorg || m.file.Format == bucketfile.FormatNew
}

// limits reports whether a group, or the one that stands for all, has limits.
func (m *migration) limits(g *group) bool {
	return len(m.modelLimits()) > 0 || g != nil && len(g.caps) > 0
}

// meant is where a policy comes from, and what the groups are that have it. Only
// limits make them refuse engines.
type meant struct {
	*Line
	groups    int
	isDecode  bool
	isLimited bool
}

// meaning states what is different about a policy of some groups.
func (m *migration) meaning(policy string, l meant) {
	if m.modern() {
		return
	}
	groups, many := l.groups, len(m.buckets) > 1
	switch policy {
	case "round_robin":
		if groups > 1 {
			l.change(RoundRobinCursor, "each group has a cursor of its own; it was one for the model")
		} else {
			l.note("the cursor belongs to the one group, as it did to the model")
		}
	case "session_aware":
		l.change(SessionAffinity, "a binding is reused while its engine is admitted; there is no backup engine and no escape from pressure")
		l.change(OnePick, "the policy picks one engine, which nothing replaces afterwards")
		if many {
			l.change(AffinityScope, "a session is bound within a bucket and a stage; a request of another length may go to another engine")
		}
		if !m.line.Has("affinity-mode") {
			m.source("affinity-mode").change(OmittedMode, "the mode was soft without the argument, which moved a session away from a loaded engine; now its binding is reused while admitted")
		}
	case "cache_aware":
		l.changeIf(l.isLimited, OnePick, "a holder of the prefix that admission refuses is followed by the next holder, and then by the next bucket; there is no substitute by load")
		if many {
			m.source("cache-candidate-ratio").change(CandidateBase, "it is a share of the group of a bucket; it was one of all healthy prefill engines of the model")
		}
	case "sticky":
		if many {
			l.change(AffinityScope, "a routing key is bound within a bucket; it was bound for the model")
		}
		if fallback := m.line.Text("sticky-fallback-policy", "round_robin"); fallback == "round_robin" && groups > 1 {
			m.source("sticky-fallback-policy").change(RoundRobinCursor, "each group has a cursor of its own; it was one for the model")
		}
	case "power_of_two":
		l.changeIf(l.isLimited, PowerOfTwoAdmission, "limits are checked on the chosen engine alone; when it is refused no second engine is tried, and the request goes on to its next bucket")
	}
	if slices.Contains([]string{"power_of_two", "session_aware", "cache_aware"}, policy) {
		if !l.isDecode {
			l.changeIf(l.isLimited, CapacityExhaustion, "when every engine is refused the request goes on to its next bucket, and after the last one the answer is 503 with the reasons; the older router made a second pass with relaxed limits")
		}
		m.capacity(l.Line)
	}
}

// uses reports whether a group has a policy.
func (m *migration) uses(policy string) bool {
	if len(m.buckets) == 0 {
		return m.mainPolicy() == policy
	}
	for _, b := range m.buckets {
		for _, g := range b.groups {
			if g.policy.set && g.policy.value == policy || !g.policy.set && g.stage != decode && m.mainPolicy() == policy {
				return true
			}
		}
	}
	return false
}

// refused reports whether an argument has a finding that keeps it out.
func (m *migration) refused(name string) bool {
	return slices.ContainsFunc(m.given[name], func(l *Line) bool { return l.Findings.HasErrors() })
}

// capacity states that the engines' own capacity is no limit any more.
func (m *migration) capacity(l *Line) {
	l.change(EngineCapacity, "the older router refused an engine at the running requests and tokens that the engine itself reports as its capacity; no limit does that by itself now, so write max_running_requests and max_kv_tokens into admission if it matters")
}

// writePolicy writes one policy with its tuning and limits, and with those of a
// group, if it has some.
func (m *migration) writePolicy(at string, isDecode bool, g *group) {
	policy, from := m.mainPolicy(), m.source("policy")
	if isDecode {
		policy, from = "power_of_two", m.source("decode-policy")
		if m.refused("decode-policy") {
			policy = ""
		}
	}
	if g != nil && g.policy.set {
		policy, from = g.policy.value, g.policy.from[0]
	}
	if policy == "" {
		m.todo(at, "type: the policy of the older router was dropped or is not known; choose one")
		m.admission(at, g) // no budget is lost in a file with marks
		if g != nil {
			g.waits("it belongs to a policy that is not known")
		}
		return
	}
	m.put(at+"/type", text(policy), from)
	if from.Outcome != Defaulted {
		from.raise(Renamed)
	}
	switch {
	case policy == "power_of_two" && m.answers.Choices != nil && m.line.Has("power-of-n-choices"):
		if n := m.answers.Choices.Value; n != 2 {
			m.put(at+"/choices", number(n), m.source("power-of-n-choices"))
		}
	case policy == "cache_aware":
		m.cacheTuning(at)
	case policy == "sticky":
		m.fallback(at)
	}
	m.admission(at, g)
}

// fallback writes the policy of requests without a binding.
func (m *migration) fallback(at string) {
	l := m.source("sticky-fallback-policy")
	switch v := m.line.Value("sticky-fallback-policy"); {
	case !m.line.Has("sticky-fallback-policy"):
		l.note(sameDefault)
	case v != nil:
		name := v.Text
		if name == "power_of_n" {
			name = "power_of_two"
		}
		m.put(at+"/fallback", text(name), l)
	}
}

// tuned lists the tuning of cache_aware by argument and field.
func tuned() [][2]string {
	return [][2]string{
		{"cache-affinity-min-matched-tokens", "min_matched_tokens"},
		{"cache-affinity-min-match-ratio", "min_match_ratio"},
		{"cache-candidate-min-workers", "candidate_min_workers"},
		{"cache-candidate-ratio", "candidate_ratio"},
		{"cache-candidate-max-workers", "candidate_max_workers"},
		{"cache-switch-margin-tokens", "switch_margin_tokens"},
		{"disable-pressure-guard", "pressure_guard"},
		{"pressure-abs-threshold-tokens", "pressure_abs_threshold_tokens"},
		{"pressure-abs-threshold-ms", "pressure_abs_threshold_ms"},
		{"pressure-rel-threshold", "pressure_rel_threshold"},
		{"worker-queue-limit", "worker_queue_limit"},
		{"saturation-queue-floor", "saturation_queue_floor"},
		{"min-load-choices", "min_load_choices"},
	}
}

// cacheTuning writes the tuning that was given. The defaults are the same.
func (m *migration) cacheTuning(at string) {
	for _, t := range tuned() {
		l := m.source(t[0])
		v := m.line.Value(t[0])
		switch {
		case !m.line.Has(t[0]) && m.table[t[0]].Default == "":
			l.note("it is off, as before")
		case !m.line.Has(t[0]):
			l.note(sameDefault)
		case t[0] == "disable-pressure-guard":
			l.raise(Renamed)
			m.put(at+"/"+t[1], boolean(false), l)
		case v == nil:
		case v.Number > plan.MaxCount || v.Real > plan.MaxCount:
			l.find(diag.LegacyNoEquivalent, fmt.Sprintf("%s is more than a configuration can hold", v.Text), fmt.Sprintf("write at most %d", int64(plan.MaxCount)))
		case m.table[t[0]].Kind == flags.Float:
			m.put(at+"/"+t[1], real(v.Real), l)
		default:
			m.put(at+"/"+t[1], number(v.Number), l)
		}
	}
}

// modelLimits are the limits that the command line sets for every group, by the
// names of their fields.
func (m *migration) modelLimits() []struct{ field, flag string } {
	var out []struct{ field, flag string }
	for _, x := range []struct{ field, flag string }{
		{"max_waiting_requests", "max-waiting-requests"}, {"max_pending_prefill_tokens", "max-pending-prefill-tokens"}, {"max_inflight_requests", "max-in-flight"},
	} {
		if m.line.Has(x.flag) && (x.flag != "max-in-flight" || m.filters("overloaded")) {
			out = append(out, x)
		}
	}
	return out
}

// admission writes the limits of a policy: the budgets of the older router. A
// limit of a group comes before that of the model.
func (m *migration) admission(at string, g *group) {
	at += "/admission"
	for _, x := range m.modelLimits() {
		l, v := m.source(x.flag), m.line.Value(x.flag)
		own := g != nil && slices.ContainsFunc(g.caps, func(c limit) bool { return c.name == x.field })
		switch {
		case own || v == nil:
		case v.Number > plan.MaxCount:
			l.find(diag.LegacyNoEquivalent, v.Text+" is more than a configuration can hold", "remove it; it bounds nothing")
		case x.flag == "max-in-flight":
			filter := m.filterLine()
			m.put(at+"/"+x.field, number(v.Number), l, filter)
			l.raise(Renamed)
			filter.raise(Renamed)
			if !m.modern() {
				filter.change(CapacityExhaustion, "engines at the limit are not left out before the pick: the picked engine is checked, a refusal moves to the next bucket, and after the last one the answer is 503 with the reasons")
			}
		default:
			m.put(at+"/"+x.field, number(v.Number), l)
			l.raise(Renamed)
		}
	}
	if g == nil {
		return
	}
	for _, c := range g.caps {
		if c.value > plan.MaxCount {
			c.from[0].find(diag.LegacyNoEquivalent, fmt.Sprintf("%d is more than a configuration can hold", c.value), "remove it; it bounds nothing")
			continue
		}
		m.put(at+"/"+c.name, number(c.value), c.from...)
	}
}

// overruled says of limits of the model that every group has its own, and marks
// where a draft would lose them.
func (m *migration) overruled() {
	for _, x := range m.modelLimits() {
		lines := []*Line{m.source(x.flag)}
		if x.flag == "max-in-flight" {
			lines = append(lines, m.filterLine())
		}
		for _, l := range lines {
			if l.Outcome == "" && !l.Findings.HasErrors() && m.line.Value(x.flag) != nil {
				l.raise(Carried)
				l.note("every group has a limit of its own")
			}
		}
		if v := m.line.Value(x.flag); v != nil && m.kind == "" && len(m.buckets) == 0 {
			m.todo(m.at+"/defaults", "decode_policy: if there are decode engines, it needs type: power_of_two and admission: {%s: %d} too (%s)", x.field, v.Number, m.source(x.flag).Pos)
		}
	}
}

// filters reports whether --filter has a word.
func (m *migration) filters(word string) bool { return m.filterWord(word) >= 0 }

// filterWord is the element that has a word of --filter, or -1.
func (m *migration) filterWord(word string) int {
	for _, v := range m.line.Values("filter") {
		if v.Text == word {
			return v.At
		}
	}
	return -1
}

func (m *migration) filterLine() *Line { return m.byElement[m.filterWord("overloaded")] }
