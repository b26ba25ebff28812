package template

import (
	"slices"
	"strings"
)

// maxNesting bounds how deep expressions and blocks are nested in a source, and
// with it the stack of parsing and rendering.
const maxNesting = 200

// parser turns tokens into statements. The first error ends it.
type parser struct {
	src    string
	tokens []token
	at     int
	depth  int
	loops  int // that enclose the place at hand, for break and continue
	macros int // that were met so far
	// names that are assigned somewhere, and so may hold a macro
	assigned map[string]bool
	// calls of plain names, looked at when all assignments are known
	calls []token
	parts bool // a loop goes over the content of a message
}

// parse reads a source whose line ends are \n.
func parse(src string) (*Template, error) {
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, tokens: tokens, assigned: make(map[string]bool)}
	b, _, err := p.body()
	if err == nil && p.peek().kind != tokEnd {
		err = p.unexpected()
	}
	if err != nil {
		return nil, err
	}
	for _, t := range p.calls {
		if !p.assigned[t.text] && functionNamed(t.text) == nil {
			return nil, failAt(src, t.pos, "function %s is not supported", t)
		}
	}
	return &Template{body: b, parts: p.parts}, nil
}

func (p *parser) peek() token { return p.tokens[p.at] }

// next reads a token. The last one, which ends the template, stays.
func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEnd {
		p.at++
	}
	return t
}

func (p *parser) fail(t token, format string, args ...any) error {
	return failAt(p.src, t.pos, format, args...)
}

func (p *parser) unexpected() error { return p.fail(p.peek(), "unexpected %s", p.peek()) }

func (p *parser) is(k tokenKind, text string) bool {
	t := p.peek()
	return t.kind == k && t.text == text
}

func (p *parser) op(text string) bool   { return p.is(tokOp, text) }
func (p *parser) word(text string) bool { return p.is(tokName, text) }

// skipOp and skipWord read a token if it stands there.
func (p *parser) skipOp(text string) bool   { return p.skip(p.op(text)) }
func (p *parser) skipWord(text string) bool { return p.skip(p.word(text)) }

func (p *parser) skip(ok bool) bool {
	if ok {
		p.at++
	}
	return ok
}

func (p *parser) wantOp(text string) error {
	if !p.skipOp(text) {
		return p.fail(p.peek(), "want %q, found %s", text, p.peek())
	}
	return nil
}

func (p *parser) wantWord(text string) error {
	if !p.skipWord(text) {
		return p.fail(p.peek(), "want %q, found %s", text, p.peek())
	}
	return nil
}

// want reads a token that must be of kind k; what names it in the message.
func (p *parser) want(k tokenKind, what string) (token, error) {
	t := p.peek()
	if t.kind != k {
		return t, p.fail(t, "want %s, found %s", what, t)
	}
	return p.next(), nil
}

// line is the line of a token.
func (p *parser) line(t token) int { return 1 + strings.Count(p.src[:t.pos], "\n") }

// enter counts one level of nesting; the caller defers leave.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return p.fail(p.peek(), "nested deeper than %d", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// body reads statements up to the end or to a tag that begins with one of the
// words in ends, whose word it has then read.
func (p *parser) body(ends ...string) (body, token, error) {
	if err := p.enter(); err != nil {
		return nil, token{}, err
	}
	defer p.leave()
	var b body
	for {
		t := p.next()
		switch t.kind {
		case tokEnd:
			if len(ends) > 0 {
				return nil, t, p.fail(t, "want %s before the end", strings.Join(ends, " or "))
			}
			return b, t, nil
		case tokData:
			b = append(b, write{t.text})
		case tokOpenPrint:
			x, err := p.tuple(true)
			if err != nil {
				return nil, t, err
			}
			b = append(b, print{p.line(t), x})
			if _, err := p.want(tokClosePrint, `"}}"`); err != nil {
				return nil, t, err
			}
		case tokOpenBlock:
			w, err := p.want(tokName, "the name of a tag")
			if err != nil {
				return nil, t, err
			}
			if slices.Contains(ends, w.text) {
				return b, w, nil
			}
			s, err := p.tag(w)
			if err != nil {
				return nil, t, err
			}
			b = append(b, s)
		}
	}
}

// closeBlock reads the end of a tag.
func (p *parser) closeBlock() error {
	_, err := p.want(tokCloseBlock, `"%}"`)
	return err
}

// block reads the rest of a tag, a body and the tag that ends it.
func (p *parser) block(end string) (body, error) {
	if err := p.closeBlock(); err != nil {
		return nil, err
	}
	b, _, err := p.body(end)
	if err == nil {
		err = p.closeBlock()
	}
	return b, err
}

// tag reads a statement whose first word is w.
func (p *parser) tag(w token) (stmt, error) {
	switch w.text {
	case "set":
		return p.set(w)
	case "if":
		return p.ifs(w)
	case "for":
		return p.loop(w)
	case "macro":
		return p.macro()
	case "call":
		return p.callBlock(w)
	case "filter":
		return p.filterBlock(w)
	case "with":
		return p.with(w)
	case "generation": // marks what the model wrote, for training
		b, err := p.inner(p.closeBlock, "endgeneration")
		return with{line: p.line(w), body: b}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail(w, "%s outside of a loop", w.text)
		}
		s := jump{breakLoop}
		if w.text == "continue" {
			s.signal = nextRound
		}
		return s, p.closeBlock()
	}
	return nil, p.fail(w, "tag %s is not supported", w)
}

// inner reads a body that runs on its own, which break and continue cannot leave.
func (p *parser) inner(head func() error, end string) (body, error) {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	if err := head(); err != nil {
		return nil, err
	}
	b, _, err := p.body(end)
	if err == nil {
		err = p.closeBlock()
	}
	return b, err
}

// target reads the name that something is assigned to.
func (p *parser) target() (string, error) {
	t, err := p.want(tokName, "a name")
	if err != nil {
		return "", err
	}
	if slices.Contains(reserved, t.text) {
		return "", p.fail(t, "%s cannot be assigned to", t)
	}
	p.assigned[t.text] = true
	return t.text, nil
}

var reserved = []string{"true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else", "loop", "varargs", "kwargs"}

// targets reads one name, or several between commas. The second result says that
// a value is to be unpacked even if there is one name only.
func (p *parser) targets() ([]string, error) {
	paren := p.skipOp("(")
	var to []string
	for {
		t, err := p.target()
		if err != nil {
			return nil, err
		}
		to = append(to, t)
		if !p.skipOp(",") {
			break
		}
	}
	if paren {
		return to, p.wantOp(")")
	}
	return to, nil
}

// set reads an assignment: of an expression, or of all that is written up to endset.
// The target is one name, several, or an attribute of a namespace.
func (p *parser) set(w token) (stmt, error) {
	to, err := p.targets()
	if err != nil {
		return nil, err
	}
	of := ""
	if len(to) == 1 && p.skipOp(".") {
		t, err := p.want(tokName, "a name")
		if err != nil {
			return nil, err
		}
		of, to[0] = to[0], t.text
	}
	if p.skipOp("=") {
		x, err := p.tuple(true)
		if err != nil {
			return nil, err
		}
		return set{p.line(w), to, of, x}, p.closeBlock()
	}
	if len(to) != 1 {
		return nil, p.fail(p.peek(), "want \"=\", found %s", p.peek())
	}
	s := setBlock{line: p.line(w), to: to[0], of: of}
	s.body, err = p.inner(func() (err error) {
		if p.op("|") {
			s.filter, err = p.filters(nil)
		}
		if err == nil {
			err = p.closeBlock()
		}
		return err
	}, "endset")
	return s, err
}

// ifs reads all branches up to endif.
func (p *parser) ifs(w token) (stmt, error) {
	var s ifs
	for {
		b := branch{line: p.line(w)}
		var err error
		if w.text != "else" {
			if b.test, err = p.tuple(true); err != nil {
				return nil, err
			}
		}
		if err = p.closeBlock(); err != nil {
			return nil, err
		}
		ends := []string{"elif", "else", "endif"}
		if w.text == "else" {
			ends = ends[2:]
		}
		if b.body, w, err = p.body(ends...); err != nil {
			return nil, err
		}
		s.branches = append(s.branches, b)
		if w.text == "endif" {
			return s, p.closeBlock()
		}
	}
}

// loop reads a loop with its condition and its else.
func (p *parser) loop(w token) (stmt, error) {
	l := loop{line: p.line(w)}
	var err error
	if l.to, err = p.targets(); err != nil {
		return nil, err
	}
	if err = p.wantWord("in"); err != nil {
		return nil, err
	}
	if l.over, err = p.tuple(false); err != nil {
		return nil, err
	}
	p.parts = p.parts || isContent(l.over)
	if p.skipWord("if") {
		if l.test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.word("recursive") {
		return nil, p.fail(p.peek(), "recursive loops are not supported")
	}
	if err = p.closeBlock(); err != nil {
		return nil, err
	}
	p.loops++
	macros := p.macros
	l.body, w, err = p.body("else", "endfor")
	l.macros = p.macros > macros
	p.loops--
	if err == nil && w.text == "else" {
		if err = p.closeBlock(); err == nil {
			l.orElse, _, err = p.body("endfor")
		}
	}
	if err == nil {
		err = p.closeBlock()
	}
	return l, err
}

// isContent recognizes the content of a message, by the names that templates
// give it.
func isContent(x expr) bool {
	switch x := x.(type) {
	case *filtered:
		return isContent(x.x)
	case slice:
		return isContent(x.of)
	case member:
		of, ok := x.of.(name)
		return ok && x.name == "content" && slices.Contains([]string{"message", "msg", "m"}, of.id)
	}
	return false
}

// macro reads a definition. Its name may be called before it is defined, since calls
// are checked at the end.
func (p *parser) macro() (stmt, error) {
	t, err := p.target()
	if err != nil {
		return nil, err
	}
	p.macros++
	m := &macro{name: t}
	m.body, err = p.inner(func() error {
		if err := p.params(m); err != nil {
			return err
		}
		return p.closeBlock()
	}, "endmacro")
	return m, err
}

// params reads the parameters of a macro.
func (p *parser) params(m *macro) error {
	if err := p.wantOp("("); err != nil {
		return err
	}
	for !p.skipOp(")") {
		if len(m.params) > 0 {
			if err := p.wantOp(","); err != nil {
				return err
			}
		}
		t, err := p.target()
		if err != nil {
			return err
		}
		m.params = append(m.params, t)
		switch {
		case p.skipOp("="):
			x, err := p.expression()
			if err != nil {
				return err
			}
			m.defaults = append(m.defaults, x)
		case len(m.defaults) > 0:
			return p.fail(p.peek(), "parameter %q without a default follows one with", t)
		}
	}
	return nil
}

// callBlock reads a call with a body; the parameters of the body stand before the
// call.
func (p *parser) callBlock(w token) (stmt, error) {
	c := callBlock{line: p.line(w), caller: &macro{name: "caller"}}
	p.assigned["caller"] = true
	p.macros++
	var err error
	c.caller.body, err = p.inner(func() error {
		if p.op("(") {
			if err := p.params(c.caller); err != nil {
				return err
			}
		}
		t := p.peek()
		x, err := p.postfix()
		if err != nil {
			return err
		}
		var ok bool
		if c.call, ok = x.(*call); !ok {
			return p.fail(t, "want a call")
		}
		return p.closeBlock()
	}, "endcall")
	return c, err
}

// filterBlock reads one filter or a chain of them, and the body that they apply to.
func (p *parser) filterBlock(w token) (stmt, error) {
	f := filterBlock{line: p.line(w)}
	var err error
	f.body, err = p.inner(func() (err error) {
		if f.filter, err = p.filter(nil); err == nil && p.op("|") {
			f.filter, err = p.filters(f.filter)
		}
		if err == nil {
			err = p.closeBlock()
		}
		return err
	}, "endfilter")
	return f, err
}

// with reads assignments that hold up to endwith.
func (p *parser) with(w token) (stmt, error) {
	s := with{line: p.line(w)}
	for p.peek().kind != tokCloseBlock {
		if len(s.to) > 0 {
			if err := p.wantOp(","); err != nil {
				return nil, err
			}
		}
		t, err := p.target()
		if err != nil {
			return nil, err
		}
		if err := p.wantOp("="); err != nil {
			return nil, err
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.to, s.values = append(s.to, t), append(s.values, x)
	}
	var err error
	s.body, err = p.block("endwith")
	return s, err
}
