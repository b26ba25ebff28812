package argv

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"shunt/compiler/diag"
)

// Kind is what an input is.
type Kind string

// The kinds of inputs. KindAuto, the zero value, goes by the name and, where
// that says nothing, by the content.
const (
	KindAuto       Kind = ""
	KindShell      Kind = "shell"
	KindKubernetes Kind = "kubernetes"
	KindCompose    Kind = "compose"
	KindSystemd    Kind = "systemd"
)

// Kinds are the kinds that can be asked for.
func Kinds() []Kind { return []Kind{KindShell, KindKubernetes, KindCompose, KindSystemd} }

// MaxBytes is the largest input that is read.
const MaxBytes = 8 << 20

// Direct is the file in the positions of arguments that were given directly, whose
// column is their number from 1.
const Direct = "argv"

// Options of Read. The zero value takes the only invocation of an input of any
// kind.
type Options struct {
	Kind Kind
	// Container names the container, service, unit command or shell command when
	// the input has several. It is one of the names that the finding lists.
	Container string
	// Vars are values of variables that the input leaves open.
	Vars map[string]string
}

// Arg is one element of the command line after the program name.
type Arg struct {
	// Text is what the router would get, except for what is open.
	Text string
	// Pos is the first character of the element. In the file Direct the
	// line is 0, and the column is the number of the argument from 1.
	Pos diag.Pos
	// Open are the variables, substitutions and specifiers that nothing in the
	// input gives a value. They are for the caller to report, who knows what the
	// argument is. Text has them as they are written. An entry is the
	// name of a variable, the written text of anything else, or in parentheses the
	// condition under which the argument is given at all.
	Open []string
}

// Env is an environment variable of the invocation.
type Env struct {
	Name string
	// Value is empty when Hidden.
	Value string
	// Hidden says that the value is not known or may be a secret.
	Hidden bool
	// Open is like that of Arg, for Value.
	Open []string
	Pos  diag.Pos
}

// File is a file that the input holds and puts where the router can read it, or
// one of the host that it mounts there.
type File struct {
	// Host is the path on the host of a mounted file, whose content is not in the
	// input. It is empty otherwise.
	Host string
	// Name is the name under which to read the content, for positions.
	Name string

	whole []byte
	text  *text
}

// Content is the content of the file. Where possible it is blank up to where the
// file stands in the input, so that the places in it are places in the input.
// The caller may keep it and must not change it.
func (f File) Content() []byte {
	if f.text == nil {
		return nil
	}
	return f.text.inPlace(f.whole)
}

// Invocation is one legacy router as it is started.
type Invocation struct {
	Kind Kind
	// Program is the program with its interpreter, such as
	// "python3 -m sglang_router.launch_router". It is empty when only arguments
	// are known.
	Program string
	// Container is the name of what the invocation stands in, as
	// Options.Container takes it; empty when the input has no names.
	Container string
	Args      []Arg
	// Env are the variables that the input sets, in their order.
	Env []Env
	// Files are by the path at which the router sees them.
	Files map[string]File
	// GraceSeconds is how long the process may take to end, as the manifest of its
	// pod says; 0 where nothing does.
	GraceSeconds uint64
}

// FromArgs returns the invocation with these arguments, which a shell has
// already split.
func FromArgs(args []string) Invocation {
	var inv Invocation
	for i, a := range args {
		inv.Args = append(inv.Args, Arg{Text: a, Pos: diag.Pos{File: Direct, Column: i + 1}})
	}
	return inv
}

// Read finds the invocation in an input. The name appears in positions. The
// invocation is of use only when the list has no errors; warnings say what the
// router would see differently on another system or was not read.
func Read(name string, data []byte, o Options) (Invocation, diag.List) {
	r := &reader{name: name, data: data, options: o}
	inv := r.guarded()
	r.findings.Sort()
	return inv, r.findings
}

// guarded reads the input. A panic of a parser is a finding and not the end of
// the process.
func (r *reader) guarded() (inv Invocation) {
	defer func() {
		if p := recover(); p != nil {
			r.add(diag.Internal, diag.Pos{File: r.name}, fmt.Sprintf("the parser failed: %v", p))
			inv = Invocation{}
		}
	}()
	return r.read()
}

// reader is the state of one Read.
type reader struct {
	name     string
	data     []byte
	options  Options
	kind     Kind
	findings diag.List
	// grown is how many bytes substitutions have made so far.
	grown int
}

func (r *reader) add(code diag.Code, pos diag.Pos, message string) *diag.Finding {
	return r.findings.Add(diag.New(code, pos, "", message))
}

func (r *reader) read() Invocation {
	if len(r.data) > MaxBytes {
		r.add(diag.TooLarge, diag.Pos{File: r.name}, fmt.Sprintf("the input may have %d bytes, and this has more", MaxBytes))
		return Invocation{}
	}
	if !r.clean() {
		return Invocation{}
	}
	r.kind = r.options.Kind
	if r.kind == KindAuto {
		r.kind = sniff(r.name, r.data)
	}
	var found []candidate
	switch r.kind {
	case KindShell:
		found = r.shellFile()
	case KindKubernetes:
		found = r.kubernetes()
	case KindCompose:
		found = r.compose()
	case KindSystemd:
		found = r.systemd()
	default:
		r.add(diag.NotAnInvocation, diag.Pos{File: r.name}, fmt.Sprintf("the kind %q is none of %s", r.kind, list(Kinds())))
	}
	if r.grown > maxGrowth {
		r.add(diag.TooLarge, diag.Pos{File: r.name}, fmt.Sprintf("the variables of this input grow to more than %d bytes", maxGrowth))
	}
	if r.findings.HasErrors() {
		return Invocation{}
	}
	return r.choose(found)
}

// clean reports bytes that hide the meaning of the input, and repairs line ends.
func (r *reader) clean() bool {
	r.data = bytes.TrimPrefix(r.data, []byte("\xef\xbb\xbf"))
	at := func(i int) diag.Pos { return fileText(r.name, r.data).pos(i) }
	if i := bytes.IndexByte(r.data, 0); i >= 0 {
		f := r.add(diag.BadEncoding, at(i), "the input has a byte 0, so it is no text")
		f.Hint = "name a script, a manifest or a unit in UTF-8"
		return false
	}
	if i := invalidUTF8(r.data); i >= 0 {
		r.add(diag.BadEncoding, at(i), fmt.Sprintf("the byte 0x%02x is not UTF-8", r.data[i]))
		return false
	}
	return true
}

func list[T ~string](names []T) string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(out, ", ")
}

// Line patterns by which an input without a telling name is recognised.
var (
	unitSection    = regexp.MustCompile(`(?m)^\[(Service|Unit|Install)\]\s*$`)
	manifestKey    = regexp.MustCompile(`(?m)^(-\s+)?["']?(apiVersion|kind)["']?\s*:`)
	manifestInline = regexp.MustCompile(`^\s*\{[^{}\[\]]*"(apiVersion|kind)"\s*:`)
	composeKey     = regexp.MustCompile(`(?m)^["']?services["']?\s*:`)
)

// sniff returns the kind of an input. The extension decides where it can, for a
// meaning that depends on the first bytes surprises.
func sniff(name string, data []byte) Kind {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	switch ext := path.Ext(base); ext {
	case ".service", ".unit":
		return KindSystemd
	case ".sh", ".bash", ".ksh", ".zsh", ".args", ".cmd":
		return KindShell
	case ".yaml", ".yml", ".json":
		if !manifestKey.Match(data) && !manifestInline.Match(data) &&
			(composeKey.Match(data) || strings.Contains(base, "compose") || bytes.Contains(data, []byte(`"services"`))) {
			return KindCompose
		}
		return KindKubernetes
	}
	switch {
	case unitSection.Match(data):
		return KindSystemd
	case manifestKey.Match(data) || manifestInline.Match(data):
		return KindKubernetes
	case composeKey.Match(data):
		return KindCompose
	}
	return KindShell
}
