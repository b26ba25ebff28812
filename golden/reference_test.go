package golden_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"github.com/rogpeppe/go-internal/diff"

	conf "shunt/compiler/config"
	"shunt/compiler/report"
	"shunt/golden"
	"shunt/schema"
)

const referenceFile = "../schema/REFERENCE.md"

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// shown is a default: the value as a configuration writes it, and the text of
// the reference. At is where a test writes it, nil where it is another field.
type shown struct {
	at    []any
	value any
	text  string
	// shared says that the test does it where state is shared between routers.
	shared bool
}

// referenceDefaults has the default of each field that has one. Their values are
// those of compiler/config.
func referenceDefaults() map[string]shown {
	ms := func(n int64) string {
		if n%1000 != 0 {
			return fmt.Sprintf("%dms", n)
		}
		return fmt.Sprintf("%ds", n/1000)
	}
	m := map[string]shown{}
	add := func(name string, value any, at ...any) {
		m[name] = shown{at: at, value: value, text: fmt.Sprintf("`%v`", value)}
	}
	server := func(name string, value any) { add("#Server."+name, value, "server", name) }
	server("listen", conf.DefaultListen)
	server("admin", conf.DefaultAdmin)
	server("max_body", fmt.Sprintf("%dMiB", conf.DefaultMaxBodyBytes>>20))
	server("request_timeout", ms(conf.DefaultRequestTimeoutMS))
	server("connect_timeout", ms(conf.DefaultConnectTimeoutMS))
	server("stream_idle_timeout", ms(conf.DefaultStreamIdleTimeoutMS))
	server("stale_timeout", ms(conf.DefaultStaleTimeoutMS))
	server("drain_delay", ms(conf.DefaultDrainDelayMS))
	server("drain_timeout", ms(conf.DefaultDrainTimeoutMS))
	server("expose_decision", conf.DefaultExposeDecision)
	m["#Server.header_timeout"] = shown{at: []any{"server", "header_timeout"}, value: ms(conf.DefaultRequestTimeoutMS), text: "that of `request_timeout`"}
	add("#Log.level", conf.DefaultLogLevel, "server", "log", "level")
	add("#Log.format", conf.DefaultLogFormat, "server", "log", "format")
	add("#Breaker.threshold", conf.DefaultBreakerThreshold, "models", 0, "breaker", "threshold")
	add("#Breaker.cool_down", ms(conf.DefaultBreakerCoolDownMS), "models", 0, "breaker", "cool_down")
	add("#Bucket.rank", conf.DefaultRank, "models", 0, "buckets", 0, "rank")
	stateDefaults(m, add, ms)
	modelDefaults(add)
	m["#Model.engine"], m["#Engine.kv_events"] = shown{text: "type `" + conf.DefaultEngineType + "`"}, shown{text: "none"}
	m["#KVEvents.host"] = shown{text: "that of `url`"}
	m["#Model.tokenizer"], m["#Tokenizer.engine"] = shown{text: "none"}, shown{text: "none"}
	forward := m["#Tokenizer.forward_input_ids"]
	forward.text = fmt.Sprintf("`%t`, with engine `false`", conf.DefaultForwardInputIDs)
	m["#Tokenizer.forward_input_ids"] = forward
	policy, text := map[string]any{"type": conf.DefaultPolicyType}, "`{type: "+conf.DefaultPolicyType+"}`"
	m["#Defaults.policy"] = shown{at: []any{"models", 0, "defaults", "policy"}, value: policy, text: text}
	m["#Defaults.decode_policy"] = shown{at: []any{"models", 1, "defaults", "decode_policy"}, value: policy, text: text}
	tuned := map[string]any{"type": conf.DefaultPolicyType, "choices": conf.DefaultChoices}
	m["#Policy(power_of_two).choices"] = shown{at: []any{"models", 0, "defaults", "policy"}, value: tuned, text: fmt.Sprintf("`%d`", conf.DefaultChoices)}
	m["#Group.policy"] = shown{text: "that of the model's [defaults](#modelsdefaults)"}
	m["#Model.buckets"] = shown{at: []any{"models", 1, "buckets"}, value: []any{map[string]any{"id": conf.CatchAllPD, "groups": map[string]any{
		"pd": map[string]any{"prefill": map[string]any{}, "decode": map[string]any{}}}}},
		text: fmt.Sprintf("one bucket, `%s` or `%s`", conf.CatchAllPlain, conf.CatchAllPD)}
	return m
}

// adder notes a default and where a test writes it.
type adder func(name string, value any, at ...any)

func stateDefaults(m map[string]shown, add adder, ms func(int64) string) {
	add("#LoadState.transport", conf.DefaultLoadTransport, "state", "load", "transport")
	add("#LoadState.poll_interval", ms(conf.DefaultPollIntervalMS), "state", "load", "poll_interval")
	add("#LoadState.freshness", ms(conf.DefaultFreshnessMS), "state", "load", "freshness")
	add("#PrefixState.local.max_blocks", conf.DefaultMaxBlocks, "state", "prefix", "local", "max_blocks")
	add("#AffinityState.memory.max_entries", conf.DefaultMaxEntries, "state", "affinity", "memory", "max_entries")
	add("#AffinityState.idle", ms(conf.DefaultIdleMS), "state", "affinity", "idle")
	add("#AffinityState.sweep", ms(conf.DefaultSweepMS), "state", "affinity", "sweep")
	shared := func(name string, value any, at ...any) {
		add(name, value, at...)
		d := m[name]
		d.shared = true
		m[name] = d
	}
	shared("#EngineTokenizer.timeout", ms(conf.DefaultTokenizeTimeoutMS), "models", 2, "tokenizer", "engine", "timeout")
	shared("#EngineTokenizer.max_inflight", conf.DefaultTokenizeInflight, "models", 2, "tokenizer", "engine", "max_inflight")
	shared("#EngineTokenizer.max_body", fmt.Sprintf("%dMiB", conf.DefaultTokenizeBody>>20), "models", 2, "tokenizer", "engine", "max_body")
	shared("#EngineKind.hash_seed", conf.DefaultHashSeed, "models", 2, "engine", "hash_seed")
	events := []any{"models", 2, "discovery", "static", "engines", 0, "kv_events"}
	shared("#KVEvents.ranks", conf.DefaultRanks, append(events, "ranks")...)
	shared("#KVEvents.topic", "", append(events, "topic")...)
	shared("#PrefixState.remote.query_timeout", ms(conf.DefaultQueryTimeoutMS), "state", "prefix", "remote", "query_timeout")
	shared("#PrefixState.remote.max_inflight", conf.DefaultQueryInflight, "state", "prefix", "remote", "max_inflight")
	shared("#AffinityState.redis.timeout", ms(conf.DefaultRedisTimeoutMS), "state", "affinity", "redis", "timeout")
	shared("#AffinityState.redis.on_failure", conf.DefaultOnFailure, "state", "affinity", "redis", "on_failure")
}

// modelDefaults are those of the model tuned of a minimal configuration, whose
// buckets have the policies with state.
func modelDefaults(add adder) {
	add("#Model.ttft_slo", conf.DefaultSLO, "models", 2, "ttft_slo")
	add("#Model.tps_slo", conf.DefaultSLO, "models", 3, "tps_slo")
	add("#Tokenizer.forward_input_ids", conf.DefaultForwardInputIDs, "models", 2, "tokenizer", "forward_input_ids")
	add("#Sampling.conflict", conf.DefaultConflict, "models", 2, "sampling", "conflict")
	add("#AffinityHeaders.session_id_header", conf.DefaultSessionHeader, "models", 2, "affinity", "session_id_header")
	add("#AffinityHeaders.routing_key_header", conf.DefaultRoutingKeyHeader, "models", 2, "affinity", "routing_key_header")
	tuning := func(bucket int, policy, name string, value any) {
		add("#Policy("+policy+")."+name, value, "models", 2, "buckets", bucket, "groups", "plain", "policy", name)
	}
	cache := func(name string, value any) { tuning(0, "cache_aware", name, value) }
	cache("min_matched_tokens", conf.DefaultMinMatchedTokens)
	cache("min_match_ratio", conf.DefaultMinMatchRatio)
	cache("candidate_min_workers", conf.DefaultCandidateMin)
	cache("candidate_ratio", conf.DefaultCandidateRatio)
	cache("candidate_max_workers", conf.DefaultCandidateMax)
	cache("switch_margin_tokens", conf.DefaultSwitchMargin)
	cache("pressure_guard", conf.DefaultPressureGuard)
	cache("pressure_abs_threshold_tokens", conf.DefaultPressureTokens)
	cache("pressure_rel_threshold", conf.DefaultPressureFactor)
	cache("min_load_choices", conf.DefaultChoices)
	tuning(1, "session_aware", "choices", conf.DefaultChoices)
	tuning(2, "sticky", "fallback", conf.DefaultStickyFallback)
}

// makeReference is the whole reference as it should be.
func makeReference(t *testing.T) (*reference, string) {
	t.Helper()
	r, err := parseReference(schema.Files())
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.render(referenceDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return r, text
}

// TestReference: the reference of the configuration is what the schema, the
// defaults and the compiler say.
func TestReference(t *testing.T) {
	_, text := makeReference(t)
	old, err := os.ReadFile(referenceFile)
	if golden.Update() {
		if err != nil || string(old) != text {
			err = os.WriteFile(referenceFile, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(referenceFile, old, "wanted", []byte(text)); d != nil {
		t.Errorf("%s\nrun the tests with UPDATE=1 to accept it", d)
	}
}

// TestReferenceIsComplete counts the fields of the schema in another way, and
// follows the links.
func TestReferenceIsComplete(t *testing.T) {
	r, text := makeReference(t)
	body, _, _ := strings.Cut(text, "## "+legacyTitle)
	rows := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(body, -1) {
		rows[m[1]]++
	}
	for name, n := range schemaFields(t) {
		if rows[name] != n {
			t.Errorf("field %s is %d times in the schema, %d times in the reference", name, n, rows[name])
		}
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##+ (.*)$`).FindAllStringSubmatch(text, -1) {
		if anchors[anchor(m[1])] {
			t.Errorf("two headings %q", m[1])
		}
		anchors[anchor(m[1])] = true
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if !anchors[m[1]] {
			t.Errorf("no heading for the link %s", m[1])
		}
	}
	names := map[string]bool{}
	for _, o := range r.objects {
		for _, f := range o.fields {
			names[o.key+"."+f.name] = true
		}
		for _, v := range o.variants {
			for _, f := range v.fields {
				names[o.key+"("+v.word+")."+f.name] = true
			}
		}
	}
	for name := range referenceDefaults() {
		if !names[name] {
			t.Errorf("the default of %s belongs to no field", name)
		}
	}
}

// schemaFields counts the fields of the schema by name.
func schemaFields(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, f := range schema.Files() {
		parsed, err := parser.ParseFile(f.Name, f.Text)
		if err != nil {
			t.Fatal(err)
		}
		ast.Walk(parsed, func(n ast.Node) bool {
			if d, ok := n.(*ast.Field); ok && (d.Constraint == token.OPTION || d.Constraint == token.NOT) {
				out[labelOf(d)]++
			}
			return true
		}, nil)
	}
	return out
}

// minimal is a configuration of required fields: a model of plain engines with a
// bucket, a model of pairs without, and two models that need state and tokens, in
// this process or shared.
func minimal(shared bool) map[string]any {
	type m = map[string]any
	engine := func(id, role string) any { return m{"id": id, "url": "http://" + id, "role": role} }
	model := func(id string, engines ...any) m {
		return m{"id": id, "discovery": m{"static": m{"engines": engines}}}
	}
	bucket := func(id string, group m) any { return m{"id": id, "groups": m{"plain": group}} }
	policy := func(name string) any { return bucket(name, m{"policy": m{"type": name}}) }
	plain := model("plain", engine("e", "plain"))
	plain["buckets"] = []any{bucket("b", m{})}
	tuned := model("tuned", engine("t", "plain"))
	tuned["buckets"] = []any{policy("cache_aware"), policy("session_aware"), policy("sticky")}
	tuned["tokenizer"] = m{"path": "/none"}
	tuned["sampling"] = m{"params": m{"temperature": 1}}
	tuned["tps_slo"] = "slo_first"
	slo := model("slo", engine("s", "plain"))
	slo["ttft_slo"] = "slo_first"
	out := m{"version": 1, "models": []any{plain, model("pd", engine("p", "prefill"), engine("d", "decode")), tuned, slo}}
	if shared {
		tuned["tokenizer"] = m{"engine": m{}}
		tuned["engine"] = m{"type": "vllm", "block_size": 16, "hash": "sha256_cbor"}
		tuned["discovery"].(m)["static"].(m)["engines"].([]any)[0].(m)["kv_events"] = m{"port": 5557}
		out["state"] = m{"prefix": m{"remote": m{"endpoint": "http://index:1"}}, "affinity": m{"redis": m{"url": "env:REDIS"}}}
	}
	return out
}

// put writes a value at a path, making the objects on the way.
func put(in any, at []any, value any) {
	last := at[len(at)-1].(string)
	for _, name := range at[:len(at)-1] {
		if i, ok := name.(int); ok {
			in = in.([]any)[i]
			continue
		}
		m, key := in.(map[string]any), name.(string)
		if m[key] == nil {
			m[key] = map[string]any{}
		}
		in = m[key]
	}
	in.(map[string]any)[last] = value
}

// values are what shunt show --origin says, by pointer.
func values(t *testing.T, config any) map[string]report.Value {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	r := compileText(t, string(data))
	if r.Plan == nil {
		t.Fatalf("no plan of %s: %v", data, r.Findings)
	}
	list, err := report.Values(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]report.Value{}
	for _, v := range list {
		out[v.Pointer] = v
	}
	return out
}

// TestReferenceDefaults writes each default where it is absent otherwise: what
// shunt show calls a default must then be written, with the same value. And
// everything that it calls a default must be in the reference.
func TestReferenceDefaults(t *testing.T) {
	bases := map[bool]map[string]report.Value{}
	open := map[string]bool{}
	for _, shared := range []bool{false, true} {
		bases[shared] = values(t, minimal(shared))
		for pointer, v := range bases[shared] {
			if v.Origin == "default" {
				open[anyOf(pointer)] = true
			}
		}
	}
	if len(open) == 0 {
		t.Fatal("nothing is a default")
	}
	for name, d := range referenceDefaults() {
		if d.at == nil {
			continue
		}
		c, base := minimal(d.shared), bases[d.shared]
		put(c, d.at, d.value)
		hit := false
		for pointer, v := range values(t, c) {
			was := base[pointer]
			if string(v.Value) != string(was.Value) {
				t.Errorf("%s: writing %s makes %s %s, by default it is %s", name, d.text, pointer, v.Value, was.Value)
			}
			if v.Origin != was.Origin && was.Origin == "default" && v.Origin != "derived" {
				hit = true
				delete(open, anyOf(pointer))
			}
		}
		if !hit {
			t.Errorf("%s: writing %s replaces no default", name, d.text)
		}
	}
	for pointer := range open {
		t.Errorf("the default of %s is not in the reference", pointer)
	}
	// Defaults that are other fields.
	c := minimal(false)
	put(c, []any{"server", "request_timeout"}, "7s")
	put(c, []any{"models", 0, "defaults", "policy"}, map[string]any{"type": "random"})
	v := values(t, c)
	if got := v["/server/header_timeout_ms"].Value; string(got) != "7000" {
		t.Errorf("header_timeout is %s with a request_timeout of 7s", got)
	}
	if got := v["/models/0/buckets/0/groups/plain/policy/type"].Value; string(got) != `"random"` {
		t.Errorf("the group's policy is %s, that of the defaults random", got)
	}
}

// anyOf is a pointer without the numbers of its lists and the stage of its group:
// what is a default of one is so of all.
func anyOf(pointer string) string {
	return regexp.MustCompile("/[0-9]+/|/(?:plain|pd/prefill|pd/decode)/").ReplaceAllString(pointer, "/*/")
}

// TestReferenceDefaultsOnce: comments leave defaults to the column, whose values
// are checked.
func TestReferenceDefaultsOnce(t *testing.T) {
	r, _ := makeReference(t)
	told := regexp.MustCompile(`[;,(] default `)
	for _, o := range r.objects {
		for _, f := range o.all() {
			if told.MatchString(f.doc) {
				t.Errorf("the comment of %s.%s has a default", o.key, f.name)
			}
		}
	}
}

// TestReferenceCanFail has schemas with something that a reference would miss.
func TestReferenceCanFail(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := parseReference([]schema.File{{Name: "x.cue", Text: "package x\n" + text}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("#Config: {\n\ta?: int\n}\n", "lacks a name, a comment")
	f("#Config: {\n\t// A.\n\ta: int\n}\n", "one of ? and !")
	f("#Config: {}\n#Other: {}\n", "nothing leads to #Other")
	f("#Config: {\n\t// A.\n\ta?: #Other\n}\n", "no definition #Other")
	f("#Config: {\n\tfor x in [1] {}\n}\n", "cannot show")
	f("#Config: {\n\tif a == \"b\" {}\n}\n", "cannot show")
}
