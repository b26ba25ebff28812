package server

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/julienschmidt/httprouter"

	"shunt/runtime/fleet"
	"shunt/runtime/forward"
)

// The paths that are served.
const (
	chatPath    = "/v1/chat/completions"
	modelsPath  = "/v1/models"
	modelPrefix = modelsPath + "/"
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"
	planPath    = "/admin/plan"
	enginesPath = "/admin/engines"
	reloadPath  = "/admin/reload"
)

// Options are what a Server stands on.
type Options struct {
	// Fleet, Forwarder and Meters are required. The Forwarder's observer is
	// the same Meters.
	Fleet     *fleet.Fleet
	Forwarder *forward.Forwarder
	Meters    *Meters
	// Log defaults to discarding.
	Log *slog.Logger
	// Rand is the source of request ids, safe for concurrent use; nil draws
	// from the process-wide source.
	Rand func() uint64
	// Reload serves POST /admin/reload and returns the digest in force; nil
	// serves no such path.
	Reload func(ctx context.Context) (digest string, err error)
	// CacheEvents tells administrators what became of an engine's cache events,
	// false where no policy asks for them. Nil is never.
	CacheEvents func(e *fleet.Engine) (CacheEvents, bool)
}

// CacheEvents is how a router follows the prefix cache of an engine.
type CacheEvents struct {
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
	// Blocks is how much the router's own index says that the engine holds.
	Blocks int `json:"blocks"`
	// Ranks are the subscriptions, absent where an index service has them.
	Ranks []RankEvents `json:"ranks,omitempty"`
}

// RankEvents is one subscription, that of a data-parallel rank.
type RankEvents struct {
	Rank      int  `json:"rank"`
	Connected bool `json:"connected"`
	// LastSequence is that of the last batch; null before the first, and when what
	// the rank held was forgotten.
	LastSequence *int64 `json:"last_sequence"`
	// Gaps counts holes in the sequence, LostBatches what was in them, replayed or
	// not, and Resets how often everything was forgotten.
	Gaps        int64 `json:"gaps"`
	LostBatches int64 `json:"lost_batches"`
	Resets      int64 `json:"resets"`
	// LagMS is how long after its publication the last batch took effect, by the
	// clocks of two hosts; null before the first.
	LagMS  *float64 `json:"lag_ms"`
	Blocks int      `json:"blocks"`
}

// Server answers clients and, by a handler of its own, administrators. The zero
// Server is not usable; New makes one.
type Server struct {
	opts    Options
	log     *slog.Logger
	current atomic.Pointer[Generation]
	serving atomic.Bool
	began   atomic.Bool            // it was serving once
	reload  atomic.Pointer[string] // text of the last reload's error
	scopes  sync.Pool
	public  http.Handler
	admin   http.Handler
}

// New returns a server without a plan. Until Swap and SetServing it is alive but
// not ready.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	s := &Server{opts: o, log: o.Log}
	s.scopes.New = func() any { return new(scope) }
	s.public = s.wrap(s.publicRoutes())
	s.admin = s.wrap(s.adminRoutes())
	o.Meters.watch(s)
	return s
}

// Handler serves clients.
func (s *Server) Handler() http.Handler { return s.public }

// Admin serves the admin listener. It names engine addresses and asks for no
// credentials.
func (s *Server) Admin() http.Handler { return s.admin }

// Swap puts a plan into force for requests to come and returns the one before,
// nil at first. Requests under way keep the old one.
func (s *Server) Swap(g *Generation) *Generation {
	old := s.current.Swap(g)
	s.reload.Store(nil)
	s.opts.Meters.swaps.Inc()
	return old
}

// NoteFailure records that a new plan was refused and the old one stays.
func (s *Server) NoteFailure(err error) {
	text := err.Error()
	s.reload.Store(&text)
	s.opts.Meters.failures.Inc()
}

// SetServing switches readiness: off at the start of a drain, when requests are
// still served but no more should be sent. Answers then ask clients to give their
// connections up, since one that is closed under a request loses it.
func (s *Server) SetServing(on bool) {
	if on {
		s.began.Store(true)
	}
	s.serving.Store(on)
}

// Ready is what /readyz says.
func (s *Server) Ready() bool { return s.unready() == nil }

// unready is why the server is not ready, nil if it is.
func (s *Server) unready() *forward.Error {
	g := s.current.Load()
	switch {
	case g == nil:
		return unavailable("not_ready", "no plan is loaded", nil)
	case !s.serving.Load() && !s.began.Load():
		return unavailable("not_ready", "not serving yet", nil)
	case !s.serving.Load():
		return unavailable("draining", lacking("no more requests should be sent", g.unready()), nil)
	}
	if ids := g.unready(); len(ids) > 0 {
		return unavailable("not_ready", lacking("not every model can be served", ids), nil)
	}
	return nil
}

// lacking adds models to a reason. A probe's answer stays small: it names so
// many, and counts the others.
func lacking(reason string, ids []string) string {
	const most = 16
	if len(ids) == 0 {
		return reason
	}
	more := ""
	if n := len(ids) - most; n > 0 {
		ids, more = ids[:most], " and "+strconv.Itoa(n)+" more"
	}
	return reason + "; without healthy engines: " + strings.Join(ids, ", ") + more
}

func newRouter() *httprouter.Router {
	return &httprouter.Router{
		HandleMethodNotAllowed: true,
		HandleOPTIONS:          true, // Allow promises it
		NotFound:               http.HandlerFunc(notFound),
		MethodNotAllowed:       http.HandlerFunc(methodNotAllowed),
	}
}

// get serves GET and, as every GET, HEAD.
func get(r *httprouter.Router, path string, h http.HandlerFunc) {
	r.HandlerFunc(http.MethodGet, path, h)
	r.HandlerFunc(http.MethodHead, path, h)
}

func (s *Server) publicRoutes() *httprouter.Router {
	r := newRouter()
	r.HandlerFunc(http.MethodPost, chatPath, s.chat)
	get(r, modelsPath, s.models)
	get(r, modelPrefix+"*id", s.model)
	s.probes(r)
	return r
}

// probes are served on both listeners.
func (s *Server) probes(r *httprouter.Router) {
	get(r, healthPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	get(r, readyPath, s.readyz)
	get(r, metricsPath, s.opts.Meters.serve)
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if e := s.unready(); e != nil {
		fail(w, r, e)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// modelView is a model as clients see it.
type modelView struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	OwnedBy string `json:"owned_by"`
}

func viewModel(id string) modelView { return modelView{id, "model", "sglang"} }

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Object string      `json:"object"`
		Data   []modelView `json:"data"`
	}{"list", []modelView{}}
	if g := s.current.Load(); g != nil {
		for _, id := range g.Order {
			list.Data = append(list.Data, viewModel(id))
		}
	}
	writeJSON(w, http.StatusOK, list)
}

// model serves one model. Ids may have slashes.
func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, modelPrefix)
	if id == "" {
		notFound(w, r)
		return
	}
	if g := s.current.Load(); g == nil || g.Models[id] == nil {
		fail(w, r, modelNotFound(id))
		return
	}
	writeJSON(w, http.StatusOK, viewModel(id))
}
