package check

import (
	"fmt"
	"net"
	"net/url"
	"strconv"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleEngineKind refuses what the engines of a model cannot do, and settings that
// belong to other engines.
func ruleEngineKind(r *rules) {
	for _, m := range r.models {
		if !r.intact(m.at) {
			continue
		}
		if m.RunsVLLM() {
			r.vllm(&m)
		} else {
			r.sglang(&m)
		}
	}
}

// vllmFields are the settings of engine besides its type.
func vllmFields(k *config.EngineKind) []struct {
	name    string
	written bool
} {
	return []struct {
		name    string
		written bool
	}{{"block_size", k.BlockSize != nil}, {"hash", k.Hash != nil}, {"hash_seed", k.HashSeed != nil}}
}

// sglang refuses what SGLang engines say themselves.
func (r *rules) sglang(m *modelAt) {
	if m.Engine != nil {
		for _, f := range vllmFields(m.Engine) {
			if f.written {
				r.unread(m.at+"/engine/"+f.name, "SGLang engines tell it themselves")
			}
		}
	}
	for i := range m.engines {
		if m.engines[i].KVEvents != nil {
			r.unread(m.engineAt(i)+"/kv_events", "SGLang engines tell it themselves")
		}
	}
}

func (r *rules) vllm(m *modelAt) {
	for i := range m.engines {
		if role := m.engines[i].Role; role != "" && role != string(plan.Plain) {
			r.add(diag.EngineKind, m.engineAt(i)+"/role", fmt.Sprintf("engine %q is a %s engine, and vLLM engines do not pair here", m.engines[i].ID, role)).
				Hint = "make it a plain engine"
			break
		}
	}
	if m.Tokenizer != nil && config.Or(m.Tokenizer.ForwardInputIDs, false) {
		r.addKey(diag.EngineKind, m.at+"/tokenizer/forward_input_ids", "vLLM takes no token ids in chat requests").
			Hint = "remove forward_input_ids"
	}
	r.failOpen(m)
	if !m.runs(cacheAware) {
		for _, f := range vllmFields(m.Engine) {
			if f.written {
				r.unread(m.at+"/engine/"+f.name, "no policy of the model is cache_aware")
			}
		}
		for i := range m.engines {
			if m.engines[i].KVEvents != nil {
				r.unread(m.engineAt(i)+"/kv_events", "no policy of the model is cache_aware")
			}
		}
		return
	}
	r.hashing(m)
	for i := range m.engines {
		if m.engines[i].KVEvents == nil {
			r.add(diag.SilentEngine, m.engineAt(i)+"/id", fmt.Sprintf("engine %q has no kv_events, so cache_aware never finds it to hold a prefix", m.engines[i].ID)).
				Hint = "write kv_events: {port: ...} as the engine was started"
		}
	}
}

// hashing demands what the prefixes of vLLM engines are found by.
func (r *rules) hashing(m *modelAt) {
	k, at := m.Engine, m.at+"/engine"
	switch {
	case k.Hash == nil:
		r.addKey(diag.EngineKind, at, fmt.Sprintf("cache_aware of model %q needs hash, which vLLM does not tell", m.ID)).
			Hint = "start the engines with --prefix-caching-hash-algo sha256_cbor and write hash: sha256_cbor"
	case *k.Hash != string(plan.SHA256CBOR):
		r.add(diag.EngineKind, at+"/hash", fmt.Sprintf("hashes of %s cannot be computed outside of vLLM, so cache_aware would find nothing", *k.Hash)).
			Hint = "start the engines with --prefix-caching-hash-algo sha256_cbor and write hash: sha256_cbor"
	}
	if k.BlockSize == nil {
		r.addKey(diag.EngineKind, at, fmt.Sprintf("cache_aware of model %q needs block_size, which vLLM does not tell", m.ID)).
			Hint = "write block_size as the engines have it (--block-size)"
	}
}

// failOpen warns about limits on what vLLM does not report.
func (r *rules) failOpen(m *modelAt) {
	for _, p := range m.policies() {
		for _, l := range p.Admission.Limits() {
			if l.Value == nil || l.Name != "max_kv_tokens" && l.Name != "max_pending_prefill_tokens" {
				continue
			}
			r.addKey(diag.SilentEngine, p.at+"/admission/"+l.Name, fmt.Sprintf("%s always passes, because vLLM does not report what it is about", l.Name)).
				Hint = "use max_running_requests, max_waiting_requests or max_inflight_requests"
		}
	}
}

// ruleEvents refuses sockets that two ranks share, of one engine or of two.
func ruleEvents(r *rules) {
	seen := make(map[string]string) // path by address
	for _, m := range r.models {
		for i := range m.engines {
			if e := m.engines[i].KVEvents; e != nil && r.intact(m.engineAt(i)) {
				r.sockets(&m, i, e, seen)
			}
		}
	}
}

func (r *rules) sockets(m *modelAt, i int, e *config.KVEvents, seen map[string]string) {
	host := config.Or(e.Host, "")
	if u, err := url.Parse(m.engines[i].URL); err == nil && host == "" {
		host = u.Hostname()
	}
	at := m.engineAt(i) + "/kv_events"
	for _, base := range []struct {
		path string
		port int64
	}{{at + "/port", e.Port}, {at + "/replay_port", config.Or(e.ReplayPort, 0)}} {
		if base.port == 0 {
			continue
		}
		for rank := range config.Or(e.Ranks, config.DefaultRanks) {
			port := base.port + rank
			address := net.JoinHostPort(host, strconv.FormatInt(port, 10))
			if port > plan.MaxPort {
				r.add(diag.EventPort, base.path, fmt.Sprintf("rank %d of engine %q would be at port %d, beyond 65535", rank, m.engines[i].ID, port)).
					Hint = "lower the port or ranks"
				break
			}
			if first, used := seen[address]; used {
				f := r.add(diag.EventPort, base.path, fmt.Sprintf("rank %d of engine %q is at %s, which is another socket", rank, m.engines[i].ID, address))
				f.Hint = "correct host, port, replay_port or ranks of one of them"
				r.also(f, first, "first used here")
				break
			}
			seen[address] = base.path
		}
	}
}
