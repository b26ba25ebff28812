// Package feed keeps a prefix index up to date: it subscribes to the cache
// events of every rank of every engine and applies them.
//
// A Feed serves one index namespace. It never lets an engine own what it may
// have dropped: whenever messages may have been lost, they are replayed and
// proven to be of the same publisher, or everything the rank held is forgotten.
// A Feed is safe for concurrent use; Run starts its goroutines and waits for
// them.
package feed
