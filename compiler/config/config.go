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
	ID        string    `json:"id"`
	Tokenizer *Section  `json:"tokenizer"`
	Sampling  *Section  `json:"sampling"`
	Affinity  *Section  `json:"affinity"`
	Breaker   Breaker   `json:"breaker"`
	Discovery Discovery `json:"discovery"`
	Defaults  Defaults  `json:"defaults"`
	TTFTSLO   *string   `json:"ttft_slo"`
	TPSSLO    *string   `json:"tps_slo"`
	// Buckets absent is one catch-all bucket; an empty list is a mistake.
	Buckets *[]Bucket `json:"buckets"`
}

// Section is a part of the configuration whose content nothing reads yet; only
// that it is there matters.
type Section struct{}

// UnmarshalJSON accepts any value.
func (*Section) UnmarshalJSON([]byte) error { return nil }

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
	TTFTMS           *Section `json:"ttft_ms"`
	TokensPerSecond  *Section `json:"tokens_per_second"`
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
	Type                 string    `json:"type"`
	Admission            Admission `json:"admission"`
	Choices              *int64    `json:"choices"`
	CandidateMinWorkers  *int64    `json:"candidate_min_workers"`
	CandidateMaxWorkers  *int64    `json:"candidate_max_workers"`
	WorkerQueueLimit     *int64    `json:"worker_queue_limit"`
	SaturationQueueFloor *int64    `json:"saturation_queue_floor"`
}

// Admission is a set of limits per engine.
type Admission struct {
	MaxRunningRequests      *int64 `json:"max_running_requests"`
	MaxWaitingRequests      *int64 `json:"max_waiting_requests"`
	MaxKVTokens             *int64 `json:"max_kv_tokens"`
	MaxPendingPrefillTokens *int64 `json:"max_pending_prefill_tokens"`
	MaxInflightRequests     *int64 `json:"max_inflight_requests"`
}

// Limit is one admission limit by its field name.
type Limit struct {
	Name string
	// Value is nil when the limit is absent.
	Value *int64
	// Reported says that the metric comes from the engine's load reports.
	Reported bool
}

// Limits lists the five limits in the order in which they are checked.
func (a *Admission) Limits() [5]Limit {
	return [5]Limit{
		{"max_running_requests", a.MaxRunningRequests, true},
		{"max_waiting_requests", a.MaxWaitingRequests, true},
		{"max_kv_tokens", a.MaxKVTokens, true},
		{"max_pending_prefill_tokens", a.MaxPendingPrefillTokens, true},
		{"max_inflight_requests", a.MaxInflightRequests, false},
	}
}

// State are the services that policies share.
type State struct {
	Load     LoadState `json:"load"`
	Prefix   *Section  `json:"prefix"`
	Affinity *Section  `json:"affinity"`
}

// LoadState is how load reports are used.
type LoadState struct {
	Freshness *Duration `json:"freshness"`
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
