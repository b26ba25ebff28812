package suppress

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"shunt/compiler/diag"
)

// BaselineFormat names the format of baselines; another version is refused.
const BaselineFormat = "shunt-baseline/1"

// Baseline is a list of accepted findings. Each entry accepts one finding, and
// the same entry twice accepts two.
type Baseline struct {
	name    string
	entries []entry
}

type entry struct {
	diag.Identity
	line int
}

// ReadBaseline reads a baseline; name is that of its file. Of a file that is
// none it reports the first mistake.
func ReadBaseline(name string, data []byte) (*Baseline, diag.List) {
	b := &Baseline{name: name}
	offset, err := b.read(data)
	if err != nil {
		line, column := lineOf(data, offset)
		return nil, diag.List{diag.New(diag.BadBaseline, diag.Pos{File: name, Line: line, Column: column, Offset: offset}, "", "the baseline cannot be used: "+err.Error())}
	}
	return b, nil
}

// read fills b and returns the offset of what is wrong.
func (b *Baseline) read(data []byte) (int, error) {
	var document struct {
		Format   string            `json:"format"`
		Findings []json.RawMessage `json:"findings"`
	}
	if offset, err := decodeStrict(data, &document); err != nil {
		return offset, err
	}
	if document.Format != BaselineFormat {
		return 0, fmt.Errorf("its format is %q, not %q", document.Format, BaselineFormat)
	}
	if document.Findings == nil {
		return 0, errors.New("it has no list findings")
	}
	from := 0
	for _, raw := range document.Findings {
		// A raw message is the very bytes of the document, so the next ones that
		// are equal are its own.
		at := from + bytes.Index(data[from:], raw)
		from = at + len(raw)
		var e entry
		if offset, err := decodeStrict(raw, &e.Identity); err != nil {
			return at + offset, err
		}
		if _, ok := diag.Lookup(e.Code); !ok {
			return at, fmt.Errorf("no finding has the code %q", e.Code)
		}
		e.line, _ = lineOf(data, at)
		b.entries = append(b.entries, e)
	}
	return 0, nil
}

// decodeStrict decodes one JSON value without unknown fields.
func decodeStrict(data []byte, into any) (offset int, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		offset := int(d.InputOffset())
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset = int(e.Offset) - 1 // it is behind the character
		} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			offset = int(e.Offset)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return len(data), errors.New("it ends too early")
		}
		return offset, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return int(d.InputOffset()), errors.New("something stands behind its end")
	}
	return 0, nil
}

// lineOf returns line and column of an offset.
func lineOf(data []byte, offset int) (line, column int) {
	head := data[:min(max(offset, 0), len(data))]
	return 1 + bytes.Count(head, []byte("\n")), len(head) - bytes.LastIndexByte(head, '\n')
}

// apply suppresses what the entries accept and reports entries that accept what
// is not there.
func (b *Baseline) apply(findings diag.List, ids []diag.Identity, files []string, complete bool) (problems diag.List) {
	waiting := make(map[diag.Identity][]int)
	for i := range findings {
		if f := &findings[i]; f.CanSuppress() && !suppression(f.Code) {
			waiting[ids[i]] = append(waiting[ids[i]], i)
		}
	}
	for _, e := range b.entries {
		at := diag.Pos{File: b.name, Line: e.line}
		if entry, _ := diag.Lookup(e.Code); entry.Severity == diag.Error {
			problems.Add(diag.New(diag.SuppressedError, at, "", fmt.Sprintf("the baseline has %s, %s, which is an error", e.Code, entry.Title)))
			continue
		}
		found := waiting[e.Identity]
		if len(found) > 0 {
			waiting[e.Identity] = found[1:]
			if f := &findings[found[0]]; f.Suppressed == nil {
				f.Suppressed = &diag.Suppression{By: diag.ByBaseline, Pos: at}
			}
			continue
		}
		if complete && slices.Contains(files, e.File) {
			problems.Add(diag.New(diag.StaleBaseline, at, "", fmt.Sprintf("%s has no finding %s any more: %s", e.File, e.Code, e.Message)))
		}
	}
	return problems
}

// WriteBaseline makes a baseline of the findings that may be accepted and are
// not suppressed, one on a line, so that versions of it can be merged.
func WriteBaseline(findings diag.List, identity func(*diag.Finding) diag.Identity) ([]byte, error) {
	var ids []diag.Identity
	for i := range findings {
		if f := &findings[i]; f.CanSuppress() && f.Suppressed == nil && !suppression(f.Code) {
			ids = append(ids, identity(f))
		}
	}
	slices.SortFunc(ids, func(a, b diag.Identity) int {
		return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(string(a.Code), string(b.Code)),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	var lines []string
	for _, id := range ids {
		var line strings.Builder
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(id); err != nil {
			return nil, fmt.Errorf("write baseline: %w", err)
		}
		lines = append(lines, "\n    "+strings.TrimSpace(line.String()))
	}
	list := strings.Join(lines, ",")
	if list != "" {
		list += "\n  "
	}
	return fmt.Appendf(nil, "{\n  \"format\": %q,\n  \"findings\": [%s]\n}\n", BaselineFormat, list), nil
}
