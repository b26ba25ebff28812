package source

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"shunt/compiler/diag"
)

// json parses the file as one JSON value.
func (b *builder) json() *Node {
	if len(bytes.TrimSpace(b.file.data)) == 0 {
		b.empty()
		return nil
	}
	j := &jsonBuilder{builder: b, decoder: jsontext.NewDecoder(bytes.NewReader(b.file.data),
		jsontext.AllowDuplicateNames(true))}
	root := j.value(1)
	if b.stopped {
		return nil
	}
	j.skip()
	if _, err := j.decoder.ReadToken(); err == nil {
		b.stop(diag.Syntax, j.start, "JSON syntax: text after the end of the value")
		return nil
	} else if !errors.Is(err, io.EOF) {
		j.syntaxError(err)
		return nil
	}
	return root
}

type jsonBuilder struct {
	*builder
	decoder *jsontext.Decoder
	// start is the offset of the token that next returned.
	start int
}

// next returns the next token and notes where it starts. The token is valid
// until the next call.
func (j *jsonBuilder) next() (jsontext.Token, bool) {
	j.skip()
	t, err := j.decoder.ReadToken()
	if err != nil {
		j.syntaxError(err)
		return t, false
	}
	return t, !j.stopped
}

// skip sets start to where the next token begins.
func (j *jsonBuilder) skip() {
	j.start = int(j.decoder.InputOffset())
	for j.start < len(j.file.data) && strings.IndexByte(" \t\r\n,:", j.file.data[j.start]) >= 0 {
		j.start++
	}
}

func (j *jsonBuilder) syntaxError(err error) {
	offset, text := len(j.file.data), "unexpected end of the file"
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		offset, text = int(s.ByteOffset), s.Err.Error()
	}
	f := j.stop(diag.Syntax, offset, "JSON syntax: "+text)
	rest := j.file.data[min(offset, len(j.file.data)):]
	if bytes.HasPrefix(rest, []byte("/")) || bytes.HasPrefix(rest, []byte("#")) {
		f.Hint = "JSON has no comments; name the file .yaml or .cue to have them"
	}
}

// value reads one value, which is at the given depth.
func (j *jsonBuilder) value(depth int) *Node {
	t, ok := j.next()
	if !ok || !j.deeper(depth, j.start) {
		return nil
	}
	switch t.Kind() {
	case 'n':
		return j.node(Null, j.start, "null")
	case 't', 'f':
		return j.node(Bool, j.start, t.String())
	case '"':
		return j.node(String, j.start, t.String())
	case '0':
		return j.node(Number, j.start, t.String())
	case '[':
		return j.list(depth)
	case '{':
		return j.object(depth)
	}
	j.stop(diag.Syntax, j.start, "JSON syntax: unexpected "+t.String())
	return nil
}

func (j *jsonBuilder) list(depth int) *Node {
	n := j.node(List, j.start, "")
	for !j.stopped && j.decoder.PeekKind() != ']' {
		n.Elems = append(n.Elems, j.value(depth+1))
	}
	j.next()
	return n
}

func (j *jsonBuilder) object(depth int) *Node {
	o := &object{b: j.builder, node: j.node(Struct, j.start, "")}
	for !j.stopped && j.decoder.PeekKind() != '}' {
		t, ok := j.next()
		if !ok {
			break
		}
		name, at := t.String(), j.start
		v := j.value(depth + 1)
		o.add(name, at, v)
	}
	j.next()
	return o.node
}
