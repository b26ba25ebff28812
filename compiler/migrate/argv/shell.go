package argv

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"shunt/compiler/diag"
)

// Bounds of shell texts. A kernel takes no longer argument, and a script that
// starts a router is a few lines.
const (
	maxShell = 128 << 10
	// maxBrackets bounds open brackets: the parser recurses into them.
	maxBrackets = 200
	// maxNesting bounds scripts in arguments of scripts.
	maxNesting = 8
	// maxVariables bounds the variables of a script.
	maxVariables = 500
	// maxGrowth bounds what substitution makes of an input in all.
	maxGrowth = 2 << 20
)

// variable is what a script knows of a variable: a text, or the elements of an
// array. Its open parts are those of its text.
type variable struct {
	word     word
	elems    []*word
	array    bool
	exported bool
	// lost says that the value is not known although the script sets it.
	lost bool
}

// shell reads one script.
type shell struct {
	*reader
	src   *text
	depth int
	vars  map[string]variable
	// params are the positional parameters behind $0, and known says that they
	// are all of them.
	params []*word
	known  bool
	// zero is $0, nil when it is not known.
	zero *word
	// doubtful is positive inside of what may not run, and inside says what that
	// is.
	doubtful int
	inside   string
	// exportAll is set -a.
	exportAll bool
	found     []candidate
	// files are the here-documents by path.
	files map[string]*text
}

// shellFile reads the input as a script or as arguments alone.
func (r *reader) shellFile() []candidate {
	s := &shell{reader: r, src: fileText(r.name, r.data), vars: make(map[string]variable), files: make(map[string]*text)}
	found := s.script()
	for i := range found {
		if len(s.files) > 0 {
			found[i].files = s.heredocs
		}
	}
	return found
}

func (s *shell) heredocs() map[string]File {
	out := make(map[string]File, len(s.files))
	for path, t := range s.files {
		out[path] = File{Name: s.name, whole: s.data, text: t}
	}
	return out
}

// script parses the source and returns the commands in it that may start a
// router.
func (s *shell) script() []candidate {
	if len(s.src.value) > maxShell {
		s.add(diag.TooLarge, s.src.pos(0), fmt.Sprintf("a shell text may have %d bytes, and this has %d", maxShell, len(s.src.value)))
		return nil
	}
	if at := deepBracket(s.src.value); at >= 0 {
		s.add(diag.TooDeep, s.src.pos(at), fmt.Sprintf("more than %d brackets are open", maxBrackets))
		return nil
	}
	if s.depth > maxNesting {
		s.add(diag.TooDeep, s.src.pos(0), fmt.Sprintf("scripts are nested more than %d deep", maxNesting))
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(s.src.value), "")
	if err != nil {
		s.syntaxError(err)
		return nil
	}
	s.statements(file.Stmts)
	return s.found
}

// deepBracket returns the offset at which too many brackets are open, or -1.
func deepBracket(src string) int {
	depth := 0
	for i := range len(src) {
		switch src[i] {
		case '(', '{', '[':
			if depth++; depth > maxBrackets {
				return i
			}
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return -1
}

func (s *shell) syntaxError(err error) {
	at, text := 0, err.Error()
	if p, ok := errors.AsType[syntax.ParseError](err); ok {
		at, text = int(p.Pos.Offset()), p.Text
	} else if p, ok := errors.AsType[syntax.LangError](err); ok {
		at, text = int(p.Pos.Offset()), "it is not in the language of this shell"
	}
	f := s.add(diag.Syntax, s.src.pos(min(at, len(s.src.value))), "shell syntax: "+text)
	f.Hint = "check the quotes and brackets before this place"
}

// statements goes over commands that follow each other. An option where a command
// should be is one that a broken continuation cut off, unless the input is only
// arguments.
func (s *shell) statements(stmts []*syntax.Stmt) {
	bare := -1 // the candidate that has only arguments
	for i, stmt := range stmts {
		if s.grown > maxGrowth {
			return // Read reports it
		}
		call, ok := stmt.Cmd.(*syntax.CallExpr)
		loose := bare >= 0 && s.found[bare].program == ""
		if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 || s.source(call.Args[0])[0] != '-' && !loose {
			s.statement(stmt)
			bare = -1
			continue
		}
		words := s.fields(call.Args)
		switch {
		case len(words) == 0:
			continue
		case bare >= 0:
		case i > 0 && len(s.found) > 0:
			bare = len(s.found) - 1
		case i == 0 && s.depth == 0:
			s.found = append(s.found, candidate{names: []string{"arguments"}, pos: words[0].at, sure: true})
			bare = len(s.found) - 1
			s.loose(stmts)
		default:
			s.statement(stmt)
			continue
		}
		c := &s.found[bare]
		if c.program != "" {
			f := diag.New(diag.BrokenContinuation, words[0].at, "", fmt.Sprintf("the argument %q starts a command of its own, because the line before it does not end in a backslash", hideLong(string(words[0].buf))))
			f.Hint = "end each line but the last with a backslash and nothing behind it, and put no comment between the lines"
			c.findings.Add(f)
		}
		c.args = append(c.args, words...)
		s.surroundings(c, stmt)
		s.shellTraps(c, call)
	}
}

// loose checks a file of arguments alone for commands. Its lines need no
// continuation, for they cannot be anything else.
func (s *shell) loose(stmts []*syntax.Stmt) {
	for _, stmt := range stmts[1:] {
		call, ok := stmt.Cmd.(*syntax.CallExpr)
		if ok && len(call.Args) > 0 && len(call.Assigns) == 0 && !routerName.MatchString(base(s.source(call.Args[0]))) {
			continue
		}
		f := s.add(diag.NotAnInvocation, s.at(stmt.Pos()), "the input starts with arguments, and this is another command")
		f.Hint = "put the program before its arguments, or leave all commands out"
		return
	}
}

// source is the text of a node as it is written.
func (s *shell) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from >= to || to > len(s.src.value) {
		return "?"
	}
	return s.src.value[from:to]
}

func (s *shell) at(p syntax.Pos) diag.Pos { return s.src.pos(int(p.Offset())) }

// maybe runs f on what runs only sometimes.
func (s *shell) maybe(what string, f func()) {
	before := s.inside
	s.doubtful++
	s.inside = what
	f()
	s.doubtful--
	s.inside = before
}

func (s *shell) statement(stmt *syntax.Stmt) {
	for _, redirect := range stmt.Redirs {
		if redirect.Hdoc != nil {
			s.heredoc(stmt, redirect)
		}
	}
	before := len(s.found)
	s.cmd(stmt.Cmd)
	for i := before; i < len(s.found); i++ {
		s.surroundings(&s.found[i], stmt)
	}
}

// surroundings notes what a statement does around the router.
func (s *shell) surroundings(c *candidate, stmt *syntax.Stmt) {
	note := func(at syntax.Pos, what string) {
		f := diag.New(diag.AroundInvocation, s.at(at), "", what+" is not part of the invocation")
		f.Hint = "keep it where the new router is started, if it is still needed"
		c.findings.Add(f)
	}
	for _, redirect := range stmt.Redirs {
		note(redirect.OpPos, "the redirection "+redirect.Op.String())
	}
	if stmt.Background {
		note(stmt.Semicolon, "running in the background with &")
	}
	if stmt.Negated {
		note(stmt.Position, "the negation with !")
	}
}

// cmd goes into a command.
func (s *shell) cmd(cmd syntax.Command) {
	switch x := cmd.(type) {
	case *syntax.CallExpr:
		s.call(x)
	case *syntax.DeclClause:
		s.declare(x)
	case *syntax.Block:
		s.statements(x.Stmts)
	case *syntax.Subshell:
		vars := maps.Clone(s.vars)
		s.statements(x.Stmts)
		s.vars = vars
	case *syntax.TimeClause:
		if x.Stmt != nil {
			s.statement(x.Stmt)
		}
	case *syntax.BinaryCmd:
		s.binary(x)
	case *syntax.IfClause:
		for ; x != nil; x = x.Else {
			s.maybe("a condition", func() { s.statements(x.Cond); s.statements(x.Then) })
		}
	case *syntax.WhileClause:
		s.maybe("a loop", func() { s.statements(x.Cond); s.statements(x.Do) })
	case *syntax.ForClause:
		if loop, ok := x.Loop.(*syntax.WordIter); ok {
			s.vars[loop.Name.Value] = variable{lost: true}
		}
		s.maybe("a loop", func() { s.statements(x.Do) })
	case *syntax.CaseClause:
		for _, item := range x.Items {
			s.maybe("a condition", func() { s.statements(item.Stmts) })
		}
	case *syntax.FuncDecl:
		params, known := s.params, s.known
		s.params, s.known = nil, false
		s.maybe("a function", func() { s.statement(x.Body) })
		s.params, s.known = params, known
	}
}

// binary goes into two commands with &&, || or | between them.
func (s *shell) binary(x *syntax.BinaryCmd) {
	before := len(s.found)
	s.statement(x.X)
	if x.Op == syntax.OrStmt {
		s.maybe("what runs when another command fails", func() { s.statement(x.Y) })
	} else {
		s.statement(x.Y)
	}
	for i := before; i < len(s.found); i++ {
		f := diag.New(diag.AroundInvocation, s.at(x.OpPos), "", fmt.Sprintf("the command on the other side of %s is not part of the invocation", x.Op))
		f.Hint = "keep it where the new router is started, if it is still needed"
		s.found[i].findings.Add(f)
	}
}

// call reads a simple command: assignments, or a program with its arguments.
func (s *shell) call(x *syntax.CallExpr) {
	if len(x.Args) == 0 {
		for _, a := range x.Assigns {
			s.assign(a, s.exportAll)
		}
		return
	}
	words := s.fields(x.Args)
	if len(words) == 0 {
		return
	}
	switch name := string(words[0].buf); name {
	case "set":
		s.set(words[1:])
		return
	case "shift":
		s.params, s.known = nil, false
		return
	case "unset":
		for _, w := range words[1:] {
			delete(s.vars, string(w.buf))
		}
		return
	case "read", "mapfile", "readarray", "getopts", "printf":
		for _, w := range words[1:] {
			if _, ok := s.vars[string(w.buf)]; ok {
				s.vars[string(w.buf)] = variable{lost: true}
			}
		}
		return
	}
	s.program(x, words)
}

// program reads a command that is no part of the shell.
func (s *shell) program(x *syntax.CallExpr, words []*word) {
	env, own := s.environment(x.Assigns)
	if script, params, ok := shellScript(words); ok {
		s.nested(script, params, own)
		return
	}
	c, ok := s.command(words)
	if !ok {
		return
	}
	c.env = append(append(s.exports(own), env...), c.env...)
	c.names = []string{fmt.Sprintf("line:%d", c.pos.Line), fmt.Sprintf("line:%d:%d", c.pos.Line, c.pos.Column)}
	if s.inside != "" {
		f := diag.New(diag.AroundInvocation, c.pos, "", "the command stands in "+s.inside+", so it may not run or may run with other values")
		f.Hint = "check that this is the command that runs"
		c.findings.Add(f)
	}
	s.shellTraps(&c, x)
	s.found = append(s.found, c)
}

// environment reads the assignments before a command.
func (s *shell) environment(assigns []*syntax.Assign) (env []Env, own map[string]variable) {
	own = make(map[string]variable)
	for _, a := range assigns {
		if a.Value == nil || a.Array != nil {
			continue
		}
		w := s.joined(a.Value)
		own[a.Name.Value] = variable{word: *w, exported: true}
		env = append(env, newEnv(a.Name.Value, string(w.buf), len(w.open) == 0, s.at(a.Pos())))
	}
	return env, own
}

// exports are the variables that the script has exported before, other than
// those that the command sets for itself.
func (s *shell) exports(own map[string]variable) []Env {
	var out []Env
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		v := s.vars[name]
		if _, again := own[name]; v.exported && !again {
			out = append(out, newEnv(name, string(v.word.buf), !v.lost && len(v.word.open) == 0, v.word.at))
		}
	}
	slices.SortStableFunc(out, func(a, b Env) int { return a.Pos.Offset - b.Pos.Offset })
	return out
}

// nested reads a script that a command of this one runs.
func (s *shell) nested(script *word, params []*word, own map[string]variable) {
	vars := own
	for name, v := range s.vars {
		if _, again := own[name]; v.exported && !again {
			vars[name] = v
		}
	}
	sub := s.reader.shell(script.text(), params, vars)
	sub.depth, sub.doubtful, sub.inside, sub.files = s.depth+1, s.doubtful, s.inside, s.files
	s.found = append(s.found, sub.script()...)
}

// shell returns a shell that runs a script with arguments, the first of which
// is $0.
func (r *reader) shell(script *text, params []*word, vars map[string]variable) *shell {
	s := &shell{reader: r, src: script, depth: 1, vars: vars, known: true, files: make(map[string]*text)}
	if len(params) > 0 {
		s.zero, s.params = params[0], params[1:]
	}
	return s
}

// set reads the builtin, which may change the positional parameters.
func (s *shell) set(words []*word) {
	for i, w := range words {
		switch text := string(w.buf); {
		case text == "--":
			s.params, s.known = words[i+1:], s.doubtful == 0
			return
		case text == "-o" || text == "+o":
			return
		case strings.HasPrefix(text, "-"):
			s.exportAll = s.exportAll || strings.Contains(text, "a")
		case strings.HasPrefix(text, "+"):
		default:
			s.params, s.known = words[i:], s.doubtful == 0
			return
		}
	}
}

// declare reads export, readonly, local and their kin.
func (s *shell) declare(x *syntax.DeclClause) {
	exported := x.Variant.Value == "export"
	for _, a := range x.Args {
		if a.Name == nil {
			continue
		}
		if a.Naked {
			if v, ok := s.vars[a.Name.Value]; ok && exported {
				v.exported = true
				s.vars[a.Name.Value] = v
			}
			continue
		}
		s.assign(a, exported || s.exportAll)
	}
}

// assign sets a variable. In what may not run the value is lost.
func (s *shell) assign(a *syntax.Assign, exported bool) {
	name := a.Name.Value
	old, known := s.vars[name]
	if !known && len(s.vars) >= maxVariables {
		s.add(diag.TooLarge, s.at(a.Pos()), fmt.Sprintf("a script may have %d variables, and this has more", maxVariables))
		return
	}
	exported = exported || old.exported
	switch {
	case s.doubtful > 0 && a.Array != nil && a.Append && old.array && !old.lost:
		v := old
		v.elems = s.copied(old.elems)
		for _, e := range a.Array.Elems {
			if e.Value == nil {
				continue
			}
			for _, w := range s.fields([]*syntax.Word{e.Value}) {
				w.leaveOpen("(only in " + s.inside + ")")
				v.elems = append(v.elems, w)
			}
		}
		s.vars[name] = v
	case s.doubtful > 0 || a.Index != nil:
		s.vars[name] = variable{lost: true, exported: exported, word: word{at: s.at(a.Pos())}}
	case a.Array != nil:
		v := variable{array: true, exported: exported, lost: a.Append && old.lost}
		if a.Append {
			v.elems = s.copied(old.elems)
		}
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				v.elems = append(v.elems, s.fields([]*syntax.Word{e.Value})...)
			}
		}
		s.vars[name] = v
	default:
		v := variable{exported: exported, word: word{at: s.at(a.Pos())}}
		if a.Append {
			v.lost = old.lost || old.array
			v.word = old.word
			v.word.builder = builder{buf: slices.Clone(old.word.buf), spans: slices.Clone(old.word.spans)}
		}
		if a.Value != nil {
			w := s.joined(a.Value)
			v.word.open = slices.Clone(v.word.open)
			if !s.grow(w) || !s.grow(&v.word) {
				return
			}
			v.word.addText(w.text(), 0, len(w.buf))
			v.word.inherit(w)
		}
		s.vars[name] = v
	}
}

// copied returns the elements of an array that gets further ones.
func (s *shell) copied(elems []*word) []*word {
	s.grown += wordWeight * len(elems)
	return slices.Clone(elems)
}

// heredoc keeps the file that cat or tee writes from a here-document.
func (s *shell) heredoc(stmt *syntax.Stmt, r *syntax.Redirect) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	var path string
	words := s.fields(call.Args)
	for _, other := range stmt.Redirs {
		if other.Op == syntax.RdrOut || other.Op == syntax.RdrClob {
			path = string(s.joined(other.Word).buf)
		}
	}
	if len(words) == 2 && string(words[0].buf) == "tee" {
		path = string(words[1].buf)
	} else if len(words) == 0 || string(words[0].buf) != "cat" {
		return
	}
	if path == "" {
		return
	}
	start, end := int(r.Hdoc.Pos().Offset()), int(r.Hdoc.End().Offset())
	if start >= end || end > len(s.src.value) {
		return
	}
	// The end may be that of the line that closes the document.
	last := strings.LastIndexByte(s.src.value[start:end], '\n') + 1
	if strings.TrimSpace(s.src.value[start+last:end]) == string(s.joined(r.Word).buf) {
		end = start + last
	}
	s.files[path] = s.src.slice(start, end)
}
