package migrate_test

import (
	"os"
	"strings"
	"testing"

	"shunt/compiler/migrate"
)

const firstConfig = `server: {host: 0.0.0.0, port: 8090}
observability: {log_level: info, log_format: json}
models:
  - id: a
    tokenizer_path: /models/a
    policy: power_of_two
    circuit_breaker: {cool_down_secs: 9}
  - id: b
    tokenizer_path: org/b
discovery:
  backend: static_file
  static_file: {path: workers.toml, poll_interval_ms: 1000}
proxy: {request_timeout_secs: 60}
active_load: {stale_request_timeout_secs: 300}
`

const firstWorkers = `[[workers]]
id = "w1"
url = "http://w1:1/"
mode = "plain"
model_ids = ["a"]
[[workers]]
id = "p"
url = "http://p:1"
mode = "prefill"
bootstrap_port = 8998
model_ids = ["b"]
[[workers]]
id = "d"
url = "http://d:1"
mode = "decode"
model_ids = ["b"]
`

// first migrates a configuration file of the first versions.
func first(t *testing.T, config, workers string, o migrate.Options) migrate.Result {
	t.Helper()
	o.ReadFile = func(name string) ([]byte, error) {
		if workers == "" {
			return nil, os.ErrNotExist
		}
		return []byte(workers), nil
	}
	if !migrate.IsConfigFile([]byte(config)) {
		t.Error("the file is not recognised")
	}
	r := migrate.MigrateFile(t.Context(), migrate.Document{Name: "c.yaml", Data: []byte(config)}, o)
	if err := r.Report.Complete(); err != nil {
		t.Error(err)
	}
	for _, f := range r.Report.All() {
		if f.Code == "SH0004" {
			t.Error(f)
		}
	}
	return r
}

func TestConfigFile(t *testing.T) {
	r := first(t, firstConfig, firstWorkers, migrate.Options{})
	for _, want := range []string{
		"# Made by shunt migrate of the configuration file of an older router.",
		`  listen: "0.0.0.0:8090" # /server/host "0.0.0.0" (c.yaml:1:16), /server/port 8090 (c.yaml:1:31)`,
		"  request_timeout: 60s # ", "  stale_timeout: 300s # ", "    format: json # ",
		"  - id: a # ", `      path: "/models/a" # `, "      cool_down: 9s # ", "        type: power_of_two # ",
		"          - id: w1 # /workers/0/id", `            url: "http://w1:1"`, "            bootstrap_port: 8998",
		"  - id: b # ", "        type: round_robin", "      decode_policy:",
	} {
		if want = strings.ReplaceAll(want, ` "0.0.0.0" (`, " ("); !strings.Contains(string(r.Config), strings.ReplaceAll(want, " 8090 (", " (")) {
			t.Errorf("no %q in\n%s%s", want, r.Config, report(t, r))
		}
	}
	if l := lineOf(r.Report, "/discovery/static_file/path"); l.Outcome != migrate.Changed {
		t.Errorf("got %+v", l)
	}
}

func TestConfigFileRefused(t *testing.T) {
	f := func(from, to, workers, want string) {
		t.Helper()
		r := first(t, strings.Replace(firstConfig, from, to, 1), workers, migrate.Options{})
		if got := report(t, r); r.Config != nil || !strings.Contains(got, want) {
			t.Errorf("%s: no %q in\n%s%s", to, want, r.Config, got)
		}
	}
	f("policy: power_of_two", "policy: cache_aware_zmq\n    cache_aware: {cache_threshold: 0.4}", firstWorkers, "removed in favour of cache_aware")
	f("policy: power_of_two", "policy: cache_aware_zmq\n    cache_aware: {cache_threshold: 0.4}", firstWorkers, "SH0602")
	f("", "", "", "name it with --workers FILE")
	f("", "", strings.Replace(firstWorkers, "plain", "heavy", 1), "heavy")
	f("port: 8090", "port: 80900", firstWorkers, "80900")
	f("backend: static_file", "backend: k8s\n  k8s: {namespace: n, label_selector: a=b}", firstWorkers, "list them under engines")
	f("request_timeout_secs: 60", "request_timeout_secs: 0", firstWorkers, "ends every request at once")
}

// TestConfigFileOfKubernetes takes the engines from the decisions file.
func TestConfigFileOfKubernetes(t *testing.T) {
	config := `server: {host: 127.0.0.1, port: 30000}
models: [{id: a, tokenizer_path: /t}]
discovery: {backend: k8s, k8s: {namespace: n, label_selector: a=b}}
`
	config = strings.Replace(config, "models: [", "models:\n  [", 1)
	r := first(t, config, "", migrate.Options{Decisions: migrate.Document{Name: "d.yaml", Data: []byte("version: 1\nengines: [{url: \"http://e\", role: plain}]\n")}})
	if r.Config == nil || !strings.Contains(string(r.Config), `- id: "http://e" # decision (d.yaml:2:11)`) {
		t.Errorf("got %s%s", r.Config, report(t, r))
	}
}

// TestUselessAnswersAboutConfigFiles: an answer that nothing asked for is not
// taken in silence.
func TestUselessAnswersAboutConfigFiles(t *testing.T) {
	f := func(decisions, want string, o migrate.Options) {
		t.Helper()
		if decisions != "" {
			o.Decisions = migrate.Document{Name: "d.yaml", Data: []byte("version: 1\n" + decisions)}
		}
		r := first(t, firstConfig, firstWorkers, o)
		if got := report(t, r); r.Config != nil || strings.Count(got, want) != 1 {
			t.Errorf("not once %q in\n%s", want, got)
		}
	}
	f("choices: 3", "the answer choices is not needed", migrate.Options{})
	f(`engines: [{url: "http://q", role: plain}]`, "d.yaml:2:11: the answer is about an engine", migrate.Options{})
	f("pairs: [{prefill: a, decode: b}]", "d.yaml:2:9: the answer is about a bucket of one stage", migrate.Options{})
	f("lone: [{spec: a, as: drop}]", "d.yaml:2:8: the answer is about a bucket of one stage", migrate.Options{})
	f("", "the answer --role plain is not needed", migrate.Options{Roles: []migrate.RoleAnswer{{Role: "plain"}}})
}

// TestConfigFileMistakesAtOnce: a mistake of shape hides no other mistake, and
// files of any damage are judged.
func TestConfigFileMistakesAtOnce(t *testing.T) {
	text := strings.Replace(firstConfig, "policy: power_of_two", "policy: cache_aware_zmq\n    cache_aware: {cache_threshold: 0.5}", 1)
	text = strings.Replace(text, "cool_down_secs: 9", "threshold: 0", 1)
	r := first(t, text, firstWorkers, migrate.Options{})
	got := report(t, r)
	for _, want := range []string{"threshold is 0", "write --policy cache_aware", "it belonged to cache_aware_zmq"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	j := newJudge(t)
	for cut := 0; cut < len(text); cut += 5 {
		for _, damaged := range []string{text[:cut], text[cut:], text[:cut] + "x" + text[cut:]} {
			for _, partial := range []bool{false, true} {
				o := migrate.Options{Partial: partial, Workers: migrate.Document{Name: "workers.toml", Data: []byte(firstWorkers)}}
				j.result(t, migrate.MigrateFile(t.Context(), migrate.Document{Name: "c.yaml", Data: []byte(damaged)}, o), o)
			}
		}
		if t.Failed() {
			t.Fatalf("cut at %d", cut)
		}
	}
}
