package migrate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/migrate"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/bucketfile"
)

// fleet is a command line with engines p1, p2, d1 and d2.
const fleet = "--model-id m --tokenizer-path /t --shutdown-drain-secs 5 --worker-urls http://p1 http://p2 http://d1 http://d2 --bucket-config b.json "

// pairsOf reads answers such as "a=b=c".
func pairsOf(t *testing.T, words ...string) (out []bucketfile.Pair) {
	t.Helper()
	for i, w := range words {
		p, err := bucketfile.ParsePair(w, i+1)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// withBuckets migrates the fleet with a bucket file and decisions.
func withBuckets(t *testing.T, line, file, decisions string, words ...string) migrate.Result {
	t.Helper()
	o := migrate.Options{
		Pairs: pairsOf(t, words...), Roles: []migrate.RoleAnswer{{Role: "prefill", BootstrapPort: 8998}},
		ReadFile: func(name string) ([]byte, error) {
			if name != "b.json" {
				return nil, os.ErrNotExist
			}
			return []byte(file), nil
		},
	}
	if decisions != "" {
		o.Decisions = migrate.Document{Name: "d.yaml", Data: []byte(decisions)}
	}
	args := strings.Fields(line)
	r := migrate.Migrate(t.Context(), argv.FromArgs(args), nil, o)
	accounted(t, args, r.Report)
	if err := r.Report.Complete(); err != nil {
		t.Error(err)
	}
	newJudge(t).result(t, r, o)
	return r
}

const twoPairs = `{"ttft_slo_policy": "slo_first", "buckets": [
 {"id": "ps", "stage": "prefill", "rank": 2, "worker_ids": ["http://p1"], "max_extend_tokens": 6000, "max_context_tokens": 12000,
  "ttft_p95_at_capacity_ms": 250, "max_pending_prefill_tokens": 40000},
 {"id": "pb", "stage": "prefill", "rank": 1, "worker_ids": ["http://p2"], "max_context_tokens": 100000},
 {"id": "ds", "stage": "decode", "rank": 2, "worker_ids": ["http://d1"], "max_sequence_tokens": 12000, "tps_p05_at_capacity": 35.5},
 {"id": "db", "stage": "decode", "rank": 1, "worker_ids": ["http://d2"], "max_context_tokens": 100000}]}`

// TestPairs is a whole bucket file with both stages.
func TestPairs(t *testing.T) {
	r := withBuckets(t, fleet+"--policy round_robin --filter overloaded --max-in-flight 48", twoPairs, "", "ps=ds=small", "pb=db=big")
	if r.Config == nil {
		t.Fatal(report(t, r))
	}
	for _, want := range []string{
		"      - id: small # decision (--pair 1), /buckets/0/id (b.json:2:9), /buckets/2/id (b.json:5:9)",
		"        rank: 2 # /buckets/0/rank (b.json:2:43), /buckets/2/rank (b.json:5:42)",
		"          max: 6000 # /buckets/0/max_extend_tokens (b.json:2:96)",
		"        max_context_tokens: 12000 # ",
		"        ttft_ms: 250 # ",
		"        tokens_per_second: 35.5 # ",
		"    ttft_slo: slo_first # ",
		"    tps_slo: disabled # default: tps_slo: disabled",
		`              worker_ids: ["http://p1"] # /buckets/0/worker_ids (b.json:2:60)`,
		"                  max_inflight_requests: 48 # --max-in-flight 48 (argv 18), --filter overloaded (argv 16)",
		"                  max_pending_prefill_tokens: 40000 # /buckets/0/max_pending_prefill_tokens (b.json:3:65)",
		"            role: prefill\n            bootstrap_port: 8998",
	} {
		if !strings.Contains(string(r.Config), want) {
			t.Errorf("no %q in\n%s", want, r.Config)
		}
	}
	f := func(field string, want migrate.Outcome, about string) {
		t.Helper()
		l := lineOf(r.Report, field+" ")
		if l.Outcome != want || !strings.Contains(fmt.Sprint(l), about) {
			t.Errorf("%s: got %+v, want %s with %q", field, l, want, about)
		}
	}
	f("/ttft_slo_policy", migrate.Renamed, "/models/0/ttft_slo")
	f("/buckets/0/id", migrate.Renamed, "/models/0/buckets/0/id")
	f("/buckets/0/stage", migrate.Renamed, "/models/0/buckets/0/groups/pd/prefill")
	f("/buckets/0/rank", migrate.Changed, "tried by capacity")
	f("/buckets/0/worker_ids", migrate.Carried, "")
	f("/buckets/0/max_extend_tokens", migrate.Renamed, "/models/0/buckets/0/limits/max")
	f("/buckets/0/max_context_tokens", migrate.Changed, "bounds the expected peak")
	f("/buckets/0/max_pending_prefill_tokens", migrate.Changed, "below 40000")
	f("/buckets/0/max_pending_prefill_tokens", migrate.Changed, "not replaced by another one")
	f("/buckets/0/max_pending_prefill_tokens", migrate.Changed, "the answer is 503")
	f("/buckets/2/stage", migrate.Changed, "both are picked again from the next")
	f("/buckets/2/max_sequence_tokens", migrate.Changed, "held to its input")
	f("/buckets/2/tps_p05_at_capacity", migrate.Renamed, "tokens_per_second")
	f("/buckets/3/max_context_tokens", migrate.Carried, "")
	f("--policy", migrate.Changed, "cursor")
	f("--bucket-config", migrate.Renamed, "/models/0/buckets")
	// Both stages tried the big bucket first, for requests that fit both.
	if got := fmt.Sprint(r.Report.Swaps); got != "[{small big prefill} {small big decode}]" {
		t.Errorf("got %s", got)
	}
	if got := report(t, r); !strings.Contains(got, "small is now tried before big; the decode stage tried it after") {
		t.Errorf("got %s", got)
	}
}

// TestStickyCursor: the cursor of a fallback belongs to its group as well.
func TestStickyCursor(t *testing.T) {
	f := func(words string, want bool) {
		t.Helper()
		r := withBuckets(t, fleet+"--policy sticky"+words, twoPairs, "", "ps=ds=small", "pb=db=big")
		l := lineOf(r.Report, "--sticky-fallback-policy")
		if got := slices.ContainsFunc(l.Changes, func(c migrate.Change) bool { return c.Row == migrate.RoundRobinCursor }); got != want {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
	f("", true)
	f(" --sticky-fallback-policy round_robin", true)
	f(" --sticky-fallback-policy random", false)
}

// TestAssociation: pairs are never inferred, and whatever is open stops the
// migration and is in the template.
func TestAssociation(t *testing.T) {
	f := func(line, file, decisions, want, template string, words ...string) {
		t.Helper()
		r := withBuckets(t, line, file, decisions, words...)
		if got := report(t, r); (r.Config != nil) != (want == "") || !strings.Contains(got, want) || !strings.Contains(string(r.Template), template) {
			t.Errorf("no %q or %q in\n%s\n%s", want, template, got, r.Template)
		}
	}
	f(fleet, twoPairs, "", `Which decode bucket belongs to the prefill bucket "ps"?`, "  - prefill: ps\n    decode: TODO")
	f(fleet, twoPairs, "", `Which decode bucket belongs to the prefill bucket "pb"?`, "  - prefill: pb\n    decode: TODO", "ps=ds")
	f(fleet, twoPairs, "version: 1\npairs:\n  - {prefill: ps, decode: ds}\n", "", "", "pb=db")
	f(fleet, twoPairs, "", "Which rank", "rank: TODO", "ps=db", "pb=ds")
	f(fleet, strings.Replace(twoPairs, `"max_sequence_tokens": 12000`, `"min_sequence_tokens": 5, "max_sequence_tokens": 12000`, 1), "", "min_sequence_tokens 5 has no equivalent", "", "ps=ds", "pb=db")
	f(fleet, `{"buckets": [{"id": "a", "stage": "prefill", "rank": 1, "worker_ids": ["http://p1"]}]}`, "", "Is the prefill bucket", "as: TODO")
	f("--model-id m --tokenizer-path /t --worker-urls http://p1 --bucket-config b.json", `{"buckets": [{"id": "a", "stage": "prefill", "rank": 1, "worker_ids": ["http://p1"]}]}`,
		"version: 1\nlone:\n  - {spec: a, as: plain}\n", "is not needed", "")
	f(fleet, "{", "", "SH0101", "")
	f(fleet, `{"buckets": [{"id": "a", "stage": "prefill", "rank": 1, "worker_ids": [], "heat": 1}]}`, "", "heat", "")
	f(fleet, strings.Replace(twoPairs, "http://d2", "http://d2/", 1), "", "exactly as --worker-urls has it", "", "ps=ds", "pb=db")
	f(fleet, strings.Replace(twoPairs, "http://d2", "http://d9", 1), "", `the model has no engine "http://d9"`, "", "ps=ds", "pb=db")
	f(fleet, strings.Replace(twoPairs, "http://d2", "http://p1", 1), "", "is used as decode here, and is prefill", "", "ps=ds", "pb=db")
	f(fleet, twoPairs, "version: 1\nengines:\n  - {url: \"http://p1\", role: plain}\n", "is used as prefill here, and is plain", "", "ps=ds", "pb=db")
	f(fleet, twoPairs, "version: 1\nengines:\n  - {url: \"http://x\", role: plain}\n", "has no engine http://x", "", "ps=ds", "pb=db")
	f(fleet, twoPairs, "version: 1\nengines:\n  - {url: \"http://p1\", id: P1, role: prefill, bootstrap_port: 9}\n", "", "", "ps=ds", "pb=db")
	f(fleet, twoPairs, "version: 2\n", "only 1 is known", "", "ps=ds", "pb=db")
	f(strings.Replace(fleet, "b.json", "c.json", 1), "", "", "cannot be read", "")
}

// TestBudgetsAreKept: without a policy the budgets wait, and are in a file with
// marks.
func TestBudgetsAreKept(t *testing.T) {
	r := withBuckets(t, fleet+"--policy fused_score --filter overloaded --max-in-flight 48", twoPairs, "", "ps=ds", "pb=db")
	if l := lineOf(r.Report, "/buckets/0/max_pending_prefill_tokens"); l.Outcome != migrate.NeedsDecision || r.Config != nil {
		t.Errorf("got %+v", l)
	}
	args := strings.Fields(whole + "--policy fused_score --filter overloaded --max-in-flight 48")
	r = migrate.Migrate(t.Context(), argv.FromArgs(args), nil, migrate.Options{Partial: true, Roles: []migrate.RoleAnswer{{Role: "plain"}}})
	if !strings.Contains(string(r.Config), "max_inflight_requests: 48 # ") {
		t.Errorf("got %s", r.Config)
	}
}

// TestManyBuckets: a file of thousands of buckets takes seconds and not minutes.
func TestManyBuckets(t *testing.T) {
	const n = 1500
	var specs, urls, decisions strings.Builder
	for i := range n {
		fmt.Fprintf(&specs, `{"id": "p%d", "stage": "prefill", "rank": %d, "worker_ids": ["http://p%[1]d"], "max_extend_tokens": %[3]d},`+"\n", i, n-i, 100+i)
		fmt.Fprintf(&specs, `{"id": "d%d", "stage": "decode", "rank": %d, "worker_ids": ["http://d%[1]d"]},`+"\n", i, n-i)
		fmt.Fprintf(&urls, " http://p%d http://d%[1]d", i)
		fmt.Fprintf(&decisions, "  - {prefill: p%d, decode: d%[1]d}\n", i)
	}
	r := withBuckets(t, "--model-id m --tokenizer-path /t --bucket-config b.json --worker-urls"+urls.String(),
		`{"buckets": [`+strings.TrimSuffix(specs.String(), ",\n")+"]}", "version: 1\npairs:\n"+decisions.String())
	if r.Config == nil || len(r.Report.Swaps) != 200 || r.Report.MoreSwaps == 0 {
		t.Errorf("%d swaps and %d more\n%.600s", len(r.Report.Swaps), r.Report.MoreSwaps, report(t, r))
	}
}

// TestChoices: the sample of the neighbouring version needs an answer.
func TestChoices(t *testing.T) {
	line := "--model-id m --worker-urls http://p1 --policy power_of_n --chat-routing reorg --power-of-n-choices 3"
	o := migrate.Options{Roles: []migrate.RoleAnswer{{Role: "plain"}}}
	r := migrate.Migrate(t.Context(), argv.FromArgs(strings.Fields(line)), nil, o)
	if r.Config != nil || !strings.Contains(string(r.Template), "choices: TODO") {
		t.Errorf("got %s%s", r.Config, r.Template)
	}
	o.Decisions = migrate.Document{Name: "d.yaml", Data: []byte("version: 1\nchoices: 3\ntokenizer: engine\n")}
	r = migrate.Migrate(t.Context(), argv.FromArgs(strings.Fields(line)), nil, o)
	if !strings.Contains(string(r.Config), "choices: 3 # --power-of-n-choices 3") {
		t.Errorf("got %s%s", r.Config, report(t, r))
	}
}

// TestKubernetes: the decisions list the engines that selectors would have found.
func TestKubernetes(t *testing.T) {
	line := "--model-id m --service-discovery --service-discovery-namespace n --prefill-selector app=p,x=y --decode-selector app=d"
	r := migrate.Migrate(t.Context(), argv.FromArgs(strings.Fields(line)), nil, migrate.Options{})
	if want := "--prefill-selector app=p,x=y select? Write an entry for each.\n  - url: TODO\n    role: prefill\n    bootstrap_port: TODO"; r.Config != nil || !strings.Contains(string(r.Template), want) {
		t.Errorf("got %s", r.Template)
	}
	o := migrate.Options{Decisions: migrate.Document{Name: "d.yaml", Data: []byte("version: 1\nengines:\n" +
		"  - {url: \"http://p\", id: n/1, role: prefill, bootstrap_port: 9}\n  - {url: \"http://d\", id: n/2, role: decode}\n")}}
	r = migrate.Migrate(t.Context(), argv.FromArgs(strings.Fields(line)), nil, o)
	if got := report(t, r); r.Config == nil || lineOf(r.Report, "--prefill-selector").Outcome != migrate.Changed || !strings.Contains(string(r.Config), `- id: "n/1" # decision (d.yaml:3:5)`) {
		t.Errorf("got %s%s", r.Config, got)
	}
}

// TestOtherFormats: the bucket files of later versions are complete already.
func TestOtherFormats(t *testing.T) {
	f := func(line, file, config, want string) {
		t.Helper()
		r := withBuckets(t, line, file, "")
		if got := report(t, r); (config != "") != (r.Config != nil) || !strings.Contains(string(r.Config), config) || !strings.Contains(got, want) {
			t.Errorf("no %q or %q in\n%s%s", config, want, r.Config, got)
		}
	}
	const urls = "--model-id m --tokenizer-path /t --worker-urls http://p1 http://d1 "
	const reorg = `{"ttft_slo": "disabled", "session": {"header": "x-s", "idle_secs": 9}, "buckets": [{"id": "a", "groups": {"mode": "pd",
 "prefill": {"policy": "session_aware", "worker_ids": ["http://p1"], "admission": {"max_running_requests": 0}}, "decode": {"policy": "power_of_two", "worker_ids": ["http://d1"]}}}]}`
	f(urls+"--reorg-config b.json", reorg, "                type: session_aware # /buckets/0/groups/prefill/policy (b.json:2:24)", "max_running_requests")
	f(urls+"--reorg-config b.json", reorg, "    idle: 9s # /session/idle_secs", "")
	f(urls+"--reorg-config b.json", reorg, "max_running_requests: 0", "[SH0308]")
	r := withBuckets(t, urls+"--reorg-config b.json", strings.Replace(reorg, `["http://d1"]`, "[]", 1), "version: 1\nengines: [{url: \"http://d1\", role: decode}]\n")
	if got := report(t, r); !strings.Contains(string(r.Config), "worker_ids: []") || !strings.Contains(got, "[SH0305]") {
		t.Errorf("got %s%s", r.Config, got)
	}
	f(urls+"--reorg-config b.json --policy random", reorg, "", "and --reorg-config exclude each other")
	f(urls+"--bucket-config b.json --chat-routing reorg", `{"buckets": [{"id": "a", "prefill": {"worker_ids": ["http://p1"]}, "decode": {"worker_ids": ["http://d1"], "admission": {"max_kv_usage": 0.5}}}]}`, "", "a share of a capacity")
	f(urls+"--bucket-config b.json --chat-routing reorg", `{"buckets": [{"id": "a", "rank": 3, "prefill": {"worker_ids": ["http://p1"]}, "decode": {"worker_ids": ["http://d1"], "admission": {"max_waiting_requests": 5}}}]}`,
		"                  max_waiting_requests: 5 # ", "")
	f(urls+"--bucket-config b.json --chat-routing reorg", `{"buckets": [{"id": "a", "prefill": {"worker_services": ["n/s"]}, "decode": {}}]}`, "", "services of Kubernetes")
}

// TestRandomBuckets: with all pairs given, every field is accounted for once and
// the configuration compiles; without, every field still is.
func TestRandomBuckets(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 1 + r.IntN(4)
		var specs, urls, pairs []string
		for i := range n {
			low := r.IntN(1000)
			p := fmt.Sprintf(`{"id": "p%d", "stage": "prefill", "rank": %d, "worker_ids": ["http://p%[1]d"]`, i, i)
			if r.IntN(2) == 0 {
				p += fmt.Sprintf(`, "min_extend_tokens": %d, "max_extend_tokens": %d`, low, low+r.IntN(1000))
			}
			if r.IntN(2) == 0 {
				p += fmt.Sprintf(`, "max_pending_prefill_tokens": %d`, 1+r.IntN(9999))
			}
			if r.IntN(2) == 0 {
				p += fmt.Sprintf(`, "ttft_p95_at_capacity_ms": %d`, 1+r.IntN(99))
			}
			d := fmt.Sprintf(`{"id": "d%d", "stage": "decode", "rank": %d, "worker_ids": ["http://d%[1]d"]`, i, i)
			if r.IntN(2) == 0 {
				d += fmt.Sprintf(`, "max_sequence_tokens": %d`, 2000+r.IntN(9999))
			}
			if r.IntN(2) == 0 {
				d += `, "tps_p05_at_capacity": 1.5`
			}
			specs = append(specs, p+"}", d+"}")
			urls = append(urls, fmt.Sprintf("http://p%d http://d%[1]d", i))
			pairs = append(pairs, fmt.Sprintf("p%d=d%[1]d", i))
		}
		r.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
		line := "--model-id m --tokenizer-path /t --bucket-config b.json --worker-urls " + strings.Join(urls, " ")
		file := `{"buckets": [` + strings.Join(specs, ",\n") + "]}"
		if got := withBuckets(t, line, file, "", pairs...); got.Config == nil {
			t.Fatalf("seed %d: %s\n%s", seed, file, report(t, got))
		}
		withBuckets(t, line, file, "", pairs[:r.IntN(n)]...)
		withBuckets(t, line, file[:r.IntN(len(file))], "", pairs...)
	}
}
