package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler"
	"shunt/compiler/source"
	"shunt/compiler/suppress"
)

// maxPlanBytes bounds the plans that are read. A plan of 10,000 PD buckets has
// 20 MB.
const maxPlanBytes = 512 << 20

// inputFlags are the options of every command that reads configurations.
func inputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "stdin-name", Value: "stdin.yaml", Usage: "`NAME` of standard input in findings; its extension is the syntax"},
		&cli.BoolFlag{Name: "allow-cue-code", Usage: "evaluate CUE files that are programs, in a limited child process"},
		&cli.DurationFlag{Name: "eval-timeout", Value: source.DefaultEvalTimeout, Usage: "longest `TIME` of that evaluation"},
		&cli.Int64Flag{Name: "max-bytes", Value: source.DefaultMaxBytes, Usage: "read at most `N` bytes of configuration"},
	}
}

// inputs is what a command compiles.
type inputs struct {
	options compiler.Options
	list    []source.Input
	// stdin is the content of standard input, for excerpts.
	stdin *bytes.Buffer
	name  string
}

// newInputs reads options and arguments. Files are opened later.
func newInputs(c *cli.Context, s *streams, names []string) (*inputs, error) {
	if len(names) == 0 {
		return nil, wrongUsage("%s needs a configuration; see shunt %[1]s --help", c.Command.Name)
	}
	if c.Duration("eval-timeout") <= 0 || c.Int64("max-bytes") <= 0 {
		return nil, wrongUsage("--eval-timeout and --max-bytes must be positive")
	}
	in := &inputs{stdin: new(bytes.Buffer), name: c.String("stdin-name"), options: compiler.Options{
		Compiler: "shunt " + version(),
		Source: source.Options{
			MaxBytes: c.Int64("max-bytes"), AllowCUECode: c.Bool("allow-cue-code"), EvalTimeout: c.Duration("eval-timeout"),
		},
	}}
	used := false
	for _, name := range names {
		if name != "-" {
			in.list = append(in.list, source.Input{Name: name})
			continue
		}
		if used {
			return nil, wrongUsage("standard input can be read only once")
		}
		used = true
		if slices.Contains(names, in.name) {
			return nil, wrongUsage("--stdin-name %s is the name of another input", in.name)
		}
		in.list = append(in.list, source.Input{Name: in.name, Reader: io.TeeReader(s.in, in.stdin)})
	}
	return in, nil
}

// names lists the files that are read.
func (in *inputs) names() []string {
	var out []string
	for _, one := range in.list {
		if one.Reader == nil {
			out = append(out, one.Name)
		}
	}
	return out
}

// compile compiles the inputs and applies the comments in them that suppress
// findings.
func (in *inputs) compile(ctx context.Context) compiler.Result {
	r := compiler.Compile(ctx, in.options, in.list)
	checkTokenizers(&r)
	if r.Tree != nil {
		r.Findings = suppress.Comments(r.Findings, r.Tree.Directives())
	}
	r.Findings.Mask()
	return r
}

// files lists what was read, or what should have been.
func (in *inputs) files(r compiler.Result) []string {
	var out []string
	if r.Tree != nil {
		for _, s := range r.Tree.Sources() {
			out = append(out, s.Path)
		}
		return out
	}
	for _, one := range in.list {
		out = append(out, one.Name)
	}
	return out
}

// lines returns a function for excerpts. Where nothing could be parsed there is
// no tree, and the files are read once more.
func (in *inputs) lines(r compiler.Result) func(string, int, int) []string {
	if r.Tree != nil {
		return r.Tree.Lines
	}
	texts := make(map[string][]string)
	return func(name string, first, last int) []string {
		text, ok := texts[name]
		if !ok {
			data := in.stdin.Bytes()
			if name != in.name || len(data) == 0 {
				data = reread(name, in.options.Source.MaxBytes)
			}
			data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
			text = strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
			texts[name] = text
		}
		if first < 1 || last > len(text) || first > last {
			return nil
		}
		return text[first-1 : last]
	}
}

// reread reads a file for excerpts. There are none of a file that cannot be read
// or of a pipe, which has been read and would block.
func reread(name string, limit int64) []byte {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, _ := readBounded(name, limit) // nil then
	return data
}

// readBounded reads a file of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	return readUpTo(f, limit)
}

func readUpTo(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("larger than %d bytes, the most that is read", limit)
	}
	return data, err
}

// readArgument reads the file of an argument, or standard input for "-".
func readArgument(s *streams, name string, limit int64) ([]byte, error) {
	if name == "-" {
		data, err := readUpTo(s.in, limit)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return data, nil
	}
	data, err := readBounded(name, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	return data, nil
}
