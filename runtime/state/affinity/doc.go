// Package affinity remembers which engine a session or a routing key is bound
// to: in this process, or in Redis for several routers together.
//
// A binding is a preference for an engine, by id, and says nothing about what
// the engine does. Both stores are safe for concurrent use and start no
// goroutine of their own; the caller owns Memory.Run and Redis.Close. The keys
// of one store never meet, since each carries its scope.
package affinity
