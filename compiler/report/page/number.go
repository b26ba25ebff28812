package page

import (
	"fmt"
	"math"
	"strconv"
)

// grouped writes a count with commas: 131,072.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// brief writes a count of tokens for an axis: 4096 is 4k, as people say it.
func brief(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%dG", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dk", n>>10)
	}
	return grouped(n)
}

// span writes inclusive bounds, either of which may be open.
func span(from int64, to *int64) string {
	switch {
	case to == nil && from == 0:
		return "any length"
	case to == nil:
		return "from " + grouped(from)
	case *to == from:
		return grouped(from)
	}
	return grouped(from) + " to " + grouped(*to)
}

// plural writes a number of things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(int64(n)) + " " + one + "s"
}

// least and most read optional bounds.
func least(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func most(n *int64) int64 {
	if n == nil {
		return math.MaxInt64
	}
	return *n
}
