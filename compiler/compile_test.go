package compiler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/schema/plan"
)

func TestMain(m *testing.M) {
	source.ScrubEnvironment()
	if code, ok := source.ChildMain(os.Args, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// compile compiles texts, given as name and text in turn.
func compile(t testing.TB, texts ...string) compiler.Result {
	t.Helper()
	var in []source.Input
	for i := 0; i < len(texts); i += 2 {
		in = append(in, source.Input{Name: texts[i], Reader: strings.NewReader(texts[i+1])})
	}
	return compiler.Compile(context.Background(), compiler.Options{Compiler: "test"}, in)
}

const asYAML = `# The same configuration in three syntaxes.
version: 1
server: {listen: "0.0.0.0:30000", admin: "off", max_body: 1MiB, request_timeout: 2m}
state: {load: {freshness: 2500ms}}
models:
  - id: m
    breaker: {threshold: 5, cool_down: 1h}
    defaults: {policy: {type: power_of_two, choices: 3}}
    discovery: {static: {engines: [
      {id: P, url: "http://p:80/", role: prefill, bootstrap_port: 8998, labels: {zone: x}},
      {id: D, url: "http://d", role: decode, labels: {zone: x}}]}}
    buckets:
      - {id: long, rank: 2, groups: {pd: {prefill: {}, decode: {worker_ids: [D]}, match_labels: [zone]}}}
      - id: short
        limits: {max: 100}
        groups: {pd: {prefill: {policy: {type: random, admission: {max_inflight_requests: 4}}}, decode: {labels: {zone: x}, policy: {type: load_based}}}}
`

const asJSON = `{"models": [{"id": "m", "breaker": {"cool_down": "1h", "threshold": 5},
 "defaults": {"policy": {"type": "power_of_two", "choices": 3}},
 "discovery": {"static": {"engines": [
  {"id": "D", "url": "http://d", "role": "decode", "labels": {"zone": "x"}},
  {"id": "P", "url": "http://p", "role": "prefill", "bootstrap_port": 8998, "labels": {"zone": "x"}}]}},
 "buckets": [
  {"id": "short", "limits": {"max": 100}, "groups": {"pd": {
    "prefill": {"policy": {"type": "random", "admission": {"max_inflight_requests": 4}}},
    "decode": {"labels": {"zone": "x"}, "policy": {"type": "load_based"}}}}},
  {"id": "long", "rank": 2, "groups": {"pd": {"prefill": {}, "decode": {"worker_ids": ["D"]}, "match_labels": ["zone"]}}}]}],
 "server": {"admin": "off", "listen": "0.0.0.0:30000", "max_body": "1MiB", "request_timeout": "120s"},
 "state": {"load": {"freshness": "2500ms"}}, "version": 1}
`

const asCUE = `
version: 1
server: {listen: "0.0.0.0:30000", admin: "off"}
server: max_body: "1MiB"
server: request_timeout: "120000ms"
state: load: freshness: "2500ms"
models: [{
	id: "m"
	breaker: {threshold: 5, cool_down: "60m"}
	defaults: policy: {type: "power_of_two", choices: 3}
	discovery: static: engines: [
		{id: "P", url: "http://P", role: "prefill", bootstrap_port: 8998, labels: zone: "x"},
		{id: "D", url: "http://d:80", role: "decode", labels: zone: "x"},
	]
	buckets: [
		{id: "long", rank: 2, groups: pd: {prefill: {}, decode: worker_ids: ["D"], match_labels: ["zone"]}},
		{id: "short", limits: max: 100, groups: pd: {
			prefill: policy: {type: "random", admission: max_inflight_requests: 4}
			decode: {labels: zone: "x", policy: type: "load_based"}
		}},
	]
}]
`

func TestOneDigestForAllSyntaxes(t *testing.T) {
	first := compile(t, "c.yaml", asYAML)
	if first.Plan == nil {
		t.Fatalf("findings\n%s", first.Findings)
	}
	f := func(texts ...string) {
		t.Helper()
		r := compile(t, texts...)
		if r.Plan == nil || r.Plan.Digest != first.Plan.Digest {
			t.Errorf("%s: another plan; findings\n%s", texts[0], r.Findings)
		}
	}
	f("c.json", asJSON)
	f("c.cue", asCUE)
	f("c.yaml", asYAML, "c.json", `{"server": {"listen": "0.0.0.0:30000"}}`)
	server := strings.Index(asYAML, "server:")
	models := strings.Index(asYAML, "models:")
	f("b.yaml", asYAML[models:], "a.yaml", asYAML[:server]+asYAML[server:models])
}

func TestPlanContent(t *testing.T) {
	d := compile(t, "c.yaml", asYAML).Plan
	s, m := d.Body.Server, d.Body.Models[0]
	if s.Admin != "" || s.HeaderTimeoutMS != 120_000 || s.StaleTimeoutMS != 600_000 || s.MaxBodyBytes != 1<<20 {
		t.Errorf("server %+v", s)
	}
	if m.Buckets[0].ID != "short" || m.Engines()[1].URL != "http://p" || m.Breaker.CoolDownMS != 3_600_000 {
		t.Errorf("model %+v", m)
	}
	short, long := m.Buckets[0].Groups.PD, m.Buckets[1].Groups.PD
	policies := fmt.Sprint(short.Prefill.Policy.Type, " ", short.Decode.Policy.Type, " ", long.Prefill.Policy.PowerOfTwo.Choices, " ", long.Decode.Policy.PowerOfTwo.Choices)
	if want := "random load_based 3 2"; policies != want {
		t.Errorf("policies %s, want %s", policies, want)
	}
	// A group policy replaces the default wholesale, its admission too.
	if short.Prefill.Policy.PowerOfTwo != nil || *short.Prefill.Policy.Admission.MaxInflightRequests != 4 {
		t.Errorf("prefill policy %+v", short.Prefill.Policy)
	}
	requires, _ := json.Marshal(m.Requires)
	if want := `{"length_estimate":["/models/0/buckets/0"],"load_reports":["/models/0/buckets/0/groups/pd/decode/policy","/models/0/buckets/1/groups/pd/prefill/policy","/models/0/buckets/1/groups/pd/decode/policy"],"dispatch_timestamps":["/models/0/buckets/0/groups/pd/decode/policy"]}`; string(requires) != want {
		t.Errorf("requires %s", requires)
	}
}

func TestOrigins(t *testing.T) {
	places := compile(t, "c.yaml", asYAML).Plan.Provenance.Places()
	f := func(pointer string, line int) {
		t.Helper()
		if got := places[pointer]; got.Line != line {
			t.Errorf("%s: %v, want line %d", pointer, got, line)
		}
	}
	f("/server/listen", 3)
	f("/server/connect_timeout_ms", 0)
	f("/state/load/freshness_ms", 4)
	f("/models/0/breaker/cool_down_ms", 7)
	f("/models/0/discovery/static/engines/0/url", 11) // D, sorted first
	f("/models/0/buckets/0/id", 14)                   // short, sorted first
	f("/models/0/buckets/0/max", 15)
	f("/models/0/buckets/0/groups/pd/prefill/policy/admission/max_inflight_requests", 16)
	f("/models/0/buckets/1/groups/pd/prefill/policy/power_of_two/choices", 8) // the default
	f("/models/0/buckets/1/groups/pd/decode/policy/type", 0)                  // built in
}

func TestCatchAll(t *testing.T) {
	f := func(engines, want string) {
		t.Helper()
		r := compile(t, "c.yaml", "version: 1\nmodels: [{id: m, discovery: {static: {engines: ["+engines+"]}}}]\n")
		if r.Plan == nil {
			t.Fatalf("findings\n%s", r.Findings)
		}
		b := r.Plan.Body.Models[0].Buckets
		if len(b) != 1 || b[0].ID != want || b[0].Min != nil || b[0].Max != nil || (b[0].Groups.PD != nil) != (want == "pd") {
			t.Errorf("buckets %+v", b)
		}
	}
	f(`{id: A, url: "http://a", role: plain}`, "plain")
	f(`{id: P, url: "http://a", role: prefill}, {id: D, url: "http://d", role: decode}`, "pd")
}

func TestNoPlanWithErrors(t *testing.T) {
	f := func(text string, codes ...diag.Code) {
		t.Helper()
		r := compile(t, "c.yaml", text)
		if r.Plan != nil {
			t.Errorf("a plan in spite of\n%s", r.Findings)
		}
		var got []string
		for _, f := range r.Findings {
			if f.Severity == diag.Error {
				got = append(got, string(f.Code))
			}
		}
		if want := strings.Trim(fmt.Sprint(codes), "[]"); strings.Join(got, " ") != want {
			t.Errorf("findings %v, want %s\n%s", got, want, r.Findings)
		}
	}
	f("version: [", diag.Syntax)
	f(strings.Replace(asYAML, "threshold", "treshold", 1), diag.UnknownField)
	// Mistakes of shape and of rules in one run.
	f(strings.NewReplacer("threshold", "treshold", "[D]", "[E]").Replace(asYAML), diag.UnknownField, diag.UnknownEngine)
	f(strings.Replace(asYAML, "type: load_based", "type: cache_aware, saturation_queue_floor: 1", 1), diag.PolicyStage, diag.TuningConflict)
}

func TestPhasesAndInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var phases []string
	r := compiler.Compile(ctx, compiler.Options{Observe: func(phase string) {
		phases = append(phases, phase)
		if phase == "rules" {
			cancel()
		}
	}}, []source.Input{{Name: "c.yaml", Reader: strings.NewReader(asYAML)}})
	if got := strings.Join(phases, " "); got != "read shape decode rules" {
		t.Errorf("phases %s", got)
	}
	if r.Plan != nil || !r.Findings.Failed() || r.Findings[0].Code != diag.Interrupted {
		t.Errorf("findings\n%s", r.Findings)
	}
}

// many is a configuration of n disjoint PD buckets in YAML.
func many(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\nmodels:\n- id: m\n  discovery:\n    static:\n      engines:\n")
	for i := range 8 {
		fmt.Fprintf(&b, "      - {id: P%d, url: \"http://p%d\", role: prefill}\n      - {id: D%d, url: \"http://d%d\", role: decode}\n", i, i, i, i)
	}
	b.WriteString("  buckets:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - id: b%d\n    rank: %d\n    limits: {min: %d, max: %d}\n    groups:\n      pd:\n", i, i%7, 10*i, 10*i+9)
		for _, stage := range []string{"prefill", "decode"} {
			fmt.Fprintf(&b, "        %s:\n          worker_ids: [%s%d]\n          policy:\n            type: power_of_two\n            choices: 2\n            admission:\n              max_inflight_requests: 64\n",
				stage, strings.ToUpper(stage[:1]), i%8)
		}
	}
	return b.String()
}

func TestManyBuckets(t *testing.T) {
	r := compile(t, "c.yaml", many(300))
	if r.Plan == nil || len(r.Findings) > 0 {
		t.Fatalf("findings\n%s", r.Findings)
	}
	data, err := plan.Encode(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	d, err := plan.Load(data)
	if err != nil || len(d.Body.Models[0].Breakpoints) != 301 {
		t.Fatalf("loaded: %v", err)
	}
	again, err := plan.Encode(compile(t, "c.yaml", many(300)).Plan)
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("compiling twice gave other bytes: %v", err)
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{2, 200, 2000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := many(n)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if r := compile(b, "c.yaml", text); r.Plan == nil {
					b.Fatal(r.Findings)
				}
			}
		})
	}
}

// FuzzCompile: whatever the text, there is a verdict and no panic, and a plan
// that was made is one that loads.
func FuzzCompile(f *testing.F) {
	f.Add("c.yaml", asYAML)
	f.Add("c.json", asJSON)
	f.Add("c.cue", asCUE)
	f.Add("\xff.cue", asCUE)
	f.Fuzz(func(t *testing.T, name, text string) {
		if len(text) > 1<<14 {
			return
		}
		r := compile(t, name, text)
		if (r.Plan != nil) == r.Findings.HasErrors() {
			t.Fatalf("plan %v and findings\n%s", r.Plan != nil, r.Findings)
		}
		for _, finding := range r.Findings {
			if finding.Code == diag.Internal {
				t.Fatalf("%v", finding)
			}
		}
		if r.Plan == nil {
			return
		}
		data, err := plan.Encode(r.Plan)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Load(data); err != nil {
			t.Fatal(err)
		}
	})
}
