package check

import (
	"fmt"
	"strconv"
	"strings"
)

// nearest returns the known word that is most like a wrong one, and nothing
// when none is near enough to be meant.
func nearest(wrong string, known []string) string {
	best, distance := "", len(wrong)/3+2
	for _, k := range known {
		if d := editDistance(strings.ToLower(wrong), k, distance); d < distance {
			best, distance = k, d
		}
	}
	return best
}

func didYouMean(word string) string { return fmt.Sprintf("did you mean %q?", word) }

// editDistance counts the insertions, deletions, substitutions and swaps of
// neighbours between a and b, in bytes. It may return any number from most up
// for words that are further apart, and is quick then.
func editDistance(a, b string, most int) int {
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

// describe returns the first sentence of what the schema says about a field,
// or what the field takes.
func describe(p *place) string {
	for _, group := range p.schema.Doc() {
		text := strings.Join(strings.Fields(group.Text()), " ")
		if text == "" {
			continue
		}
		if i := strings.Index(text, ". "); i >= 0 {
			text = text[:i]
		}
		text = strings.TrimSuffix(text, ".")
		return strings.ToLower(text[:1]) + text[1:]
	}
	return p.expected()
}

// nameOf names a value in a message by the end of its path: a field by its
// name, an element by its list and number.
func nameOf(path []string) string {
	if len(path) == 0 {
		return "the configuration"
	}
	last := path[len(path)-1]
	if _, err := strconv.Atoi(last); err != nil || len(path) == 1 {
		return shorten(last)
	}
	return shorten(path[len(path)-2]) + "[" + last + "]"
}

// shorten cuts text of the user that is too long for a message.
func shorten(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && text[cut]&0xc0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
