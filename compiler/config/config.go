package config

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Config is a whole configuration.
type Config struct {
	Version int64   `json:"version"`
	Server  Server  `json:"server"`
	Models  []Model `json:"models"`
	State   State   `json:"state"`
}

// Server holds the process-wide settings.
type Server struct {
	Listen *string `json:"listen"`
	// Admin is an address, or Off.
	Admin             *string   `json:"admin"`
	MaxBody           *Size     `json:"max_body"`
	RequestTimeout    *Duration `json:"request_timeout"`
	ConnectTimeout    *Duration `json:"connect_timeout"`
	HeaderTimeout     *Duration `json:"header_timeout"`
	StreamIdleTimeout *Duration `json:"stream_idle_timeout"`
	StaleTimeout      *Duration `json:"stale_timeout"`
	DrainDelay        *Duration `json:"drain_delay"`
	DrainTimeout      *Duration `json:"drain_timeout"`
	ExposeDecision    *bool     `json:"expose_decision"`
	Log               Log       `json:"log"`
}

// Off is the value of server.admin that closes the admin listener.
const Off = "off"

// Log is the log of the process.
type Log struct {
	Level  *string `json:"level"`
	Format *string `json:"format"`
}

// Model is one model id that clients may ask for.
type Model struct {
	ID        string          `json:"id"`
	Engine    *EngineKind     `json:"engine"`
	Tokenizer *Tokenizer      `json:"tokenizer"`
	Sampling  *Sampling       `json:"sampling"`
	Affinity  AffinityHeaders `json:"affinity"`
	Breaker   Breaker         `json:"breaker"`
	Discovery Discovery       `json:"discovery"`
	Defaults  Defaults        `json:"defaults"`
	TTFTSLO   *string         `json:"ttft_slo"`
	TPSSLO    *string         `json:"tps_slo"`
	// Buckets absent is one catch-all bucket; an empty list is a mistake.
	Buckets *[]Bucket `json:"buckets"`
}

// EngineKind is what the engines of a model run: Type is sglang or vllm, and the
// rest belongs to the latter.
type EngineKind struct {
	Type      string  `json:"type"`
	BlockSize *int64  `json:"block_size"`
	Hash      *string `json:"hash"`
	HashSeed  *string `json:"hash_seed"`
}

// VLLM is the type of models whose engines run vLLM.
const VLLM = "vllm"

// RunsVLLM reports whether the engines of the model run vLLM.
func (m *Model) RunsVLLM() bool { return m.Engine != nil && m.Engine.Type == VLLM }

// Forwards reports whether ids are sent along to engines.
func (m *Model) Forwards() bool {
	t := m.Tokenizer
	return t != nil && Or(t.ForwardInputIDs, DefaultForwardInputIDs && t.Engine == nil && !m.RunsVLLM())
}

// Tokenizer is who turns prompts into tokens: exactly one of Path and Engine is
// written. Path is a folder or a tokenizer.json.
type Tokenizer struct {
	Path            *string          `json:"path"`
	Engine          *EngineTokenizer `json:"engine"`
	ForwardInputIDs *bool            `json:"forward_input_ids"`
}

// EngineTokenizer is how engines are asked to tokenize.
type EngineTokenizer struct {
	Timeout     *Duration `json:"timeout"`
	MaxInflight *int64    `json:"max_inflight"`
	MaxBody     *Size     `json:"max_body"`
}

// Sampling is what a model allows requests to choose, by parameter.
type Sampling struct {
	Params   map[string]Param `json:"params"`
	Conflict *string          `json:"conflict"`
}

// Param is Value, or the band from Min to Max.
type Param struct{ Value, Min, Max *float64 }

// UnmarshalJSON reads a number, or an object with min and max. Anything else is
// left out, as Decode does it.
func (p *Param) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &p.Value) == nil {
		return nil
	}
	var band struct {
		Min *float64 `json:"min"`
		Max *float64 `json:"max"`
	}
	_ = json.Unmarshal(data, &band) // a mistake of shape is reported by its check
	*p = Param{Min: band.Min, Max: band.Max}
	return nil
}

// AffinityHeaders are the request headers that carry affinity keys.
type AffinityHeaders struct {
	SessionID  *string `json:"session_id_header"`
	RoutingKey *string `json:"routing_key_header"`
}

// Breaker is when an engine that fails is left alone.
type Breaker struct {
	Threshold *int64    `json:"threshold"`
	CoolDown  *Duration `json:"cool_down"`
}

// Discovery is where the engines of a model come from.
type Discovery struct {
	Static *Static `json:"static"`
}

// Static is a fixed list of engines.
type Static struct {
	Engines []Engine `json:"engines"`
}

// Engine is one serving endpoint. Role is plain, prefill or decode.
type Engine struct {
	ID            string            `json:"id"`
	URL           string            `json:"url"`
	Role          string            `json:"role"`
	BootstrapPort *int64            `json:"bootstrap_port"`
	Labels        map[string]string `json:"labels"`
	KVEvents      *KVEvents         `json:"kv_events"`
}

// KVEvents is where an engine publishes its cache events.
type KVEvents struct {
	Host       *string `json:"host"`
	Port       int64   `json:"port"`
	ReplayPort *int64  `json:"replay_port"`
	Topic      *string `json:"topic"`
	Ranks      *int64  `json:"ranks"`
}

// Defaults are the policies of groups that have none: Policy for plain and
// prefill groups, DecodePolicy for decode groups.
type Defaults struct {
	Policy       *Policy `json:"policy"`
	DecodePolicy *Policy `json:"decode_policy"`
}

// Bucket is a range of request lengths and the groups that serve it.
type Bucket struct {
	ID               string   `json:"id"`
	Rank             *int64   `json:"rank"`
	Limits           Limits   `json:"limits"`
	MaxContextTokens *int64   `json:"max_context_tokens"`
	TTFTMS           *int64   `json:"ttft_ms"`
	TokensPerSecond  *float64 `json:"tokens_per_second"`
	Groups           Groups   `json:"groups"`
}

// Limits are inclusive bounds of the input length in tokens.
type Limits struct {
	Min *int64 `json:"min"`
	Max *int64 `json:"max"`
}

// Groups is exactly one of the two fields.
type Groups struct {
	Plain *Group    `json:"plain"`
	PD    *PDGroups `json:"pd"`
}

// PDGroups are the two groups of a PD bucket.
type PDGroups struct {
	Prefill     Group    `json:"prefill"`
	Decode      Group    `json:"decode"`
	MatchLabels []string `json:"match_labels"`
}

// Group is the engines of one stage in one bucket and their policy.
type Group struct {
	// WorkerIDs absent is every engine of the role, an empty list is none.
	WorkerIDs *[]string         `json:"worker_ids"`
	Labels    map[string]string `json:"labels"`
	Policy    *Policy           `json:"policy"`
}

// Policy is a type, its tuning, and limits. The schema has checked that the
// tuning is that of the type.
type Policy struct {
	Type      string    `json:"type"`
	Admission Admission `json:"admission"`
	// Choices belongs to power_of_two and session_aware, Fallback to sticky.
	Choices  *int64  `json:"choices"`
	Fallback *string `json:"fallback"`
	CacheTuning
}

// CacheTuning is the tuning of cache_aware.
type CacheTuning struct {
	MinMatchedTokens           *int64   `json:"min_matched_tokens"`
	MinMatchRatio              *float64 `json:"min_match_ratio"`
	CandidateMinWorkers        *int64   `json:"candidate_min_workers"`
	CandidateRatio             *float64 `json:"candidate_ratio"`
	CandidateMaxWorkers        *int64   `json:"candidate_max_workers"`
	SwitchMarginTokens         *int64   `json:"switch_margin_tokens"`
	PressureGuard              *bool    `json:"pressure_guard"`
	PressureAbsThresholdTokens *int64   `json:"pressure_abs_threshold_tokens"`
	PressureAbsThresholdMS     *float64 `json:"pressure_abs_threshold_ms"`
	PressureRelThreshold       *float64 `json:"pressure_rel_threshold"`
	WorkerQueueLimit           *int64   `json:"worker_queue_limit"`
	SaturationQueueFloor       *int64   `json:"saturation_queue_floor"`
	MinLoadChoices             *int64   `json:"min_load_choices"`
}

// Admission is a set of limits per engine.
type Admission struct {
	MaxRunningRequests      *int64 `json:"max_running_requests"`
	MaxWaitingRequests      *int64 `json:"max_waiting_requests"`
	MaxKVTokens             *int64 `json:"max_kv_tokens"`
	MaxPendingPrefillTokens *int64 `json:"max_pending_prefill_tokens"`
	MaxInflightRequests     *int64 `json:"max_inflight_requests"`
}

// Limit is one admission limit by its field name. Value is nil when it is
// absent.
type Limit struct {
	Name  string
	Value *int64
}

// Limits lists the five limits in the order in which they are checked.
func (a *Admission) Limits() [5]Limit {
	return [5]Limit{
		{"max_running_requests", a.MaxRunningRequests},
		{"max_waiting_requests", a.MaxWaitingRequests},
		{"max_kv_tokens", a.MaxKVTokens},
		{"max_pending_prefill_tokens", a.MaxPendingPrefillTokens},
		{"max_inflight_requests", a.MaxInflightRequests},
	}
}

// State are the services that policies share.
type State struct {
	Load     LoadState      `json:"load"`
	Prefix   *PrefixState   `json:"prefix"`
	Affinity *AffinityState `json:"affinity"`
}

// LoadState is how load reports arrive and are used.
type LoadState struct {
	Transport    *string   `json:"transport"`
	PollInterval *Duration `json:"poll_interval"`
	Freshness    *Duration `json:"freshness"`
}

// PrefixState is exactly one of the two fields.
type PrefixState struct {
	Local  *LocalPrefix  `json:"local"`
	Remote *RemotePrefix `json:"remote"`
}

// LocalPrefix is an index in the process.
type LocalPrefix struct {
	MaxBlocks *int64 `json:"max_blocks"`
}

// RemotePrefix is an index service.
type RemotePrefix struct {
	Endpoint     string    `json:"endpoint"`
	QueryTimeout *Duration `json:"query_timeout"`
	MaxInflight  *int64    `json:"max_inflight"`
}

// AffinityState has at most one of Memory, the default, and Redis.
type AffinityState struct {
	Memory *MemoryAffinity `json:"memory"`
	Redis  *RedisAffinity  `json:"redis"`
	Idle   *Duration       `json:"idle"`
	// Sweep belongs to the bindings in memory.
	Sweep *Duration `json:"sweep"`
}

// MemoryAffinity is bindings in the process.
type MemoryAffinity struct {
	MaxEntries *int64 `json:"max_entries"`
}

// RedisAffinity is bindings in Redis. URL is a reference to a secret.
type RedisAffinity struct {
	URL       string    `json:"url"`
	OnFailure *string   `json:"on_failure"`
	Timeout   *Duration `json:"timeout"`
}

// Decode reads the JSON form of a configuration. A value of a wrong type is left
// out, so that one mistake of shape does not hide mistakes elsewhere; whoever
// needs a complete configuration checks its shape first. An error means that
// data is no JSON.
func Decode(data []byte) (*Config, error) {
	c := new(Config)
	err := json.Unmarshal(data, c)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil {
		return c, nil
	}
	return nil, fmt.Errorf("decode configuration: %w", err)
}
