package source

import (
	"fmt"
	"strconv"
	"strings"

	"shunt/compiler/diag"
)

// unify returns the unification of two values at a path. Where they conflict it
// reports both places and keeps a, so that the rest can still be judged.
func (r *reader) unify(a, b *Node, path string) *Node {
	switch {
	case a == b:
		return a
	case a.Kind != b.Kind:
		r.conflict(a, b, path, "%s here and %s elsewhere", b.Kind, a.Kind)
		return a
	case a.Kind == Struct:
		return r.unifyStructs(a, b, path)
	case a.Kind == List:
		return r.unifyLists(a, b, path)
	case a.Text != b.Text:
		r.conflict(a, b, path, "%s here and %s elsewhere", quote(b), quote(a))
	}
	return a
}

func (r *reader) unifyStructs(a, b *Node, path string) *Node {
	out := &Node{Kind: Struct, at: a.at, Fields: make([]Field, len(a.Fields), len(a.Fields)+len(b.Fields))}
	copy(out.Fields, a.Fields)
	o := &object{b: &builder{reader: r, file: r.files[b.at.file], id: b.at.file}, node: out}
	if len(a.Fields) > linearFields {
		o.names = make(map[string]int, len(a.Fields))
		for i := range a.Fields {
			o.names[a.Fields[i].Name] = i
		}
	}
	for _, f := range b.Fields {
		if i := o.find(f.Name); i >= 0 {
			out.Fields[i].Value = r.unify(out.Fields[i].Value, f.Value, Join(path, f.Name))
		} else {
			o.append(f)
		}
	}
	return out
}

func (r *reader) unifyLists(a, b *Node, path string) *Node {
	if len(a.Elems) != len(b.Elems) {
		r.conflict(a, b, path, "a list of %d here and of %d elsewhere", len(b.Elems), len(a.Elems))
		return a
	}
	out := &Node{Kind: List, at: a.at, Elems: make([]*Node, len(a.Elems))}
	for i := range a.Elems {
		out.Elems[i] = r.unify(a.Elems[i], b.Elems[i], Join(path, strconv.Itoa(i)))
	}
	return out
}

func (r *reader) conflict(a, b *Node, path, format string, args ...any) {
	name := path
	if name == "" {
		name = "the configuration"
	}
	f := r.add(diag.Conflict, r.position(b.at), fmt.Sprintf("conflicting values of %s: "+format, append([]any{name}, args...)...))
	f.Path = path
	if secretive(path, a.Text+b.Text) {
		f.Message = fmt.Sprintf("conflicting values of %s", name)
		f.Secret = f.Pos
	}
	f.Hint = "inputs are unified and none overrides another; keep the value in one place"
	f.Related = []diag.Related{{Pos: r.position(a.at), Message: "the other value is here"}}
}

// secretive reports whether texts at a path may be secrets.
func secretive(path, text string) bool {
	return strings.Contains(text, "@") || strings.HasSuffix(path, "/redis/url") || diag.SecretName(path)
}

func (r *reader) position(at place) diag.Pos { return r.files[at.file].pos(int(at.offset)) }

// quote shows a scalar in a message, shortened.
func quote(n *Node) string {
	if n.Kind != String {
		return n.Text
	}
	const most = 60
	text := []rune(n.Text)
	if len(text) > most {
		return strconv.Quote(string(text[:most]) + "…")
	}
	return strconv.Quote(n.Text)
}
