package lower

import (
	"strings"

	"shunt/compiler/config"
	"shunt/schema/plan"
)

// engineKind is nil for SGLang, written or not. The buckets say whether prefixes are
// looked up.
func engineKind(m *config.Model, buckets []plan.Bucket, e *element) *plan.EngineKind {
	if !m.RunsVLLM() {
		return nil
	}
	r := plan.Require(0, &plan.Model{Buckets: buckets})
	k := m.Engine
	e.note(true, "engine/type", "engine/type")
	out := &plan.EngineKind{Type: plan.VLLM}
	if len(r.PrefixSource) == 0 {
		return out
	}
	e.note(true, "engine/hashing/algorithm", "engine/hash")
	e.note(true, "engine/hashing/block_size", "engine/block_size")
	e.note(k.HashSeed != nil, "engine/hashing/seed", "engine/hash_seed")
	// The check has refused other algorithms, and an absent block size.
	out.Hashing = &plan.Hashing{
		Algorithm: plan.SHA256CBOR,
		BlockSize: config.Or(k.BlockSize, 0),
		Seed:      config.Or(k.HashSeed, config.DefaultHashSeed),
	}
	return out
}

// kvEvents lowers where an engine publishes.
func kvEvents(w *config.KVEvents, e *element) *plan.KVEvents {
	if w == nil {
		return nil
	}
	e.note(w.Host != nil, "kv_events/host", "kv_events/host")
	e.note(true, "kv_events/port", "kv_events/port")
	e.note(w.ReplayPort != nil, "kv_events/replay_port", "kv_events/replay_port")
	e.note(w.Topic != nil, "kv_events/topic", "kv_events/topic")
	e.note(w.Ranks != nil, "kv_events/ranks", "kv_events/ranks")
	return &plan.KVEvents{
		Host: config.Or(w.Host, ""), Port: w.Port, ReplayPort: w.ReplayPort,
		Topic: config.Or(w.Topic, ""), Ranks: config.Or(w.Ranks, config.DefaultRanks),
	}
}

func tokenizer(m *config.Model, e *element) *plan.Tokenizer {
	t := m.Tokenizer
	if t == nil {
		return nil
	}
	out := new(plan.Tokenizer)
	if t.Path != nil {
		e.note(true, "tokenizer/path", "tokenizer/path")
		out.Path = e.tracer.resolve(e.from+"/tokenizer/path", *t.Path)
	}
	if a := t.Engine; a != nil {
		e.note(a.Timeout != nil, "tokenizer/engine/timeout_ms", "tokenizer/engine/timeout")
		e.note(a.MaxInflight != nil, "tokenizer/engine/max_inflight", "tokenizer/engine/max_inflight")
		e.note(a.MaxBody != nil, "tokenizer/engine/max_body_bytes", "tokenizer/engine/max_body")
		out.Engine = &plan.EngineTokenizer{
			TimeoutMS:    config.MSOr(a.Timeout, config.DefaultTokenizeTimeoutMS),
			MaxInflight:  config.Or(a.MaxInflight, config.DefaultTokenizeInflight),
			MaxBodyBytes: config.BytesOr(a.MaxBody, config.DefaultTokenizeBody),
		}
	}
	e.note(t.ForwardInputIDs != nil, "tokenizer/forward_input_ids", "tokenizer/forward_input_ids")
	out.ForwardInputIDs = m.Forwards()
	return out
}

// sampling puts the parameters into the order in which requests get them.
func sampling(s *config.Sampling, e *element) *plan.Sampling {
	if s == nil {
		return nil
	}
	e.note(s.Conflict != nil, "sampling/conflict", "sampling/conflict")
	e.note(true, "sampling/params", "sampling/params")
	out := &plan.Sampling{Conflict: plan.Conflict(config.Or(s.Conflict, config.DefaultConflict))}
	for _, name := range plan.SamplingNames {
		if p, ok := s.Params[name]; ok {
			out.Params = append(out.Params, plan.SamplingParam{Name: name, Value: p.Value, Min: p.Min, Max: p.Max})
		}
	}
	return out
}

// headers names the headers that policies of the model read. Names of headers
// have one form, lower case.
func headers(a *config.AffinityHeaders, r *plan.Requires, e *element) *plan.AffinityHeaders {
	if !r.Affinity() {
		return nil
	}
	out := new(plan.AffinityHeaders)
	if len(r.SessionHeader) > 0 {
		out.SessionID = strings.ToLower(config.Or(a.SessionID, config.DefaultSessionHeader))
		e.note(a.SessionID != nil, "affinity/session_id_header", "affinity/session_id_header")
	}
	if len(r.RoutingKeyHeader) > 0 {
		out.RoutingKey = strings.ToLower(config.Or(a.RoutingKey, config.DefaultRoutingKeyHeader))
		e.note(a.RoutingKey != nil, "affinity/routing_key_header", "affinity/routing_key_header")
	}
	return out
}

// slo is nil when both targets are disabled, written or not.
func slo(m *config.Model, e *element) *plan.SLO {
	out := plan.SLO{
		TTFT: plan.SLOMode(config.Or(m.TTFTSLO, config.DefaultSLO)),
		TPS:  plan.SLOMode(config.Or(m.TPSSLO, config.DefaultSLO)),
	}
	if out.TTFT == plan.SLODisabled && out.TPS == plan.SLODisabled {
		return nil
	}
	e.note(m.TTFTSLO != nil, "slo/ttft", "ttft_slo")
	e.note(m.TPSSLO != nil, "slo/tps", "tps_slo")
	return &out
}
