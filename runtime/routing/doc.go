// Package routing resolves a request's length to buckets and picks a complete
// engine selection from the first bucket that can give one.
//
// Resolver, Bucket and Group are immutable after construction and safe for
// concurrent use; a Request and its Decision belong to one goroutine. The
// package knows no HTTP and no policy strategy.
package routing
