// Package suppress decides which findings of a run do not count, because a
// comment in the configuration, a baseline or an option says so, and reports
// what is wrong with those.
//
// Only warnings and notes can be suppressed. A suppressed finding stays in the
// list with the reason, and every suppression that does not do what it says is
// a finding of its own, so that nothing is hidden silently. All functions return
// new lists and are safe for concurrent use.
package suppress
