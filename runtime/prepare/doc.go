// Package prepare turns the bytes and headers of a chat request into the facts
// that routing needs, and into the body and headers that engines receive.
//
// The body is read in one strict pass and never re-encoded: members are cut out
// and appended as bytes. The package imports nothing of this module. Parsed
// requests belong to one goroutine; the functions are safe for concurrent use.
package prepare
