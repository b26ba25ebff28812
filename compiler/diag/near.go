package diag

import "strings"

// Nearest returns the known word that is most like a wrong one, and nothing when
// none is near enough to be meant. Known words are in lower case.
func Nearest(wrong string, known []string) string {
	best, distance := "", len(wrong)/3+2
	for _, k := range known {
		if d := Distance(strings.ToLower(wrong), k, distance); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// Distance counts the insertions, deletions, substitutions and swaps of
// neighbours between a and b, in bytes. It may return any number from most up
// for words that are further apart, and is quick then.
func Distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
