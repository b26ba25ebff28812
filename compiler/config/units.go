package config

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Duration is a whole number and ms, s, m or h. The schema checks the spelling.
type Duration string

// MS returns the duration in milliseconds, and math.MaxInt64 when it is longer
// than that or not a duration.
func (d Duration) MS() int64 {
	return units(string(d), [...]unit{{"ms", 1}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}})
}

// Size is a whole number and B, KiB, MiB or GiB. The schema checks the spelling.
type Size string

// Bytes returns the size in bytes, and math.MaxInt64 when it is larger than that
// or not a size.
func (s Size) Bytes() int64 {
	return units(string(s), [...]unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}})
}

type unit struct {
	name   string
	factor uint64
}

// units reads a number and its unit. A unit that ends like another one stands
// before it.
func units(text string, table [4]unit) int64 {
	for _, u := range table {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		high, low := bits.Mul64(n, u.factor)
		if err != nil || high != 0 || low > math.MaxInt64 {
			return math.MaxInt64
		}
		return int64(low)
	}
	return math.MaxInt64
}
