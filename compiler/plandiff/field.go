package plandiff

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// fields compares two values of one type member by member and adds a change for
// each that differs. Name is how the value is called, the pointers are where it
// is in the two bodies.
func (c *comparison) fields(in context, name, oldAt, newAt string, before, after any) {
	for _, d := range differences(before, after) {
		change := Change{Kind: FieldChanged, Model: in.model, Field: joined(name, d.path), Old: d.old, New: d.new}
		change.OldDefault = d.old != nil && c.old.isDefault(oldAt+"/"+d.path)
		change.NewDefault = d.new != nil && c.new.isDefault(newAt+"/"+d.path)
		change.Class, change.Note = classOf(change.Field, d.old, d.new)
		c.add(change, in.place)
	}
}

func joined(name, path string) string {
	path = strings.ReplaceAll(path, "/", ".")
	if name == "" {
		return path
	}
	return name + "." + path
}

// difference is a member that differs; its path is a JSON pointer without the
// first slash. A value that is not there is nil.
type difference struct {
	path     string
	old, new json.RawMessage
}

// differences compares the JSON forms of two values. Members of objects are
// compared one by one, lists as a whole.
func differences(before, after any) []difference {
	a, b := tree(before), tree(after)
	var out []difference
	walk("", a, b, &out)
	return out
}

// tree is the JSON form of a value. Plans always have one.
func tree(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return err.Error()
	}
	return out
}

func walk(path string, a, b any, out *[]difference) {
	x, ok := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	// A section that appears or goes is compared member by member too.
	if ok && ok2 || ok && b == nil || ok2 && a == nil {
		names := make(map[string]bool, len(x)+len(y))
		for name := range x {
			names[name] = true
		}
		for name := range y {
			names[name] = true
		}
		if len(names) == 0 && (a == nil) != (b == nil) {
			*out = append(*out, difference{path, raw(a), raw(b)})
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			walk(strings.TrimPrefix(path+"/"+name, "/"), x[name], y[name], out)
		}
		return
	}
	before, after := raw(a), raw(b)
	if !bytes.Equal(before, after) {
		*out = append(*out, difference{path, before, after})
	}
}

// raw is the JSON text of a value, nil for none.
func raw(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil // what came from JSON goes back
	}
	return bytes.TrimSpace(b.Bytes())
}

// classOf classifies a change of a field that has no rule of its own elsewhere,
// by its name. Fields that are not known here change the behaviour.
func classOf(field string, before, after json.RawMessage) (Class, string) {
	switch {
	case strings.HasPrefix(field, "server.log."):
		return Cosmetic, ""
	case field == "server.listen":
		return Breaking, "clients have to use the new address"
	case field == "server.max_body_bytes":
		if number(after) < number(before) {
			return Breaking, "larger bodies are answered with status 413"
		}
	case field == "affinity.session_id_header" || field == "affinity.routing_key_header":
		if before != nil && after != nil {
			return Breaking, "clients have to send their keys in the new header"
		}
	case strings.HasPrefix(field, "tokenizer."):
		return Behaviour, "lengths may be counted otherwise, which the ranges of lengths do not show"
	case field == "state.affinity.memory.max_entries" || field == "state.affinity.redis.url":
		if before == nil || after == nil || field == "state.affinity.redis.url" {
			return Behaviour, "existing bindings are not carried over"
		}
	}
	return Behaviour, ""
}

// number reads a JSON number, 0 for anything else.
func number(text json.RawMessage) float64 {
	var n float64
	if json.Unmarshal(text, &n) != nil {
		return 0
	}
	return n
}
