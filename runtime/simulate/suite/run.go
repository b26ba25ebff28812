package suite

import (
	"context"
	"fmt"
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
			r := runner{testCase: c, body: body, reached: reached}
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
	testCase
	body    *plan.Body
	world   *simulate.World
	reached *Coverage
	result  Result
	picked  map[string]int64
	at      map[string]int // failures by pointer
}

func (r *runner) run(ctx context.Context) (Result, error) {
	r.result = Result{Name: r.name, Pointer: r.pointer}
	r.picked, r.at = make(map[string]int64), make(map[string]int)
	var world simulate.World
	if r.world != nil {
		world = *r.world
	}
	seed := uint64(1)
	if r.test.Seed != nil {
		seed = *r.test.Seed
	}
	sim, err := simulate.New(r.body, world, seed)
	if err != nil {
		return r.result, err
	}
	defer sim.Close()
	for _, length := range r.lengths {
		request, no, err := r.facts(ctx, r.body, length)
		if err != nil {
			if ctx.Err() != nil {
				return r.result, err
			}
			r.undecided(length, err)
			continue
		}
		for n := range max(r.test.Repeat, 1) {
			if err := ctx.Err(); err != nil {
				return r.result, err
			}
			o := outcome{refused: no}
			if no == nil {
				if o.d, err = sim.Decide(ctx, request); err != nil {
					return r.result, err
				}
				r.reached.observe(o.d)
			}
			r.judge(&o, r.when(length, n))
		}
	}
	r.shares()
	return r.result, nil
}

// undecided fails the case because the facts of its request cannot be found here,
// such as the tokens of a body without the tokenizer.
func (r *runner) undecided(length int64, err error) {
	r.fail(Failure{Pointer: testPointer(r.index) + "/request", Field: "request", Want: "a decision", Got: err.Error(), When: r.when(length, 0), Times: 1})
	r.result.Outcome = "nothing"
}

// when names one decision of several.
func (r *runner) when(length int64, n int) string {
	var parts []string
	if len(r.lengths) > 1 {
		parts = append(parts, fmt.Sprintf("input %d", length))
	}
	if r.test.Repeat > 1 {
		parts = append(parts, fmt.Sprintf("repetition %d", n+1))
	}
	return strings.Join(parts, ", ")
}

// judge holds one outcome against every expectation.
func (r *runner) judge(o *outcome, when string) {
	r.result.Decisions++
	if d := o.d; d != nil {
		for _, p := range [...]*routing.PickTrace{d.Plain, d.Prefill, d.Decode} {
			if p != nil {
				r.picked[p.Engine]++
			}
		}
	}
	passed := r.result.Passed()
	for _, w := range r.wants {
		for _, m := range o.compare(w.Expectation) {
			r.fail(Failure{Pointer: w.pointer + "/" + m.member, Field: strings.ReplaceAll(m.member, "/", " "), Want: m.want, Got: m.got, When: when, Times: 1})
		}
	}
	if passed {
		r.result.Outcome = o.String()
	}
}

// fail adds a failure, or counts one that happened before.
func (r *runner) fail(f Failure) {
	if i, again := r.at[f.Pointer]; again {
		r.result.Failures[i].Times++
		return
	}
	r.at[f.Pointer] = len(r.result.Failures)
	r.result.Failures = append(r.result.Failures, f)
}

// shares holds the picks of all repetitions against distributions.
func (r *runner) shares() {
	for _, w := range r.wants {
		for id, s := range w.Distribution {
			n := r.picked[id]
			if s.Min != nil && n < *s.Min || s.Max != nil && n > *s.Max {
				r.fail(Failure{Pointer: w.pointer + "/distribution/" + escape(id), Field: "distribution " + id,
					Want: s.String(), Got: fmt.Sprintf("%d of %d", n, r.result.Decisions), Times: 1})
			}
		}
	}
	sortFailures(r.result.Failures)
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
