package template

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokData
	tokOpenPrint // {{
	tokClosePrint
	tokOpenBlock // {%
	tokCloseBlock
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

type token struct {
	kind tokenKind
	text string // for a string what it means, not how it is written
	pos  int
}

// String is how messages call a token.
func (t token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end of the template"
	case tokData:
		return "text"
	case tokString:
		return fmt.Sprintf("the string %q", t.text)
	}
	return fmt.Sprintf("%q", t.text)
}

// lexer cuts a template into tokens, with white space around tags removed as
// trim_blocks and lstrip_blocks ask for it.
type lexer struct {
	src    string
	at     int
	tokens []token
	// fresh says that the data that begins here begins a line.
	fresh bool
}

// lex returns the tokens of a source in which all line ends are \n.
func lex(src string) ([]token, error) {
	l := &lexer{src: src, fresh: true}
	for l.at < len(l.src) {
		if err := l.data(); err != nil {
			return nil, err
		}
	}
	l.add(tokEnd, "", l.at)
	return l.tokens, nil
}

func (l *lexer) add(k tokenKind, s string, pos int) {
	l.tokens = append(l.tokens, token{k, s, pos})
}

func (l *lexer) fail(pos int, format string, args ...any) error {
	return failAt(l.src, pos, format, args...)
}

// failAt turns an offset into line and column.
func failAt(src string, pos int, format string, args ...any) error {
	line := 1 + strings.Count(src[:pos], "\n")
	column := pos - strings.LastIndexByte(src[:pos], '\n')
	return &SyntaxError{line, column, fmt.Sprintf(format, args...)}
}

// data reads text up to the next tag, and that tag.
func (l *lexer) data() error {
	from := l.at
	tag := from
	for {
		i := strings.IndexByte(l.src[tag:], '{')
		if i < 0 || tag+i+1 == len(l.src) {
			l.emit(l.src[from:], from)
			l.at = len(l.src)
			return nil
		}
		tag += i
		if strings.IndexByte("{%#", l.src[tag+1]) >= 0 {
			break
		}
		tag++
	}
	kind := l.src[tag+1]
	body := tag + 2
	data := l.src[from:tag]
	switch {
	case strings.HasPrefix(l.src[body:], "-"):
		data = strings.TrimRightFunc(data, isSpace)
		body++
	case strings.HasPrefix(l.src[body:], "+") && kind != '{':
		body++
	case kind != '{':
		data = l.lstrip(data)
	}
	l.emit(data, from)
	l.at = body
	switch kind {
	case '{':
		l.add(tokOpenPrint, "{{", tag)
		return l.inside(tag, "}}", tokClosePrint)
	case '%':
		if end, ok := l.rawStart(body); ok {
			return l.raw(tag, end)
		}
		l.add(tokOpenBlock, "{%", tag)
		return l.inside(tag, "%}", tokCloseBlock)
	}
	return l.comment(tag)
}

// emit adds text unless nothing is left of it.
func (l *lexer) emit(data string, pos int) {
	if data != "" {
		l.add(tokData, data, pos)
	}
}

// lstrip removes the white space between the start of a line and a tag.
func (l *lexer) lstrip(data string) string {
	line := strings.LastIndexByte(data, '\n') + 1
	if (line > 0 || l.fresh) && strings.TrimFunc(data[line:], isSpace) == "" {
		return data[:line]
	}
	return data
}

// close reads the end of a tag, which must stand here, and the white space that
// goes with it.
func (l *lexer) close(mark string, trim bool) bool {
	rest := l.src[l.at:]
	switch {
	case strings.HasPrefix(rest, "-"+mark):
		rest = rest[1+len(mark):]
		rest = strings.TrimLeftFunc(rest, isSpace)
	case strings.HasPrefix(rest, "+"+mark) && trim:
		rest = rest[1+len(mark):]
	case strings.HasPrefix(rest, mark):
		rest = rest[len(mark):]
		if trim {
			rest = strings.TrimPrefix(rest, "\n")
		}
	default:
		return false
	}
	l.at = len(l.src) - len(rest)
	l.fresh = l.src[l.at-1] == '\n'
	return true
}

// comment skips a comment. The white space around it goes as around a block.
func (l *lexer) comment(tag int) error {
	i := strings.Index(l.src[l.at:], "#}")
	if i < 0 {
		return l.fail(tag, "comment without an end")
	}
	end := l.at + i
	if i > 0 && strings.IndexByte("-+", l.src[end-1]) >= 0 {
		end--
	}
	l.at = end
	l.close("#}", true)
	return nil
}

// rawStart reports whether the tag whose inside begins here is {% raw %}, and
// reads it. Then it returns where its text begins.
func (l *lexer) rawStart(body int) (int, bool) {
	rest := strings.TrimLeftFunc(l.src[body:], isSpace)
	word, ok := strings.CutPrefix(rest, "raw")
	word = strings.TrimLeftFunc(word, isSpace)
	if !ok || !strings.HasPrefix(word, "%}") && !strings.HasPrefix(word, "-%}") {
		return 0, false
	}
	l.at = len(l.src) - len(word)
	l.close("%}", false) // the line end after it stays
	return l.at, true
}

// raw reads the text from after {% raw %} up to {% endraw %}.
func (l *lexer) raw(tag, from int) error {
	for i := from; ; i += 2 {
		k := strings.Index(l.src[i:], "{%")
		if k < 0 {
			return l.fail(tag, "raw block without an end")
		}
		i += k
		rest := l.src[i+2:]
		strip := strings.HasPrefix(rest, "-")
		rest = strings.TrimLeftFunc(strings.TrimPrefix(rest, "-"), isSpace)
		word, ok := strings.CutPrefix(rest, "endraw")
		if !ok {
			continue
		}
		data := l.src[from:i]
		if strip {
			data = strings.TrimRightFunc(data, isSpace)
		} else {
			data = l.lstrip(data)
		}
		l.at = len(l.src) - len(strings.TrimLeftFunc(word, isSpace))
		if !l.close("%}", true) {
			continue
		}
		l.emit(data, from)
		return nil
	}
}

// The operators, longest first.
const operators = "** // == != <= >= + - * / % ~ ( ) [ ] { } . , : | = < >"

// inside reads the tokens of a tag up to its end.
func (l *lexer) inside(tag int, mark string, closing tokenKind) error {
	depth := 0
	for l.at < len(l.src) {
		if isSpace(rune(l.src[l.at])) {
			l.at++
			continue
		}
		pos := l.at
		if depth == 0 && l.close(mark, closing == tokCloseBlock) {
			l.add(closing, mark, pos)
			return nil
		}
		switch c := l.src[l.at]; {
		case c == '"' || c == '\'':
			if err := l.quoted(c); err != nil {
				return err
			}
		case '0' <= c && c <= '9':
			l.number()
		case c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z':
			for l.at < len(l.src) && isNamePart(l.src[l.at]) {
				l.at++
			}
			l.add(tokName, l.src[pos:l.at], pos)
		default:
			op := operatorAt(l.src[l.at:])
			if op == "" {
				r, _ := utf8.DecodeRuneInString(l.src[l.at:])
				return l.fail(pos, "unexpected character %q", r)
			}
			switch op {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
			l.at += len(op)
			l.add(tokOp, op, pos)
		}
	}
	return l.fail(tag, "tag without an end")
}

// operatorAt returns the longest operator at the start of s, or "".
func operatorAt(s string) string {
	for op := range strings.FieldsSeq(operators) {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}

// Names beyond ASCII are refused, since Python normalizes them.
func isNamePart(c byte) bool {
	return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// number reads an integer or a float; an underscore may stand between digits.
func (l *lexer) number() {
	from := l.at
	kind := tokInt
	l.digits()
	if l.at+1 < len(l.src) && l.src[l.at] == '.' && isDigit(l.src[l.at+1]) {
		kind = tokFloat
		l.at++
		l.digits()
	}
	if l.at < len(l.src) && l.src[l.at]|0x20 == 'e' {
		k := l.at + 1
		if k < len(l.src) && (l.src[k] == '+' || l.src[k] == '-') {
			k++
		}
		if k < len(l.src) && isDigit(l.src[k]) {
			kind = tokFloat
			l.at = k
			l.digits()
		}
	}
	l.add(kind, strings.ReplaceAll(l.src[from:l.at], "_", ""), from)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits reads digits with single underscores between them.
func (l *lexer) digits() {
	for l.at < len(l.src) && (isDigit(l.src[l.at]) || l.src[l.at] == '_' && l.at+1 < len(l.src) && isDigit(l.src[l.at+1])) {
		l.at++
	}
}

// quoted reads a string literal with Python's escapes.
func (l *lexer) quoted(quote byte) error {
	pos := l.at
	var b strings.Builder
	for l.at++; l.at < len(l.src); {
		c := l.src[l.at]
		switch {
		case c == quote:
			l.at++
			l.add(tokString, b.String(), pos)
			return nil
		case c != '\\':
			b.WriteByte(c)
			l.at++
		default:
			if err := l.escape(&b); err != nil {
				return err
			}
		}
	}
	return l.fail(pos, "string without an end")
}

// escape reads one escape sequence. An unknown one stands for itself.
func (l *lexer) escape(b *strings.Builder) error {
	pos := l.at
	if l.at+1 == len(l.src) {
		return l.fail(pos, "string without an end")
	}
	c := l.src[l.at+1]
	l.at += 2
	const from, to = `\'"abfnrtv`, "\\'\"\a\b\f\n\r\t\v"
	if i := strings.IndexByte(from, c); i >= 0 {
		b.WriteByte(to[i])
		return nil
	}
	digits := 0
	switch {
	case c == '\n':
		return nil
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case isDigit(c) || c == 'N':
		return l.fail(pos, "escape \\%c is not supported", c)
	default:
		b.WriteByte('\\')
		l.at-- // the character may be the first of several bytes
		return nil
	}
	r := rune(0)
	for range digits {
		if l.at == len(l.src) {
			return l.fail(pos, "string without an end")
		}
		d := strings.IndexByte("0123456789abcdef", lowerHex(l.src[l.at]))
		if d < 0 || r > unicode.MaxRune {
			return l.fail(pos, "malformed escape \\%c", c)
		}
		r = r<<4 | rune(d)
		l.at++
	}
	if !utf8.ValidRune(r) {
		return l.fail(pos, "escape \\%c of no character", c)
	}
	b.WriteRune(r)
	return nil
}

func lowerHex(c byte) byte {
	if 'A' <= c && c <= 'F' {
		return c + 'a' - 'A'
	}
	return c
}

// isSpace is Python's str.isspace.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
