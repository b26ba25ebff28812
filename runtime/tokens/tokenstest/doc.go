// Package tokenstest makes models for tests: one token for each byte, so that the
// ids of a text are its bytes.
//
// Its functions are safe for concurrent use.
package tokenstest
