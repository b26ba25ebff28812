package template

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"shunt/runtime/tokens/ordered"
)

// kind is the kind of a value. The zero kind stands for an argument that was not
// given.
type kind uint8

const (
	absent kind = iota
	undefined
	none
	boolean
	integer
	float
	big // an integer beyond 64 bits, kept as it is written
	text
	sequence
	mapping
	namespace
	function
)

var kindNames = [...]string{"nothing", "undefined", "None", "bool", "int", "float", "int", "str", "list", "dict", "namespace", "function"}

func (k kind) String() string { return kindNames[k] }

// Value is a value of a template. It is immutable once it was given to a
// rendering, so it may be shared.
type Value struct {
	kind kind
	num  int64  // of a boolean or integer; the bits of a float
	str  string // of a text or big integer; the name of what is undefined
	list *list
	dict *Dict
	call *callable
}

// form says which of Python's sequences a list is.
type form uint8

const (
	plainList form = iota
	tuple
	view      // of a dict or a range: it has a length but no text
	generator // it can be read once, and has neither
)

// list is a sequence. Its depth is bounded when it is made, so that printing and
// comparing need no bound of their own.
type list struct {
	items []Value
	form  form
	depth int
}

// take returns the items to iterate over, which a generator gives only once.
func (l *list) take() []Value {
	items := l.items
	if l.form == generator {
		l.items = nil
	}
	return items
}

// Dict is an object in the order of its keys.
type Dict struct {
	keys   []string
	values []Value
	index  map[string]int // only beyond a few keys
	depth  int
}

const indexFrom = 8

// find returns the position of a key, or -1.
func (d *Dict) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// Get returns the value of a key.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.find(key); i >= 0 {
		return d.values[i], true
	}
	return Value{}, false
}

// Set gives a key a value; a new key comes last. A dict must not be changed once
// it was given to a rendering.
func (d *Dict) Set(key string, v Value) {
	d.depth = max(d.depth, v.depth()+1)
	if i := d.find(key); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys, d.values = append(d.keys, key), append(d.values, v)
	switch {
	case d.index != nil:
		d.index[key] = len(d.keys) - 1
	case len(d.keys) > indexFrom:
		d.index = make(map[string]int, 2*len(d.keys))
		for i, k := range d.keys {
			d.index[k] = i
		}
	}
}

// Clone returns a copy that may be changed.
func (d *Dict) Clone() *Dict {
	c := new(Dict)
	for i, k := range d.keys {
		c.Set(k, d.values[i])
	}
	return c
}

// order returns the positions of the keys, sorted by key or as they stand.
func (d *Dict) order(sorted bool) []int {
	order := make([]int, len(d.keys))
	for i := range order {
		order[i] = i
	}
	if sorted {
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(d.keys[a], d.keys[b]) })
	}
	return order
}

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Each calls f with every key and value in order.
func (d *Dict) Each(f func(key string, v Value)) {
	for i, k := range d.keys {
		f(k, d.values[i])
	}
}

// None is the value None.
func None() Value { return Value{kind: none} }

// Bool returns a boolean.
func Bool(b bool) Value {
	v := Value{kind: boolean}
	if b {
		v.num = 1
	}
	return v
}

// Int returns an integer.
func Int(n int64) Value { return Value{kind: integer, num: n} }

// String returns a text.
func String(s string) Value { return Value{kind: text, str: s} }

// List returns a list of values.
func List(items ...Value) Value { return listOf(plainList, items) }

// Object returns a dict as a value.
func Object(d *Dict) Value { return Value{kind: mapping, dict: d} }

func floatOf(f float64) Value { return Value{kind: float, num: int64(math.Float64bits(f))} }

func undefinedOf(name string) Value { return Value{kind: undefined, str: name} }

// listOf takes over the items.
func listOf(f form, items []Value) Value {
	depth := 0
	for _, v := range items {
		depth = max(depth, v.depth())
	}
	return Value{kind: sequence, list: &list{items: items, form: f, depth: depth + 1}}
}

// depth is how deep lists and dicts are nested in a value.
func (v Value) depth() int {
	switch v.kind {
	case sequence:
		return v.list.depth
	case mapping:
		return v.dict.depth
	}
	return 0
}

// Text returns the content of a text.
func (v Value) Text() (string, bool) { return v.str, v.kind == text }

// Dict returns the object that a value is, or nil.
func (v Value) Dict() *Dict {
	if v.kind != mapping {
		return nil
	}
	return v.dict
}

// Items returns the elements of a list, which must not be changed, and whether
// the value is one.
func (v Value) Items() ([]Value, bool) {
	if v.kind != sequence {
		return nil, false
	}
	return v.list.items, true
}

// IsNone reports whether a value is None.
func (v Value) IsNone() bool { return v.kind == none }

// Truth is Python's truth of a value.
func (v Value) Truth() bool {
	switch v.kind {
	case boolean, integer:
		return v.num != 0
	case float:
		return v.float() != 0
	case text:
		return v.str != ""
	case sequence:
		return v.list.form == generator || len(v.list.items) > 0
	case mapping:
		return len(v.dict.keys) > 0
	case big, namespace, function:
		return true
	}
	return false
}

// float returns a number as a float.
func (v Value) float() float64 {
	switch v.kind {
	case float:
		return math.Float64frombits(uint64(v.num))
	case big:
		f, _ := strconv.ParseFloat(v.str, 64) // beyond the range it is infinite
		return f
	}
	return float64(v.num)
}

// whole reports whether a value is an integer of 64 bits; booleans are.
func (v Value) whole() bool { return v.kind == integer || v.kind == boolean }

// numeric reports whether a value can be calculated with.
func (v Value) numeric() bool { return v.whole() || v.kind == float }

// Parse reads a JSON document. Of repeated keys the last value counts, at the
// place of the first, as in Python.
func Parse(doc string) (Value, error) {
	r := ordered.NewReader(doc)
	v, err := Read(r)
	if err == nil {
		err = r.Done()
	}
	return v, err
}

// Read reads one JSON value.
func Read(r *ordered.Reader) (Value, error) {
	k, err := r.Peek()
	if err != nil {
		return Value{}, err
	}
	switch k {
	case ordered.Null:
		return None(), r.Null()
	case ordered.True, ordered.False:
		b, err := r.Bool()
		return Bool(b), err
	case ordered.Number:
		s, err := r.Number()
		return numberOf(s), err
	case ordered.String:
		s, err := r.String()
		return String(s), err
	case ordered.Array:
		var items []Value
		err := r.Array(func(int) error {
			v, err := Read(r)
			items = append(items, v)
			return err
		})
		return List(items...), err
	case ordered.Object:
		d := new(Dict)
		err := r.Object(func(key string) error {
			v, err := Read(r)
			d.Set(key, v)
			return err
		})
		return Object(d), err
	}
	return Value{}, r.Skip() // the end, of which Skip makes an error
}

// numberOf reads a number of JSON: an integer unless it has a point or an exponent,
// which decides how it is printed again.
func numberOf(s string) Value {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // beyond the range it is infinite, as in Python
		return floatOf(f)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return Value{kind: big, str: s}
	}
	return Int(n)
}

// runes counts the code points of a text, as Python's len.
func runes(s string) int { return utf8.RuneCountInString(s) }

// Bool returns what a boolean is.
func (v Value) Bool() (on, ok bool) { return v.num != 0, v.kind == boolean }

// Int returns what an integer is, unless it has more than 64 bits.
func (v Value) Int() (int64, bool) { return v.num, v.kind == integer }
