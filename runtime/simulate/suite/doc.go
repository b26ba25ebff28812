// Package suite runs tests of routing decisions: requests in described worlds,
// decided by the code that the server runs, and held against what a file says is
// expected. It counts what of the plan the tests reached.
//
// The package reads no file and knows no position: what it finds wrong has the
// JSON pointer of its place in the test file. Its callers have judged the shape
// of the file.
package suite
