// Package wire holds the wire formats of engines and indexer as data: the exact
// bytes, and what they mean. Its test runs them through the packages that read
// and write them. There is nothing to use concurrently.
package wire
