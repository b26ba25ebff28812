package template

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// upper and lower are Python's, which map some characters to several. Those are
// refused rather than mapped differently.
func upper(s string) (string, error) {
	for _, r := range s {
		if r >= utf8.RuneSelf && specialUpper(r) {
			return "", unsupported("the upper case of %q", r)
		}
	}
	return strings.ToUpper(s), nil
}

// The lower case of a capital sigma depends on its neighbours; that of the dotted I
// is two characters.
func lower(s string) (string, error) {
	for _, r := range s {
		if r == '\u0130' || r == '\u03a3' { // the latter depends on its neighbours
			return "", unsupported("the lower case of %q", r)
		}
	}
	return strings.ToLower(s), nil
}

// specialUpper holds the characters whose upper or title case is not one character,
// and whole ranges around them where that is simpler.
func specialUpper(r rune) bool {
	switch r {
	case 0xdf, 0x149, 0x1f0, 0x390, 0x3b0, 0x587:
		return true
	}
	return 0x1e96 <= r && r <= 0x1e9e || 0x1f50 <= r && r <= 0x1fff || 0xfb00 <= r && r <= 0xfb17 || 0x1c4 <= r && r <= 0x1cc || 0x1f1 <= r && r <= 0x1f3
}

// capitalize makes the first character upper case and the rest lower.
func capitalize(s string) (string, error) {
	_, n := utf8.DecodeRuneInString(s)
	first, err := upper(s[:n])
	if err != nil {
		return "", err
	}
	rest, err := lower(s[n:])
	return first + rest, err
}

// title is the method: each run of cased characters is capitalized.
func title(s string) (string, error) {
	var b strings.Builder
	inside := false
	for _, r := range s {
		var c string
		var err error
		if inside {
			c, err = lower(string(r))
		} else {
			c, err = upper(string(r))
		}
		if err != nil {
			return "", err
		}
		b.WriteString(c)
		inside = unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r)
	}
	return b.String(), nil
}

// titleFilter is the filter, which only looks at what stands between words.
func titleFilter(s string) (string, error) {
	var b strings.Builder
	for len(s) > 0 {
		n := strings.IndexFunc(s, func(r rune) bool { return !wordBreak(r) })
		if n < 0 {
			n = len(s)
		}
		b.WriteString(s[:n])
		s = s[n:]
		n = strings.IndexFunc(s, wordBreak)
		if n < 0 {
			n = len(s)
		}
		word, err := capitalize(s[:n])
		if err != nil {
			return "", err
		}
		b.WriteString(word)
		s = s[n:]
	}
	return b.String(), nil
}

func wordBreak(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }

// strip removes characters from the sides that are chosen: white space, or those
// in chars.
func strip(s string, chars Value, left, right bool) (string, error) {
	cut := isSpace
	switch chars.kind {
	case absent, none:
	case text:
		cut = func(r rune) bool { return strings.ContainsRune(chars.str, r) }
	default:
		return "", failed("strip by %s", chars.kind)
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s, nil
}

// split is str.split: at a separator, or at runs of white space.
func split(s string, sep, most Value) ([]string, error) {
	n, err := limitOf(most)
	if err != nil {
		return nil, err
	}
	if sep.kind == text {
		if sep.str == "" {
			return nil, failed("split by an empty separator")
		}
		if n >= 0 {
			n++
		}
		return strings.SplitN(s, sep.str, n), nil
	}
	if sep.kind != absent && sep.kind != none {
		return nil, failed("split by %s", sep.kind)
	}
	var out []string
	for {
		s = strings.TrimLeftFunc(s, isSpace)
		if s == "" {
			return out, nil
		}
		end := strings.IndexFunc(s, isSpace)
		if end < 0 || n == 0 {
			return append(out, s), nil
		}
		out = append(out, s[:end])
		s = s[end:]
		n--
	}
}

// rsplit is str.rsplit: split, counted from the right.
func rsplit(s string, sep, most Value) ([]string, error) {
	n, err := limitOf(most)
	if err != nil || n < 0 {
		return split(s, sep, Value{})
	}
	if sep.kind != text || sep.str == "" {
		return nil, unsupported("rsplit with a limit and without a separator")
	}
	var out []string
	for ; n > 0; n-- {
		i := strings.LastIndex(s, sep.str)
		if i < 0 {
			break
		}
		out = append([]string{s[i+len(sep.str):]}, out...)
		s = s[:i]
	}
	return append([]string{s}, out...), nil
}

// limitOf reads a count that is not limited if it is absent or negative.
func limitOf(v Value) (int, error) {
	switch {
	case v.kind == absent, v.kind == none:
		return -1, nil
	case v.whole():
		const most = 1 << 30
		return int(max(-1, min(v.num, most))), nil
	}
	return 0, failed("%s where a count is needed", v.kind)
}

// splitLines is str.splitlines.
func splitLines(s string, keep bool) []string {
	var out []string
	for len(s) > 0 {
		i := strings.IndexFunc(s, isLineEnd)
		if i < 0 {
			return append(out, s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			out = append(out, s[:i+n])
		} else {
			out = append(out, s[:i])
		}
		s = s[i+n:]
	}
	return out
}

// isLineEnd knows all line ends of str.splitlines, which are more than Go scans for.
func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// replace is str.replace.
func replace(st *state, s string, from, to, most Value) (Value, error) {
	n, err := limitOf(most)
	if err != nil {
		return Value{}, err
	}
	if from.kind != text || to.kind != text {
		return Value{}, failed("replace takes two strings")
	}
	count := strings.Count(s, from.str)
	if n >= 0 {
		count = min(count, n)
	}
	if grown := count / bytesPerStep * len(to.str); grown > st.steps { // before it is made
		return Value{}, st.charge(st.steps + 1)
	}
	return st.made(strings.Replace(s, from.str, to.str, n))
}

// indent is the filter.
func indent(s, by string, first, blank bool) string {
	lines := splitLines(s+"\n", false)
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i > 0 && (l != "" || blank) || i == 0 && first {
			b.WriteString(by)
		}
		b.WriteString(l)
	}
	return b.String()
}

// textList makes a list of texts.
func textList(st *state, parts []string) (Value, error) {
	items := make([]Value, len(parts))
	for i, p := range parts {
		items[i] = String(p)
	}
	return st.list(plainList, items)
}

func isUpper(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) }
func isLower(r rune) bool { return unicode.IsLower(r) }
