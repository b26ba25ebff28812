// Package fleet holds the live engines: their identity and role, their circuit
// breaker, their in-flight count and their latest load report, and it publishes
// the candidate lists that picks read.
//
// Everything here is safe for concurrent use. A pick reads a View and the
// atomics of the engines it compares; it takes no lock. Dispatch and breaker
// transitions take short locks of one engine or of the fleet.
//
// Identity of an engine is pointer identity: an engine that was removed and
// registered again under the same id is another engine.
package fleet
