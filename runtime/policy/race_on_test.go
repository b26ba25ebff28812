//go:build race

package policy_test

// underRace: the race detector makes sync.Pool drop what it holds at random.
const underRace = true
