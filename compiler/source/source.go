package source

import (
	"context"
	"fmt"
	"io"
	"time"

	"shunt/compiler/diag"
)

// Defaults and bounds of Read.
const (
	DefaultMaxBytes    = 8 << 20
	DefaultEvalTimeout = 5 * time.Second
	// MaxCUEBytes bounds each CUE input: its evaluation is dearer than parsing.
	MaxCUEBytes = 1 << 20
	// MaxDepth is the deepest nesting of objects and lists in an input.
	MaxDepth = 100
	// MaxText bounds the bytes of one string, name or number. Findings quote
	// them, and nothing that a configuration names is as long.
	MaxText = 16 << 10
	// MaxNodes bounds the values in all inputs together, aliases expanded.
	MaxNodes = 2_000_000
	// MaxFields bounds the fields of one object, whose evaluation cost grows
	// with the square of their number.
	MaxFields = 10_000
)

// Options of Read. The zero value reads data of up to DefaultMaxBytes.
type Options struct {
	// MaxBytes bounds the bytes of all inputs together; 0 is DefaultMaxBytes.
	MaxBytes int64
	// AllowCUECode evaluates CUE inputs that are programs in a child process,
	// instead of refusing them.
	AllowCUECode bool
	// EvalTimeout bounds that evaluation; 0 is DefaultEvalTimeout.
	EvalTimeout time.Duration
	// Root is the folder outside of which a CUE program may read nothing. Empty
	// is the nearest folder above the first CUE input that holds cue.mod, else
	// the folder of that input.
	Root string
}

// Input is one configuration to read. The extension of Name (.yaml, .yml, .json
// or .cue) decides its syntax unless As does, and Name appears in every position.
type Input struct {
	Name string
	// Reader gives the content when it is not nil, otherwise the file Name is
	// read. Standard input is a Reader with a name that has an extension.
	Reader io.Reader
	// As is the extension to go by, when it is not that of Name. Only here may it
	// be .toml, for TOML is a syntax of files that are migrated and not of
	// configurations.
	As string
}

// Read reads the inputs and unifies them. It reports every mistake that it can
// see. The tree is nil when an input could not be read or parsed as a whole;
// after mistakes that leave a tree to look at, such as a repeated key, both are
// returned, so that the same run can report the mistakes of shape too. A list
// without errors always comes with a tree.
func Read(ctx context.Context, o Options, inputs []Input) (*Tree, diag.List) {
	r := &reader{options: o}
	if r.options.MaxBytes == 0 {
		r.options.MaxBytes = DefaultMaxBytes
	}
	if r.options.EvalTimeout == 0 {
		r.options.EvalTimeout = DefaultEvalTimeout
	}
	if len(inputs) == 0 {
		r.add(diag.Unreadable, diag.Pos{}, "no input was named")
		return nil, r.findings
	}
	tree := r.read(ctx, inputs)
	if ctx.Err() != nil {
		r.add(diag.Interrupted, diag.Pos{}, "the run was cancelled: "+context.Cause(ctx).Error())
		tree = nil
	}
	r.findings.Sort()
	return tree, r.findings
}

// reader is the state of one Read.
type reader struct {
	options  Options
	findings diag.List
	files    []*file
	// bytes and weight are what the inputs took so far of MaxBytes and
	// MaxNodes.
	bytes  int64
	weight int
	// pkg is the package of the CUE inputs, empty before the first that has
	// one, and pkgAt where it is named.
	pkg   string
	pkgAt place
	// broken is set once an input gave no root, so that there is no tree.
	broken bool
}

func (r *reader) add(code diag.Code, pos diag.Pos, message string) *diag.Finding {
	return r.findings.Add(diag.New(code, pos, "", message))
}

// fail records a mistake after which there is no tree.
func (r *reader) fail(code diag.Code, pos diag.Pos, message string) *diag.Finding {
	r.broken = true
	return r.add(code, pos, message)
}

// read reads each input, evaluates CUE programs together, and unifies.
func (r *reader) read(ctx context.Context, inputs []Input) *Tree {
	var roots []*Node
	var cueFiles []int
	programs := false
	for _, in := range inputs {
		id, syntax, ok := r.load(in)
		if !ok {
			continue
		}
		if syntax == syntaxCUE {
			cueFiles = append(cueFiles, id)
			programs = programs || r.options.AllowCUECode && !isData(r.files[id])
			continue
		}
		roots = append(roots, r.parse(id, syntax))
	}
	if programs && !r.broken {
		roots = append(roots, r.evaluate(ctx, cueFiles))
	} else if !programs {
		for _, id := range cueFiles {
			roots = append(roots, r.parse(id, syntaxCUE))
		}
	}
	if r.broken {
		return nil
	}
	root := roots[0]
	for _, n := range roots[1:] {
		root = r.unify(root, n, "")
	}
	return &Tree{root: root, files: r.files}
}

// parse parses one loaded file. A panic of a parser is a finding and not the
// end of the process.
func (r *reader) parse(id int, s syntax) (root *Node) {
	f := r.files[id]
	defer func() {
		if p := recover(); p != nil {
			r.fail(diag.Internal, diag.Pos{File: f.name}, fmt.Sprintf("the parser failed: %v", p))
			root = nil
		}
	}()
	b := &builder{reader: r, file: f, id: uint32(id)}
	switch s {
	case syntaxYAML:
		root = b.yaml()
	case syntaxJSON:
		root = b.json()
	case syntaxCUE:
		root = b.cue()
	case syntaxTOML:
		root = b.toml()
	}
	if root == nil {
		r.broken = true
		return nil
	}
	if root.Kind != Struct {
		r.fail(diag.WrongType, f.pos(int(root.at.offset)), "the configuration is "+root.Kind.String()+", not an object")
	}
	return root
}
