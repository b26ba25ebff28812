package template

import (
	"slices"
	"strconv"
)

// tuple reads an expression, or several between commas. Without choices the
// first word "if" after it belongs to somebody else.
func (p *parser) tuple(choices bool) (expr, error) {
	one := func() (expr, error) {
		if choices {
			return p.expression()
		}
		return p.or()
	}
	x, err := one()
	if err != nil || !p.op(",") {
		return x, err
	}
	items := []expr{x}
	for p.skipOp(",") {
		if !p.startsExpression() {
			break
		}
		if x, err = one(); err != nil {
			return nil, err
		}
		items = append(items, x)
	}
	return listExpr{items, tuple}, nil
}

// startsExpression is false where a trailing comma ends a tuple.
func (p *parser) startsExpression() bool {
	t := p.peek()
	switch t.kind {
	case tokEnd, tokClosePrint, tokCloseBlock:
		return false
	case tokOp:
		return t.text != ")" && t.text != "]" && t.text != "}" && t.text != "="
	}
	return true
}

// expression reads x if test else other, and everything that binds tighter.
func (p *parser) expression() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.or()
	for err == nil && p.skipWord("if") {
		c := choice{x: x}
		if c.test, err = p.or(); err == nil && p.skipWord("else") {
			c.other, err = p.expression()
		}
		x = c
	}
	return x, err
}

// or, and, not, compare, sum, concat, product, power and unary are the levels of
// precedence, from the loosest on.
func (p *parser) or() (expr, error) {
	x, err := p.and()
	for err == nil && p.skipWord("or") {
		l := logic{or: true, left: x}
		l.right, err = p.and()
		x = l
	}
	return x, err
}

func (p *parser) and() (expr, error) {
	x, err := p.not()
	for err == nil && p.skipWord("and") {
		l := logic{left: x}
		l.right, err = p.not()
		x = l
	}
	return x, err
}

func (p *parser) not() (expr, error) {
	if !p.word("not") {
		return p.compare()
	}
	p.next()
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.not()
	return not{x}, err
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

// Comparisons chain: a < b < c holds if both do.
func (p *parser) compare() (expr, error) {
	x, err := p.sum()
	c := compare{first: x}
	for err == nil {
		op := ""
		switch t := p.peek(); {
		case t.kind == tokOp && slices.Contains(comparisons, t.text):
			op = t.text
			p.next()
		case p.skipWord("in"):
			op = "in"
		case p.word("not") && p.tokens[p.at+1].kind == tokName && p.tokens[p.at+1].text == "in":
			op = "not in"
			p.at += 2
		default:
			if c.ops == nil {
				return x, nil
			}
			return c, nil
		}
		var y expr
		y, err = p.sum()
		c.ops, c.rest = append(c.ops, op), append(c.rest, y)
	}
	return nil, err
}

// chain reads operands of the level below with operators between them.
func (p *parser) chain(below func() (expr, error), ops ...string) (expr, error) {
	x, err := below()
	for err == nil && p.peek().kind == tokOp && slices.Contains(ops, p.peek().text) {
		b := binary{op: p.next().text, left: x}
		b.right, err = below()
		x = b
	}
	return x, err
}

func (p *parser) sum() (expr, error)     { return p.chain(p.concat, "+", "-") }
func (p *parser) concat() (expr, error)  { return p.chain(p.product, "~") }
func (p *parser) product() (expr, error) { return p.chain(p.power, "*", "/", "//", "%") }
func (p *parser) power() (expr, error)   { return p.chain(p.filteredUnary, "**") }

// A power takes operands with their filters; both sides group to the left, which is
// where Jinja differs from Python.
func (p *parser) filteredUnary() (expr, error) { return p.unary(true) }

// unary reads a sign and what it stands before. Filters and tests apply to the
// result with its sign.
func (p *parser) unary(filters bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var x expr
	var err error
	switch {
	case p.skipOp("-"):
		x, err = p.unary(false)
		x = negate{x}
	case p.skipOp("+"):
		x, err = p.unary(false)
		x = plus{x}
	default:
		x, err = p.postfix()
	}
	if err == nil && filters {
		x, err = p.filtersAndTests(x)
	}
	return x, err
}

// filtersAndTests reads | filter, is test, and calls of their results.
func (p *parser) filtersAndTests(x expr) (expr, error) {
	var err error
	for err == nil {
		switch {
		case p.op("|"):
			x, err = p.filters(x)
		case p.word("is"):
			x, err = p.test(x)
		case p.op("("):
			return nil, p.fail(p.peek(), "a call of a filtered value is not supported")
		default:
			return x, nil
		}
	}
	return nil, err
}

// filters reads | filter as often as it stands there.
func (p *parser) filters(x expr) (*filtered, error) {
	var f *filtered
	for p.skipOp("|") {
		var err error
		if f, err = p.filter(x); err != nil {
			return nil, err
		}
		x = f
	}
	return f, nil
}

// filter reads a name and arguments. An unknown filter ends the compilation, not the
// first rendering that meets it.
func (p *parser) filter(x expr) (*filtered, error) {
	t, err := p.want(tokName, "the name of a filter")
	if err != nil {
		return nil, err
	}
	f := &filtered{x: x, name: t.text, run: filterNamed(t.text)}
	if f.run == nil {
		return nil, p.fail(t, "filter %s is not supported", t)
	}
	if p.op("(") {
		f.args, err = p.arguments()
	}
	if err == nil {
		err = p.checkNamed(t, f.args)
	}
	return f, err
}

// checkNamed refuses a filter or test that is named in a string and unknown.
func (p *parser) checkNamed(t token, a arguments) error {
	position := -1
	switch t.text {
	case "map", "select", "reject":
		position = 0
	case "selectattr", "rejectattr":
		position = 1
	}
	if position < 0 || position >= len(a.values)-len(a.names) {
		return nil
	}
	l, ok := a.values[position].(literal)
	switch {
	case !ok || l.v.kind != text:
		return p.fail(t, "%s by a name that is not written out is not supported", t)
	case t.text == "map" && filterNamed(l.v.str) == nil:
		return p.fail(t, "filter %q is not supported", l.v.str)
	case t.text != "map" && testNamed(l.v.str) == nil:
		return p.fail(t, "test %q is not supported", l.v.str)
	}
	return nil
}

// test reads what follows "is". An argument may stand without parentheses, if it
// begins with something that no operator begins with.
func (p *parser) test(x expr) (expr, error) {
	p.next()
	s := tested{x: x, not: p.skipWord("not")}
	t, err := p.want(tokName, "the name of a test")
	if err != nil {
		return nil, err
	}
	s.name, s.run = t.text, testNamed(t.text)
	if s.run == nil {
		return nil, p.fail(t, "test %s is not supported", t)
	}
	switch n := p.peek(); {
	case p.op("("):
		s.args, err = p.arguments()
	case n.kind == tokString, n.kind == tokInt, n.kind == tokFloat, p.op("["), p.op("{"),
		n.kind == tokName && !slices.Contains([]string{"else", "or", "and", "if", "is", "not", "in", "recursive"}, n.text):
		var arg expr
		arg, err = p.postfix()
		s.args.values = []expr{arg}
	case p.word("is"):
		err = p.fail(n, "a test of a test is not supported")
	}
	return s, err
}

// postfix reads a primary expression with members, items and calls.
func (p *parser) postfix() (expr, error) {
	x, err := p.primary()
	for err == nil {
		switch {
		case p.skipOp("."):
			var t token
			if t = p.peek(); t.kind != tokInt {
				t, err = p.want(tokName, "a name")
			}
			if err != nil {
				return nil, err
			}
			if t.kind == tokInt {
				p.next()
				n, _ := strconv.ParseInt(t.text, 10, 64)
				x = item{x, literal{Int(n)}}
				continue
			}
			x = member{x, t.text, true}
			if p.op("(") && !isMethod(t.text) {
				return nil, p.fail(t, "method %s is not supported", t)
			}
		case p.skipOp("["):
			x, err = p.subscript(x)
		case p.op("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

// call reads the arguments of a call. Only names and attributes can be called; the
// names are checked when it is known which of them the template sets.
func (p *parser) call(x expr) (expr, error) {
	t := p.peek()
	switch f := x.(type) {
	case name:
		p.calls = append(p.calls, token{tokName, f.id, p.tokens[p.at-1].pos})
	case member:
	default:
		return nil, p.fail(t, "a call of this is not supported")
	}
	args, err := p.arguments()
	return &call{x, args}, err
}

// arguments reads what stands between parentheses.
func (p *parser) arguments() (arguments, error) {
	var a arguments
	p.next()
	for first := true; !p.skipOp(")"); first = false {
		if !first {
			if err := p.wantOp(","); err != nil {
				return a, err
			}
			if p.skipOp(")") {
				break
			}
		}
		if p.op("*") || p.op("**") {
			return a, p.fail(p.peek(), "unpacking of arguments is not supported")
		}
		t := p.peek()
		if t.kind == tokName && p.tokens[p.at+1].kind == tokOp && p.tokens[p.at+1].text == "=" {
			if slices.Contains(a.names, t.text) {
				return a, p.fail(t, "argument %s stands twice", t)
			}
			p.at += 2
			a.names = append(a.names, t.text)
		} else if len(a.names) > 0 {
			return a, p.fail(t, "an argument without a name follows one with")
		}
		x, err := p.expression()
		if err != nil {
			return a, err
		}
		a.values = append(a.values, x)
	}
	return a, nil
}

// subscript reads the inside of x[...].
func (p *parser) subscript(x expr) (expr, error) {
	var parts [3]expr
	colons := 0
	for !p.op("]") {
		if p.skipOp(":") {
			if colons++; colons > 2 {
				return nil, p.unexpected()
			}
			continue
		}
		if parts[colons] != nil {
			return nil, p.unexpected()
		}
		y, err := p.expression()
		if err != nil {
			return nil, err
		}
		parts[colons] = y
	}
	if colons > 0 {
		p.next()
		return slice{x, parts[0], parts[1], parts[2]}, nil
	}
	if parts[0] == nil {
		return nil, p.unexpected()
	}
	p.next()
	if l, ok := parts[0].(literal); ok && l.v.kind == text {
		return member{x, l.v.str, false}, nil
	}
	return item{x, parts[0]}, nil
}

// primary reads a literal, a name, or something in brackets.
func (p *parser) primary() (expr, error) {
	t := p.next()
	switch t.kind {
	case tokString:
		s := t.text
		for p.peek().kind == tokString { // neighbours are one string
			s += p.next().text
		}
		return literal{String(s)}, nil
	case tokInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil || len(t.text) > 1 && t.text[0] == '0' {
			return nil, p.fail(t, "number %s is not supported", t.text)
		}
		return literal{Int(n)}, nil
	case tokFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.fail(t, "number %s is not supported", t.text)
		}
		return literal{floatOf(f)}, nil
	case tokName:
		return p.named(t)
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			items, err := p.items("]")
			return listExpr{items, plainList}, err
		case "{":
			return p.dict()
		}
	}
	return nil, p.fail(t, "unexpected %s", t)
}

// named turns the words for constants into values, in both spellings.
func (p *parser) named(t token) (expr, error) {
	switch t.text {
	case "true", "True":
		return literal{Bool(true)}, nil
	case "false", "False":
		return literal{Bool(false)}, nil
	case "none", "None":
		return literal{None()}, nil
	case "varargs", "kwargs", "self", "super":
		return nil, p.fail(t, "%s is not supported", t)
	case "and", "or", "not", "in", "is", "if", "else", "elif":
		return nil, p.fail(t, "unexpected %s", t)
	}
	return name{t.text}, nil
}

// Parentheses hold an expression, or a tuple if there is a comma or nothing.
func (p *parser) parenthesis() (expr, error) {
	if p.skipOp(")") {
		return listExpr{nil, tuple}, nil
	}
	x, err := p.tuple(true)
	if err == nil {
		err = p.wantOp(")")
	}
	return x, err
}

// items reads expressions between commas up to a closing mark.
func (p *parser) items(end string) ([]expr, error) {
	var items []expr
	for !p.skipOp(end) {
		if len(items) > 0 {
			if err := p.wantOp(","); err != nil {
				return nil, err
			}
			if p.skipOp(end) {
				break
			}
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, x)
	}
	return items, nil
}

// dict reads a literal dict after its brace.
func (p *parser) dict() (expr, error) {
	var d dictExpr
	for !p.skipOp("}") {
		if len(d.keys) > 0 {
			if err := p.wantOp(","); err != nil {
				return nil, err
			}
			if p.skipOp("}") {
				break
			}
		}
		k, err := p.expression()
		if err == nil {
			err = p.wantOp(":")
		}
		if err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, k), append(d.values, v)
	}
	return d, nil
}
