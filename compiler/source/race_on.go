//go:build race

package source

// raceDetector says that the race detector is compiled in. It maps terabytes of
// address space, so that no bound of it can hold.
const raceDetector = true
