package lower

import (
	"strconv"

	"shunt/schema/plan"
)

// Locate says where the value at a JSON pointer of the configuration is written:
// a line from 1, and the index of its file among the sources of the plan. It is
// not ok when that is not known.
type Locate func(pointer string) (source, line int, ok bool)

// Resolve gives the form in which a path in a configuration stands in a plan; the
// pointer is that of the path. Relative paths are relative to the file in which
// they are written.
type Resolve func(pointer, path string) string

// tracer collects the origins of a body in its order.
type tracer struct {
	locate  Locate
	resolve Resolve
	out     []plan.Origins
}

// element collects the origins of one element: to is its pointer in the body,
// from in the configuration.
type element struct {
	tracer   *tracer
	to, from string
	words    []byte
}

func (t *tracer) element(to, from string) *element {
	return &element{tracer: t, to: to, from: from}
}

// note records where a member is written, when it is present.
func (e *element) note(present bool, member, written string) {
	if present {
		e.noteElsewhere(true, member, e.from+"/"+written)
	}
}

// noteElsewhere is note for a value that is written outside of the element.
func (e *element) noteElsewhere(present bool, member, pointer string) {
	if !present {
		return
	}
	source, line, ok := e.tracer.locate(pointer)
	if !ok {
		return
	}
	if len(e.words) > 0 {
		e.words = append(e.words, ' ')
	}
	e.words = append(append(e.words, member...), ':')
	e.words = strconv.AppendInt(e.words, int64(line), 10)
	if source > 0 {
		e.words = strconv.AppendInt(append(e.words, '@'), int64(source), 10)
	}
}

// end adds the element to the origins, unless nothing of it is written.
func (e *element) end() {
	if len(e.words) > 0 {
		e.tracer.out = append(e.tracer.out, plan.Origins{At: e.to, Lines: string(e.words)})
	}
}
