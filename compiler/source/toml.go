package source

import (
	"bytes"
	"fmt"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/encoding/toml"

	"shunt/compiler/diag"
)

// maxTOML bounds TOML inputs, whose parser takes time that grows with the square
// of the length of keys.
const maxTOML = 128 << 10

// toml parses the file as TOML, which becomes the data of a CUE file.
func (b *builder) toml() *Node {
	if len(b.file.data) > maxTOML {
		b.stop(diag.TooLarge, 0, fmt.Sprintf("a TOML file may have %d bytes, and this is more", maxTOML))
		return nil
	}
	if !b.tomlDepth() {
		return nil
	}
	e, err := toml.NewDecoder(b.file.name, bytes.NewReader(b.file.data)).Decode()
	if err != nil {
		offset := 0
		for _, one := range errors.Errors(errors.Promote(err, "")) {
			if one.Position().IsValid() {
				offset = one.Position().Offset()
				break
			}
		}
		b.stop(diag.Syntax, offset, "TOML syntax: "+strings.Join(strings.Fields(err.Error()), " "))
		return nil
	}
	if s, ok := e.(*ast.StructLit); ok && len(s.Elts) == 0 {
		b.empty()
		return nil
	}
	n := b.expr(e)
	if b.stopped {
		return nil
	}
	placeTables(n, n.at)
	return n
}

// placeTables gives tables and lists the place of their first value, for the
// parser gives them none.
func placeTables(n *Node, name place) {
	first := name
	for i := range n.Fields {
		placeTables(n.Fields[i].Value, n.Fields[i].at)
		if i == 0 {
			first = n.Fields[i].at
		}
	}
	for i, e := range n.Elems {
		placeTables(e, name)
		if i == 0 {
			first = e.at
		}
	}
	if n.Kind == Struct || n.Kind == List {
		n.at = first
	}
}

// tomlDepth bounds open brackets and the parts of keys, into which the parser
// recurses.
func (b *builder) tomlDepth() bool {
	depth, dots := 0, 0
	for i, c := range b.file.data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '.':
			dots++
		case '"', '\'', '\n', '=', ',':
			dots = 0
		}
		if !b.deeper(max(depth, dots), i) {
			return false
		}
	}
	return true
}
