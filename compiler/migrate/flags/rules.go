package flags

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// Policy returns the value of --policy or its default, and false when what was
// written is not usable. The neighbouring version's name of power_of_two is
// replaced.
func (l *Line) Policy() (string, bool) {
	g := l.Get("policy")
	if g == nil {
		if l.Reorg() {
			return "power_of_two", true
		}
		return "round_robin", true
	}
	if l.Value("policy") == nil {
		return "", false
	}
	return powerOfTwo(l.Text("policy", "")), true
}

// powerOfTwo replaces the neighbouring version's name of the policy.
func powerOfTwo(name string) string {
	if name == "power_of_n" {
		return "power_of_two"
	}
	return name
}

// Reorg reports whether the neighbouring version was told to route by buckets
// first, which is how configurations always do it.
func (l *Line) Reorg() bool {
	return l.Text("chat-routing", "") == "reorg" || l.Text("selection-engine", "") == "reorg"
}

// rules reports what the older router refuses at start-up, all of it.
func (l *Line) rules() {
	l.requiredRules()
	l.policyRules()
	l.valueRules()
	l.discoveryRules()
	l.urlRules()
	l.indexerRules()
	l.filterRules()
	l.headerRules()
	l.orderRules()
	l.neighbourRules()
	l.reorgFileRules()
	l.samplingRules()
	l.adviceRules()
}

// missing reports an argument that has to be there.
func (l *Line) missing(message, hint string) {
	l.Findings.Add(diag.New(diag.LegacyMissing, diag.Pos{}, "", message)).Hint = hint
}

// conflict reports every occurrence of an argument that cannot be where it is.
func (l *Line) conflict(name, message, hint string) {
	for _, g := range l.All(name) {
		g.add(diag.LegacyConflict, l.Pos(g), fmt.Sprintf("--%s %s", name, message), hint)
	}
}

// conflictAt reports the occurrence of an argument that has a value.
func (l *Line) conflictAt(name string, v Value, message, hint string) {
	g := &l.Given[l.owner[v.At]]
	g.add(diag.LegacyConflict, l.Args[v.At].Pos, fmt.Sprintf("--%s %s", name, message), hint)
}

// refuse reports the value of an argument.
func (l *Line) refuse(name, domain string) {
	v := l.Value(name)
	g := l.Get(name)
	v.Bad = true
	g.add(diag.LegacyValue, l.Args[v.At].Pos, fmt.Sprintf("--%s %s is not %s", name, quote(v.Text), domain), "write "+domain)
}

func (l *Line) requiredRules() {
	switch v := l.Value("model-id"); {
	case !l.Has("model-id"):
		l.missing("--model-id is missing", "add --model-id with the name that clients send as model")
	case v != nil && v.Text == "": // R40
		l.refuse("model-id", "a name")
	}
	if v := l.Value("host"); v != nil && v.Text == "" {
		l.refuse("host", "a name or an address") // every address is 0.0.0.0
	}
	if l.Has("sampling-param-conflict") && !l.Has("override-sampling-params") {
		l.conflict("sampling-param-conflict", "needs --override-sampling-params", "add --override-sampling-params or remove it")
	}
	if l.Has("cb-cool-down-secs") && !l.Has("cb-threshold") { // R32
		l.conflict("cb-cool-down-secs", "needs --cb-threshold", "add --cb-threshold or remove it")
	}
}

// belongs lists the arguments that need one of a few policies.
func belongs() []struct {
	names, policies []string
} {
	cache := []string{"cache_aware"}
	return []struct{ names, policies []string }{
		{[]string{ // R02
			"session-id-header", "session-idle-secs", "session-eviction-interval-secs", "stable-pair", "affinity-mode", "session-affinity-mode",
		}, []string{"session_aware"}},
		{[]string{ // R09, R09a
			"disable-pressure-guard", "pressure-abs-threshold-tokens", "pressure-abs-threshold-ms", "pressure-rel-threshold",
		}, []string{"cache_aware", "session_aware"}},
		{[]string{ // R08, R10, R17
			"cache-affinity-min-matched-tokens", "cache-affinity-min-match-ratio", "cache-candidate-min-workers", "cache-candidate-ratio",
			"cache-candidate-max-workers", "cache-switch-margin-tokens", "worker-queue-limit", "saturation-queue-floor", "min-load-choices",
			"cache-prefix-provider", "kv-indexer-endpoint",
		}, cache},
		{[]string{ // R39
			"routing-key-header", "sticky-fallback-policy", "sticky-idle-secs", "sticky-eviction-interval-secs",
		}, []string{"sticky"}},
		{[]string{"fuse"}, []string{"score_policy", "fused_score"}}, // R33
	}
}

// policyRules holds tuning to its policy.
func (l *Line) policyRules() {
	policy, known := l.Policy()
	if !known {
		return
	}
	for _, b := range belongs() {
		if slices.Contains(b.policies, policy) {
			continue
		}
		for _, name := range b.names {
			hint := fmt.Sprintf("remove it, or use --policy %s", b.policies[0])
			if name == "fuse" || name == "stable-pair" { // no policy takes them any more
				hint = "remove it"
			}
			l.conflict(name, fmt.Sprintf("belongs to --policy %s, and the policy is %s", strings.Join(b.policies, " or "), policy), hint)
		}
	}
	if policy == "sticky" { // R38
		l.conflict("filter", "is not possible with --policy sticky", "remove it; max_inflight_requests in the admission of the migrated policy does what overloaded did")
	}
}

// valueRules holds numbers to the domains that start-up checks.
func (l *Line) valueRules() {
	for _, name := range []string{ // R03, R05, R07, R11, R13, R18f, R18g, R36b, R39c, R39d, R43
		"worker-queue-limit", "saturation-queue-floor", "min-load-choices", "kv-indexer-query-timeout-ms", "kv-indexer-query-max-inflight",
		"session-idle-secs", "session-eviction-interval-secs", "max-in-flight", "sticky-idle-secs", "sticky-eviction-interval-secs",
		"stream-idle-timeout-secs", "cache-candidate-min-workers", "cache-candidate-max-workers", "max-waiting-requests", "max-pending-prefill-tokens",
	} {
		if v := l.Value(name); v != nil && v.Number == 0 {
			l.refuse(name, "a whole number from 1")
		}
	}
	reals := []struct {
		name, domain string
		ok           func(x float64) bool
	}{
		{"pressure-rel-threshold", "a finite number above 1", func(x float64) bool { return x > 1 }},                               // R18e
		{"pressure-abs-threshold-ms", "a finite number from 0", func(x float64) bool { return x >= 0 }},                            // R18h
		{"cache-affinity-min-match-ratio", "a number from 0 to 1", func(x float64) bool { return x >= 0 && x <= 1 }},               // R18a
		{"cache-candidate-ratio", "a number from 0 to 1", func(x float64) bool { return x >= 0 && x <= 1 }},                        // R18b
		{"prefix-cache-min-share", "a number above 0, up to 1", func(x float64) bool { return float32(x) > 0 && float32(x) <= 1 }}, // R37b
	}
	for _, r := range reals {
		if v := l.Value(r.name); v != nil && (!r.ok(v.Real) || math.IsInf(v.Real, 0)) {
			l.refuse(r.name, r.domain)
		}
	}
	if v := l.Value("shutdown-drain-secs"); v != nil && v.Number > plan.MaxDrainMS/1000 { // R41
		l.refuse("shutdown-drain-secs", "a whole number from 0 to 1800")
	}
}

// orderRules holds pairs of numbers to their order.
func (l *Line) orderRules() {
	floor, limit := l.Value("saturation-queue-floor"), l.Value("worker-queue-limit")
	switch {
	case l.Has("saturation-queue-floor") && !l.Has("worker-queue-limit"): // R04
		l.conflict("saturation-queue-floor", "needs --worker-queue-limit", "add --worker-queue-limit or remove it")
	case floor != nil && limit != nil && floor.Number > limit.Number: // R06
		l.conflict("saturation-queue-floor", fmt.Sprintf("%d is above --worker-queue-limit %d", floor.Number, limit.Number), fmt.Sprintf("write at most %d", limit.Number))
	}
	// R18c: the defaults take part.
	least, most := uint64(8), uint64(32)
	low, high := l.Value("cache-candidate-min-workers"), l.Value("cache-candidate-max-workers")
	if low != nil {
		least = low.Number
	}
	if high != nil {
		most = high.Number
	}
	if least <= most {
		return
	}
	name := "cache-candidate-max-workers"
	if high == nil {
		name = "cache-candidate-min-workers"
	}
	l.conflict(name, fmt.Sprintf("leaves the minimum %d above the maximum %d", least, most), "set both; the defaults are 8 and 32")
}

// discoveryRules demands one source of engines.
func (l *Line) discoveryRules() {
	static, discovery := l.Has("worker-urls"), l.Has("service-discovery")
	switch {
	case static && discovery: // R20
		l.conflict("service-discovery", "and --worker-urls exclude each other", "keep one of the two")
	case !static && !discovery: // R21
		l.missing("neither --worker-urls nor --service-discovery is given", "add --worker-urls with the engines")
	}
	names := []string{"service-discovery-namespace", "selector", "prefill-selector", "decode-selector"}
	for _, name := range names {
		if !discovery { // R22
			l.conflict(name, "needs --service-discovery", "add --service-discovery or remove it")
		}
	}
	plain, prefill, decode := l.Has("selector"), l.Has("prefill-selector"), l.Has("decode-selector")
	switch {
	case discovery && !plain && !prefill && !decode: // R23
		l.conflict("service-discovery", "needs a selector", "add --selector, or --prefill-selector and --decode-selector")
	case plain && (prefill || decode): // R24
		l.conflict("selector", "excludes --prefill-selector and --decode-selector", "keep --selector for whole engines, or the other two for pairs")
	case prefill && !decode: // R25
		l.conflict("prefill-selector", "needs --decode-selector", "add --decode-selector")
	case decode && !prefill:
		l.conflict("decode-selector", "needs --prefill-selector", "add --prefill-selector")
	}
	l.selectorRules()
}

// equality is a term of a selector that compares a label with one value.
var equality = regexp.MustCompile(`^\s*([^\s!=,()]+)\s*==?\s*([^\s!=,()]*)\s*$`)

// Terms splits a selector into terms, which commas separate outside of the
// brackets of a set. Terms of nothing are left out.
func Terms(values []Value) (out []string) {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Text
	}
	depth, from, all := 0, 0, strings.Join(texts, ",")+","
	for i, c := range all {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth > 0 && i < len(all)-1 {
				continue
			}
			if term := strings.TrimSpace(all[from:i]); term != "" {
				out = append(out, term)
			}
			from = i + 1
		}
	}
	return out
}

// Equality returns the label and the value of a term that compares them.
func Equality(term string) (key, value string, ok bool) {
	m := equality.FindStringSubmatch(term)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// selectorRules holds the selectors of pairs to equality, and apart.
func (l *Line) selectorRules() {
	sets := make(map[string][]string)
	for _, name := range []string{"prefill-selector", "decode-selector"} {
		if !l.Has(name) || len(l.Values(name)) == 0 {
			continue
		}
		good := true
		for _, v := range l.Values(name) {
			for _, term := range Terms([]Value{v}) {
				key, value, ok := Equality(term)
				if good = good && ok; !ok { // R26
					l.conflictAt(name, v, fmt.Sprintf("has the term %s, which is not label=value", quote(term)), "use terms like app=prefill")
					continue
				}
				sets[name] = append(sets[name], key+"="+value)
			}
		}
		if good && len(sets[name]) == 0 { // R27
			l.conflict(name, "selects nothing", "write terms like app=prefill")
		}
		slices.Sort(sets[name])
		sets[name] = slices.Compact(sets[name])
	}
	if a := sets["prefill-selector"]; len(a) > 0 && slices.Equal(a, sets["decode-selector"]) { // R28
		l.conflict("decode-selector", "selects the same as --prefill-selector", "select decode engines by another label")
	}
}

// urlRules checks the engines.
func (l *Line) urlRules() {
	seen := make(map[string]argIndex)
	for _, g := range l.All("worker-urls") {
		for i := range g.Values {
			if v := &g.Values[i]; !v.Bad {
				l.url(g, v, seen)
			}
		}
	}
}

// argIndex is the index of an element.
type argIndex int

// url checks one engine: R45 to R48.
func (l *Line) url(g *Given, v *Value, seen map[string]argIndex) {
	pos := l.Args[v.At].Pos
	refuse := func(message, hint string) {
		v.Bad = true
		g.add(diag.LegacyValue, pos, fmt.Sprintf("--worker-urls %s %s", quote(v.Text), message), hint)
	}
	text := strings.TrimSpace(v.Text)
	u, err := url.Parse(text)
	switch {
	case text == "":
		refuse("is empty", "remove it")
		return
	case strings.Contains(text, ",") && strings.Count(text, "://") > 1:
		refuse("is several URLs, and the list is not split at commas", "separate the URLs with spaces")
		return
	case err != nil || u.Scheme == "" || u.Host == "":
		hint := "write it like http://10.0.0.1:30000"
		if !strings.Contains(text, "://") {
			hint = "write http://" + text
		}
		refuse("is not a URL", hint)
		return
	case u.Scheme != "http" && u.Scheme != "https":
		refuse("is neither http nor https", "write it like http://10.0.0.1:30000")
		return
	}
	form, err := plan.NormalizeURL(text)
	if err != nil {
		return // legal there; the migration says what is wrong with it
	}
	if first, twice := seen[form]; twice {
		refuse("is listed twice", "keep one of the two")
		f := &g.Findings[len(g.Findings)-1]
		f.Related = []diag.Related{{Pos: l.Args[first].Pos, Message: "the first one is here"}}
		return
	}
	seen[form] = argIndex(v.At)
}

// indexerRules ties the arguments of the remote index together.
func (l *Line) indexerRules() {
	endpoint := l.Has("kv-indexer-endpoint")
	for _, name := range []string{"kv-indexer-query-timeout-ms", "kv-indexer-query-max-inflight"} {
		if !endpoint { // R12, R14
			l.conflict(name, "needs --kv-indexer-endpoint", "add --kv-indexer-endpoint or remove it")
		}
	}
	switch provider := l.Text("cache-prefix-provider", ""); {
	case endpoint && provider == "radix_tree": // R15
		l.conflict("kv-indexer-endpoint", "needs --cache-prefix-provider indexer", "write --cache-prefix-provider indexer, or remove the endpoint")
	case !endpoint && provider == "indexer": // R16
		l.conflict("cache-prefix-provider", "indexer needs --kv-indexer-endpoint", "add --kv-indexer-endpoint, or write radix_tree")
	}
}

// filterRules ties filters and fuse terms to their numbers.
func (l *Line) filterRules() {
	l.listed("filter", func(word string) string { return word }) // R35
	l.listed("fuse", func(term string) string {                  // R34
		name, _, _ := strings.Cut(term, "=")
		return name
	})
	for _, v := range l.Values("fuse") {
		if !goodTerm(v.Text) {
			l.conflictAt("fuse", v, fmt.Sprintf("has the term %s, which is not random, load_based or prefix_cache, perhaps with =WEIGHT", quote(v.Text)), "remove --fuse")
		}
	}
	// The way out of what was dropped is never to add more of it.
	for _, pair := range []struct{ filter, flag, add, need string }{ // R36, R37
		{"overloaded", "max-in-flight", "add --max-in-flight", "add --filter overloaded"},
		{"prefix_cache", "prefix-cache-min-share", "remove it", "remove it"},
	} {
		at := slices.IndexFunc(l.Values("filter"), func(v Value) bool { return v.Text == pair.filter })
		switch {
		case at >= 0 && !l.Has(pair.flag):
			l.conflictAt("filter", l.Values("filter")[at], fmt.Sprintf("%s needs --%s", pair.filter, pair.flag), pair.add)
		case at < 0 && l.Has(pair.flag):
			l.conflict(pair.flag, "needs --filter "+pair.filter, pair.need)
		}
	}
}

// goodTerm reports whether a term of --fuse is one.
func goodTerm(term string) bool {
	name, weight, weighted := strings.Cut(term, "=")
	if !slices.Contains([]string{"random", "load_based", "prefix_cache"}, name) {
		return false
	}
	if !weighted {
		return true
	}
	x, err := parseFloat(weight, 32)
	return err == nil && x >= 0 && !math.IsInf(x, 0)
}

// listed reports what is twice in a list.
func (l *Line) listed(name string, key func(string) string) {
	seen := make(map[string]bool)
	for _, v := range l.Values(name) {
		k := key(v.Text)
		if seen[k] {
			l.conflictAt(name, v, fmt.Sprintf("has %s twice", quote(k)), "keep one of the two")
		}
		seen[k] = true
	}
}

// headerName is the token that HTTP allows as the name of a header.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (l *Line) headerRules() {
	for _, name := range []string{"session-id-header", "routing-key-header"} { // R18d, R39b
		if v := l.Value(name); v != nil && !headerName.MatchString(v.Text) {
			l.refuse(name, "the name of a header")
		}
	}
}

// neighbourRules are those of the version that names the routing path.
func (l *Line) neighbourRules() {
	if l.Has("power-of-n-choices") && !l.Reorg() { // R01
		l.conflict("power-of-n-choices", "needs --chat-routing reorg", "add --chat-routing reorg, or remove it")
	}
	if !l.Reorg() {
		for _, name := range []string{"max-waiting-requests", "max-pending-prefill-tokens"} {
			l.conflict(name, "needs --chat-routing reorg, of a later version", "add --chat-routing reorg if that version is meant; else remove it, and write the limit into the admission of the migrated policy")
		}
		return
	}
	policy, known := l.Policy()
	if known && !slices.Contains([]string{"power_of_two", "cache_aware", "session_aware"}, policy) { // R80
		l.conflict("policy", policy+" is not possible with --chat-routing reorg", "remove --chat-routing; a configuration has the policy")
	}
	if v := l.Value("decode-policy"); v != nil && powerOfTwo(v.Text) != "power_of_two" { // R83
		l.conflict("decode-policy", v.Text+" is not possible with --chat-routing reorg", "write power_of_two")
	}
	if v := l.Value("min-load-choices"); v != nil && v.Number != 2 { // R86
		l.conflict("min-load-choices", "can only be 2 with --chat-routing reorg", "remove --chat-routing; a configuration takes any number from 1")
	}
	if policy == "session_aware" { // R81b
		for _, name := range []string{"disable-pressure-guard", "pressure-abs-threshold-tokens", "pressure-abs-threshold-ms", "pressure-rel-threshold"} {
			l.conflict(name, "is not possible with --chat-routing reorg and --policy session_aware", "remove it")
		}
	}
}

// reorgFileRules are those of the version whose bucket file has the policies.
func (l *Line) reorgFileRules() {
	if !l.Has("reorg-config") {
		return
	}
	names := []string{"policy", "decode-policy", "bucket-config", "filter", "max-in-flight", "prefix-cache-min-share", "max-waiting-requests", "max-pending-prefill-tokens"}
	for _, b := range belongs() {
		names = append(names, b.names...)
	}
	for _, name := range names {
		l.conflict(name, "and --reorg-config exclude each other", "remove it; the file of --reorg-config says it")
	}
}

// adviceRules are the warnings that the older router writes itself.
func (l *Line) adviceRules() {
	drain, grace := uint64(30), uint64(30)
	if v := l.Value("shutdown-drain-secs"); v != nil {
		drain = v.Number
	}
	v := l.Value("termination-grace-secs")
	if v != nil {
		grace = v.Number
	} else if l.graceSeconds > 0 {
		grace = l.graceSeconds
	}
	if drain < grace || l.Has("shutdown-drain-secs") && l.Value("shutdown-drain-secs") == nil { // R42
		return
	}
	period := fmt.Sprintf("the whole grace period of %d s", grace)
	hint := "make the grace period longer than --shutdown-drain-secs plus the longest request"
	if v == nil && l.graceSeconds == 0 {
		period += ", which is what Kubernetes gives where nothing else is said"
		hint += ", or say with --termination-grace-secs that it is"
	}
	message := fmt.Sprintf("the pause of %d s before the shutdown takes %s, so requests in flight are cut", drain, period)
	for _, name := range []string{"shutdown-drain-secs", "termination-grace-secs"} {
		if g := l.Get(name); g != nil {
			g.add(diag.LegacyAdvice, l.Pos(g), message, hint)
			return
		}
	}
	l.Findings.Add(diag.New(diag.LegacyAdvice, diag.Pos{}, "", message)).Hint = hint
}
