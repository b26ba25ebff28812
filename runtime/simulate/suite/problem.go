package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

// The codes of problems, those of the table of findings.
const (
	CodeVacuous  = "SH0701" // the test expects nothing
	CodeConflict = "SH0702" // two parts of a test contradict each other
	CodeUnknown  = "SH0703" // the plan does not have what is named
	CodeWorld    = "SH0704" // the world does not fit the plan
	CodeRequest  = "SH0705" // no request has these facts
	CodeTooMany  = "SH0706" // more lengths than a test may have
)

// Problem is a mistake in a test file.
type Problem struct {
	Code    string
	Pointer string
	Message string
	Hint    string
	// Wrong and Known are a name that the plan lacks and those that it has, for
	// who wants to suggest one.
	Wrong string
	Known []string
}

// checker looks for problems of a file that tests a plan.
type checker struct {
	body     *plan.Body
	problems []Problem
	names    map[*plan.Model]*names
}

func (c *checker) add(code, pointer, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Check lists the mistakes of a file: tests that cannot fail or cannot pass, and
// names that the plan does not have. A file without problems can be run.
func Check(f *File, body *plan.Body) []Problem {
	c := &checker{body: body, names: make(map[*plan.Model]*names)}
	fits := true
	if f.World != nil {
		fits = c.world("/world", f.World, nil)
	}
	first := make(map[string]int)
	for i := range f.Tests {
		t := &f.Tests[i]
		at := testPointer(i)
		if j, repeated := first[t.Name]; repeated {
			c.add(CodeConflict, at+"/name", "rename one of the two", "the name %q is that of test %d already", t.Name, j+1)
		} else {
			first[t.Name] = i
		}
		changes := make([]*simulate.World, len(t.Steps))
		for j := range t.Steps {
			changes[j] = t.Steps[j].Change
		}
		changed := slices.ContainsFunc(changes, func(w *simulate.World) bool { return w != nil })
		switch {
		case t.World != nil:
			c.world(at+"/world", t.World, func(j int) string { return stepPointer(i, j) + "/change" }, changes...)
		case changed && fits:
			c.world("/world", f.World, func(j int) string { return stepPointer(i, j) + "/change" }, changes...)
		}
		c.test(i, t)
	}
	return c.problems
}

// world holds a world against the plan, and the changes that follow. It reports
// whether they fit.
func (c *checker) world(at string, w *simulate.World, change func(int) string, changes ...*simulate.World) bool {
	if w == nil {
		w = new(simulate.World)
	}
	i, err := simulate.Fits(c.body, *w, changes...)
	if err == nil {
		return true
	}
	what := "the world does"
	if i >= 0 {
		at, what = change(i), "the change does"
	}
	if part, ok := errors.AsType[*simulate.WorldError](err); ok {
		at += part.Pointer
		err = part
	}
	c.add(CodeWorld, at, "", "%s not fit the plan: %v", what, err)
	return false
}

func (c *checker) test(i int, t *Test) {
	at := testPointer(i)
	if len(t.Steps) > 0 {
		c.sequence(i, t)
		return
	}
	before := len(c.problems)
	if t.Request == nil {
		c.add(CodeRequest, at, "add request: {input_tokens: 100}, or steps", "the test %q has no request", t.Name)
		return
	}
	c.request(at+"/request", t.Request, len(t.Lengths) > 0)
	if t.Expect.empty() && len(t.Lengths) == 0 {
		c.add(CodeVacuous, at, "add expect, for example expect: {bucket: ...}", "the test %q expects nothing, so it could not fail", t.Name)
	} else if t.Expect != nil && t.Expect.empty() {
		c.add(CodeVacuous, at+"/expect", "remove it, or name what is expected", "expect names nothing")
	}
	m := c.model(t.Request)
	if t.Expect != nil {
		c.expectation(at+"/expect", t.Expect, m, int64(max(t.Repeat, 1)))
	}
	for j := range t.Lengths {
		c.row(i, j, t, m)
	}
	if len(c.problems) > before {
		return
	}
	if m != nil {
		for _, one := range cases(i, t, c.body) {
			if p := &one.parts[0]; !c.facts(p, one.pointer, p.at) {
				return
			}
		}
		return
	}
	expected := t.Expect.refused() || slices.ContainsFunc(t.Lengths, func(r Row) bool { return r.expectation().refused() })
	if !expected {
		c.noModel(at+"/request", t.Request)
	}
}

// sequence finds the mistakes of a test of steps.
func (c *checker) sequence(i int, t *Test) {
	at := testPointer(i)
	for _, other := range [...]struct {
		name  string
		given bool
	}{{"request", t.Request != nil}, {"repeat", t.Repeat != 0}, {"expect", t.Expect != nil}, {"lengths", len(t.Lengths) > 0}} {
		if other.given {
			c.add(CodeConflict, at+"/"+other.name, "move it into the steps", "a test has steps or %s", other.name)
		}
	}
	vacuous := true
	parts := steps(i, t)
	for j := range parts {
		p := &parts[j]
		before := len(c.problems)
		if p.request == nil {
			c.add(CodeRequest, p.pointer, "add request: {input_tokens: 100}", "the first step has no request")
			return
		}
		if p.step.Request != nil {
			c.request(p.at, p.request, false)
		}
		m := c.model(p.request)
		if e := p.step.Expect; e != nil {
			vacuous = vacuous && e.empty()
			if e.empty() {
				c.add(CodeVacuous, p.pointer+"/expect", "remove it, or name what is expected", "expect names nothing")
			}
			c.expectation(p.pointer+"/expect", e, m, p.decisions())
		}
		if n := p.decisions(); n > maxDecisions {
			c.add(CodeTooMany, p.pointer, "use fewer lengths or repetitions", "the step needs %d decisions, and %d are allowed", n, maxDecisions)
		}
		switch {
		case len(c.problems) > before || p.step.Request == nil:
		case m == nil && !p.step.Expect.refused():
			c.noModel(p.at, p.request)
		case m != nil:
			c.facts(p, p.at, p.at)
		}
	}
	if vacuous {
		c.add(CodeVacuous, at, "add expect to a step, for example expect: {bucket: ...}", "no step of the test %q expects anything, so it could not fail", t.Name)
	}
}

// noModel is the mistake of a request for a model that the plan does not have.
func (c *checker) noModel(at string, r *Request) {
	id := r.modelID(c.body)
	p := Problem{Code: CodeUnknown, Pointer: at, Wrong: id, Message: fmt.Sprintf("the plan has no model %q", id)}
	if r.Model != "" {
		p.Pointer += "/model"
	}
	if id == "" {
		p.Message = "the request names no model, and the plan has several"
	}
	for k := range c.body.Models {
		p.Known = append(p.Known, c.body.Models[k].ID)
	}
	c.problems = append(c.problems, p)
}

// facts finds a request that nobody can send, if it is given by its facts; bodies
// are judged as the server does. Row is the place of a mistake in a row.
func (c *checker) facts(p *part, row, at string) bool {
	if r := p.request; r.Body != nil || r.BodyFile != "" || r.Prompt != nil {
		return true
	}
	if p.row != nil {
		at = row
	}
	for _, length := range p.lengths {
		if _, _, err := p.facts(context.Background(), c.body, length); err != nil {
			c.add(CodeRequest, at, "", "nobody can send this request: %v", err)
			return false
		}
		if p.row != nil {
			return true // the lengths of a range differ in nothing else
		}
	}
	return true
}

// refused reports whether an expectation is that of a request without a model.
func (e *Expectation) refused() bool {
	return e != nil && (e.Error == failedModel || e.Error == failedRequest || e.Status == 404 || e.Status == 400)
}

// request finds contradictions in a request, whose lengths may be in a table.
func (c *checker) request(at string, r *Request, table bool) {
	given := 0
	for _, b := range [...]bool{r.Body != nil, r.BodyFile != "", r.Prompt != nil} {
		if b {
			given++
		}
	}
	if given > 1 {
		c.add(CodeConflict, at, "keep one of them", "body, body_file and prompt exclude each other")
	}
	hasBody := r.Body != nil || r.BodyFile != ""
	lengths := r.InputTokens != nil || r.TokenIDs != nil || r.ExpectedPeakTokens != nil
	if given > 0 && (lengths || table || hasBody && r.MaxOutputTokens != nil) {
		c.add(CodeConflict, at, "remove the lengths, or the body", "the lengths of a body are found as the server does, and are given here too")
	}
	if hasBody && r.Model != "" {
		c.add(CodeConflict, at+"/model", "remove it", "the body names the model")
	}
	if given == 0 && !table && r.InputTokens == nil && r.TokenIDs == nil {
		c.add(CodeRequest, at, "add input_tokens", "the request has no length")
	}
	if table && (r.InputTokens != nil || r.TokenIDs != nil) {
		c.add(CodeConflict, at, "keep one of the two", "the lengths of the request are in lengths, and in the request too")
	}
	seen := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		key := http.CanonicalHeaderKey(name)
		if other, repeated := seen[key]; repeated {
			c.add(CodeConflict, at+"/headers/"+escape(name), "remove one of the two", "the header %s is %s in another spelling", name, other)
		}
		seen[key] = name
	}
	if r.Headers != nil && (r.SessionKey != "" || r.RoutingKey != "" || r.TTFTMS != nil || r.TPS != nil) {
		c.add(CodeConflict, at+"/headers", "keep one of the two", "keys and targets are taken from headers, and are given here too")
	}
}

// model is the model of a request, nil if the plan does not have it.
func (c *checker) model(r *Request) *plan.Model { return modelOf(c.body, r.modelID(c.body)) }

func modelOf(body *plan.Body, id string) *plan.Model {
	for i := range body.Models {
		if body.Models[i].ID == id {
			return &body.Models[i]
		}
	}
	return nil
}

func (c *checker) row(i, j int, t *Test, m *plan.Model) {
	r, at := &t.Lengths[j], rowPointer(i, j)
	ranged := r.From != 0 || r.To != 0
	switch {
	case ranged == (r.InputTokens != nil):
		c.add(CodeConflict, at, "write input_tokens: 4096, or from: 1, to: 4096", "a row has input_tokens, or from and to")
		return
	case r.To != 0 && r.From > r.To:
		c.add(CodeConflict, at, "exchange them", "from %d is above to %d", r.From, r.To)
		return
	}
	if r.expectation().empty() && t.Expect.empty() {
		c.add(CodeVacuous, at, "add bucket, buckets, error or status", "the row expects nothing, so it could not fail")
	}
	if r.MaxOutputTokens != nil && r.ExpectedPeakTokens != nil {
		c.add(CodeConflict, at, "keep one of the two", "max_output_tokens and expected_peak_tokens exclude each other")
	}
	c.expectation(at, r.expectation(), m, int64(max(t.Repeat, 1)))
	if m != nil && ranged {
		if n := len(points(m, t.Request, r)) * max(t.Repeat, 1); n > maxDecisions {
			c.add(CodeTooMany, at, "use smaller ranges or fewer repetitions", "the row needs %d decisions, and %d are allowed", n, maxDecisions)
		}
	}
}

// expectation finds contradictions in what is expected, and names that the model
// does not have.
func (c *checker) expectation(at string, e *Expectation, m *plan.Model, decisions int64) {
	success := e.Bucket != "" || len(e.Plain)+len(e.Prefill)+len(e.Decode) > 0 || e.Reason != "" || e.DecodeReason != ""
	switch {
	case success && (e.Error != "" || e.Stage != "" || e.Code != ""):
		c.add(CodeConflict, at, "keep one of the two", "a picked engine and a failure exclude each other")
	case success && e.Status != 0 && e.Status != 200:
		c.add(CodeConflict, at+"/status", "a picked engine has status 200", "a picked engine and status %d exclude each other", e.Status)
	case e.Error != "" && e.Status == 200:
		c.add(CodeConflict, at+"/status", "a picked engine has status 200", "a failure and status 200 exclude each other")
	}
	if len(e.Distribution) > 0 && decisions == 1 {
		c.add(CodeConflict, at+"/distribution", "add repeat: 100 to the test", "a distribution of one decision says nothing")
	}
	for _, id := range slices.Sorted(maps.Keys(e.Distribution)) {
		s := e.Distribution[id]
		switch {
		case s.Min == nil:
		case s.Max != nil && *s.Min > *s.Max:
			c.add(CodeConflict, at+"/distribution/"+escape(id), "exchange them", "min %d is above max %d", *s.Min, *s.Max)
		case *s.Min > decisions:
			c.add(CodeConflict, at+"/distribution/"+escape(id), "raise repeat, or lower min", "%d picks of %d decisions are expected", *s.Min, decisions)
		}
	}
	if m != nil {
		c.ids(at, e, m)
	}
}

// ids holds the ids of an expectation against those of the model.
func (c *checker) ids(at string, e *Expectation, m *plan.Model) {
	known := c.known(m)
	check := func(kind, pointer, id string, of idSet) {
		if !of.set[id] {
			c.problems = append(c.problems, Problem{Code: CodeUnknown, Pointer: pointer, Wrong: id, Known: of.list,
				Message: fmt.Sprintf("model %q has no %s %q", m.ID, kind, id)})
		}
	}
	if e.Bucket != "" {
		check("bucket", at+"/bucket", e.Bucket, known.buckets)
	}
	for i, id := range e.Buckets {
		check("bucket", fmt.Sprintf("%s/buckets/%d", at, i), id, known.buckets)
	}
	for _, id := range slices.Sorted(maps.Keys(e.Fates)) {
		check("bucket", at+"/fates/"+escape(id), id, known.buckets)
	}
	for _, list := range [...]struct {
		role plan.Role
		ids  Names
	}{{plan.Plain, e.Plain}, {plan.Prefill, e.Prefill}, {plan.Decode, e.Decode}} {
		for _, id := range list.ids {
			check(string(list.role)+" engine", at+"/"+string(list.role), id, known.engines[list.role])
		}
	}
	for i, r := range e.Rejections {
		check("engine", fmt.Sprintf("%s/rejections/%d/engine", at, i), r.Engine, known.all)
	}
	for _, id := range slices.Sorted(maps.Keys(e.Distribution)) {
		check("engine", at+"/distribution/"+escape(id), id, known.all)
	}
}

// names of a model.
type names struct {
	buckets, all idSet
	engines      map[plan.Role]idSet
}

// idSet is some ids in the order of the plan.
type idSet struct {
	list []string
	set  map[string]bool
}

func (s *idSet) add(id string) {
	if s.set == nil {
		s.set = make(map[string]bool)
	}
	s.list, s.set[id] = append(s.list, id), true
}

func (c *checker) known(m *plan.Model) *names {
	if n := c.names[m]; n != nil {
		return n
	}
	n := &names{engines: make(map[plan.Role]idSet)}
	for i := range m.Buckets {
		n.buckets.add(m.Buckets[i].ID)
	}
	for _, e := range m.Engines() {
		n.all.add(e.ID)
		of := n.engines[e.Role]
		of.add(e.ID)
		n.engines[e.Role] = of
	}
	c.names[m] = n
	return n
}
