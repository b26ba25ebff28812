package bpe

import "unicode/utf8"

// The class bits of a code point, in the order of the generated tables.
const (
	letter uint8 = 1 << iota
	number
	punct
	symbol
	mark
	space
	// active marks what NFC may change or reorder, or compose with what stands
	// before it. Everything else is a safe place to cut.
	active
)

const blockBits = 7

// classOf returns the class bits of a code point.
func classOf(r rune) uint8 {
	i := int(r>>blockBits) * 2
	block := int(classIndex[i]) | int(classIndex[i+1])<<8
	return classBlocks[block<<blockBits|int(r)&(1<<blockBits-1)]
}

// at returns the class and the length of the code point at the start of s, and
// 0, 0 at its end.
func at(s string) (class uint8, size int) {
	if len(s) == 0 {
		return 0, 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		return classBlocks[c], 1 // the first block is that of ASCII
	}
	r, n := utf8.DecodeRuneInString(s)
	return classOf(r), n
}

// span returns the length of the longest prefix of s whose code points all have
// one of the classes in want and none of those in avoid.
func span(s string, want, avoid uint8) int {
	i := 0
	for i < len(s) {
		c, n := at(s[i:])
		if c&want == 0 || c&avoid != 0 {
			break
		}
		i += n
	}
	return i
}

func newline(c byte) bool { return c == '\n' || c == '\r' }

// newlines returns the length of the line ends at the start of s.
func newlines(s string) int {
	i := 0
	for i < len(s) && newline(s[i]) {
		i++
	}
	return i
}
