package plan_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/schema/plan"
)

func ptr(n int64) *int64 { return &n }

// body returns a small PD body: the buckets short and long over four engines.
func body() plan.Body {
	group := func(ids ...string) plan.Group {
		return plan.Group{WorkerIDs: &ids, Policy: plan.Policy{
			Type: plan.PowerOfTwo, PowerOfTwo: &plan.PowerOfTwoTuning{Choices: 2},
			Admission: plan.Admission{MaxRunningRequests: ptr(64), MaxInflightRequests: ptr(0)},
		}}
	}
	bucket := func(id string, limit int64, p, d string) plan.Bucket {
		return plan.Bucket{ID: id, Rank: 10, Min: ptr(0), Max: ptr(limit), MaxContextTokens: ptr(2 * limit), Groups: plan.Groups{
			PD: &plan.PDGroups{Prefill: group(p), Decode: group(d), MatchLabels: []string{"zone"}},
		}}
	}
	engine := func(id string, port int, role plan.Role) plan.Engine {
		return plan.Engine{ID: id, URL: fmt.Sprintf("http://10.0.0.1:%d", port), Role: role, Labels: map[string]string{"zone": "ä<b>&"}}
	}
	m := plan.Model{
		ID:      "m",
		Breaker: plan.Breaker{Threshold: 3, CoolDownMS: 30000},
		Discovery: plan.Discovery{Static: &plan.StaticDiscovery{Engines: []plan.Engine{
			engine("D1", 1, plan.Decode), engine("D2", 2, plan.Decode), engine("P1", 3, plan.Prefill), engine("P2", 4, plan.Prefill),
		}}},
		Buckets: []plan.Bucket{bucket("short", 4096, "P1", "D1"), bucket("long", 131072, "P2", "D2")},
	}
	m.Discovery.Static.Engines[2].BootstrapPort = ptr(8998)
	return derive(plan.Body{Server: server(), State: plan.State{Load: plan.LoadState{Transport: plan.LoadAuto, PollIntervalMS: 1000, FreshnessMS: 5000}}, Models: []plan.Model{m}})
}

func server() plan.Server {
	return plan.Server{
		Listen: "127.0.0.1:30000", Admin: "127.0.0.1:30001", MaxBodyBytes: 32 << 20,
		RequestTimeoutMS: 1, ConnectTimeoutMS: 1, HeaderTimeoutMS: 1, StreamIdleTimeoutMS: 1, StaleTimeoutMS: 1,
		DrainTimeoutMS: 1, Log: plan.Log{Level: "info", Format: "text"},
	}
}

// derive computes what the compiler computes from the buckets.
func derive(b plan.Body) plan.Body {
	for i := range b.Models {
		m := &b.Models[i]
		slices.SortFunc(m.Buckets, plan.CompareBuckets)
		m.Breakpoints, _ = plan.Breakpoints(m.Buckets, plan.MaxRuns)
		m.Requires = plan.Require(i, m)
	}
	return b
}

func provenance() plan.Provenance {
	return plan.Provenance{
		Compiler: "shunt test",
		Sources:  []plan.Source{{Path: "a.yaml", SHA256: "00"}, {Path: "b.yaml", SHA256: "01"}},
		Origins: []plan.Origins{
			{At: "/models/0/buckets/0", Lines: "id:7 rank:8@1 groups/pd/prefill/worker_ids:9"},
			{At: "/models/0", Lines: "id:2"},
		},
	}
}

func encoded(t testing.TB, b plan.Body) []byte {
	t.Helper()
	d, err := plan.Seal(b, provenance())
	if err != nil {
		t.Fatal(err)
	}
	data, err := plan.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEncodeLoadRoundTrip(t *testing.T) {
	data := encoded(t, body())
	d, err := plan.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Encode(d)
	if err != nil || !bytes.Equal(data, again) {
		t.Fatalf("second encoding differs: %v\n%s\n%s", err, data, again)
	}
	if data[len(data)-1] != '\n' || data[len(data)-2] != '}' {
		t.Error("the file does not end with one line break")
	}
}

// The digest is that of the compact body, so that jq and sha256sum reproduce it.
func TestDigestIsOfCompactBody(t *testing.T) {
	data := encoded(t, body())
	var file struct {
		Digest string
		Body   json.RawMessage
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var c bytes.Buffer
	if err := json.Compact(&c, file.Body); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(c.Bytes())
	if want := "sha256:" + hex.EncodeToString(sum[:]); file.Digest != want {
		t.Errorf("digest %s, want %s", file.Digest, want)
	}
	other := body()
	other.Models[0].Buckets[0].Rank++
	if d, err := plan.Seal(other, plan.Provenance{}); err != nil || d.Digest == file.Digest {
		t.Errorf("another body: %v, digest %s", err, d.Digest)
	}
	if d, err := plan.Seal(body(), plan.Provenance{Compiler: "other"}); err != nil || d.Digest != file.Digest {
		t.Errorf("other provenance: %v, digest %s", err, d.Digest)
	}
}

func TestPlaces(t *testing.T) {
	p := provenance()
	p.Origins = append(p.Origins, plan.Origins{At: "/x", Lines: "a:1@7 b:x c  d:2@-1"})
	want := map[string]plan.Place{
		"/models/0/buckets/0/id":                           {File: "a.yaml", Line: 7},
		"/models/0/buckets/0/rank":                         {File: "b.yaml", Line: 8},
		"/models/0/buckets/0/groups/pd/prefill/worker_ids": {File: "a.yaml", Line: 9},
		"/models/0/id":                                     {File: "a.yaml", Line: 2},
	}
	if got := p.Places(); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestLoadRefusesForm(t *testing.T) {
	good := string(encoded(t, body()))
	f := func(old, new, code, where, text string) {
		t.Helper()
		data := strings.Replace(good, old, new, 1)
		if data == good {
			t.Fatalf("%q is not in the plan", old)
		}
		_, err := plan.Load([]byte(data))
		e, ok := errors.AsType[*plan.Error](err)
		if !ok {
			t.Fatalf("%q: %v is no *plan.Error", new, err)
		}
		if e.Code != code || !strings.Contains(e.Error(), where) || !strings.Contains(e.Error(), text) {
			t.Errorf("%q: %v, want %s at %s with %q", new, e, code, where, text)
		}
	}
	f(`"worker_ids": [`, `"Worker_ids": [`, plan.CodeField, "/body/models/0/buckets/0/groups/pd/prefill/Worker_ids", `the field is "worker_ids"`)
	f(`"rank": 10,`, `"rank": 10, "rank": 10,`, plan.CodeRepeated, "/body/models/0/buckets/0/rank", "stands twice")
	f(`"server": {`, "\"server\": {\n \"mode\": 1,", plan.CodeField, "/body/server/mode", "unknown field")
	f("\"worker_ids\": [\n                    \"P1\"\n                  ]", `"worker_ids": null`, plan.CodeType, "/body/models/0/buckets/0/groups/pd/prefill/worker_ids", "null")
	f(`"rank": 10,`, `"rank": "10",`, plan.CodeType, "/body/models/0/buckets/0/rank: ", "an integer belongs")
	f(`"rank": 10,`, `"rank": 1e1,`, plan.CodeType, "/body/models/0/buckets/0/rank: ", "an integer belongs")
	f(`"shunt.plan/1"`, `"shunt.plan/2"`, plan.CodeFormat, "2:", `"shunt.plan/2" is not supported`)
	f(`"format": "shunt.plan/1",`, ``, plan.CodeFormat, "/format", "missing")
	f("\"format\": \"shunt.plan/1\",\n", "\"format\": \"shunt.plan/1\",\n\n", plan.CodeNotCanonical, "3:1", "a line break")
	f("\n}\n", "\n}\n\n", plan.CodeNotCanonical, ":1", "a line break")
	f("\n}\n", "\n}", plan.CodeNotCanonical, "", "the end of the file")
	f("\n}\n", "\n}\n{}", plan.CodeSyntax, "", "unexpected")
	f("{", "[", plan.CodeSyntax, "2:", "not one JSON document")
	f(`"rank": 10`, `"rank": 11`, plan.CodeDigest, "3:3", "the body has sha256:")
	f(`"digest": "sha256:`, `"digest": "sha512:`, plan.CodeDigest, "/digest", "does not belong")
	f(`ä<b>`, `\u00e4<b>`, plan.CodeNotCanonical, "", "expected")
	f("\"load_reports\"", "\"audio\"", plan.CodeField, "/requires/audio", "load_reports")
	if _, err := plan.Load([]byte(strings.ReplaceAll(good, "\n", "\r\n"))); !strings.Contains(fmt.Sprint(err), "carriage returns") {
		t.Errorf("CRLF: %v", err)
	}
	for _, junk := range []string{"", "null", "{}", "[]", "\xff", "1"} {
		if _, err := plan.Load([]byte(junk)); err == nil {
			t.Errorf("%q was accepted", junk)
		}
	}
}

func TestValidate(t *testing.T) {
	type B = plan.Body
	bucket := func(b *B, i int) *plan.Bucket { return &b.Models[0].Buckets[i] }
	engine := func(b *B, i int) *plan.Engine { return &b.Models[0].Discovery.Static.Engines[i] }
	f := func(want string, edit func(b *B)) {
		t.Helper()
		b := body()
		edit(&b)
		err := plan.Validate(&b)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("/body/models: a plan needs a model", func(b *B) { b.Models = nil })
	f("/body/models/0/id: an id must not be empty", func(b *B) { b.Models[0].ID = "" })
	f("do not print", func(b *B) { b.Models[0].ID = "a\x7f" })
	f(`/body/models/1/id: "m" is used twice`, func(b *B) { b.Models = append(b.Models, body().Models[0]) })
	f("/body/models/1/discovery/static/engines/0/url", func(b *B) { b.Models = append(b.Models, body().Models[0]); b.Models[1].ID = "n" })
	f("/server/listen", func(b *B) { b.Server.Listen = "x" })
	f("reachable from other hosts", func(b *B) { b.Server.Admin = "0.0.0.0:1" })
	f("/server/request_timeout_ms: 0 is outside", func(b *B) { b.Server.RequestTimeoutMS = 0 })
	f("/server/max_body_bytes", func(b *B) { b.Server.MaxBodyBytes = 1<<30 + 1 })
	f("/server/log/level", func(b *B) { b.Server.Log.Level = "loud" })
	f("/state/load/freshness_ms", func(b *B) { b.State.Load.FreshnessMS = 0 })
	f("/breaker/threshold", func(b *B) { b.Models[0].Breaker.Threshold = 0 })
	f("no discovery", func(b *B) { b.Models[0].Discovery.Static = nil })
	f("does not follow", func(b *B) { engine(b, 0).ID = "Z" })
	f("not in its normal form", func(b *B) { engine(b, 0).URL = "HTTP://10.0.0.9/" })
	f("must not hold a path", func(b *B) { engine(b, 0).URL = "http://a/v1" })
	f("already the URL of", func(b *B) { engine(b, 1).URL = engine(b, 0).URL })
	f("/role: unknown value", func(b *B) { engine(b, 0).Role = "both" })
	f("has no bootstrap port", func(b *B) { engine(b, 0).BootstrapPort = ptr(1) })
	f("/bootstrap_port: 0 is outside", func(b *B) { engine(b, 2).BootstrapPort = ptr(0) })
	f("plain and PD engines", func(b *B) { engine(b, 1).Role = plan.Plain })
	f("label \"\"", func(b *B) { engine(b, 0).Labels = map[string]string{"": "x"} })
	f("a model needs a bucket", func(b *B) { b.Models[0].Buckets = nil })
	f("is out of order", func(b *B) { slices.Reverse(b.Models[0].Buckets) })
	f(`/buckets/1/id: "short" is used twice`, func(b *B) { bucket(b, 1).ID = "short" })
	f("/rank: -1", func(b *B) { bucket(b, 0).Rank = -1 })
	f("/max_context_tokens: 0", func(b *B) { bucket(b, 0).MaxContextTokens = ptr(0) })
	f("above the capacity 4096", func(b *B) { bucket(b, 0).Min = ptr(4097) })
	f("exactly one of plain and pd", func(b *B) { bucket(b, 0).Groups = plan.Groups{} })
	f("/pd/match_labels/1", func(b *B) { bucket(b, 0).Groups.PD.MatchLabels = []string{"b", "a"} })
	f(`no engine has the id "X"`, func(b *B) { bucket(b, 0).Groups.PD.Decode.WorkerIDs = &[]string{"X"} })
	f(`"P1" is a prefill engine`, func(b *B) { bucket(b, 0).Groups.PD.Decode.WorkerIDs = &[]string{"P1"} })
	f("sorted, each once", func(b *B) { bucket(b, 0).Groups.PD.Decode.WorkerIDs = &[]string{"D2", "D1"} })
	f("unknown policy type", func(b *B) { bucket(b, 0).Groups.PD.Decode.Policy.Type = "best" })
	f("present exactly when", func(b *B) { bucket(b, 0).Groups.PD.Decode.Policy.PowerOfTwo = nil })
	f("present exactly when", func(b *B) { bucket(b, 0).Groups.PD.Decode.Policy.Type = plan.Random })
	f("/choices: 0", func(b *B) { bucket(b, 0).Groups.PD.Decode.Policy.PowerOfTwo.Choices = 0 })
	f("/decode/policy/admission/max_kv_tokens: -1", func(b *B) { bucket(b, 0).Groups.PD.Decode.Policy.Admission.MaxKVTokens = ptr(-1) })
	f("/breakpoints/1", func(b *B) { b.Models[0].Breakpoints[1].From++ })
	f("/breakpoints/0", func(b *B) { b.Models[0].Breakpoints[0].Runs = []plan.Run{{0, 0}} })
	f("/breakpoints/3", func(b *B) { b.Models[0].Breakpoints = append(b.Models[0].Breakpoints, plan.Breakpoint{From: 1 << 40}) })
	f("/requires/load_reports", func(b *B) { b.Models[0].Requires.LoadReports = nil })
	f("/requires/dispatch_timestamps", func(b *B) { b.Models[0].Requires.DispatchTimestamps = []string{"/models/0"} })
}

// stateful returns the small body with every policy and service of state-aware
// routing.
func stateful() plan.Body {
	b := body()
	m := &b.Models[0]
	m.Tokenizer = &plan.Tokenizer{Path: "/m", ForwardInputIDs: true}
	m.Sampling = &plan.Sampling{Conflict: plan.ConflictReject, Params: []plan.SamplingParam{
		{Name: "temperature", Value: new(0.6)}, {Name: "top_k", Min: new(1.0), Max: new(50.0)},
	}}
	m.Affinity = &plan.AffinityHeaders{SessionID: "x-session-id", RoutingKey: "x-key"}
	m.SLO = &plan.SLO{TTFT: plan.SLOFirst, TPS: plan.SLODisabled}
	two := plan.FallbackPolicy{Type: plan.PowerOfTwo, PowerOfTwo: &plan.PowerOfTwoTuning{Choices: 2}}
	m.Buckets[0].TTFTMS, m.Buckets[0].TokensPerSecond = ptr(100), new(0.5)
	m.Buckets[0].Groups.PD.Prefill.Policy = plan.Policy{Type: plan.CacheAware, CacheAware: &plan.CacheAwareTuning{
		CandidateMinWorkers: 8, CandidateRatio: 0.05, CandidateMaxWorkers: 32, PressureAbsThresholdMS: new(12.5), PressureRelThreshold: 1.5,
		WorkerQueueLimit: ptr(4), SaturationQueueFloor: ptr(4), Fallback: two,
	}}
	m.Buckets[0].Groups.PD.Decode.Policy = plan.Policy{Type: plan.SessionAware, SessionAware: &plan.SessionAwareTuning{Fallback: two}}
	m.Buckets[1].Groups.PD.Decode.Policy = plan.Policy{Type: plan.Sticky, Sticky: &plan.StickyTuning{Fallback: plan.FallbackPolicy{Type: plan.LoadBased}}}
	b.State.Prefix = &plan.PrefixState{Remote: &plan.RemotePrefix{Endpoint: "http://index:50051", QueryTimeoutMS: 100, MaxInflight: 32}}
	b.State.Affinity = &plan.AffinityState{IdleMS: 1, Redis: &plan.RedisAffinity{URL: "env:REDIS", OnFailure: plan.FailReject, TimeoutMS: 100}}
	return derive(b)
}

func TestStateRoundTrip(t *testing.T) {
	data := encoded(t, stateful())
	d, err := plan.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := plan.Encode(d); err != nil || !bytes.Equal(data, again) {
		t.Errorf("second encoding differs: %v", err)
	}
	r := d.Body.Models[0].Requires
	for name, got := range map[string][]string{
		"tokenizer buckets/0 buckets/0/groups/pd/prefill/policy buckets/1":                                                                          r.Tokens,
		"buckets/0/groups/pd/prefill/policy buckets/0/groups/pd/decode/policy buckets/1/groups/pd/prefill/policy buckets/1/groups/pd/decode/policy": r.LoadReports,
		"buckets/1/groups/pd/decode/policy":  r.DispatchTimestamps,
		"buckets/0/groups/pd/prefill/policy": r.PrefixSource,
		"buckets/0/groups/pd/decode/policy":  r.SessionHeader,
	} {
		if text := strings.ReplaceAll(strings.Join(got, " "), "/models/0/", ""); text != name {
			t.Errorf("got %s, want %s", text, name)
		}
	}
	if len(r.LengthEstimate) > 0 || !slices.Equal(r.RoutingKeyHeader, r.DispatchTimestamps) {
		t.Errorf("requires %+v", r)
	}
}

func TestValidateState(t *testing.T) {
	type B = plan.Body
	f := func(want string, edit func(b *B, m *plan.Model)) {
		t.Helper()
		b := stateful()
		edit(&b, &b.Models[0])
		if err := plan.Validate(&b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	cache := func(m *plan.Model) *plan.CacheAwareTuning { return m.Buckets[0].Groups.PD.Prefill.Policy.CacheAware }
	f("/load/transport: unknown value", func(b *B, _ *plan.Model) { b.State.Load.Transport = "zmq" })
	f("/load/poll_interval_ms: 0", func(b *B, _ *plan.Model) { b.State.Load.PollIntervalMS = 0 })
	f("/state/prefix: the section is present exactly when", func(b *B, _ *plan.Model) { b.State.Prefix = nil })
	f("/state/affinity: the section is present exactly when", func(b *B, _ *plan.Model) { b.State.Affinity = nil })
	f("exactly one of local and remote", func(b *B, _ *plan.Model) { b.State.Prefix.Local = &plan.LocalPrefix{MaxBlocks: 1} })
	f("/local/max_blocks: 0", func(b *B, _ *plan.Model) { b.State.Prefix = &plan.PrefixState{Local: new(plan.LocalPrefix)} })
	f("not in its normal form", func(b *B, _ *plan.Model) { b.State.Prefix.Remote.Endpoint = "http://Index:1" })
	f("must start with http", func(b *B, _ *plan.Model) { b.State.Prefix.Remote.Endpoint = "grpc://index:1" })
	f("/query_timeout_ms: 0", func(b *B, _ *plan.Model) { b.State.Prefix.Remote.QueryTimeoutMS = 0 })
	f("/max_inflight: 0", func(b *B, _ *plan.Model) { b.State.Prefix.Remote.MaxInflight = 0 })
	f("exactly one of memory and redis", func(b *B, _ *plan.Model) { b.State.Affinity.Redis = nil })
	f("/memory/sweep_ms: 0", func(b *B, _ *plan.Model) {
		b.State.Affinity.Redis, b.State.Affinity.Memory = nil, &plan.MemoryAffinity{MaxEntries: 1}
	})
	f("/idle_ms: 0", func(b *B, _ *plan.Model) { b.State.Affinity.IdleMS = 0 })
	f("/redis/url: not a reference", func(b *B, _ *plan.Model) { b.State.Affinity.Redis.URL = "redis://x" })
	f("/redis/timeout_ms: 0", func(b *B, _ *plan.Model) { b.State.Affinity.Redis.TimeoutMS = 0 })
	f("/on_failure: unknown value", func(b *B, _ *plan.Model) { b.State.Affinity.Redis.OnFailure = "wait" })
	f("exactly one of path and engine", func(_ *B, m *plan.Model) { m.Tokenizer.Path = "" })
	f("exactly one of path and engine", func(_ *B, m *plan.Model) { m.Tokenizer.Engine = &plan.EngineTokenizer{} })
	f("/tokenizer/path", func(_ *B, m *plan.Model) { m.Tokenizer.Path = "\x00" })
	asking := func(edit func(*plan.EngineTokenizer)) func(*B, *plan.Model) {
		return func(_ *B, m *plan.Model) {
			e := &plan.EngineTokenizer{TimeoutMS: 1, MaxInflight: 1, MaxBodyBytes: plan.MinBodyBytes}
			edit(e)
			m.Tokenizer.Path, m.Tokenizer.Engine = "", e
		}
	}
	f("/tokenizer/engine/timeout_ms: 0", asking(func(e *plan.EngineTokenizer) { e.TimeoutMS = 0 }))
	f("/tokenizer/engine/max_inflight: 0", asking(func(e *plan.EngineTokenizer) { e.MaxInflight = 0 }))
	f("/tokenizer/engine/max_body_bytes: 1 ", asking(func(e *plan.EngineTokenizer) { e.MaxBodyBytes = 1 }))
	f("/requires/tokens", asking(func(*plan.EngineTokenizer) {})) // forwarding alone asks no engine
	f("/requires/tokens", func(_ *B, m *plan.Model) { m.Requires.Tokens = m.Requires.Tokens[1:] })
	vllm := func(edit func(*plan.Model, *plan.Hashing, *plan.KVEvents)) func(*B, *plan.Model) {
		return func(_ *B, m *plan.Model) {
			h := &plan.Hashing{Algorithm: plan.SHA256CBOR, BlockSize: 16, Seed: "0"}
			k := &plan.KVEvents{Port: 65530, ReplayPort: ptr(65500), Ranks: 2}
			m.Engine = &plan.EngineKind{Type: plan.VLLM, Hashing: h}
			m.Discovery.Static.Engines[0].KVEvents = k
			edit(m, h, k)
		}
	}
	f("vLLM engines do not pair here", vllm(func(*plan.Model, *plan.Hashing, *plan.KVEvents) {}))
	f("/engine/type: unknown value", vllm(func(m *plan.Model, _ *plan.Hashing, _ *plan.KVEvents) { m.Engine.Type = "sglang" }))
	f("/engine/hashing: the section", vllm(func(m *plan.Model, _ *plan.Hashing, _ *plan.KVEvents) { m.Engine.Hashing = nil }))
	f("/hashing/algorithm: unknown value", vllm(func(_ *plan.Model, h *plan.Hashing, _ *plan.KVEvents) { h.Algorithm = "sha256" }))
	f("/hashing/block_size: 0", vllm(func(_ *plan.Model, h *plan.Hashing, _ *plan.KVEvents) { h.BlockSize = 0 }))
	f("/hashing/seed", vllm(func(_ *plan.Model, h *plan.Hashing, _ *plan.KVEvents) { h.Seed = "" }))
	f("/kv_events: the section", func(_ *B, m *plan.Model) { m.Discovery.Static.Engines[0].KVEvents = &plan.KVEvents{Port: 1, Ranks: 1} })
	alone := func(edit func(*plan.KVEvents)) func(*B, *plan.Model) {
		return vllm(func(m *plan.Model, _ *plan.Hashing, k *plan.KVEvents) {
			m.Tokenizer.ForwardInputIDs = false
			for i := range m.Discovery.Static.Engines {
				m.Discovery.Static.Engines[i].Role = plan.Plain
			}
			edit(k)
		})
	}
	f("/kv_events/host", alone(func(k *plan.KVEvents) { k.Host = "[::1]" }))
	f("/kv_events/ranks: 0", alone(func(k *plan.KVEvents) { k.Ranks = 0 }))
	f("/kv_events/port: 65530", alone(func(k *plan.KVEvents) { k.Ranks = 7 }))
	f("/kv_events/replay_port: 65535", alone(func(k *plan.KVEvents) { k.ReplayPort = ptr(65535) }))
	f("/kv_events/topic", alone(func(k *plan.KVEvents) { k.Topic = "\x00" }))
	f("/sampling/conflict", func(_ *B, m *plan.Model) { m.Sampling.Conflict = "" })
	f("/sampling/params/1/name", func(_ *B, m *plan.Model) { slices.Reverse(m.Sampling.Params) })
	f("/sampling/params/0/name: unknown", func(_ *B, m *plan.Model) { m.Sampling.Params[0].Name = "heat" })
	f("/sampling/params/0: 3 is outside", func(_ *B, m *plan.Model) { m.Sampling.Params[0].Value = new(3.0) })
	f("/sampling/params/0: a parameter has", func(_ *B, m *plan.Model) { m.Sampling.Params[0].Min = new(3.0) })
	f("/affinity/session_id_header", func(_ *B, m *plan.Model) { m.Affinity.SessionID = "" })
	f("no header name in lower case", func(_ *B, m *plan.Model) { m.Affinity.SessionID = "X-Session" })
	f("/models/0/affinity: the section", func(_ *B, m *plan.Model) { m.Affinity = nil })
	f("both modes disabled", func(_ *B, m *plan.Model) { m.SLO.TTFT = plan.SLODisabled })
	f("/slo/tps: unknown value", func(_ *B, m *plan.Model) { m.SLO.TPS = "" })
	f("/ttft_ms: 0", func(_ *B, m *plan.Model) { m.Buckets[0].TTFTMS = ptr(0) })
	f("/tokens_per_second: 0 is outside", func(_ *B, m *plan.Model) { m.Buckets[0].TokensPerSecond = new(0.0) })
	f("cache_aware cannot pick for the decode stage", func(_ *B, m *plan.Model) {
		m.Buckets[0].Groups.PD.Decode.Policy = m.Buckets[0].Groups.PD.Prefill.Policy
	})
	f("/min_match_ratio: NaN", func(_ *B, m *plan.Model) { cache(m).MinMatchRatio = math.NaN() })
	f("/candidate_ratio: 1.5", func(_ *B, m *plan.Model) { cache(m).CandidateRatio = 1.5 })
	f("/candidate_max_workers: 7 is outside 8..", func(_ *B, m *plan.Model) { cache(m).CandidateMaxWorkers = 7 })
	f("/pressure_rel_threshold: 1 is", func(_ *B, m *plan.Model) { cache(m).PressureRelThreshold = 1 })
	f("/pressure_abs_threshold_ms: -1", func(_ *B, m *plan.Model) { cache(m).PressureAbsThresholdMS = new(-1.0) })
	f("/saturation_queue_floor: 5 is outside 1..4", func(_ *B, m *plan.Model) { cache(m).SaturationQueueFloor = ptr(5) })
	f("a floor needs", func(_ *B, m *plan.Model) { cache(m).WorkerQueueLimit = nil })
	f("/cache_aware/fallback/power_of_two: the section", func(_ *B, m *plan.Model) { cache(m).Fallback.PowerOfTwo = nil })
	f("cannot be a fallback", func(_ *B, m *plan.Model) { cache(m).Fallback.Type = plan.Sticky })
	f("/policy/cache_aware: the section", func(_ *B, m *plan.Model) { m.Buckets[0].Groups.PD.Prefill.Policy.Type = plan.Random })
}

func TestNormalizeURL(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		got, err := plan.NormalizeURL(raw)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	f("http://10.0.0.1:30000", "http://10.0.0.1:30000")
	f("HTTP://Host:080/", "http://host")
	f("https://h:443", "https://h")
	f("https://h:80", "https://h:80")
	f("http://[::1]:1", "http://[::1]:1")
	f("ftp://h", "error: must start with http:// or https://")
	f("http://", "error: has no host")
	f("http:h", "error: has no host")
	f("http://u:p@h", "error: must not hold user information")
	f("http://h/v1", "error: must not hold a path")
	f("http://h?", "error: must not hold a query")
	f("http://h#", "error: must not hold a fragment")
	f("http://h:0", "error: has a port outside 1..65535")
	f("http://h:65536", "error: has a port outside 1..65535")
	f("http://h:", "error: has a colon without a port")
	f("http://h:x", "error: is not a URL")
	f("http://h%41", "error: is not a URL")
}

// candidates is the definition that the table must agree with.
func candidates(buckets []plan.Bucket, input int64) []int {
	var out []int
	for i, b := range buckets {
		if (b.Min == nil || *b.Min <= input) && (b.Max == nil || input <= *b.Max) && (b.MaxContextTokens == nil || input <= *b.MaxContextTokens) {
			out = append(out, i)
		}
	}
	return out
}

func lookup(table []plan.Breakpoint, input int64) []int {
	var out []int
	for i, p := range table {
		if p.From <= input && (i+1 == len(table) || input < table[i+1].From) {
			for _, r := range p.Runs {
				for b := r[0]; b <= r[1]; b++ {
					out = append(out, b)
				}
			}
		}
	}
	return out
}

func TestBreakpointsAgreeWithDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	maybe := func(n int64) *int64 {
		if rng.IntN(3) == 0 {
			return nil
		}
		return ptr(rng.Int64N(n))
	}
	for range 500 {
		buckets := make([]plan.Bucket, rng.IntN(12))
		for i := range buckets {
			buckets[i] = plan.Bucket{ID: fmt.Sprint(i), Min: maybe(12), Max: maybe(20), MaxContextTokens: maybe(20)}
		}
		slices.SortFunc(buckets, plan.CompareBuckets)
		table, ok := plan.Breakpoints(buckets, plan.MaxRuns)
		if !ok || table[0].From != 0 {
			t.Fatalf("no table: %v %v", ok, table)
		}
		for input := range int64(25) {
			if got, want := lookup(table, input), candidates(buckets, input); !slices.Equal(got, want) {
				t.Fatalf("input %d: %v, want %v\n%v", input, got, want, table)
			}
		}
		for i := 1; i < len(table); i++ {
			if slices.Equal(table[i].Runs, table[i-1].Runs) || table[i].From <= table[i-1].From {
				t.Fatalf("breakpoint %d changes nothing: %v", i, table)
			}
		}
	}
}

func TestBreakpointsAreBounded(t *testing.T) {
	buckets := make([]plan.Bucket, 100)
	for i := range buckets {
		buckets[i] = plan.Bucket{ID: fmt.Sprint(i), Min: ptr(int64(37 * i % 100)), Max: ptr(int64(100 + i))}
	}
	if _, ok := plan.Breakpoints(buckets, 50); ok {
		t.Error("a table beyond the bound was built")
	}
	if table, ok := plan.Breakpoints(buckets, plan.MaxRuns); !ok || len(table) < 100 {
		t.Errorf("a table within the bound: %v, %d", ok, len(table))
	}
}

// many returns a body with n PD buckets, disjoint or nested.
func many(n int, nested bool) plan.Body {
	b := body()
	m := &b.Models[0]
	one := m.Buckets[0]
	m.Buckets = make([]plan.Bucket, n)
	for i := range m.Buckets {
		lo, hi := int64(i*100), int64(i*100+99)
		if nested {
			lo, hi = int64(i), int64(1_000_000-i)
		}
		m.Buckets[i] = one
		m.Buckets[i].ID = fmt.Sprintf("bucket-%05d", i)
		m.Buckets[i].Min, m.Buckets[i].Max, m.Buckets[i].MaxContextTokens = &lo, &hi, nil
	}
	return derive(b)
}

func manyOrigins(n int) plan.Provenance {
	p := provenance()
	p.Origins = nil
	for i := range n {
		l := i * 16
		p.Origins = append(p.Origins, plan.Origins{At: plan.BucketPointer(0, i), Lines: fmt.Sprintf(
			"id:%d rank:%d min:%d max:%d groups/pd/prefill/worker_ids:%d groups/pd/prefill/policy/type:%d groups/pd/prefill/policy/admission/max_running_requests:%d groups/pd/decode/worker_ids:%d groups/pd/decode/policy/type:%d",
			l, l+1, l+2, l+3, l+4, l+5, l+6, l+7, l+8)})
	}
	return p
}

func BenchmarkLoad10000(b *testing.B) {
	d, err := plan.Seal(many(10_000, false), manyOrigins(10_000))
	if err != nil {
		b.Fatal(err)
	}
	data, err := plan.Encode(d)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := plan.Load(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBreakpoints10000(b *testing.B) {
	for _, nested := range []bool{false, true} {
		b.Run(fmt.Sprintf("nested=%v", nested), func(b *testing.B) {
			buckets := many(10_000, nested).Models[0].Buckets
			for b.Loop() {
				if _, ok := plan.Breakpoints(buckets, plan.MaxRuns); !ok {
					b.Fatal("too many runs")
				}
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(encoded(f, body()))
	f.Add(encoded(f, stateful()))
	f.Add([]byte(`{"format":"shunt.plan/1","body":{"models":[null]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := plan.Load(data)
		if err != nil {
			if _, ok := errors.AsType[*plan.Error](err); !ok {
				t.Fatalf("%v is no *plan.Error", err)
			}
			return
		}
		again, err := plan.Encode(d)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("accepted bytes are not canonical: %v", err)
		}
	})
}
