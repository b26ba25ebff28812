package server

import (
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"shunt/runtime/fleet"
)

func (s *Server) adminRoutes() *httprouter.Router {
	r := newRouter()
	s.probes(r)
	get(r, planPath, s.adminPlan)
	get(r, enginesPath, s.adminEngines)
	if s.opts.Reload != nil {
		r.HandlerFunc(http.MethodPost, reloadPath, s.adminReload)
	}
	return r
}

// adminPlan returns the plan document in force, byte for byte. A refused newer
// one shows in a header.
func (s *Server) adminPlan(w http.ResponseWriter, r *http.Request) {
	g := s.current.Load()
	if g == nil {
		fail(w, r, unavailable("not_ready", "no plan is loaded", nil))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Shunt-Plan-Digest", g.Digest)
	if text := s.reload.Load(); text != nil {
		h.Set("X-Shunt-Reload-Error", headerText(*text))
	}
	w.Write(g.Plan)
}

// headerText keeps an error's text on one line of ASCII.
func headerText(s string) string {
	const longest = 1024
	b := []byte(s[:min(len(s), longest)])
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = ' '
		}
	}
	return string(b)
}

func (s *Server) adminReload(w http.ResponseWriter, r *http.Request) {
	digest, err := s.opts.Reload(r.Context())
	if err != nil {
		e := refuse(http.StatusConflict, "reload_failed", err.Error())
		e.Cause = err
		fail(w, r, e)
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Digest string `json:"digest"`
	}{digest})
}

// engineView is one engine as administrators see it.
type engineView struct {
	Model    string    `json:"model"`
	ID       string    `json:"id"`
	URL      string    `json:"url"`
	Role     string    `json:"role"`
	Healthy  bool      `json:"healthy"`
	Breaker  string    `json:"breaker"`
	Inflight int64     `json:"inflight_requests"`
	Load     *loadView `json:"load"`
	// Events is absent where no policy asks for prefixes.
	Events *CacheEvents `json:"cache_events,omitempty"`
}

// loadView is the latest load report. Native values are absent from a basic one.
type loadView struct {
	AgeMS          int64    `json:"age_ms"`
	Running        uint64   `json:"running_requests"`
	Waiting        uint64   `json:"waiting_requests"`
	Recent         int64    `json:"dispatched_since"`
	PendingPrefill *uint64  `json:"pending_prefill_tokens,omitempty"`
	Used           *uint64  `json:"used_kv_tokens,omitempty"`
	Total          *uint64  `json:"kv_tokens,omitempty"`
	Capacity       *uint64  `json:"kv_capacity_tokens,omitempty"`
	QueueMS        *float64 `json:"prefill_queue_ms,omitempty"`
}

func viewEngine(e *fleet.Engine, now time.Time) engineView {
	return engineView{Model: e.Model(), ID: e.ID(), URL: e.URL(), Role: e.Role().String(), Healthy: e.Admits(),
		Breaker: e.BreakerState().String(), Inflight: e.Inflight(), Load: viewLoad(e.Load(), now)}
}

func viewLoad(l *fleet.Load, now time.Time) *loadView {
	if l == nil {
		return nil
	}
	v := &loadView{AgeMS: now.Sub(l.CapturedAt).Milliseconds(), Running: l.Running, Waiting: l.Waiting, Recent: l.Recent()}
	if l.Native {
		v.PendingPrefill, v.Used, v.Total, v.Capacity = &l.WaitingUncached, &l.Used, &l.Total, &l.Capacity
		if l.HasQueue {
			v.QueueMS = &l.QueueMS
		}
	}
	return v
}

func (s *Server) adminEngines(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	list := struct {
		Engines []engineView `json:"engines"`
	}{[]engineView{}}
	for _, model := range s.opts.Fleet.Models() {
		for _, e := range s.opts.Fleet.Engines(model) {
			v := viewEngine(e, now)
			if s.opts.CacheEvents != nil {
				if events, ok := s.opts.CacheEvents(e); ok {
					v.Events = &events
				}
			}
			list.Engines = append(list.Engines, v)
		}
	}
	writeJSON(w, http.StatusOK, list)
}
