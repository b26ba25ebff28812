package template

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// calculate applies an arithmetic operator as Python does.
func calculate(st *state, op string, a, b Value) (Value, error) {
	switch {
	case op == "~":
		x, err := a.print()
		if err != nil {
			return Value{}, err
		}
		y, err := b.print()
		if err != nil {
			return Value{}, err
		}
		return st.made(x + y)
	case a.kind == undefined:
		return Value{}, failed("%s is undefined", a.undefinedName())
	case b.kind == undefined:
		return Value{}, failed("%s is undefined", b.undefinedName())
	case a.whole() && b.whole():
		return integers(op, a.num, b.num)
	case a.numeric() && b.numeric():
		return floats(op, a.float(), b.float())
	case a.kind == big || b.kind == big:
		return Value{}, unsupported("calculating with integers beyond 64 bits")
	case op == "+" && a.kind == text && b.kind == text:
		return st.made(a.str + b.str)
	case op == "+" && a.kind == sequence && b.kind == sequence && a.list.form == b.list.form && a.list.form <= tuple:
		return st.list(a.list.form, slices.Concat(a.list.items, b.list.items))
	case op == "*" && b.whole():
		return repeat(st, a, b.num)
	case op == "*" && a.whole():
		return repeat(st, b, a.num)
	case op == "%" && a.kind == text:
		return Value{}, unsupported("formatting with %%")
	}
	return Value{}, failed("%s %s %s cannot be calculated", a.kind, op, b.kind)
}

// repeat is * of a text or list. The size is checked before anything is made.
func repeat(st *state, v Value, n int64) (Value, error) {
	n = max(n, 0)
	size := int64(0)
	switch {
	case v.kind == text:
		size = int64(len(v.str))
	case v.kind == sequence && v.list.form <= tuple:
		size = int64(len(v.list.items))
	default:
		return Value{}, failed("%s cannot be repeated", v.kind)
	}
	if size > 0 && n > int64(st.steps)/size { // before it is made
		return Value{}, st.charge(st.steps + 1)
	}
	if v.kind == text {
		return st.made(strings.Repeat(v.str, int(n)))
	}
	return st.list(v.list.form, slices.Repeat(v.list.items, int(n)))
}

// integers calculates with integers. Python has no largest one, so a result beyond
// 64 bits is refused.
func integers(op string, a, b int64) (Value, error) {
	overflow := unsupported("an integer beyond 64 bits")
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return Int(c), nil
		}
		return Value{}, overflow
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return Int(c), nil
		}
		return Value{}, overflow
	case "*":
		c := a * b
		if a != 0 && (c/a != b || a == -1 && b == math.MinInt64) {
			return Value{}, overflow
		}
		return Int(c), nil
	case "**":
		return power(a, b)
	}
	if b == 0 {
		return Value{}, failed("division by zero")
	}
	switch op {
	case "/":
		return floatOf(float64(a) / float64(b)), nil
	case "//":
		if a == math.MinInt64 && b == -1 {
			return Value{}, overflow
		}
		q := a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			q--
		}
		return Int(q), nil
	}
	m := a % b
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return Int(m), nil
}

// power is ** of integers, an integer unless the exponent is negative.
func power(a, b int64) (Value, error) {
	if b < 0 {
		return floats("**", float64(a), float64(b))
	}
	result := Int(1)
	for ; b > 0 && (a > 1 || a < -1); b-- {
		var err error
		if result, err = integers("*", result.num, a); err != nil {
			return Value{}, err
		}
	}
	switch {
	case b > 0 && (a == 0 || a == -1 && b%2 == 1):
		return Int(a), nil
	}
	return result, nil
}

// floats calculates with floats. Division rounds down and the remainder has the sign
// of the divisor.
func floats(op string, a, b float64) (Value, error) {
	switch op {
	case "+":
		return floatOf(a + b), nil
	case "-":
		return floatOf(a - b), nil
	case "*":
		return floatOf(a * b), nil
	case "**":
		if a == 0 && b < 0 || a < 0 && b != math.Trunc(b) {
			return Value{}, failed("%v ** %v cannot be calculated", a, b)
		}
		return floatOf(math.Pow(a, b)), nil
	}
	if b == 0 {
		return Value{}, failed("division by zero")
	}
	if op == "/" {
		return floatOf(a / b), nil
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	if op == "%" {
		return floatOf(m), nil
	}
	return floatOf(math.Round((a - m) / b)), nil
}

// holds applies a comparison.
func holds(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return equal(a, b), nil
	case "!=":
		return !equal(a, b), nil
	case "in":
		return contains(b, a)
	case "not in":
		ok, err := contains(b, a)
		return !ok, err
	}
	c, err := order(a, b)
	if err != nil || c == unordered {
		return false, err
	}
	switch op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

// equal is Python's ==.
func equal(a, b Value) bool {
	switch {
	case a.whole() && b.whole():
		return a.num == b.num
	case a.numeric() && b.numeric():
		return a.float() == b.float()
	case a.kind != b.kind:
		return false
	}
	switch a.kind {
	case undefined, none:
		return true
	case text, big:
		return a.str == b.str
	case sequence:
		return a.list.form == b.list.form && a.list.form <= tuple && slices.EqualFunc(a.list.items, b.list.items, equal)
	case mapping:
		if len(a.dict.keys) != len(b.dict.keys) {
			return false
		}
		for i, k := range a.dict.keys {
			if v, ok := b.dict.Get(k); !ok || !equal(a.dict.values[i], v) {
				return false
			}
		}
		return true
	case namespace:
		return a.dict == b.dict
	}
	return a.call == b.call
}

// unordered is the order of a number and what is none.
const unordered = 2

// order compares two values as Python's <, or fails.
func order(a, b Value) (int, error) {
	switch {
	case a.whole() && b.whole():
		return cmp.Compare(a.num, b.num), nil
	case a.numeric() && b.numeric():
		x, y := a.float(), b.float()
		if x != x || y != y {
			return unordered, nil
		}
		return cmp.Compare(x, y), nil
	case a.kind == text && b.kind == text:
		return strings.Compare(a.str, b.str), nil // UTF-8 orders as code points
	case a.kind == sequence && b.kind == sequence && a.list.form == b.list.form && a.list.form <= tuple:
		x, y := a.list.items, b.list.items
		for i := range min(len(x), len(y)) {
			if !equal(x[i], y[i]) {
				return order(x[i], y[i])
			}
		}
		return cmp.Compare(len(x), len(y)), nil
	case a.kind == big || b.kind == big:
		return 0, unsupported("comparing integers beyond 64 bits")
	}
	return 0, failed("%s and %s have no order", a.kind, b.kind)
}

// contains is Python's in.
func contains(of, v Value) (bool, error) {
	switch of.kind {
	case undefined:
		return false, nil
	case text:
		if v.kind != text {
			return false, failed("%s in a str", v.kind)
		}
		return strings.Contains(of.str, v.str), nil
	case mapping:
		if v.kind != text {
			return false, nil // all keys are texts
		}
		return of.dict.find(v.str) >= 0, nil
	case sequence:
		return slices.ContainsFunc(of.list.take(), func(x Value) bool { return equal(x, v) }), nil
	}
	return false, failed("%s has no elements", of.kind)
}

// iterate returns what a loop over a value goes through.
func iterate(v Value) ([]Value, error) {
	switch v.kind {
	case undefined:
		return nil, nil
	case sequence:
		return v.list.take(), nil
	case mapping:
		items := make([]Value, len(v.dict.keys))
		for i, k := range v.dict.keys {
			items[i] = String(k)
		}
		return items, nil
	case text:
		items := make([]Value, 0, len(v.str))
		for i, r := range v.str {
			items = append(items, String(v.str[i:i+len(string(r))]))
		}
		return items, nil
	}
	return nil, failed("%s has no elements", v.kind)
}
