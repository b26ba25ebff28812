package migrate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/bucketfile"
	"shunt/compiler/migrate/flags"
	"shunt/compiler/source"
)

// Format is a syntax of configurations.
type Format string

// The formats.
const (
	YAML Format = "yaml"
	CUE  Format = "cue"
)

// Options of Migrate. The zero value makes YAML of what the command line says
// alone.
type Options struct {
	// Format is YAML when it is empty.
	Format Format
	// Partial makes a configuration with marks where something is missing.
	Partial bool
	// Roles are the roles of engines that nothing else answers.
	Roles []RoleAnswer
	// Tokenizer is a path, "engine" or "none", and empty for what follows from
	// the command line and the decisions.
	Tokenizer string
	// Buckets is the bucket file in place of the one that the command line
	// names. Without data it is that one.
	Buckets Document
	// ReadFile reads the bucket file that the command line names when the input
	// does not hold it. Nil reads no files.
	ReadFile func(name string) ([]byte, error)
	// Workers is the file of engines that a configuration file of the first
	// versions names. Without data it is read by ReadFile.
	Workers Document
	// Output is the name of the file that the configuration goes to, which paths
	// in it are relative to. It may be empty.
	Output string
	// Judge adds findings to those of the compiler, such as about files that the
	// compiler does not read; nil adds none.
	Judge func(*compiler.Result)
	// Decisions is the decisions file, and Pairs are further decisions.
	Decisions Document
	Pairs     []bucketfile.Pair

	// unchecked leaves out that what was made is compiled.
	unchecked bool
}

// Document is a file and its content. The zero value is none.
type Document struct {
	Name string
	Data []byte
}

// Result is what a migration made.
type Result struct {
	// Config is nil when nothing may be written.
	Config []byte
	Report *Report
	// Template is a decisions file with the open questions.
	Template []byte
}

// Migrate makes a configuration of the invocation of an older router and accounts
// for all of it. Input is what reading the invocation found; with an error in it
// there is nothing to migrate.
func Migrate(ctx context.Context, in argv.Invocation, input diag.List, o Options) Result {
	m := newMigration(in, o)
	if input.HasErrors() {
		return Result{Report: &Report{Program: in.Program, Container: in.Container, Findings: input}}
	}
	m.report.Findings = append(m.report.Findings, input...)
	m.environment(in.Env)
	m.decide(ctx)
	m.bucketFile(ctx, in)
	m.engineList()
	m.put("/version", number(1))
	m.server()
	m.model()
	m.state()
	m.leftovers()
	return Result{Config: m.finish(ctx), Report: m.report, Template: bucketfile.Template(m.open)}
}

// migration is the state of one Migrate.
type migration struct {
	options Options
	line    *flags.Line
	// table has what is known of arguments by name.
	table  map[string]flags.Flag
	report *Report
	// given has the lines of the arguments by name, byElement those of elements,
	// and absent those of arguments that were not given.
	given     map[string][]*Line
	byElement map[int]*Line
	absent    map[string]*Line
	root      *node
	// at is the pointer of the model.
	at string
	// origins has the lines that a value comes from by its pointer.
	origins map[string]*Line
	// engines are those that are known, and kind is plain or pd, or empty while
	// no engine has a role.
	engines []engine
	kind    string
	// buckets are the complete ones, and answers what the decisions file says.
	buckets []bucket
	answers bucketfile.Decisions
	file    bucketfile.File
	// fields has the lines of the bucket file by pointer, and decisions those of
	// answers, which are no part of the report.
	fields    map[string]*Line
	decisions map[string]*Line
	// byLegacy finds engines by the older router's ids, and specs those of the
	// bucket file by their places.
	byLegacy map[string]int
	specs    map[bucketfile.Origin]*bucketfile.Spec
	// open are the questions that nothing answers.
	open []bucketfile.Open
	// rustLog is the line of the variable that overrides --log-level.
	rustLog *Line
	level   string
	// named is what the invocation stands in, if that has a name.
	named string
	// grace is argv.Invocation.GraceSeconds.
	grace uint64
	// fromFile says that there is no command line.
	fromFile bool
}

// newMigration parses the command line and makes a line of each argument.
func newMigration(in argv.Invocation, o Options) *migration {
	m := &migration{
		options: o, line: flags.ParseWithin(in.Args, in.GraceSeconds), grace: in.GraceSeconds, root: &node{}, at: "/models/0",
		report: &Report{Program: in.Program, Container: in.Container, elements: len(in.Args)},
		given:  make(map[string][]*Line), byElement: make(map[int]*Line), absent: make(map[string]*Line), origins: make(map[string]*Line),
		fields: make(map[string]*Line), decisions: make(map[string]*Line), table: make(map[string]flags.Flag),
	}
	for _, f := range flags.Table() {
		m.table[f.Name] = f
	}
	switch {
	case in.Container == "":
	case in.Kind == argv.KindKubernetes:
		m.named = "container"
	case in.Kind == argv.KindCompose:
		m.named = "service"
	}
	m.report.Findings = append(m.report.Findings, m.line.Findings...)
	for i := range m.line.Given {
		g := &m.line.Given[i]
		l := &Line{Source: m.written(g), Pos: m.line.Pos(g), Elements: g.Elements}
		m.report.Lines = append(m.report.Lines, l)
		m.account(g, l)
	}
	return m
}

// account makes a line that of an argument.
func (m *migration) account(g *flags.Given, l *Line) {
	l.Findings = append(l.Findings, g.Findings...)
	for _, e := range g.Elements {
		m.byElement[e] = l
	}
	if g.Flag != nil {
		m.given[g.Name] = append(m.given[g.Name], l)
	}
}

// maxSource bounds what a line of the report quotes.
const maxSource = 160

// written is an argument as it stands on the command line, with secrets masked.
func (m *migration) written(g *flags.Given) string {
	var words []string
	for i, e := range g.Elements {
		word := m.line.Args[e].Text
		if name, _, joined := strings.Cut(word, "="); diag.SecretName(g.Name) {
			switch {
			case i > 0:
				word = "***"
			case joined:
				word = name + "=***"
			}
		}
		words = append(words, shellWord(diag.Mask(word)))
	}
	return clip(strings.Join(words, " "), maxSource)
}

// clip cuts a text that is too long to be read.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xc0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// shellWord writes a word so that a shell reads it as one.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("'\"\\$`&|;<>()*?[]{}#!", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "'", `'\''`) + "'"
}

// source returns the line of an argument's first occurrence, or the line of its
// default when it was not given.
func (m *migration) source(name string) *Line {
	if lines := m.given[name]; len(lines) > 0 {
		return lines[0]
	}
	if l := m.absent[name]; l != nil {
		return l
	}
	l := &Line{Source: "--" + name + " (not given)", Outcome: Defaulted, implicit: true}
	def := m.table[name].Default
	if name == "policy" && m.line.Reorg() {
		def = "power_of_two" // as the version has it that knows --chat-routing
	}
	if def != "" {
		l.Source = "--" + name + " (not given: " + def + ")"
	}
	m.absent[name] = l
	m.report.Lines = append(m.report.Lines, l)
	return l
}

// fixed makes the line of something that the older router always did.
func (m *migration) fixed(source, note string) *Line {
	l := &Line{Source: source, Outcome: Defaulted, Notes: []string{note}, implicit: true}
	m.report.Lines = append(m.report.Lines, l)
	return l
}

// usable reports whether the value of an argument is known: its default when it
// is absent, else the one that was given.
func (m *migration) usable(name string) bool { return !m.line.Has(name) || m.line.Value(name) != nil }

// put writes a value and notes where it comes from, on the value and on the
// lines.
func (m *migration) put(pointer string, value *node, from ...*Line) {
	slash := strings.LastIndexByte(pointer, '/')
	parent := m.root
	if slash > 0 {
		parent = m.root.at(pointer[:slash])
	}
	if name := pointer[slash+1:]; parent.kind == listNode {
		parent.kids = append(parent.kids, value)
	} else {
		parent.put(name, value)
	}
	var origins []string
	for _, l := range from {
		if l.Outcome != Defaulted {
			l.raise(Carried)
		}
		if !slices.Contains(l.Targets, pointer) {
			l.Targets = append(l.Targets, pointer)
		}
		origins = append(origins, origin(l))
	}
	value.comment = strings.Join(origins, ", ")
	if len(from) > 0 {
		m.origins[pointer] = from[0]
	}
}

// origin is what a comment says about where a value comes from.
func origin(l *Line) string {
	source := clip(cmp.Or(l.brief, l.Source), 80)
	if l.implicit {
		return "default: " + source
	}
	if l.Pos.File == "" {
		return source
	}
	return fmt.Sprintf("%s (%s)", source, l.Pos)
}

// todo marks a place of a configuration where something is missing.
func (m *migration) todo(pointer, format string, args ...any) {
	n := m.root.at(pointer)
	n.todo = append(n.todo, fmt.Sprintf(format, args...))
}

// waits is the note of a field that depends on others.
const waits = "what becomes of it depends on the open questions and mistakes of the bucket file"

// leftovers decides about arguments that nothing was made of, because they depend
// on others that have a mistake.
func (m *migration) leftovers() {
	wrong := m.report.Findings.HasErrors() || slices.ContainsFunc(m.report.Lines, func(l *Line) bool { return l.Findings.HasErrors() })
	for _, l := range m.fields {
		if l.Outcome == "" && !l.Findings.HasErrors() && wrong {
			l.raise(NeedsDecision)
			l.note(waits)
		}
	}
	for i := range m.line.Given {
		g := &m.line.Given[i]
		l := m.byElement[g.Elements[0]]
		if l.Outcome != "" || l.Findings.HasErrors() || g.Flag == nil || m.given[g.Name][0] != l {
			continue
		}
		if wrong {
			l.find(diag.LegacyDecision, "what becomes of it depends on an argument that has a mistake", "correct the other mistakes first")
		}
	}
}

// finish settles the outcomes, writes the configuration and compiles it.
func (m *migration) finish(ctx context.Context) []byte {
	for _, l := range m.report.Lines {
		l.settle()
	}
	m.settleRepeats()
	if err := m.report.Complete(); err != nil {
		m.report.Findings.Add(diag.New(diag.Internal, diag.Pos{}, "", err.Error()))
		return nil
	}
	fine := m.report.Fine()
	if !fine && !m.options.Partial {
		return nil
	}
	if !fine {
		m.marks()
	}
	data := encode(m.root, m.options.Format == CUE, m.heading(fine))
	if fine && !m.options.unchecked && !m.compiles(ctx, data) {
		if !m.options.Partial {
			return nil
		}
		fine = false
	}
	m.report.Written, m.report.Partial = true, !fine
	return data
}

// settleRepeats gives the further occurrences of a list the outcome and targets
// of the first, unless they have their own.
func (m *migration) settleRepeats() {
	for _, lines := range m.given {
		for _, l := range lines[1:] {
			if l.Outcome == Rejected && slices.ContainsFunc(l.Findings, func(f diag.Finding) bool { return f.Code == diag.Internal }) {
				l.Findings = slices.DeleteFunc(l.Findings, func(f diag.Finding) bool { return f.Code == diag.Internal })
				l.Outcome, l.Targets, l.Notes, l.Changes = lines[0].Outcome, lines[0].Targets, lines[0].Notes, lines[0].Changes
			}
		}
	}
}

// marks writes what is missing at the end of the configuration.
func (m *migration) marks() {
	add := func(f diag.Finding) {
		if f.Severity != diag.Error {
			return
		}
		mark := f.Message
		if f.Hint != "" {
			mark += "; " + f.Hint
		}
		if f.Pos.File != "" {
			mark += " (" + f.Pos.String() + ")"
		}
		m.root.todo = append(m.root.todo, diag.Mask(mark))
	}
	for _, f := range m.report.All() {
		add(f)
	}
}

// heading is the comment at the top of the file.
func (m *migration) heading(fine bool) []string {
	from := "the command line of an older router"
	if m.fromFile {
		from = "the configuration file of an older router"
	}
	if m.named != "" {
		from += " in the " + m.named + " " + m.report.Container
	}
	out := []string{"Made by shunt migrate of " + clip(from, 120) + "."}
	if !fine {
		out = append(out, "It is not complete: look for TODO(shunt).")
	}
	return out
}

// compiles compiles the configuration that was made, as shunt check does. Its
// mistakes belong to the arguments that their values come from.
func (m *migration) compiles(ctx context.Context, data []byte) bool {
	syntax := ".yaml"
	if m.options.Format == CUE {
		syntax = ".cue"
	}
	in := source.Input{Name: cmp.Or(m.options.Output, "migrated"+syntax), As: syntax, Reader: bytes.NewReader(data)}
	r := compiler.Compile(ctx, compiler.Options{}, []source.Input{in})
	if m.options.Judge != nil {
		m.options.Judge(&r)
	}
	for _, f := range r.Findings {
		m.judged(f)
	}
	return r.Plan != nil
}

// judged reports what the compiler found at the line that the value comes from.
func (m *migration) judged(f diag.Finding) {
	path := f.Path
	l := m.origins[path]
	for l == nil && path != "" {
		path = path[:strings.LastIndexByte(path, '/')]
		l = m.origins[path]
	}
	message := fmt.Sprintf("%s, at %s [%s]", f.Message, f.Path, f.Code)
	code := diag.LegacyInvalid
	switch {
	case f.Code.Failure():
		code = f.Code
	case f.Severity != diag.Error:
		code = diag.LegacyAdvice
	}
	if l == nil {
		m.report.Findings.Add(diag.New(code, diag.Pos{}, f.Path, message)).Hint = f.Hint
		return
	}
	x := l.Findings.Add(diag.New(code, l.Pos, f.Path, message))
	x.Hint = f.Hint
	l.settle()
}
