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
	root    *place
	policy  *place
	// list is a list of anything, whose element can be filled in.
	list cue.Value
	// spent counts the values that were evaluated in the context.
	spent int
}

// language is a part of the schema: files, and the definition of a document.
type language struct {
	files []schema.File
	root  string
}

func configurations() language { return language{schema.Files(), "#Config"} }

// newDefinitions evaluates the embedded schema. It fails only when the schema
// itself is wrong.
func newDefinitions(l language) (*definitions, error) {
	instance := build.NewContext().NewInstance("", nil)
	for _, f := range l.files {
		parsed, err := parser.ParseFile("schema:"+f.Name, f.Text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if err := instance.AddSyntax(parsed); err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
	}
	// The packages of CUE read CUE_DEBUG while they are initialised, before
	// main can unset it, so every context is told to do without.
	d := &definitions{context: cuecontext.New(cuecontext.CUE_DEBUG(""))}
	d.all = d.context.BuildInstance(instance)
	d.list = d.context.CompileString("#Element: _, all: [...#Element]")
	for at, name := range map[**place]string{&d.root: l.root, &d.policy: "#Policy"} {
		v := d.all.LookupPath(cue.ParsePath(name))
		if err := v.Err(); err != nil && v.IncompleteKind() == cue.BottomKind && !v.Exists() {
			return nil, fmt.Errorf("schema: %w", err)
		}
		*at = newPlace(v)
	}
	return d, nil
}

// legacy returns what the schema says about a dropped name: section is
// "policies" or "fields".
func (d *definitions) legacy(section, name string) (string, bool) {
	text, err := d.all.LookupPath(cue.MakePath(cue.Def("Legacy"), cue.Str(section), cue.Str(name))).String()
	return text, err == nil
}

// at returns the place that steps lead to, and nil when the schema has none.
func (d *definitions) at(steps []step) *place {
	p := d.root
	for _, s := range steps {
		if s.element {
			p = p.element()
		} else if f := p.object().find(s.name); f != nil {
			p = f.place
		} else {
			return nil
		}
		if p == nil {
			return nil
		}
	}
	return p
}
