package ordered_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"shunt/runtime/tokens/ordered"
)

// events writes down everything that a reader meets.
func events(r *ordered.Reader, b *strings.Builder) error {
	k, err := r.Peek()
	if err != nil {
		return err
	}
	switch k {
	case ordered.String:
		s, err := r.String()
		b.WriteString("s:" + s + " ")
		return err
	case ordered.Number:
		s, err := r.Number()
		b.WriteString("n:" + s + " ")
		return err
	case ordered.Object:
		b.WriteString("{ ")
		err := r.Object(func(key string) error {
			b.WriteString(key + "= ")
			return events(r, b)
		})
		b.WriteString("} ")
		return err
	case ordered.Array:
		b.WriteString("[ ")
		err := r.Array(func(int) error { return events(r, b) })
		b.WriteString("] ")
		return err
	}
	b.WriteString(k.String() + " ")
	return r.Skip()
}

func TestReader(t *testing.T) {
	f := func(doc, want string) {
		t.Helper()
		var b strings.Builder
		r := ordered.NewReader(doc)
		err := events(r, &b)
		if err == nil {
			err = r.Done()
		}
		if err != nil {
			b.Reset()
			b.WriteString(err.Error())
		}
		if got := strings.TrimSpace(b.String()); got != want {
			t.Errorf("%s\n got %s\nwant %s", doc, got, want)
		}
	}
	f(`{"b":1,"a":[true,null,"x"],"b":-2.5e+10}`, "{ b= n:1 a= [ a boolean null s:x ] b= n:-2.5e+10 }")
	f(`"\u00e9\ud83d\ude00\n\/"`, "s:é😀\n/")
	f(` [ ] `, "[ ]")
	f(`{"a" 1}`, "JSON at byte 5: want a colon")
	f(`[1 2]`, `JSON at byte 3: want a comma or ']'`)
	f(`[1,]`, `JSON at byte 3: unexpected ']'`)
	f(`{"a":1,}`, `JSON at byte 7: unexpected '}'`)
	f(`"\ud83d"`, "JSON at byte 7: half of a surrogate pair")
	f(`"\ud83dx"`, "JSON at byte 7: half of a surrogate pair")
	f(`"\x"`, `JSON at byte 1: unknown escape \x`)
	f(`"a`, "JSON at byte 2: string without an end")
	f("\"a\nb\"", "JSON at byte 2: control character in a string")
	f(`01`, "JSON at byte 2: a number starts with 0")
	f(`1.`, "JSON at byte 2: want a digit after the point")
	f(`1e`, "JSON at byte 2: want a digit in the exponent")
	f(`nul`, "JSON at byte 0: want null")
	f(`1 2`, "JSON at byte 2: text after the end of the document")
	f(``, "JSON at byte 0: want a value")
	f(strings.Repeat("[", 300), "JSON at byte 256: nested deeper than 256")
}

// TestLimit counts elements and members wherever they are, skipped ones too.
func TestLimit(t *testing.T) {
	f := func(doc string, most int, want bool) {
		t.Helper()
		r := ordered.NewReader(doc)
		r.Limit(most)
		if err := r.Skip(); errors.Is(err, ordered.ErrTooMany) != want {
			t.Errorf("%s with %d: %v", doc, most, err)
		}
	}
	f(`[[1],{"a":2}]`, 4, false)
	f(`[[1],{"a":2}]`, 3, true)
	f(`[[],[],{},1]`, 4, false)
	f(`[[],[],{},1]`, 3, true)
	f(`[1,2,3]`, 0, false)
}

// FuzzReader compares with encoding/json which documents are taken.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,-3e7,"x\u00e9\ud83d\ude00",true,false,null]}`, `[[],{}]`, `"\u12`, `-`, `{"a":}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		r := ordered.NewReader(doc)
		err := r.Skip()
		if err == nil {
			err = r.Done()
		}
		valid := json.Valid([]byte(doc))
		if err == nil && !valid {
			t.Fatalf("%q is taken", doc)
		}
		if err != nil && valid && utf8.ValidString(doc) && !strings.Contains(err.Error(), "surrogate") && !strings.Contains(err.Error(), "nested") {
			t.Fatalf("%q is refused: %v", doc, err)
		}
	})
}
