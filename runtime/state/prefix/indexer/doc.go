// Package indexer speaks to a remote prefix index, and serves one.
//
// A Client is a prefix.Source: one unary call with the block hashes of a prompt,
// a deadline, and a limit on calls in flight that all clients of a process
// share. A Server answers the same call from an index of this process, so that
// several routers can share it. Both are safe for concurrent use.
package indexer
