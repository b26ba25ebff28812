//go:build !race

package affinity_test

const underRace = false
