// Package report writes findings as text for people and as JSON for programs,
// and plans as text.
//
// No format decides anything: the verdict and the exit status come from the
// findings themselves. Text from inputs is never written to a terminal with
// control characters in it. All functions only read their arguments and are safe
// for concurrent use.
package report
