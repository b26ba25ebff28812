package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"

	"shunt/compiler/diag"
)

// childArgument marks a process as the evaluation child. It is not an option
// of the command line: nobody types it, and it is the only argument.
const childArgument = "evaluate-cue-in-this-limited-child-process"

// ScrubEnvironment removes the variables that change how CUE evaluates:
// CUE_DEBUG can switch closedness off, after which unknown fields pass. Call it
// first thing in main. It protects child processes and what reads the variables
// late; some packages of CUE read them before main starts, which is why every
// context in this module is also made with cuecontext.CUE_DEBUG("").
func ScrubEnvironment() {
	for _, name := range [...]string{"CUE_DEBUG", "CUE_EXPERIMENT"} {
		// Unsetenv fails for malformed names only.
		_ = os.Unsetenv(name)
	}
}

// ChildMain does the work of the evaluation child when the process was started
// as one, and then returns its exit status and true. Every program that calls
// Read with AllowCUECode, test binaries included, must call it right after
// ScrubEnvironment and exit with the status:
//
//	if code, ok := source.ChildMain(os.Args, os.Stdin, os.Stdout); ok {
//		os.Exit(code)
//	}
func ChildMain(args []string, in io.Reader, out io.Writer) (code int, ok bool) {
	if len(args) != 2 || args[1] != childArgument {
		return 0, false
	}
	if err := limitProcess(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	var req request
	if err := json.NewDecoder(in).Decode(&req); err != nil {
		fmt.Fprintln(os.Stderr, "evaluation request:", err)
		return 1, true
	}
	if err := json.NewEncoder(out).Encode(evaluateHere(req)); err != nil {
		fmt.Fprintln(os.Stderr, "evaluation response:", err)
		return 1, true
	}
	return 0, true
}

// request is what the parent writes to the child's standard input.
type request struct {
	// Root is the folder outside of which nothing is read.
	Root string
	// Files are the inputs to evaluate, by their slash-separated path below
	// Root.
	Files []namedText
}

type namedText struct {
	Path string
	Data []byte
}

// response is what the child writes to its standard output: a value, or what
// is wrong.
type response struct {
	Value    *wireNode      `json:",omitempty"`
	Findings []childFinding `json:",omitempty"`
	// Files are all files that were read, in the order of first use; places
	// refer to them by index.
	Files []namedText
}

type childFinding struct {
	Code    diag.Code
	At      *wirePlace `json:",omitempty"`
	Message string
}

// wireNode is a Node on its way from the child to the parent.
type wireNode struct {
	Kind   Kind        `json:"k"`
	Text   string      `json:"t,omitempty"`
	At     *wirePlace  `json:"a,omitempty"`
	Fields []wireField `json:"f,omitempty"`
	Elems  []*wireNode `json:"e,omitempty"`
}

type wireField struct {
	Name  string     `json:"n"`
	At    *wirePlace `json:"a,omitempty"`
	Value *wireNode  `json:"v"`
}

// wirePlace is a file index and an offset.
type wirePlace [2]int

// evaluator is the child's side of one request.
type evaluator struct {
	fs  *hermeticFS
	out response
	// nodes counts against MaxNodes.
	nodes int
}

// evaluateHere loads, builds and reads out the files of a request in this
// process.
func evaluateHere(req request) response {
	root, err := os.OpenRoot(req.Root)
	if err != nil {
		return response{Findings: []childFinding{{Code: diag.Unreadable, Message: reason(err)}}}
	}
	defer root.Close()
	e := &evaluator{fs: newHermeticFS(root.FS(), req.Files)}
	var args []string
	for _, f := range req.Files {
		args = append(args, "./"+f.Path)
	}
	e.run(args)
	e.out.Files = e.fs.read
	return e.out
}

func (e *evaluator) run(args []string) {
	instances := load.Instances(args, &load.Config{FS: e.fs, Dir: "/", Registry: denied{}, Env: []string{}})
	if len(instances) != 1 {
		e.fail(diag.Evaluation, nil, fmt.Sprintf("the CUE inputs are %d packages, not one", len(instances)))
		return
	}
	if err := instances[0].Err; err != nil {
		e.cueErrors(err)
		return
	}
	v := cuecontext.New(cuecontext.CUE_DEBUG("")).BuildInstance(instances[0])
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		e.cueErrors(err)
		return
	}
	if v.IncompleteKind() != cue.StructKind {
		e.fail(diag.WrongType, e.place(v.Pos()), "the configuration is not an object")
		return
	}
	n := e.node(v, 1)
	if len(e.out.Findings) == 0 {
		e.out.Value = n
	}
}

func (e *evaluator) fail(code diag.Code, at *wirePlace, message string) {
	if len(e.out.Findings) < maxSyntaxErrors {
		e.out.Findings = append(e.out.Findings, childFinding{Code: code, At: at, Message: message})
	}
}

func (e *evaluator) cueErrors(err error) {
	for _, one := range errors.Errors(errors.Sanitize(errors.Promote(err, ""))) {
		var at *wirePlace
		for _, pos := range errors.Positions(one) {
			if at = e.place(pos); at != nil {
				break
			}
		}
		text := cueText(one)
		if path := strings.Join(one.Path(), "."); path != "" {
			text = path + ": " + text
		}
		e.fail(diag.Evaluation, at, text)
	}
}

// place returns where a position is among the files that were read, and nil
// when it is in none, such as a builtin package.
func (e *evaluator) place(pos token.Pos) *wirePlace {
	if !pos.IsValid() {
		return nil
	}
	name := strings.TrimPrefix(pos.Filename(), "/")
	i := slices.IndexFunc(e.fs.read, func(f namedText) bool { return f.Path == name })
	if i < 0 {
		return nil
	}
	return &wirePlace{i, pos.Offset()}
}

// node reads a concrete value out.
func (e *evaluator) node(v cue.Value, depth int) *wireNode {
	at := e.place(v.Pos())
	if e.nodes++; e.nodes > MaxNodes || depth > MaxDepth {
		e.fail(diag.TooDeep, at, fmt.Sprintf("the result has more than %d values or is nested more than %d deep", MaxNodes, MaxDepth))
		return nil
	}
	n := &wireNode{At: at}
	switch v.Kind() {
	case cue.NullKind:
		n.Kind, n.Text = Null, "null"
	case cue.StringKind:
		n.Kind = String
		n.Text, _ = v.String()
		e.short(n.Text, at)
	case cue.BoolKind, cue.IntKind, cue.FloatKind:
		n.Kind = Number
		if v.Kind() == cue.BoolKind {
			n.Kind = Bool
		}
		text, err := v.MarshalJSON()
		if err != nil {
			e.fail(diag.Evaluation, at, err.Error())
		}
		n.Text = string(text)
		e.short(n.Text, at)
	case cue.ListKind:
		n.Kind = List
		for it, _ := v.List(); it.Next() && len(e.out.Findings) == 0; {
			n.Elems = append(n.Elems, e.node(it.Value(), depth+1))
		}
	case cue.StructKind:
		n.Kind = Struct
		e.fields(n, v, depth)
	default:
		e.fail(diag.WrongType, at, "a value of kind "+v.Kind().String()+" is not configuration data")
	}
	return n
}

// short holds a text of the result to MaxText.
func (e *evaluator) short(text string, at *wirePlace) {
	if len(text) > MaxText {
		e.fail(diag.TooLarge, at, fmt.Sprintf("a text of the result may have %d bytes, and this one has %d", MaxText, len(text)))
	}
}

// fields reads the regular fields of an object; hidden fields and definitions
// are the program's own.
func (e *evaluator) fields(n *wireNode, v cue.Value, depth int) {
	it, err := v.Fields()
	if err != nil {
		e.cueErrors(err)
		return
	}
	for it.Next() && len(e.out.Findings) == 0 {
		if len(n.Fields) == MaxFields {
			e.fail(diag.TooDeep, n.At, fmt.Sprintf("an object of the result has more than %d fields", MaxFields))
			return
		}
		e.short(it.Selector().Unquoted(), n.At)
		f := wireField{Name: it.Selector().Unquoted(), Value: e.node(it.Value(), depth+1)}
		if source, ok := it.Value().Source().(*ast.Field); ok {
			f.At = e.place(source.Label.Pos())
		} else if f.Value != nil {
			f.At = f.Value.At
		}
		n.Fields = append(n.Fields, f)
	}
}

// denied is a module registry that has nothing, so that no import leaves the
// folder.
type denied struct{}

var errDenied = fmt.Errorf("modules are not fetched; only packages below the folder of the configuration can be imported")

func (denied) ModFile(context.Context, module.Version) (*modfile.File, error) { return nil, errDenied }
func (denied) Fetch(context.Context, module.Version) (module.SourceLoc, error) {
	return module.SourceLoc{}, errDenied
}
func (denied) ModuleVersions(context.Context, string) ([]string, error) { return nil, errDenied }
