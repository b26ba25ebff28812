package forward

import (
	"net/http"
	"time"

	"shunt/runtime/fleet"
)

// Outcome is how a request to one engine ended.
type Outcome string

// The outcomes.
const (
	Succeeded    Outcome = "success"
	ClientError  Outcome = "client_error" // 4xx other than 429
	Backpressure Outcome = "backpressure" // 429, 503
	Failed       Outcome = "error"
	Cancelled    Outcome = "cancelled" // given up by the router or the client
	CutOff       Outcome = "shutdown"  // given up at the end of the router's drain
)

// StreamEnd is how a relayed stream ended.
type StreamEnd string

// The ends of streams.
const (
	StreamOK         StreamEnd = "ok"
	StreamErrorEvent StreamEnd = "stream_error_event" // complete, but the engine reported an error in it
	StreamUpstream   StreamEnd = "upstream_error"     // cut, silent, or without its prefill
	StreamClientGone StreamEnd = "client_disconnect"
	StreamExpired    StreamEnd = "expired"
	StreamCutOff     StreamEnd = "shutdown" // the router's drain ended before the stream
)

// AbortReason is why an engine was told to stop.
type AbortReason string

// The reasons.
const (
	AbortCancelled    AbortReason = "handler_cancelled" // the client left before an answer began
	AbortStreamGone   AbortReason = "stream_client_gone"
	AbortExpired      AbortReason = "stale_request_expired"
	AbortTimeout      AbortReason = "upstream_timeout"
	AbortTransport    AbortReason = "transport_error"
	AbortPrefill      AbortReason = "prefill_failed"
	AbortDecodeFailed AbortReason = "decode_failed"
	AbortShutdown     AbortReason = "shutdown"
)

// Observer receives measurements. Its methods are called concurrently and must
// not block.
type Observer interface {
	// Engine is called once for each engine that a request was sent to.
	Engine(e *fleet.Engine, o Outcome)
	// FirstToken is called once for a stream whose first event is no error.
	FirstToken(model string, after time.Duration)
	// Stream is called once for each stream that reached the client, with the
	// engine that its end is attributed to.
	Stream(e *fleet.Engine, end StreamEnd)
	// Abort is called for each request given up on an engine; sent says
	// whether the engine is also told by the request's own id.
	Abort(reason AbortReason, sent bool)
	// Expired is called for each request that met the stale limit; answered
	// says whether its answer had begun.
	Expired(answered bool)
}

// nobody is the Observer of those who want none.
type nobody struct{}

func (nobody) Engine(*fleet.Engine, Outcome)    {}
func (nobody) FirstToken(string, time.Duration) {}
func (nobody) Stream(*fleet.Engine, StreamEnd)  {}
func (nobody) Abort(AbortReason, bool)          {}
func (nobody) Expired(bool)                     {}

// judge classifies a complete answer by its status.
func judge(status int) (Outcome, fleet.Outcome) {
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return Backpressure, fleet.Backpressure
	case status >= 500:
		return Failed, fleet.Failure
	case status >= 400:
		return ClientError, fleet.Success
	case status >= 300:
		return Failed, fleet.Success
	}
	return Succeeded, fleet.Success
}

func success(status int) bool { return status >= 200 && status < 300 }
