package flags

// Kind is how an argument takes its values.
type Kind uint8

// The kinds of arguments.
const (
	// Switch takes no value.
	Switch Kind = iota
	// Text takes any text.
	Text
	// Uint takes a decimal number of at most Bits bits.
	Uint
	// Float takes a decimal number, also inf and nan, which start-up refuses
	// where they make no sense.
	Float
	// Word takes one of Words, in exactly that case.
	Word
	// List takes every word up to the next argument, and may be repeated.
	List
	// Commas takes one text of words between commas, and may be repeated.
	Commas
)

// Flag is an argument that the migration knows. Every name is that of the
// command line without its dashes.
type Flag struct {
	Name string
	Kind Kind
	// Bits bounds a Uint, and is the precision of a Float.
	Bits int
	// NonZero makes the parser refuse 0.
	NonZero bool
	// Words are the values of Word, and of Commas unless it is empty.
	Words []string
	// Default is the value of an absent argument in words; it is empty when
	// there is none.
	Default string
	// Unit follows a number in reports, such as "s".
	Unit string
	// Neighbour marks the arguments of the neighbouring versions that name the
	// routing path, which are accepted with a note.
	Neighbour bool
}

// Policies are the values of --policy that start the router.
var policies = []string{
	"round_robin", "random", "power_of_two", "load_based", "cache_aware", "session_aware", "sticky",
	"score_policy", "fused_score",
}

// Table lists the arguments of the version that is migrated, in the order of its
// help, and those of its neighbours behind them. The slice is the caller's, what
// it points to is not.
func Table() []Flag {
	return []Flag{
		{Name: "model-id", Kind: Text},
		{Name: "tokenizer-path", Kind: Text, Default: "the value of --model-id"},
		{Name: "disable-input-ids-forwarding", Kind: Switch, Default: "off"},
		{Name: "override-sampling-params", Kind: Text},
		{Name: "sampling-param-conflict", Kind: Word, Words: []string{"reject", "allow"}, Default: "reject"},

		{Name: "host", Kind: Text, Default: "127.0.0.1"},
		{Name: "port", Kind: Uint, Bits: 16, Default: "30000"},
		{Name: "shutdown-drain-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "30"},
		{Name: "termination-grace-secs", Kind: Uint, Bits: 64, Unit: "s"},
		{Name: "request-timeout-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "300"},
		{Name: "stream-idle-timeout-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "180"},
		{Name: "stale-request-timeout-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "600"},
		{Name: "log-level", Kind: Text, Default: "info"},
		{Name: "log-format", Kind: Word, Words: []string{"text", "json"}, Default: "text"},

		{Name: "worker-urls", Kind: List},
		{Name: "service-discovery", Kind: Switch, Default: "off"},
		{Name: "service-discovery-namespace", Kind: Text, Default: "all namespaces"},
		{Name: "selector", Kind: List},
		{Name: "prefill-selector", Kind: List},
		{Name: "decode-selector", Kind: List},

		{Name: "policy", Kind: Word, Words: append([]string{"power_of_n"}, policies...), Default: "round_robin"},
		{Name: "decode-policy", Kind: Word, Words: []string{"power_of_two", "legacy_host_affinity", "power_of_n"}, Default: "power_of_two"},
		{Name: "bucket-config", Kind: Text},
		{Name: "fuse", Kind: Commas, Default: "prefix_cache,load_based"},
		{Name: "filter", Kind: Commas, Words: []string{"overloaded", "prefix_cache"}},
		{Name: "max-in-flight", Kind: Uint, Bits: 64},
		{Name: "prefix-cache-min-share", Kind: Float, Bits: 32},
		{Name: "cb-threshold", Kind: Uint, Bits: 32, NonZero: true},
		{Name: "cb-cool-down-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "30"},

		{Name: "cache-prefix-provider", Kind: Word, Words: []string{"radix_tree", "indexer"}, Default: "radix_tree, or indexer with an endpoint"},
		{Name: "kv-indexer-endpoint", Kind: Text},
		{Name: "kv-indexer-query-timeout-ms", Kind: Uint, Bits: 64, Unit: "ms", Default: "100"},
		{Name: "kv-indexer-query-max-inflight", Kind: Uint, Bits: 64, Default: "32"},
		{Name: "cache-affinity-min-matched-tokens", Kind: Uint, Bits: 64, Default: "1024"},
		{Name: "cache-affinity-min-match-ratio", Kind: Float, Bits: 64},
		{Name: "cache-candidate-min-workers", Kind: Uint, Bits: 64, Default: "8"},
		{Name: "cache-candidate-ratio", Kind: Float, Bits: 64, Default: "0.05"},
		{Name: "cache-candidate-max-workers", Kind: Uint, Bits: 64, Default: "32"},
		{Name: "cache-switch-margin-tokens", Kind: Uint, Bits: 64, Default: "1024"},
		{Name: "worker-queue-limit", Kind: Uint, Bits: 64},
		{Name: "saturation-queue-floor", Kind: Uint, Bits: 64},
		{Name: "min-load-choices", Kind: Uint, Bits: 64, Default: "2"},

		{Name: "session-id-header", Kind: Text, Default: "x-session-id"},
		{Name: "session-idle-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "600"},
		{Name: "session-eviction-interval-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "60"},
		{Name: "stable-pair", Kind: Switch, Default: "off"},
		{Name: "affinity-mode", Kind: Word, Words: []string{"strict", "soft"}, Default: "soft"},
		{Name: "session-affinity-mode", Kind: Word, Words: []string{"bucket", "global-rebind", "global-preserve"}, Default: "bucket"},
		{Name: "routing-key-header", Kind: Text, Default: "x-sgl-routing-key"},
		{Name: "sticky-fallback-policy", Kind: Word, Words: []string{"round_robin", "random", "power_of_two", "load_based", "power_of_n"}, Default: "round_robin"},
		{Name: "sticky-idle-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "600"},
		{Name: "sticky-eviction-interval-secs", Kind: Uint, Bits: 64, Unit: "s", Default: "60"},
		{Name: "disable-pressure-guard", Kind: Switch, Default: "off"},
		{Name: "pressure-abs-threshold-tokens", Kind: Uint, Bits: 64, Default: "1024"},
		{Name: "pressure-abs-threshold-ms", Kind: Float, Bits: 64, Unit: "ms"},
		{Name: "pressure-rel-threshold", Kind: Float, Bits: 64, Default: "1.5"},

		{Name: "chat-routing", Kind: Word, Words: []string{"legacy", "reorg"}, Default: "legacy", Neighbour: true},
		{Name: "selection-engine", Kind: Word, Words: []string{"legacy", "reorg"}, Default: "legacy", Neighbour: true},
		{Name: "power-of-n-choices", Kind: Uint, Bits: 64, NonZero: true, Default: "2", Neighbour: true},
		{Name: "reorg-config", Kind: Text, Neighbour: true},
		{Name: "max-waiting-requests", Kind: Uint, Bits: 64, Neighbour: true},
		{Name: "max-pending-prefill-tokens", Kind: Uint, Bits: 64, Neighbour: true},
	}
}
