package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// apiError is a refusal or failure as the engine reports it to its client.
type apiError struct {
	status  int
	outcome Outcome
	message string
}

func (e *apiError) Error() string { return e.message }

// rejected is the fault of the request.
func rejected(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, Rejected, fmt.Sprintf(format, args...)}
}

// failed means that prefill and decode did not get together.
func failed(format string, args ...any) *apiError {
	return &apiError{http.StatusInternalServerError, Failed, fmt.Sprintf(format, args...)}
}

// Reasons for which a request's context ends besides its client going away.
var (
	errAborted = errors.New("request was aborted")
	errClosed  = errors.New("engine is shutting down")
)

// asAPIError turns whatever ended a request into what its client is told. It
// must not be called when the client is gone.
func asAPIError(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	return &apiError{http.StatusInternalServerError, Failed, err.Error()}
}

// clientGone reports whether err says that nobody waits for an answer.
func clientGone(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errClosed)
}
