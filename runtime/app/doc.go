// Package app is one shuntd process as a library: it loads the plan, builds the
// shared state once, serves, and drains on a signal.
//
// Run blocks; every goroutine that it starts has ended when it returns. Only
// cmd/shuntd and tests import it.
package app
