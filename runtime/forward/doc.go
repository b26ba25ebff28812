// Package forward sends a routed chat request to the picked engines and brings
// the answer back: plain and prefill/decode dispatch, buffered answers and
// streams, time limits, accounting and cancellation.
//
// A Forwarder is safe for concurrent use; a Call belongs to one goroutine. What
// outlives a request (a prefill leg, an abort) runs in goroutines of the
// Forwarder, which Close waits for.
//
// Every lease is released exactly once, on every path: a buffered request's when
// the whole body is in hand, a stream's when it ended, a prefill leg's when the
// prefill engine's answer ended.
package forward
