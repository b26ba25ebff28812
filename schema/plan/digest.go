package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
)

// digestPrefix names the hash function in front of its hexadecimal value.
const digestPrefix = "sha256:"

// IsDigest reports whether s has the form of a digest.
func IsDigest(s string) bool {
	sum, ok := strings.CutPrefix(s, digestPrefix)
	raw, err := hex.DecodeString(sum)
	return ok && err == nil && len(raw) == sha256.Size && sum == strings.ToLower(sum)
}

// digest hashes a body in compact canonical form.
func digest(compactBody []byte) string {
	sum := sha256.Sum256(compactBody)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// compact gives the canonical bytes of v without white space: fixed field order,
// sorted map keys, no escapes beyond those that JSON demands for the strings
// that Validate admits, so that other tools reproduce the digest.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := encode(&b, v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encode writes v as compact writes it, and a line break.
func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// indented gives valid compact JSON with two spaces per level and one member or
// element per line, piece by piece, until emit returns false. Empty containers
// and lists of numbers stay on their line; a run of bucket indexes is one item to
// a reader. It reports whether it came to the end.
func indented(src []byte, emit func(piece []byte) bool) bool {
	depth, space, colon := 0, []byte("\n"), []byte(": ")
	newline := func() bool {
		for len(space) < 1+2*depth {
			space = append(space, ' ', ' ')
		}
		return emit(space[:1+2*depth])
	}
	ok := true
	for i := 0; i < len(src) && ok; {
		end := i + 1
		switch c := src[i]; c {
		case '"':
			end = stringEnd(src, i)
			ok = emit(src[i:end])
		case '{', '[':
			if flat := flatEnd(src, i); flat > 0 {
				end = flat
				ok = emit(src[i:end])
				break
			}
			depth++
			ok = emit(src[i:end]) && newline()
		case '}', ']':
			depth--
			ok = newline() && emit(src[i:end])
		case ',':
			ok = emit(src[i:end]) && newline()
		case ':':
			ok = emit(colon)
		default:
			for end < len(src) && src[end] != ',' && src[end] != '}' && src[end] != ']' {
				end++
			}
			ok = emit(src[i:end])
		}
		i = end
	}
	return ok
}

// appendIndented appends the indented form of compact JSON.
func appendIndented(dst, src []byte) []byte {
	indented(src, func(piece []byte) bool {
		dst = append(dst, piece...)
		return true
	})
	return dst
}

// isIndented reports whether text is the indented form of compact JSON and a line
// break. It costs no memory, which is what counts for a large plan.
func isIndented(text, src []byte) bool {
	whole := indented(src, func(piece []byte) bool {
		if !bytes.HasPrefix(text, piece) {
			return false
		}
		text = text[len(piece):]
		return true
	})
	return whole && string(text) == "\n"
}

// stringEnd returns the index after the string that starts at src[i].
func stringEnd(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}

// flatEnd returns the index after a container at src[i] that stays on one line,
// or 0. Those are empty ones and lists of numbers.
func flatEnd(src []byte, i int) int {
	for j := i + 1; j < len(src); j++ {
		switch c := src[j]; {
		case c == ']' || c == '}':
			return j + 1
		case c == ',' || c == '-' || '0' <= c && c <= '9':
		default:
			return 0
		}
	}
	return 0
}

// stripped copies JSON without the white space between its tokens. Anything else
// is copied as it is, wrong or not.
func stripped(src []byte) []byte {
	dst := make([]byte, 0, len(src))
	for i := 0; i < len(src); {
		switch src[i] {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			end := stringEnd(src, i)
			dst = append(dst, src[i:end]...)
			i = end
		default:
			dst = append(dst, src[i])
			i++
		}
	}
	return dst
}
