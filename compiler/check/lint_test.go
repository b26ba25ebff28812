package check_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/check"
	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// lintCase is a configuration that a rule warns about, and one that differs as
// little as possible and that it does not warn about.
type lintCase struct {
	name, bad, near string
	// also are findings that the bad configuration cannot be without.
	also []diag.Code
}

// buckets writes buckets of the model of plain or pd, one a line.
func buckets(lines ...string) string { return "  - {" + strings.Join(lines, "}\n  - {") + "}\n" }

// hosts is a model of plain engines at the URLs, one a line.
func hosts(server string, urls ...string) string {
	var b strings.Builder
	b.WriteString("server: {" + server + "}\nversion: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [\n")
	for i, u := range urls {
		b.WriteString("    {id: E" + string(rune('a'+i)) + ", url: \"" + u + "\", role: plain},\n")
	}
	return b.String() + "  ]}}\n"
}

// pairs is a model of two prefill and two decode engines with the labels, and
// one PD bucket that pairs them by zone.
func pairs(p1, p2, d1, d2, bucket string) string {
	return "version: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [\n" +
		"    {id: P1, url: \"http://p1\", role: prefill, " + p1 + "},\n    {id: P2, url: \"http://p2\", role: prefill, " + p2 + "},\n" +
		"    {id: D1, url: \"http://d1\", role: decode, " + d1 + "},\n    {id: D2, url: \"http://d2\", role: decode, " + d2 + "}]}}\n" +
		"  buckets:\n" + bucket
}

const byZone = "  - {id: a, groups: {pd: {prefill: {}, decode: {}, match_labels: [zone]}}}\n"

func bucketCases() map[diag.Code][]lintCase {
	const first, second = "groups: {plain: {worker_ids: [A]}}", "groups: {plain: {worker_ids: [B]}}"
	limited := func(kv string) string { return "groups: {plain: {policy: {type: random, admission: {" + kv + "}}}}" }
	limitedDefault := func(b string) string {
		return model("", "  defaults: {policy: {type: power_of_two, admission: {max_inflight_requests: 4}}}", b)
	}
	return map[diag.Code][]lintCase{
		diag.OneTokenOverlap: {
			{"end and begin", plain(buckets("id: a, limits: {max: 10}, "+all, "id: b, limits: {min: 10}, "+all)),
				plain(buckets("id: a, limits: {max: 10}, "+all, "id: b, limits: {min: 11}, "+all)), nil},
			{"two tokens are an overlap", plain(buckets("id: a, limits: {max: 10}, "+all, "id: b, limits: {min: 10, max: 20}, "+all)),
				plain(buckets("id: a, limits: {max: 10}, "+all, "id: b, limits: {min: 9}, "+all)), nil},
			{"a bucket of one length", plain(buckets("id: a, limits: {min: 1, max: 10}, "+all, "id: b, limits: {min: 10, max: 11}, "+all, "id: c, limits: {max: 12}, "+all)),
				plain(buckets("id: a, limits: {max: 10}, "+all, "id: b, rank: 1, limits: {min: 10, max: 10}, "+limited("max_inflight_requests: 9"))), nil},
		},
		diag.CutRange: {{"range above context", plain(buckets("id: a, limits: {max: 11}, max_context_tokens: 10, " + all)),
			plain(buckets("id: a, limits: {max: 10}, max_context_tokens: 10, " + all)), nil}},
		diag.NoOutputRoom: {{"begins where the context ends", plain(buckets("id: a, limits: {min: 10}, max_context_tokens: 10, "+all, "id: b, limits: {max: 9}, max_context_tokens: 10, "+all)),
			plain(buckets("id: a, limits: {min: 9}, max_context_tokens: 10, "+all, "id: b, limits: {max: 8}, max_context_tokens: 10, "+all)), nil}},
		diag.OrderByID: {
			{"no ranks", plain(buckets("id: a, "+first, "id: b, "+second)), plain(buckets("id: a, "+first, "id: b, rank: 1, "+second)), nil},
			{"capacity by context", plain(buckets("id: a, max_context_tokens: 9, "+first, "id: b, limits: {max: 9}, "+second)),
				plain(buckets("id: a, max_context_tokens: 9, "+first, "id: b, limits: {max: 10}, "+second)), nil},
		},
		diag.RankOverruled: {
			{"the large one first", plain(buckets("id: a, rank: 1, "+all, "id: b, rank: 2, limits: {max: 9}, "+all)), plain(buckets("id: a, rank: 2, "+all, "id: b, rank: 2, limits: {max: 9}, "+all)), nil},
			{"disjoint ranges", plain(buckets("id: a, rank: 1, limits: {min: 9}, "+all, "id: b, rank: 2, limits: {max: 9}, "+first)),
				plain(buckets("id: a, rank: 1, limits: {min: 10}, "+all, "id: b, rank: 2, limits: {max: 9}, "+all)), []diag.Code{diag.OneTokenOverlap}},
			{"a rank that is not written", plain(buckets("id: a, rank: 0, "+all, "id: b, rank: 2, limits: {max: 9}, "+all)), plain(buckets("id: a, "+all, "id: b, rank: 2, limits: {max: 9}, "+all)), nil},
		},
		diag.LimitBypassed: {
			{"no limits behind limits", plain(buckets("id: a, limits: {max: 9}, "+limited("max_running_requests: 4"), "id: b, "+all)),
				plain(buckets("id: a, limits: {max: 9}, "+limited("max_running_requests: 4"), "id: b, "+limited("max_inflight_requests: 400"))), nil},
			{"other engines", plain(buckets("id: a, limits: {max: 9}, groups: {plain: {worker_ids: [A], policy: {type: random, admission: {max_running_requests: 4}}}}", "id: b, "+all)),
				plain(buckets("id: a, limits: {max: 9}, groups: {plain: {worker_ids: [A], policy: {type: random, admission: {max_running_requests: 4}}}}", "id: b, "+second)), nil},
			{"other requests", plain(buckets("id: a, limits: {max: 9}, "+limited("max_running_requests: 4"), "id: b, limits: {min: 8}, "+all)),
				plain(buckets("id: a, limits: {max: 9}, "+limited("max_running_requests: 4"), "id: b, limits: {min: 10}, "+all)), nil},
		},
		diag.LostLimits: {
			{"a policy without limits", limitedDefault(buckets("id: a, limits: {max: 9}, "+all, "id: b, groups: {plain: {policy: {type: random}}}")),
				limitedDefault(buckets("id: a, limits: {max: 9}, "+all, "id: b, "+limited("max_inflight_requests: 5"))), nil},
			{"admission that says so", limitedDefault(buckets("id: a, limits: {max: 9}, "+all, "id: b, groups: {plain: {policy: {type: load_based}}}")),
				limitedDefault(buckets("id: a, limits: {max: 9}, "+all, "id: b, groups: {plain: {policy: {type: load_based, admission: {}}}}")), nil},
		},
		diag.OneRequestLimit: {{"limit below the context", plain(buckets("id: a, max_context_tokens: 100, " + limited("max_kv_tokens: 99"))),
			plain(buckets("id: a, max_context_tokens: 100, " + limited("max_kv_tokens: 100"))), nil}},
		diag.EmptySection: {
			{"limits", plain(buckets("id: a, limits: {}, " + all)), plain(buckets("id: a, limits: {min: 0}, " + all)), nil},
			{"labels", plain(buckets("id: a, groups: {plain: {labels: {}}}")), plain(buckets("id: a, max_context_tokens: 9, groups: {plain: {labels: {zone: x}}}", "id: b, "+all)), nil},
			{"admission", plain(buckets("id: a, groups: {plain: {policy: {type: random, admission: {}}}}")), plain(buckets("id: a, " + limited("max_inflight_requests: 1"))), nil},
		},
		diag.ZeroRange: {{"zero is not unlimited", plain(buckets("id: a, limits: {max: 0}, " + all)), plain(buckets("id: a, limits: {max: 1}, " + all)), nil}},
		diag.SmallBody: {{"two bytes a token", "server: {max_body: 1KiB}\n" + plain(buckets("id: a, max_context_tokens: 513, "+all)),
			"server: {max_body: 1KiB}\n" + plain(buckets("id: a, max_context_tokens: 512, "+all)), nil}},
	}
}

func policyCases() map[diag.Code][]lintCase {
	policy := func(p string) string { return plain(buckets("id: a, groups: {plain: {policy: {" + p + "}}}")) }
	cached := func(bucket, p string) string {
		return model("state: {prefix: {local: {}}}", "  tokenizer: {path: t}", buckets("id: a, "+bucket+"groups: {plain: {policy: {type: cache_aware"+p+"}}}"))
	}
	estimates := func(mode, a, b string) string {
		return model("", "  ttft_slo: "+mode, buckets("id: a, limits: {max: 9}, "+a+all, "id: b, "+b+all))
	}
	decode := func(d, p string) string {
		return pd(buckets("id: a, groups: {pd: {prefill: {policy: {type: random" + p + "}}, decode: {policy: {type: random" + d + "}}}}"))
	}
	const pending = ", admission: {max_pending_prefill_tokens: 9}"
	return map[diag.Code][]lintCase{
		diag.OversizedBound: {
			{"choices", policy("type: power_of_two, choices: 3"), policy("type: power_of_two, choices: 2"), nil},
			{"a group of one", policy("type: session_aware, choices: 3"), model("", "", buckets("id: a, groups: {plain: {policy: {type: power_of_two, choices: 3}}}")), []diag.Code{diag.DefaultHeader}},
			{"the largest group counts", strings.Replace(plain(buckets("id: a, "+all)), "  buckets", "  defaults: {policy: {type: power_of_two, choices: 3}}\n  buckets", 1),
				strings.Replace(plain(buckets("id: a, limits: {max: 9}, groups: {plain: {worker_ids: [A]}}", "id: b, "+all)), "  buckets", "  defaults: {policy: {type: power_of_two, choices: 2}}\n  buckets", 1), nil},
		},
		diag.SoftGate:      {{"gate at the limit", cached("", ", worker_queue_limit: 8, admission: {max_waiting_requests: 8}"), cached("", ", worker_queue_limit: 7, admission: {max_waiting_requests: 8}"), nil}},
		diag.DecodePending: {{"decode", decode(pending, ""), decode("", pending), nil}},
		diag.NeverHits: {
			{"default", cached("max_context_tokens: 1023, ", ""), cached("max_context_tokens: 1024, ", ""), nil},
			{"written", cached("limits: {max: 9}, ", ", min_matched_tokens: 10"), cached("limits: {max: 9}, ", ", min_matched_tokens: 9"), nil},
		},
		diag.SwitchedOff: {
			{"guard", cached("", ", pressure_guard: false, pressure_abs_threshold_tokens: 9"), cached("", ", pressure_guard: false, switch_margin_tokens: 9"), nil},
			{"mode", estimates("disabled", "ttft_ms: 5, ", ""), estimates("disabled", "", ""), nil},
		},
		diag.PartialEstimates: {{"one bucket", estimates("slo_first", "ttft_ms: 5, ", ""), estimates("slo_first", "ttft_ms: 5, ", "ttft_ms: 6, "), nil}},
		diag.EqualEstimates:   {{"equal", estimates("best_effort", "ttft_ms: 5, ", "ttft_ms: 5, "), estimates("best_effort", "ttft_ms: 5, ", "ttft_ms: 6, "), nil}},
	}
}

func headerCases() map[diag.Code][]lintCase {
	header := func(name string) string {
		return model("", "  affinity: {session_id_header: "+name+"}", buckets("id: a, groups: {plain: {policy: {type: session_aware}}}"))
	}
	both := func(headers string) string {
		return model("", "  affinity: {"+headers+"}", buckets("id: a, limits: {max: 9}, groups: {plain: {policy: {type: session_aware}}}", "id: b, groups: {plain: {policy: {type: sticky}}}"))
	}
	return map[diag.Code][]lintCase{
		diag.LostHeader: {
			{"hop by hop", header("Connection"), header("x-connection"), nil},
			{"underscore", header("x_session"), header("x-session"), nil},
		},
		diag.CredentialHeader: {{"authorization", header("Authorization"), header("x-authorization-id"), nil}, {"cookie", header("cookie"), header("x-cookie-id"), nil}},
		diag.NoKeyHeader:      {{"another each time", header("X-Request-ID"), header("x-session-id"), nil}, {"always the same", header("user-agent"), header("x-user"), nil}},
		diag.SharedHeader: {
			{"both written", both("session_id_header: X-Key, routing_key_header: x-key"), both("session_id_header: x-key, routing_key_header: x-key-2"), nil},
			{"one is a default", both("session_id_header: x-sgl-routing-key"), both("session_id_header: x-session-id"), []diag.Code{diag.DefaultHeader}},
		},
		diag.DefaultHeader: {{"session", model("", "", buckets("id: a, groups: {plain: {policy: {type: session_aware}}}")), header("x-session-id"), nil}},
	}
}

func engineCases() map[diag.Code][]lintCase {
	const a, b, none = "labels: {zone: a}", "labels: {zone: b}", "labels: {}"
	vllm := func(events string) string {
		return "state: {prefix: {local: {}}}\nversion: 1\nmodels:\n- id: m\n  tokenizer: {path: t}\n  engine: {type: vllm, block_size: 16, hash: sha256_cbor}\n" +
			"  discovery: {static: {engines: [\n    {id: A, url: \"http://a\", role: plain, kv_events: {port: 5557}},\n    {id: B, url: \"http://b\", role: plain" + events + "}]}}\n" +
			"  buckets:\n" + buckets("id: a, groups: {plain: {policy: {type: cache_aware}}}")
	}
	ports := func(p1, p2 string) string {
		text := pairs(a+", bootstrap_port: "+p1, a+", bootstrap_port: "+p2, a, a, byZone)
		return strings.NewReplacer("//p1", "//p1:1", "//p2", "//p2:2", "//d1", "//d1:1", "//d2", "//d2:2").Replace(text)
	}
	return map[diag.Code][]lintCase{
		diag.UnpairedEngine: {
			{"no partner", pairs(a, b, a, a, byZone), pairs(a, b, a, b, byZone), nil},
			{"a misspelt label", pairs(a, "labels: {zoen: a}", a, a, byZone), pairs(a, a, a, a, byZone), []diag.Code{diag.SimilarLabel}},
			{"a partner in another bucket", pairs(a, b, a, a, byZone+"  - {id: b, limits: {max: 9}, groups: {pd: {prefill: {labels: {zone: a}}, decode: {}}}}\n"),
				pairs(a, b, a, a, byZone+"  - {id: b, limits: {max: 9}, groups: {pd: {prefill: {}, decode: {}}}}\n"), nil},
		},
		diag.SimilarLabel: {
			{"a swap", pairs(a, "labels: {zoen: a}", a, none, byZone), pairs(a, "labels: {rack: a}", a, none, byZone), nil},
			{"both labels", pairs(a, "labels: {zone2: a}", a, none, byZone), pairs(a, "labels: {zone: a, zone2: a}", a, a, byZone), nil},
		},
		diag.PartialBootstrap: {{"one without", pairs(a+", bootstrap_port: 1", a, a, a, byZone), pairs(a+", bootstrap_port: 1", a+", bootstrap_port: 1", a, a, byZone), nil}},
		diag.MixedSchemes:     {{"one http", hosts("", "https://a", "http://b"), hosts("", "https://a", "https://b"), nil}},
		diag.MixedLoopback: {
			{"localhost", hosts("", "http://localhost:1", "http://b:1"), hosts("", "http://localhost:1", "http://127.0.0.2:2"), nil},
			{"IPv6", hosts("", "http://[::1]:1", "http://b:1"), hosts("", "http://[fd00::1]:1", "http://b:1"), nil},
		},
		diag.UnspecifiedHost: {{"IPv4", hosts("", "http://0.0.0.0:1"), hosts("", "http://10.0.0.0:1"), nil}, {"IPv6", hosts("", "http://[::]:1"), hosts("", "http://[::1]:1"), nil}},
		diag.OwnAddress: {
			{"default address", hosts("", "http://127.0.0.1:30000"), hosts("", "http://127.0.0.1:30002"), nil},
			{"the admin listener", hosts("", "http://127.0.0.1:30001"), hosts(`admin: "off"`, "http://127.0.0.1:30001"), nil},
			{"every address", hosts(`listen: ":80"`, "http://localhost"), hosts(`listen: ":80"`, "https://localhost"), nil},
			{"one address", hosts(`listen: "10.0.0.1:80"`, "http://10.0.0.1"), hosts(`listen: "10.0.0.1:80"`, "http://10.0.0.2"), nil},
		},
		diag.MissingPort: {{"one without", hosts("", "http://a:30000", "http://b", "http://c:30000"), hosts("", "http://a:30000", "http://b", "http://c"), nil}},
		diag.BootstrapClash: {
			{"two engines", strings.ReplaceAll(ports("9", "9"), "p2", "p1"), ports("9", "9"), nil},
			{"the port of requests", strings.ReplaceAll(ports("9", "1"), "p2", "p1"), strings.ReplaceAll(ports("9", "8"), "p2", "p1"), nil},
			{"loopback", strings.NewReplacer("p1", "10.0.0.1", "p2", "10.0.0.1").Replace(ports("9", "9")), strings.NewReplacer("p1", "127.0.0.1", "p2", "127.0.0.1", "//d", "//127.0.0.1").Replace(ports("9", "9")), nil},
		},
		diag.SilentEngine: {{"no events", vllm(""), vllm(", kv_events: {port: 5557}"), nil}},
		diag.CaseOnly: {
			{"engines", strings.NewReplacer("id: B", "id: a").Replace(plain(buckets("id: x, " + all))), plain(buckets("id: x, " + all)), nil},
			{"buckets", plain(buckets("id: x, limits: {max: 9}, "+all, "id: X, "+all)), plain(buckets("id: x, limits: {max: 9}, "+all, "id: y, "+all)), nil},
		},
		diag.SpaceInName: {{"engine", strings.Replace(plain(""), "id: B", `id: "B "`, 1) + buckets("id: x, "+all), strings.Replace(plain(""), "id: B", `id: "B 2"`, 1) + buckets("id: x, "+all), nil}},
	}
}

func serverCases() map[diag.Code][]lintCase {
	breaker := func(s, b string) string {
		return model("server: {"+s+"}", "  breaker: {"+b+"}", buckets("id: a, "+all))
	}
	bound := func(s, affinity string) string {
		return model("server: {"+s+"}\nstate: {affinity: {"+affinity+"}}", "  affinity: {session_id_header: x}", buckets("id: a, groups: {plain: {policy: {type: session_aware}}}"))
	}
	load := func(s string) string { return "state: {load: {" + s + "}}\n" + server("") }
	lookup := func(timeout string) string {
		return model("state: {prefix: {remote: {endpoint: \"http://i:1\", query_timeout: "+timeout+"}}}", "  tokenizer: {path: t}", buckets("id: a, groups: {plain: {policy: {type: cache_aware}}}"))
	}
	return map[diag.Code][]lintCase{
		diag.NoDrainDelay:    {{"public", server(`listen: ":1", drain_delay: 0s`), server(`listen: "127.0.0.1:1", drain_delay: 0s`), nil}},
		diag.BusyPolls:       {{"too often", load("poll_interval: 99ms"), load("poll_interval: 100ms"), nil}},
		diag.OldLoad:         {{"too long", load("freshness: 61s"), load("freshness: 60s"), nil}},
		diag.LongDrain:       {{"longer than a request", server("drain_timeout: 601s"), server("drain_timeout: 600s"), nil}},
		diag.QuickBreaker:    {{"one", breaker("", "threshold: 1"), breaker("", "threshold: 2"), nil}},
		diag.ShortCoolDown:   {{"shorter", breaker("", "cool_down: 4s"), breaker("", "cool_down: 5s"), nil}, {"written", breaker("connect_timeout: 40s", "cool_down: 30s"), breaker("connect_timeout: 30s", "cool_down: 30s"), nil}},
		diag.ExposedDecision: {{"public", server(`listen: "10.0.0.1:1", expose_decision: true`), server(`listen: "127.0.0.1:1", expose_decision: true`), nil}, {"off", server(`listen: ":1", expose_decision: true`), server(`listen: ":1", expose_decision: false`), nil}},
		diag.LongSweep: {
			{"longer", bound("", "sweep: 11m"), bound("", "sweep: 10m"), nil},
			{"idle below the default", bound("request_timeout: 10s", "idle: 59s"), bound("request_timeout: 10s", "idle: 60s"), nil},
		},
		diag.ShortIdle:  {{"shorter", bound("", "idle: 299s"), bound("", "idle: 300s"), nil}, {"longer requests", bound("request_timeout: 10m, stale_timeout: 10m", "idle: 9m"), bound("request_timeout: 9m", "idle: 9m"), nil}},
		diag.SlowLookup: {{"a second", lookup("1s"), lookup("999ms"), nil}},
	}
}

// TestLint runs every rule of the family on something that it is for and on
// something that only looks like it.
func TestLint(t *testing.T) {
	cases := make(map[diag.Code][]lintCase)
	for _, part := range []map[diag.Code][]lintCase{bucketCases(), policyCases(), headerCases(), engineCases(), serverCases()} {
		maps.Copy(cases, part)
	}
	n := 0
	for _, e := range diag.Table() {
		if e.Code < diag.OneTokenOverlap || e.Code >= "SH0400" {
			continue
		}
		n++
		if len(cases[e.Code]) == 0 {
			t.Errorf("%s, %s, has no case", e.Code, e.Title)
		}
		for _, c := range cases[e.Code] {
			t.Run(string(e.Code)+" "+c.name, func(t *testing.T) {
				if got := codesIn(t, c.bad); !slices.Equal(got, slices.Sorted(slices.Values(append(slices.Clone(c.also), e.Code)))) {
					t.Errorf("bad gives %v\n%s\n%s", got, judged(t, c.bad), c.bad)
				}
				if got := codesIn(t, c.near); slices.Contains(got, e.Code) || slices.ContainsFunc(got, isError) {
					t.Errorf("near miss gives %v\n%s\n%s", got, judged(t, c.near), c.near)
				}
			})
		}
	}
	if n < 25 {
		t.Errorf("%d rules", n)
	}
}

func isError(c diag.Code) bool {
	e, _ := diag.Lookup(c)
	return e.Severity == diag.Error
}

// codesIn lists the codes of the findings, each once.
func codesIn(t *testing.T, text string) []diag.Code {
	t.Helper()
	tree, list := source.Read(t.Context(), source.Options{}, []source.Input{{Name: "c.yaml", Reader: strings.NewReader(text)}})
	if tree == nil || len(check.Shape(t.Context(), tree)) > 0 {
		t.Fatalf("mistakes of shape: %v %v\n%s", list, check.Shape(t.Context(), tree), text)
	}
	var out []diag.Code
	for line := range strings.Lines(judged(t, text)) {
		out = append(out, diag.Code(line[:6]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
