package enginetest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
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
		"max_total_num_tokens": o.KVTokens, "dp_size": e.rankCount(), "tp_size": 1, "page_size": max(o.BlockSize, 1),
		"random_seed": o.Seed, "enable_http2": false, "kv_events": e.publishers().describe(),
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

// rankCount is the number of data-parallel ranks.
func (e *Engine) rankCount() int {
	if p := e.publishers(); p != nil {
		return len(p.ranks)
	}
	return 1
}

// loadOf is the share of one rank in the engine's load: what does not divide is
// with the first ones, so that the shares add up.
func (e *Engine) loadOf(rank, ranks int) rankLoad {
	s, uncached := e.State(), e.scheduler.uncached()
	part := func(n int64) int64 {
		share := n / int64(ranks)
		if int64(rank) < n%int64(ranks) {
			share++
		}
		return share
	}
	return rankLoad{
		running: part(int64(s.Running)), waiting: part(int64(s.Waiting + s.Bootstrapping)),
		uncached: part(int64(uncached)), used: part(int64(s.UsedTokens)),
		total: part(int64(s.UsedTokens)) + part(int64(uncached)), capacity: part(int64(e.opts.KVTokens)),
		maxRunning: max(1, part(int64(e.opts.MaxRunning))),
		computed:   part(s.PromptTokens), busyUS: part(s.PrefillBusy.Microseconds()),
		cached: part(s.CachedTokens),
	}
}

// rankLoad is the load of one rank.
type rankLoad struct {
	running, waiting, uncached, used, total, capacity, maxRunning, computed, busyUS, cached int64
}

// pack is a published report.
func (l rankLoad) pack(rank int) []byte {
	b := packString(packArray(nil, 11), "LoadStat")
	for _, n := range []int64{l.running, l.waiting, l.used, l.capacity, int64(rank), l.uncached, l.total, l.maxRunning, l.computed, l.busyUS} {
		b = packUint(b, uint64(n))
	}
	return b
}

// publishLoads publishes reports until the engine closes.
func (e *Engine) publishLoads() {
	type sent struct {
		load rankLoad
		at   time.Time
	}
	last := map[*rank]sent{}
	for sleep(e.ctx, e.opts.LoadInterval) == nil {
		p := e.publishers()
		if p == nil {
			continue
		}
		for _, r := range p.ranks {
			l, now := e.loadOf(r.number, len(p.ranks)), time.Now()
			if was, ok := last[r]; ok && was.load == l && now.Sub(was.at) < time.Second {
				continue
			}
			r.loads.publish([]byte(loadTopic), binary.BigEndian.AppendUint64(nil, uint64(r.loadSeq)), l.pack(r.number))
			r.loadSeq++
			last[r] = sent{l, now}
		}
	}
}

// coreLoad is the core section of a load report.
func (e *Engine) coreLoad(now time.Time, rank, ranks int) map[string]any {
	l := e.loadOf(rank, ranks)
	rate := 0.0
	if l.cached+l.computed > 0 {
		rate = float64(l.cached) / float64(l.cached+l.computed)
	}
	return map[string]any{
		"timestamp":        float64(now.UnixMicro()) / 1e6,
		"dp_rank":          rank,
		"num_running_reqs": l.running, "num_waiting_reqs": l.waiting,
		"num_waiting_uncached_tokens": l.uncached,
		"num_used_tokens":             l.used,
		"num_total_tokens":            l.total,
		"num_active_tokens":           l.used,
		"max_total_num_tokens":        l.capacity, "max_running_requests": l.maxRunning,
		"token_usage":                   float64(l.used) / float64(max(l.capacity, 1)),
		"gen_throughput":                e.scheduler.rate(now) / float64(ranks),
		"cache_hit_rate":                rate,
		"utilization":                   float64(l.running) / float64(l.maxRunning),
		"total_prefill_uncached_tokens": l.computed,
		"total_prefill_busy_us":         l.busyUS,
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
	from, ranks := 0, e.rankCount()
	to := ranks
	if only := q.Get("dp_rank"); only != "" {
		n, err := strconv.Atoi(only)
		if err != nil || n < 0 || n >= ranks {
			reply(w, http.StatusBadRequest, map[string]string{"detail": "dp_rank: no such rank"})
			return
		}
		from, to = n, n+1
	}
	now := time.Now()
	all := []any{}
	for rank := from; rank < to; rank++ {
		load := e.coreLoad(now, rank, ranks)
		if q.Get("format") == "prometheus" {
			e.prometheus(w, rank, load)
			continue
		}
		e.addSections(load, sections)
		all = append(all, load)
	}
	if q.Get("format") == "prometheus" {
		return
	}
	reply(w, http.StatusOK, map[string]any{
		"timestamp": now.UTC().Format(time.RFC3339Nano), "version": version,
		"accelerator": nil, "num_accelerators": 0, "loads": all,
	})
}

// addSections adds the wanted parts besides the core to a report.
func (e *Engine) addSections(load map[string]any, sections []string) {
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
func (e *Engine) prometheus(w http.ResponseWriter, rank int, load map[string]any) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	names := make([]string, 0, len(load))
	for name, v := range load {
		if v != nil && name != "dp_rank" && name != "timestamp" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "sglang_%s{dp_rank=\"%d\"} %v\n", name, rank, load[name])
	}
}

// legacyLoad is the deprecated GET /get_load.
func (e *Engine) legacyLoad(w http.ResponseWriter, _ *http.Request) {
	out, ranks := []any{}, e.rankCount()
	for rank := range ranks {
		l := e.loadOf(rank, ranks)
		out = append(out, map[string]any{
			"dp_rank": rank, "num_reqs": l.running + l.waiting, "num_waiting_reqs": l.waiting,
			"num_tokens": l.total, "num_pending_tokens": l.uncached,
			"ts_tic": time.Since(e.started).Seconds(),
		})
	}
	reply(w, http.StatusOK, out)
}

// flushCache empties the prefix cache.
func (e *Engine) flushCache(w http.ResponseWriter, _ *http.Request) {
	e.ClearCache()
	w.WriteHeader(http.StatusOK)
}

// tokenize is POST /tokenize for a text, or for the messages of a chat.
func (e *Engine) tokenize(w http.ResponseWriter, r *http.Request) {
	data, err := readAll(w, r)
	if err != nil {
		return
	}
	var in wireRequest
	if err := json.Unmarshal(data, &in, jsontext.AllowDuplicateNames(true)); err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"detail": err.Error()})
		return
	}
	var ids []uint32
	switch {
	case in.Prompt != nil:
		ids = textTokens(*in.Prompt)
	default:
		text, err := chatPrompt(&in)
		if err != nil {
			reply(w, http.StatusBadRequest, map[string]string{"detail": err.Error()})
			return
		}
		if e.opts.Tokenize != nil {
			ids = e.opts.Tokenize(data)
		}
		if ids == nil {
			ids = textTokens(text)
		}
	}
	reply(w, http.StatusOK, map[string]any{"tokens": ids, "count": len(ids), "max_model_len": e.opts.ContextTokens})
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
