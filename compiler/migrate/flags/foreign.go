package flags

// Foreign is an argument that only other versions of the router had.
type Foreign struct {
	Name string
	// Switch takes no value.
	Switch bool
	// Version is the version in words, such as "an earlier version".
	Version string
	// Why says what became of it, and Way what to do, as one clause each.
	Why, Way string
}

// The versions of foreign arguments.
const (
	earlier = "an earlier version"
	later   = "a later version"
	vendor  = "a vendor's version"
	both    = "earlier and later versions"
)

// ForeignTable lists the arguments of other versions. The slice is the caller's.
func ForeignTable() []Foreign {
	const (
		noRetry   = "requests are sent once; an engine that fails is not replaced by another one"
		noPeers   = "the index is filled from the engines' events alone"
		noQueue   = "requests that no engine may take are refused at once and not parked"
		remove    = "remove it"
		noPayload = "the router keeps no copies of requests"
	)
	return []Foreign{
		{Name: "cache-threshold", Version: earlier, Why: "it belonged to cache_aware_zmq, which cache_aware replaced with other measures", Way: "remove it, use --policy cache_aware, and review --cache-affinity-min-match-ratio, which is not equivalent"},
		{Name: "balance-abs-threshold", Version: earlier, Why: "it belonged to cache_aware_zmq, which cache_aware replaced with other measures", Way: "remove it, and review --pressure-abs-threshold-tokens, which is not equivalent"},
		{Name: "balance-rel-threshold", Version: earlier, Why: "it belonged to cache_aware_zmq, which cache_aware replaced with other measures", Way: "remove it, and review --pressure-rel-threshold, which is not equivalent"},
		{Name: "affinity-aware-range", Version: earlier, Why: "it was removed without a successor", Way: remove},
		{Name: "tokenizer-shards", Version: earlier, Why: "it was removed; prompts are tokenized on all cores", Way: remove},
		{Name: "tokenizer-backend", Version: both, Why: "there is one implementation of the tokenizer, whose ids are exact", Way: remove},
		{Name: "tokenizer-l1-cache-mb", Version: both, Why: "the tokenizer has no cache to size", Way: remove},
		{Name: "max-output-tokens", Version: earlier, Why: "the router bounds no output", Way: "bound max_tokens at the engines, or bound a bucket by max_context_tokens"},
		{Name: "disable-input-ids-offload", Switch: true, Version: earlier, Why: "it became --disable-input-ids-forwarding", Way: "write --disable-input-ids-forwarding"},
		{Name: "stream-send-stall-secs", Version: earlier, Why: "a client that is gone is noticed at the next chunk", Way: remove},
		{Name: "stream-total-timeout-secs", Version: earlier, Why: "--stale-request-timeout-secs bounds the whole life of a request, streams included", Way: "write --stale-request-timeout-secs"},
		{Name: "max-concurrent-requests-per-worker", Version: earlier, Why: "it parked requests in a queue; " + noQueue, Way: "the nearest is --filter overloaded with --max-in-flight, which refuses instead of parking"},
		{Name: "max-queued-requests", Version: earlier, Why: noQueue, Way: remove},
		{Name: "enable-retry", Switch: true, Version: earlier, Why: noRetry, Way: "remove it, and retry in the client"},
		{Name: "retry-max-target-itl-ms", Version: earlier, Why: noRetry, Way: "remove it, and retry in the client"},
		{Name: "retry-itl-rel-factor", Version: earlier, Why: noRetry, Way: "remove it, and retry in the client"},
		{Name: "retry-attempt-deadline-ms", Version: earlier, Why: noRetry, Way: "remove it, and retry in the client"},
		{Name: "retry-max-attempts", Version: later, Why: noRetry, Way: "remove it, and retry in the client; 1 means no retry and changes nothing"},
		{Name: "kv-peer-selector", Version: both, Why: noPeers, Way: remove},
		{Name: "kv-bootstrap-timeout-ms", Version: both, Why: noPeers, Way: remove},
		{Name: "kv-bootstrap-fetch-timeout-cap-ms", Version: both, Why: noPeers, Way: remove},
		{Name: "kv-bootstrap-seed-required", Switch: true, Version: both, Why: noPeers, Way: remove},
		{Name: "mm-affinity-idle-secs", Version: earlier, Why: "affinity by images belonged to cache_aware_zmq and was dropped", Way: remove},
		{Name: "mm-affinity-eviction-interval-secs", Version: earlier, Why: "affinity by images belonged to cache_aware_zmq and was dropped", Way: remove},
		{Name: "cache-sim-url", Version: vendor, Why: noPayload, Way: remove},
		{Name: "cache-sim-max-concurrent-captures", Version: vendor, Why: noPayload, Way: remove},
		{Name: "token-export-s3-uri", Version: vendor, Why: noPayload, Way: remove},
		{Name: "pd-version-group-label", Version: later, Why: "pairs are held together by labels of the engines", Way: "remove it, give the engines the label, and name it in match_labels of the PD buckets"},
		{Name: "transfer-group-label", Version: later, Why: "pairs are held together by labels of the engines", Way: "remove it, give the engines the label, and name it in match_labels of the PD buckets"},
		{Name: "no-tokenizer", Switch: true, Version: later, Why: "a configuration without tokenizer says the same", Way: "remove it, and answer tokenizer: none in the decisions file"},
		{Name: "dp-aware", Switch: true, Version: later, Why: "the ranks of an engine are summed up, and the engine chooses among them", Way: remove},
		{Name: "worker-api-key", Version: later, Why: "the client's Authorization header is passed on, and the router adds none", Way: "remove it, and let clients send the key"},
		{Name: "default-chat-template-kwargs", Version: later, Why: "the template gets what the request has", Way: "remove it, and let clients send chat_template_kwargs"},
		{Name: "max-running-usage", Version: later, Why: "limits are counts, and this is a share of a capacity that the configuration does not know", Way: "remove it, and write max_running_requests as a number"},
		{Name: "max-kv-usage", Version: later, Why: "limits are counts, and this is a share of a capacity that the configuration does not know", Way: "remove it, and write max_kv_tokens as a number"},
		{Name: "affinity-balanced-by", Version: later, Why: "bindings are reused while admitted, and nothing balances them", Way: remove},
		{Name: "affinity-load-factor", Version: later, Why: "bindings are reused while admitted, and nothing balances them", Way: remove},
		{Name: "affinity-load-gap", Version: later, Why: "bindings are reused while admitted, and nothing balances them", Way: remove},
		{Name: "config", Version: earlier, Why: "it named a whole configuration file", Way: "give that file itself to shunt migrate"},
	}
}

// otherWord explains a value that only another version has, or that never was a
// value of the argument although people write it. It is nothing for any other.
func otherWord(flag, value string) (why, way string) {
	switch flag + " " + value {
	case "policy cache_aware_zmq":
		return "it was removed in favour of cache_aware, whose thresholds have other names and meanings", "write --policy cache_aware and review its thresholds"
	case "policy prefix_cache":
		return "it never was a policy but a filter and a term of --fuse, both of which were dropped", "write --policy cache_aware"
	case "policy overloaded":
		return "it never was a policy but a filter", "write --filter overloaded with --max-in-flight"
	case "policy least_load":
		return "the name on the command line is load_based", "write --policy load_based"
	case "affinity-mode prefer", "affinity-mode balanced":
		return "it is of a later version; bindings are reused while admitted, and nothing balances them", "write --affinity-mode strict or remove the argument"
	}
	return "", ""
}
