package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Seal makes the document of a finished body. It takes over body and provenance;
// missing lists become empty ones. It fails when Validate refuses the body.
func Seal(body Body, prov Provenance) (*Document, error) {
	d := &Document{Format: Format, Body: body, Provenance: prov}
	fill(d)
	// File names may be any bytes, and JSON has only UTF-8.
	for i := range d.Provenance.Sources {
		d.Provenance.Sources[i].Path = strings.ToValidUTF8(d.Provenance.Sources[i].Path, "\uFFFD")
	}
	if err := Validate(&d.Body); err != nil {
		return nil, err
	}
	b, err := compact(&d.Body)
	if err != nil {
		return nil, fmt.Errorf("encode plan body: %w", err)
	}
	d.Digest = digest(b)
	return d, nil
}

// Encode gives the one byte form of a document that Seal or Load returned. The
// digest is the SHA-256 of its body without white space, so that
// `jq -cj .body plan.json | sha256sum` reproduces it.
func Encode(d *Document) ([]byte, error) {
	b, err := compact(&d.Body)
	if err != nil {
		return nil, fmt.Errorf("encode plan body: %w", err)
	}
	return layout(d, b)
}

// envelope is Document with a body that is already encoded.
type envelope struct {
	Format     string          `json:"format"`
	Digest     string          `json:"digest"`
	Body       json.RawMessage `json:"body"`
	Provenance *Provenance     `json:"provenance"`
}

// layout builds the file around a compact body, which goes in by hand because a
// json.RawMessage would be scanned twice.
func layout(d *Document, body []byte) ([]byte, error) {
	const hole = `"body":0`
	head, err := compact(&envelope{Format: d.Format, Digest: d.Digest, Body: json.RawMessage("0"), Provenance: &d.Provenance})
	if err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	before, after, ok := bytes.Cut(head, []byte(hole))
	if !ok {
		return nil, fmt.Errorf("encode plan: no place for the body")
	}
	whole := make([]byte, 0, len(head)+len(body))
	whole = append(append(whole, before...), hole[:len(hole)-1]...)
	whole = append(append(whole, body...), after...)
	out := appendIndented(make([]byte, 0, 5*len(whole)/2), whole)
	return append(out, '\n'), nil
}

// Load reads a plan file and refuses whatever Encode would not have written:
// unknown, misspelt, repeated or null fields, another format, another digest,
// other white space, and values that Validate forbids. An error is an *Error.
//
// The comparison with the re-encoded bytes does the work that encoding/json
// leaves undone: it accepts keys in another case, repeated keys and null.
func Load(data []byte) (*Document, error) {
	d := new(Document)
	text := stripped(data)
	if err := unmarshal(data, text, d); err != nil {
		return nil, err
	}
	fill(d)
	body, ok := canonical(d, text)
	if !ok || !isIndented(data, text) {
		want, err := Encode(d)
		if err != nil {
			return nil, &Error{Code: CodeType, Pointer: "/", Message: err.Error()}
		}
		return nil, diagnose(data, want)
	}
	if got := digest(body); got != d.Digest {
		line, col := place(data, bytes.Index(data, []byte(`"digest"`)))
		return nil, &Error{
			Code: CodeDigest, Pointer: "/digest", Line: line, Column: col,
			Message: fmt.Sprintf("digest %q does not belong to this body", d.Digest),
			Hint:    "the body has " + got + "; compile the plan again instead of editing it",
		}
	}
	if err := Validate(&d.Body); err != nil {
		return nil, err
	}
	return d, nil
}

// canonicalStart is how every plan of this format starts.
const canonicalStart = "{\n  \"format\": \"" + Format + "\",\n"

// canonical reports whether text is the compact form of d, and returns the part
// of it that is the body. The parts are compared as they are encoded, since a
// copy of a large plan costs more than its encoding.
func canonical(d *Document, text []byte) (body []byte, ok bool) {
	c := &comparer{rest: text}
	c.text(`{"format":`)
	c.value(d.Format)
	c.text(`,"digest":`)
	c.value(d.Digest)
	c.text(`,"body":`)
	start := len(text) - len(c.rest)
	c.value(&d.Body)
	end := len(text) - len(c.rest)
	c.text(`,"provenance":`)
	c.value(&d.Provenance)
	c.text(`}`)
	return text[start:end], !c.differs && len(c.rest) == 0
}

// comparer is a writer that compares what is written with a text.
type comparer struct {
	rest    []byte
	differs bool
}

// Write is for the encoder, which writes each value at once and adds a line
// break.
func (c *comparer) Write(p []byte) (int, error) {
	rest, ok := bytes.CutPrefix(c.rest, bytes.TrimSuffix(p, []byte("\n")))
	c.rest, c.differs = rest, c.differs || !ok
	return len(p), nil
}

func (c *comparer) text(p string) { _, _ = c.Write([]byte(p)) } // it cannot fail

func (c *comparer) value(v any) {
	c.differs = encode(c, v) != nil || c.differs
}

// unmarshal decodes data, whose text without white space is given too, and
// reports what is no JSON, another format, or of another type.
func unmarshal(data, text []byte, d *Document) error {
	if !bytes.HasPrefix(data, []byte(canonicalStart)) {
		if err := checkFormat(data); err != nil {
			return err
		}
	}
	// Decoding costs by the byte and half of a plan is white space.
	if json.Unmarshal(text, d) == nil {
		return nil
	}
	*d = Document{}
	return decodeError(data, json.Unmarshal(data, d))
}

// notAPlan is for those who hand over a configuration.
const notAPlan = "shunt compile makes a plan of a configuration"

// checkFormat looks at the format field alone, because a plan of another format
// may have fields that this one gives other types.
func checkFormat(data []byte) error {
	var head struct {
		Format *string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return decodeError(data, err)
	}
	hint := fmt.Sprintf("this version reads %q only", Format)
	switch {
	case head.Format == nil:
		return &Error{Code: CodeFormat, Pointer: "/format", Message: "the format is missing", Hint: hint + "; " + notAPlan}
	case *head.Format != Format:
		line, col := place(data, bytes.Index(data, []byte(`"`+*head.Format+`"`)))
		return &Error{
			Code: CodeFormat, Pointer: "/format", Line: line, Column: col,
			Message: fmt.Sprintf("format %q is not supported", *head.Format), Hint: hint,
		}
	}
	return nil
}

// fill replaces missing lists by empty ones, so that a list has one form.
func fill(d *Document) {
	p := &d.Provenance
	p.Sources, p.Origins = notNil(p.Sources), notNil(p.Origins)
	d.Body.Models = notNil(d.Body.Models)
	for i := range d.Body.Models {
		m := &d.Body.Models[i]
		m.Buckets, m.Breakpoints = notNil(m.Buckets), notNil(m.Breakpoints)
		if s := m.Discovery.Static; s != nil {
			s.Engines = notNil(s.Engines)
		}
		for j := range m.Breakpoints {
			m.Breakpoints[j].Runs = notNil(m.Breakpoints[j].Runs)
		}
		for j := range m.Buckets {
			for _, g := range m.Buckets[j].Groups.All() {
				if g.Group.WorkerIDs != nil {
					*g.Group.WorkerIDs = notNil(*g.Group.WorkerIDs)
				}
			}
		}
	}
}

// notNil returns s, or an empty list for none.
func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
