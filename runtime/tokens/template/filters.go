package template

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// filter is what stands behind | in a template.
type filter func(st *state, v Value, a *args) (Value, error)

// filterNamed returns a filter, or nil.
func filterNamed(name string) filter {
	switch name {
	case "tojson":
		return toJSON
	case "trim":
		return func(st *state, v Value, a *args) (Value, error) {
			p, s, err := operand(v, a, 0, "chars")
			if err == nil {
				s, err = strip(s, p[0], true, true)
			}
			return finish(st, s, err)
		}
	case "upper":
		return onText(upper)
	case "lower":
		return onText(lower)
	case "capitalize":
		return onText(capitalize)
	case "title":
		return onText(titleFilter)
	case "string", "safe":
		return onText(func(s string) (string, error) { return s, nil })
	case "replace":
		return func(st *state, v Value, a *args) (Value, error) {
			p, s, err := operand(v, a, 2, "old", "new", "count")
			if err != nil {
				return Value{}, err
			}
			return replace(st, s, p[0], p[1], p[2])
		}
	case "indent":
		return indentFilter
	case "default", "d":
		return func(_ *state, v Value, a *args) (Value, error) {
			p, err := a.need(0, "default_value", "boolean")
			if err != nil || v.kind != undefined && (!p[1].Truth() || v.Truth()) {
				return v, err
			}
			if p[0].kind == absent {
				return String(""), nil
			}
			return p[0], nil
		}
	case "int", "float", "abs", "round":
		return func(_ *state, v Value, a *args) (Value, error) { return numberFilter(name, v, a) }
	}
	return listFilter(name)
}

// listFilter returns a filter on sequences, or nil.
func listFilter(name string) filter {
	switch name {
	case "length", "count":
		return func(_ *state, v Value, a *args) (Value, error) {
			if _, err := a.need(0); err != nil {
				return v, err
			}
			n, err := length(v)
			return Int(int64(n)), err
		}
	case "first", "last":
		return func(_ *state, v Value, a *args) (Value, error) {
			if _, err := a.need(0); err != nil {
				return v, err
			}
			items, err := iterate(v)
			switch {
			case err != nil || len(items) == 0:
				return undefinedOf(""), err
			case name == "first":
				return items[0], nil
			}
			return items[len(items)-1], nil
		}
	case "list":
		return func(st *state, v Value, a *args) (Value, error) {
			if _, err := a.need(0); err != nil {
				return v, err
			}
			items, err := iterate(v)
			if err != nil {
				return v, err
			}
			return st.list(plainList, items)
		}
	case "reverse":
		return reverse
	case "join":
		return joinFilter
	case "items":
		return itemsFilter
	case "dictsort":
		return dictSort
	case "sort":
		return sortFilter
	case "unique":
		return uniqueFilter
	case "min", "max", "sum":
		return func(st *state, v Value, a *args) (Value, error) { return foldFilter(st, name, v, a) }
	case "map":
		return mapFilter
	case "select", "reject", "selectattr", "rejectattr":
		return func(st *state, v Value, a *args) (Value, error) { return selectFilter(st, name, v, a) }
	}
	return nil
}

// operand binds the arguments and returns the text of what a filter is put on.
func operand(v Value, a *args, n int, params ...string) ([]Value, string, error) {
	p, err := a.need(n, params...)
	if err != nil {
		return nil, "", err
	}
	s, err := v.print()
	return p, s, err
}

// finish makes a value of a text unless there was an error.
func finish(st *state, s string, err error) (Value, error) {
	if err != nil {
		return Value{}, err
	}
	return st.made(s)
}

// onText makes a filter of a function on texts. Filters, unlike methods, take any
// value and use the text that it prints.
func onText(f func(string) (string, error)) filter {
	return func(st *state, v Value, a *args) (Value, error) {
		_, s, err := operand(v, a, 0)
		if err == nil {
			s, err = f(s)
		}
		return finish(st, s, err)
	}
}

// length is Python's len, with 0 for what is undefined.
func length(v Value) (int, error) {
	switch {
	case v.kind == undefined:
		return 0, nil
	case v.kind == text:
		return runes(v.str), nil
	case v.kind == sequence && v.list.form != generator:
		return len(v.list.items), nil
	case v.kind == mapping:
		return len(v.dict.keys), nil
	}
	return 0, failed("%s has no length", v.kind)
}

// toJSON is the filter of Hugging Face, not that of Jinja: nothing is escaped
// for HTML and keys keep their order.
func toJSON(st *state, v Value, a *args) (Value, error) {
	p, err := a.need(0, "ensure_ascii", "indent", "separators", "sort_keys")
	if err != nil {
		return v, err
	}
	s := jsonStyle{item: ", ", key: ": ", ascii: p[0].Truth(), sorted: p[3].Truth()}
	switch {
	case p[1].kind == absent, p[1].kind == none:
	case p[1].kind == text:
		s.pretty, s.indent, s.item = true, p[1].str, ","
	case p[1].whole():
		const most = 64
		s.pretty, s.item = true, ","
		s.indent = strings.Repeat(" ", int(max(0, min(p[1].num, most))))
	default:
		return v, failed("tojson with an indent of %s", p[1].kind)
	}
	if sep := p[2]; sep.kind != absent && sep.kind != none {
		if sep.kind != sequence || len(sep.list.items) != 2 || sep.list.items[0].kind != text || sep.list.items[1].kind != text {
			return v, failed("tojson takes two strings as separators")
		}
		s.item, s.key = sep.list.items[0].str, sep.list.items[1].str
	}
	var b strings.Builder
	if err := v.json(&b, &s, 0); err != nil {
		return v, err
	}
	return st.made(b.String())
}

// indentFilter takes the indentation as a number of blanks or as a text. The first
// line stays as it is unless first is set, and empty lines unless blank is.
func indentFilter(st *state, v Value, a *args) (Value, error) {
	p, s, err := operand(v, a, 0, "width", "first", "blank")
	if err != nil {
		return v, err
	}
	by := "    "
	const most = 256
	switch {
	case p[0].kind == absent:
	case p[0].kind == text:
		by = p[0].str
	case p[0].whole():
		by = strings.Repeat(" ", int(max(0, min(p[0].num, most))))
	default:
		return v, failed("indent by %s", p[0].kind)
	}
	if err := st.charge((strings.Count(s, "\n") + 1) * (len(by)/bytesPerStep + 1)); err != nil {
		return v, err
	}
	return st.made(indent(s, by, p[1].Truth(), p[2].Truth()))
}

// numberFilter is int, float, abs and round. What is no number becomes the default,
// 0 if there is none.
func numberFilter(name string, v Value, a *args) (Value, error) {
	switch name {
	case "abs":
		_, err := a.need(0)
		switch {
		case err != nil:
			return v, err
		case v.kind == float:
			return floatOf(math.Abs(v.float())), nil
		case v.whole() && v.num < 0:
			return integers("-", 0, v.num)
		case v.whole():
			return Int(v.num), nil
		}
		return v, failed("abs of %s", v.kind)
	case "round":
		return round(v, a)
	case "float":
		p, err := a.need(0, "default")
		switch {
		case err != nil:
			return v, err
		case v.numeric():
			return floatOf(v.float()), nil
		case v.kind == text:
			if f, err := strconv.ParseFloat(strings.TrimFunc(v.str, isSpace), 64); err == nil {
				return floatOf(f), nil
			}
		}
		return orZero(p[0], floatOf(0)), nil
	}
	p, err := a.need(0, "default")
	switch {
	case err != nil:
		return v, err
	case v.whole():
		return Int(v.num), nil
	case v.kind == float && math.Abs(v.float()) < 1<<53:
		return Int(int64(v.float())), nil
	case v.kind == text:
		s := strings.TrimFunc(v.str, isSpace)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return Int(n), nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<53 {
			return Int(int64(f)), nil
		}
	case v.kind == float, v.kind == big:
		return v, unsupported("an integer beyond 64 bits")
	}
	return orZero(p[0], Int(0)), nil
}

// orZero replaces an argument that was not given.
func orZero(v, zero Value) Value {
	if v.kind == absent {
		return zero
	}
	return v
}

// round is the filter, which gives a float; halves go to the even digit.
func round(v Value, a *args) (Value, error) {
	p, err := a.need(0, "precision", "method")
	if err != nil {
		return v, err
	}
	if !v.numeric() || p[0].kind != absent && !p[0].whole() {
		return v, failed("round of %s", v.kind)
	}
	const most = 15
	if p[0].num < 0 || p[0].num > most {
		return v, unsupported("round to %d digits", p[0].num)
	}
	f := v.float()
	scale := math.Pow10(int(p[0].num))
	switch {
	case p[1].kind == absent, p[1].kind == text && p[1].str == "common":
		r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(p[0].num), 64), 64)
		return floatOf(r), err
	case p[1].kind == text && p[1].str == "ceil":
		return floatOf(math.Ceil(f*scale) / scale), nil
	case p[1].kind == text && p[1].str == "floor":
		return floatOf(math.Floor(f*scale) / scale), nil
	}
	return v, failed("round by an unknown method")
}

// reverse gives a text for a text, and for everything else a generator.
func reverse(st *state, v Value, a *args) (Value, error) {
	if _, err := a.need(0); err != nil {
		return v, err
	}
	if v.kind == text {
		r := []rune(v.str)
		slices.Reverse(r)
		return st.made(string(r))
	}
	items, err := iterate(v)
	if err != nil {
		return v, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return st.list(generator, items)
}

// attribute looks up a path such as function.name; a number is an index.
func attribute(v Value, path string) (Value, error) {
	for part := range strings.SplitSeq(path, ".") {
		if n, err := strconv.Atoi(part); err == nil && v.kind == sequence {
			if i, ok := index(int64(n), len(v.list.items)); ok && v.list.form != generator {
				v = v.list.items[i]
				continue
			}
			v = undefinedOf(part)
			continue
		}
		var err error
		// Filters look at items first, as x['name'] does.
		if v, err = v.member(part, false); err != nil {
			return v, err
		}
	}
	return v, nil
}

// keyOf returns what an optional attribute selects of a value.
func keyOf(v, path Value) (Value, error) {
	switch path.kind {
	case absent, none:
		return v, nil
	case text:
		return attribute(v, path.str)
	case integer:
		return attribute(v, strconv.FormatInt(path.num, 10))
	}
	return v, failed("an attribute of kind %s", path.kind)
}

// joinFilter prints each element, unlike the method join, which takes texts only.
func joinFilter(st *state, v Value, a *args) (Value, error) {
	p, err := a.need(0, "d", "attribute")
	if err != nil {
		return v, err
	}
	items, err := iterate(v)
	if err != nil {
		return v, err
	}
	sep, err := orZero(p[0], String("")).print()
	if err != nil {
		return v, err
	}
	if err := st.charge(len(items) * (1 + len(sep)/bytesPerStep)); err != nil {
		return v, err
	}
	parts := make([]string, len(items))
	for i, x := range items {
		if x, err = keyOf(x, p[1]); err != nil {
			return v, err
		}
		if parts[i], err = x.print(); err != nil {
			return v, err
		}
	}
	return st.made(strings.Join(parts, sep))
}

// itemsFilter is like the method items, but gives nothing for what is undefined.
func itemsFilter(st *state, v Value, a *args) (Value, error) {
	if v.kind == undefined {
		return st.list(generator, nil)
	}
	if v.kind != mapping {
		return v, failed("items of %s", v.kind)
	}
	out, err := dictMethod(v.dict, "items")(st, a)
	if err == nil {
		out.list.form = generator
	}
	return out, err
}

// ignoreCase returns what sorting without regard to case compares.
func ignoreCase(v Value, sensitive bool) (Value, error) {
	if v.kind != text || sensitive {
		return v, nil
	}
	s, err := lower(v.str)
	return String(s), err
}

// sortedBy sorts items by keys of the same length, stably.
func sortedBy(st *state, items, keys []Value, descending bool) ([]Value, error) {
	if err := st.charge(len(items)); err != nil {
		return nil, err
	}
	positions := make([]int, len(items))
	for i := range positions {
		positions[i] = i
	}
	var failure error
	slices.SortStableFunc(positions, func(x, y int) int {
		c, err := order(keys[x], keys[y])
		if err != nil && failure == nil {
			failure = err
		}
		if descending {
			c = -c
		}
		return c
	})
	out := make([]Value, len(items))
	for i, k := range positions {
		out[i] = items[k]
	}
	return out, failure
}

// sortFilter is stable and ignores case unless told otherwise.
func sortFilter(st *state, v Value, a *args) (Value, error) {
	p, err := a.need(0, "reverse", "case_sensitive", "attribute")
	if err != nil {
		return v, err
	}
	items, err := iterate(v)
	if err != nil {
		return v, err
	}
	keys := make([]Value, len(items))
	for i, x := range items {
		if p[2].kind == text && strings.Contains(p[2].str, ",") {
			return v, unsupported("sorting by several attributes")
		}
		if x, err = keyOf(x, p[2]); err == nil {
			keys[i], err = ignoreCase(x, p[1].Truth())
		}
		if err != nil {
			return v, err
		}
	}
	if items, err = sortedBy(st, items, keys, p[0].Truth()); err != nil {
		return v, err
	}
	return st.list(plainList, items)
}

// dictSort gives pairs, sorted by key or by value.
func dictSort(st *state, v Value, a *args) (Value, error) {
	p, err := a.need(0, "case_sensitive", "by", "reverse")
	if err != nil {
		return v, err
	}
	if v.kind != mapping {
		return v, failed("dictsort of %s", v.kind)
	}
	byValue := p[1].kind == text && p[1].str == "value"
	items, keys := make([]Value, v.dict.Len()), make([]Value, v.dict.Len())
	for i, k := range v.dict.keys {
		items[i] = listOf(tuple, []Value{String(k), v.dict.values[i]})
		by := String(k)
		if byValue {
			by = v.dict.values[i]
		}
		if keys[i], err = ignoreCase(by, p[0].Truth()); err != nil {
			return v, err
		}
	}
	if items, err = sortedBy(st, items, keys, p[2].Truth()); err != nil {
		return v, err
	}
	return st.list(plainList, items)
}

// uniqueFilter keeps the first of equal elements. It compares each with all that
// were kept, and charges for that.
func uniqueFilter(st *state, v Value, a *args) (Value, error) {
	p, err := a.need(0, "case_sensitive", "attribute")
	if err != nil {
		return v, err
	}
	items, err := iterate(v)
	if err != nil {
		return v, err
	}
	var kept, seen []Value
	for _, x := range items {
		key, err := keyOf(x, p[1])
		if err == nil {
			key, err = ignoreCase(key, p[0].Truth())
		}
		if err == nil {
			err = st.charge(len(seen) + 1)
		}
		if err != nil {
			return v, err
		}
		if !slices.ContainsFunc(seen, func(s Value) bool { return equal(s, key) }) {
			seen, kept = append(seen, key), append(kept, x)
		}
	}
	return st.list(generator, kept)
}

// foldFilter is min, max and sum.
func foldFilter(st *state, name string, v Value, a *args) (Value, error) {
	params := []string{"attribute", "start"}
	if name != "sum" {
		params = []string{"case_sensitive", "attribute"}
	}
	p, err := a.need(0, params...)
	if err != nil {
		return v, err
	}
	items, err := iterate(v)
	if err != nil {
		return v, err
	}
	if name == "sum" {
		total := orZero(p[1], Int(0))
		for _, x := range items {
			if x, err = keyOf(x, p[0]); err == nil {
				total, err = calculate(st, "+", total, x)
			}
			if err != nil {
				return v, err
			}
		}
		return total, nil
	}
	best, bestKey := undefinedOf(""), Value{}
	for i, x := range items {
		key, err := keyOf(x, p[1])
		if err == nil {
			key, err = ignoreCase(key, p[0].Truth())
		}
		c := 0
		if err == nil && i > 0 {
			c, err = order(key, bestKey)
		}
		if err != nil {
			return v, err
		}
		if i == 0 || name == "min" && c < 0 || name == "max" && c > 0 && c != unordered {
			best, bestKey = x, key
		}
	}
	return best, nil
}

// mapFilter looks up an attribute of each item, or applies a filter to each.
func mapFilter(st *state, v Value, a *args) (Value, error) {
	var each func(Value) (Value, error)
	positional := len(a.values) - len(a.names)
	if positional == 0 {
		p, err := a.need(1, "attribute", "default")
		if err != nil {
			return v, err
		}
		each = func(x Value) (Value, error) {
			y, err := keyOf(x, p[0])
			if err == nil && y.kind == undefined && p[1].kind != absent {
				y = p[1]
			}
			return y, err
		}
	} else {
		f := filterNamed(a.values[0].str)
		rest := &args{of: a.values[0].str, values: a.values[1:], names: a.names}
		each = func(x Value) (Value, error) { return f(st, x, rest) }
	}
	items, err := iterate(v)
	if err != nil {
		return v, err
	}
	out := make([]Value, len(items))
	for i, x := range items {
		if err = st.charge(1); err == nil {
			out[i], err = each(x)
		}
		if err != nil {
			return v, err
		}
	}
	return st.list(generator, out)
}

// selectFilter keeps or drops the items that pass a test, or whose attribute
// does.
func selectFilter(st *state, name string, v Value, a *args) (Value, error) {
	keep := strings.HasPrefix(name, "select")
	rest := &args{of: name, values: a.values}
	path := Value{}
	if strings.HasSuffix(name, "attr") {
		if len(rest.values) == 0 || len(a.names) > 0 {
			return v, failed("%s needs the name of an attribute", name)
		}
		path, rest.values = rest.values[0], rest.values[1:]
	}
	pass := func(x Value, _ *args) (bool, error) { return x.Truth(), nil }
	if len(rest.values) > 0 {
		pass = testNamed(rest.values[0].str)
		rest.of, rest.values = rest.values[0].str, rest.values[1:]
	}
	items, err := iterate(v)
	if err != nil {
		return v, err
	}
	var out []Value
	for _, x := range items {
		key, err := keyOf(x, path)
		ok := false
		if err == nil {
			ok, err = pass(key, rest)
		}
		if err == nil {
			err = st.charge(1)
		}
		if err != nil {
			return v, err
		}
		if ok == keep {
			out = append(out, x)
		}
	}
	return st.list(generator, out)
}
