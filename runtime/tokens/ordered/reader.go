package ordered

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of a document.
const MaxDepth = 256

// Error is a fault of a document.
type Error struct {
	// Offset is where it was noticed, in bytes.
	Offset int
	// Text says what is wrong.
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("JSON at byte %d: %s", e.Offset, e.Text) }

// ErrTooMany marks a document with more values than Reader.Limit allows.
var ErrTooMany = errors.New("too many values")

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. End stands for the end of the document.
const (
	End Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a boolean", "a number", "a string", "an array", "an object"}

func (k Kind) String() string { return kindNames[k] }

// Reader reads one document from the front. Strings that it returns without
// escapes share the memory of the document.
type Reader struct {
	text  string
	at    int
	depth int
	// most bounds the elements and members of the document, 0 for no bound.
	most, taken int
}

// NewReader returns a reader at the start of a document, which must be UTF-8.
func NewReader(text string) *Reader { return &Reader{text: text} }

// Limit bounds the elements and members of all arrays and objects, since each takes
// many times its size; 0 is no bound.
func (r *Reader) Limit(most int) { r.most = most }

// Offset is where the reader stands, in bytes.
func (r *Reader) Offset() int { return r.at }

func (r *Reader) fail(format string, args ...any) error {
	return &Error{Offset: r.at, Text: fmt.Sprintf(format, args...)}
}

func (r *Reader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

// Peek tells the kind of the next value, as far as its first byte shows it.
func (r *Reader) Peek() (Kind, error) {
	r.space()
	if r.at == len(r.text) {
		return End, nil
	}
	switch c := r.text[r.at]; c {
	case 'n':
		return Null, nil
	case 'f':
		return False, nil
	case 't':
		return True, nil
	case '"':
		return String, nil
	case '[':
		return Array, nil
	case '{':
		return Object, nil
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return Number, nil
		}
		return End, r.fail("unexpected %q", c)
	}
}

// want fails unless the next value is of kind k.
func (r *Reader) want(k Kind) error {
	got, err := r.Peek()
	if err != nil {
		return err
	}
	if got != k {
		return r.fail("want %s, found %s", k, got)
	}
	return nil
}

// word reads one of the three literal names.
func (r *Reader) word(w string) error {
	if !strings.HasPrefix(r.text[r.at:], w) {
		return r.fail("want %s", w)
	}
	r.at += len(w)
	return nil
}

// Null reads null.
func (r *Reader) Null() error {
	if err := r.want(Null); err != nil {
		return err
	}
	return r.word("null")
}

// Bool reads true or false.
func (r *Reader) Bool() (bool, error) {
	k, err := r.Peek()
	switch {
	case err != nil:
		return false, err
	case k == True:
		return true, r.word("true")
	case k == False:
		return false, r.word("false")
	}
	return false, r.fail("want a boolean, found %s", k)
}

// Number reads a number and returns it as it is written.
func (r *Reader) Number() (string, error) {
	if err := r.want(Number); err != nil {
		return "", err
	}
	from := r.at
	if r.text[r.at] == '-' {
		r.at++
	}
	if !r.digits() {
		return "", r.fail("want a digit")
	}
	if first := strings.TrimPrefix(r.text[from:r.at], "-"); len(first) > 1 && first[0] == '0' {
		return "", r.fail("a number starts with 0")
	}
	if r.skip('.') && !r.digits() {
		return "", r.fail("want a digit after the point")
	}
	if r.skip('e') || r.skip('E') {
		_ = r.skip('+') || r.skip('-')
		if !r.digits() {
			return "", r.fail("want a digit in the exponent")
		}
	}
	return r.text[from:r.at], nil
}

func (r *Reader) digits() bool {
	from := r.at
	for r.at < len(r.text) && '0' <= r.text[r.at] && r.text[r.at] <= '9' {
		r.at++
	}
	return r.at > from
}

func (r *Reader) skip(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// String reads a string. Halves of surrogate pairs on their own have no UTF-8
// and are an error.
func (r *Reader) String() (string, error) {
	if err := r.want(String); err != nil {
		return "", err
	}
	from := r.at + 1
	for at := from; at < len(r.text); at++ {
		switch c := r.text[at]; {
		case c == '"':
			r.at = at + 1
			return r.text[from:at], nil
		case c == '\\':
			return r.escaped(from, at)
		case c < ' ':
			r.at = at
			return "", r.fail("control character in a string")
		}
	}
	r.at = len(r.text)
	return "", r.fail("string without an end")
}

// escaped reads on from the first backslash of a string.
func (r *Reader) escaped(from, at int) (string, error) {
	var b strings.Builder
	b.WriteString(r.text[from:at])
	for r.at = at; r.at < len(r.text); {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return b.String(), nil
		case c == '\\':
			v, err := r.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(v)
		case c < ' ':
			return "", r.fail("control character in a string")
		default:
			end := r.at + 1
			for end < len(r.text) && r.text[end] != '"' && r.text[end] != '\\' && r.text[end] >= ' ' {
				end++
			}
			b.WriteString(r.text[r.at:end])
			r.at = end
		}
	}
	return "", r.fail("string without an end")
}

// escape reads one escape sequence.
func (r *Reader) escape() (rune, error) {
	if r.at+1 >= len(r.text) {
		return 0, r.fail("string without an end")
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := r.text[r.at+1]
	if i := strings.IndexByte(from, c); i >= 0 {
		r.at += 2
		return rune(to[i]), nil
	}
	if c != 'u' {
		return 0, r.fail("unknown escape \\%c", c)
	}
	v, err := r.hex()
	if err != nil || !utf16.IsSurrogate(v) {
		return v, err
	}
	if !strings.HasPrefix(r.text[r.at:], `\u`) {
		return 0, r.fail("half of a surrogate pair")
	}
	low, err := r.hex()
	if err != nil {
		return 0, err
	}
	if v = utf16.DecodeRune(v, low); v == utf8.RuneError {
		return 0, r.fail("half of a surrogate pair")
	}
	return v, nil
}

// hex reads \uXXXX.
func (r *Reader) hex() (rune, error) {
	if r.at+6 > len(r.text) {
		return 0, r.fail("string without an end")
	}
	var v rune
	for _, c := range []byte(r.text[r.at+2 : r.at+6]) {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, r.fail("want four hexadecimal digits")
		}
	}
	r.at += 6
	return v, nil
}

// Object reads an object. It calls member with each key in turn, which must read
// the value. Repeated keys are passed on as they come.
func (r *Reader) Object(member func(key string) error) error {
	if err := r.open(Object); err != nil {
		return err
	}
	for first := true; ; first = false {
		done, err := r.more('}', first)
		if done || err != nil {
			return err
		}
		key, err := r.String()
		if err != nil {
			return err
		}
		r.space()
		if !r.skip(':') {
			return r.fail("want a colon")
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// Array reads an array. It calls element with each index in turn, which must read
// the value.
func (r *Reader) Array(element func(i int) error) error {
	if err := r.open(Array); err != nil {
		return err
	}
	for i := 0; ; i++ {
		done, err := r.more(']', i == 0)
		if done || err != nil {
			return err
		}
		if err := element(i); err != nil {
			return err
		}
	}
}

func (r *Reader) open(k Kind) error {
	if err := r.want(k); err != nil {
		return err
	}
	if r.depth == MaxDepth {
		return r.fail("nested deeper than %d", MaxDepth)
	}
	r.depth++
	r.at++
	return nil
}

// more reads what stands before the next member: nothing, a comma, or the end.
func (r *Reader) more(end byte, first bool) (done bool, err error) {
	r.space()
	if r.skip(end) {
		r.depth--
		return true, nil
	}
	if r.taken++; r.most > 0 && r.taken > r.most {
		return false, fmt.Errorf("JSON at byte %d: %w, at most %d are read", r.at, ErrTooMany, r.most)
	}
	if first {
		return false, nil
	}
	if !r.skip(',') {
		return false, r.fail("want a comma or %q", end)
	}
	r.space()
	return false, nil
}

// Skip reads one value of any kind and forgets it.
func (r *Reader) Skip() error {
	k, err := r.Peek()
	if err != nil {
		return err
	}
	switch k {
	case Null:
		return r.Null()
	case True, False:
		_, err = r.Bool()
	case Number:
		_, err = r.Number()
	case String:
		_, err = r.String()
	case Array:
		return r.Array(func(int) error { return r.Skip() })
	case Object:
		return r.Object(func(string) error { return r.Skip() })
	default:
		return r.fail("want a value")
	}
	return err
}

// Done fails unless only white space is left.
func (r *Reader) Done() error {
	r.space()
	if r.at < len(r.text) {
		return r.fail("text after the end of the document")
	}
	return nil
}

// Since returns the text from an offset to where the reader stands.
func (r *Reader) Since(from int) string { return r.text[from:r.at] }
