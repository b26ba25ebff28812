package template

import "unicode/utf8"

func (l literal) eval(*state, *scope) (Value, error) { return l.v, nil }

// A variable hides a function of the same name. A name that nobody set is undefined,
// which is an error only when it is used in certain ways.
func (n name) eval(_ *state, sc *scope) (Value, error) {
	if v, ok := sc.get(n.id); ok {
		return v, nil
	}
	if f := functionNamed(n.id); f != nil {
		return Value{kind: function, call: &callable{name: n.id, run: f}}, nil
	}
	return undefinedOf(n.id), nil
}

// evalAll evaluates from left to right, as Python does.
func evalAll(st *state, sc *scope, xs []expr) ([]Value, error) {
	if len(xs) == 0 {
		return nil, nil
	}
	values := make([]Value, len(xs))
	for i, x := range xs {
		var err error
		if values[i], err = x.eval(st, sc); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// A literal list is new each time: a generator made of it can be used up.
func (l listExpr) eval(st *state, sc *scope) (Value, error) {
	items, err := evalAll(st, sc, l.items)
	if err != nil {
		return Value{}, err
	}
	return st.list(l.form, items)
}

// list charges for a list and bounds its depth.
func (st *state) list(f form, items []Value) (Value, error) {
	v := listOf(f, items)
	for _, i := range items {
		if i.kind == namespace {
			return v, unsupported("a namespace in a list")
		}
	}
	return v, st.nested(v, len(items))
}

// maxDepth bounds how deep lists and dicts are nested in each other.
const maxDepth = 512

// nested charges for n elements and refuses a value that is nested too deep.
func (st *state) nested(v Value, n int) error {
	if v.depth() > maxDepth {
		return &RenderError{Kind: TooMuch, Text: "lists are nested too deep"}
	}
	return st.charge(n)
}

// Keys other than strings are refused: the values of JSON have none, and Python
// would keep 1 and True apart from "1".
func (d dictExpr) eval(st *state, sc *scope) (Value, error) {
	dict := new(Dict)
	for i, k := range d.keys {
		key, err := k.eval(st, sc)
		if err != nil {
			return Value{}, err
		}
		if key.kind != text {
			return Value{}, unsupported("a dict with a key of kind %s", key.kind)
		}
		v, err := d.values[i].eval(st, sc)
		if err != nil {
			return Value{}, err
		}
		if v.kind == namespace {
			return Value{}, unsupported("a namespace in a dict")
		}
		dict.Set(key.str, v)
	}
	v := Object(dict)
	return v, st.nested(v, len(d.keys))
}

// An attribute that is missing is undefined; one of what is undefined is an error.
func (m member) eval(st *state, sc *scope) (Value, error) {
	of, err := m.of.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	return of.member(m.name, m.dotted)
}

// member looks up an attribute or item by name. A dotted name finds the methods
// of a dict before its keys, and a bracketed one the other way round.
func (v Value) member(name string, dotted bool) (Value, error) {
	method := Value{kind: undefined, str: name}
	if f := methodOf(v, name); f != nil {
		method = Value{kind: function, call: &callable{name: name, of: v, run: f}}
	}
	switch v.kind {
	case undefined:
		return Value{}, failed("%s is undefined", v.undefinedName())
	case namespace, mapping:
		if dotted && (method.kind == function || v.kind == mapping && isMutator(name)) {
			return method, nil
		}
		if found, ok := v.dict.Get(name); ok {
			return found, nil
		}
	}
	return method, nil
}

// undefinedName is how a message calls what is undefined.
func (v Value) undefinedName() string {
	if v.str == "" {
		return "a value"
	}
	return "'" + v.str + "'"
}

// An index out of range is undefined, since Jinja catches the error of Python.
func (i item) eval(st *state, sc *scope) (Value, error) {
	of, err := i.of.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	key, err := i.key.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	switch {
	case key.kind == text:
		return of.member(key.str, false)
	case of.kind == undefined:
		return Value{}, failed("%s is undefined", of.undefinedName())
	case of.kind == sequence && key.whole():
		if of.list.form == generator {
			return undefinedOf(""), nil
		}
		if n, ok := index(key.num, len(of.list.items)); ok {
			return of.list.items[n], nil
		}
	case of.kind == text && key.whole():
		return textAt(of.str, key.num), nil
	}
	return undefinedOf(""), nil
}

// index resolves an index that may count from the end.
func index(i int64, n int) (int, bool) {
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

// textAt returns the code point number i of a text.
func textAt(s string, i int64) Value {
	n, ok := index(i, runes(s))
	if !ok {
		return undefinedOf("")
	}
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	_, size := utf8.DecodeRuneInString(s)
	return String(s[:size])
}

// A slice of a text counts code points. A slice of anything else than a text, list
// or tuple is undefined, as an item is.
func (s slice) eval(st *state, sc *scope) (Value, error) {
	of, err := s.of.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	var bounds [3]Value
	for i, x := range []expr{s.from, s.to, s.step} {
		if x == nil {
			continue
		}
		v, err := x.eval(st, sc)
		if err != nil {
			return Value{}, err
		}
		switch {
		case v.whole():
			bounds[i] = v
		case v.kind != none:
			return Value{}, failed("a slice by %s", v.kind)
		}
	}
	if of.kind == undefined {
		return Value{}, failed("%s is undefined", of.undefinedName())
	}
	if bounds[2].kind != absent && bounds[2].num == 0 {
		return Value{}, failed("a slice with step zero")
	}
	switch {
	case of.kind == text:
		all := []rune(of.str)
		var out []rune
		for i := range sliced(bounds, len(all)) {
			out = append(out, all[i])
		}
		return st.made(string(out))
	case of.kind == sequence && of.list.form <= tuple:
		var out []Value
		for i := range sliced(bounds, len(of.list.items)) {
			out = append(out, of.list.items[i])
		}
		return st.list(of.list.form, out)
	}
	return undefinedOf(""), nil
}

// sliced yields the indexes that Python's slice takes of n elements.
func sliced(b [3]Value, n int) func(func(int) bool) {
	step := int64(1)
	if b[2].kind != absent {
		step = max(min(b[2].num, int64(n)+1), -int64(n)-1)
	}
	length := int64(n)
	low, high := int64(0), length
	if step < 0 {
		low, high = -1, length-1
	}
	clamp := func(v Value, unset int64) int64 {
		if v.kind == absent {
			return unset
		}
		i := v.num
		if i < 0 {
			i += length
		}
		return max(low, min(i, high))
	}
	from, to := clamp(b[0], low), clamp(b[1], high)
	if step < 0 {
		from, to = clamp(b[0], high), clamp(b[1], low)
	}
	return func(yield func(int) bool) {
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			if !yield(int(i)) {
				return
			}
		}
	}
}

func (n not) eval(st *state, sc *scope) (Value, error) {
	v, err := n.x.eval(st, sc)
	return Bool(!v.Truth()), err
}

// The sign is a subtraction, which also refuses the one integer that has no
// opposite.
func (n negate) eval(st *state, sc *scope) (Value, error) {
	v, err := n.x.eval(st, sc)
	if err != nil {
		return v, err
	}
	return calculate(st, "-", Int(0), v)
}

// The sign makes a boolean an integer, as in Python.
func (p plus) eval(st *state, sc *scope) (Value, error) {
	v, err := p.x.eval(st, sc)
	if err != nil {
		return v, err
	}
	if !v.numeric() {
		return v, failed("a sign before %s", v.kind)
	}
	return calculate(st, "+", Int(0), v)
}

// The result is one of the operands, not a boolean.
func (l logic) eval(st *state, sc *scope) (Value, error) {
	v, err := l.left.eval(st, sc)
	if err != nil || v.Truth() == l.or {
		return v, err
	}
	return l.right.eval(st, sc)
}

// Both sides are evaluated before either is looked at.
func (b binary) eval(st *state, sc *scope) (Value, error) {
	left, err := b.left.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	right, err := b.right.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	return calculate(st, b.op, left, right)
}

// A chain stops at the first comparison that does not hold; what stands behind it
// is not evaluated.
func (c compare) eval(st *state, sc *scope) (Value, error) {
	left, err := c.first.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	for i, op := range c.ops {
		right, err := c.rest[i].eval(st, sc)
		if err != nil {
			return Value{}, err
		}
		ok, err := holds(op, left, right)
		if !ok || err != nil {
			return Bool(false), err
		}
		left = right
	}
	return Bool(true), nil
}

// Without an else the value is undefined, which prints nothing.
func (c choice) eval(st *state, sc *scope) (Value, error) {
	ok, err := c.test.eval(st, sc)
	switch {
	case err != nil:
		return Value{}, err
	case ok.Truth():
		return c.x.eval(st, sc)
	case c.other == nil:
		return undefinedOf(""), nil
	}
	return c.other.eval(st, sc)
}

func (c *call) eval(st *state, sc *scope) (Value, error) { return c.invoke(st, sc, Value{}) }

// invoke calls something, with the body of a call block if there is one.
func (c *call) invoke(st *state, sc *scope, caller Value) (Value, error) {
	f, err := c.of.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	a, err := c.args.eval(st, sc)
	if err != nil {
		return Value{}, err
	}
	if err := st.charge(1); err != nil {
		return Value{}, err
	}
	switch {
	case f.kind == undefined:
		return Value{}, failed("%s is undefined", f.undefinedName())
	case f.kind != function:
		return Value{}, failed("%s cannot be called", f.kind)
	case f.call.macro != nil:
		return f.call.macro.call(st, f.call.scope, a, caller)
	case caller.kind != absent:
		return Value{}, unsupported("a call block of %s", f.call.name)
	}
	a.of = f.call.name
	return f.call.run(st, a)
}

// The operand is evaluated before the arguments.
func (f *filtered) eval(st *state, sc *scope) (Value, error) {
	v, err := f.x.eval(st, sc)
	if err != nil {
		return v, err
	}
	return f.with(st, sc, v)
}

// apply runs a chain of filters, whose first has no operand, on a value.
func (f *filtered) apply(st *state, sc *scope, v Value) (Value, error) {
	if inner, ok := f.x.(*filtered); ok && inner != nil {
		var err error
		if v, err = inner.apply(st, sc, v); err != nil {
			return v, err
		}
	}
	return f.with(st, sc, v)
}

// with applies the filter itself to a value.
func (f *filtered) with(st *state, sc *scope, v Value) (Value, error) {
	a, err := f.args.eval(st, sc)
	if err != nil {
		return v, err
	}
	a.of = f.name
	if err := st.charge(1); err != nil {
		return v, err
	}
	return f.run(st, v, a)
}

// A test of something undefined is no error: that is what tests are for.
func (t tested) eval(st *state, sc *scope) (Value, error) {
	v, err := t.x.eval(st, sc)
	if err != nil {
		return v, err
	}
	a, err := t.args.eval(st, sc)
	if err != nil {
		return v, err
	}
	a.of = t.name
	ok, err := t.run(v, a)
	return Bool(ok != t.not), err
}

// args are the arguments of one call.
type args struct {
	of     string // what is called, for messages
	values []Value
	names  []string // of the last values
}

// The values keep the order of the source; names belong to the last of them.
func (a arguments) eval(st *state, sc *scope) (*args, error) {
	values, err := evalAll(st, sc, a.values)
	return &args{values: values, names: a.names}, err
}

// bind arranges the arguments by the names of the parameters. Those not given
// have the kind absent.
func (a *args) bind(params ...string) ([]Value, error) {
	out := make([]Value, len(params))
	positional := len(a.values) - len(a.names)
	if positional > len(params) {
		return nil, failed("%s takes %d arguments, %d given", a.of, len(params), positional)
	}
	copy(out, a.values[:positional])
next:
	for i, n := range a.names {
		for j, p := range params {
			if p == n && out[j].kind == absent {
				out[j] = a.values[positional+i]
				continue next
			}
		}
		return nil, failed("%s takes no argument %q here", a.of, n)
	}
	return out, nil
}
