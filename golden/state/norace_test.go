//go:build !race

package state_test

// raced says that the race detector is on, which is several times slower.
const raced = false
