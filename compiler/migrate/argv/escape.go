package argv

import (
	"strconv"
	"unicode/utf8"
)

// unescapeC reads one escape of C at the start of a text, as $'...' of shells and
// units of systemd have them, and returns what it stands for and its length. An
// unknown escape stands for itself.
func unescapeC(s string) (string, int) {
	simple := map[byte]string{
		'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", 'e': "\x1b", 's': " ",
		'\\': `\`, '\'': "'", '"': `"`, '?': "?",
	}
	if len(s) < 2 {
		return s, len(s)
	}
	if text, ok := simple[s[1]]; ok {
		return text, 2
	}
	switch c := s[1]; {
	case c == 'x':
		return number(s, 2, 2, 16)
	case c == 'u':
		return number(s, 2, 4, 16)
	case c == 'U':
		return number(s, 2, 8, 16)
	case c >= '0' && c <= '7':
		return number(s, 1, 3, 8)
	}
	return s[:2], 2
}

// number reads a character that is given by up to most digits from an offset on.
func number(s string, from, most, base int) (string, int) {
	end := from
	for end < len(s) && end-from < most {
		if _, err := strconv.ParseUint(s[from:end+1], base, 32); err != nil {
			break
		}
		end++
	}
	n, err := strconv.ParseUint(s[from:end], base, 32)
	if err != nil {
		return s[:2], 2
	}
	if n < utf8.RuneSelf || most > 3 {
		return string(rune(n)), end
	}
	return string([]byte{byte(n)}), end
}
