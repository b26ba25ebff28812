package bpe

// family is one of the pre-tokenizers that are implemented.
type family uint8

const (
	qwen     family = iota + 1 // digits stand alone
	llama                      // up to three digits stand together
	deepseek                   // digits, then CJK, then everything else, in three passes
)

// The patterns of the files, by which a family is recognized. A pattern that
// differs in one character is another pre-tokenizer.
const (
	qwenPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	llamaPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	deepseekDigits = `\p{N}{1,3}`
	deepseekCJK    = "[一-龥\u3040-ゟ゠-ヿ]+"
	deepseekMain   = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^` + "\r\n" + `\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[` + "\r\n" + `]*|\s*[` + "\r\n" + `]+|\s+(?!\S)|\s+`
)

// splitter cuts text into words, front to back, in time linear in its length.
type splitter struct {
	text   string
	at     int
	family family
	// The ends of the piece at hand after the first and the second pass of
	// DeepSeek's pre-tokenizer. A later pass sees only its piece.
	first, second int
}

// next returns the next word, or false at the end.
func (s *splitter) next() (string, bool) {
	if s.at == len(s.text) {
		return "", false
	}
	from := s.at
	switch s.family {
	case deepseek:
		s.at = s.deepseekEnd()
	default:
		s.at += matchGPT(s.text[from:], s.family == llama)
	}
	return s.text[from:s.at], true
}

// matchGPT returns the length of the match at the start of a text that is not
// empty, for the patterns of Qwen and Llama. They match everywhere.
func matchGPT(s string, groupDigits bool) int {
	c, n := at(s)
	switch {
	case s[0] == '\'':
		if k := contraction(s); k > 0 {
			return k
		}
	case c&letter != 0:
		return n + span(s[n:], letter, 0)
	case c&number != 0:
		if groupDigits {
			return digits(s)
		}
		return n
	}
	if !newline(s[0]) { // one leading character that is neither letter nor digit
		if k := span(s[n:], letter, 0); k > 0 {
			return n + k
		}
	}
	if k := others(s); k > 0 {
		return k
	}
	return spaces(s)
}

// others matches ` ?[^\s\p{L}\p{N}]+[\r\n]*`.
func others(s string) int {
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	k := 0
	for i+k < len(s) {
		c, n := at(s[i+k:])
		if c&(space|letter|number) != 0 {
			break
		}
		k += n
	}
	if k == 0 {
		return 0
	}
	i += k
	return i + newlines(s[i:])
}

// spaces matches `\s*[\r\n]+|\s+(?!\S)|\s+` on text that starts with white
// space: up to the last line end, or everything but the last character, which
// belongs to the word after it.
func spaces(s string) int {
	end, last, line := 0, 0, 0
	for end < len(s) {
		c, n := at(s[end:])
		if c&space == 0 {
			break
		}
		if newline(s[end]) {
			line = end + 1
		}
		last = end
		end += n
	}
	switch {
	case line > 0:
		return line
	case end == len(s) || last == 0:
		return end
	}
	return last
}

// digits matches `\p{N}{1,3}`.
func digits(s string) int {
	i := 0
	for range 3 {
		c, n := at(s[i:])
		if c&number == 0 {
			break
		}
		i += n
	}
	return i
}

// contraction matches `(?i:'s|'t|'re|'ve|'m|'ll|'d)`. The long s folds to s.
func contraction(s string) int {
	const longS = "\u017f"
	if len(s) < 2 {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	if s[1:3] == longS {
		return 3
	}
	switch [2]byte{s[1] | 0x20, s[2] | 0x20} {
	case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
		return 3
	}
	return 0
}

// deepseekEnd returns the end of the next word.
func (s *splitter) deepseekEnd() int {
	if s.at >= s.first {
		s.first = s.at + pieceEnd(s.text[s.at:], digits, isNumber)
		s.second = s.at
	}
	if s.at >= s.second {
		s.second = s.at + pieceEnd(s.text[s.at:s.first], cjkSpan, isCJK)
	}
	rest := s.text[s.at:s.second]
	if k := matchDeepseek(rest); k > 0 {
		return s.at + k
	}
	// What no alternative matches stays together as one word.
	i := 0
	for i < len(rest) {
		_, n := at(rest[i:])
		i += n
		if i < len(rest) && matchDeepseek(rest[i:]) > 0 {
			break
		}
	}
	return s.at + i
}

// pieceEnd returns the end of the first piece that an isolating split makes: a
// match at the start, or everything before the first match.
func pieceEnd(s string, match func(string) int, starts func(string) bool) int {
	if k := match(s); k > 0 {
		return k
	}
	i := 0
	for i < len(s) && !starts(s[i:]) {
		_, n := at(s[i:])
		i += n
	}
	return i
}

// isNumber reports whether a number stands at the start of s.
func isNumber(s string) bool {
	c, _ := at(s)
	return c&number != 0
}

// isCJK recognizes [一-龥぀-ゟ゠-ヿ] at the start of s: U+4E00 to U+9FA5 and
// U+3040 to U+30FF. All of them take three bytes, which order as the code points.
func isCJK(s string) bool {
	if len(s) < 3 || s[0] < 0xE3 || s[0] > 0xE9 {
		return false
	}
	w := s[:3]
	return "\u4e00" <= w && w <= "\u9fa5" || "\u3040" <= w && w <= "\u30ff"
}

// cjkSpan returns the length of the run of CJK at the start of s.
func cjkSpan(s string) int {
	i := 0
	for isCJK(s[i:]) {
		i += 3
	}
	return i
}

// matchDeepseek returns the length of the match of the main pattern at the start
// of s, or 0. It fails after two characters at most, so that trying every
// position costs no more than reading.
func matchDeepseek(s string) int {
	c, n := at(s)
	if n == 1 && c&(punct|symbol) != 0 {
		if k := latin(s[1:]); k > 0 {
			return 1 + k
		}
	}
	switch {
	case c&(letter|mark) != 0:
		return n + span(s[n:], letter|mark, 0)
	case c&(punct|symbol) == 0 && !newline(s[0]):
		if k := span(s[n:], letter|mark, 0); k > 0 {
			return n + k
		}
	}
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	if k := span(s[i:], punct|symbol, 0); k > 0 {
		i += k
		return i + newlines(s[i:])
	}
	if c&space != 0 {
		return spaces(s)
	}
	return 0
}

// latin matches [A-Za-z]*.
func latin(s string) int {
	i := 0
	for i < len(s) && 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z' {
		i++
	}
	return i
}
