package source

import (
	"context"
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
// or .cue) decides its syntax, and Name appears in every position.
type Input struct {
	Name string
	// Reader gives the content when it is not nil, otherwise the file Name is
	// read. Standard input is a Reader with a name that has an extension.
	Reader io.Reader
}

// Read reads the inputs and unifies them. It reports every mistake that it can
// see. The tree is nil when an input could not be read or parsed as a whole;
// after mistakes that leave a tree to look at, such as a repeated key, both are
// returned, so that the same run can report the mistakes of shape too. A list
// without errors always comes with a tree.
func Read(ctx context.Context, o Options, inputs []Input) (*Tree, diag.List) {
	return nil, nil
}
