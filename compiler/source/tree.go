package source

import (
	"strconv"
	"strings"

	"shunt/compiler/diag"
)

// Kind is what a node holds.
type Kind uint8

// The kinds of nodes, those of JSON.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Struct
)

// String returns the word for k that findings use.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case List:
		return "a list"
	case Struct:
		return "an object"
	}
	return "an unknown value"
}

// Node is one value of the tree. Nodes may be shared: a YAML alias is the same
// node as its anchor. Readers must not change them.
type Node struct {
	Kind Kind
	// Text is the value of a scalar: "true" or "false", a number in JSON's
	// syntax with its digits as written, or the characters of a string.
	Text string
	// Fields of a Struct, in the order of the input, names unique.
	Fields []Field
	// Elems of a List.
	Elems []*Node
	// Reported says that Read reported the value itself, so that a second
	// finding about it would only repeat the first.
	Reported bool

	at place
}

// Field is a name and a value in a Struct.
type Field struct {
	Name  string
	Value *Node

	at place
}

// Lookup returns the value of the field with that name, and nil when n has no
// such field or is no Struct.
func (n *Node) Lookup(name string) *Node {
	if f := n.field(name); f != nil {
		return f.Value
	}
	return nil
}

func (n *Node) field(name string) *Field {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return &n.Fields[i]
		}
	}
	return nil
}

// Source is one file that was read, with its name as given.
type Source struct {
	Path string
	// SHA256 is the hash of its bytes in lower-case hex.
	SHA256 string
}

// Tree is the unified content of all inputs. Paths are JSON pointers (RFC
// 6901); the empty pointer is the root.
type Tree struct {
	root  *Node
	files []*file
}

// Root returns the root value, which is a Struct.
func (t *Tree) Root() *Node { return t.root }

// Node returns the value at a pointer, and nil when there is none.
func (t *Tree) Node(pointer string) *Node {
	n := t.root
	for _, token := range Split(pointer) {
		if n = n.child(token); n == nil {
			return nil
		}
	}
	return n
}

func (n *Node) child(token string) *Node {
	switch n.Kind {
	case Struct:
		return n.Lookup(token)
	case List:
		i, err := strconv.Atoi(token)
		if err == nil && i >= 0 && i < len(n.Elems) {
			return n.Elems[i]
		}
	}
	return nil
}

// Pos returns where the value at a pointer starts. When there is no such value
// it returns the start of the nearest enclosing one that exists, so that the
// place of a missing field is its object.
func (t *Tree) Pos(pointer string) diag.Pos {
	n := t.root
	for _, token := range Split(pointer) {
		c := n.child(token)
		if c == nil {
			break
		}
		n = c
	}
	return t.NodePos(n)
}

// Named returns a pointer with the id of each list element that has one, in
// braces, in the place of its index. It stays what it is when elements are added
// before it.
func (t *Tree) Named(pointer string) string {
	n, out := t.root, ""
	for _, token := range Split(pointer) {
		step := token
		if n != nil {
			list := n.Kind == List
			n = n.child(token)
			if id := n.Lookup("id"); list && id != nil && id.Kind == String {
				step = "{" + id.Text + "}"
			}
		}
		out = Join(out, step)
	}
	return out
}

// KeyPos returns where the name of the field at a pointer is written. For a
// list element, the root, and what does not exist, it is Pos.
func (t *Tree) KeyPos(pointer string) diag.Pos {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return t.Pos(pointer)
	}
	if f := t.Node(pointer[:i]).field(unescape(pointer[i+1:])); f != nil {
		return t.FieldPos(f)
	}
	return t.Pos(pointer)
}

// NodePos returns where n, a node of this tree, starts.
func (t *Tree) NodePos(n *Node) diag.Pos { return t.pos(n.at) }

// FieldPos returns where the name of f, a field of this tree, starts.
func (t *Tree) FieldPos(f *Field) diag.Pos { return t.pos(f.at) }

func (t *Tree) pos(at place) diag.Pos {
	if int(at.file) >= len(t.files) {
		return diag.Pos{}
	}
	return t.files[at.file].pos(int(at.offset))
}

// End returns the exclusive end of the key or scalar that starts at p, on the
// same line, for underlining. For a place that is not in this tree it is the
// zero position.
func (t *Tree) End(p diag.Pos) diag.Pos {
	for _, f := range t.files {
		if f.name == p.File && p.Known() {
			return f.pos(f.tokenEnd(p.Offset))
		}
	}
	return diag.Pos{}
}

// Lines returns the lines first to last (from 1, inclusive) of an input without
// their line ends, as many of them as exist, for excerpts.
func (t *Tree) Lines(name string, first, last int) []string {
	return linesOf(t.files, name, first, last)
}

// Sources lists every file that was read, sorted by path.
func (t *Tree) Sources() []Source { return sourcesOf(t.files) }

// Split returns the unescaped tokens of a JSON pointer.
func Split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range tokens {
		tokens[i] = unescape(s)
	}
	return tokens
}

// Join appends a token, a field name or a decimal index, to a JSON pointer.
func Join(pointer, token string) string {
	if strings.ContainsAny(token, "~/") {
		token = strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
	}
	return pointer + "/" + token
}

func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}
