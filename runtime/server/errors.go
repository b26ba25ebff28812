package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"shunt/runtime/fleet"
	"shunt/runtime/forward"
	"shunt/runtime/policy"
)

// retryAfter is what router-made 503 answers advise, in seconds: most last as
// long as an engine's load or a breaker's probe.
const retryAfter = "1"

// statusClientGone stands in logs and metrics for a request whose client left;
// it is never sent.
const statusClientGone = 499

// refuse makes a failure of the client's.
func refuse(status int, code, message string) *forward.Error {
	return &forward.Error{Status: status, Code: code, Message: message}
}

func badRequest(detail string, cause error) *forward.Error {
	return &forward.Error{Status: http.StatusBadRequest, Code: "bad_request", Message: "bad request: " + detail, Cause: cause}
}

func modelNotFound(model string) *forward.Error {
	const longest = 256
	if len(model) > longest {
		model = strings.ToValidUTF8(model[:longest], "") + "..."
	}
	return refuse(http.StatusNotFound, "model_not_found", "model not found: "+model)
}

func internal(cause error) *forward.Error {
	return &forward.Error{Status: http.StatusInternalServerError, Code: "internal_error", Message: "internal error", Cause: cause}
}

func unavailable(code, message string, cause error) *forward.Error {
	return &forward.Error{Status: http.StatusServiceUnavailable, Code: code, Message: message, Cause: cause}
}

// selectionFailed maps a failed selection to its answer, by its kind.
func selectionFailed(err error) *forward.Error {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return internal(err)
	}
	switch e.Kind {
	case policy.NoMatchingBucket:
		return badRequest("no bucket supports the requested token length", err)
	case policy.NoCandidates:
		return noEngines(e.Stage, err)
	case policy.NoAdmissibleEngine, policy.AdmissionRejected:
		return unavailable("policy_selection_failed", "service unavailable", err)
	case policy.StateUnavailable:
		return unavailable("state_unavailable", "service unavailable", err)
	}
	return internal(err)
}

// noEngines keeps the codes and texts that clients of the existing router know.
func noEngines(stage fleet.Role, err error) *forward.Error {
	switch stage {
	case fleet.Prefill:
		return unavailable("no_prefill_workers_available", "no prefill workers available for the requested model", err)
	case fleet.Decode:
		return unavailable("no_decode_workers_available", "no decode workers available for the requested model", err)
	}
	return unavailable("no_healthy_workers", "no healthy workers for the requested model", err)
}

// writeError answers with the envelope. Causes and addresses stay out of it.
func writeError(w http.ResponseWriter, e *forward.Error) {
	kind := "server_error"
	if e.Status < 500 {
		kind = "invalid_request_error"
	}
	type detail struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	h := w.Header()
	h["X-Router-Error-Code"] = []string{e.Code}
	if e.Upstream != 0 {
		h["X-Router-Upstream-Status"] = []string{strconv.Itoa(e.Upstream)}
	}
	if e.Status == http.StatusServiceUnavailable {
		h["Retry-After"] = []string{retryAfter}
	}
	writeJSON(w, e.Status, struct {
		Error detail `json:"error"`
	}{detail{kind, e.Code, e.Message}})
}

// writeJSON answers with a value that always encodes.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, nil
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	failUnread(w, r, refuse(http.StatusNotFound, "not_found", "not found"))
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	failUnread(w, r, refuse(http.StatusMethodNotAllowed, "method_not_allowed", "method not allowed"))
}

// unreadBody bounds what is read of a body that nobody wants, as net/http does.
const unreadBody = 256 << 10

// failUnread fails a request before its body was read. On the last request of a
// connection net/http would leave the body there, and the answer could be lost.
func failUnread(w http.ResponseWriter, r *http.Request, e *forward.Error) {
	if sc, ok := w.(*scope); ok && r.Close && r.ContentLength != 0 {
		sc.drain(r, http.NewResponseController(sc.ResponseWriter), unreadBody)
	}
	fail(w, r, e)
}

// fail answers a failure and notes it for the log.
func fail(w http.ResponseWriter, _ *http.Request, e *forward.Error) {
	if sc, ok := w.(*scope); ok {
		sc.failure = e
	}
	writeError(w, e)
}
