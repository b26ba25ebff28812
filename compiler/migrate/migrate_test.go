package migrate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/diag"
	"shunt/compiler/migrate"
	"shunt/compiler/migrate/argv"
)

// run migrates words separated by spaces with whole engines, or with a pair when
// the words begin with "pd".
func run(t *testing.T, text string, o migrate.Options) migrate.Result {
	t.Helper()
	args := strings.Fields(text)
	if o.Roles == nil {
		o.Roles = []migrate.RoleAnswer{{Role: "plain"}}
	}
	if len(args) > 0 && args[0] == "pd" {
		args = args[1:]
		o.Roles = []migrate.RoleAnswer{{URL: "http://a:1", Role: "prefill", BootstrapPort: 8998}, {URL: "http://b:1", Role: "decode"}}
	}
	r := migrate.Migrate(t.Context(), argv.FromArgs(args), nil, o)
	accounted(t, args, r.Report)
	return r
}

func report(t *testing.T, r migrate.Result) string {
	t.Helper()
	var b strings.Builder
	if err := r.Report.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	whole = "--model-id m --tokenizer-path /t --shutdown-drain-secs 5 --worker-urls http://a:1 http://b:1 "
	pairs = "pd " + whole
)

// lineOf finds the line of an argument.
func lineOf(r *migrate.Report, name string) *migrate.Line {
	i := slices.IndexFunc(r.Lines, func(l *migrate.Line) bool { return strings.HasPrefix(strings.Trim(l.Source, "'"), name) })
	if i < 0 {
		return &migrate.Line{}
	}
	return r.Lines[i]
}

// TestMapping: an argument, the outcome of its line, and what the configuration
// has of it.
func TestMapping(t *testing.T) {
	f := func(text, name string, want migrate.Outcome, lines ...string) {
		t.Helper()
		r := run(t, text, migrate.Options{})
		if got := lineOf(r.Report, name).Outcome; got != want || r.Config == nil {
			t.Errorf("%s: %s, want %s\n%s", text, got, want, report(t, r))
		}
		for _, line := range lines {
			if !strings.Contains(string(r.Config), "\n"+strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " ")))+strings.TrimLeft(line, " ")) {
				t.Errorf("%s: no line %q in\n%s", text, line, r.Config)
			}
		}
	}
	f(whole, "--model-id", migrate.Carried, "  - id: m # --model-id m (argv 1)")
	f(whole, "--tokenizer-path", migrate.Carried, `      path: "/t" # --tokenizer-path /t (argv 3)`)
	f(whole, "--shutdown-drain-secs", migrate.Carried, "  drain_delay: 5s # ", "  drain_timeout: 600s # ", "  header_timeout: 600s # ")
	f(whole+"--disable-input-ids-forwarding", "--tokenizer-path", migrate.Carried)
	f(whole+"--disable-input-ids-forwarding --policy cache_aware", "--disable-input-ids-forwarding", migrate.Renamed, "      forward_input_ids: false # ")
	f(whole+"--host 0.0.0.0 --port +30001", "--port", migrate.Carried, `  listen: "0.0.0.0:30001" # `, `  admin: "127.0.0.1:30002" # `)
	f(whole+"--termination-grace-secs 65", "--termination-grace-secs", migrate.Changed, "  drain_timeout: 60s # ")
	f(whole+"--termination-grace-secs 6500", "--termination-grace-secs", migrate.Carried, "  drain_timeout: 600s # ")
	f(whole+"--request-timeout-secs 1200", "--request-timeout-secs", migrate.Changed, "  request_timeout: 600s # ")
	f(whole+"--request-timeout-secs 1200 --stale-request-timeout-secs 3600", "--request-timeout-secs", migrate.Carried, "  request_timeout: 1200s # ", "  stale_timeout: 3600s # ", "  header_timeout: 3600s # ")
	f(whole+"--request-timeout-secs 2", "--request-timeout-secs", migrate.Carried, "  request_timeout: 2s # ", "  connect_timeout: 2s # ")
	f(whole+"--stale-request-timeout-secs 99999999999", "--stale-request-timeout-secs", migrate.Changed, "  stale_timeout: 31536000s # ")
	f(whole+"--log-level trace", "--log-level", migrate.Changed, "    level: debug # ")
	f(whole+"--log-level warn,hyper=info", "--log-level", migrate.Changed, "    level: warn # ")
	f(whole+"--cb-threshold 5 --cb-cool-down-secs 0", "--cb-cool-down-secs", migrate.Changed, "      threshold: 5 # --cb-threshold 5 (argv 10)", "      cool_down: 1ms # ")
	f(whole+`--override-sampling-params {"top_k":20.0,"n":{"min":1,"max":2}}`, "--override-sampling-params", migrate.Carried, "        top_k: 20 # ", "          min: 1")
	f(whole+"--policy round_robin", "--policy", migrate.Renamed, "        type: round_robin # --policy round_robin (argv 10)")
	f(whole+"--policy power_of_n", "--policy", migrate.Changed, "        type: power_of_two # ")
	f(whole+"--chat-routing reorg", "--chat-routing", migrate.Carried, "        type: power_of_two # ")
	f(whole+"--chat-routing reorg --policy session_aware", "--policy", migrate.Renamed, "        type: session_aware # ")
	f(whole+"--chat-routing reorg --filter overloaded --max-in-flight 9", "--filter", migrate.Renamed)
	f(whole+"--chat-routing legacy", "--chat-routing", migrate.Changed, "        type: round_robin # ")
	f(whole+"--policy load_based", "--policy", migrate.Renamed, "        type: load_based # ")
	f(whole+"--policy session_aware", "--affinity-mode", migrate.Changed, "        type: session_aware # ")
	f(whole+"--policy session_aware --affinity-mode strict --session-affinity-mode bucket", "--session-affinity-mode", migrate.Carried)
	f(whole+"--policy session_aware --session-id-header X-S --session-idle-secs 7", "--session-id-header", migrate.Carried, "      session_id_header: X-S # ", "    idle: 7s # ")
	f(whole+"--policy sticky --sticky-fallback-policy load_based", "--sticky-fallback-policy", migrate.Carried, "        fallback: load_based # ")
	f(whole+"--policy cache_aware --min-load-choices 4", "--min-load-choices", migrate.Carried, "        min_load_choices: 4 # ", "    local: {} # ")
	f(whole+"--policy cache_aware --disable-pressure-guard", "--disable-pressure-guard", migrate.Renamed, "        pressure_guard: false # ")
	f(whole+"--policy cache_aware --kv-indexer-endpoint http://i:1 --kv-indexer-query-timeout-ms 5", "--kv-indexer-query-timeout-ms", migrate.Carried, `      endpoint: "http://i:1" # `, "      query_timeout: 5ms # ")
	f(whole+"--filter overloaded --max-in-flight 9", "--max-in-flight", migrate.Renamed, "          max_inflight_requests: 9 # --max-in-flight 9 (argv 12), --filter overloaded (argv 10)")
	f(pairs+"--filter overloaded --max-in-flight 9", "--filter", migrate.Changed, "      decode_policy:", "        type: power_of_two # default: --decode-policy (not given: power_of_two)", "            bootstrap_port: 8998")
}

// TestRefused: an argument, the code of what keeps it out, and the way out.
func TestRefused(t *testing.T) {
	f := func(text string, code diag.Code, hint string) {
		t.Helper()
		r := run(t, text, migrate.Options{})
		if r.Config != nil || r.Report.Fine() {
			t.Errorf("%s: written", text)
		}
		if !slices.ContainsFunc(r.Report.All(), func(f diag.Finding) bool { return f.Code == code && strings.Contains(f.Hint, hint) }) {
			t.Errorf("%s: no %s with %q\n%s", text, code, hint, report(t, r))
		}
		partial := run(t, text, migrate.Options{Partial: true})
		if !strings.Contains(string(partial.Config), "TODO(shunt)") || !partial.Report.Partial {
			t.Errorf("%s: no mark in\n%s", text, partial.Config)
		}
	}
	f(whole+"--policy fused_score", diag.LegacyDropped, "use --policy cache_aware")                                       // D1
	f(whole+"--policy score_policy", diag.LegacyDropped, "use --policy cache_aware")                                      // D2
	f(whole+"--policy score_policy --fuse random=2", diag.LegacyDropped, "terms and weights")                             // D3
	f(pairs+"--decode-policy legacy_host_affinity", diag.LegacyDropped, "write --decode-policy power_of_two")             // D4
	f(whole+"--policy session_aware --stable-pair", diag.LegacyDropped, "remove it")                                      // D5
	f(whole+"--policy session_aware --affinity-mode soft", diag.LegacyDropped, "strict")                                  // D6
	f(whole+"--filter prefix_cache --prefix-cache-min-share 0.5", diag.LegacyDropped, "--cache-affinity-min-match-ratio") // D7, D8
	f(whole+"--policy session_aware --pressure-rel-threshold 2", diag.LegacyDropped, "remove it")                         // D9
	f(whole+"--policy session_aware --disable-pressure-guard", diag.LegacyDropped, "remove it")                           // D9
	f(whole+"--policy session_aware --session-affinity-mode global-rebind", diag.LegacyDropped, "write bucket")           // D10
	f(whole+"--policy session_aware --session-affinity-mode global-preserve", diag.LegacyDropped, "write bucket")         // D10
	f(whole+"--host ::1", diag.LegacyValue, "in brackets")
	f(whole+"--no-such", diag.LegacyUnknown, "remove it")                                                                    //
	f(whole+"--cache-threshold 0.5", diag.LegacyOtherVersion, "--cache-affinity-min-match-ratio")                            //
	f(whole+"--port x", diag.LegacyValue, "whole number")                                                                    //
	f(whole+"--port", diag.LegacySyntax, "write a value")                                                                    //
	f("--worker-urls http://a:1", diag.LegacyMissing, "add --model-id")                                                      //
	f(whole+"--min-load-choices 3", diag.LegacyConflict, "use --policy cache_aware")                                         // D18
	f(whole+"--request-timeout-secs 0", diag.LegacyNoEquivalent, "from 1")                                                   //
	f(whole+"--log-level verbose", diag.LegacyNoEquivalent, "write debug")                                                   //
	f("--model-id m --worker-urls http://u:p@a:1", diag.LegacyNoEquivalent, "host and port")                                 //
	f("--model-id m --worker-urls http://a:1/v1", diag.LegacyNoEquivalent, "host and port")                                  //
	f(whole+"--policy cache_aware --kv-indexer-endpoint grpc://i:1", diag.LegacyNoEquivalent, "http://")                     //
	f(whole+"--policy cache_aware --cache-switch-margin-tokens 9007199254740992", diag.LegacyNoEquivalent, "at most")        //
	f(whole+"--power-of-n-choices 3 --chat-routing reorg", diag.LegacyDecision, "choices")                                   //
	f("--model-id m --service-discovery --selector app=x", diag.LegacyDecision, "under engines")                             //
	f("--model-id m --service-discovery --prefill-selector a=p --decode-selector a=d", diag.LegacyDecision, "under engines") //
	f(whole+"--reorg-config x.json", diag.LegacyDecision, "--bucket-config FILE")
	f(whole+"--bucket-config x.json", diag.LegacyDecision, "--bucket-config FILE") //
}

// TestRoles: nothing but an answer says what an engine does.
func TestRoles(t *testing.T) {
	f := func(want string, roles ...string) {
		t.Helper()
		o := migrate.Options{Roles: []migrate.RoleAnswer{}}
		for _, word := range roles {
			a, err := migrate.ParseRole(word)
			if err != nil {
				t.Fatal(err)
			}
			o.Roles = append(o.Roles, a)
		}
		r := run(t, whole, o)
		if got := report(t, r); want == "" && r.Config == nil || !strings.Contains(got, want) {
			t.Errorf("%q: no %q in\n%s", roles, want, got)
		}
	}
	f("asked the engines themselves: http://a:1, http://b:1")
	f("asked the engines themselves: http://b:1", "http://a:1=plain")
	f("", "plain")
	f("", "http://A:1/=prefill:8998", "decode")
	f("no engine has the URL http://c:1", "http://c:1=plain", "plain")
	f("every engine has an answer already", "http://a:1=plain", "http://b:1=plain", "decode")
	f("1 plain engines and 1 of pairs", "http://a:1=plain", "decode")
	f("has no bootstrap port, so both", "http://a:1=prefill", "decode")
	f("the model has no prefill engine", "decode")

	for _, word := range []string{"", "heavy", "=plain", "plain:1", "prefill:0", "prefill:x", "http://a:1=", "http://a:1"} {
		if _, err := migrate.ParseRole(word); err == nil {
			t.Errorf("%q is a role", word)
		}
	}
}

func TestTokenizer(t *testing.T) {
	const line = "--model-id org/m --shutdown-drain-secs 5 --worker-urls http://a:1 --policy "
	f := func(policy, choice, want string) {
		t.Helper()
		r := run(t, line+policy, migrate.Options{Tokenizer: choice})
		if r.Config == nil || strings.Contains(string(r.Config), "tokenizer:") != (want != "") || !strings.Contains(string(r.Config), want) {
			t.Errorf("%s, %s: no %q in\n%s%s", policy, choice, want, r.Config, report(t, r))
		}
	}
	f("random", "", "")
	f("cache_aware", "", "engine: {}")
	f("cache_aware", "/models/m", `path: "/models/m"`)
	f("random", "/models/m", `path: "/models/m"`)
	f("cache_aware", "none", "")
	f("cache_aware", "engine", "engine: {}")
}

func TestSecretsAreMasked(t *testing.T) {
	r := run(t, "--model-id m --worker-urls http://user:hunter2@a:1 --worker-api-key hunter2 --hf-token=hunter2 --kv-indexer-endpoint http://x?token=hunter2", migrate.Options{Partial: true})
	var b strings.Builder
	_ = r.Report.Text(&b)
	_ = r.Report.JSON(&b)
	_ = r.Report.Markdown(&b)
	if b.Write(r.Config); strings.Contains(b.String(), "hunter2") {
		t.Errorf("a secret is in\n%s", b.String())
	}
}

func TestEnvironment(t *testing.T) {
	in := argv.FromArgs(strings.Fields(whole + "--log-level info"))
	in.Env = []argv.Env{{Name: "RUST_LOG", Value: "warn"}, {Name: "HF_TOKEN", Hidden: true}, {Name: "HOME", Value: "/"}, {Name: "SGLANG_ROUTER_STREAM_SEND_STALL_SECS", Value: "3"}}
	r := migrate.Migrate(t.Context(), in, nil, migrate.Options{Partial: true, Roles: []migrate.RoleAnswer{{Role: "plain"}}})
	if got := report(t, r); !strings.Contains(string(r.Config), "level: warn # RUST_LOG=warn") ||
		!strings.Contains(got, "RUST_LOG overrides it") || !strings.Contains(got, "HF_TOKEN=***") || !strings.Contains(got, "SH0602") || strings.Contains(got, "HOME=/") {
		t.Errorf("got\n%s%s", r.Config, got)
	}
}

// TestReadingFailed: without an invocation there is nothing to migrate.
func TestReadingFailed(t *testing.T) {
	r := migrate.Migrate(t.Context(), argv.Invocation{}, diag.List{diag.New(diag.NoInvocation, diag.Pos{File: "x"}, "", "none")}, migrate.Options{Partial: true})
	if r.Config != nil || r.Report.Fine() {
		t.Errorf("got %s", r.Config)
	}
}

// TestOpenValue comes from a file.
func TestOpenValue(t *testing.T) {
	in, findings := argv.Read("run.sh", []byte("sgl-router --model-id m --worker-urls http://a:1 --port $PORT\n"), argv.Options{})
	r := migrate.Migrate(t.Context(), in, findings, migrate.Options{Roles: []migrate.RoleAnswer{{Role: "plain"}}})
	if l := lineOf(r.Report, "--port"); l.Outcome != migrate.NeedsDecision || l.Pos.String() != "run.sh:1:50" {
		t.Errorf("got %+v\n%s", l, report(t, r))
	}
}

func TestJSONReport(t *testing.T) {
	r := run(t, whole+"--stable-pair", migrate.Options{})
	var b strings.Builder
	if err := r.Report.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Format   string
		Version  int
		Complete bool
		Counts   map[string]int
		Lines    []struct {
			Outcome  string
			Elements []int
			Findings []struct{ Code, Do string }
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &d); err != nil {
		t.Fatal(err)
	}
	if d.Format != migrate.JSONFormat || d.Version != migrate.JSONVersion || d.Complete || d.Counts["rejected"] != 1 || len(d.Lines) < 5 {
		t.Errorf("got %s", b.String())
	}
}

// TestComplete: the check of the account finds what is missing and what is there
// twice.
func TestComplete(t *testing.T) {
	r := run(t, whole, migrate.Options{}).Report
	if err := r.Complete(); err != nil {
		t.Error(err)
	}
	r.Lines[0].Elements = append(r.Lines[0].Elements, 2)
	if r.Complete() == nil {
		t.Error("an element in two lines is not noticed")
	}
	r.Lines[0].Elements = nil
	if r.Complete() == nil {
		t.Error("an element in no line is not noticed")
	}
}

// TestSameBytes: one input, one output.
func TestSameBytes(t *testing.T) {
	line := pairs + "--policy session_aware --session-idle-secs 4 --session-eviction-interval-secs 5 --selector x"
	first := run(t, line, migrate.Options{Partial: true})
	for range 5 {
		again := run(t, line, migrate.Options{Partial: true})
		if string(again.Config) != string(first.Config) || report(t, again) != report(t, first) {
			t.Fatalf("got\n%s%s\nwant\n%s%s", again.Config, report(t, again), first.Config, report(t, first))
		}
	}
}

// TestEveryCode has a way to each code of the migration.
func TestEveryCode(t *testing.T) {
	twice := migrate.Options{Decisions: migrate.Document{Name: "d.yaml", Data: []byte("version: 1\nengines:\n" +
		"  - {url: \"http://a:1\", id: X, role: plain}\n  - {url: \"http://b:1\", id: X, role: plain}\n")}, Roles: []migrate.RoleAnswer{}}
	cases := map[diag.Code]struct {
		line    string
		options migrate.Options
	}{
		diag.LegacyUnknown:      {whole + "--no-such", migrate.Options{}},
		diag.LegacyOtherVersion: {whole + "--enable-retry", migrate.Options{}},
		diag.LegacySyntax:       {whole + "-x", migrate.Options{}},
		diag.LegacyValue:        {whole + "--port x", migrate.Options{}},
		diag.LegacyMissing:      {"", migrate.Options{}},
		diag.LegacyConflict:     {whole + "--fuse random", migrate.Options{}},
		diag.LegacyDropped:      {whole + "--fuse random", migrate.Options{}},
		diag.LegacyNoEquivalent: {whole + "--request-timeout-secs 0", migrate.Options{}},
		diag.LegacyDecision:     {whole, migrate.Options{Roles: []migrate.RoleAnswer{}}},
		diag.LegacyAdvice:       {"--model-id m", migrate.Options{}},
		diag.LegacyInvalid:      {whole, twice},
	}
	for _, e := range diag.Table() {
		if e.Code < "SH0600" || e.Code >= "SH0650" || e.Code == diag.LegacyOpen { // TestOpenValue
			continue
		}
		c, ok := cases[e.Code]
		r := run(t, c.line, c.options)
		if !ok || !slices.ContainsFunc(r.Report.All(), func(f diag.Finding) bool { return f.Code == e.Code }) {
			t.Errorf("%s is not in\n%s", e.Code, report(t, r))
		}
	}
}

// TestPages: the command on the page of a code gives that code.
func TestPages(t *testing.T) {
	for _, e := range diag.Table() {
		page, _ := diag.PageOf(e.Code)
		if e.Code < "SH0600" || e.Code >= "SH0650" {
			continue
		}
		if len(page.Commands) != 1 {
			t.Errorf("the page of %s has %d commands", e.Code, len(page.Commands))
			continue
		}
		options, args, direct := strings.Cut(page.Commands[0], " -- ")
		if !direct {
			continue // it reads files
		}
		o := migrate.Options{Roles: []migrate.RoleAnswer{}}
		if strings.Contains(options, "--role plain") {
			o.Roles = nil
		}
		r := run(t, args, o)
		if !slices.ContainsFunc(r.Report.All(), func(f diag.Finding) bool { return f.Code == e.Code }) {
			t.Errorf("%s is not in\n%s", e.Code, report(t, r))
		}
	}
}
