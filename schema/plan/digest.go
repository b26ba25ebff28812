package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// digestPrefix names the hash function in front of its hexadecimal value.
const digestPrefix = "sha256:"

// digest hashes a body in compact canonical form.
func digest(compactBody []byte) string {
	sum := sha256.Sum256(compactBody)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// compact gives the canonical bytes of v without white space: fixed field order,
// sorted map keys, no escapes beyond those that JSON demands for the strings
// that Validate admits, so that other tools reproduce the digest. Size is the
// expected length, or 0.
func compact(v any, size int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(size)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// appendIndented appends valid compact JSON with two spaces per level and one
// member or element per line. Empty containers and lists of numbers stay on
// their line; a run of bucket indexes is one item to a reader.
func appendIndented(dst, src []byte) []byte {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '"':
			end := stringEnd(src, i)
			dst = append(dst, src[i:end]...)
			i = end - 1
		case '{', '[':
			if end := flatEnd(src, i); end > 0 {
				dst = append(dst, src[i:end]...)
				i = end - 1
				continue
			}
			depth++
			dst = newline(append(dst, c), depth)
		case '}', ']':
			depth--
			dst = append(newline(dst, depth), c)
		case ',':
			dst = newline(append(dst, c), depth)
		case ':':
			dst = append(dst, ':', ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// newline starts a line at the given depth.
func newline(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, ' ', ' ')
	}
	return dst
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
