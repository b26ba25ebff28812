package check

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/schema"
)

// maxFindings bounds the findings of one run. Nobody reads more, and a hostile
// input could have millions.
const maxFindings = 10_000

// maxJudges bounds the goroutines that judge pieces of one configuration.
const maxJudges = 4

// Shape holds a tree against the schema and reports every mistake of shape in
// it, sorted. An empty list means that the tree is valid against the schema:
// every field is known and has its type, and every required field is there.
//
// The path of a missing field is the pointer that it would have; its position
// is that of its object.
func Shape(ctx context.Context, t *source.Tree) diag.List {
	if plan := compiled(t); plan != nil {
		return plan
	}
	if tests := tests(t); tests != nil {
		return tests
	}
	return shape(ctx, t, configurations())
}

// Tests is Shape for a file of tests of routing decisions.
func Tests(ctx context.Context, t *source.Tree) diag.List {
	out := shape(ctx, t, language{schema.TestFiles(), "#Tests"})
	for i := range out {
		d := &out[i]
		if rest, ok := strings.CutPrefix(d.Message, nameOf(nil)+" "); ok {
			d.Message = "the file of tests " + rest
		}
		// What else a whole configuration lacks and has is no news.
		if d.Path == "/tests" && d.Code == diag.MissingField && t.Node("/models") != nil {
			d.Hint = "this is a configuration; a file of tests names it, as in config: routing.yaml, and has tests"
			return diag.List{*d}
		}
	}
	return out
}

func shape(ctx context.Context, t *source.Tree, l language) diag.List {
	pieces := split(t.Root())
	results := make([]diag.List, len(pieces))
	var next atomic.Int64
	var judges sync.WaitGroup
	for range min(maxJudges, runtime.GOMAXPROCS(0), len(pieces)) {
		judges.Go(func() {
			j := judge{tree: t, language: l}
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(pieces) {
					return
				}
				results[i] = j.piece(pieces[i])
			}
		})
	}
	judges.Wait()
	var out diag.List
	for _, l := range results {
		out = append(out, l...)
	}
	if ctx.Err() != nil {
		out.Add(diag.New(diag.Interrupted, diag.Pos{}, "", "the run was cancelled: "+context.Cause(ctx).Error()))
	}
	out.Sort()
	if len(out) > maxFindings {
		rest := len(out) - maxFindings
		out = out[:maxFindings]
		out.Add(diag.New(diag.OtherShape, diag.Pos{}, "", fmt.Sprintf("%d more mistakes are not listed", rest)))
	}
	return out
}
