package migrate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// node is a value of the configuration that is made, with the comments that it
// is written with.
type node struct {
	kind nodeKind
	// text is a scalar: the text itself, or the literal of anything else.
	text string
	// keys are the names of an object's fields, parallel to kids; a list has
	// kids only.
	keys []string
	kids []*node
	// comment names the origin. It stands on the line of the value.
	comment string
	// todo are what is left to do about an object or a list.
	todo []string
}

type nodeKind uint8

const (
	objectNode nodeKind = iota
	listNode
	textNode
	literalNode
)

func text(s string) *node { return &node{kind: textNode, text: s} }

func number[T int | int64 | uint64](n T) *node { return &node{kind: literalNode, text: fmt.Sprint(n)} }

func real(x float64) *node {
	return &node{kind: literalNode, text: strconv.FormatFloat(x, 'f', -1, 64)}
}

func boolean(b bool) *node { return &node{kind: literalNode, text: strconv.FormatBool(b)} }

// texts is a list of texts.
func texts(list []string) *node {
	n := &node{kind: listNode}
	for _, s := range list {
		n.kids = append(n.kids, text(s))
	}
	return n
}

// field returns the field of an object, and nil when it is absent.
func (n *node) field(name string) *node {
	for i, key := range n.keys {
		if key == name {
			return n.kids[i]
		}
	}
	return nil
}

// put puts a value into a field, in place of what was there.
func (n *node) put(name string, value *node) {
	for i, key := range n.keys {
		if key == name {
			n.kids[i] = value
			return
		}
	}
	n.keys, n.kids = append(n.keys, name), append(n.kids, value)
}

// at returns the value at a pointer and makes the objects and lists on the way.
// A number is the next element of a list.
func (n *node) at(pointer string) *node {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		kind := objectNode
		if i+1 < len(parts) && isIndex(parts[i+1]) {
			kind = listNode
		}
		var next *node
		if index, err := strconv.Atoi(part); err == nil && n.kind == listNode {
			if index < len(n.kids) {
				next = n.kids[index]
			} else {
				next = &node{kind: kind}
				n.kids = append(n.kids, next)
			}
		} else if next = n.field(part); next == nil {
			next = &node{kind: kind}
			n.put(part, next)
		}
		n = next
	}
	return n
}

func isIndex(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// flow reports whether a list is short enough for one line.
func (n *node) flow() bool {
	length := 0
	for _, k := range n.kids {
		if k.kind < textNode || k.comment != "" {
			return false
		}
		length += len(k.text) + 4
	}
	return length <= 90 && len(n.todo) == 0
}

// bare is a text that YAML reads as that text without quotes.
var bare = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// words are the texts that YAML reads as something else, in lower case.
var words = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|none|\.inf|\.nan)$`)

func yamlScalar(n *node) string {
	switch {
	case n.kind == literalNode:
		return n.text
	case bare.MatchString(n.text) && !words.MatchString(n.text) || durations.MatchString(n.text):
		return n.text
	}
	return quoted(n.text)
}

// durations are texts of digits and a unit, which are no numbers of YAML.
var durations = regexp.MustCompile(`^[0-9]+(ms|s|m|h)$`)

// quoted writes a text so that YAML and JSON both read it.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// writer writes a tree in one of the two syntaxes.
type writer struct {
	strings.Builder
	cue bool
}

// comment writes a line of comment, or what follows a value.
func (w *writer) comment(s string) string {
	mark := "# "
	if w.cue {
		mark = "// "
	}
	return mark + clean(strings.Join(strings.Fields(s), " "))
}

func (w *writer) trailing(s string) string {
	if s == "" {
		return ""
	}
	return " " + w.comment(s)
}

func (w *writer) todos(n *node, indent string) {
	for _, s := range n.todo {
		fmt.Fprintf(w, "%s%s\n", indent, w.comment("TODO(shunt): "+s))
	}
}

// encode writes a tree under a heading of comments.
func encode(root *node, cue bool, heading []string) []byte {
	w := &writer{cue: cue}
	for _, line := range heading {
		w.WriteString(w.comment(line) + "\n")
	}
	if cue {
		w.cueFields(root, "")
	} else {
		w.yamlFields(root, "", "")
	}
	return []byte(w.String())
}

// yamlFields writes the fields of an object. The first line starts with first in
// place of the indent.
func (w *writer) yamlFields(n *node, first, indent string) {
	lead := first
	for i, key := range n.keys {
		k := n.kids[i]
		w.WriteString(lead + yamlScalar(text(key)) + ":")
		w.yamlValue(k, indent)
		lead = indent
	}
	w.todos(n, indent)
}

// yamlValue writes what follows the colon of a field.
func (w *writer) yamlValue(k *node, indent string) {
	switch {
	case k.kind >= textNode:
		w.WriteString(" " + yamlScalar(k) + w.trailing(k.comment) + "\n")
	case len(k.kids) == 0:
		empty := " {}"
		if k.kind == listNode {
			empty = " []"
		}
		w.WriteString(empty + w.trailing(k.comment) + "\n")
		w.todos(k, indent+"  ")
	case k.kind == objectNode:
		w.WriteString(w.trailing(k.comment) + "\n")
		w.yamlFields(k, indent+"  ", indent+"  ")
	case k.flow():
		var list []string
		for _, e := range k.kids {
			list = append(list, yamlScalar(e))
		}
		w.WriteString(" [" + strings.Join(list, ", ") + "]" + w.trailing(k.comment) + "\n")
	default:
		w.WriteString(w.trailing(k.comment) + "\n")
		for _, e := range k.kids {
			w.yamlElement(e, indent+"  ")
		}
		w.todos(k, indent+"  ")
	}
}

func (w *writer) yamlElement(e *node, indent string) {
	switch {
	case e.kind >= textNode:
		w.WriteString(indent + "- " + yamlScalar(e) + w.trailing(e.comment) + "\n")
	case len(e.keys) == 0:
		w.WriteString(indent + "- {}\n")
		w.todos(e, indent+"  ")
	default:
		w.yamlFields(e, indent+"- ", indent+"  ")
	}
}

func cueScalar(n *node) string {
	if n.kind == literalNode {
		return n.text
	}
	return literal.String.Quote(n.text)
}

// name is what CUE takes as the name of a field without quotes, but for its words.
var name = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func cueName(key string) string {
	if name.MatchString(key) && !token.Lookup(key).IsKeyword() && key != "fallback" {
		return key
	}
	return literal.String.Quote(key)
}

func (w *writer) cueFields(n *node, indent string) {
	for i, key := range n.keys {
		w.WriteString(indent + cueName(key) + ": ")
		w.cueValue(n.kids[i], indent, "")
	}
	w.todos(n, indent)
}

// cueValue writes a value and what has to follow it on its line.
func (w *writer) cueValue(k *node, indent, end string) {
	tail := end + w.trailing(k.comment) + "\n"
	open, shut := "{", "}"
	if k.kind == listNode {
		open, shut = "[", "]"
	}
	switch {
	case k.kind >= textNode:
		w.WriteString(cueScalar(k) + tail)
	case len(k.kids) == 0 && len(k.todo) == 0:
		w.WriteString(open + shut + tail)
	case k.kind == listNode && k.flow():
		var list []string
		for _, e := range k.kids {
			list = append(list, cueScalar(e))
		}
		w.WriteString("[" + strings.Join(list, ", ") + "]" + tail)
	default:
		w.WriteString(open + w.trailing(k.comment) + "\n")
		if k.kind == listNode {
			for _, e := range k.kids {
				w.WriteString(indent + "\t")
				w.cueValue(e, indent+"\t", ",")
			}
			w.todos(k, indent+"\t")
		} else {
			w.cueFields(k, indent+"\t")
		}
		w.WriteString(indent + shut + end + "\n")
	}
}
