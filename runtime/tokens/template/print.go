package template

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// print is Python's str of a value.
func (v Value) print() (string, error) {
	if v.kind == text {
		return v.str, nil
	}
	if v.kind == undefined {
		return "", nil
	}
	var b strings.Builder
	err := v.repr(&b)
	return b.String(), err
}

// repr writes Python's repr of a value.
func (v Value) repr(b *strings.Builder) error {
	switch v.kind {
	case undefined:
		b.WriteString("Undefined")
	case none:
		b.WriteString("None")
	case boolean:
		b.WriteString([]string{"False", "True"}[v.num])
	case integer:
		b.WriteString(strconv.FormatInt(v.num, 10))
	case float:
		b.WriteString(floatText(v.float()))
	case big:
		b.WriteString(v.str)
	case text:
		return reprText(b, v.str)
	case sequence:
		return v.list.repr(b)
	case mapping:
		b.WriteByte('{')
		for i, k := range v.dict.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := reprText(b, k); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := v.dict.values[i].repr(b); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		return unsupported("the text of a %s", v.kind)
	}
	return nil
}

// A tuple of one has a comma.
func (l *list) repr(b *strings.Builder) error {
	if l.form > tuple {
		return unsupported("the text of a view or generator")
	}
	open, end := "[", "]"
	if l.form == tuple {
		open, end = "(", ")"
		if len(l.items) == 1 {
			end = ",)"
		}
	}
	b.WriteString(open)
	for i, v := range l.items {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := v.repr(b); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

// floatText is Python's repr of a float: the shortest digits that read back the
// same, with an exponent from 1e16 and below 1e-4.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f != f:
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a >= 1e16 || a < 1e-4) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// reprText writes a text in quotes. Which characters beyond ASCII Python prints
// depends on its version of Unicode, so only those of old scripts are taken.
func reprText(b *strings.Builder, s string) error {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\x`)
			hexTo(b, r, 2)
		case r < utf8.RuneSelf || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x`)
			hexTo(b, r, 2)
		case r < 0x3000 && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)):
			b.WriteString(`\u`)
			hexTo(b, r, 4)
		default:
			return unsupported("the repr of %U", r)
		}
	}
	b.WriteByte(quote)
	return nil
}

// hexTo writes the lowest digits of r.
func hexTo(b *strings.Builder, r rune, digits int) {
	for i := digits - 1; i >= 0; i-- {
		b.WriteByte("0123456789abcdef"[r>>(4*i)&15])
	}
}

// jsonStyle is how tojson writes.
type jsonStyle struct {
	indent    string // of one level; used if pretty
	pretty    bool
	item, key string // separators
	ascii     bool
	sorted    bool
}

// json writes a value as Python's json.dumps.
func (v Value) json(b *strings.Builder, s *jsonStyle, depth int) error {
	switch v.kind {
	case none:
		b.WriteString("null")
	case boolean:
		b.WriteString([]string{"false", "true"}[v.num])
	case integer:
		b.WriteString(strconv.FormatInt(v.num, 10))
	case big:
		b.WriteString(v.str)
	case float:
		f := v.float()
		if math.IsInf(f, 0) || f != f {
			return unsupported("a float beyond JSON")
		}
		b.WriteString(floatText(f))
	case text:
		jsonText(b, v.str, s.ascii)
	case sequence:
		if v.list.form > tuple {
			return failed("a view or generator is not JSON")
		}
		return s.container(b, '[', ']', len(v.list.items), depth, func(i int) error {
			return v.list.items[i].json(b, s, depth+1)
		})
	case mapping:
		order := v.dict.order(s.sorted)
		return s.container(b, '{', '}', len(order), depth, func(i int) error {
			jsonText(b, v.dict.keys[order[i]], s.ascii)
			b.WriteString(s.key)
			return v.dict.values[order[i]].json(b, s, depth+1)
		})
	default:
		return failed("%s is not JSON", v.kind)
	}
	return nil
}

// container writes brackets around n elements. An empty container stays on one line.
func (s *jsonStyle) container(b *strings.Builder, open, end byte, n, depth int, each func(int) error) error {
	b.WriteByte(open)
	for i := range n {
		if i > 0 {
			b.WriteString(s.item)
		}
		s.line(b, depth+1)
		if err := each(i); err != nil {
			return err
		}
	}
	if n > 0 {
		s.line(b, depth)
	}
	b.WriteByte(end)
	return nil
}

// line begins a new line if the style has lines.
func (s *jsonStyle) line(b *strings.Builder, depth int) {
	if s.pretty {
		b.WriteByte('\n')
		for range depth {
			b.WriteString(s.indent)
		}
	}
}

// jsonText escapes what JSON demands and, with ascii, everything beyond printable
// ASCII. Nothing is escaped for HTML.
func jsonText(b *strings.Builder, s string, ascii bool) {
	b.WriteByte('"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if ascii && (c >= utf8.RuneSelf || c == 0x7f) {
			r, n := utf8.DecodeRuneInString(s[i:])
			b.WriteString(s[from:i])
			escapeASCII(b, r)
			i += n
			from = i
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b.WriteString(s[from:i])
		i++
		from = i
		if k := strings.IndexByte("\"\\\n\r\t\b\f", c); k >= 0 {
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[k])
			continue
		}
		b.WriteString(`\u`)
		hexTo(b, rune(c), 4)
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
}

// escapeASCII writes a character as one or, beyond the basic plane, two escapes.
func escapeASCII(b *strings.Builder, r rune) {
	const surrogates, high, low = 0x10000, 0xd800, 0xdc00
	b.WriteString(`\u`)
	if r < surrogates {
		hexTo(b, r, 4)
		return
	}
	r -= surrogates
	hexTo(b, high+r>>10, 4)
	b.WriteString(`\u`)
	hexTo(b, low+r&0x3ff, 4)
}
