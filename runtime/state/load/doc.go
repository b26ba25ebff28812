// Package load turns engine load reports into the one aggregate that picks read,
// and compares engines by pressure.
//
// A Table receives reports per rank and publishes the sum on the engine; reading
// is an atomic load and one comparison of times. A Table is safe for concurrent
// use, an Observation is a plain value.
package load
