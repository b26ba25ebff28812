package fleet

import (
	"maps"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Role is what an engine is; as a stage it is what a pick is for.
type Role uint8

// The roles. The zero Role is none of them.
const (
	Plain Role = iota + 1
	Prefill
	Decode
)

func (r Role) String() string {
	switch r {
	case Plain:
		return "plain"
	case Prefill:
		return "prefill"
	case Decode:
		return "decode"
	}
	return "none"
}

// ParseRole is the inverse of String.
func ParseRole(s string) (Role, bool) {
	for _, r := range []Role{Plain, Prefill, Decode} {
		if r.String() == s {
			return r, true
		}
	}
	return 0, false
}

// Spec describes an engine as discovery found it.
type Spec struct {
	ID   string
	URL  string // scheme and authority, without a trailing slash
	Role Role
	// BootstrapPort belongs to prefill engines; 0 is unknown.
	BootstrapPort int
	Labels        map[string]string
}

func (s Spec) equal(o Spec) bool {
	return s.ID == o.ID && s.URL == o.URL && s.Role == o.Role &&
		s.BootstrapPort == o.BootstrapPort && maps.Equal(s.Labels, o.Labels)
}

// Engine is one live serving endpoint of one model. Its identity never changes;
// counters, breaker and load do.
type Engine struct {
	spec  Spec
	model string
	host  string

	// place is the index among the engines of the model, a hint for Contains.
	place    atomic.Int64
	inflight atomic.Int64
	load     atomic.Pointer[Load]
	breaker  breaker

	// mu guards the slots of timestamped leases, and with them the recent
	// counter of the current load report.
	mu    sync.Mutex
	slots slotList
}

func newEngine(model string, s Spec, cfg BreakerConfig, changed func(*Engine)) *Engine {
	e := &Engine{spec: s, model: model, host: bootstrapHost(s.URL)}
	e.breaker.init(cfg, func() { changed(e) })
	return e
}

// bootstrapHost is the host name that decode engines use to reach a prefill
// engine; IPv6 stays bracketed.
func bootstrapHost(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	host := u.Hostname()
	if len(u.Host) > 0 && u.Host[0] == '[' {
		host = "[" + host + "]"
	}
	return host
}

// ID is unique within the model.
func (e *Engine) ID() string { return e.spec.ID }

// URL is the scheme and authority of the engine, without a trailing slash.
func (e *Engine) URL() string { return e.spec.URL }

// Role is the engine's role.
func (e *Engine) Role() Role { return e.spec.Role }

// Model is the id of the model that the engine serves.
func (e *Engine) Model() string { return e.model }

// Label returns the value of a label, empty when absent.
func (e *Engine) Label(name string) string { return e.spec.Labels[name] }

// Bootstrap is the address of a prefill engine's bootstrap server; port 0 is
// unknown.
func (e *Engine) Bootstrap() (host string, port int) { return e.host, e.spec.BootstrapPort }

// Inflight counts the requests that this router holds open on the engine.
func (e *Engine) Inflight() int64 { return e.inflight.Load() }

// Load is the latest complete load report, nil before the first or after its
// withdrawal. Whether it is fresh is for the reader to judge.
func (e *Engine) Load() *Load { return e.load.Load() }

// SetLoad publishes a report; nil withdraws it. The report must not be used for
// another engine, nor changed afterwards.
func (e *Engine) SetLoad(l *Load) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l != nil {
		l.recent.Store(e.slots.since(l.CapturedAt))
	}
	e.load.Store(l)
}

// Admits reports whether the breaker lets the engine be picked.
func (e *Engine) Admits() bool { return e.breaker.admits.Load() }

// BreakerState is for metrics and admin views.
func (e *Engine) BreakerState() BreakerState { return e.breaker.current() }

// ForceFailures records n breaker failures at once. Offline tools use it to
// describe an unhealthy engine.
func (e *Engine) ForceFailures(n int) {
	for range n {
		e.breaker.record(Failure, 0)
	}
}

// ForceSuccess records a success, which closes the breaker. Offline tools use it
// to describe an engine that is healthy again.
func (e *Engine) ForceSuccess() { e.breaker.record(Success, 0) }

// Load is one complete load report of an engine, summed over its ranks. It is
// immutable once published, except for the counter of dispatches since.
type Load struct {
	// CapturedAt is when the oldest rank's report was received.
	CapturedAt time.Time
	Running    uint64 // requests in the running batch
	Waiting    uint64 // queued requests

	// Native says that the fields below are known.
	Native          bool
	WaitingUncached uint64 // prompt tokens waiting for prefill
	Used            uint64 // KV tokens in use
	Total           uint64 // KV tokens in use or wanted by queued requests
	Capacity        uint64 // KV tokens that fit
	MaxRunning      uint64 // request slots
	// QueueMS estimates the prefill queue time; known if HasQueue.
	QueueMS  float64
	HasQueue bool

	recent atomic.Int64
}

// Recent counts the timestamped leases held now and taken at or after
// CapturedAt: dispatches that the report cannot have seen.
func (l *Load) Recent() int64 { return l.recent.Load() }
