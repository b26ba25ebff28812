package config

// Everything that may be absent has its default here, in the unit of the plan.
const (
	// DefaultListen serves clients of this host only; exposing the router is a
	// decision that a configuration must show.
	DefaultListen = "127.0.0.1:30000"
	// DefaultAdmin is the port after DefaultListen, on loopback.
	DefaultAdmin = "127.0.0.1:30001"
	// DefaultMaxBodyBytes is the body limit that clients of older routers know.
	DefaultMaxBodyBytes = 32 << 20
	// DefaultRequestTimeoutMS covers a long buffered generation.
	DefaultRequestTimeoutMS = 300_000
	// DefaultConnectTimeoutMS is enough for a lost SYN and its repetition.
	DefaultConnectTimeoutMS = 5_000
	// The default of header_timeout is the value of request_timeout, because a
	// buffered response has its head when it is complete.

	// DefaultStreamIdleTimeoutMS is longer than the longest prefill between
	// two chunks.
	DefaultStreamIdleTimeoutMS = 180_000
	// DefaultStaleTimeoutMS ends requests that nobody else ended.
	DefaultStaleTimeoutMS = 600_000
	// DefaultDrainDelayMS lets load balancers see a failing readiness.
	DefaultDrainDelayMS = 5_000
	// DefaultDrainTimeoutMS is the usual grace period of a container.
	DefaultDrainTimeoutMS = 30_000
	// DefaultExposeDecision keeps engine names from clients.
	DefaultExposeDecision = false
	// DefaultLogLevel shows each change of state and one line a request.
	DefaultLogLevel = "info"
	// DefaultLogFormat is for people.
	DefaultLogFormat = "text"

	// DefaultBreakerThreshold and DefaultBreakerCoolDownMS are those of older
	// routers.
	DefaultBreakerThreshold  = 3
	DefaultBreakerCoolDownMS = 30_000

	// DefaultFreshnessMS is how long a load report counts.
	DefaultFreshnessMS = 5_000
	// DefaultPollIntervalMS is how often an engine that publishes no load is
	// asked.
	DefaultPollIntervalMS = 1_000

	// DefaultLoadTransport listens to engines that publish, and polls the others.
	DefaultLoadTransport = "auto"
	// DefaultMaxBlocks takes about 40 MB when full.
	DefaultMaxBlocks = 1_000_000
	// DefaultQueryTimeoutMS is what a request waits for a remote index at most.
	DefaultQueryTimeoutMS = 100
	// DefaultQueryInflight bounds the queries of a process.
	DefaultQueryInflight = 32
	// DefaultMaxEntries bounds the bindings in memory.
	DefaultMaxEntries = 1_000_000
	// DefaultIdleMS and DefaultSweepMS are those of older routers.
	DefaultIdleMS  = 600_000
	DefaultSweepMS = 60_000
	// DefaultOnFailure serves requests without a binding while Redis is down.
	DefaultOnFailure = "fallback"
	// DefaultRedisTimeoutMS is what a request waits for Redis at most.
	DefaultRedisTimeoutMS = 100

	// DefaultForwardInputIDs spares engines the tokenization where it provably
	// gives the same ids. It holds where the router tokenizes: ids that come from
	// an engine are worth asking for only if something routes by them.
	DefaultForwardInputIDs = true
	// DefaultTokenizeTimeoutMS is what a request waits for an engine's ids at most.
	DefaultTokenizeTimeoutMS = 500
	// DefaultTokenizeInflight bounds the questions of a model.
	DefaultTokenizeInflight = 32
	// DefaultTokenizeBody is the largest body that an engine is asked about.
	DefaultTokenizeBody = 1 << 20
	// DefaultEngineType is what engines run.
	DefaultEngineType = "sglang"
	// DefaultHashSeed is what vLLM hashes where no PYTHONHASHSEED is set.
	DefaultHashSeed = "vllm-none-hash"
	// DefaultRanks is an engine without data parallelism.
	DefaultRanks = 1
	// DefaultConflict holds clients to what the model allows.
	DefaultConflict = "reject"
	// DefaultSessionHeader and DefaultRoutingKeyHeader are those of older routers.
	DefaultSessionHeader    = "x-session-id"
	DefaultRoutingKeyHeader = "x-sgl-routing-key"
	// DefaultSLO ignores latency targets of requests.
	DefaultSLO = "disabled"

	// DefaultRank puts buckets of one capacity in the order of their ids.
	DefaultRank = 0
	// DefaultPolicyType applies where neither group nor model names a policy.
	DefaultPolicyType = "power_of_two"
	// DefaultChoices is the two of power_of_two, also inside other policies.
	DefaultChoices = 2
	// DefaultStickyFallback spreads new keys evenly.
	DefaultStickyFallback = "round_robin"

	// The tuning of cache_aware; its other fields are off when absent.

	// DefaultMinMatchedTokens is the shortest match worth following.
	DefaultMinMatchedTokens = 1024
	// DefaultMinMatchRatio leaves the share of the match unchecked.
	DefaultMinMatchRatio = 0
	// DefaultCandidateMin, DefaultCandidateRatio and DefaultCandidateMax bound
	// the holders that are considered.
	DefaultCandidateMin   = 8
	DefaultCandidateRatio = 0.05
	DefaultCandidateMax   = 32
	// DefaultSwitchMargin is about a tenth of a second of prefill.
	DefaultSwitchMargin = 1024
	// DefaultPressureGuard lets load overrule the cache.
	DefaultPressureGuard = true
	// DefaultPressureTokens and DefaultPressureFactor are what counts as
	// materially more pressure.
	DefaultPressureTokens = 1024
	DefaultPressureFactor = 1.5

	// CatchAllPlain and CatchAllPD are the ids of the bucket of a model that
	// lists none.
	CatchAllPlain = "plain"
	CatchAllPD    = "pd"
)

// Or returns what p points to, or the default for an absent value.
func Or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// MSOr returns the milliseconds of a duration, or the default for an absent one.
func MSOr(d *Duration, def int64) int64 {
	if d == nil {
		return def
	}
	return d.MS()
}

// BytesOr returns the bytes of a size, or the default for an absent one.
func BytesOr(s *Size, def int64) int64 {
	if s == nil {
		return def
	}
	return s.Bytes()
}

// For returns the model's default policy for groups of a stage, and nil when it
// has none.
func (d *Defaults) For(stage string) *Policy {
	if stage == "decode" {
		return d.DecodePolicy
	}
	return d.Policy
}
