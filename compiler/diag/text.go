package diag

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Bounds of the texts of findings, which quote what a user wrote.
const (
	maxWord = 200
	maxText = 2000
)

// Shorten cuts the long words of a message, and then a long message. Both are
// far longer than what anybody writes on purpose.
func Shorten(message string) string {
	if len(message) <= maxWord {
		return message
	}
	var b strings.Builder
	for rest := message; rest != ""; {
		end := strings.IndexByte(rest, ' ') + 1
		if end == 0 {
			end = len(rest)
		}
		word := rest[:end]
		if len(word) > maxWord {
			// What hides the user information of a URL has to see the @ behind
			// it, which may be in the middle.
			whole := []byte(word)
			maskURLs(word, whole, false)
			word = string(whole)
			// The end has the closing quote and what follows it.
			word = head(word, maxWord*3/4) + "..." + tail(word, maxWord/8)
		}
		if b.Len()+len(word) > maxText {
			b.WriteString("...")
			break
		}
		b.WriteString(word)
		rest = rest[end:]
	}
	return b.String()
}

// head returns the first n bytes of s or a few less, so that no character is cut.
func head(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail returns the last n bytes of s or a few less.
func tail(s string, n int) string {
	at := len(s) - n
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

// secretName matches the end of what people call secrets, secretField a field of
// such a name with its value.
const secretName = `(?i:passwo?r?ds?|secrets?|credentials?|authorization|bearer|(?:api|access|private)[_-]?keys?|(?:^|[^a-z])token)`

var (
	secretNames = regexp.MustCompile(secretName + `$`)
	// secretScheme is the value of a header that names its scheme first.
	secretScheme = regexp.MustCompile(`(?i:authorization)["']?\s*[:=]\s*["']?(?i:bearer|basic|token|digest)\s+([^\s"',}]+)|\b(?i:bearer)\s+([A-Za-z0-9._~+/=-]{8,})`)
	secretFields = regexp.MustCompile(secretName + `["']?\s*[:=]\s*("[^"]*"?|'[^']*'?|\[[^\]]*|[^\s,}\]"'][^\s,}\]]*)`)
	// privateKey is what follows the first line of a key in PEM, on one line.
	privateKey = regexp.MustCompile(`BEGIN (?:[A-Z]+ )*PRIVATE KEY-----([^-]+)`)
	// pemLine is a line of such a key that has a line to itself.
	pemLine = regexp.MustCompile(`^\s*([A-Za-z0-9+/]{48,76}={0,2})\s*$`)
)

// SecretName reports whether a field of this name is likely to hold a secret.
func SecretName(name string) bool { return secretNames.MatchString(name) }

// Mask returns a line of an input with asterisks for what is likely to be a
// secret: the user information, query and fragment of each URL, the value of
// each field that is named like a secret, and private keys. It keeps the length
// of the line, so that places stay what they are.
func Mask(line string) string { return mask(line, true) }

// MaskText is Mask for a sentence. What stands before an @ without a scheme is
// a name there more often than a password, as in model:size@revision.
func MaskText(text string) string {
	if !strings.ContainsAny(text, ":=@") && len(text) < maxWord {
		return text // which holds for most, and costs no search
	}
	return mask(text, false)
}

// maskPath is Mask for the keys of a JSON pointer.
func maskPath(path string) string {
	if !strings.ContainsAny(path, ":=@") {
		return path
	}
	keys := strings.Split(path, "/")
	for i, key := range keys {
		// A slash of a key is written as ~1.
		plain := strings.ReplaceAll(key, "~1", "/")
		if masked := MaskText(plain); masked != plain {
			keys[i] = strings.ReplaceAll(masked, "/", "~1")
		}
	}
	return strings.Join(keys, "/")
}

func mask(line string, bare bool) string {
	out := []byte(line)
	for _, secret := range []*regexp.Regexp{secretFields, secretScheme, privateKey, pemLine} {
		for _, at := range secret.FindAllStringSubmatchIndex(line, -1) {
			for i := 2; i < len(at); i += 2 {
				hide(out, max(at[i], 0), at[i+1])
			}
		}
	}
	maskURLs(line, out, bare)
	return string(out)
}

// maskURLs hides in out what is secret in the URLs of a line. Bare URLs, which
// have no scheme, are looked for on demand.
func maskURLs(line string, out []byte, bare bool) {
	// Where the URL at hand starts, the quote before it, whether it has a
	// scheme, and where its part between slashes starts and whether that has a
	// colon. Behind a scheme the part does not end before the user information.
	word, quote, scheme, part, colon := 0, byte(0), false, 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case strings.IndexByte(" \t\"'{}[],", c) >= 0:
			if scheme && quote != 0 && c != quote {
				break // a quoted URL ends with its quote, whatever is in it
			}
			if scheme && strings.IndexByte("?#", line[word]) >= 0 {
				hide(out, word+1, i)
			}
			word, scheme, part, colon, quote = i+1, false, i+1, false, 0
			if c == '"' || c == '\'' {
				quote = c
			}
		case c == '/':
			if scheme {
				break
			}
			scheme = strings.HasSuffix(line[word:i], ":/")
			part, colon = i+1, false
		case c == ':':
			colon = true
		case c == '@' && (colon && bare || scheme):
			// user:password@host, with or without a scheme.
			hide(out, part, i)
			part, colon = i+1, false
		case (c == '?' || c == '#') && scheme && strings.IndexByte("?#", line[word]) < 0:
			word = i
		}
	}
	if scheme && word < len(line) && strings.IndexByte("?#", line[word]) >= 0 {
		hide(out, word+1, len(line))
	}
}

// hide overwrites a range except quotes.
func hide(line []byte, from, to int) {
	for i := from; i < to; i++ {
		if line[i] != '"' && line[i] != '\'' {
			line[i] = '*'
		}
	}
}
