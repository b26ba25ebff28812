package compiler

import (
	"context"
	"fmt"
	"path"
	"path/filepath"

	"shunt/compiler/check"
	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/compiler/lower"
	"shunt/compiler/source"
	"shunt/schema/plan"
)

// Options of Compile. The zero value is ready to use.
type Options struct {
	Source source.Options
	// Compiler goes into the provenance of the plan, such as "shunt 1.2.0".
	Compiler string
	// Observe is called with the name of each phase before it starts; nil is
	// allowed.
	Observe func(phase string)
}

// Result is what a compilation found out.
type Result struct {
	// Plan is nil when Findings has an error.
	Plan *plan.Document
	// Findings are sorted.
	Findings diag.List
	// Tree is what was read, for excerpts; nil when nothing could be read.
	Tree *source.Tree
}

// Compile reads the inputs, checks them and makes the plan. It reports every
// mistake that it can see, and makes no plan when there is one.
func Compile(ctx context.Context, o Options, inputs []source.Input) Result {
	c := compilation{options: o, inputs: inputs}
	for _, p := range phases() {
		if ctx.Err() != nil {
			c.findings.Add(diag.New(diag.Interrupted, diag.Pos{}, "", fmt.Sprintf("interrupted before the phase %q: %v", p.name, context.Cause(ctx))))
			break
		}
		if o.Observe != nil {
			o.Observe(p.name)
		}
		if !p.run(&c, ctx) {
			break
		}
	}
	c.findings.Sort()
	return Result{Plan: c.plan, Findings: c.findings, Tree: c.tree}
}

// phase is a step of a compilation. It reports whether the next one makes sense.
type phase struct {
	name string
	run  func(*compilation, context.Context) bool
}

// phases lists the steps in their order. Shape and rules both run on an input
// with mistakes, so that one run reports all of them; from lower on, there are
// none.
func phases() []phase {
	return []phase{
		{"read", (*compilation).read},
		{"shape", (*compilation).shape},
		{"decode", (*compilation).decode},
		{"rules", (*compilation).rules},
		{"lower", (*compilation).lower},
		{"seal", (*compilation).seal},
	}
}

// compilation is what the phases hand on.
type compilation struct {
	options  Options
	inputs   []source.Input
	findings diag.List
	tree     *source.Tree
	config   *config.Config
	body     plan.Body
	origins  []plan.Origins
	plan     *plan.Document
}

func (c *compilation) read(ctx context.Context) bool {
	c.tree, c.findings = source.Read(ctx, c.options.Source, c.inputs)
	return c.tree != nil && !c.findings.Failed()
}

func (c *compilation) shape(ctx context.Context) bool {
	c.findings = append(c.findings, check.Shape(ctx, c.tree)...)
	return !c.findings.Failed()
}

func (c *compilation) decode(context.Context) bool {
	var err error
	if c.config, err = config.Decode(c.tree.JSON()); err != nil {
		c.internal(err)
	}
	return err == nil
}

func (c *compilation) rules(context.Context) bool {
	c.findings = append(c.findings, check.Rules(c.tree, c.config, c.findings)...)
	return !c.findings.HasErrors()
}

func (c *compilation) lower(context.Context) bool {
	sources := c.tree.Sources()
	index := make(map[string]int, len(sources))
	for i := range sources {
		index[sources[i].Path] = i
	}
	c.body, c.origins = lower.Lower(c.config, func(pointer string) (int, int, bool) {
		p := c.tree.Pos(pointer)
		i, ok := index[p.File]
		return i, p.Line, ok && p.Known()
	}, c.resolve)
	return true
}

// resolve makes a path relative to the working directory of the compiler, unless
// it is absolute. That keeps names of folders of this machine out of the plan.
func (c *compilation) resolve(pointer, name string) string {
	if path.IsAbs(name) || filepath.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(filepath.ToSlash(filepath.Dir(c.tree.Pos(pointer).File)), name)
}

// seal makes the document. A body that the loader would refuse is a mistake of
// the compiler, not of the configuration.
func (c *compilation) seal(context.Context) bool {
	prov := plan.Provenance{Compiler: c.options.Compiler, Origins: c.origins}
	for _, s := range c.tree.Sources() {
		prov.Sources = append(prov.Sources, plan.Source{Path: s.Path, SHA256: s.SHA256})
	}
	document, err := plan.Seal(c.body, prov)
	if err != nil {
		c.internal(err)
		return false
	}
	c.plan = document
	return true
}

// internal reports a state that no input should lead to.
func (c *compilation) internal(err error) {
	c.findings.Add(diag.New(diag.Internal, diag.Pos{}, "", err.Error()))
}
