package check_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"shunt/compiler/check"
	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// judged returns the findings of the rules, one line each: code, line, underlined
// text, message.
func judged(t *testing.T, text string) string {
	t.Helper()
	ctx := context.Background()
	tree, list := source.Read(ctx, source.Options{}, []source.Input{{Name: "c.yaml", Reader: strings.NewReader(text)}})
	if tree == nil {
		t.Fatalf("not read: %v", list)
	}
	list = append(list, check.Shape(ctx, tree)...)
	c, err := config.Decode(tree.JSON())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range check.Rules(tree, c, list) {
		entry, ok := diag.Lookup(f.Code)
		if !ok || entry.Severity != f.Severity {
			t.Errorf("%s has severity %v", f.Code, f.Severity)
		}
		if f.Hint == "" && f.Related == nil && f.Code != diag.BadName && f.Code != diag.OutOfRange {
			t.Errorf("%s has no hint: %s", f.Code, f.Message)
		}
		line := strings.Split(text, "\n")[f.Pos.Line-1]
		token := line[f.Pos.Column-1 : max(f.End.Column, f.Pos.Column+1)-1]
		fmt.Fprintf(&b, "%s %d <%s> %s\n", f.Code, f.Pos.Line, token, f.Message)
	}
	return b.String()
}

// want compares findings with expected lines; an expected line is a prefix, so
// that a test can leave the rest of a long message out.
func want(t *testing.T, text string, lines ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(judged(t, text), "\n"), "\n")
	if got[0] == "" {
		got = nil
	}
	ok := len(got) == len(lines)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.HasPrefix(got[i], lines[i])
	}
	if !ok {
		t.Errorf("got\n\t%s\nwant\n\t%s\nfor\n%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"), text)
	}
}

// server is a configuration with the given members of server.
func server(members string) string {
	return "version: 1\nserver: {" + members + "}\n" +
		`models: [{id: m, discovery: {static: {engines: [{id: A, url: "http://a", role: plain}]}}}]` + "\n"
}

// plain is a model of the engines A and B, whose buckets start on line 8; pd is
// one of the engines P and D.
func plain(buckets string) string {
	return "version: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [\n" +
		"    {id: A, url: \"http://a\", role: plain, labels: {zone: x}},\n" +
		"    {id: B, url: \"http://b\", role: plain}]}}\n  buckets:\n" + buckets
}

func pd(buckets string) string {
	return "version: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [\n" +
		"    {id: P, url: \"http://p\", role: prefill, labels: {zone: x}},\n" +
		"    {id: D, url: \"http://d\", role: decode}]}}\n  buckets:\n" + buckets
}

const all = "groups: {plain: {}}"

func TestUniqueness(t *testing.T) {
	want(t, `
version: 1
models:
- {id: m, discovery: {static: {engines: [{id: A, url: "http://a:80", role: plain}, {id: A, url: "http://b", role: plain}]}}}
- {id: m, discovery: {static: {engines: [{id: A, url: "http://A/", role: plain}]}}}
`,
		`SH0203 4 <A> engine id "A" is used twice`,
		`SH0201 5 <m> model id "m" is used twice`,
		`SH0204 5 <"http://A/"> the URL "http://A/", which is "http://a", is used by two engines`)
	want(t, plain("  - {id: a, "+all+"}\n  - {id: a, rank: 1, "+all+"}\n"), `SH0202 9 <a> bucket id "a" is used twice`)
}

func TestEngines(t *testing.T) {
	engines := func(list string) string {
		return "version: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [\n" + list + "]}}\n"
	}
	want(t, engines(`{id: A, url: "http://u:p@a", role: plain}`), `SH0219 5 <"http://u:p@a"> the URL of engine "A" must not hold user`)
	want(t, engines(`{id: A, url: "http://a/v1", role: plain}`), `SH0219 5 <"http://a/v1">`)
	want(t, engines("{id: A, url: \"http://a\", role: plain},\n{id: P, url: \"http://p\", role: prefill}"), `SH0210 6 <prefill> model "m" has plain and PD engines`)
	want(t, engines(`{id: A, url: "http://a", role: plain, bootstrap_port: 1}`), `SH0212 5 <bootstrap_port> engine "A" is a plain engine and has a bootstrap port`)
	want(t, engines(`{id: P, url: "http://p", role: prefill}`), `SH0211 4 <discovery> model "m" has no buckets and no decode engine`)
	want(t, engines(`{id: D, url: "http://p", role: decode}`), `SH0211 4 <discovery> model "m" has no buckets and no prefill engine`)
	want(t, engines(``), `SH0211 4 <discovery> model "m" has no buckets and no engines`)
	want(t, engines(`{id: "a\u200b", url: "http://p", role: plain, labels: {x: "\u007f"}}`), `SH0220 5 <"a\u200b">`, `SH0220 5 <"\u007f">`)
	want(t, strings.Replace(plain(""), "buckets:", "buckets: []", 1), `SH0117 7 <[> the list of buckets is empty`)
}

func TestMembership(t *testing.T) {
	want(t, pd(`  - {id: a, groups: {pd: {prefill: {worker_ids: [P, Q, P, D]}, decode: {worker_ids: [p]}}}}`+"\n"),
		`SH0206 8 <Q> model "m" has no engine "Q"`,
		`SH0208 8 <P> engine "P" is listed twice`,
		`SH0207 8 <D> engine "D" is a decode engine in a prefill group`,
		`SH0206 8 <p> model "m" has no engine "p"`)
	want(t, pd(`  - {id: a, groups: {pd: {prefill: {}, decode: {}, match_labels: [zone, zone]}}}`+"\n"), `SH0307 8 <match_labels> no prefill and decode engine`, `SH0208 8 <zone> label name "zone" is listed twice`)
	want(t, plain("  - {id: a, groups: {}}\n"), `SH0205 8 <groups> bucket "a" has neither`)
	want(t, plain("  - {id: a, groups: {plain: {}, pd: {prefill: {}, decode: {}}}}\n"), `SH0205 8 <pd> bucket "a" has plain and pd groups`)
}

// A list of engines that cannot be read makes no reference wrong.
func TestNoFollowUpFindings(t *testing.T) {
	text := strings.Replace(plain("  - {id: a, groups: {plain: {worker_ids: [A, X]}}}\n"), "engines:", "enginse:", 1)
	want(t, text)
	want(t, plain("  - {id: a, groups: {plian: {}}}\n"))
	want(t, plain("  - {id: a}\n"))
}

func TestLimits(t *testing.T) {
	want(t, plain("  - {id: a, limits: {min: 9, max: 8}, "+all+"}\n"), `SH0209 8 <9> limits.min 9 is above limits.max 8`)
	want(t, plain("  - {id: a, limits: {min: 9}, max_context_tokens: 8, "+all+"}\n"), `SH0209 8 <9> limits.min 9 is above max_context_tokens 8`)
	want(t, plain("  - {id: a, limits: {min: 9, max: 9}, max_context_tokens: 9, "+all+"}\n"), `SH0301 8 <9> no bucket takes inputs of 0 to 8 tokens`, `SH0319 8 <9>`)
}

func TestPolicies(t *testing.T) {
	policy := func(p string) string { return plain("  - {id: a, groups: {plain: {policy: " + p + "}}}\n") }
	const blind = "SH0311 8 <cache_aware> cache_aware finds no prefix without tokens"
	const index = "SH0312 8 <cache_aware> no state.prefix is written"
	want(t, policy("{type: cache_aware}"), blind, index)
	want(t, policy("{type: cache_aware, saturation_queue_floor: 2}"), blind, index, "SH0214 8 <saturation_queue_floor> saturation_queue_floor needs worker_queue_limit")
	want(t, policy("{type: cache_aware, saturation_queue_floor: 3, worker_queue_limit: 2}"), blind, index, "SH0214 8 <3> saturation_queue_floor 3 is above worker_queue_limit 2")
	want(t, policy("{type: cache_aware, saturation_queue_floor: 3, worker_queue_limit: 3}"), blind, index)
	want(t, policy("{type: cache_aware, candidate_min_workers: 40}"), blind, index, "SH0214 8 <40> candidate_min_workers 40 is above candidate_max_workers 32")
	want(t, policy("{type: cache_aware, candidate_max_workers: 7}"), blind, index, "SH0214 8 <7> candidate_min_workers 8 is above candidate_max_workers 7")
	want(t, policy("{type: session_aware}"), "SH0338")
	want(t, policy("{type: sticky, fallback: load_based}"), "SH0338")
	want(t, pd("  - {id: a, groups: {pd: {prefill: {}, decode: {policy: {type: cache_aware}}}}}\n"), "SH0213 8 <cache_aware> cache_aware is not possible on a decode group")
	want(t, policy("{type: random, admission: {max_inflight_requests: 0, max_kv_tokens: 1}}"),
		"SH0308 8 <0> max_inflight_requests of 0")
}

func TestDefaults(t *testing.T) {
	model := func(defaults, text string) string {
		return strings.Replace(text, "  buckets:", "  defaults: {"+defaults+"}\n  buckets:", 1)
	}
	own := "  - {id: a, groups: {plain: {policy: {type: random}}}}\n"
	want(t, model("policy: {type: random}", plain(own)), "SH0218 7 <policy> every plain and prefill group has its own policy")
	want(t, model("policy: {type: random}", plain(own+"  - {id: b, rank: 1, "+all+"}\n")), `SH0303 10 <b> bucket "b" is never used`)
	want(t, model("decode_policy: {type: random}", plain("  - {id: a, "+all+"}\n")), `SH0310 7 <decode_policy> model "m" has no decode group`)
	want(t, model("decode_policy: {type: random}", pd("  - {id: a, groups: {pd: {prefill: {}, decode: {policy: {type: random}}}}}\n")), `SH0218 7 <decode_policy> every decode group`)
	want(t, model("decode_policy: {type: random}", pd("  - {id: a, groups: {pd: {prefill: {}, decode: {}}}}\n")))
}

func TestServer(t *testing.T) {
	f := func(members string, lines ...string) { t.Helper(); want(t, server(members), lines...) }
	f(`listen: "0.0.0.0:1"`)
	f(`listen: ":70000"`, `SH0221 2 <":70000"> ":70000" has a port outside`)
	f(`admin: "0.0.0.0:1"`, `SH0215 2 <"0.0.0.0:1"> the admin listener "0.0.0.0:1" is reachable`)
	f(`admin: "example.com:1"`, `SH0215`)
	f(`admin: "localhost:1"`)
	f(`admin: "[::1]:1"`)
	f(`listen: "0.0.0.0:30001"`, `SH0216 2 <"0.0.0.0:30001"> listen "0.0.0.0:30001" and admin "127.0.0.1:30001"`)
	f(`listen: "127.0.0.1:5", admin: "127.0.0.1:5"`, `SH0216 2 <"127.0.0.1:5">`)
	f(`listen: "127.0.0.1:0", admin: "127.0.0.1:0"`)
	f(`listen: "0.0.0.0:30001", admin: "off"`)
	f(`connect_timeout: 0s`, `SH0106 2 <0s> 0s is outside 1ms to 8760h`)
	f(`drain_delay: 0s`)
	f(`drain_delay: 31m`, `SH0106 2 <31m> 31m is outside 0s to 1800s`)
	f(`max_body: 2GiB`, `SH0106 2 <2GiB> 2GiB is outside`)
	f(`max_body: 1B`, `SH0106`)
	f(`request_timeout: 900s`, `SH0217 2 <900s> request_timeout (900s) is longer than stale_timeout (default 600s)`)
	f(`request_timeout: 4s`, `SH0217 2 <4s> connect_timeout (default 5s) is longer than request_timeout (4s)`)
	f(`stream_idle_timeout: 11m`, `SH0217 2 <11m>`)
	f(`request_timeout: 900s, stale_timeout: 1h`)
}

// model is a configuration of one plain engine: what stands beside the models, in
// the model, and its buckets.
func model(beside, in, buckets string) string {
	return beside + "\nversion: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [{id: A, url: \"http://a\", role: plain}]}}\n" + in + "\n  buckets:\n" + buckets
}

func TestStateServices(t *testing.T) {
	cached := func(prefix string, lines ...string) {
		t.Helper()
		want(t, model("state: {prefix: "+prefix+"}", "  tokenizer: {path: t}", "  - {id: a, groups: {plain: {policy: {type: cache_aware}}}}\n"), lines...)
	}
	cached("{local: {}}")
	cached("{}", "SH0223 1 <prefix> prefix has neither local nor remote")
	cached(`{local: {}, remote: {endpoint: "http://a:1"}}`, "SH0223 1 <remote> local and remote exclude each other")
	cached(`{remote: {endpoint: "http://a:1/x"}}`, `SH0226 1 <"http://a:1/x"> the endpoint must not hold a path`)
	cached(`{remote: {endpoint: "http://u:p@a:1"}}`, "SH0226 1")
	cached(`{remote: {endpoint: "http://a:1", query_timeout: 0s}}`, "SH0106 1 <0s> 0s is outside")
	bound := func(affinity string, lines ...string) {
		t.Helper()
		want(t, model("state: {affinity: "+affinity+"}", "  affinity: {routing_key_header: x}", "  - {id: a, groups: {plain: {policy: {type: sticky}}}}\n"), lines...)
	}
	bound("{memory: {}, sweep: 1s}")
	bound("{idle: 0s}", "SH0106 1 <0s> 0s is outside")
	bound(`{memory: {}, redis: {url: "env:R"}}`, "SH0223 1 <redis> memory and redis exclude each other")
	bound(`{redis: {url: "env:R"}, sweep: 1s}`, "SH0224 1 <sweep> nothing reads sweep: bindings in Redis expire")
	load := func(members string, lines ...string) {
		t.Helper()
		want(t, model("state: {load: {"+members+"}}", "", "  - {id: a, "+all+"}\n"), lines...)
	}
	load("transport: poll, poll_interval: 2s")
	load("poll_interval: 5s", "SH0314 1 <5s> poll_interval (5s) is not below freshness (default 5s)")
	load("freshness: 500ms", "SH0314 1 <500ms> poll_interval (default 1s) is not below freshness (500ms)")
}

func TestUnreadSettings(t *testing.T) {
	want(t, model("state: {prefix: {local: {}}, affinity: {memory: {}}}", `  tokenizer: {path: t.json, forward_input_ids: false}
  affinity: {session_id_header: x, routing_key_header: y}
  ttft_slo: disabled`, "  - {id: a, ttft_ms: 1, tokens_per_second: 2, groups: {plain: {}}}\n"),
		"SH0224 1 <prefix> nothing reads state.prefix: no policy is cache_aware",
		"SH0224 1 <affinity> nothing reads state.affinity: no policy is session_aware or sticky",
		"SH0224 6 <tokenizer> nothing reads tokenizer: ids are not forwarded",
		"SH0224 7 <session_id_header> nothing reads session_id_header: no policy of the model is session_aware",
		"SH0224 7 <routing_key_header> nothing reads routing_key_header",
		"SH0328 10 <ttft_ms>", "SH0224 10 <tokens_per_second> nothing reads tokens_per_second: the model has no tps_slo")
	// A default policy of a model without buckets counts.
	text := model("state: {affinity: {}}", "  affinity: {session_id_header: x}\n  defaults: {policy: {type: session_aware}}", "")
	want(t, strings.TrimSuffix(text, "  buckets:\n"))
}

func TestTargets(t *testing.T) {
	slo := func(in, bucket string, lines ...string) {
		t.Helper()
		want(t, model("", in, "  - {id: a, "+bucket+all+"}\n"), lines...)
	}
	slo("  ttft_slo: slo_first\n  tps_slo: best_effort", "ttft_ms: 3, tokens_per_second: 1.5, ")
	slo("  ttft_slo: slo_first", "", "SH0313 6 <slo_first> ttft_slo slo_first changes nothing")
	slo("  tps_slo: best_effort", "", "SH0313 6 <best_effort> tps_slo best_effort changes nothing")
	// A bucket that is shadowed by length may be the first for a target.
	want(t, model("", "  ttft_slo: slo_first", "  - {id: a, "+all+"}\n  - {id: b, rank: 1, ttft_ms: 1, "+all+"}\n"), "SH0329 8 <a>")
}

func TestSampling(t *testing.T) {
	f := func(sampling string, lines ...string) {
		t.Helper()
		want(t, model("", "  sampling: "+sampling, "  - {id: a, "+all+"}\n"), lines...)
	}
	f("{params: {temperature: 0, top_p: 1, top_k: -1, min_p: 0.5, repetition_penalty: 2, frequency_penalty: -2, presence_penalty: {min: -1, max: 1}, n: 128}}")
	f("{params: {}}", "SH0225 6 <params> params is empty")
	f("{params: {temperature: 2.5}}", "SH0225 6 <2.5> temperature: 2.5 is outside what engines accept, from 0 to 2")
	f("{params: {top_p: 0}}", "SH0225 6 <0> top_p: 0 is outside what engines accept, above 0, up to 1")
	f("{params: {top_k: 0}}", "SH0225 6 <0> top_k: 0 is outside what engines accept, a whole number from 1, or -1")
	f("{params: {top_k: {min: -1, max: 5}}}", "SH0225 6 <{> top_k: -1 is outside")
	f("{params: {n: 1.5}}", "SH0225 6 <1.5> n: 1.5")
	f("{params: {n: 129}}", "SH0225 6 <129>")
	f("{params: {min_p: {min: 0.5, max: 0.25}}}", "SH0225 6 <{> min_p: min 0.5 is above max 0.25")
	f("{params: {min_p: {min: 0, max: 0.25}}, conflict: allow}", "SH0225 6 <{> min_p: a band only checks")
	f("{params: {min_p: 0.25}, conflict: allow}")
}

func TestCoverage(t *testing.T) {
	want(t, plain("  - {id: a, limits: {max: 10}, "+all+"}\n  - {id: b, limits: {min: 20, max: 30}, "+all+"}\n  - {id: c, limits: {min: 32}, "+all+"}\n"),
		"SH0301 9 <20> no bucket takes inputs of 11 to 19 tokens", "SH0301 10 <32> no bucket takes inputs of 31 tokens")
	want(t, plain("  - {id: a, limits: {max: 10}, max_context_tokens: 20, "+all+"}\n  - {id: b, limits: {min: 11}, max_context_tokens: 90, "+all+"}\n"),
		"SH0302 8 <20> no bucket takes inputs of 0 to 10 tokens with more than 20 tokens of input and output together")
	want(t, plain("  - {id: a, limits: {max: 10}, max_context_tokens: 20, "+all+"}\n  - {id: b, limits: {max: 80}, max_context_tokens: 90, "+all+"}\n"))
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, "  - {id: b%d, limits: {min: %d, max: %d}, %s}\n", i, 10*i, 10*i+5, all)
	}
	if got := strings.Count(judged(t, plain(many.String())), "SH0301"); got != 9 {
		t.Errorf("%d findings for 19 gaps, want 8 and one for the others", got)
	}
}

func TestShadowed(t *testing.T) {
	two := func(a, b string) string { return plain("  - {id: a, " + a + "}\n  - {id: b, rank: 1, " + b + "}\n") }
	const never = `SH0303 9 <b> bucket "b" is never used`
	limited := "groups: {plain: {policy: {type: random, admission: {max_inflight_requests: 1}}}}"
	want(t, two(all, all), never)
	want(t, two(all, "limits: {min: 5}, "+all), never)
	want(t, two("limits: {min: 5}, "+all, all))             // b takes shorter inputs
	want(t, two(limited, all), "SH0322 9 <plain>")          // a refuses
	want(t, two(all, limited), never)                       // whether b refuses does not matter
	want(t, two("groups: {plain: {worker_ids: [A]}}", all)) // b has more engines
	want(t, two(all, "groups: {plain: {worker_ids: [A]}}"), never)
	want(t, two("groups: {plain: {labels: {zone: x}}}", "groups: {plain: {worker_ids: [A, B]}}"))
	want(t, two("limits: {max: 5}, "+all, all))                                                                    // b takes longer inputs
	want(t, two("limits: {max: 5}, "+all, "limits: {max: 9}, max_context_tokens: 5, "+all), never, "SH0318 9 <9>") // same capacity, a takes every peak
}

func TestReach(t *testing.T) {
	want(t, plain("  - {id: a, groups: {plain: {worker_ids: [A]}}}\n"), `SH0306 6 <B> engine "B" is in no group`)
	want(t, plain("  - {id: a, rank: 1, groups: {plain: {worker_ids: []}}}\n  - {id: b, max_context_tokens: 5, "+all+"}\n"), `SH0305 8 <[> worker_ids is empty`)
	want(t, plain("  - {id: a, groups: {plain: {labels: {zone: q}}}}\n  - {id: b, max_context_tokens: 5, "+all+"}\n"), `SH0304 8 <labels> no plain engine of model "m" has the labels`)
	want(t, plain("  - {id: a, max_context_tokens: 9, groups: {pd: {prefill: {}, decode: {}}}}\n  - {id: b, "+all+"}\n"), `SH0304 8 <prefill>`, `SH0304 8 <decode>`)
	want(t, pd("  - {id: a, groups: {pd: {prefill: {}, decode: {}, match_labels: [zone]}}}\n"), `SH0307 8 <match_labels> no prefill and decode engine of the bucket have the same zone`)
	want(t, pd("  - {id: a, groups: {pd: {prefill: {}, decode: {}, match_labels: [rack]}}}\n"), `SH0316 8 <rack> no engine of model "m" has the label "rack"`)
}

func TestTooManyRuns(t *testing.T) {
	var b strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&b, "  - {id: b%d, limits: {min: %d, max: %d}, %s}\n", i, i*7919%6007, 7000+i, all)
	}
	want(t, plain(b.String()), "SH0222 7 <buckets> the breakpoint table of 6000 buckets needs more than 4000000 runs")
}
