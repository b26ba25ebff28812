package golden_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/diag"
)

// fleetText is a configuration without a finding, into which the mistakes of
// TestSilentMistakes are put.
const fleetText = `version: 1
server: {listen: "127.0.0.1:30000"}
models:
  - id: m
    tokenizer: {path: /models/m}
    affinity: {session_id_header: x-session-id}
    ttft_slo: slo_first
    discovery:
      static:
        engines:
          - {id: P1, url: "http://10.0.0.1:30000", role: prefill, bootstrap_port: 8998, labels: {dp: a}}
          - {id: P2, url: "http://10.0.0.2:30000", role: prefill, bootstrap_port: 8998, labels: {dp: b}}
          - {id: D1, url: "http://10.0.0.11:30000", role: decode, labels: {dp: a}}
          - {id: D2, url: "http://10.0.0.12:30000", role: decode, labels: {dp: b}}
    buckets:
      - id: short
        limits: {min: 0, max: 4096}
        max_context_tokens: 8192
        ttft_ms: 300
        groups:
          pd:
            prefill:
              policy: {type: cache_aware, pressure_rel_threshold: 2, admission: {max_running_requests: 64}}
            decode: {policy: {type: session_aware}}
            match_labels: [dp]
      - id: long
        max_context_tokens: 131072
        ttft_ms: 3000
        groups:
          pd:
            prefill: {worker_ids: [P2], policy: {type: load_based, admission: {max_running_requests: 8}}}
            decode: {worker_ids: [D2]}
            match_labels: [dp]
state:
  prefix: {local: {max_blocks: 1000000}}
  affinity: {memory: {max_entries: 1000000}, idle: 10m}
`

// silent is a mistake that some other router accepts, ignores or turns into
// another meaning without a word.
type silent struct {
	mistake string
	// old is replaced by new in fleetText.
	old, new string
	code     diag.Code
	// at is in the line of the finding.
	at string
}

// silentMistakes lists them by the way in which they go unnoticed elsewhere.
func silentMistakes() []silent {
	return []silent{
		// Accepted, and served as if they meant something.
		{"inverted length range", "min: 0, max: 4096", "min: 4096, max: 0", diag.LimitOrder, "min: 4096"},
		{"range above the context", "max: 4096", "max: 16384", diag.CutRange, "max: 16384"},
		{"negative weight", "max_running_requests: 8}", "max_running_requests: -5}", diag.OutOfRange, "-5"},
		{"negative threshold", "pressure_rel_threshold: 2", "pressure_rel_threshold: -2", diag.OutOfRange, "-2"},
		{"zero that was meant as unlimited", "max_running_requests: 8}", "max_running_requests: 0}", diag.ZeroLimit, "requests: 0"},
		{"upper bound of zero that was meant as unlimited", "max: 4096", "max: 0", diag.ZeroRange, "max: 0"},
		{"misspelt role", "role: decode, labels: {dp: b}", "role: decod, labels: {dp: b}", diag.UnknownValue, "decod,"},
		{"misspelt label on an engine", "role: decode, labels: {dp: b}", "role: decode, labels: {pd: b}", diag.UnpairedEngine, "id: P2"},
		{"misspelt label to match", "match_labels: [dp]", "match_labels: [dp, dq]", diag.UnknownLabel, "dq"},
		{"duplicate engine name, the last one wins", "id: D2, url", "id: D1, url", diag.DuplicateEngine, "10.0.0.12"},
		{"duplicate bucket name, the last one wins", "id: long", "id: short", diag.DuplicateBucket, "id: short"},
		{"one engine under two names", "10.0.0.12:30000", "10.0.0.11:30000/", diag.DuplicateURL, "id: D2"},
		{"duplicate key, the last one wins", "ttft_ms: 300\n", "ttft_ms: 300\n        ttft_ms: 600\n", diag.RepeatedKey, "ttft_ms: 600"},
		{"order that depends on names", "- id: long\n        max_context_tokens: 131072", "- id: long\n        max_context_tokens: 4096", diag.OrderByID, "id: short"},

		// Ignored.
		{"misspelt section at the root", "\nstate:", "\nstat:", diag.UnknownField, "stat:"},
		{"misspelt tuning", "pressure_rel_threshold", "pressure_real_threshold", diag.UnknownField, "pressure_real_threshold"},
		{"misspelt bound of a bucket", "max_context_tokens: 8192", "max_contex_tokens: 8192", diag.UnknownField, "max_contex_tokens"},
		{"field of another policy", "type: session_aware", "type: session_aware, fallback: random", diag.UnknownField, "fallback"},
		{"unknown policy that becomes the default one", "type: session_aware", "type: least_loaded", diag.UnknownValue, "least_loaded"},
		{"reference to an engine that does not exist", "[D2]", "[D3]", diag.UnknownEngine, "[D3]"},
		{"engine of another role in a group", "[P2]", "[P2, D2]", diag.WrongRole, "[P2, D2]"},
		{"section that nothing uses", "policy: {type: session_aware}", "policy: {type: load_based}", diag.Unread, "affinity: {memory"},
		{"estimates without the mode that reads them", "    ttft_slo: slo_first\n", "", diag.Unread, "ttft_ms: 300"},
		{"estimates beside a mode that is switched off", "ttft_slo: slo_first", "ttft_slo: disabled", diag.SwitchedOff, "ttft_ms: 300"},
		{"thresholds beside a guard that is switched off", "type: cache_aware,", "type: cache_aware, pressure_guard: false,", diag.SwitchedOff, "pressure_guard"},
		{"default that every group overrides", "    discovery:", "    defaults: {policy: {type: random}}\n    discovery:", diag.UnusedDefault, "defaults"},
		{"policy that its stage cannot run", "decode: {worker_ids: [D2]}", "decode: {worker_ids: [D2], policy: {type: cache_aware}}", diag.PolicyStage, "[D2]"},
		{"port of a role that has none", "role: decode, labels: {dp: b}", "role: decode, bootstrap_port: 8998, labels: {dp: b}", diag.StrayBootstrap, "id: D2"},
		{"limit on a metric that the stage does not have", "{type: session_aware}", "{type: session_aware, admission: {max_pending_prefill_tokens: 9}}", diag.DecodePending, "max_pending"},
		{"two alternatives at once", "affinity: {memory: {max_entries: 1000000}", "affinity: {memory: {}, redis: {url: \"env:R\"}", diag.OneService, "redis"},
		{"option of an older version", "type: cache_aware,", "type: cache_aware, cache_threshold: 0.5,", diag.DroppedField, "cache_threshold"},

		// Turned into something else.
		{"unparsable bucket that becomes any length", "limits: {min: 0, max: 4096}", "limits: 0-4096", diag.WrongType, "0-4096"},
		{"bucket whose template had no values becomes any length", "limits: {min: 0, max: 4096}", "limits: {}", diag.EmptySection, "limits"},
		{"null that becomes any length", "limits: {min: 0, max: 4096}", "limits: {min: 0, max: null}", diag.NullValue, "null"},
		{"text where a number belongs", "max: 4096}", "max: \"4096\"}", diag.WrongType, "\"4096\""},
		{"number that readers read differently", "max: 4096}", "max: 04096}", diag.SurprisingValue, "04096"},
		{"null that turns no engines into all engines", "worker_ids: [D2]", "worker_ids: null", diag.NullValue, "null"},
		{"list that is empty by mistake", "worker_ids: [D2]", "worker_ids: []", diag.NoMembers, "[]"},
		{"parallel lists of which one is short", "engines:\n", "urls: [a, b]\n        engines:\n", diag.UnknownField, "urls"},
		{"list of addresses where engines belong", "- {id: D2, url: \"http://10.0.0.12:30000\", role: decode, labels: {dp: b}}", "- http://10.0.0.12:30000", diag.WrongType, "- http"},
		{"variable that nobody set", "http://10.0.0.12:30000", "http://${DECODE_HOST}:30000", diag.BadURL, "DECODE_HOST"},
		{"secret written out where a reference belongs", "affinity: {memory: {max_entries: 1000000}", "affinity: {redis: {url: \"redis://:pw@r\"}", diag.BadSpelling, "redis"},
		{"address of the listener as a destination", "10.0.0.12:30000", "0.0.0.0:30000", diag.UnspecifiedHost, "0.0.0.0"},

		// Accepted, and degraded for ever.
		{"prefix routing without tokens", "    tokenizer: {path: /models/m}\n", "", diag.NoTokens, "cache_aware"},
		{"prefix routing without a source that is named", "  prefix: {local: {max_blocks: 1000000}}\n", "", diag.DefaultIndex, "cache_aware"},
		{"prefix routing that no prompt is long enough for", "limits: {min: 0, max: 4096}", "limits: {min: 0, max: 512}", diag.NeverHits, "cache_aware"},
		{"load that is stale before it is polled again", "\nstate:\n", "\nstate:\n  load: {poll_interval: 10s}\n", diag.StalePolls, "10s"},
		{"pairs that cannot exchange a cache", "role: decode, labels: {dp: b}", "role: decode, labels: {dp: c}", diag.UnpairedEngine, "id: P2"},
		{"limits that the fallback forgets", "type: load_based, admission: {max_running_requests: 8}", "type: load_based", diag.LimitBypassed, "load_based"},
		{"lengths that nothing covers", "max_context_tokens: 131072", "limits: {min: 8192}\n        max_context_tokens: 131072", diag.LengthGap, "min: 8192"},
		{"affinity header that a proxy drops", "x-session-id", "x_session_id", diag.LostHeader, "x_session_id"},
	}
}

// TestSilentMistakes: what others accept without a word gets a finding at its
// place here, among nothing but findings that follow from the same mistake.
func TestSilentMistakes(t *testing.T) {
	compileText := func(t *testing.T, text string) compiler.Result {
		t.Helper()
		path := filepath.Join(t.TempDir(), "routing.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return compileFiles(t.Context(), compiler.Options{}, path)
	}
	if r := compileText(t, fleetText); len(r.Findings) > 0 {
		t.Fatalf("without a mistake\n%s", textReport(t, r))
	}
	for _, m := range silentMistakes() {
		t.Run(m.mistake, func(t *testing.T) {
			if strings.Count(fleetText, m.old) == 0 {
				t.Fatalf("the configuration has no %q", m.old)
			}
			text := strings.Replace(fleetText, m.old, m.new, 1)
			lines := strings.Split(text, "\n")
			r := compileText(t, text)
			if !slices.ContainsFunc(r.Findings, func(f diag.Finding) bool {
				return f.Code == m.code && f.Pos.Known() && strings.Contains(lines[f.Pos.Line-1], m.at)
			}) {
				t.Errorf("no %s at %q\n%s", m.code, m.at, textReport(t, r))
			}
			if len(r.Findings) > 4 {
				t.Errorf("one mistake gives\n%s", textReport(t, r))
			}
		})
	}
}

// TestAllMistakesAtOnce: others stop at the first mistake. Here one run reports
// three that stand far apart.
func TestAllMistakesAtOnce(t *testing.T) {
	text := strings.NewReplacer("\nstate:", "\nstat:", "role: decode, labels: {dp: b}", "role: decod", "worker_ids: [D2]", "worker_ids: [D7]").Replace(fleetText)
	path := filepath.Join(t.TempDir(), "routing.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := compileFiles(t.Context(), compiler.Options{}, path)
	got := fmt.Sprint(r.Findings)
	for _, code := range []diag.Code{diag.UnknownField, diag.UnknownValue, diag.UnknownEngine} {
		if !strings.Contains(got, string(code)) {
			t.Errorf("no %s among\n%s", code, got)
		}
	}
}
