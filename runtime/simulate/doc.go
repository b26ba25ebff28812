// Package simulate decides requests against a described world: the same
// resolver, groups and policies as the server, with state that a document
// supplies instead of traffic. explain and test stand on it, and replay will.
//
// A Simulation belongs to one goroutine.
package simulate
