package suite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shunt/runtime/policy"
	"shunt/runtime/routing"
	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

// Result is what became of one case.
type Result struct {
	Name string
	// Pointer is the place of the case in its file.
	Pointer string
	// Decisions is how many requests were decided.
	Decisions int
	// Failures are the expectations that were not met, none for a pass.
	Failures []Failure
	// Outcome is the decision of the first failure in one line, or the last
	// decision.
	Outcome string
	// Steps are those of a sequence.
	Steps []StepResult
}

// StepResult is what became of one step.
type StepResult struct {
	// Name is step 1, or step 1, NAME.
	Name    string
	Pointer string
	Failed  bool
	// Outcome is that of the first decision that failed, or of the last one.
	Outcome string
}

// Passed reports whether everything was as expected.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// Failure is one expectation that was not met.
type Failure struct {
	// Pointer is the place of the expectation.
	Pointer string
	// Field is what was compared, such as bucket.
	Field string
	Want  string
	Got   string
	// When says which decision of several it was; Times counts those that
	// failed in this way.
	When  string
	Times int
}

// Run decides the cases of a file whose names match. A file with problems must
// not be run. What the decisions reach is added to the coverage, which is of the
// same plan. The error is a failure to decide.
func Run(ctx context.Context, f *File, body *plan.Body, match func(name string) bool, reached *Coverage) ([]Result, error) {
	var out []Result
	for i := range f.Tests {
		for _, c := range cases(i, &f.Tests[i], body) {
			if !match(c.name) {
				continue
			}
			r := runner{testCase: &c, body: body, reached: reached}
			r.world = f.World
			if f.Tests[i].World != nil {
				r.world = f.Tests[i].World
			}
			result, err := r.run(ctx)
			if err != nil {
				return out, fmt.Errorf("test %q: %w", c.name, err)
			}
			out = append(out, result)
		}
	}
	return out, nil
}

// runner decides one case.
type runner struct {
	*testCase
	body    *plan.Body
	world   *simulate.World
	reached *Coverage
	sim     *simulate.Simulation
	result  Result
	at      map[string]int // failures by pointer

	// What belongs to the part under way. Its outcome is that of the first failure,
	// or the last one.
	part    *part
	label   string // the name of the step
	picked  map[string]int64
	decided []simulate.Request
	failed  bool
	outcome string
	count   int
}

func (r *runner) run(ctx context.Context) (Result, error) {
	r.result = Result{Name: r.name, Pointer: r.pointer}
	r.at = make(map[string]int)
	var world simulate.World
	if r.world != nil {
		world = *r.world
	}
	seed := uint64(1)
	if r.test.Seed != nil {
		seed = *r.test.Seed
	}
	var err error
	if r.sim, err = simulate.New(r.body, world, seed); err != nil {
		return r.result, err
	}
	defer r.sim.Close()
	for i := range r.parts {
		r.part, r.label = &r.parts[i], ""
		r.picked, r.decided, r.failed, r.outcome, r.count = make(map[string]int64), nil, false, "", 0
		if s := r.part.step; s != nil {
			r.label = stepName(i, s)
			if s.Change != nil {
				if err := r.sim.Change(*s.Change); err != nil {
					return r.result, err
				}
			}
		}
		passed := r.result.Passed()
		if err := r.decide(ctx); err != nil {
			return r.result, err
		}
		r.shares()
		if passed {
			r.result.Outcome = r.outcome
		}
		if r.part.step != nil {
			r.result.Steps = append(r.result.Steps, StepResult{r.label, r.part.pointer, r.failed, r.outcome})
		}
	}
	return r.result, nil
}

func stepName(i int, s *Step) string {
	name := fmt.Sprintf("step %d", i+1)
	if s.Name != "" {
		name += ", " + s.Name
	}
	return name
}

// decide decides the requests of a part.
func (r *runner) decide(ctx context.Context) error {
	for _, length := range r.part.lengths {
		request, no, err := r.part.facts(ctx, r.body, length)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			r.undecided(length, err)
			continue
		}
		if no == nil {
			r.decided = append(r.decided, request)
		}
		for n := range r.part.repeat {
			if err := ctx.Err(); err != nil {
				return err
			}
			o := outcome{sim: r.sim, request: &request, refused: no}
			if no == nil {
				if o.d, err = r.sim.DecideTried(ctx, request); err != nil {
					return err
				}
				o.index = r.reached.observe(o.d)
			}
			r.judge(&o, r.when(length, n))
		}
	}
	r.reached.skipped(r.sim, r.decided)
	return nil
}

// undecided fails the case because the facts of its request cannot be found here,
// such as the tokens of a body without the tokenizer.
func (r *runner) undecided(length int64, err error) {
	r.fail(Failure{Pointer: r.part.at, Field: "request", Want: "a decision", Got: err.Error(), When: r.when(length, 0), Times: 1})
	r.outcome = "nothing"
}

// when names one decision of several.
func (r *runner) when(length int64, n int) string {
	var parts []string
	if r.label != "" {
		parts = append(parts, r.label)
	}
	if len(r.part.lengths) > 1 {
		parts = append(parts, fmt.Sprintf("input %d", length))
	}
	if r.part.repeat > 1 {
		parts = append(parts, fmt.Sprintf("repetition %d", n+1))
	}
	return strings.Join(parts, ", ")
}

// judge holds one outcome against every expectation.
func (r *runner) judge(o *outcome, when string) {
	r.result.Decisions++
	r.count++
	if d := o.d; d != nil {
		for _, p := range [...]*routing.PickTrace{d.Plain, d.Prefill, d.Decode} {
			if p != nil {
				r.picked[p.Engine]++
			}
		}
	}
	passed := !r.failed
	for _, w := range r.part.wants {
		for _, m := range o.compare(w.Expectation) {
			r.fail(Failure{Pointer: w.pointer + "/" + m.member, Field: strings.ReplaceAll(m.member, "/", " "), Want: m.want, Got: m.got, When: when, Times: 1})
		}
	}
	if passed {
		r.outcome = o.String()
	}
}

// fail adds a failure, or counts one that happened before.
func (r *runner) fail(f Failure) {
	r.failed = true
	if i, again := r.at[f.Pointer]; again {
		r.result.Failures[i].Times++
		return
	}
	r.at[f.Pointer] = len(r.result.Failures)
	r.result.Failures = append(r.result.Failures, f)
}

// shares holds the picks of all decisions of a part against distributions.
func (r *runner) shares() {
	for _, w := range r.part.wants {
		for _, id := range slices.Sorted(maps.Keys(w.Distribution)) {
			s, n := w.Distribution[id], r.picked[id]
			if s.Min != nil && n < *s.Min || s.Max != nil && n > *s.Max {
				r.fail(Failure{Pointer: w.pointer + "/distribution/" + escape(id), Field: "distribution " + id,
					Want: s.String(), Got: fmt.Sprintf("%d of %d", n, r.count), When: r.label, Times: 1})
			}
		}
	}
}

func (s Share) String() string {
	switch {
	case s.Min == nil && s.Max == nil:
		return "any"
	case s.Max == nil:
		return fmt.Sprintf("at least %d", *s.Min)
	case s.Min == nil:
		return fmt.Sprintf("at most %d", *s.Max)
	}
	return fmt.Sprintf("%d to %d", *s.Min, *s.Max)
}

// outcome is a decision, or the refusal before it.
type outcome struct {
	d       *routing.Decision
	refused *refusal

	sim     *simulate.Simulation
	request *simulate.Request
	index   map[string]int // of the buckets of the model by id
}

// String is the outcome in one line.
func (o *outcome) String() string {
	switch {
	case o.refused != nil:
		return o.refused.kind + ": " + o.refused.detail
	case o.d.Error != nil:
		s := "no engine: " + o.d.Error.Kind
		for _, r := range o.rejections() {
			s += ", " + rejectionText(r)
		}
		return s
	}
	return simulate.Compact(o.d)
}

// kind is why nothing was picked, none for a pick.
func (o *outcome) kind() string {
	switch {
	case o.refused != nil:
		return o.refused.kind
	case o.d.Error != nil:
		return o.d.Error.Kind
	}
	return none
}

// answer is the status and code that the client gets.
func (o *outcome) answer() (int, string) {
	if o.refused != nil {
		return o.refused.status, o.refused.code
	}
	return simulate.Answer(o.d)
}

// rejections are those in all buckets that were tried, in order.
func (o *outcome) rejections() (out []policy.Rejection) {
	if o.d == nil {
		return nil
	}
	for i := range o.d.Buckets {
		for j := range o.d.Buckets[i].Groups {
			if e := o.d.Buckets[i].Groups[j].Error; e != nil {
				out = append(out, e.Rejected...)
			}
		}
	}
	return out
}

func rejectionText(r policy.Rejection) string { return r.Engine + " at " + string(r.Limit) }
