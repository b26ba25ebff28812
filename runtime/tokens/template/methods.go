package template

import (
	"slices"
	"strings"
	"unicode"
)

// run is what a function or method does.
type run func(st *state, a *args) (Value, error)

// isMethod reports whether a name that is called as a method is implemented for
// any value.
func isMethod(name string) bool {
	return textMethod("", name) != nil || dictMethod(new(Dict), name) != nil || listMethod(new(list), name) != nil
}

// isMutator reports whether Python's dict has a method of that name which the
// sandbox forbids: it hides a key of the same name.
func isMutator(name string) bool {
	return slices.Contains([]string{"clear", "copy", "fromkeys", "pop", "popitem", "setdefault", "update"}, name)
}

// methodOf returns the method of a value, or nil.
func methodOf(v Value, name string) run {
	switch v.kind {
	case text:
		return textMethod(v.str, name)
	case mapping:
		return dictMethod(v.dict, name)
	case sequence:
		return listMethod(v.list, name)
	}
	return nil
}

// listMethod returns a method of a list that does not change it.
func listMethod(l *list, name string) run {
	if l.form > tuple {
		return nil
	}
	switch name {
	case "count":
		return func(_ *state, a *args) (Value, error) {
			p, err := a.need(1, "value")
			n := int64(0)
			for _, v := range l.items {
				if err == nil && equal(v, p[0]) {
					n++
				}
			}
			return Int(n), err
		}
	case "index":
		return func(_ *state, a *args) (Value, error) {
			p, err := a.need(1, "value")
			if err != nil {
				return Value{}, err
			}
			i := slices.IndexFunc(l.items, func(v Value) bool { return equal(v, p[0]) })
			if i < 0 {
				return Value{}, failed("the value is not in the list")
			}
			return Int(int64(i)), nil
		}
	}
	return nil
}

// dictMethod returns a method of a dict that does not change it.
func dictMethod(d *Dict, name string) run {
	switch name {
	case "get":
		return func(_ *state, a *args) (Value, error) {
			p, err := a.need(1, "key", "default")
			if err != nil {
				return Value{}, err
			}
			if v, ok := d.Get(p[0].str); ok && p[0].kind == text {
				return v, nil
			}
			if p[1].kind == absent {
				return None(), nil
			}
			return p[1], nil
		}
	case "keys", "values", "items":
		return func(st *state, a *args) (Value, error) {
			if _, err := a.need(0); err != nil {
				return Value{}, err
			}
			items := make([]Value, len(d.keys))
			for i, k := range d.keys {
				switch name {
				case "keys":
					items[i] = String(k)
				case "values":
					items[i] = d.values[i]
				default:
					items[i] = listOf(tuple, []Value{String(k), d.values[i]})
				}
			}
			return st.list(view, items)
		}
	}
	return nil
}

// need binds the arguments and fails unless the first n are given.
func (a *args) need(n int, params ...string) ([]Value, error) {
	p, err := a.bind(params...)
	for i := range p {
		if err == nil && i < n && p[i].kind == absent {
			err = failed("%s needs the argument %q", a.of, params[i])
		}
	}
	return p, err
}

// texts is need for arguments that must be texts.
func (a *args) texts(params ...string) ([]Value, error) {
	p, err := a.need(len(params), params...)
	for i := range p {
		if err == nil && p[i].kind != text {
			err = failed("%s takes a string, not %s", a.of, p[i].kind)
		}
	}
	return p, err
}

// textMethod returns a method of a text.
func textMethod(s, name string) run {
	switch name {
	case "strip", "lstrip", "rstrip":
		return func(st *state, a *args) (Value, error) {
			p, err := a.need(0, "chars")
			if err != nil {
				return Value{}, err
			}
			out, err := strip(s, p[0], name != "rstrip", name != "lstrip")
			if err != nil {
				return Value{}, err
			}
			return st.made(out)
		}
	case "upper":
		return mapped(s, upper)
	case "lower":
		return mapped(s, lower)
	case "capitalize":
		return mapped(s, capitalize)
	case "title":
		return mapped(s, title)
	case "isdigit", "isalpha", "isalnum", "isspace":
		return func(_ *state, a *args) (Value, error) {
			_, err := a.need(0)
			return Bool(s != "" && strings.IndexFunc(s, func(r rune) bool { return !isOf(name, r) }) < 0), err
		}
	case "startswith", "endswith":
		return func(_ *state, a *args) (Value, error) { return affixed(s, a, name == "endswith") }
	case "find", "rfind", "count":
		return func(_ *state, a *args) (Value, error) { return located(s, a, name) }
	case "removeprefix", "removesuffix":
		return func(_ *state, a *args) (Value, error) {
			p, err := a.texts("fix")
			switch {
			case err != nil:
				return Value{}, err
			case name == "removeprefix":
				return String(strings.TrimPrefix(s, p[0].str)), nil
			}
			return String(strings.TrimSuffix(s, p[0].str)), nil
		}
	}
	return splitMethod(s, name)
}

// splitMethod returns a method that takes a text apart or puts one together.
func splitMethod(s, name string) run {
	switch name {
	case "split", "rsplit":
		return func(st *state, a *args) (Value, error) {
			p, err := a.need(0, "sep", "maxsplit")
			if err != nil {
				return Value{}, err
			}
			cut := split
			if name == "rsplit" {
				cut = rsplit
			}
			parts, err := cut(s, p[0], p[1])
			if err != nil {
				return Value{}, err
			}
			return textList(st, parts)
		}
	case "splitlines":
		return func(st *state, a *args) (Value, error) {
			p, err := a.need(0, "keepends")
			if err != nil {
				return Value{}, err
			}
			return textList(st, splitLines(s, p[0].Truth()))
		}
	case "partition", "rpartition":
		return func(_ *state, a *args) (Value, error) {
			p, err := a.texts("sep")
			if err != nil {
				return Value{}, err
			}
			return parted(s, p[0].str, name == "rpartition")
		}
	case "replace":
		return func(st *state, a *args) (Value, error) {
			p, err := a.need(2, "old", "new", "count")
			if err != nil {
				return Value{}, err
			}
			return replace(st, s, p[0], p[1], p[2])
		}
	case "join":
		return func(st *state, a *args) (Value, error) {
			p, err := a.need(1, "iterable")
			if err != nil {
				return Value{}, err
			}
			return joined(st, s, p[0])
		}
	}
	return nil
}

// mapped makes a method without arguments of a function on texts.
func mapped(s string, f func(string) (string, error)) run {
	return func(st *state, a *args) (Value, error) {
		if _, err := a.need(0); err != nil {
			return Value{}, err
		}
		out, err := f(s)
		if err != nil {
			return Value{}, err
		}
		return st.made(out)
	}
}

// isOf answers for one character what a method such as isdigit asks of all.
func isOf(name string, r rune) bool {
	switch name {
	case "isdigit":
		return unicode.Is(unicode.Nd, r) || strings.ContainsRune("²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", r)
	case "isalpha":
		return unicode.IsLetter(r)
	case "isspace":
		return isSpace(r)
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// affixed is startswith and endswith, which take one text or a tuple of them.
func affixed(s string, a *args, end bool) (Value, error) {
	p, err := a.need(1, "prefix")
	if err != nil {
		return Value{}, err
	}
	fixes := []Value{p[0]}
	if p[0].kind == sequence && p[0].list.form == tuple {
		fixes = p[0].list.items
	}
	for _, f := range fixes {
		if f.kind != text {
			return Value{}, failed("%s takes a string or a tuple of them, not %s", a.of, f.kind)
		}
		if !end && strings.HasPrefix(s, f.str) || end && strings.HasSuffix(s, f.str) {
			return Bool(true), nil
		}
	}
	return Bool(false), nil
}

// located finds or counts a part of a text, in code points.
func located(s string, a *args, name string) (Value, error) {
	p, err := a.texts("sub")
	if err != nil {
		return Value{}, err
	}
	i := 0
	switch name {
	case "count":
		return Int(int64(strings.Count(s, p[0].str))), nil
	case "find":
		i = strings.Index(s, p[0].str)
	default:
		i = strings.LastIndex(s, p[0].str)
	}
	if i < 0 {
		return Int(-1), nil
	}
	return Int(int64(runes(s[:i]))), nil
}

// parted is partition and rpartition: without the separator the text stands at the
// end that was searched last.
func parted(s, sep string, last bool) (Value, error) {
	if sep == "" {
		return Value{}, failed("partition by an empty separator")
	}
	i := strings.Index(s, sep)
	if last {
		i = strings.LastIndex(s, sep)
	}
	parts := []Value{String(s), String(""), String("")}
	switch {
	case i >= 0:
		parts = []Value{String(s[:i]), String(sep), String(s[i+len(sep):])}
	case last:
		slices.Reverse(parts)
	}
	return listOf(tuple, parts), nil
}

// joined is str.join, which takes texts only.
func joined(st *state, sep string, of Value) (Value, error) {
	items, err := iterate(of)
	if err != nil {
		return Value{}, err
	}
	if err := st.charge(len(items) * (1 + len(sep)/bytesPerStep)); err != nil {
		return Value{}, err
	}
	parts := make([]string, len(items))
	for i, v := range items {
		if v.kind != text {
			return Value{}, failed("join takes strings, not %s", v.kind)
		}
		parts[i] = v.str
	}
	return st.made(strings.Join(parts, sep))
}
