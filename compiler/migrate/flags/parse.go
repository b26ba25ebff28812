package flags

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/argv"
)

// Value is one value of an argument.
type Value struct {
	Text string
	// At is the index of the element that holds it.
	At int
	// Open names the variables that Text keeps as written.
	Open []string
	// Number is the value of a Uint, and Real that of a Float.
	Number uint64
	Real   float64
	// Bad is set when the value is none of its argument, or unknown because it
	// is open.
	Bad bool
}

// Given is something that stands on the command line: an argument with its
// values, or a word that belongs to none.
type Given struct {
	// Name is without dashes; it is empty for a word.
	Name string
	// Flag is nil for what the table does not have, and Foreign for what no
	// other version has either.
	Flag    *Flag
	Foreign *Foreign
	// Elements are the indexes of all elements that belong together, ascending.
	Elements []int
	Values   []Value
	// Findings say what is wrong with it.
	Findings diag.List
}

// Line is a command line. Every element is in exactly one Given.
type Line struct {
	Args  []argv.Arg
	Given []Given
	// Findings are what is wrong with the line and with no part of it.
	Findings diag.List
	// graceSeconds is how long the process has to end, 0 where nobody says it.
	graceSeconds uint64
	// owner is the index in Given of what each element belongs to.
	owner []int
}

// Parse splits a command line as the older router does, and reports everything
// that its parser would refuse, not only the first.
func Parse(args []argv.Arg) *Line { return ParseWithin(args, 0) }

// ParseWithin is Parse for a process that has graceSeconds to end, 0 for nobody
// says it.
func ParseWithin(args []argv.Arg, graceSeconds uint64) *Line {
	p := parser{line: &Line{Args: args, graceSeconds: graceSeconds}, table: Table(), foreign: ForeignTable()}
	for p.at < len(args) {
		p.next()
	}
	p.line.owner = make([]int, len(args))
	for i := range p.line.Given {
		for _, at := range p.line.Given[i].Elements {
			p.line.owner[at] = i
		}
		p.line.check(i)
	}
	p.line.repeated()
	p.line.rules()
	return p.line
}

type parser struct {
	line    *Line
	table   []Flag
	foreign []Foreign
	at      int
	// rest is set behind "--", where nothing is an argument.
	rest bool
}

// next takes the argument or word at the current element.
func (p *parser) next() {
	arg := &p.line.Args[p.at]
	g := Given{Elements: []int{p.at}}
	p.at++
	body, dashed := strings.CutPrefix(arg.Text, "--")
	switch {
	case p.rest || !strings.HasPrefix(arg.Text, "-") || arg.Text == "-":
		p.word(&g, arg)
	case arg.Text == "--":
		p.rest = true
		g.add(diag.LegacySyntax, arg.Pos, "-- ends the arguments, and the router takes nothing behind it", "remove it")
	case !dashed:
		p.short(&g, arg)
	default:
		name, value, joined := strings.Cut(body, "=")
		g.Name = name
		p.named(&g, arg, value, joined)
	}
	p.line.Given = append(p.line.Given, g)
}

// word is an element that belongs to no argument.
func (p *parser) word(g *Given, arg *argv.Arg) {
	if unrendered(arg.Text) {
		g.add(diag.LegacyOpen, arg.Pos, fmt.Sprintf("%s is a template that is not rendered", quote(arg.Text)), renderFirst)
		return
	}
	if len(arg.Open) > 0 {
		g.add(diag.LegacyOpen, arg.Pos, fmt.Sprintf("%s may be any arguments", quote(arg.Text)), whatToWrite("arguments", arg.Open))
		return
	}
	hint := "remove it"
	if last := len(p.line.Given) - 1; last >= 0 && !p.rest {
		if before := &p.line.Given[last]; before.Name != "" {
			hint = before.takesNoMore(arg.Text)
		}
	}
	g.add(diag.LegacySyntax, arg.Pos, fmt.Sprintf("%s belongs to no argument", quote(arg.Text)), hint)
}

// takesNoMore says why an argument does not take the word behind it.
func (g *Given) takesNoMore(word string) string {
	switch f := g.Flag; {
	case f == nil:
		return "remove it"
	case f.Kind == Switch:
		return fmt.Sprintf("--%s is a switch and takes no value; remove %s", g.Name, quote(word))
	case f.Kind == List:
		return fmt.Sprintf("--%s takes one value behind an equals sign; write --%[1]s %s instead", g.Name, strings.Join(append(g.texts(), word), " "))
	case f.Kind == Commas:
		return fmt.Sprintf("--%s takes one word; write --%[1]s %s", g.Name, strings.Join(append(g.texts(), word), ","))
	}
	return fmt.Sprintf("--%s takes one value", g.Name)
}

func (g *Given) texts() (out []string) {
	for _, v := range g.Values {
		out = append(out, v.Text)
	}
	return out
}

// short is an argument with a single dash. The router has those of every clap
// program and no others.
func (p *parser) short(g *Given, arg *argv.Arg) {
	g.Name = strings.TrimPrefix(arg.Text, "-")
	if arg.Text == "-h" || arg.Text == "-V" {
		printsOnly(g, arg)
		return
	}
	hint := "a value that begins with a minus is written behind an equals sign, as in --name=" + arg.Text
	if near := p.find(strings.TrimLeft(g.Name, "-")); near != nil {
		hint = "write --" + near.Name
	}
	g.add(diag.LegacySyntax, arg.Pos, fmt.Sprintf("the router has no short argument %s", quote(arg.Text)), hint)
}

func printsOnly(g *Given, arg *argv.Arg) {
	g.add(diag.LegacySyntax, arg.Pos, fmt.Sprintf("with %s the router prints a text and does not start", arg.Text), "remove it")
}

func (p *parser) find(name string) *Flag {
	for i := range p.table {
		if p.table[i].Name == name {
			return &p.table[i]
		}
	}
	return nil
}

func (p *parser) findForeign(name string) *Foreign {
	for i := range p.foreign {
		if p.foreign[i].Name == name {
			return &p.foreign[i]
		}
	}
	return nil
}

// named is an argument with two dashes.
func (p *parser) named(g *Given, arg *argv.Arg, value string, joined bool) {
	if g.Flag = p.find(g.Name); g.Flag != nil {
		p.values(g, arg, value, joined)
		return
	}
	if g.Name == "help" || g.Name == "version" {
		printsOnly(g, arg)
		return
	}
	if g.Foreign = p.findForeign(g.Name); g.Foreign != nil {
		f := g.Foreign
		g.add(diag.LegacyOtherVersion, arg.Pos, fmt.Sprintf("--%s is of %s: %s", f.Name, f.Version, f.Why), f.Way)
		if joined {
			g.Values = append(g.Values, Value{Text: value, At: g.Elements[0], Open: arg.Open})
		} else if !f.Switch {
			p.take(g)
		}
		return
	}
	p.unknown(g, arg, joined)
}

// unknown reports an argument of no version. Words behind it are probably its
// values, and are not reported on their own.
func (p *parser) unknown(g *Given, arg *argv.Arg, joined bool) {
	var known []string
	for i := range p.table {
		known = append(known, p.table[i].Name)
	}
	code, message := diag.LegacyUnknown, fmt.Sprintf("no version of the router has --%s", g.Name)
	hint := "remove it"
	if name, value, ok := strings.Cut(g.Name, " "); ok && slices.Contains(known, name) {
		hint = fmt.Sprintf("it is one argument with a blank inside; write --%s and %s as two", name, quote(value))
	} else if full := prefixed(g.Name, known); full != "" {
		message += ", and names are not abbreviated"
		hint = "write --" + full
	} else if near := diag.Nearest(strings.ReplaceAll(g.Name, "_", "-"), known); near != "" {
		hint = fmt.Sprintf("did you mean --%s?", near)
	}
	if len(arg.Open) > 0 && strings.Contains(g.Name, "$") {
		code, message, hint = diag.LegacyOpen, fmt.Sprintf("%s may be any argument", quote(arg.Text)), "write the argument in place of "+names(arg.Open)
	}
	g.add(code, arg.Pos, message, hint)
	for !joined && p.at < len(p.line.Args) && p.isValue(&p.line.Args[p.at]) {
		p.take(g)
	}
}

// prefixed returns the only known name that begins with a shorter one.
func prefixed(short string, known []string) string {
	full := ""
	for _, k := range known {
		if short != "" && strings.HasPrefix(k, short) {
			if full != "" {
				return ""
			}
			full = k
		}
	}
	return full
}

// isValue reports whether an element can be the value of the argument before it:
// what begins with a minus cannot, except for a minus alone.
func (p *parser) isValue(arg *argv.Arg) bool {
	return arg.Text == "-" || !strings.HasPrefix(arg.Text, "-")
}

// take makes the next element a value of g, if it can be one.
func (p *parser) take(g *Given) bool {
	if p.at == len(p.line.Args) || !p.isValue(&p.line.Args[p.at]) {
		return false
	}
	arg := &p.line.Args[p.at]
	g.Elements = append(g.Elements, p.at)
	g.Values = append(g.Values, Value{Text: arg.Text, At: p.at, Open: arg.Open})
	p.at++
	return true
}

// values takes the values of an argument of the table.
func (p *parser) values(g *Given, arg *argv.Arg, value string, joined bool) {
	switch {
	case joined && g.Flag.Kind == Switch:
		g.add(diag.LegacySyntax, arg.Pos, fmt.Sprintf("--%s is a switch and takes no value, but has %s", g.Name, quote(value)), "write --"+g.Name+" alone, or nothing")
	case joined:
		// Nothing follows a value behind an equals sign, not even in a list.
		g.Values = append(g.Values, Value{Text: value, At: g.Elements[0], Open: arg.Open})
	case g.Flag.Kind == Switch:
	case !p.take(g):
		hint := "write a value behind it"
		if p.at < len(p.line.Args) {
			next := p.line.Args[p.at].Text
			hint = fmt.Sprintf("a value that begins with a minus is written --%s=%s", g.Name, next)
			if strings.HasPrefix(next, "--") {
				hint = fmt.Sprintf("write a value before %s", next)
			}
		}
		g.add(diag.LegacySyntax, arg.Pos, fmt.Sprintf("--%s has no value", g.Name), hint)
	case g.Flag.Kind == List:
		for p.take(g) {
		}
	}
	if g.Flag.Kind == Commas {
		g.split()
	}
}

// split cuts the value of a comma list.
func (g *Given) split() {
	var out []Value
	for _, v := range g.Values {
		for _, word := range strings.Split(v.Text, ",") {
			out = append(out, Value{Text: word, At: v.At, Open: v.Open})
		}
	}
	g.Values = out
}

func (g *Given) add(code diag.Code, pos diag.Pos, message, hint string) {
	g.Findings.Add(diag.New(code, pos, "", message)).Hint = hint
}

// check judges the values of an argument one by one.
func (l *Line) check(at int) {
	g := &l.Given[at]
	if g.Flag == nil {
		return
	}
	for i := range g.Values {
		v := &g.Values[i]
		if len(v.Open) > 0 {
			v.Bad = true
			message := fmt.Sprintf("the value of --%s is %s", g.Name, quote(v.Text))
			if condition, ok := strings.CutPrefix(v.Open[0], "("); ok {
				message = fmt.Sprintf("--%s %s is given %s", g.Name, quote(v.Text), strings.TrimSuffix(condition, ")"))
			}
			g.add(diag.LegacyOpen, l.Args[v.At].Pos, message, whatToWrite("value", v.Open))
			continue
		}
		if unrendered(v.Text) {
			v.Bad = true
			g.add(diag.LegacyOpen, l.Args[v.At].Pos, fmt.Sprintf("the value of --%s is the template %s, which is not rendered", g.Name, quote(v.Text)), renderFirst)
			continue
		}
		l.value(g, v)
	}
}

const renderFirst = "render it first, as with helm template, and give the result"

// unrendered reports whether a text is a template, which no value of the older
// router looks like.
func unrendered(text string) bool {
	_, behind, ok := strings.Cut(text, "{{")
	return ok && strings.Contains(behind, "}}")
}

// value judges one value as the parser does.
func (l *Line) value(g *Given, v *Value) {
	bad := func(domain string) {
		v.Bad = true
		g.add(diag.LegacyValue, l.Args[v.At].Pos, fmt.Sprintf("--%s %s is not %s", g.Name, quote(v.Text), domain), "write "+domain)
	}
	switch f := g.Flag; {
	case f.Kind == Uint:
		n, err := parseUint(v.Text, f.Bits)
		switch v.Number = n; {
		case err != nil:
			bad(fmt.Sprintf("a whole number from 0 to %d in plain digits", ^uint64(0)>>(64-f.Bits)))
		case n == 0 && f.NonZero:
			bad("a whole number from 1")
		}
	case f.Kind == Float:
		x, err := parseFloat(v.Text, f.Bits)
		if v.Real = x; err != nil {
			bad("a decimal number")
		}
	case len(f.Words) > 0 && !slices.Contains(f.Words, v.Text):
		l.wrongWord(g, v)
	}
}

// wrongWord reports a word that is no value of its argument.
func (l *Line) wrongWord(g *Given, v *Value) {
	v.Bad = true
	pos, words := l.Args[v.At].Pos, g.Flag.Words
	message := fmt.Sprintf("--%s %s is not one of %s", g.Name, quote(v.Text), strings.Join(words, ", "))
	hint := ""
	why, way := otherWord(g.Name, v.Text)
	switch near := diag.Nearest(v.Text, words); {
	case why != "":
		g.add(diag.LegacyOtherVersion, pos, fmt.Sprintf("--%s %s does not exist: %s", g.Name, v.Text, why), way)
		return
	case slices.Contains(words, strings.ToLower(v.Text)):
		hint = fmt.Sprintf("words are in lower case: write %s", strings.ToLower(v.Text))
	case near != "":
		hint = fmt.Sprintf("did you mean %s?", near)
	case g.Flag.Kind == Commas && v.Text == "":
		hint = "remove the comma that nothing follows or precedes"
	}
	g.add(diag.LegacyValue, pos, message, hint)
}

// parseUint reads what the older router takes for a number: digits, and perhaps
// a plus before them.
func parseUint(text string, bits int) (uint64, error) {
	digits, _ := strings.CutPrefix(text, "+")
	if strings.HasPrefix(digits, "+") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(digits, 10, bits)
}

// floats is the decimal notation, without the hexadecimal one that Go knows too.
var floats = regexp.MustCompile(`(?i)^[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|inf|infinity|nan)$`)

// parseFloat reads what the older router takes for a real number. A number that
// is too large is infinite.
func parseFloat(text string, bits int) (float64, error) {
	if !floats.MatchString(text) {
		return 0, strconv.ErrSyntax
	}
	if text[0] == '+' || text[0] == '-' {
		if strings.EqualFold(text[1:], "nan") {
			text = text[1:]
		}
	}
	x, _ := strconv.ParseFloat(text, bits) // out of range is infinite
	return x, nil
}

// repeated reports what may stand only once. The first one counts.
func (l *Line) repeated() {
	first := make(map[string]int)
	for i := range l.Given {
		g := &l.Given[i]
		if g.Flag == nil || g.Flag.Kind == List || g.Flag.Kind == Commas {
			continue
		}
		j, again := first[g.Name]
		if !again {
			first[g.Name] = i
			continue
		}
		before := l.Args[l.Given[j].Elements[0]].Pos
		g.add(diag.LegacySyntax, l.Args[g.Elements[0]].Pos, fmt.Sprintf("--%s is given twice", g.Name), "keep one of the two")
		f := &g.Findings[len(g.Findings)-1]
		f.Related = []diag.Related{{Pos: before, Message: "the first one is here"}}
	}
}

// All returns every occurrence of an argument.
func (l *Line) All(name string) (out []*Given) {
	for i := range l.Given {
		if g := &l.Given[i]; g.Name == name && g.Flag != nil {
			out = append(out, g)
		}
	}
	return out
}

// Get returns the first occurrence of an argument, and nil when it is absent.
func (l *Line) Get(name string) *Given {
	if all := l.All(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Has reports whether an argument is present, with a value or not.
func (l *Line) Has(name string) bool { return l.Get(name) != nil }

// Value returns the value of an argument that takes one. It is nil when the
// argument is absent or its value is not usable.
func (l *Line) Value(name string) *Value {
	g := l.Get(name)
	if g == nil || len(g.Values) == 0 || g.Values[0].Bad {
		return nil
	}
	return &g.Values[0]
}

// Text returns the text of an argument's value, or def when there is none.
func (l *Line) Text(name, def string) string {
	if v := l.Value(name); v != nil {
		return v.Text
	}
	return def
}

// Values returns the usable values of a list.
func (l *Line) Values(name string) (out []Value) {
	for _, g := range l.All(name) {
		for _, v := range g.Values {
			if !v.Bad {
				out = append(out, v)
			}
		}
	}
	return out
}

// Pos returns where an argument's first occurrence is.
func (l *Line) Pos(g *Given) diag.Pos { return l.Args[g.Elements[0]].Pos }

// quote writes text of the user in a message.
func quote(text string) string { return strconv.Quote(diag.Mask(diag.Shorten(text))) }

// identifier is the name of a variable.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// whatToWrite says how to give what is open in an argument.
func whatToWrite(what string, open []string) string {
	hint := "write the " + what + " in place of " + names(open)
	if strings.HasPrefix(open[0], "(") {
		return "write the command as it runs, without the condition"
	}
	if identifier.MatchString(open[0]) {
		hint += ", or give --var " + open[0] + "=VALUE"
	}
	return hint
}

// names lists variables in a message.
func names(list []string) string {
	out := make([]string, len(list))
	for i, name := range list {
		if out[i] = name; identifier.MatchString(name) {
			out[i] = "$" + name
		}
	}
	return strings.Join(out, ", ")
}
