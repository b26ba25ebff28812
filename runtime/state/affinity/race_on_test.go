//go:build race

package affinity_test

// underRace: everything is about ten times slower.
const underRace = true
