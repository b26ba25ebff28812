package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// place turns a byte offset into a line and a column, both from 1. An offset
// below 0 gives zeros.
func place(data []byte, offset int) (line, column int) {
	if offset < 0 {
		return 0, 0
	}
	before := data[:min(offset, len(data))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// decodeError gives an error of encoding/json its code and place.
func decodeError(data []byte, err error) error {
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		// The offset counts the bytes that were read, the offending one included.
		at := max(int(syntax.Offset)-1, 0)
		line, col := place(data, at)
		return &Error{Code: CodeSyntax, Line: line, Column: col, Hint: notAPlan,
			Message: "not one JSON document: unexpected " + strings.TrimPrefix(excerpt(data, at), "the ")}
	}
	if other, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		line, col := place(data, int(other.Offset)-1)
		return &Error{
			Code: CodeType, Pointer: pointerAt(data, int(other.Offset)), Line: line, Column: col,
			Message: fmt.Sprintf("found %s where %s belongs", other.Value, goKind(other.Type)),
		}
	}
	return &Error{Code: CodeSyntax, Line: 1, Column: 1, Message: err.Error()}
}

// pointerAt is the pointer of the value that holds a byte. The decoder's own path
// has no indexes, or other ones in another version of Go.
func pointerAt(data []byte, offset int) string {
	w := newWalker(data)
	for {
		token, err := w.dec.Token()
		if err != nil {
			return ""
		}
		if int(w.dec.InputOffset()) >= offset {
			return w.pointer()
		}
		_ = w.step(token) // only the place is wanted
	}
}

// goKind names a Go type in the words of JSON.
func goKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

// diagnose explains why data is not the canonical form of the plan that it
// decodes to. A mistake that changes the meaning is reported before one of form,
// and a place is always given.
func diagnose(data, want []byte) error {
	if e := newWalker(data).run(); e != nil {
		return e
	}
	at := firstDifferentByte(data, want)
	line, col := place(data, at)
	e := &Error{
		Code: CodeNotCanonical, Line: line, Column: col,
		Message: fmt.Sprintf("not the canonical bytes: found %s", excerpt(data, at)),
		Hint:    "expected " + excerpt(want, at) + "; compile the plan again instead of editing it",
	}
	if bytes.IndexByte(data, '\r') >= 0 {
		e.Message, e.Hint = "not the canonical bytes: the file has carriage returns", "lines end with LF; check that no tool converts line endings"
	}
	return e
}

// firstDifferentByte returns the first offset at which two texts differ.
func firstDifferentByte(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// excerpt quotes the rest of a line, without its indentation and not too long.
func excerpt(text []byte, at int) string {
	const most = 40
	rest := text[min(at, len(text)):]
	if len(rest) == 0 {
		return "the end of the file"
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if len(line) == 0 {
		return "a line break"
	}
	if len(line) > most {
		return strconv.Quote(string(line[:most])) + "..."
	}
	return strconv.Quote(string(line))
}

// frame is an object or a list that the walker is inside of.
type frame struct {
	typ   reflect.Type // what the container decodes into
	key   string       // of the member at hand
	index int          // of the element at hand
	seen  map[string]bool
	value bool // an object's next token is a value
	list  bool
}

// walker reads the tokens of a document beside the Go types that they decode
// into, and stops at the first thing that encoding/json forgives.
type walker struct {
	data  []byte
	dec   *json.Decoder
	stack []frame
	start int
}

func newWalker(data []byte) *walker {
	return &walker{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
}

// run returns nil when the document has no unknown, repeated or null member.
func (w *walker) run() *Error {
	for {
		w.start = w.tokenStart(int(w.dec.InputOffset()))
		token, err := w.dec.Token()
		if err != nil {
			return nil // the end; the syntax was checked before
		}
		if e := w.step(token); e != nil {
			return e
		}
		if len(w.stack) == 0 {
			return nil
		}
	}
}

// tokenStart skips what separates tokens.
func (w *walker) tokenStart(i int) int {
	for i < len(w.data) && bytes.IndexByte([]byte(" \t\r\n,:"), w.data[i]) >= 0 {
		i++
	}
	return i
}

func (w *walker) step(token json.Token) *Error {
	if d, ok := token.(json.Delim); ok {
		switch d {
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			w.next()
		default:
			w.stack = append(w.stack, frame{typ: w.here(), seen: make(map[string]bool), list: d == '['})
		}
		return nil
	}
	if f := w.top(); f != nil && !f.list && !f.value {
		return w.member(f, token.(string))
	}
	var e *Error
	if token == nil {
		e = w.fail(CodeType, "null has no meaning in a plan", "remove the field")
	}
	w.next()
	return e
}

// member checks a key and makes the walker expect its value.
func (w *walker) member(f *frame, key string) *Error {
	f.key, f.value = key, true
	if f.seen[key] {
		return w.fail(CodeRepeated, fmt.Sprintf("the key %q stands twice in one object", key), "")
	}
	f.seen[key] = true
	if f.typ == nil || f.typ.Kind() != reflect.Struct {
		return nil
	}
	names := fieldNames(f.typ)
	if slices.Contains(names, key) {
		return nil
	}
	hint := fmt.Sprintf("known here: %q", names)
	for _, name := range names {
		if strings.EqualFold(name, key) {
			hint = fmt.Sprintf("the field is %q", name)
		}
	}
	return w.fail(CodeField, fmt.Sprintf("unknown field %q", key), hint)
}

func (w *walker) top() *frame {
	if len(w.stack) == 0 {
		return nil
	}
	return &w.stack[len(w.stack)-1]
}

// next moves past a complete value.
func (w *walker) next() {
	if f := w.top(); f != nil {
		f.value = false
		f.index++
	}
}

// here is the Go type of the value that starts now, or nil when unknown.
func (w *walker) here() reflect.Type {
	f := w.top()
	switch {
	case f == nil:
		return reflect.TypeFor[Document]()
	case f.typ == nil:
		return nil
	}
	switch f.typ.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return deref(f.typ.Elem())
	case reflect.Struct:
		for i := range f.typ.NumField() {
			if field := f.typ.Field(i); jsonName(field) == f.key {
				return deref(field.Type)
			}
		}
	}
	return nil
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = jsonName(t.Field(i))
	}
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func (w *walker) fail(code, message, hint string) *Error {
	line, col := place(w.data, w.start)
	return &Error{Code: code, Pointer: w.pointer(), Line: line, Column: col, Message: message, Hint: hint}
}

// pointer is where the walker is.
func (w *walker) pointer() string {
	var pointer strings.Builder
	for _, f := range w.stack {
		step := f.key
		if f.list {
			step = strconv.Itoa(f.index)
		}
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return pointer.String()
}
