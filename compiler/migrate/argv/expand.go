package argv

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"shunt/compiler/diag"
)

// fields expands words as a shell does and splits what is not quoted.
func (s *shell) fields(words []*syntax.Word) []*word {
	var out []*word
	for _, w := range words {
		e := &expansion{shell: s, split: true}
		e.start(s.at(w.Pos()))
		for _, part := range w.Parts {
			e.part(part, false)
		}
		e.finish()
		out = append(out, e.out...)
	}
	return out
}

// joined expands a word without splitting it, as the right side of an
// assignment.
func (s *shell) joined(w *syntax.Word) *word {
	e := &expansion{shell: s}
	e.start(s.at(w.Pos()))
	for _, part := range w.Parts {
		e.part(part, false)
	}
	return e.cur
}

// expansion makes fields of one word.
type expansion struct {
	*shell
	split bool
	cur   *word
	out   []*word
}

func (e *expansion) start(at diag.Pos) { e.cur = &word{at: at} }

// finish ends the current field, if there is one.
func (e *expansion) finish() {
	if e.cur.some || len(e.cur.buf) > 0 {
		e.out = append(e.out, e.cur)
	}
}

// next ends the current field and begins another at a place.
func (e *expansion) next(at diag.Pos) {
	e.finish()
	e.start(at)
}

func (e *expansion) part(p syntax.WordPart, quoted bool) {
	switch x := p.(type) {
	case *syntax.Lit:
		e.literal(int(x.Pos().Offset()), int(x.End().Offset()), quoted)
	case *syntax.SglQuoted:
		e.cur.some = true
		from := int(x.Left.Offset()) + 1
		if x.Dollar {
			e.ansi(from+1, int(x.Right.Offset()))
		} else {
			e.raw(from, int(x.Right.Offset()))
		}
	case *syntax.DblQuoted:
		// "$@" without parameters is no field at all.
		if len(x.Parts) != 1 || !isAll(x.Parts[0]) {
			e.cur.some = true
		}
		for _, inner := range x.Parts {
			e.part(inner, true)
		}
	case *syntax.ParamExp:
		e.param(x, quoted)
	default:
		e.leave(p, e.source(p))
	}
}

// isAll reports whether a part is $@ or an array with all its elements.
func isAll(p syntax.WordPart) bool {
	x, ok := p.(*syntax.ParamExp)
	if !ok {
		return false
	}
	return x.Param != nil && x.Param.Value == "@" || isIndex(x, "@")
}

func isIndex(x *syntax.ParamExp, index string) bool {
	w, ok := x.Index.(*syntax.Word)
	return ok && w.Lit() == index
}

// raw adds a part of the source as it is.
func (e *expansion) raw(from, to int) {
	if to > from && to <= len(e.src.value) {
		e.cur.addText(e.src, from, to)
	}
}

// literal adds a part of the source without its backslashes.
func (e *expansion) literal(from, to int, quoted bool) {
	to = min(to, len(e.src.value))
	if to > from && e.src.value[to-1] == '\r' && (to == len(e.src.value) || e.src.value[to] == '\n') {
		to-- // the end of a line in the manner of Windows
	}
	start := from
	for i := from; i < to; i++ {
		if e.src.value[i] != '\\' || i+1 >= to {
			continue
		}
		next := e.src.value[i+1]
		if quoted && strings.IndexByte("$`\"\\\n", next) < 0 {
			continue
		}
		e.raw(start, i)
		start = i + 1
		i++
		switch {
		case next == '\n':
			start = i + 1
		case next == '\r' && i+1 < to && e.src.value[i+1] == '\n':
			start = i + 2
		}
	}
	e.raw(start, to)
}

// ansi adds the text between $' and ' with the escapes of C.
func (e *expansion) ansi(from, to int) {
	for i := from; i < to; {
		if e.src.value[i] != '\\' || i+1 >= to {
			e.raw(i, i+1)
			i++
			continue
		}
		text, size := unescapeC(e.src.value[i:to])
		e.cur.addFixed(text, e.src.pos(i))
		i += size
	}
}

// leave adds what has no value as it is written.
func (e *expansion) leave(n syntax.Node, name string) {
	e.raw(int(n.Pos().Offset()), int(n.End().Offset()))
	e.cur.leaveOpen(name)
}

// note says something about the word at hand.
func (e *expansion) note(code diag.Code, at diag.Pos, message, hint string) {
	if len(e.cur.notes) >= maxNotes {
		return
	}
	e.cur.notes.Add(diag.New(code, at, "", message)).Hint = hint
}

// inheritPart takes over what is open in a part of another word.
func (w *word) inheritPart(from *word, part string) {
	for _, name := range from.open {
		if strings.Contains(part, name) {
			w.leaveOpen(name)
		}
	}
	if len(w.notes) < maxNotes {
		w.notes = append(w.notes, from.notes...)
	}
}

// param expands a parameter.
func (e *expansion) param(x *syntax.ParamExp, quoted bool) {
	name := ""
	if x.Param != nil {
		name = x.Param.Value
	}
	plain := !x.Excl && !x.Length && !x.Width && !x.IsSet && x.Slice == nil && x.Repl == nil && x.Names == 0 &&
		x.NestedParam == nil && x.Flags == nil && len(x.Modifiers) == 0
	all := isIndex(x, "@") || isIndex(x, "*")
	switch {
	case !plain || name == "" || x.Index != nil && !all:
		e.leave(x, e.source(x))
		return
	case name == "@" || name == "*":
		e.all(x, e.params, e.known, quoted)
		return
	}
	v, ok := e.lookup(name)
	if all && ok && v.array {
		e.all(x, v.elems, !v.lost, quoted)
		return
	}
	if x.Exp != nil && !e.alternative(x, &v, &ok, quoted) {
		return
	}
	if !ok || v.lost || v.array {
		e.leave(x, name)
		return
	}
	e.value(&v.word, quoted)
}

// alternative handles ${NAME:-word} and its kin. It reports whether the value of
// the variable is to be used after all.
func (e *expansion) alternative(x *syntax.ParamExp, v *variable, ok *bool, quoted bool) bool {
	empty := *ok && len(v.word.buf) == 0 && !v.lost
	switch x.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		nullCounts := x.Exp.Op == syntax.DefaultUnsetOrNull || x.Exp.Op == syntax.AssignUnsetOrNull
		if *ok && (!empty || !nullCounts) {
			return true
		}
		if !*ok {
			e.note(diag.DefaultTaken, e.at(x.Pos()), fmt.Sprintf("%s has its default, for nothing in this input sets $%s", hideLong(e.source(x)), x.Param.Value),
				"check what the variable has where the router runs")
		}
		if x.Exp.Word == nil {
			return false
		}
		for _, part := range x.Exp.Word.Parts {
			e.alternativePart(part, quoted)
		}
		if x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull {
			e.vars[x.Param.Value] = variable{word: *e.joined(x.Exp.Word), lost: e.doubtful > 0}
		}
		return false
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return true
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if *ok && !v.lost {
			if x.Exp.Word != nil && (!empty || x.Exp.Op == syntax.AlternateUnset) {
				for _, part := range x.Exp.Word.Parts {
					e.alternativePart(part, quoted)
				}
			}
			return false
		}
	}
	e.leave(x, e.source(x))
	return false
}

// alternativePart expands a part of a default, whose blanks split it outside of
// quotes.
func (e *expansion) alternativePart(part syntax.WordPart, quoted bool) {
	if _, lit := part.(*syntax.Lit); !lit || quoted || !e.split {
		e.part(part, quoted)
		return
	}
	inner := &expansion{shell: e.shell}
	inner.start(e.at(part.Pos()))
	inner.part(part, false)
	e.value(inner.cur, false)
}

// lookup finds a variable in the script or in what the caller knows.
func (e *expansion) lookup(name string) (variable, bool) {
	if v, ok := e.vars[name]; ok {
		return v, true
	}
	if name == "0" && e.zero != nil {
		return variable{word: *e.zero}, true
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' && e.known {
		if i := int(name[0] - '1'); i < len(e.params) {
			return variable{word: *e.params[i]}, true
		}
		return variable{}, true
	}
	if value, ok := e.options.Vars[name]; ok {
		v := variable{}
		v.word.addFixed(value, diag.Pos{})
		return v, true
	}
	return variable{}, false
}

// all expands to several fields, of which the first and the last join what
// stands next to them.
func (e *expansion) all(x *syntax.ParamExp, elems []*word, known, quoted bool) {
	if !known {
		e.leave(x, e.source(x))
		return
	}
	for i, w := range elems {
		if e.grown > maxGrowth {
			return
		}
		if i > 0 {
			e.next(w.at)
		} else if len(e.cur.buf) == 0 && !e.cur.some {
			e.cur.at = w.at
		}
		if quoted {
			e.cur.some = true
			e.quotedValue(w)
		} else {
			e.value(w, false)
		}
	}
}

func (e *expansion) quotedValue(v *word) {
	if !e.grow(v) {
		return
	}
	e.cur.addText(v.text(), 0, len(v.buf))
	e.cur.inherit(v)
}

// value adds the value of a variable, split at blanks unless it is quoted.
func (e *expansion) value(v *word, quoted bool) {
	if quoted || !e.split {
		e.quotedValue(v)
		return
	}
	if !e.grow(v) {
		return
	}
	t := v.text()
	for i := 0; i < len(t.value) && e.grown <= maxGrowth; {
		e.grown += wordWeight // a field of its own
		j := i
		for j < len(t.value) && !isBlank(t.value[j]) {
			j++
		}
		if j > i {
			if len(e.cur.buf) == 0 && !e.cur.some {
				if at := t.pos(i); at.Known() {
					e.cur.at = at
				}
			}
			e.cur.addText(t, i, j)
			e.cur.inheritPart(v, t.value[i:j])
		}
		if i = j; i < len(t.value) {
			for i < len(t.value) && isBlank(t.value[i]) {
				i++
			}
			e.next(e.cur.at)
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// shellTraps notes what a shell makes of the words of a command that is easily
// overlooked.
func (s *shell) shellTraps(c *candidate, x *syntax.CallExpr) {
	for _, w := range x.Args {
		for i, part := range w.Parts {
			lit, ok := part.(*syntax.Lit)
			if !ok {
				continue
			}
			s.trap(c, w, lit, i)
		}
	}
	for i := 1; i < len(x.Args); i++ {
		from, to := int(x.Args[i-1].End().Offset()), int(x.Args[i].Pos().Offset())
		if from > to || !strings.Contains(s.src.value[from:to], "#") {
			continue
		}
		f := diag.New(diag.BrokenContinuation, s.at(x.Args[i].Pos()), "", fmt.Sprintf("a comment stands before the argument %q, so the command ends before it", hideLong(s.source(x.Args[i]))))
		f.Hint = "move the comment above the command"
		c.findings.Add(f)
	}
	if n := len(c.args); n > 0 {
		last := c.args[n-1]
		if text := string(last.buf); text != "" && strings.Trim(text, " \t") == "" && !last.some {
			f := diag.New(diag.BrokenContinuation, last.at, "", "a blank follows the backslash, so the command ends on this line")
			f.Hint = "remove the blanks at the end of the line"
			c.findings.Add(f)
			c.args = c.args[:n-1]
		}
	}
}

func (s *shell) trap(c *candidate, w *syntax.Word, lit *syntax.Lit, i int) {
	text := lit.Value
	var what, hint string
	switch {
	case i == 0 && strings.HasPrefix(text, "~"):
		what, hint = "~ becomes the home directory of whoever runs the command", "write the whole path"
	case strings.Contains(text, "{") && i+1 < len(w.Parts) && isQuote(w.Parts[i+1]):
		what, hint = "the shell removes the quotes inside the braces", "put the whole value into single quotes"
	case strings.Contains(text, "{") && strings.Contains(text, "}") && (strings.Contains(text, ",") || strings.Contains(text, "..")):
		what, hint = "bash makes several words of what stands in braces", "put the value into single quotes"
	case strings.ContainsAny(strings.ReplaceAll(text, `\`, ""), "*?") && !strings.Contains(text, `\`):
		what, hint = "the shell replaces a word with * or ? by the files that match it", "put the value into single quotes"
	default:
		return
	}
	f := diag.New(diag.ShellTrap, s.at(lit.Pos()), "", fmt.Sprintf("%s in %q", what, hideLong(s.source(w))))
	f.Hint = hint
	c.findings.Add(f)
}

func isQuote(p syntax.WordPart) bool {
	switch p.(type) {
	case *syntax.SglQuoted, *syntax.DblQuoted:
		return true
	}
	return false
}
