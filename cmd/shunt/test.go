package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/check"
	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/compiler/source"
	"shunt/runtime/simulate"
	"shunt/runtime/simulate/suite"
	"shunt/schema/plan"
)

func testCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "run tests of routing decisions",
		UsageText: "shunt test [OPTION]... FILE_test.yaml...",
		Description: "Decides the requests of test files with the code that shuntd runs, and compares the decisions with what the\n" +
			"files expect. A file is YAML, JSON or CUE:\n\n" +
			"   config: routing.yaml            # a file, or a list of files that are unified; or plan: plan.json\n" +
			"   world: {...}                    # or world_file; as for shunt explain, for tests without their own\n" +
			"   tests:\n" +
			"     - name: boundaries\n" +
			"       request: {max_output_tokens: 100}\n" +
			"       lengths:                    # all lengths of a range, wherever a bucket begins or ends\n" +
			"         - {from: 1, to: 4096, bucket: short}\n" +
			"         - {from: 4097, to: 131072, buckets: [long]}\n" +
			"         - {from: 131073, error: no_matching_bucket}\n" +
			"     - name: full\n" +
			"       request: {input_tokens: [1, 4096]}\n" +
			"       world: {engines: [{id: P1, inflight: 64}]}\n" +
			"       expect:\n" +
			"         bucket: long\n" +
			"         rejections: [{engine: P1, limit: max_inflight_requests}]\n" +
			"     - name: spread\n" +
			"       request: {input_tokens: 10}\n" +
			"       repeat: 100\n" +
			"       expect: {distribution: {P1: {min: 40, max: 60}}}\n" +
			"     - name: the session moves when its engine is gone\n" +
			"       steps:                      # follow each other in one world\n" +
			"         - request: {input_tokens: 10, session_key: s}\n" +
			"           expect: {plain: P1, reason: assigned}\n" +
			"         - change: {engines: [{id: P1, healthy: false}]}\n" +
			"           expect: {plain: P2}     # the request is that of the step before\n\n" +
			"A request is facts (model, input_tokens, token_ids, max_output_tokens or expected_peak_tokens, session_key,\n" +
			"routing_key, ttft_target_ms, tps_target, or headers as clients send them), or a prompt, body or body_file,\n" +
			"whose length is found as shuntd does. expect takes bucket, buckets (those that take the length, in try\n" +
			"order), fates (what became of each bucket), plain, prefill and decode (an engine or a list), reason and\n" +
			"decode_reason, error, stage, status, code, rejections and distribution. Each test, and each length of a\n" +
			"list, begins with the world as it is described; repetitions and steps follow each other in it, so that\n" +
			"bindings and the state of policies stay. A step has change, request, repeat and expect: change is a world\n" +
			"that says what is different from then on, and what it does not mention stays. bindings_unavailable: true\n" +
			"stops the affinity store, unavailable: timeout in prefixes the prefix index. Draws are made from seed (1),\n" +
			"so that a test gives the same result always. Paths are relative to the file of tests.\n\n" +
			"Coverage counts the buckets that served, the reasons for which they were skipped, the groups picked from,\n" +
			"the outcomes of policies that have several (with a Redis also that it is down), and the admission limits\n" +
			"that refused.\n\n" +
			"Exit status: 0 all passed, 1 a test failed, a file has a mistake, or the coverage is under --fail-under,\n" +
			"2 wrong usage, also when --run matches nothing, 3 the job could not be done.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "plan", Usage: "test the plan `FILE` and not what the files name"},
			&cli.StringFlag{Name: "run", Usage: "run only the tests whose names match `REGEXP`; a length is part of the name, as in boundaries/1..4096"},
			&cli.StringSliceFlag{Name: "format", Usage: "report as `NAME[=FILE]`: text, json or junit; repeat it for several (default: text)"},
			&cli.StringFlag{Name: "junit", Usage: "the same as --format junit=`FILE`, beside what goes to standard output"},
			&cli.BoolFlag{Name: "coverage", Usage: "print what of the plans was reached, and what was not"},
			&cli.Float64Flag{Name: "fail-under", Usage: "exit with 1 if less than `PERCENT` of a plan was reached"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only what failed, and the summary"},
			noColorFlag(),
		}, inputFlags()),
		Action: func(c *cli.Context) error { return runTests(c, s) },
	}
}

// testRun is one run of test files.
type testRun struct {
	c       *cli.Context
	match   *regexp.Regexp
	targets []target
	// files are those that were read, in order.
	files    []*testFile
	findings diag.List
	// plans are those that were compiled or loaded, by path.
	plans map[string]*plan.Document
	// coverages are by digest, in the order of their first use.
	coverages []*planCoverage
	// named are the files that the test files name, which are read too.
	named []string
	// lines are for excerpts, one of each tree.
	lines []func(string, int, int) []string
}

// testFile is one test file, the plan that it tests, and its results.
type testFile struct {
	name     string
	tree     *source.Tree
	file     *suite.File
	planName string
	plan     *plan.Document
	results  []suite.Result
}

type planCoverage struct {
	name, digest string
	*suite.Coverage
}

func runTests(c *cli.Context, s *streams) error {
	under := c.Float64("fail-under")
	targets, err := parseTargets(c, "format", []string{"text", "json", "junit"})
	if err != nil {
		return err
	}
	match, err := regexp.Compile(c.String("run"))
	switch {
	case err != nil:
		return wrongUsage("--run %q is no regular expression: %v", c.String("run"), err)
	case !(under >= 0 && under <= 100):
		return wrongUsage("--fail-under %v is not from 0 to 100", under)
	case c.IsSet("junit") && c.String("junit") == "":
		return wrongUsage("--junit names no file")
	case c.NArg() == 0:
		return wrongUsage("test needs a file of tests; see shunt test --help")
	}
	in, err := newInputs(c, s, c.Args().Slice())
	if err != nil {
		return err
	}
	if junit := c.String("junit"); junit != "" {
		targets = append(targets, target{report.JUnit, junit})
	}
	if err := distinct(filesOf(targets), append(in.names(), c.String("plan"))); err != nil {
		return err
	}
	t := &testRun{c: c, match: match, targets: targets, plans: make(map[string]*plan.Document)}
	ran := 0
	for _, input := range in.list {
		f, err := t.run(c.Context, in.options.Source, input)
		if err != nil {
			return err
		}
		t.files = append(t.files, f)
		ran += len(f.results)
	}
	if err := distinct(filesOf(targets), t.named); err != nil {
		return err
	}
	t.findings.Sort()
	t.findings.Mask()
	if ran == 0 && !t.findings.HasErrors() {
		return wrongUsage("--run %q matches no test", c.String("run"))
	}
	if err := t.write(s); err != nil {
		return err
	}
	return t.verdict(under)
}

// verdict is the exit status.
func (t *testRun) verdict(under float64) error {
	if t.findings.Failed() {
		return exitStatus(exitFailed)
	}
	_, failed := t.counts()
	if failed > 0 || t.findings.HasErrors() || len(t.under(under)) > 0 {
		return exitStatus(exitFindings)
	}
	return nil
}

// under lists the plans of which too little was reached.
func (t *testRun) under(percent float64) (out []*planCoverage) {
	for _, p := range t.coverages {
		if p.Percent() < percent {
			out = append(out, p)
		}
	}
	return out
}

func (t *testRun) counts() (passed, failed int) {
	for _, f := range t.files {
		for i := range f.results {
			if f.results[i].Passed() {
				passed++
			} else {
				failed++
			}
		}
	}
	return passed, failed
}

// run reads a file and runs its tests, unless it has a mistake.
func (t *testRun) run(ctx context.Context, o source.Options, input source.Input) (*testFile, error) {
	f := &testFile{name: input.Name}
	tree, findings := source.Read(ctx, o, []source.Input{input})
	if tree != nil {
		f.tree = tree
		t.lines = append(t.lines, tree.Lines)
		findings = append(findings, check.Tests(ctx, tree)...)
	}
	for i := range findings {
		if findings[i].Code == diag.EmptyInput {
			findings[i].Hint = "write at least config or plan, and tests"
		}
	}
	t.findings = append(t.findings, findings...)
	if findings.HasErrors() {
		return f, nil
	}
	var err error
	if f.file, err = suite.Decode(tree.JSON()); err != nil {
		return f, err
	}
	before := len(t.findings)
	if err := t.load(ctx, f); err != nil {
		return f, err
	}
	if f.plan == nil {
		return f, nil
	}
	for _, p := range suite.Check(f.file, &f.plan.Body) {
		t.problem(f, &p)
	}
	if len(t.findings) > before {
		return f, nil
	}
	f.results, err = suite.Run(ctx, f.file, &f.plan.Body, t.match.MatchString, t.coverage(f))
	if err != nil {
		return f, fmt.Errorf("%s: %w", f.name, err)
	}
	return f, nil
}

// coverage is that of the plan of a file.
func (t *testRun) coverage(f *testFile) *suite.Coverage {
	for _, p := range t.coverages {
		if p.digest == f.plan.Digest {
			return p.Coverage
		}
	}
	p := &planCoverage{f.planName, f.plan.Digest, suite.NewCoverage(&f.plan.Body)}
	t.coverages = append(t.coverages, p)
	return p.Coverage
}

// add adds a finding about a place in a test file.
func (t *testRun) add(code diag.Code, f *testFile, pointer, message, hint string) {
	d := t.findings.Add(diag.New(code, f.pos(pointer), pointer, message))
	d.End, d.Hint = f.tree.End(d.Pos), hint
}

// pos is the place of a pointer: that of the name where the pointer ends in an
// id that the user chose as the name of a field.
func (f *testFile) pos(pointer string) diag.Pos {
	tokens := source.Split(pointer)
	if n := len(tokens); n > 1 && (tokens[n-2] == "fates" || tokens[n-2] == "distribution") {
		return f.tree.KeyPos(pointer)
	}
	return f.tree.Pos(pointer)
}

// problem makes a finding of a mistake that the suite found.
func (t *testRun) problem(f *testFile, p *suite.Problem) {
	hint := p.Hint
	if len(p.Known) > 0 {
		const most = 12
		hint = "known: " + strings.Join(p.Known[:min(len(p.Known), most)], ", ")
		if left := len(p.Known) - most; left > 0 {
			hint += fmt.Sprintf(" and %d more", left)
		}
		if near := nearest(p.Wrong, p.Known); near != "" && p.Wrong != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	t.add(diag.Code(p.Code), f, p.Pointer, p.Message, hint)
}

// load reads the plan and the other files that a test file names.
func (t *testRun) load(ctx context.Context, f *testFile) error {
	override := t.c.String("plan")
	switch {
	case override != "":
		f.planName = override
		t.loadPlan(f, override, "")
	case f.file.Plan != "" && f.file.Config != nil:
		t.add(diag.TestNoSubject, f, "/plan", "the file names a plan and a configuration", "keep one of the two")
	case f.file.Plan != "":
		f.planName = f.beside(f.file.Plan)
		t.loadPlan(f, f.planName, "/plan")
	case f.file.Config != nil:
		t.compile(ctx, f)
	default:
		t.add(diag.TestNoSubject, f, "", "the file names no plan", "write config: routing.yaml or plan: plan.json, relative to the file, or use --plan")
	}
	t.world(f, "", &f.file.World, f.file.WorldFile)
	for i := range f.file.Tests {
		one := &f.file.Tests[i]
		at := fmt.Sprintf("/tests/%d", i)
		t.world(f, at, &one.World, one.WorldFile)
		t.body(f, at, one.Request)
		for j := range one.Steps {
			t.body(f, fmt.Sprintf("%s/steps/%d", at, j), one.Steps[j].Request)
		}
	}
	return ctx.Err()
}

// body puts the content of a body's file in its place.
func (t *testRun) body(f *testFile, at string, r *suite.Request) {
	if r == nil || r.BodyFile == "" {
		return
	}
	at += "/request/body_file"
	if r.Body != nil {
		t.add(diag.TestConflict, f, at, "body and body_file exclude each other", "keep one of the two")
		return
	}
	if data := t.read(f, at, r.BodyFile, maxRequestBytes); data != nil {
		r.Body = data
	}
}

// beside is a path relative to the test file.
func (f *testFile) beside(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(f.name), name)
}

// read reads a file that a test file names, nil if it cannot.
func (t *testRun) read(f *testFile, pointer, name string, limit int64) []byte {
	t.named = append(t.named, f.beside(name))
	data, err := readBounded(f.beside(name), limit)
	if err != nil {
		t.add(diag.Unreadable, f, pointer, fmt.Sprintf("%s: %v", f.beside(name), reasonOf(err)), "")
		return nil
	}
	return data
}

// reasonOf is an error of a file without the path.
func reasonOf(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// world puts the content of a world's file in its place.
func (t *testRun) world(f *testFile, at string, to **simulate.World, name string) {
	if name == "" {
		return
	}
	at += "/world_file"
	if *to != nil {
		t.add(diag.TestNoSubject, f, at, "world and world_file exclude each other", "keep one of the two")
		return
	}
	data := t.read(f, at, name, maxRequestBytes)
	if data == nil {
		return
	}
	w, err := simulate.ParseWorld(data)
	if err != nil {
		t.add(diag.TestWorld, f, at, fmt.Sprintf("%s: %v", f.beside(name), err), "")
		return
	}
	*to = &w
}

// loadPlan loads the plan of a file, once.
func (t *testRun) loadPlan(f *testFile, name, pointer string) {
	if f.plan = t.plans[name]; f.plan != nil {
		return
	}
	t.named = append(t.named, name)
	data, err := readBounded(name, maxPlanBytes)
	if err != nil {
		t.add(diag.Unreadable, f, pointer, fmt.Sprintf("%s: %v", name, reasonOf(err)), "")
		return
	}
	document, err := plan.Load(data)
	if err != nil {
		lines := linesOf(data)
		t.lines = append(t.lines, func(file string, first, last int) []string {
			if file != name {
				return nil
			}
			return lines(file, first, last)
		})
		t.findings = append(t.findings, planFinding(name, err))
		return
	}
	f.plan, t.plans[name] = document, document
}

// compile compiles the configuration of a file, once.
func (t *testRun) compile(ctx context.Context, f *testFile) {
	in := new(inputs)
	names := make([]string, len(f.file.Config))
	for i, name := range f.file.Config {
		names[i] = f.beside(name)
		in.list = append(in.list, source.Input{Name: names[i]})
	}
	f.planName = strings.Join(names, " ")
	key := strings.Join(names, "\x00")
	if f.plan = t.plans[key]; f.plan != nil {
		return
	}
	in.options.Compiler = "shunt " + version()
	in.options.Source = source.Options{
		MaxBytes: t.c.Int64("max-bytes"), AllowCUECode: t.c.Bool("allow-cue-code"), EvalTimeout: t.c.Duration("eval-timeout"),
	}
	r := in.compile(ctx)
	t.named = append(t.named, in.files(r)...)
	for _, d := range r.Findings {
		switch {
		case d.Severity != diag.Error:
		case d.Code.Failure() && !d.Pos.Known():
			name := f.planName
			if d.Pos.File != "" {
				name = d.Pos.File
			}
			t.add(d.Code, f, "/config", fmt.Sprintf("%s: %s", name, d.Message), d.Hint)
		default:
			t.findings = append(t.findings, d)
		}
	}
	if r.Tree != nil {
		t.lines = append(t.lines, r.Tree.Lines)
	}
	f.plan, t.plans[key] = r.Plan, r.Plan
}
