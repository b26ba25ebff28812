// Package assemble turns a plan and shared state into resolvers. It is the one
// place that names plan and policies together, and holds the one switch over
// policy types.
//
// A Routing is immutable and safe for concurrent use until Close.
package assemble
