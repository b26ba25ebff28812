package plan

// EngineKind is what the engines of a model run, if not SGLang.
type EngineKind struct {
	Type EngineType `json:"type"`
	// Hashing absent: no policy looks up prefixes.
	Hashing *Hashing `json:"hashing,omitempty"`
}

// EngineType names an engine's program.
type EngineType string

// VLLM is the only type besides the one that goes without saying.
const VLLM EngineType = "vllm"

// Hashing is how vLLM hashes the blocks of a prompt.
type Hashing struct {
	Algorithm HashAlgorithm `json:"algorithm"`
	// BlockSize is the number of tokens in a block.
	BlockSize int64 `json:"block_size"`
	// Seed is the text that is hashed for the parent of first blocks.
	Seed string `json:"seed"`
}

// HashAlgorithm is how vLLM hashes.
type HashAlgorithm string

// SHA256CBOR is the only algorithm whose hashes can be computed here.
const SHA256CBOR HashAlgorithm = "sha256_cbor"

// KVEvents is where an engine publishes its cache events: rank r at Port + r.
type KVEvents struct {
	// Host absent is the host of the engine's URL.
	Host string `json:"host,omitempty"`
	Port int64  `json:"port"`
	// ReplayPort absent: what was lost cannot be asked for.
	ReplayPort *int64 `json:"replay_port,omitempty"`
	Topic      string `json:"topic"`
	Ranks      int64  `json:"ranks"`
}

// RunsVLLM reports whether the engines of the model run vLLM.
func (m *Model) RunsVLLM() bool { return m.Engine != nil && m.Engine.Type == VLLM }

// Tokenizer is who turns prompts into tokens: exactly one of Path and Engine is
// set.
type Tokenizer struct {
	// Path is a folder or a tokenizer.json, beside which the other files have
	// their usual names. One that is not absolute is relative to the working
	// directory.
	Path   string           `json:"path,omitempty"`
	Engine *EngineTokenizer `json:"engine,omitempty"`
	// ForwardInputIDs sends the token ids along to engines where they provably
	// are what the engine would compute.
	ForwardInputIDs bool `json:"forward_input_ids"`
}

// EngineTokenizer asks the engines' own /tokenize. Without an answer the length of
// a prompt is estimated from the size of its body.
type EngineTokenizer struct {
	// TimeoutMS bounds the wait for the ids of one request, MaxInflight the
	// questions of the model at a time, and MaxBodyBytes what is asked about.
	TimeoutMS    int64 `json:"timeout_ms"`
	MaxInflight  int64 `json:"max_inflight"`
	MaxBodyBytes int64 `json:"max_body_bytes"`
}

// Sampling is what a model allows requests to choose.
type Sampling struct {
	Conflict Conflict `json:"conflict"`
	// Params stand in the order of SamplingNames, in which they are added to
	// requests.
	Params []SamplingParam `json:"params"`
}

// Conflict is what happens to a request with a sampling value of its own that
// differs from an exact one or lies outside a band.
type Conflict string

// The choices. ConflictReject refuses the request, ConflictAllow lets the
// client's value pass.
const (
	ConflictReject Conflict = "reject"
	ConflictAllow  Conflict = "allow"
)

// SamplingParam is Value, which is added to requests without one, or the
// inclusive band from Min to Max, which only checks.
type SamplingParam struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value,omitempty"`
	Min   *float64 `json:"min,omitempty"`
	Max   *float64 `json:"max,omitempty"`
}

// SamplingNames lists the parameters that a model can set or bound.
var SamplingNames = [...]string{
	"temperature", "top_p", "top_k", "min_p", "repetition_penalty",
	"frequency_penalty", "presence_penalty", "n",
}

// AffinityHeaders are the request headers that carry affinity keys, each present
// exactly when a policy of the model reads it. The names are in lower case.
type AffinityHeaders struct {
	SessionID  string `json:"session_id_header,omitempty"`
	RoutingKey string `json:"routing_key_header,omitempty"`
}

// SLO says what latency targets of requests do to the try order. At least one of
// the modes is not SLODisabled.
type SLO struct {
	TTFT SLOMode `json:"ttft"`
	TPS  SLOMode `json:"tps"`
}

// SLOMode is what one target does.
type SLOMode string

// The modes. SLOFirst tries buckets whose estimate meets the target first,
// BestEffort last.
const (
	SLODisabled SLOMode = "disabled"
	SLOFirst    SLOMode = "slo_first"
	BestEffort  SLOMode = "best_effort"
)
