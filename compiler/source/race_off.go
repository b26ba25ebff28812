//go:build !race

package source

// raceDetector says that the race detector is compiled in.
const raceDetector = false
