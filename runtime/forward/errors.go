package forward

import (
	"errors"
	"net/http"
)

// Error is a failure that the router answers by itself. It is returned only
// while nothing was written to the client.
type Error struct {
	Status int
	// Code and Message are for the client and name no engine and no cause.
	Code    string
	Message string
	// Upstream is the status of an engine whose body was cut; 0 otherwise.
	Upstream int
	// Cause is for logs.
	Cause error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Code
	}
	return e.Code + ": " + e.Cause.Error()
}

func (e *Error) Unwrap() error { return e.Cause }

var (
	// ErrClientGone means that the client left before an answer began. There is
	// nobody to answer.
	ErrClientGone = errors.New("client disconnected")
	// ErrAborted means that an answer began and cannot be completed. The
	// connection must be cut, so that the client sees no regular end.
	ErrAborted = errors.New("answer cut short")
	// ErrShutdown is the cause with which the owner of a request's context ends it
	// because the process cannot wait any longer; without it the client counts as
	// gone.
	ErrShutdown = errors.New("shutting down")
)

// The causes for which a leg is cancelled.
var (
	errStale        = errors.New("stale request")
	errTimeout      = errors.New("engine timed out")
	errDecodeFailed = errors.New("decode leg failed")
)

func breakerOpen(cause error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: "breaker_open", Message: "service unavailable", Cause: cause}
}

func misconfigured(cause error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: "worker_misconfigured", Message: "service unavailable", Cause: cause}
}

// ShuttingDown answers a request that the end of the process cuts off.
func ShuttingDown() *Error {
	return &Error{Status: http.StatusServiceUnavailable, Code: "shutting_down", Message: "service unavailable"}
}

func unreachable(cause error) *Error {
	return &Error{Status: http.StatusBadGateway, Code: "upstream_unreachable", Message: "upstream unavailable", Cause: cause}
}

func incomplete(status int, cause error) *Error {
	return &Error{Status: http.StatusBadGateway, Code: "upstream_body_incomplete",
		Message: "upstream response was incomplete", Upstream: status, Cause: cause}
}

func prefillFailed(cause error) *Error {
	return &Error{Status: http.StatusBadGateway, Code: "prefill_failed", Message: "prefill failed", Cause: cause}
}

func timedOut(cause error) *Error {
	return &Error{Status: http.StatusGatewayTimeout, Code: "upstream_timeout", Message: "upstream request timed out", Cause: cause}
}

func expired(cause error) *Error {
	return &Error{Status: http.StatusGatewayTimeout, Code: "stale_request_expired",
		Message: "request expired before completion", Cause: cause}
}
