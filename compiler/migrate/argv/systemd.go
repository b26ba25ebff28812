package argv

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"shunt/compiler/diag"
)

// maxUnit bounds units, which are a few lines.
const maxUnit = 256 << 10

// unit is what counts of a unit of systemd.
type unit struct {
	*reader
	whole   *text
	section string
	// starts are the values of ExecStart that an empty one did not reset.
	starts []*text
	env    []Env
	vars   map[string]*word
	notes  diag.List
}

// systemd reads a unit.
func (r *reader) systemd() []candidate {
	if len(r.data) > maxUnit {
		r.add(diag.TooLarge, diag.Pos{File: r.name}, fmt.Sprintf("a unit may have %d bytes, and this has more", maxUnit))
		return nil
	}
	u := &unit{reader: r, whole: fileText(r.name, r.data), vars: make(map[string]*word)}
	for name, value := range r.options.Vars {
		w := &word{}
		w.addFixed(value, diag.Pos{})
		u.vars[name] = w
	}
	u.lines()
	if r.findings.HasErrors() {
		return nil
	}
	if len(u.starts) == 0 {
		r.add(diag.NotAnInvocation, diag.Pos{File: r.name}, "the unit has no ExecStart in its section [Service]").Hint = "name the .service file that starts the router"
		return nil
	}
	var out []candidate
	for _, t := range u.starts {
		out = append(out, u.start(t)...)
	}
	return out
}

// lines goes over the lines of the unit, joining those that end in a backslash.
// Comments between joined lines are left out, as systemd does.
func (u *unit) lines() {
	var b builder
	joining := false
	for i, s := range u.whole.spans {
		end := len(u.data)
		if i+1 < len(u.whole.spans) {
			end = u.whole.spans[i+1].from
		}
		line := strings.TrimRight(u.whole.value[s.from:end], "\r\n")
		trimmed := strings.TrimLeft(line, " \t")
		if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";") {
			continue
		}
		goesOn := strings.HasSuffix(line, `\`)
		text := strings.TrimSuffix(line, `\`)
		b.addText(u.whole, s.from, s.from+len(text))
		if goesOn {
			b.addFixed(" ", u.whole.pos(s.from+len(text)))
			joining = true
			continue
		}
		if joining || trimmed != "" {
			u.line(b.text())
		}
		b, joining = builder{}, false
	}
	if joining {
		u.line(b.text())
	}
}

// line reads a section header or an assignment.
func (u *unit) line(t *text) {
	line := strings.TrimSpace(t.value)
	if strings.HasPrefix(line, "[") {
		u.section = line
		return
	}
	name, value, ok := strings.Cut(t.value, "=")
	if !ok {
		if line != "" && u.section == "[Service]" {
			start := len(t.value) - len(strings.TrimLeft(t.value, " \t"))
			f := u.add(diag.BrokenContinuation, t.pos(start), fmt.Sprintf("the line %q is no assignment; the line before it may lack a backslash", hideLong(line)))
			f.Hint = "end each line of a command but the last with a backslash"
		}
		return
	}
	if u.section != "[Service]" {
		return
	}
	from := len(name) + 1
	from += len(value) - len(strings.TrimLeft(value, " \t"))
	v := t.slice(min(from, len(t.value)), len(strings.TrimRight(t.value, " \t")))
	if from > len(strings.TrimRight(t.value, " \t")) {
		v = &text{}
	}
	switch name = strings.TrimSpace(name); name {
	case "ExecStart":
		if v.value == "" {
			u.starts = nil
			return
		}
		u.starts = append(u.starts, v)
	case "Environment":
		u.environment(v)
	case "EnvironmentFile", "PassEnvironment", "LoadCredential", "SetCredential":
		f := u.notes.Add(diag.New(diag.OutsideValues, t.pos(0), "", name+" gives the command values that are not read"))
		f.Hint = "check whether the arguments use any of them"
	default:
		if strings.HasPrefix(name, "-") {
			f := u.add(diag.BrokenContinuation, t.pos(0), fmt.Sprintf("the line %q is no setting of a unit; the line before it may lack a backslash", hideLong(line)))
			f.Hint = "end each line of a command but the last with a backslash"
		}
	}
}

// environment reads Environment=, where an empty value clears all.
func (u *unit) environment(v *text) {
	if v.value == "" {
		u.env, u.vars = nil, make(map[string]*word)
		return
	}
	whole := &word{}
	whole.addText(v, 0, len(v.value))
	for _, w := range u.split(whole, unitQuoting) {
		u.specifiers(w)
		name, value, ok := strings.Cut(string(w.buf), "=")
		if !ok {
			continue
		}
		at := w.at
		set := &word{at: at, open: w.open, some: true}
		set.addText(w.text(), len(name)+1, len(w.buf))
		u.env = slices.DeleteFunc(u.env, func(e Env) bool { return e.Name == name })
		if diag.SecretName(name) {
			u.env = append(u.env, newEnv(name, "", false, at))
			delete(u.vars, name)
			continue
		}
		u.env = append(u.env, newEnv(name, value, len(w.open) == 0, at))
		u.vars[name] = set
	}
}

// specifier is %x in a unit.
var specifier = regexp.MustCompile(`%[a-zA-Z]`)

// specifiers replaces %% and leaves other specifiers open.
func (u *unit) specifiers(w *word) {
	t := w.text()
	if !strings.Contains(t.value, "%") {
		return
	}
	w.builder = builder{}
	start := 0
	for i := 0; i+1 < len(t.value); i++ {
		if t.value[i] != '%' {
			continue
		}
		if t.value[i+1] == '%' {
			w.addText(t, start, i+1)
			start = i + 2
		} else if s := specifier.FindString(t.value[i : i+2]); s != "" {
			w.leaveOpen(s)
		}
		i++
	}
	w.addText(t, start, len(t.value))
}

// start makes candidates of one ExecStart, which may have several commands
// between lone semicolons.
func (u *unit) start(t *text) []candidate {
	whole := &word{}
	skip := 0
	for skip < len(t.value) && strings.IndexByte("@-:+!|", t.value[skip]) >= 0 {
		skip++
	}
	prefix := t.value[:skip]
	whole.addText(t, skip, len(t.value))
	var words []*word
	var out []candidate
	flush := func() {
		if len(words) > 0 {
			out = append(out, u.command(words, t)...)
		}
		words = nil
	}
	for i, w := range u.split(whole, unitQuoting) {
		if string(w.buf) == ";" && !w.some {
			flush()
			continue
		}
		if i == 1 && strings.Contains(prefix, "@") {
			continue // the name under which the program runs
		}
		if strings.Contains(prefix, ":") {
			words = append(words, w)
			continue
		}
		words = append(words, u.substitute(w)...)
	}
	flush()
	return out
}

func (u *unit) command(words []*word, t *text) []candidate {
	for _, w := range words {
		u.specifiers(w)
	}
	found := u.commands(words, true, "", known{values: u.vars})
	for i := range found {
		f := &found[i]
		f.pos = t.pos(0)
		f.names = []string{fmt.Sprintf("line:%d", f.pos.Line)}
		f.env = slices.Concat(u.env, f.env)
		f.findings = slices.Concat(u.notes, f.findings)
	}
	return found
}

// substitute replaces ${NAME} anywhere and a lone $NAME, which it splits at
// blanks; $$ is a dollar. What has no value stays open.
func (u *unit) substitute(w *word) []*word {
	t := w.text()
	if name := leadingName(strings.TrimPrefix(t.value, "$")); name != "" && t.value == "$"+name && !w.some {
		v := u.vars[name]
		if v == nil {
			w.leaveOpen(name)
			return []*word{w}
		}
		if !u.grow(v) {
			return nil
		}
		inner := &word{at: v.at, open: v.open}
		inner.addText(v.text(), 0, len(v.buf))
		return u.split(inner, plainQuoting)
	}
	out := &word{at: w.at, open: w.open, some: w.some}
	start := 0
	for i := 0; i+1 < len(t.value); i++ {
		if t.value[i] != '$' {
			continue
		}
		if t.value[i+1] == '$' {
			out.addText(t, start, i+1)
			start = i + 2
			i++
			continue
		}
		name := ""
		if end := strings.IndexByte(t.value[i:], '}'); t.value[i+1] == '{' && end > 0 {
			name = t.value[i+2 : i+end]
		}
		if v := u.vars[name]; name != "" && v != nil {
			if !u.grow(v) {
				return nil
			}
			out.addText(t, start, i)
			out.addText(v.text(), 0, len(v.buf))
			out.inherit(v)
			start = i + len(name) + 3
		} else if name != "" && assignment.MatchString(name+"=") {
			out.leaveOpen(name)
		}
	}
	out.addText(t, start, len(t.value))
	return []*word{out}
}
