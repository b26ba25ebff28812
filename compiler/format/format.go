package format

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	cueformat "cuelang.org/go/cue/format"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// says reports whether a text is read as was.
func says(ctx context.Context, o source.Options, name string, text, was []byte) bool {
	now, findings := read(ctx, o, name, text)
	return !findings.HasErrors() && bytes.Equal(was, now)
}

// File lays out the text of a configuration whose name has the extension of its
// syntax. A text that cannot be read is refused with the findings of reading it,
// and then there is no result. CUE programs are laid out without being run.
func File(ctx context.Context, o source.Options, name string, text []byte) ([]byte, diag.List) {
	o.AllowCUECode = false
	was, findings := read(ctx, o, name, text)
	if findings.HasErrors() {
		return nil, findings
	}
	out, err := layOut(name, text)
	if err != nil {
		return nil, diag.List{diag.New(diag.Internal, diag.Pos{File: name}, "", "laying out the file failed: "+err.Error())}
	}
	if says(ctx, o, name, out, was) {
		return out, nil
	}
	// A text in block form that the end of the file cuts off has no line break at
	// its end, and must not get one.
	cut := bytes.TrimSuffix(out, []byte("\n"))
	if bytes.HasSuffix(text, []byte("\n")) || !says(ctx, o, name, cut, was) {
		return nil, diag.List{diag.New(diag.Internal, diag.Pos{File: name}, "", "the layout would change what the file says; it was left alone")}
	}
	return cut, nil
}

// Knows reports whether the extension of a name is that of a syntax.
func Knows(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json", ".cue":
		return true
	}
	return false
}

// read returns what a text says as JSON, which a CUE program does not have.
func read(ctx context.Context, o source.Options, name string, text []byte) ([]byte, diag.List) {
	tree, findings := source.Read(ctx, o, []source.Input{{Name: name, Reader: bytes.NewReader(text)}})
	for i := range findings {
		if findings[i].Code != diag.CodeNotAllowed {
			return nil, findings
		}
	}
	if tree == nil || len(findings) > 0 {
		return nil, nil
	}
	return tree.JSON(), nil
}

func layOut(name string, text []byte) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".yaml", ".yml":
		return layOutYAML(text)
	case ".json":
		var b bytes.Buffer
		if err := json.Indent(&b, bytes.TrimSpace(text), "", "  "); err != nil {
			return nil, err
		}
		b.WriteByte('\n')
		return b.Bytes(), nil
	case ".cue":
		return cueformat.Source(text)
	default:
		return nil, fmt.Errorf("no layout for the extension %q", ext)
	}
}
