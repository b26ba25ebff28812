package source

import (
	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns the whole tree as one compact JSON document. Fields are in the
// order of the inputs and numbers have their digits as written.
func (t *Tree) JSON() []byte { return t.root.AppendJSON(nil) }

// AppendJSON appends n as compact JSON.
func (n *Node) AppendJSON(to []byte) []byte {
	switch n.Kind {
	case String:
		// Text is valid UTF-8 because the inputs are.
		to, _ = jsontext.AppendQuote(to, n.Text)
	case List:
		to = append(to, '[')
		for i, e := range n.Elems {
			if i > 0 {
				to = append(to, ',')
			}
			to = e.AppendJSON(to)
		}
		to = append(to, ']')
	case Struct:
		to = append(to, '{')
		for i := range n.Fields {
			if i > 0 {
				to = append(to, ',')
			}
			to, _ = jsontext.AppendQuote(to, n.Fields[i].Name)
			to = append(to, ':')
			to = n.Fields[i].Value.AppendJSON(to)
		}
		to = append(to, '}')
	default:
		to = append(to, n.Text...)
	}
	return to
}
