// Package enginetest simulates an SGLang engine over real HTTP, the way
// net/http/httptest simulates a server: tests, the demonstration and the
// benchmarks start as many engines as they need and stop them again.
//
// A simulated engine speaks the endpoints that routers use (chat, text and
// native generation, buffered and streamed; abort; health; introspection; load
// reports), generates text that depends on nothing but its seed and the prompt,
// and takes time only where its Options say so. Prefill and decode engines meet
// over the network as real ones do: the decode engine contacts the bootstrap
// server of the prefill engine that the request names, so both may live in
// different processes.
//
// Faults (see Fault) can be injected at run time from Go or over HTTP, and what
// an engine received can be read back, so that a test of a router can assert
// what reached the engines and that nothing was left running.
//
// The package imports nothing of this project but may be imported by any test
// and by cmd/enginesim; nothing that serves traffic imports it. An Engine and
// all its methods are safe for concurrent use.
package enginetest
