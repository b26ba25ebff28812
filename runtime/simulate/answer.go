package simulate

import (
	"net/http"

	"shunt/runtime/fleet"
	"shunt/runtime/policy"
	"shunt/runtime/prepare"
	"shunt/runtime/routing"
	"shunt/schema/plan"
)

// Refused is a request that the server answers with status 400 before it decides
// anything.
type Refused struct {
	// Code is the error code of the answer.
	Code string
	Err  error
}

func (r *Refused) Error() string { return r.Err.Error() }

func (r *Refused) Unwrap() error { return r.Err }

// TakeHeaders takes the facts that clients send in headers: the keys that the
// model reads, and the latency targets that it does not ignore. A target without
// sense is a *Refused, as in the server.
func (r *Request) TakeHeaders(m *plan.Model, h http.Header) error {
	if a := m.Affinity; a != nil {
		r.SessionKey, r.RoutingKey = prepare.Key(h, a.SessionID), prepare.Key(h, a.RoutingKey)
	}
	if m.SLO == nil {
		return nil
	}
	if m.SLO.TTFT != plan.SLODisabled {
		ms, ok, err := prepare.TTFT(h)
		if err != nil {
			return &Refused{"bad_request", err}
		}
		if ok {
			r.TTFTMS = &ms
		}
	}
	if m.SLO.TPS != plan.SLODisabled {
		rate, ok, err := prepare.TPS(h)
		if err != nil {
			return &Refused{"bad_request", err}
		}
		if ok {
			r.TPS = &rate
		}
	}
	return nil
}

// Answer is the status and code that the server answers a decision with; the
// status of a picked engine is that of the engine, here 200 without a code.
func Answer(d *routing.Decision) (status int, code string) {
	if d.Error == nil {
		return http.StatusOK, ""
	}
	switch d.Error.Kind {
	case policy.NoMatchingBucket.String():
		return http.StatusBadRequest, "bad_request"
	case policy.NoCandidates.String():
		return http.StatusServiceUnavailable, noEngines(d.Error.Stage)
	case policy.NoAdmissibleEngine.String(), policy.AdmissionRejected.String():
		return http.StatusServiceUnavailable, "policy_selection_failed"
	case policy.StateUnavailable.String():
		return http.StatusServiceUnavailable, "state_unavailable"
	}
	return http.StatusInternalServerError, "internal_error"
}

func noEngines(stage string) string {
	switch stage {
	case fleet.Prefill.String():
		return "no_prefill_workers_available"
	case fleet.Decode.String():
		return "no_decode_workers_available"
	}
	return "no_healthy_workers"
}
