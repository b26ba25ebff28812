package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"shunt/compiler/diag"
)

// Bounds of what the parent keeps of a child's output.
const (
	maxResponse = 256 << 20
	maxStderr   = 64 << 10
)

// evaluate runs the CUE files with these indexes together in a limited child
// process and returns their value.
func (r *reader) evaluate(ctx context.Context, ids []int) *Node {
	req, ok := r.request(ids)
	if !ok {
		return nil
	}
	at := diag.Pos{File: r.files[ids[0]].name}
	var res response
	out, err := r.runChild(ctx, req)
	if err == nil {
		err = json.Unmarshal(out, &res)
	}
	if err != nil {
		r.fail(diag.EvaluationLimit, at, err.Error())
		return nil
	}
	files := r.childFiles(ids, req, res)
	for _, f := range res.Findings {
		pos := at
		if p := f.At; p != nil && p[0] < len(files) {
			pos = r.files[files[p[0]]].pos(p[1])
		}
		r.fail(f.Code, pos, f.Message)
	}
	if res.Value == nil {
		r.broken = true
		return nil
	}
	c := childTree{reader: r, files: files, fallback: place{file: uint32(ids[0])}}
	return c.node(res.Value)
}

// request chooses the root and names the files below it.
func (r *reader) request(ids []int) (request, bool) {
	req := request{Root: r.options.Root}
	for _, id := range ids {
		f := r.files[id]
		abs, err := filepath.Abs(f.name)
		if err == nil && req.Root == "" {
			req.Root = moduleRoot(filepath.Dir(abs))
		}
		var root, rel string
		if err == nil {
			root, err = filepath.Abs(req.Root)
		}
		if err == nil {
			rel, err = filepath.Rel(root, abs)
		}
		if err != nil || !filepath.IsLocal(rel) {
			r.fail(diag.Unreadable, diag.Pos{File: f.name}, fmt.Sprintf("the file is outside of %s, the folder of the CUE program", req.Root))
			return request{}, false
		}
		req.Root = root
		req.Files = append(req.Files, namedText{filepath.ToSlash(rel), f.data})
	}
	return req, true
}

// moduleRoot returns the nearest folder at or above dir that holds cue.mod, and
// dir itself when there is none.
func moduleRoot(dir string) string {
	for at := dir; ; {
		if info, err := os.Stat(filepath.Join(at, "cue.mod")); err == nil && info.IsDir() {
			return at
		}
		up := filepath.Dir(at)
		if up == at {
			return dir
		}
		at = up
	}
}

// runChild runs this program again as an evaluation child, with an empty
// environment, and returns what it wrote.
func (r *reader) runChild(ctx context.Context, req request) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the evaluation child cannot be started: %w", err)
	}
	in, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("the evaluation child cannot be started: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.EvalTimeout)
	defer cancel()
	stdout, stderr := &bounded{max: maxResponse}, &bounded{max: maxStderr, drop: true}
	cmd := exec.CommandContext(ctx, self, childArgument)
	cmd.Env = []string{}
	cmd.Dir = req.Root
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), stdout, stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, r.childDeath(ctx, err, stdout, stderr)
	}
	return stdout.Bytes(), nil
}

// childDeath words why a child gave no result.
func (r *reader) childDeath(ctx context.Context, err error, stdout, stderr *bounded) error {
	text := stderr.String()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the evaluation took longer than %s", r.options.EvalTimeout)
	case stdout.full:
		return errors.New("the result of the evaluation is too large")
	case strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory"):
		return errors.New("the evaluation needs more than 4 GiB of memory")
	case strings.Contains(text, "stack overflow") || strings.Contains(text, "stack exceeds"):
		return errors.New("the evaluation nests too deeply")
	case strings.Contains(err.Error(), "CPU time limit") || strings.Contains(err.Error(), "killed"):
		return errors.New("the evaluation used too much processor time")
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return fmt.Errorf("the evaluation child failed: %w: %s", err, first)
}

// bounded keeps up to max bytes. What goes beyond is dropped or is an error.
type bounded struct {
	bytes.Buffer
	max  int
	drop bool
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := max(b.max-b.Len(), 0)
	if len(p) <= room {
		return b.Buffer.Write(p)
	}
	b.full = true
	if !b.drop {
		return 0, errTooLarge
	}
	b.Buffer.Write(p[:room])
	return len(p), nil
}

// childFiles returns, for each file that the child read, its index among the
// files of the reader. Files that were imported are added, named by their path
// below the root, joined to the folder of the first input.
func (r *reader) childFiles(ids []int, req request, res response) []int {
	base := strings.TrimSuffix(filepath.ToSlash(r.files[ids[0]].name), req.Files[0].Path)
	var out []int
	for _, f := range res.Files {
		i := slices.IndexFunc(req.Files, func(q namedText) bool { return q.Path == f.Path })
		if i >= 0 {
			out = append(out, ids[i])
			continue
		}
		r.files = append(r.files, newFile(base+f.Path, f.Data))
		out = append(out, len(r.files)-1)
	}
	return out
}

// childTree turns the child's value into nodes.
type childTree struct {
	*reader
	files    []int
	fallback place
}

// at returns the place of p, or the start of the first input for values that
// the program made up.
func (c *childTree) at(p *wirePlace) place {
	if p == nil || p[0] < 0 || p[0] >= len(c.files) {
		return c.fallback
	}
	return place{uint32(c.files[p[0]]), uint32(max(p[1], 0))}
}

func (c *childTree) node(w *wireNode) *Node {
	n := &Node{Kind: w.Kind, Text: w.Text, at: c.at(w.At)}
	for _, f := range w.Fields {
		n.Fields = append(n.Fields, Field{Name: f.Name, Value: c.node(f.Value), at: c.at(f.At)})
	}
	for _, e := range w.Elems {
		n.Elems = append(n.Elems, c.node(e))
	}
	return n
}
