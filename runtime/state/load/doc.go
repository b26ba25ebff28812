// Package load turns engine load reports into the one aggregate that picks read,
// and compares engines by pressure.
//
// A Feed brings the reports: published over ZeroMQ where the engines do, else
// polled over HTTP. A Table receives them per rank and publishes the sum on the
// engine; reading is an atomic load and one comparison of times. A Feed and a
// Table are safe for concurrent use, an Observation is a plain value.
package load
