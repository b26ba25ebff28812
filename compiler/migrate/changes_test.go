package migrate_test

import (
	"slices"
	"strings"
	"testing"

	"shunt/compiler/migrate"
)

// rows lists the changes of a report by row and source.
func rows(r *migrate.Report) (out []string) {
	for _, l := range r.Lines {
		for _, c := range l.Changes {
			out = append(out, string(c.Row)+" @ "+strings.Fields(l.Source)[0])
		}
	}
	return out
}

// TestChanges: each deliberate change is stated where it applies, and only there.
func TestChanges(t *testing.T) {
	f := func(row migrate.Row, source, text string) {
		t.Helper()
		if got := rows(run(t, text, migrate.Options{}).Report); !slices.Contains(got, string(row)+" @ "+source) {
			t.Errorf("%s: %s is not at %s: %q", text, row, source, got)
		}
	}
	not := func(row migrate.Row, text string) {
		t.Helper()
		for _, got := range rows(run(t, text, migrate.Options{}).Report) {
			if strings.HasPrefix(got, string(row)+" @") {
				t.Errorf("%s: %s", text, got)
			}
		}
	}
	const limited = "--filter overloaded --max-in-flight 3 "
	f(migrate.PowerOfTwoAdmission, "--policy", whole+limited+"--policy power_of_two")
	f(migrate.PowerOfTwoAdmission, "--decode-policy", pairs+limited)
	not(migrate.PowerOfTwoAdmission, pairs) // nothing is refused without a limit
	not(migrate.PowerOfTwoAdmission, whole)
	not(migrate.PowerOfTwoAdmission, whole+"--decode-policy power_of_two")
	not(migrate.PowerOfTwoAdmission, whole+"--chat-routing reorg")
	not(migrate.RoundRobinCursor, whole) // one group has one cursor
	f(migrate.CapacityExhaustion, "--filter", whole+"--filter overloaded --max-in-flight 3")
	f(migrate.CapacityExhaustion, "--policy", whole+limited+"--policy power_of_two")
	not(migrate.CapacityExhaustion, whole+"--policy power_of_two")
	not(migrate.CapacityExhaustion, whole+"--policy random")
	f(migrate.OnePick, "--policy", whole+"--policy session_aware")
	f(migrate.OnePick, "--policy", whole+limited+"--policy cache_aware")
	not(migrate.OnePick, whole+"--policy cache_aware")
	f(migrate.SessionAffinity, "--policy", whole+"--policy session_aware")
	not(migrate.SessionAffinity, whole+"--policy sticky")
	f(migrate.OmittedMode, "--affinity-mode", whole+"--policy session_aware")
	not(migrate.OmittedMode, whole+"--policy session_aware --affinity-mode strict")
	f(migrate.PressureTuning, "--pressure-rel-threshold", whole+"--policy session_aware --pressure-rel-threshold 2")
	not(migrate.PressureTuning, whole+"--policy cache_aware --pressure-rel-threshold 2")
	f(migrate.EngineCapacity, "--policy", whole+"--policy cache_aware")
	f(migrate.EngineCapacity, "--decode-policy", pairs+"--policy random")
	not(migrate.EngineCapacity, whole+"--policy load_based")
	not(migrate.CandidateBase, whole+"--policy cache_aware") // one group is the fleet
	not(migrate.AffinityScope, whole+"--policy sticky")
	f(migrate.Tokenization, "--tokenizer-path", "--model-id m --worker-urls http://a:1")
	not(migrate.Tokenization, whole)
	f(migrate.Timeouts, "--request-timeout-secs", whole+"--request-timeout-secs 601")
	not(migrate.Timeouts, whole+"--request-timeout-secs 600")
	f(migrate.Shutdown, "--termination-grace-secs", whole+"--termination-grace-secs 6")
	f(migrate.Logging, "--log-level", whole+"--log-level off")
	f(migrate.RoutingPath, "--chat-routing", whole+"--chat-routing legacy")
}

// TestChangesOfBuckets are those that only several buckets have.
func TestChangesOfBuckets(t *testing.T) {
	f := func(line string, want ...string) {
		t.Helper()
		got := rows(withBuckets(t, fleet+line, twoPairs, "", "ps=ds", "pb=db").Report)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: no %q in %q", line, w, got)
			}
		}
	}
	f("", "round-robin cursor @ --policy", "bucket order @ /buckets/0/rank", "bucket order @ /buckets/3/rank",
		"context capacity @ /buckets/0/max_context_tokens", "context capacity @ /buckets/2/max_sequence_tokens",
		"pending budget @ /buckets/0/max_pending_prefill_tokens")
	f("--policy power_of_two", "power-of-two admission @ --policy") // of the budget of one bucket
	f("--policy cache_aware", "candidate base @ --cache-candidate-ratio")
	f("--policy cache_aware --cache-candidate-ratio 0.5", "candidate base @ --cache-candidate-ratio")
	f("--policy sticky", "affinity scope @ --policy")
	f("--policy session_aware", "affinity scope @ --policy")
}
