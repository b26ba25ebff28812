package plan

// State configures the state services that policies share. A section is absent
// when no policy needs the service.
type State struct {
	Load     LoadState      `json:"load"`
	Prefix   *PrefixState   `json:"prefix,omitempty"`
	Affinity *AffinityState `json:"affinity,omitempty"`
}

// LoadState says how load reports arrive, and how long one counts.
type LoadState struct {
	Transport LoadTransport `json:"transport"`
	// PollIntervalMS is the pause between two questions to an engine.
	PollIntervalMS int64 `json:"poll_interval_ms"`
	FreshnessMS    int64 `json:"freshness_ms"`
}

// LoadTransport is how load reports arrive.
type LoadTransport string

// The transports. LoadAuto listens to what an engine publishes and polls where
// it publishes nothing; LoadPoll only polls.
const (
	LoadAuto LoadTransport = "auto"
	LoadPoll LoadTransport = "poll"
)

// PrefixState says who knows which engine holds which prompt prefix: exactly one
// field is set.
type PrefixState struct {
	Local  *LocalPrefix  `json:"local,omitempty"`
	Remote *RemotePrefix `json:"remote,omitempty"`
}

// LocalPrefix is an index in this process, of at most MaxBlocks blocks.
type LocalPrefix struct {
	MaxBlocks int64 `json:"max_blocks"`
}

// RemotePrefix is an index service.
type RemotePrefix struct {
	// Endpoint is http://host:port or https://host:port, in the form that
	// NormalizeURL gives.
	Endpoint string `json:"endpoint"`
	// QueryTimeoutMS bounds one query.
	QueryTimeoutMS int64 `json:"query_timeout_ms"`
	// MaxInflight bounds the queries of the whole process.
	MaxInflight int64 `json:"max_inflight"`
}

// AffinityState says where bindings are kept: exactly one of Memory and Redis is
// set.
type AffinityState struct {
	// IdleMS is how long an unused binding lives.
	IdleMS int64           `json:"idle_ms"`
	Memory *MemoryAffinity `json:"memory,omitempty"`
	Redis  *RedisAffinity  `json:"redis,omitempty"`
}

// MemoryAffinity keeps at most MaxEntries bindings in this process, and removes
// idle ones every SweepMS.
type MemoryAffinity struct {
	MaxEntries int64 `json:"max_entries"`
	SweepMS    int64 `json:"sweep_ms"`
}

// RedisAffinity keeps bindings in Redis, shared by several routers.
type RedisAffinity struct {
	// URL refers to the URL and never is it: "env:NAME" or "file:PATH".
	URL string `json:"url"`
	// OnFailure is what happens to a request when Redis does not answer.
	OnFailure OnFailure `json:"on_failure"`
	// TimeoutMS bounds each call, connecting included.
	TimeoutMS int64 `json:"timeout_ms"`
}

// OnFailure is what a missing state service does to a request.
type OnFailure string

// The choices. FailFallback serves the request without a binding.
const (
	FailFallback OnFailure = "fallback"
	FailReject   OnFailure = "reject"
)
