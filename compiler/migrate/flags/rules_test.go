package flags_test

import (
	"strings"
	"testing"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/flags"
)

// base is a command line that starts the router without a warning.
const base = "--model-id m --worker-urls http://a:1 --shutdown-drain-secs 5 "

// messages lists all findings of a line.
func messages(l *flags.Line) (out []string) {
	for _, f := range l.Findings {
		out = append(out, f.Message)
	}
	for i := range l.Given {
		for _, f := range l.Given[i].Findings {
			out = append(out, f.Message)
		}
	}
	return out
}

func TestBaseIsFine(t *testing.T) {
	if got := messages(parse(base)); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestRules has each rule of the start-up with what breaks it, and next to it
// what just does not.
func TestRules(t *testing.T) {
	f := func(rule, text string, want ...string) {
		t.Helper()
		got := messages(parse(text))
		if len(got) != len(want) {
			t.Errorf("%s: %s\ngot %q\nwant %q", rule, text, got, want)
			return
		}
		all := strings.Join(got, "\n")
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: %s\ngot %q\nwant %q", rule, text, got, w)
			}
		}
	}
	ok := func(rule, text string) { t.Helper(); f(rule, text) }
	cache, session, sticky := base+"--policy cache_aware ", base+"--policy session_aware ", base+"--policy sticky "

	f("required", "--worker-urls http://a:1 --shutdown-drain-secs 5", "--model-id is missing")
	f("requires", base+"--sampling-param-conflict allow", "needs --override-sampling-params")
	f("R01", base+"--power-of-n-choices 3", "needs --chat-routing reorg")
	ok("R01", base+"--power-of-n-choices 3 --chat-routing reorg")
	f("R02", base+"--session-id-header x", "belongs to --policy session_aware, and the policy is round_robin")
	f("R02", cache+"--session-idle-secs 1 --session-eviction-interval-secs 1 --stable-pair --affinity-mode strict --session-affinity-mode bucket",
		"--session-idle-secs belongs", "--session-eviction-interval-secs belongs", "--stable-pair belongs", "--affinity-mode belongs", "--session-affinity-mode belongs")
	ok("R02", session+"--session-id-header x --session-idle-secs 1 --session-eviction-interval-secs 1 --stable-pair --affinity-mode soft")
	f("R03", cache+"--worker-queue-limit 0", "--worker-queue-limit \"0\" is not a whole number from 1")
	f("R04", cache+"--saturation-queue-floor 1", "needs --worker-queue-limit")
	f("R05", cache+"--saturation-queue-floor 0 --worker-queue-limit 1", "--saturation-queue-floor \"0\"")
	f("R06", cache+"--saturation-queue-floor 3 --worker-queue-limit 2", "3 is above --worker-queue-limit 2")
	ok("R06", cache+"--saturation-queue-floor 2 --worker-queue-limit 2")
	f("R07", cache+"--min-load-choices 0", "--min-load-choices \"0\"")
	for _, name := range []string{
		"cache-affinity-min-matched-tokens 1", "cache-affinity-min-match-ratio 1", "cache-candidate-min-workers 9", "cache-candidate-ratio 1",
		"cache-candidate-max-workers 9", "cache-switch-margin-tokens 1", "worker-queue-limit 1", "min-load-choices 1",
	} {
		f("R08", session+"--"+name, "belongs to --policy cache_aware")
		ok("R08", cache+"--"+name)
	}
	for _, name := range []string{"pressure-abs-threshold-tokens 0", "pressure-abs-threshold-ms 0", "pressure-rel-threshold 2", "disable-pressure-guard"} {
		f("R09", base+"--"+name, "belongs to --policy cache_aware or session_aware")
		ok("R09", cache+"--"+name)
		ok("R09", session+"--"+name)
	}
	f("R10", session+"--cache-prefix-provider radix_tree", "belongs to --policy cache_aware")
	const indexer = "--kv-indexer-endpoint http://i:1 "
	f("R11", cache+indexer+"--kv-indexer-query-timeout-ms 0", "--kv-indexer-query-timeout-ms \"0\"")
	f("R12", cache+"--kv-indexer-query-timeout-ms 1", "needs --kv-indexer-endpoint")
	f("R13", cache+indexer+"--kv-indexer-query-max-inflight 0", "--kv-indexer-query-max-inflight \"0\"")
	f("R14", cache+"--kv-indexer-query-max-inflight 1", "needs --kv-indexer-endpoint")
	f("R15", cache+indexer+"--cache-prefix-provider radix_tree", "needs --cache-prefix-provider indexer")
	ok("R15", cache+indexer+"--cache-prefix-provider indexer")
	f("R16", cache+"--cache-prefix-provider indexer", "indexer needs --kv-indexer-endpoint")
	f("R17", base+indexer, "belongs to --policy cache_aware")
	f("R18a", cache+"--cache-affinity-min-match-ratio 1.1", "is not a number from 0 to 1")
	f("R18a", cache+"--cache-affinity-min-match-ratio nan", "is not a number from 0 to 1")
	f("R18b", cache+"--cache-candidate-ratio=-0.1", "is not a number from 0 to 1")
	f("R18c", cache+"--cache-candidate-max-workers 4", "minimum 8 above the maximum 4")
	f("R18c", cache+"--cache-candidate-min-workers 33", "minimum 33 above the maximum 32")
	f("R18c", cache+"--cache-candidate-min-workers 0", "\"0\" is not")
	ok("R18c", cache+"--cache-candidate-min-workers 4 --cache-candidate-max-workers 4")
	f("R18d", session+"--session-id-header x:y", "is not the name of a header")
	f("R18e", cache+"--pressure-rel-threshold 1", "above 1")
	f("R18e", cache+"--pressure-rel-threshold inf", "finite")
	f("R18f", session+"--session-idle-secs 0", "--session-idle-secs \"0\"")
	f("R18g", session+"--session-eviction-interval-secs 0", "--session-eviction-interval-secs \"0\"")
	f("R18h", cache+"--pressure-abs-threshold-ms=-1", "from 0")

	const k8s = "--model-id m --shutdown-drain-secs 5 --service-discovery "
	f("R20", base+"--service-discovery --selector a=b", "exclude each other")
	f("R21", "--model-id m --shutdown-drain-secs 5", "neither --worker-urls nor")
	f("R22", base+"--selector a=b", "--selector needs --service-discovery")
	f("R22", base+"--service-discovery-namespace x", "needs --service-discovery")
	f("R23", k8s, "needs a selector")
	ok("R23", k8s+"--selector _")
	f("R24", k8s+"--selector a=b --prefill-selector a=b --decode-selector a=c", "excludes")
	f("R25", k8s+"--prefill-selector a=b", "needs --decode-selector")
	f("R25", k8s+"--decode-selector a=b", "needs --prefill-selector")
	for _, term := range []string{"a!=b", "!a", "a", "=b"} {
		f("R26", k8s+"--prefill-selector "+term+" --decode-selector a=c", "which is not label=value")
	}
	ok("R26", k8s+"--prefill-selector a=b,,c=,, --decode-selector a==c")
	ok("R26", k8s+"--selector a!=b !c")
	f("R27", k8s+"--prefill-selector ,, --decode-selector a=b", "selects nothing")
	f("R28", k8s+"--prefill-selector a=b,c=d --decode-selector c==d a=b", "selects the same")
	ok("R28", k8s+"--prefill-selector a=b,c=d --decode-selector c=d")
	f("R32", base+"--cb-cool-down-secs 1", "needs --cb-threshold")
	f("clap", base+"--cb-threshold 0", "a whole number from 1")
	ok("R32", base+"--cb-cool-down-secs 0 --cb-threshold 1")
	f("R33", base+"--fuse random", "belongs to --policy score_policy or fused_score")
	f("R34", base+"--policy score_policy --fuse random,random=2", `has "random" twice`)
	f("clap", base+"--policy score_policy --fuse heat", "which is not random")
	f("clap", base+"--policy score_policy --fuse random=-1", "which is not random")
	f("clap", base+"--policy score_policy --fuse random=nan", "which is not random")
	f("R35", base+"--filter overloaded,overloaded --max-in-flight 1", `has "overloaded" twice`)
	f("R36", base+"--filter overloaded", "needs --max-in-flight")
	f("R36", base+"--max-in-flight 1", "needs --filter overloaded")
	f("R36b", base+"--filter overloaded --max-in-flight 0", "--max-in-flight \"0\"")
	f("R37", base+"--filter prefix_cache", "needs --prefix-cache-min-share")
	f("R37", base+"--prefix-cache-min-share 1", "needs --filter prefix_cache")
	f("R37b", base+"--filter prefix_cache --prefix-cache-min-share 0", "above 0, up to 1")
	f("R37b", base+"--filter prefix_cache --prefix-cache-min-share NaN", "above 0, up to 1")
	f("R38", sticky+"--filter overloaded --max-in-flight 1", "not possible with --policy sticky")
	f("R39", base+"--routing-key-header x --sticky-fallback-policy random --sticky-idle-secs 1 --sticky-eviction-interval-secs 1",
		"--routing-key-header belongs", "--sticky-fallback-policy belongs", "--sticky-idle-secs belongs", "--sticky-eviction-interval-secs belongs")
	f("clap", sticky+"--sticky-fallback-policy cache_aware", "is not one of")
	f("R39b", sticky+"--routing-key-header (x)", "is not the name of a header")
	f("R39c", sticky+"--sticky-eviction-interval-secs 0", "\"0\"")
	f("R39d", sticky+"--sticky-idle-secs 0", "\"0\"")
	f("R40", "--model-id= --worker-urls http://a:1 --shutdown-drain-secs 5", "--model-id \"\" is not a name")
	f("R41", "--model-id m --worker-urls http://a:1 --termination-grace-secs 9999 --shutdown-drain-secs 1801", "from 0 to 1800")
	f("R42", "--model-id m --worker-urls http://a:1", "the pause of 30 s")
	f("R42", "--model-id m --worker-urls http://a:1 --shutdown-drain-secs 9 --termination-grace-secs 9", "the pause of 9 s")
	ok("R42", "--model-id m --worker-urls http://a:1 --termination-grace-secs 31")
	f("R43", base+"--stream-idle-timeout-secs 0", "\"0\"")
	const listed = "--model-id m --shutdown-drain-secs 5 --worker-urls "
	f("R44", listed, "has no value")
	f("R45", listed+"_", "is empty")
	f("R46", listed+"a:1", "is not a URL")
	f("R47", listed+"grpc://a:1", "neither http nor https")
	f("R48", listed+"http://a:80 HTTP://A/", "is listed twice")
	ok("R48", listed+"http://a:80 https://a:80")

	reorg := base + "--chat-routing reorg "
	ok("reorg", reorg)
	f("R80", reorg+"--policy sticky", "sticky is not possible")
	f("R81b", reorg+"--policy session_aware --pressure-rel-threshold 2", "is not possible with --chat-routing reorg and")
	f("R83", reorg+"--decode-policy legacy_host_affinity", "legacy_host_affinity is not possible")
	f("R86", reorg+"--policy cache_aware --min-load-choices 3", "can only be 2")
	ok("power_of_n", base+"--policy power_of_n --decode-policy power_of_n")

	// A policy that is no policy has no rules.
	f("cascade", base+"--policy nope --min-load-choices 2", "is not one of")
}

// TestSamplingRules are R60 to R70.
func TestSamplingRules(t *testing.T) {
	f := func(text, mode, want string) {
		t.Helper()
		args := append(strings.Fields(base), "--override-sampling-params", text, "--sampling-param-conflict", mode)
		got := messages(flags.Parse(argv.FromArgs(args).Args))
		if want == "" && got != nil || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f(`{"temperature":0.7,"top_p":1,"top_k":-1,"min_p":0,"repetition_penalty":2,"frequency_penalty":-2,"presence_penalty":2,"n":128}`, "allow", "")
	f(`{"top_k":{"min":1,"max":20.0},"temperature":{"min":0,"max":0}}`, "reject", "")
	f(`{"top_k":20.0}`, "reject", "")
	f(`[]`, "reject", "not a JSON object")
	f(`{`, "reject", "not a JSON object")
	f(`{"n":1} x`, "reject", "something follows")
	f(`{}`, "reject", "is empty")
	f(`{"heat":1}`, "reject", "unknown sampling parameter")
	f(`{"n":null}`, "reject", "neither a number nor")
	f(`{"n":"1"}`, "reject", "neither a number nor")
	f(`{"n":true}`, "reject", "neither a number nor")
	f(`{"n":1.5}`, "reject", "outside")
	f(`{"temperature":2.1}`, "reject", "outside")
	f(`{"top_k":1e300}`, "reject", "outside")
	f(`{"n":1,"n":2}`, "reject", "given twice")
	f(`{"n":{"min":1}}`, "reject", "min and max")
	f(`{"n":{"min":1,"min":2,"max":3}}`, "reject", "given twice")
	f(`{"n":{"min":1,"max":2,"step":1}}`, "reject", `not "step"`)
	f(`{"n":{"min":"1","max":2}}`, "reject", "not a number")
	f(`{"n":{"min":2,"max":1}}`, "reject", "above max")
	f(`{"top_k":{"min":-1,"max":5}}`, "reject", "outside")
	f(`{"n":{"min":1,"max":2}}`, "allow", "band")
}

// TestAllAtOnce: the older router stops at the first mistake, the migration does
// not.
func TestAllAtOnce(t *testing.T) {
	l := parse("--policy sticky --worker-urls a --port 99999 --cb-cool-down-secs 1 --nope --cache-threshold 1 --fuse random")
	codes := make(map[diag.Code]int)
	for i := range l.Given {
		for _, f := range l.Given[i].Findings {
			codes[f.Code]++
		}
	}
	for _, f := range l.Findings {
		codes[f.Code]++
	}
	for code, n := range map[diag.Code]int{
		diag.LegacyMissing: 1, diag.LegacyValue: 2, diag.LegacyConflict: 2, diag.LegacyUnknown: 1, diag.LegacyOtherVersion: 1, diag.LegacyAdvice: 1,
	} {
		if codes[code] != n {
			t.Errorf("%s: %d times, want %d", code, codes[code], n)
		}
	}
}
