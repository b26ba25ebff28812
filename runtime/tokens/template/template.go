package template

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// Template is a compiled chat template.
type Template struct {
	body  body
	parts bool
}

// TakesParts reports whether the template reads message contents that are lists
// of parts. Engines give others the texts of the parts in one string. They decide
// it as this does: by words for media, or by a loop over the content of a message.
func (t *Template) TakesParts() bool { return t.parts }

// MaxSource is the longest source that is compiled, in bytes.
const MaxSource = 256 << 10

// Compile reads a template. The error is a *SyntaxError.
func Compile(source string) (*Template, error) {
	if len(source) > MaxSource {
		return nil, &SyntaxError{1, 1, fmt.Sprintf("template of %d bytes, %d at most", len(source), MaxSource)}
	}
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	source = strings.TrimSuffix(source, "\n") // the last one never counts
	t, err := parse(source)
	if err != nil {
		return nil, err
	}
	for _, media := range []string{"image", "audio", "video", "vision"} {
		t.parts = t.parts || strings.Contains(source, media)
	}
	return t, nil
}

// Options are the surroundings and the limits of a rendering.
type Options struct {
	// Now is what strftime_now writes. The zero time makes it fail.
	Now time.Time
	// MaxOutput bounds the text, in bytes; 0 stands for 16 MiB.
	MaxOutput int
	// MaxSteps bounds the work: one step for each statement, round of a loop,
	// call and list element, and for each 32 bytes of text that is made. 0
	// stands for 10 million, which take about a second.
	MaxSteps int
	// MaxCalls bounds how deep macros call each other; 0 stands for 64.
	MaxCalls int
}

const (
	defaultMaxOutput = 16 << 20
	defaultMaxSteps  = 10_000_000
	defaultMaxCalls  = 64
	bytesPerStep     = 32
)

// Render writes the text for the variables, which must not be changed meanwhile.
// The error is a *RenderError, or that of the context.
func (t *Template) Render(ctx context.Context, vars *Dict, o Options) (string, error) {
	st := &state{
		ctx: ctx, now: o.Now, out: new(output),
		steps:     cmp.Or(o.MaxSteps, defaultMaxSteps),
		maxOutput: cmp.Or(o.MaxOutput, defaultMaxOutput),
		calls:     cmp.Or(o.MaxCalls, defaultMaxCalls),
	}
	global := &scope{}
	vars.Each(global.set)
	if _, err := t.body.exec(st, &scope{parent: global}); err != nil {
		return "", err
	}
	return st.out.String(), nil
}

// state is one rendering.
type state struct {
	ctx       context.Context
	now       time.Time
	out       *output
	steps     int // that are left
	maxOutput int
	calls     int // that may still be nested
}

// output collects text.
type output struct{ strings.Builder }

// charge takes steps off the budget.
func (st *state) charge(n int) error {
	const cancelEvery = 1 << 10
	before := st.steps
	st.steps -= n
	if st.steps < 0 {
		return &RenderError{Kind: TooMuch, Text: "the limit of steps is reached"}
	}
	if before/cancelEvery != st.steps/cancelEvery {
		return st.ctx.Err()
	}
	return nil
}

// made charges for a text.
func (st *state) made(s string) (Value, error) {
	return String(s), st.charge(len(s) / bytesPerStep)
}

// write adds text to the output of the block at hand. The limit also holds for text
// that a block captures.
func (st *state) write(s string) error {
	if st.out.Len()+len(s) > st.maxOutput {
		return &RenderError{Kind: TooMuch, Text: "the limit of output is reached"}
	}
	st.out.WriteString(s)
	return st.charge(len(s) / bytesPerStep)
}

// capture runs a body and returns what it writes.
func (st *state) capture(b body, sc *scope) (string, error) {
	outer := st.out
	st.out = new(output)
	defer func() { st.out = outer }()
	_, err := b.exec(st, sc)
	return st.out.String(), err
}

// scope holds variables. Blocks see those around them and assign to their own.
type scope struct {
	parent *scope
	names  []string
	values []Value
}

// set assigns in this scope, whatever those around it hold.
func (sc *scope) set(name string, v Value) {
	for i, n := range sc.names {
		if n == name {
			sc.values[i] = v
			return
		}
	}
	sc.names, sc.values = append(sc.names, name), append(sc.values, v)
}

// get looks from the innermost scope outwards.
func (sc *scope) get(name string) (Value, bool) {
	for ; sc != nil; sc = sc.parent {
		for i, n := range sc.names {
			if n == name {
				return sc.values[i], true
			}
		}
	}
	return Value{}, false
}

// clear empties a scope for the next round of a loop.
func (sc *scope) clear() { sc.names, sc.values = sc.names[:0], sc.values[:0] }
