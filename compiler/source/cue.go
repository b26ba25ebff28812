package source

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"
	"github.com/cockroachdb/apd/v3"

	"shunt/compiler/diag"
)

// codeHint names the way out of the restriction to data.
const codeHint = "write plain values, or pass --allow-cue-code to evaluate the file as a program in a limited child process"

// isData reports whether a CUE file holds only data. A file that is neither
// data nor code, because its syntax is wrong, counts as data: reading it as
// such reports the mistake at its place.
func isData(f *file) bool {
	r := &reader{files: []*file{f}}
	b := &builder{reader: r, file: f}
	b.cue()
	for i := range r.findings {
		if r.findings[i].Code == diag.CodeNotAllowed {
			return false
		}
	}
	return true
}

// cue reads the file as CUE that is only data: comments, a package clause,
// objects, lists, literals and negative numbers. Nothing is evaluated.
func (b *builder) cue() *Node {
	if !b.scan() {
		return nil
	}
	parsed, err := parser.ParseFile(b.file.name, b.file.data)
	if err != nil {
		b.cueErrors(err)
		return nil
	}
	root := b.node(Struct, 0, "")
	o := &object{b: b, node: root}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.CommentGroup:
		case *ast.Package:
			b.inPackage(d)
		case *ast.EmbedDecl:
			s, ok := d.Expr.(*ast.StructLit)
			if !ok {
				b.code(d.Pos(), nounOf(d.Expr))
				return nil
			}
			b.decls(o, s.Elts)
		default:
			b.decls(o, []ast.Decl{d})
		}
	}
	if b.stopped {
		return nil
	}
	for _, d := range parsed.Decls {
		switch d.(type) {
		case *ast.EmbedDecl, *ast.Field:
			// The first field, or the brace of an object, perhaps empty.
			root.at = b.place(d.Pos().Offset())
			return root
		}
	}
	b.empty()
	return nil
}

// inPackage holds the package clauses of all CUE inputs to one name, as their
// evaluation would.
func (b *builder) inPackage(p *ast.Package) {
	at := b.place(p.Name.Pos().Offset())
	switch b.pkg {
	case "":
		b.pkg, b.pkgAt = p.Name.Name, at
	case p.Name.Name:
	default:
		f := b.add(diag.Conflict, b.position(at), fmt.Sprintf("package %s here and %s elsewhere", p.Name.Name, b.pkg))
		f.Hint = "CUE files that are used together belong to one package"
		f.Related = []diag.Related{{Pos: b.position(b.pkgAt), Message: "the other package is here"}}
	}
}

// scan goes over the tokens before the parser does. It bounds the nesting,
// which the parser does not for "a: a: a:", and refuses every token that data
// cannot have, so that the parser never meets an expression.
func (b *builder) scan() bool {
	f := token.NewFile(b.file.name, -1, len(b.file.data))
	var s scanner.Scanner
	// The parser reports what the scanner cannot read, with better text.
	s.Init(f, b.file.data, func(token.Pos, string, []any) {}, 0)
	var n nesting
	negative, imports := false, false
	for !b.stopped {
		pos, tok, text := s.Scan()
		if negative && tok != token.INT && tok != token.FLOAT {
			return b.code(pos, "an expression")
		}
		if imports && (tok == token.STRING || tok == token.LPAREN) {
			return b.code(pos, "an import")
		}
		negative, imports = tok == token.SUB, tok == token.IDENT && text == "import"
		switch tok {
		case token.EOF:
			return true
		case token.IDENT:
			if strings.HasPrefix(text, "#") || strings.HasPrefix(text, "_") {
				return b.code(pos, "the definition or hidden field "+text)
			}
		case token.SUB, token.COLON, token.COMMA, token.LBRACE, token.LBRACK, token.RBRACE, token.RBRACK,
			token.STRING, token.INT, token.FLOAT, token.TRUE, token.FALSE, token.NULL, token.COMMENT, token.ILLEGAL:
		default:
			return b.code(pos, nounOfToken(tok, text))
		}
		n.token(tok)
		b.deeper(n.depth+1, pos.Offset())
	}
	return false
}

// nesting counts how deep values are nested, from tokens alone. A colon opens
// the value of a field until the next comma, and a bracket opens an object or a
// list, which is the same level where it directly follows a colon.
type nesting struct {
	depth int
	// open has the levels that each open bracket, and each colon inside it,
	// added; the first element is the file.
	open  []struct{ bracket, colons int }
	colon bool
}

func (n *nesting) token(t token.Token) {
	if n.open == nil {
		n.open = append(n.open, struct{ bracket, colons int }{})
	}
	top := &n.open[len(n.open)-1]
	switch t {
	case token.COLON:
		top.colons++
		n.depth++
	case token.COMMA:
		n.depth -= top.colons
		top.colons = 0
	case token.LBRACE, token.LBRACK:
		level := 1
		if n.colon {
			level = 0
		}
		n.depth += level
		n.open = append(n.open, struct{ bracket, colons int }{bracket: level})
	case token.RBRACE, token.RBRACK:
		if len(n.open) > 1 {
			n.depth -= top.bracket + top.colons
			n.open = n.open[:len(n.open)-1]
		}
	}
	n.colon = t == token.COLON
}

// code reports that the file is a program. It returns false.
func (b *builder) code(pos token.Pos, what string) bool {
	b.stop(diag.CodeNotAllowed, pos.Offset(), "the CUE file holds more than data: "+what).Hint = codeHint
	return false
}

// nounOfToken says what a token is that data does not have.
func nounOfToken(t token.Token, text string) string {
	switch t {
	case token.ATTRIBUTE:
		return "the attribute " + text
	case token.INTERPOLATION:
		return "a string with an interpolation"
	case token.FOR, token.IF, token.LET, token.TRY:
		return "a comprehension or clause, " + t.String()
	case token.ELLIPSIS:
		return "an open object or list, ..."
	case token.OPTION, token.NOT:
		return "an optional or required field, " + t.String()
	case token.LPAREN:
		return "a call or an expression in parentheses"
	case token.PERIOD:
		return "a selector"
	}
	return "the operator " + t.String()
}

// nounOf says what an expression is that data does not have.
func nounOf(e ast.Node) string {
	switch e := e.(type) {
	case *ast.ImportDecl:
		return "an import"
	case *ast.Ident:
		return "the reference " + e.Name
	case *ast.IndexExpr, *ast.SliceExpr:
		return "an index"
	case *ast.ListLit:
		return "a list where an object is expected"
	case *ast.BasicLit:
		return "a value where a field is expected"
	}
	return "an expression"
}

// decls adds declarations to an object. A field that is given twice is unified,
// as CUE does.
func (b *builder) decls(o *object, decls []ast.Decl) {
	for _, d := range decls {
		if b.stopped {
			return
		}
		f, ok := d.(*ast.Field)
		if !ok {
			if e, embed := d.(*ast.EmbedDecl); embed {
				b.code(d.Pos(), nounOf(e.Expr))
			} else if _, comment := d.(*ast.CommentGroup); !comment {
				b.code(d.Pos(), nounOf(d))
			}
			continue
		}
		name, isIdent, err := ast.LabelName(f.Label)
		if _, literal := f.Label.(*ast.BasicLit); err != nil || !isIdent && !literal {
			b.code(f.Pos(), "a computed field name")
			return
		}
		b.path = append(b.path, name)
		v := b.expr(f.Value)
		if v == nil {
			return
		}
		if i := o.find(name); i >= 0 {
			old := &o.node.Fields[i]
			old.Value = b.unify(old.Value, v, b.pointer())
		}
		b.path = b.path[:len(b.path)-1]
		if o.find(name) >= 0 {
			continue
		}
		o.append(Field{Name: name, Value: v, at: b.place(f.Label.Pos().Offset())})
	}
}

// pointer is the JSON pointer of where the reader is.
func (b *builder) pointer() string {
	pointer := ""
	for _, token := range b.path {
		pointer = Join(pointer, token)
	}
	return pointer
}

// expr returns the node of a value, and nil when it is not data.
func (b *builder) expr(e ast.Expr) *Node {
	offset := e.Pos().Offset()
	switch e := e.(type) {
	case *ast.StructLit:
		n := b.node(Struct, offset, "")
		b.decls(&object{b: b, node: n}, e.Elts)
		return n
	case *ast.ListLit:
		n := b.node(List, offset, "")
		for i, c := range e.Elts {
			b.path = append(b.path, strconv.Itoa(i))
			v := b.expr(c)
			if v == nil {
				return nil
			}
			b.path = b.path[:len(b.path)-1]
			n.Elems = append(n.Elems, v)
		}
		return n
	case *ast.UnaryExpr:
		if lit, ok := e.X.(*ast.BasicLit); ok && e.Op == token.SUB {
			n := b.literal(lit, offset)
			if n != nil && n.Kind == Number {
				n.Text = "-" + n.Text
				return n
			}
		}
	case *ast.BasicLit:
		return b.literal(e, offset)
	}
	b.code(e.Pos(), nounOf(e))
	return nil
}

func (b *builder) literal(l *ast.BasicLit, offset int) *Node {
	switch l.Kind {
	case token.NULL:
		return b.node(Null, offset, "null")
	case token.TRUE, token.FALSE:
		return b.node(Bool, offset, l.Kind.String())
	case token.INT, token.FLOAT:
		text, err := decimal(l.Value)
		if err != nil {
			b.stop(diag.Syntax, offset, "CUE syntax: "+err.Error())
			return nil
		}
		return b.node(Number, offset, text)
	}
	if strings.HasPrefix(strings.TrimLeft(l.Value, "#"), "'") {
		b.stop(diag.WrongType, offset, "a value in single quotes is bytes").Hint = "write strings in double quotes"
		return nil
	}
	text, err := literal.Unquote(l.Value)
	if err != nil {
		b.stop(diag.Syntax, offset, "CUE syntax: "+err.Error())
		return nil
	}
	return b.node(String, offset, text)
}

// decimal writes a CUE number as a JSON number. A plain one keeps its digits;
// separators, bases and multipliers are resolved, for in CUE, unlike in YAML,
// they mean one thing only.
func decimal(text string) (string, error) {
	if plainNumber.MatchString(text) {
		return text, nil
	}
	var info literal.NumInfo
	if err := literal.ParseNum(text, &info); err != nil {
		return "", err
	}
	var d apd.Decimal
	if err := info.Decimal(&d); err != nil {
		return "", err
	}
	if info.IsInt() && d.Exponent >= 0 && d.Exponent <= 400 {
		return d.Text('f'), nil
	}
	out := d.Text('G')
	if !strings.ContainsAny(out, ".E") {
		out += ".0"
	}
	if !plainNumber.MatchString(out) {
		return "", fmt.Errorf("number %q is not supported", text)
	}
	return out, nil
}

// maxSyntaxErrors bounds the syntax errors of one file, since after the first
// few the rest follow from them.
const maxSyntaxErrors = 10

// cueErrors turns the parser's errors into findings.
func (b *builder) cueErrors(err error) {
	b.stopped = true
	list := errors.Errors(errors.Sanitize(errors.Promote(err, "")))
	for i, e := range list {
		if i == maxSyntaxErrors {
			break
		}
		b.fail(diag.Syntax, b.file.pos(e.Position().Offset()), "CUE syntax: "+cueText(e))
	}
}

// cueText is the text of one CUE error with its causes, on one line and without
// positions.
func cueText(e errors.Error) string {
	text := errors.StringWithConfig(e, &errors.Config{OmitPath: true})
	return strings.Join(strings.Fields(text), " ")
}
