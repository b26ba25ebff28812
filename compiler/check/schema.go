package check

import (
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"

	"shunt/schema"
)

// definitions is the schema, evaluated in a context of its own. A context
// grows with everything that is evaluated in it, so each piece of a
// configuration gets a new one.
type definitions struct {
	context *cue.Context
	all     cue.Value
	config  cue.Value
}

// newDefinitions evaluates the embedded schema. It fails only when the schema
// itself is wrong.
func newDefinitions() (*definitions, error) {
	instance := build.NewContext().NewInstance("", nil)
	for _, f := range schema.Files() {
		parsed, err := parser.ParseFile("schema:"+f.Name, f.Text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if err := instance.AddSyntax(parsed); err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
	}
	d := &definitions{context: cuecontext.New()}
	d.all = d.context.BuildInstance(instance)
	d.config = d.all.LookupPath(cue.ParsePath("#Config"))
	if err := d.config.Err(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return d, nil
}

// legacy returns what the schema says about a dropped name: section is
// "policies" or "fields".
func (d *definitions) legacy(section, name string) (string, bool) {
	text, err := d.all.LookupPath(cue.MakePath(cue.Def("Legacy"), cue.Str(section), cue.Str(name))).String()
	return text, err == nil
}

// element returns the schema of a value by its place: the definition of a list
// element is looked up, so that the paths of its errors start there.
func (d *definitions) element(place []step) (cue.Value, bool) {
	v := d.config
	for _, s := range place {
		if s.element {
			v = v.LookupPath(cue.MakePath(cue.AnyIndex))
		} else {
			v = field(v, s.name)
		}
		if !v.Exists() {
			return v, false
		}
	}
	return cue.Dereference(v), true
}

// field returns the schema of a field, whether it is required or optional.
func field(v cue.Value, name string) cue.Value {
	s := cue.Str(name)
	if f := v.LookupPath(cue.MakePath(s.Required())); f.Exists() {
		return f
	}
	return v.LookupPath(cue.MakePath(s.Optional()))
}
