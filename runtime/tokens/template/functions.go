package template

import (
	"fmt"
	"strings"
	"time"
)

// functionNamed returns a function that templates can call by name, or nil.
func functionNamed(name string) run {
	switch name {
	case "range":
		return rangeOf
	case "namespace":
		return func(_ *state, a *args) (Value, error) { return dictOf(a, namespace) }
	case "dict":
		return func(_ *state, a *args) (Value, error) { return dictOf(a, mapping) }
	case "raise_exception":
		return func(_ *state, a *args) (Value, error) {
			p, err := a.need(1, "message")
			if err != nil {
				return Value{}, err
			}
			s, err := p[0].print()
			if err != nil {
				return Value{}, err
			}
			return Value{}, &RenderError{Kind: Raised, Text: s}
		}
	case "strftime_now":
		return func(st *state, a *args) (Value, error) {
			p, err := a.texts("format")
			if err != nil {
				return Value{}, err
			}
			if st.now.IsZero() {
				return Value{}, unsupported("strftime_now without a clock")
			}
			s, err := strftime(st.now, p[0].str)
			return String(s), err
		}
	}
	return nil
}

// rangeOf is range. It is written out as a list, which the limit of the sandbox
// keeps short.
func rangeOf(st *state, a *args) (Value, error) {
	p, err := a.need(1, "start", "stop", "step")
	if err != nil {
		return Value{}, err
	}
	from, to, step := int64(0), p[0].num, int64(1)
	if p[1].kind != absent {
		from, to = p[0].num, p[1].num
	}
	if p[2].kind != absent {
		step = p[2].num
	}
	for _, v := range p {
		if v.kind != absent && !v.whole() {
			return Value{}, failed("range takes integers, not %s", v.kind)
		}
	}
	if step == 0 {
		return Value{}, failed("range with step zero")
	}
	const sandbox = 100_000 // the sandbox of Jinja refuses more, too
	var items []Value
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(items) == sandbox {
			return Value{}, failed("range of more than %d", sandbox)
		}
		items = append(items, Int(i))
	}
	return st.list(view, items)
}

// dictOf makes a dict or namespace of the arguments with names, after those of a
// dict that may come first.
func dictOf(a *args, k kind) (Value, error) {
	d := new(Dict)
	positional := len(a.values) - len(a.names)
	switch {
	case positional > 1:
		return Value{}, failed("%s takes one argument without a name", a.of)
	case positional == 1 && a.values[0].kind != mapping:
		return Value{}, unsupported("%s of %s", a.of, a.values[0].kind)
	case positional == 1:
		d = a.values[0].dict.Clone()
	}
	for i, n := range a.names {
		if a.values[positional+i].kind == namespace {
			return Value{}, unsupported("a namespace in a %s", k)
		}
		d.Set(n, a.values[positional+i])
	}
	return Value{kind: k, dict: d}, nil
}

// strftime writes a time as Python does in the C locale.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i == len(format) {
			return "", unsupported("a %% at the end of a time format")
		}
		switch format[i] {
		case 'Y':
			fmt.Fprintf(&b, "%d", t.Year())
		case 'j':
			fmt.Fprintf(&b, "%03d", t.YearDay())
		case '%':
			b.WriteByte('%')
		default:
			layout := timeLayout(format[i])
			if layout == "" {
				return "", unsupported("%%%c in a time format", format[i])
			}
			b.WriteString(t.Format(layout))
		}
	}
	return b.String(), nil
}

// timeLayout is the layout of Go for a directive of strftime, "" if there is none.
func timeLayout(directive byte) string {
	switch directive {
	case 'm':
		return "01"
	case 'd':
		return "02"
	case 'b', 'h':
		return "Jan"
	case 'B':
		return "January"
	case 'a':
		return "Mon"
	case 'A':
		return "Monday"
	case 'H':
		return "15"
	case 'I':
		return "03"
	case 'M':
		return "04"
	case 'S':
		return "05"
	case 'p':
		return "PM"
	case 'y':
		return "06"
	case 'F':
		return "2006-01-02"
	case 'T':
		return "15:04:05"
	case 'D':
		return "01/02/06"
	}
	return ""
}
