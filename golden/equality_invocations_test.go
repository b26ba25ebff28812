package golden_test

// plainLengths are three overlapping plain buckets, whose ranks are against their
// capacities, with latency estimates and a budget.
const plainLengths = `{"ttft_slo_policy": "slo_first", "buckets": [
 {"id": "wide", "stage": "prefill", "rank": 1, "worker_ids": ["http://e", "http://f"], "max_context_tokens": 4000, "ttft_p95_at_capacity_ms": 900},
 {"id": "short", "stage": "prefill", "rank": 2, "worker_ids": ["http://a", "http://b"], "max_extend_tokens": 200, "ttft_p95_at_capacity_ms": 100, "max_pending_prefill_tokens": 3000},
 {"id": "middle", "stage": "prefill", "rank": 3, "worker_ids": ["http://c", "http://d"], "min_extend_tokens": 150, "max_extend_tokens": 1000}]}`

const lonePlain = `{"version": 1, "lone": [{"spec": "wide", "as": "plain"}, {"spec": "short", "as": "plain"}, {"spec": "middle", "as": "plain"}]}`

// plainOrdered are two plain buckets that the ranks have in the order of capacity.
const plainOrdered = `{"buckets": [
 {"id": "short", "stage": "prefill", "rank": 1, "worker_ids": ["http://a", "http://b"], "max_extend_tokens": 200},
 {"id": "long", "stage": "prefill", "rank": 2, "worker_ids": ["http://c", "http://d"], "max_extend_tokens": 9000, "max_pending_prefill_tokens": 9000}]}`

const bothPlain = `{"version": 1, "lone": [{"spec": "short", "as": "plain"}, {"spec": "long", "as": "plain"}]}`

// stageSpecs are two buckets of each stage with all bounds of the length.
const stageSpecs = `{"ttft_slo_policy": "best_effort", "tps_slo_policy": "slo_first", "buckets": [
 {"id": "ps", "stage": "prefill", "rank": 1, "worker_ids": ["http://p1", "http://p2"], "max_extend_tokens": 300, "max_context_tokens": 800,
  "ttft_p95_at_capacity_ms": 100, "max_pending_prefill_tokens": 3000},
 {"id": "pl", "stage": "prefill", "rank": 2, "worker_ids": ["http://p3", "http://p4"], "min_extend_tokens": 100, "max_context_tokens": 5000, "ttft_p95_at_capacity_ms": 800},
 {"id": "ds", "stage": "decode", "rank": 1, "worker_ids": ["http://d1", "http://d2"], "max_sequence_tokens": 800, "tps_p05_at_capacity": 80},
 {"id": "dl", "stage": "decode", "rank": 2, "worker_ids": ["http://d3", "http://d4"], "max_context_tokens": 5000, "tps_p05_at_capacity": 30.5}]}`

const stagePairs = `{"version": 1, "pairs": [{"prefill": "ps", "decode": "ds", "id": "small"}, {"prefill": "pl", "decode": "dl", "id": "large"}]}`

// crossedSpecs has stages of different ranks and contexts, which take a decision.
const crossedSpecs = `{"tps_slo_policy": "best_effort", "buckets": [
 {"id": "ps", "stage": "prefill", "rank": 2, "worker_ids": ["http://p1", "http://p2"], "max_extend_tokens": 300},
 {"id": "pl", "stage": "prefill", "rank": 1, "worker_ids": ["http://p3"], "max_context_tokens": 6000},
 {"id": "pd", "stage": "prefill", "rank": 0, "worker_ids": ["http://p4"], "max_extend_tokens": 50},
 {"id": "ds", "stage": "decode", "rank": 1, "worker_ids": ["http://d1", "http://d2"], "max_context_tokens": 800, "tps_p05_at_capacity": 80},
 {"id": "dl", "stage": "decode", "rank": 2, "worker_ids": ["http://d3"], "max_sequence_tokens": 5000, "tps_p05_at_capacity": 30}]}`

const crossedPairs = `{"version": 1,
 "pairs": [{"prefill": "ps", "decode": "ds", "id": "small", "rank": 1}, {"prefill": "pl", "decode": "dl", "id": "large", "rank": 2, "max_context_tokens": 5000}],
 "lone": [{"spec": "pd", "as": "drop"}]}`

// prefillOnly leaves decode engines to all requests.
const prefillOnly = `{"buckets": [
 {"id": "short", "stage": "prefill", "rank": 1, "worker_ids": ["http://p1"], "max_extend_tokens": 300},
 {"id": "long", "stage": "prefill", "rank": 2, "worker_ids": ["http://p2", "http://p3"], "max_context_tokens": 4000}]}`

const openDecode = `{"version": 1, "lone": [{"spec": "short", "as": "pd"}, {"spec": "long", "as": "pd"}]}`

const filtered = " --filter overloaded --max-in-flight 4"

// invocations span the retained policies, plain and in pairs, with and without
// buckets.
func invocations() []invocation {
	three, six, pairs, more := "a b c", "a b c d e f", "p1 p2 p3 d1 d2", "p1 p2 p3 p4 d1 d2 d3 d4"
	all := []invocation{
		{"nothing said", three, "", "", ""},
		{"round_robin, filtered", three, "--policy round_robin" + filtered, "", ""},
		{"round_robin, lengths", six, "--policy round_robin", plainLengths, lonePlain},
		{"round_robin, ordered, filtered", "a b c d", "--policy round_robin" + filtered, plainOrdered, bothPlain},
		{"round_robin, pairs", pairs, "--policy round_robin", "", ""},
		{"random", three, "--policy random", "", ""},
		{"random, lengths, filtered", six, "--policy random" + filtered, plainLengths, lonePlain},
		{"random, stages", more, "--policy random", stageSpecs, stagePairs},
		{"power_of_n", three, "--policy power_of_n --chat-routing legacy", "", ""},
		{"power_of_two", three, "--policy power_of_two", "", ""},
		{"power_of_two, filtered", three, "--policy power_of_two" + filtered, "", ""},
		{"power_of_two, lengths", six, "--policy power_of_two", plainLengths, lonePlain},
		{"power_of_two, stages, filtered", more, "--policy power_of_two --decode-policy power_of_two" + filtered, stageSpecs, stagePairs},
		{"power_of_two, crossed", more[:12] + "d1 d2 d3", "--policy power_of_two", crossedSpecs, crossedPairs},
		{"power_of_two, open decode", pairs, "--policy power_of_two", prefillOnly, openDecode},
		{"power_of_two, open decode, filtered", pairs, "--policy power_of_two" + filtered, prefillOnly, openDecode},
		{"load_based", three, "--policy load_based", "", ""},
		{"load_based, lengths", six, "--policy load_based", plainLengths, lonePlain},
		{"load_based, pairs, filtered", pairs, "--policy load_based" + filtered, "", ""},
		{"session_aware strict", three, "--policy session_aware --affinity-mode strict" + filtered, "", ""},
		{"session_aware strict, ordered", "a b c d", "--policy session_aware --affinity-mode strict", plainOrdered, bothPlain},
		{"session_aware, nothing said", three, "--policy session_aware", "", ""},
		{"session_aware strict, pairs", pairs, "--policy session_aware --affinity-mode strict", "", ""},
		{"sticky, ordered", "a b c d", "--policy sticky", plainOrdered, bothPlain},
		{"sticky, pairs", pairs, "--policy sticky --sticky-fallback-policy power_of_two", "", ""},
	}
	for _, fallback := range []string{"round_robin", "random", "power_of_two", "load_based"} {
		all = append(all, invocation{"sticky by " + fallback, three, "--policy sticky --sticky-fallback-policy " + fallback, "", ""})
	}
	return append(all,
		invocation{"cache_aware", three, "--policy cache_aware", "", ""},
		invocation{"cache_aware, filtered", three, "--policy cache_aware --cache-switch-margin-tokens 0" + filtered, "", ""},
		invocation{"cache_aware, gated", three, "--policy cache_aware --worker-queue-limit 4 --disable-pressure-guard", "", ""},
		invocation{"cache_aware, floored", three, "--policy cache_aware --worker-queue-limit 4 --saturation-queue-floor 3 --cache-affinity-min-match-ratio 0.5", "", ""},
		invocation{"cache_aware, tuned", pairs, "--policy cache_aware --cache-affinity-min-matched-tokens 100 --pressure-abs-threshold-tokens 10 --pressure-rel-threshold 3 --cache-candidate-max-workers 2 --cache-candidate-min-workers 1 --cache-candidate-ratio 0.5", "", ""},
		invocation{"cache_aware, by time", three, "--policy cache_aware --pressure-abs-threshold-ms 500 --min-load-choices 3 --kv-indexer-endpoint http://i:1", "", ""},
		invocation{"cache_aware, ordered", "a b c d", "--policy cache_aware --cache-affinity-min-matched-tokens 10 --cache-candidate-min-workers 1 --cache-candidate-ratio 0.5 --worker-queue-limit 4", plainOrdered, bothPlain},
	)
}
