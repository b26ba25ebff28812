package check_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"shunt/compiler/check"
	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// everything is a configuration that uses every part of the language.
const everything = `version: 1
server:
  listen: "0.0.0.0:30000"
  admin: "off"
  max_body: 32MiB
  request_timeout: 300s
  connect_timeout: 5s
  header_timeout: 300s
  stream_idle_timeout: 180s
  stale_timeout: 600s
  drain_delay: 0s
  drain_timeout: 30s
  expose_decision: false
  log: {level: info, format: text}
models:
  - id: qwen3-32b
    tokenizer: {path: /models/x/tokenizer.json}
    sampling: {params: {temperature: 0.6, top_k: {min: 1, max: 50}}, conflict: reject}
    affinity: {session_id_header: x-session-id, routing_key_header: x-sgl-routing-key}
    breaker: {threshold: 3, cool_down: 30s}
    discovery:
      static:
        engines:
          - {id: P1, url: "http://10.0.0.1:30000", role: prefill, bootstrap_port: 8998, labels: {zone: a}}
          - {id: D1, url: "https://[::1]:30000", role: decode}
    defaults: {policy: {type: round_robin}, decode_policy: {type: load_based}}
    ttft_slo: disabled
    tps_slo: best_effort
    buckets:
      - id: short
        rank: 10
        limits: {min: 0, max: 4096}
        max_context_tokens: 8192
        ttft_ms: 1500
        tokens_per_second: 30
        groups:
          pd:
            prefill:
              worker_ids: [P1]
              labels: {zone: a}
              policy:
                type: cache_aware
                min_matched_tokens: 1024
                min_match_ratio: 0.5
                candidate_min_workers: 8
                candidate_ratio: 0.05
                candidate_max_workers: 32
                switch_margin_tokens: 1024
                pressure_guard: true
                pressure_abs_threshold_tokens: 0
                pressure_abs_threshold_ms: 0.5
                pressure_rel_threshold: 1.5
                worker_queue_limit: 8
                saturation_queue_floor: 4
                min_load_choices: 2
                admission:
                  max_running_requests: 64
                  max_waiting_requests: 0
                  max_kv_tokens: 1048576
                  max_pending_prefill_tokens: 1
                  max_inflight_requests: 1
            decode: {worker_ids: [], policy: {type: power_of_two, choices: 3}}
            match_labels: [zone]
      - id: other
        groups: {plain: {policy: {type: sticky, fallback: random}}}
      - id: third
        groups: {plain: {policy: {type: session_aware, choices: 2}}}
state:
  load: {freshness: 5s}
  prefix:
    local: {max_blocks: 1000000}
    remote: {endpoint: "http://host:50051", query_timeout: 100ms, max_inflight: 32}
  affinity:
    memory: {max_entries: 1000000}
    redis: {url: "env:REDIS_URL", on_failure: fallback}
    idle: 600s
    sweep: 60s
`

// small is a valid configuration with the least there can be.
const small = "version: 1\nmodels:\n- id: m\n  discovery: {static: {engines: [{id: a, url: \"http://a:1\", role: plain}]}}\n"

func tree(t testing.TB, name, text string) *source.Tree {
	t.Helper()
	out, l := source.Read(context.Background(), source.Options{MaxBytes: 1 << 30}, []source.Input{{Name: name, Reader: strings.NewReader(text)}})
	if out == nil {
		t.Fatal(l)
	}
	return out
}

// shape lists the findings about a configuration as "line:column code".
func shape(t testing.TB, name, text string) (string, diag.List) {
	t.Helper()
	l := check.Shape(context.Background(), tree(t, name, text))
	var out []string
	for _, f := range l {
		out = append(out, fmt.Sprintf("%d:%d %s", f.Pos.Line, f.Pos.Column, f.Code))
	}
	return strings.Join(out, ", "), l
}

func TestValidConfigurations(t *testing.T) {
	for _, text := range [...]string{everything, small, fleet(1), fleet(300)} {
		if _, l := shape(t, "a.yaml", text); len(l) > 0 {
			t.Errorf("%.60s: %v", text, l)
		}
	}
}

// TestMistakes replaces one text in a valid configuration and names the finding
// that must follow, with a piece of its message or hint.
func TestMistakes(t *testing.T) {
	f := func(old, new, want, words string) {
		t.Helper()
		if strings.Count(everything, old) != 1 {
			t.Fatalf("%q is not there once", old)
		}
		got, l := shape(t, "a.yaml", strings.Replace(everything, old, new, 1))
		text := ""
		for _, d := range l {
			text += d.Message + "; " + d.Hint + "\n"
		}
		if got != want || !strings.Contains(text, words) {
			t.Errorf("%q: got %s, want %s with %q\n%s%s", new, got, want, words, l, text)
		}
	}
	f("version: 1", "version: 2", "1:10 SH0105", "version must be 1, not 2")
	f("version: 1", "version: \"1\"", "1:10 SH0104", "remove the quotes")
	f("version: 1", "verison: 1", "1:1 SH0102", "did you mean \"version\"?")
	f("version: 1", "apiVersion: v1", "1:1 SH0102, 1:1 SH0103", "shunt migrate reads")
	f("max_body: 32MiB", "max_body: 32MB", "5:13 SH0107", "a size such as 512KiB")
	f("max_body: 32MiB", "max_body: 33554432", "5:13 SH0104", "a size such as")
	f("connect_timeout: 5s", "connect_timeout: 5", "7:20 SH0104", "a duration such as")
	f("connect_timeout: 5s", "connect_timeout: 5sec", "7:20 SH0107", "a duration such as")
	f("connect_timeout: 5s", "connect_timeout: 1m30s", "7:20 SH0107", "a duration such as")
	f("listen: \"0.0.0.0:30000\"", "listen: localhost", "3:11 SH0107", "host:port")
	f("expose_decision: false", "expose_decision: no", "13:20 SH0104", "write false, without quotes")
	f("level: info", "level: inof", "14:16 SH0105", "did you mean \"info\"?")
	f("level: info", "level: 3", "14:16 SH0104", "one of debug, info, warn, error")
	f("log: {", "logs: {", "14:3 SH0102", "did you mean \"log\"?")
	f("temperature: 0.6", "temprature: 0.6", "18:25 SH0102", "did you mean \"temperature\"?")
	f("top_k: {min: 1, max: 50}", "top_k: {min: 1}", "18:50 SH0103", "top_k lacks the field \"max\"")
	f("top_k: {min: 1, max: 50}", "top_k: many", "18:50 SH0104", "a number, or an object with min and max")
	f("threshold: 3", "threshold: 0", "20:26 SH0106", "at least 1 and at most 4294967295")
	f("id: P1, ", "", "24:13 SH0103", "engines[0] lacks the field \"id\"; id: the name that worker_ids refers to")
	f("id: P1, ", "id: \"\", ", "24:18 SH0107", "not empty")
	f("role: prefill", "role: prefil", "24:58 SH0105", "did you mean \"prefill\"?")
	f("bootstrap_port: 8998", "bootstrap_port: 89980", "24:83 SH0106", "at most 65535")
	f("bootstrap_port: 8998", "bootstrap_port: 8998.0", "24:83 SH0104", "whole number")
	f("bootstrap_port: 8998", "bootstrap_port: 1e3", "24:83 SH0104", "without a point or an exponent")
	f("labels: {zone: a}}", "labels: {zone: 1}}", "24:104 SH0104", "quote it")
	f("defaults: {policy: {type: round_robin}", "defaults: {policy: {type: round-robin}", "26:31 SH0105", "did you mean \"round_robin\"?")
	f("defaults: {policy: {type: round_robin}", "defaults: {policy: {type: fused_score}", "26:31 SH0490", "score fusion was dropped")
	f("defaults: {policy: {type: round_robin}", "defaults: {policy: {}", "26:24 SH0103", "policy lacks the field \"type\"")
	f("defaults: {policy: {type: round_robin}", "defaults: {policy: {type: round_robin, choices: 3}", "26:44 SH0102", "it belongs to type power_of_two or session_aware")
	f("defaults: {policy: {type: round_robin}", "defaults: {policy: round_robin", "26:24 SH0104", "must be an object")
	f("ttft_slo: disabled", "ttft_slo: off", "27:15 SH0105", "known values: disabled, slo_first, best_effort")
	f("rank: 10", "rank: -1", "31:15 SH0106", "at least 0")
	f("rank: 10", "fuse: 10", "31:9 SH0491", "score fusion")
	f("min: 0, max: 4096", "min: 0, max: \"4096\"", "32:31 SH0104", "remove the quotes")
	f("min: 0, max: 4096", "min: 0, max: 9007199254740992", "32:31 SH0106", "at most 9007199254740991")
	f("min: 0, max: 4096", "min: 0, max: ~", "32:31 SH0116", "max is null")
	f("max_context_tokens: 8192", "max_context_tokens: 0", "33:29 SH0106", "at least 1")
	f("ttft_ms: 1500", "ttft_ms: 0", "34:18 SH0106", "at least 1")
	f("worker_ids: [P1]", "worker_ids: null", "39:27 SH0116", "[] is an empty one")
	f("worker_ids: [P1]", "worker_ids: P1", "39:27 SH0104", "write a list")
	f("worker_ids: [P1]", "worker_ids: [P1, 2]", "39:32 SH0104", "worker_ids[1] must be")
	f("worker_ids: [P1]", "max_in_flight: 3", "39:15 SH0491", "max_inflight_requests")
	f("min_match_ratio: 0.5", "min_match_ratio: 1.5", "44:34 SH0106", "at most 1")
	f("pressure_rel_threshold: 1.5", "pressure_rel_threshold: 1", "52:41 SH0106", "more than 1")
	f("max_running_requests: 64", "max_runing_requests: 64", "57:19 SH0102", "did you mean \"max_running_requests\"?")
	f("max_waiting_requests: 0", "max_waiting_requests: -0.5", "58:41 SH0104", "a whole number")
	f("decode: {worker_ids: [], policy: {type: power_of_two, choices: 3}}", "", "38:13 SH0103", "pd lacks the field \"decode\"")
	f("match_labels: [zone]", "match_labels: {zone: a}", "63:27 SH0104", "must be a list")
	f("fallback: random", "fallback: cache_aware", "65:59 SH0105", "known values: round_robin, random, power_of_two, load_based")
	f("url: \"env:REDIS_URL\"", "url: \"redis://user:secret@host\"", "75:18 SH0107", "a reference to a secret")
	f("state:\n", "stats:\n", "68:1 SH0102", "did you mean \"state\"?")
}

func TestSecretsAreNotQuoted(t *testing.T) {
	text := small + "  tokenizer: {path: \"\"}\nstate: {affinity: {redis: {url: \"hunter2\"}}, prefix: {remote: {endpoint: \"ftp://u:hunter2@host\"}}}\n"
	got, l := shape(t, "a.yaml", text)
	if want := "5:21 SH0107, 6:33 SH0107, 6:74 SH0107"; got != want || strings.Contains(fmt.Sprintf("%+v", l), "hunter2") {
		t.Errorf("got %s, want %s\n%+v", got, want, l)
	}
}

// TestSecretsAreMarked holds the places of secrets, which reports keep out of
// excerpts.
func TestSecretsAreMarked(t *testing.T) {
	f := func(state, want string) {
		t.Helper()
		_, l := shape(t, "a.yaml", small+"state: {affinity: "+state+"}\n")
		var got []string
		for _, one := range l {
			if one.Secret.Known() {
				got = append(got, fmt.Sprintf("%d-%d", one.Secret.Column, one.SecretEnd.Column))
			}
		}
		if strings.Join(got, " ") != want || strings.Contains(l.String(), "1234") {
			t.Errorf("%s: got %s, want %s\n%s", state, got, want, l)
		}
	}
	f(`{redis: {url: "env:X"}}`, "")
	f(`{redis: {url: hunter-1234}}`, "33-44")
	f(`{redis: {url: 1234}}`, "33-37")
	f(`{redis: {url: [1234]}}`, "33-0")
	f(`{redis: {url: "env:X", password: 1234}}`, "52-56")
	f(`{redis: {url: "env:X", auth-token: {a: 1234}}}`, "54-0")
}

// TestNothingTwice has values that were reported when they were read, and names
// that CUE quotes in its errors.
func TestNothingTwice(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got, l := shape(t, "a.yaml", text); got != want {
			t.Errorf("got %s, want %s\n%s", got, want, l)
		}
	}
	f(small+"\"<<\": 1\n\"a.b\": 1\n\"\\e\": 1\n\"\\\"\": 1\n", "5:1 SH0102, 6:1 SH0102, 7:1 SH0102, 8:1 SH0102")
	f(small+"server: {\"a b\": {c: 1}, log: {\"ü-1\": 1}}\n", "5:10 SH0102, 5:31 SH0102")
}

// TestManyMistakesAreLinear has mistakes whose number squared would take minutes.
// The test's own time limit is the assertion.
func TestManyMistakesAreLinear(t *testing.T) {
	var fields, models strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&fields, "k%d: 1\n", i)
		fmt.Fprintf(&models, "{id: m%d, discovery: {static: {engines: [{id: a, url: \"http://h%d\", role: plain}, {id: a, url: \"http://i%d\", role: plain}]}}}, ", i, i, i)
	}
	if _, l := shape(t, "a.yaml", small+fields.String()); len(l) != 9000 {
		t.Errorf("%d findings", len(l))
	}
	if got := judged(t, "version: 1\nmodels: ["+models.String()+"]\n"); strings.Count(got, "\n") != 9000 {
		t.Errorf("%d findings", strings.Count(got, "\n"))
	}
}

// TestOneRunFindsEverything has mistakes of which CUE alone reports about half,
// because violated constraints hide missing and unknown fields.
func TestOneRunFindsEverything(t *testing.T) {
	got, l := shape(t, "a.yaml", `version: 1
models:
- id: m
  discovery: {static: {engines: [{url: "http://a:1", role: plain}]}}
  buckets:
  - rank: -1
    max_ctx: 8192
    groups:
      plain: {policy: {type: power_of_to, choises: 2}}
      pd:
        prefill: {policy: {type: random, admission: {max_runing_requests: 64}}}
  - {}
  - id: ""
    bar: 1
    groups: {plain: {policy: {type: sticky, fallback: sticky}}}
extra: 1
`)
	want := "4:34 SH0103, 6:5 SH0103, 6:11 SH0106, 7:5 SH0102, 9:30 SH0105, 9:43 SH0102, 11:9 SH0103, 11:54 SH0102, " +
		"12:5 SH0103, 12:5 SH0103, 13:9 SH0107, 14:5 SH0102, 15:55 SH0105, 16:1 SH0102"
	if got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, l)
	}
}

// TestPlacesInLongLists puts mistakes far into lists that are cut into pieces.
func TestPlacesInLongLists(t *testing.T) {
	text := fleet(2000)
	for _, r := range [...][2]string{
		{"id: bucket-0\n", "id: \"\"\n"}, {"id: bucket-1234\n", "id: 1234\n"}, {"rank: 1999\n", "rank: -1\n"},
		{"id: D3999, ", "id: D3999, x: 1, "}, {"id: P777, ", ""},
	} {
		text = strings.Replace(text, r[0], r[1], 1)
	}
	_, l := shape(t, "a.yaml", text)
	lines := strings.Split(text, "\n")
	var got []string
	for _, f := range l {
		got = append(got, fmt.Sprintf("%s %s %q", f.Code, f.Path, lines[f.Pos.Line-1][f.Pos.Column-1:min(f.Pos.Column+9, len(lines[f.Pos.Line-1]))]))
	}
	want := []string{
		`SH0103 /models/0/discovery/static/engines/1554/id "{url: \"htt"`,
		`SH0102 /models/0/discovery/static/engines/7999/x "x: 1, url:"`,
		`SH0107 /models/0/buckets/0/id "\"\""`,
		`SH0104 /models/0/buckets/1234/id "1234"`,
		`SH0106 /models/0/buckets/1999/rank "-1"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestManyMistakesAreCut(t *testing.T) {
	text := small + "  buckets: [" + strings.Repeat("{}, ", 8000) + "]\n"
	_, l := shape(t, "a.yaml", text)
	if last := l[len(l)-1]; len(l) != 10_001 || !strings.Contains(last.Message, "6000 more") {
		t.Errorf("%d findings, last %v", len(l), l[len(l)-1])
	}
}

func TestCancelledShapeSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if l := check.Shape(ctx, tree(t, "a.yaml", small)); len(l) != 1 || l[0].Code != diag.Interrupted {
		t.Errorf("got %v", l)
	}
}

// TestClosednessCannotBeSwitchedOff starts this test again with the variable
// that makes CUE accept unknown fields.
func TestClosednessCannotBeSwitchedOff(t *testing.T) {
	if os.Getenv("SHUNT_TEST_CLOSEDNESS") != "" {
		source.ScrubEnvironment()
		if got, _ := shape(t, "a.yaml", small+"bogus: 1\n"); got != "5:1 SH0102" {
			t.Errorf("got %q", got)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestClosednessCannotBeSwitchedOff$")
	cmd.Env = append(os.Environ(), "SHUNT_TEST_CLOSEDNESS=1", "CUE_DEBUG=opendef")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
