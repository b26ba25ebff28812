package plan

// Format names the document and its version. A loader refuses every other value.
const Format = "shunt.plan/1"

// Document is a plan file.
type Document struct {
	Format string `json:"format"`
	// Digest is "sha256:" and the hex SHA-256 of Body in compact canonical JSON.
	Digest     string     `json:"digest"`
	Body       Body       `json:"body"`
	Provenance Provenance `json:"provenance"`
}

// Provenance says where a plan came from. It is outside the digest, so that the
// same routing has the same digest whatever file or machine it came from.
type Provenance struct {
	Compiler string   `json:"compiler"`
	Sources  []Source `json:"sources"`
	// Origins stand in the order of the body. A value that is not listed is a
	// default or derived from listed ones. Read them with Places.
	Origins []Origins `json:"origins"`
}

// Origins says where the members of one element of the body were written. One
// line per element instead of one per value keeps a plan of 10,000 buckets small
// enough to read and to load.
type Origins struct {
	// At is the JSON pointer of the element below body.
	At string `json:"at"`
	// Lines are words "member:line" or "member:line@source", in the order of
	// the element. The member is a pointer below At without its first slash;
	// source is an index into Sources, and absent means 0.
	Lines string `json:"lines"`
}

// Source is one file that was compiled, by its path as given.
type Source struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Body is everything that decides how requests are routed and served.
type Body struct {
	Server Server  `json:"server"`
	State  State   `json:"state"`
	Models []Model `json:"models"`
}

// Server holds the process-wide settings. Durations are milliseconds.
type Server struct {
	Listen string `json:"listen"`
	// Admin is the address of the admin listener; empty closes it.
	Admin        string `json:"admin"`
	MaxBodyBytes int64  `json:"max_body_bytes"`
	// RequestTimeoutMS bounds a buffered request from dispatch to its last byte.
	RequestTimeoutMS int64 `json:"request_timeout_ms"`
	ConnectTimeoutMS int64 `json:"connect_timeout_ms"`
	// HeaderTimeoutMS bounds the wait for an engine's response head.
	HeaderTimeoutMS int64 `json:"header_timeout_ms"`
	// StreamIdleTimeoutMS is the longest silence between two stream chunks.
	StreamIdleTimeoutMS int64 `json:"stream_idle_timeout_ms"`
	// StaleTimeoutMS bounds the whole life of a request, streams included.
	StaleTimeoutMS int64 `json:"stale_timeout_ms"`
	// DrainDelayMS keeps the listener open after /readyz turned 503.
	DrainDelayMS int64 `json:"drain_delay_ms"`
	// DrainTimeoutMS bounds the wait for requests in flight after that.
	DrainTimeoutMS int64 `json:"drain_timeout_ms"`
	ExposeDecision bool  `json:"expose_decision"`
	Log            Log   `json:"log"`
}

// Log is the process log: level debug|info|warn|error, format text|json.
type Log struct {
	Level  string `json:"level"`
	Format string `json:"format"`
}

// Model is one model id that clients may ask for.
type Model struct {
	ID string `json:"id"`
	// Engine absent: the engines run SGLang.
	Engine *EngineKind `json:"engine,omitempty"`
	// Tokenizer absent: lengths are estimated from the size of the body.
	Tokenizer *Tokenizer `json:"tokenizer,omitempty"`
	// Sampling absent: requests keep their sampling parameters.
	Sampling *Sampling `json:"sampling,omitempty"`
	// Affinity absent: no policy reads a key.
	Affinity *AffinityHeaders `json:"affinity,omitempty"`
	// SLO absent: latency targets of requests are ignored.
	SLO       *SLO      `json:"slo,omitempty"`
	Breaker   Breaker   `json:"breaker"`
	Discovery Discovery `json:"discovery"`
	// Buckets stand in try order: capacity, then rank, then id.
	Buckets []Bucket `json:"buckets"`
	// Breakpoints are the input lengths at which the candidate buckets change,
	// ascending, the first at 0.
	Breakpoints []Breakpoint `json:"breakpoints"`
	Requires    Requires     `json:"requires"`
}

// Breaker is the passive circuit breaker of each engine of a model.
type Breaker struct {
	// Threshold is the number of consecutive failures that opens it, at least 1.
	Threshold  int64 `json:"threshold"`
	CoolDownMS int64 `json:"cool_down_ms"`
}

// Discovery says where a model's engines come from: exactly one field is set.
type Discovery struct {
	Static *StaticDiscovery `json:"static,omitempty"`
}

// StaticDiscovery lists the engines, sorted by id.
type StaticDiscovery struct {
	Engines []Engine `json:"engines"`
}

// Engine is one serving endpoint. BootstrapPort belongs to prefill engines.
type Engine struct {
	ID string `json:"id"`
	// URL is in the form that NormalizeURL gives, so equal means same engine.
	URL           string            `json:"url"`
	Role          Role              `json:"role"`
	BootstrapPort *int64            `json:"bootstrap_port,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	// KVEvents absent: the engine says itself where it publishes, or publishes
	// nothing.
	KVEvents *KVEvents `json:"kv_events,omitempty"`
}

// Role is what an engine is, and Stage what a pick is for; they share values.
type Role string

// The roles.
const (
	Plain   Role = "plain"
	Prefill Role = "prefill"
	Decode  Role = "decode"
)

// Bucket is a range of request lengths and the groups that serve it.
type Bucket struct {
	ID   string `json:"id"`
	Rank int64  `json:"rank"`
	// Min and Max bound the input tokens, both inclusive.
	Min *int64 `json:"min,omitempty"`
	Max *int64 `json:"max,omitempty"`
	// MaxContextTokens bounds the expected peak, or the input when the peak
	// is unknown.
	MaxContextTokens *int64 `json:"max_context_tokens,omitempty"`
	// TTFTMS and TokensPerSecond are what the bucket is expected to deliver at
	// capacity, above zero; absent is unknown and meets no target.
	TTFTMS          *int64   `json:"ttft_ms,omitempty"`
	TokensPerSecond *float64 `json:"tokens_per_second,omitempty"`
	Groups          Groups   `json:"groups"`
}

// Groups is exactly one of the two fields.
type Groups struct {
	Plain *Group    `json:"plain,omitempty"`
	PD    *PDGroups `json:"pd,omitempty"`
}

// PDGroups are the two engine groups of a PD bucket.
type PDGroups struct {
	Prefill Group `json:"prefill"`
	Decode  Group `json:"decode"`
	// MatchLabels are label names whose values must be equal on both engines.
	MatchLabels []string `json:"match_labels,omitempty"`
}

// Group is the engines of one stage in one bucket and the policy that picks.
type Group struct {
	// WorkerIDs absent is every healthy engine of the model and role, and an
	// empty list is none. Sorted, unique.
	WorkerIDs *[]string `json:"worker_ids,omitempty"`
	// Labels an engine must carry, all of them.
	Labels map[string]string `json:"labels,omitempty"`
	Policy Policy            `json:"policy"`
}

// Breakpoint holds for input lengths from From up to the next breakpoint.
type Breakpoint struct {
	From int64 `json:"from"`
	// Runs are the candidate buckets in try order, as inclusive index ranges
	// into Buckets, ascending and disjoint.
	Runs []Run `json:"runs"`
}

// Run is an inclusive range of bucket indexes: [first, last].
type Run [2]int
