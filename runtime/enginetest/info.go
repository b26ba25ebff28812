package enginetest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// version is what the engine reports as its own.
const version = "enginesim"

// introspecting lets faults strike the endpoints that only report: those whose
// path the fault names, and of the kinds that need no generation.
func (e *Engine) introspecting(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{e: e, w: w, r: r, fault: e.faults.take(r.URL.Path, false)}
		if x.fault.Kind == Garbage {
			reply(w, http.StatusOK, jsontext.Value(`"garbage"`))
			return
		}
		if done, _ := x.faultBeforeHead(r.Context()); !done {
			h(w, r)
		}
	}
}

func (e *Engine) health(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// serverInfo reports the engine's arguments, the part that routers read.
func (e *Engine) serverInfo(w http.ResponseWriter, _ *http.Request) {
	o := e.opts
	mode := string(o.Role)
	if o.Role == Plain {
		mode = "null"
	}
	var port any
	if o.Role == Prefill {
		port = e.bootstrapPort
	}
	s := e.State()
	reply(w, http.StatusOK, map[string]any{
		"model_path": o.Model, "tokenizer_path": o.Model, "served_model_name": o.Model,
		"disaggregation_mode": mode, "disaggregation_bootstrap_port": port,
		"context_length": o.ContextTokens, "max_running_requests": o.MaxRunning,
		"max_total_num_tokens": o.KVTokens, "dp_size": 1, "tp_size": 1, "page_size": 1,
		"random_seed": o.Seed, "enable_http2": false, "kv_events": nil,
		"speculative_algorithm": nil, "version": version, "engine_id": o.ID,
		"internal_states": []any{map[string]any{
			"effective_max_running_requests_per_dp": o.MaxRunning,
			"last_gen_throughput":                   e.scheduler.rate(time.Now()),
			"memory_usage":                          map[string]any{"token_capacity": o.KVTokens},
			"num_running_reqs":                      s.Running,
		}},
	})
}

func (e *Engine) modelInfo(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{
		"model_path": e.opts.Model, "tokenizer_path": e.opts.Model, "is_generation": true,
		"preferred_sampling_params": nil, "weight_version": "default",
		"has_image_understanding": false, "has_audio_understanding": false,
		"model_type": "sim", "architectures": []string{"SimForCausalLM"},
	})
}

func (e *Engine) models(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{
		"object": "list",
		"data": []any{map[string]any{
			"id": e.opts.Model, "object": "model", "created": e.started.Unix(),
			"owned_by": "sglang", "root": e.opts.Model, "max_model_len": e.opts.ContextTokens,
		}},
	})
}

// rate returns the generation throughput in tokens per second.
func (s *scheduler) rate(now time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.windowStart) > 2*time.Second {
		return 0
	}
	return s.throughput
}

// uncached returns the prompt tokens that were accepted but not computed.
func (s *scheduler) uncached() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitingP
}

// coreLoad is the core section of a load report.
func (e *Engine) coreLoad(now time.Time) map[string]any {
	s, uncached := e.State(), e.scheduler.uncached()
	waiting := s.Waiting + s.Bootstrapping
	return map[string]any{
		"timestamp":        float64(now.UnixMicro()) / 1e6,
		"dp_rank":          0,
		"num_running_reqs": s.Running, "num_waiting_reqs": waiting,
		"num_waiting_uncached_tokens": uncached,
		"num_used_tokens":             s.UsedTokens,
		"num_total_tokens":            s.UsedTokens + uncached,
		"num_active_tokens":           s.UsedTokens,
		"max_total_num_tokens":        e.opts.KVTokens, "max_running_requests": e.opts.MaxRunning,
		"token_usage":                   float64(s.UsedTokens) / float64(e.opts.KVTokens),
		"gen_throughput":                e.scheduler.rate(now),
		"cache_hit_rate":                0.0,
		"utilization":                   float64(s.Running) / float64(e.opts.MaxRunning),
		"total_prefill_uncached_tokens": s.PromptTokens,
		"total_prefill_busy_us":         s.PrefillBusy.Microseconds(),
		"decode_moments":                nil,
	}
}

// loads is GET /v1/loads with its include and format parameters.
func (e *Engine) loads(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	known := []string{"core", "memory", "spec", "lora", "disagg", "queues", "all"}
	include := q.Get("include")
	setDefault(&include, "all")
	sections := strings.Split(include, ",")
	for _, s := range sections {
		if !slices.Contains(known, s) {
			reply(w, http.StatusBadRequest, map[string]string{"detail": fmt.Sprintf("unknown section %q", s)})
			return
		}
	}
	if rank := q.Get("dp_rank"); rank != "" && rank != "0" {
		reply(w, http.StatusBadRequest, map[string]string{"detail": "dp_rank: only 0 exists"})
		return
	}
	now := time.Now()
	load := e.coreLoad(now)
	if q.Get("format") == "prometheus" {
		e.prometheus(w, load)
		return
	}
	wants := func(name string) bool {
		return slices.Contains(sections, name) || slices.Contains(sections, "all")
	}
	s := e.State()
	if wants("memory") {
		load["memory"] = map[string]any{
			"weight_gb": 0.0, "kv_cache_gb": 0.0, "graph_gb": 0.0, "token_capacity": e.opts.KVTokens,
		}
	}
	if wants("queues") {
		load["queues"] = map[string]any{"waiting": s.Waiting, "grammar": 0, "paused": 0, "retracted": 0}
	}
	if wants("disagg") && e.opts.Role != Plain {
		load["disaggregation"] = e.disaggLoad(s)
	}
	reply(w, http.StatusOK, map[string]any{
		"timestamp": now.UTC().Format(time.RFC3339Nano), "version": version,
		"accelerator": nil, "num_accelerators": 0, "loads": []any{load},
	})
}

// disaggLoad is the section about requests between prefill and decode.
func (e *Engine) disaggLoad(s State) map[string]any {
	bootstrap, transfer := s.Bootstrapping, 0
	if e.opts.Role == Decode {
		bootstrap, transfer = 0, s.Bootstrapping
	}
	return map[string]any{
		"mode":                         e.opts.Role,
		"prefill_bootstrap_queue_reqs": bootstrap, "prefill_inflight_queue_reqs": 0,
		"decode_prealloc_queue_reqs": 0, "decode_transfer_queue_reqs": transfer,
		"decode_retracted_queue_reqs": 0, "kv_transfer_speed_gb_s": 0.0, "kv_transfer_latency_ms": 0.0,
	}
}

// prometheus writes the numbers of a load report as text.
func (e *Engine) prometheus(w http.ResponseWriter, load map[string]any) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	names := make([]string, 0, len(load))
	for name, v := range load {
		if v != nil && name != "dp_rank" && name != "timestamp" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "sglang_%s{dp_rank=\"0\"} %v\n", name, load[name])
	}
}

// legacyLoad is the deprecated GET /get_load.
func (e *Engine) legacyLoad(w http.ResponseWriter, _ *http.Request) {
	s, uncached := e.State(), e.scheduler.uncached()
	waiting := s.Waiting + s.Bootstrapping
	reply(w, http.StatusOK, []any{map[string]any{
		"dp_rank": 0, "num_reqs": s.Running + waiting, "num_waiting_reqs": waiting,
		"num_tokens": s.UsedTokens + uncached, "num_pending_tokens": uncached,
		"ts_tic": time.Since(e.started).Seconds(),
	}})
}

// abortRequest is POST /abort_request: it ends requests by the beginning of
// their rid. An empty rid alone ends none.
func (e *Engine) abortRequest(w http.ResponseWriter, r *http.Request) {
	data, err := readAll(w, r)
	if err != nil {
		return
	}
	var in struct {
		RID      string `json:"rid"`
		AbortAll bool   `json:"abort_all"`
	}
	if err := json.Unmarshal(data, &in, jsontext.AllowDuplicateNames(true)); err != nil {
		reply(w, http.StatusUnprocessableEntity, map[string]string{"detail": err.Error()})
		return
	}
	x := &exchange{e: e, w: w, r: r, fault: e.faults.take(r.URL.Path, false)}
	if done, _ := x.faultBeforeHead(r.Context()); done {
		return
	}
	e.records.abort(in.RID)
	if in.RID != "" || in.AbortAll {
		n := e.scheduler.abort(in.RID, in.AbortAll)
		e.log.Debug("abort", "rid", in.RID, "requests", n)
	}
	w.WriteHeader(http.StatusOK)
}

// readAll reads a small body and answers itself when it cannot.
func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"detail": err.Error()})
	}
	return data, err
}
