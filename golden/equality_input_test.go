package golden_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shunt/compiler"
	"shunt/compiler/migrate"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/source"
	"shunt/golden/legacy"
	"shunt/schema/plan"
)

// invocation is how an older router was started, with the answers to what its
// migration asks. Engines are http://NAME; those of PD begin with p or d.
type invocation struct {
	name string
	// engines are names, and args what follows the arguments that all have.
	engines, args string
	// buckets and decisions are documents.
	buckets, decisions string
}

const bucketPath = "b.json"

func (i *invocation) pd() bool { return strings.HasPrefix(i.engines, "p") }

// urls lists the engines of a stage.
func (i *invocation) urls(stage legacy.Stage) (out []string) {
	for _, e := range strings.Fields(i.engines) {
		if decode := i.pd() && e[0] == 'd'; decode == (stage == legacy.Decode) {
			out = append(out, "http://"+e)
		}
	}
	return out
}

func (i *invocation) argv() []string {
	out := append([]string{"--model-id", "m", "--tokenizer-path", "/t", "--worker-urls"}, i.urls(legacy.Prefill)...)
	out = append(out, i.urls(legacy.Decode)...)
	if i.buckets != "" {
		out = append(out, "--bucket-config", bucketPath)
	}
	return append(out, strings.Fields(i.args)...)
}

// migrated is the plan of an invocation and the changes that its report states.
type migrated struct {
	body   *plan.Body
	stated map[migrate.Row]bool
}

func (i *invocation) migrate(t *testing.T) migrated {
	t.Helper()
	o := migrate.Options{ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }}
	if i.buckets != "" {
		o.Buckets = migrate.Document{Name: bucketPath, Data: []byte(i.buckets)}
	}
	if i.decisions != "" {
		o.Decisions = migrate.Document{Name: "d.json", Data: []byte(i.decisions)}
	}
	for _, stage := range []legacy.Stage{legacy.Prefill, legacy.Decode} {
		for _, url := range i.urls(stage) {
			a := migrate.RoleAnswer{URL: url, Role: "plain"}
			if i.pd() {
				a.Role = string(stage)
			}
			if a.Role == "prefill" {
				a.BootstrapPort = 8998
			}
			o.Roles = append(o.Roles, a)
		}
	}
	r := migrate.Migrate(t.Context(), argv.FromArgs(i.argv()), nil, o)
	if r.Config == nil || !r.Report.Fine() {
		var text strings.Builder
		if err := r.Report.Text(&text); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("not migrated:\n%s", text.String())
	}
	c := compiler.Compile(t.Context(), compiler.Options{}, []source.Input{{Name: "migrated.yaml", Reader: bytes.NewReader(r.Config)}})
	if c.Plan == nil {
		t.Fatalf("not compiled: %v", c.Findings)
	}
	out := migrated{body: &c.Plan.Body, stated: make(map[migrate.Row]bool)}
	for _, l := range r.Report.Lines {
		for _, change := range l.Changes {
			out.stated[change.Row] = true
		}
	}
	return out
}

// bucketDocument is a bucket file of the older router.
type bucketDocument struct {
	TTFT    legacy.Mode  `json:"ttft_slo_policy"`
	TPS     legacy.Mode  `json:"tps_slo_policy"`
	Buckets []bucketText `json:"buckets"`
}

type bucketText struct {
	ID          string       `json:"id"`
	Stage       legacy.Stage `json:"stage"`
	Rank        uint32       `json:"rank"`
	Members     []string     `json:"worker_ids"`
	MinExtend   *uint64      `json:"min_extend_tokens,omitempty"`
	MaxExtend   *uint64      `json:"max_extend_tokens,omitempty"`
	MinSequence *uint64      `json:"min_sequence_tokens,omitempty"`
	MaxSequence *uint64      `json:"max_sequence_tokens,omitempty"`
	MaxContext  *uint64      `json:"max_context_tokens,omitempty"`
	MaxPending  *uint64      `json:"max_pending_prefill_tokens,omitempty"`
	TTFT        *uint64      `json:"ttft_p95_at_capacity_ms,omitempty"`
	TPS         *float64     `json:"tps_p05_at_capacity,omitempty"`
}

// answerDocument is a decisions file.
type answerDocument struct {
	Version int          `json:"version"`
	Pairs   []answerPair `json:"pairs,omitempty"`
	Lone    []answerLone `json:"lone,omitempty"`
}

type answerPair struct {
	Prefill string  `json:"prefill"`
	Decode  string  `json:"decode"`
	ID      string  `json:"id"`
	Rank    *uint32 `json:"rank,omitempty"`
	Context *uint64 `json:"max_context_tokens,omitempty"`
}

type answerLone struct {
	Spec string `json:"spec"`
	As   string `json:"as"`
}

func strict(t *testing.T, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// router is what the invocation means to the older router, read from the same
// text without a look at what the migration made of it.
func (i *invocation) router(t *testing.T) *legacy.Router {
	t.Helper()
	r := &legacy.Router{PD: i.pd(), Policy: "round_robin", Fallback: "round_robin", Cache: legacy.DefaultCache()}
	words := strings.Fields(i.args)
	r.Soft = slices.Contains(words, "session_aware") && !slices.Contains(words, "--affinity-mode")
	for n := 0; n < len(words); n++ {
		name, value := words[n], ""
		if n+1 < len(words) && !strings.HasPrefix(words[n+1], "--") {
			n++
			value = words[n]
		}
		argument(t, r, name, value)
	}
	if i.buckets == "" {
		return r
	}
	var file bucketDocument
	strict(t, i.buckets, &file)
	r.Config = &legacy.Config{TTFTMode: file.TTFT, TPSMode: file.TPS}
	for _, b := range file.Buckets {
		r.Config.Specs = append(r.Config.Specs, legacy.Spec(b))
	}
	i.associate(t, r)
	return r
}

// associate reads which specs become which bucket.
func (i *invocation) associate(t *testing.T, r *legacy.Router) {
	t.Helper()
	var answers answerDocument
	strict(t, i.decisions, &answers)
	spec := func(id string) *legacy.Spec {
		n := slices.IndexFunc(r.Config.Specs, func(s legacy.Spec) bool { return s.ID == id })
		return &r.Config.Specs[n]
	}
	for _, p := range answers.Pairs {
		prefill, decode := spec(p.Prefill), spec(p.Decode)
		pair := legacy.Pair{ID: p.ID, Rank: prefill.Rank, Prefill: p.Prefill, Decode: p.Decode}
		for _, bound := range []*uint64{prefill.MaxContext, decode.MaxContext, decode.MaxSequence} {
			if bound != nil && (pair.Context == nil || *bound < *pair.Context) {
				pair.Context = bound
			}
		}
		if p.Rank != nil {
			pair.Rank = *p.Rank
		}
		if p.Context != nil {
			pair.Context = p.Context
		}
		r.Pairs = append(r.Pairs, pair)
	}
	for _, l := range answers.Lone {
		if s := spec(l.Spec); l.As != "drop" {
			r.Pairs = append(r.Pairs, legacy.Pair{ID: s.ID, Rank: s.Rank, Prefill: s.ID, Context: s.MaxContext})
		}
	}
}

// argument takes one argument of the older router.
func argument(t *testing.T, r *legacy.Router, name, value string) {
	t.Helper()
	number := func() uint64 {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	real := func() float64 {
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return f
	}
	switch name {
	case "--policy":
		r.Policy = strings.ReplaceAll(value, "power_of_n", "power_of_two")
	case "--sticky-fallback-policy":
		r.Fallback = value
	case "--max-in-flight":
		r.MaxInflight = new(number())
	case "--cache-affinity-min-matched-tokens":
		r.Cache.MinMatched = number()
	case "--cache-affinity-min-match-ratio":
		r.Cache.MinRatio = real()
	case "--cache-candidate-min-workers":
		r.Cache.CandMin = int(number())
	case "--cache-candidate-max-workers":
		r.Cache.CandMax = int(number())
	case "--cache-candidate-ratio":
		r.Cache.CandRatio = real()
	case "--cache-switch-margin-tokens":
		r.Cache.Margin = number()
	case "--pressure-abs-threshold-tokens":
		r.Cache.Guard.Tokens = number()
	case "--pressure-abs-threshold-ms":
		r.Cache.Guard.MS = new(real())
	case "--pressure-rel-threshold":
		r.Cache.Guard.Factor = real()
	case "--disable-pressure-guard":
		r.Cache.Guard = nil
	case "--worker-queue-limit":
		r.Cache.QueueLimit = new(number())
	case "--saturation-queue-floor":
		r.Cache.Floor = new(number())
	case "--min-load-choices":
		r.Cache.Choices = int(number())
	case "--filter", "--affinity-mode", "--decode-policy", "--kv-indexer-endpoint", "--chat-routing":
	default:
		t.Fatalf("the test does not know %s", name)
	}
}
