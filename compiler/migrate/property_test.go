package migrate_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"shunt/compiler/migrate"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/flags"
)

// generator makes command lines that start the older router.
type generator struct {
	*rand.Rand
	args []string
	// reorg says that a neighbouring version is told to route by buckets first.
	reorg bool
}

// give adds an argument in one of its spellings.
func (g *generator) give(name string, values ...string) {
	switch {
	case len(values) == 1 && g.IntN(2) == 0:
		g.args = append(g.args, "--"+name+"="+values[0])
	default:
		g.args = append(append(g.args, "--"+name), values...)
	}
}

// maybe adds an argument half of the time.
func (g *generator) maybe(name string, value func() string) {
	if g.IntN(2) == 0 {
		g.give(name, value())
	}
}

func (g *generator) number(low, high int) func() string {
	return func() string { return fmt.Sprint(low + g.IntN(high-low+1)) }
}

func (g *generator) share() string { return fmt.Sprintf("%.3f", g.Float64()) }

func (g *generator) word(words ...string) func() string {
	return func() string { return words[g.IntN(len(words))] }
}

// line makes a whole command line.
func (g *generator) line() []string {
	g.args = nil
	parts := []func(){
		func() { g.give("model-id", g.word("m", "org/model", "a b")()) },
		func() { g.give("worker-urls", "http://10.0.0.1:30000", "https://e2") },
		func() { g.maybe("worker-urls", g.word("http://e3:1", "http://[::1]:5/")) },
		func() { g.maybe("tokenizer-path", g.word("/models/m", "org/m", "./t/tokenizer.json")) },
		func() { g.maybe("host", g.word("0.0.0.0", "[::1]", "localhost")) },
		func() { g.maybe("port", g.word("0", "30001", "65535", "+80")) },
		func() { g.maybe("shutdown-drain-secs", g.number(0, 1800)) },
		func() { g.maybe("termination-grace-secs", g.number(0, 4000)) },
		func() { g.maybe("request-timeout-secs", g.number(1, 2000)) },
		func() { g.maybe("stream-idle-timeout-secs", g.number(1, 2000)) },
		func() { g.maybe("stale-request-timeout-secs", g.number(1, 2000)) },
		func() { g.maybe("log-level", g.word("debug", "trace", "info,hyper=warn", "off", "")) },
		func() { g.maybe("log-format", g.word("text", "json")) },
		func() { g.maybe("decode-policy", g.word("power_of_two", "power_of_n")) },
		g.switches, g.sampling, g.breaker, g.policy,
	}
	g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		part()
	}
	return g.args
}

func (g *generator) switches() {
	if g.IntN(2) == 0 {
		g.args = append(g.args, "--disable-input-ids-forwarding")
	}
}

func (g *generator) sampling() {
	if g.IntN(2) == 0 {
		return
	}
	g.give("override-sampling-params", g.word(`{"temperature":0.7}`, `{"n":{"min":1,"max":4.0},"top_k":-1}`)())
	g.maybe("sampling-param-conflict", g.word("reject"))
}

func (g *generator) breaker() {
	if g.IntN(2) == 0 {
		g.give("cb-threshold", g.number(1, 9)())
		g.maybe("cb-cool-down-secs", g.number(0, 9))
	}
}

func (g *generator) policy() {
	policy := g.word("", "round_robin", "random", "power_of_two", "power_of_n", "load_based", "cache_aware", "session_aware", "sticky")()
	if policy != "" {
		g.give("policy", policy)
	}
	if slices.Contains([]string{"power_of_two", "power_of_n", "cache_aware", "session_aware"}, policy) && g.IntN(3) == 0 {
		g.later()
	}
	if policy != "sticky" && g.IntN(2) == 0 {
		g.give("filter", "overloaded")
		g.give("max-in-flight", g.number(1, 99)())
	}
	switch policy {
	case "cache_aware":
		g.cache()
	case "session_aware":
		g.maybe("session-id-header", g.word("x-s", "Y"))
		g.maybe("session-idle-secs", g.number(1, 99))
		g.maybe("session-eviction-interval-secs", g.number(1, 99))
		g.maybe("affinity-mode", g.word("strict"))
		g.maybe("session-affinity-mode", g.word("bucket"))
	case "sticky":
		g.maybe("routing-key-header", g.word("x-k"))
		g.maybe("sticky-fallback-policy", g.word("round_robin", "random", "power_of_two", "load_based"))
		g.maybe("sticky-idle-secs", g.number(1, 99))
		g.maybe("sticky-eviction-interval-secs", g.number(1, 99))
	}
}

// later adds the arguments of neighbouring versions that are carried.
func (g *generator) later() {
	g.give("chat-routing", "reorg")
	g.reorg = true
	g.maybe("power-of-n-choices", g.word("2"))
	g.maybe("max-waiting-requests", g.number(1, 99))
	g.maybe("max-pending-prefill-tokens", g.number(1, 9999))
}

func (g *generator) cache() {
	if g.IntN(2) == 0 {
		g.give("kv-indexer-endpoint", "http://index:50051")
		g.maybe("cache-prefix-provider", g.word("indexer"))
		g.maybe("kv-indexer-query-timeout-ms", g.number(1, 999))
		g.maybe("kv-indexer-query-max-inflight", g.number(1, 99))
	} else {
		g.maybe("cache-prefix-provider", g.word("radix_tree"))
	}
	g.maybe("cache-affinity-min-matched-tokens", g.number(0, 9999))
	g.maybe("cache-affinity-min-match-ratio", g.share)
	g.maybe("cache-candidate-min-workers", g.number(1, 32))
	g.maybe("cache-candidate-ratio", g.share)
	g.maybe("cache-candidate-max-workers", g.number(32, 99))
	g.maybe("cache-switch-margin-tokens", g.number(0, 9999))
	if g.IntN(2) == 0 {
		g.give("worker-queue-limit", g.number(5, 9)())
		g.maybe("saturation-queue-floor", g.number(1, 5))
	}
	if g.reorg {
		g.maybe("min-load-choices", g.word("2"))
	} else {
		g.maybe("min-load-choices", g.number(1, 9))
	}
	if g.IntN(2) == 0 {
		g.args = append(g.args, "--disable-pressure-guard")
	}
	g.maybe("pressure-abs-threshold-tokens", g.number(0, 9999))
	g.maybe("pressure-abs-threshold-ms", g.share)
	g.maybe("pressure-rel-threshold", g.word("1.01", "2", "1e3"))
}

// accounted fails unless each element is in exactly one line.
func accounted(t *testing.T, args []string, r *migrate.Report) {
	t.Helper()
	seen := make([]int, len(args))
	for _, l := range r.Lines {
		for _, e := range l.Elements {
			seen[e]++
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("%q: element %d is in %d lines", args, i, n)
		}
	}
}

// TestRandomValid: of any command line that starts the older router, without
// dropped options, every element is accounted for exactly once, and what comes
// out compiles.
func TestRandomValid(t *testing.T) {
	used := make(map[string]bool)
	j := newJudge(t)
	for seed := range uint64(400) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		args := g.line()
		for _, a := range args {
			if name, _, _ := strings.Cut(strings.TrimPrefix(a, "--"), "="); strings.HasPrefix(a, "--") {
				used[name] = true
			}
		}
		o := migrate.Options{Roles: []migrate.RoleAnswer{{Role: "plain"}}}
		if seed%2 == 0 {
			o.Format = migrate.CUE
		}
		if seed%3 == 0 {
			o.Roles = []migrate.RoleAnswer{{URL: "https://e2", Role: "prefill", BootstrapPort: 8998}, {Role: "decode"}}
		}
		r := migrate.Migrate(t.Context(), argv.FromArgs(args), nil, o)
		accounted(t, args, r.Report)
		if r.Config == nil || !r.Report.Fine() || r.Report.Partial {
			var b strings.Builder
			_ = r.Report.Text(&b)
			t.Fatalf("seed %d: %q\n%s", seed, args, b.String())
		}
		j.result(t, r, o)
		if seed%8 == 0 { // both syntaxes, and every time the same
			again := migrate.Unchecked(t.Context(), argv.FromArgs(args), o)
			o.Format = migrate.YAML
			yaml := migrate.Unchecked(t.Context(), argv.FromArgs(args), o)
			if digest(t, yaml.Config, migrate.YAML) != digest(t, r.Config, migrate.CUE) || !bytes.Equal(again.Config, r.Config) {
				t.Errorf("seed %d: %q\n%s\n%s", seed, args, yaml.Config, r.Config)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %q\n%s", seed, args, r.Config)
		}
	}
	// Dropped options, Kubernetes and bucket files have tests of their own.
	for _, f := range flags.Table() {
		if !used[f.Name] && !strings.Contains("fuse prefix-cache-min-share stable-pair service-discovery service-discovery-namespace selector "+
			"prefill-selector decode-selector bucket-config selection-engine reorg-config", f.Name) {
			t.Errorf("--%s is never used", f.Name)
		}
	}
}

// TestRandomInvalid: words in any order are accounted for too, whatever is wrong
// with them, and something always is.
func TestRandomInvalid(t *testing.T) {
	table := flags.Table()
	j := newJudge(t)
	values := []string{"", "0", "-1", "nan", "inf", "1e999", "18446744073709551616", "cache_aware", "fused_score", "soft", "http://a b", "{", "a=b", "--", "-", "\x00", "é", "overloaded,", "$X"}
	for seed := range uint64(2000) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		for range g.IntN(12) {
			switch g.IntN(4) {
			case 0:
				g.args = append(g.args, values[g.IntN(len(values))])
			case 1:
				g.args = append(g.args, "--"+table[g.IntN(len(table))].Name)
			default:
				g.give(table[g.IntN(len(table))].Name, values[g.IntN(len(values))])
			}
		}
		args := append(g.args, "--no-such-argument")
		o := migrate.Options{Partial: seed%2 == 0}
		r := migrate.Migrate(t.Context(), argv.FromArgs(args), nil, o)
		accounted(t, args, r.Report)
		j.result(t, r, o)
		if t.Failed() {
			t.Fatalf("seed %d: %q", seed, args)
		}
		if r.Report.Fine() || r.Report.Count(migrate.Rejected) == 0 || seed%2 == 1 && r.Config != nil {
			t.Errorf("seed %d: %q is fine", seed, args)
		}
	}
}

func FuzzMigrate(f *testing.F) {
	f.Add("--model-id\x00m\x00--worker-urls\x00http://a\x00--policy\x00cache_aware", true)
	f.Add("--service-discovery\x00--selector\x00a=b\x00--fuse=random=2\x00--policy\x00score_policy", false)
	f.Fuzz(func(t *testing.T, text string, partial bool) {
		args := strings.Split(text, "\x00")
		r := migrate.Unchecked(t.Context(), argv.FromArgs(args), migrate.Options{Partial: partial, Roles: []migrate.RoleAnswer{{Role: "plain"}}})
		accounted(t, args, r.Report)
		var b strings.Builder
		if r.Report.Text(&b) != nil || r.Report.JSON(&b) != nil || r.Report.Markdown(&b) != nil {
			t.Error("a report cannot be written")
		}
		if r.Config != nil && !partial && !r.Report.Fine() {
			t.Errorf("%q: written although not fine", args)
		}
	})
}
