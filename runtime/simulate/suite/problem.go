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
}

func (c *checker) add(code, pointer, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Check lists the mistakes of a file: tests that cannot fail or cannot pass, and
// names that the plan does not have. A file without problems can be run.
func Check(f *File, body *plan.Body) []Problem {
	c := &checker{body: body}
	if f.World != nil {
		c.world("/world", f.World)
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
		if t.World != nil {
			c.world(at+"/world", t.World)
		}
		c.test(i, t)
	}
	return c.problems
}

func (c *checker) world(at string, w *simulate.World) {
	s, err := simulate.New(c.body, *w, 1)
	if err == nil {
		s.Close()
		return
	}
	if part, ok := errors.AsType[*simulate.WorldError](err); ok {
		at += part.Pointer
		err = part
	}
	c.add(CodeWorld, at, "", "the world does not fit the plan: %v", err)
}

func (c *checker) test(i int, t *Test) {
	at := testPointer(i)
	before := len(c.problems)
	c.request(at, t)
	if t.Expect.empty() && len(t.Lengths) == 0 {
		c.add(CodeVacuous, at, "add expect, for example expect: {bucket: ...}", "the test %q expects nothing, so it could not fail", t.Name)
	} else if t.Expect != nil && t.Expect.empty() {
		c.add(CodeVacuous, at+"/expect", "remove it, or name what is expected", "expect names nothing")
	}
	m := c.model(t)
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
		c.facts(i, t)
		return
	}
	if !expectsNoModel(t) {
		id := t.Request.modelID(c.body)
		p := Problem{Code: CodeUnknown, Pointer: at + "/request", Wrong: id, Message: fmt.Sprintf("the plan has no model %q", id)}
		if t.Request.Model != "" {
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
}

// facts finds requests that nobody can send, among those that are given by their
// facts; bodies are judged as the server does.
func (c *checker) facts(i int, t *Test) {
	if t.Request.Body != nil || t.Request.BodyFile != "" || t.Request.Prompt != nil {
		return
	}
	for _, one := range cases(i, t, c.body) {
		at := one.pointer
		if one.row == nil {
			at += "/request"
		}
		if _, _, err := one.facts(context.Background(), c.body, one.lengths[0]); err != nil {
			c.add(CodeRequest, at, "", "nobody can send this request: %v", err)
			return
		}
	}
}

func expectsNoModel(t *Test) bool {
	expects := func(e *Expectation) bool {
		return e.Error == failedModel || e.Error == failedRequest || e.Status == 404 || e.Status == 400
	}
	return t.Expect != nil && expects(t.Expect) || slices.ContainsFunc(t.Lengths, func(r Row) bool { return expects(r.expectation()) })
}

// request finds contradictions in the request of a test.
func (c *checker) request(at string, t *Test) {
	r := &t.Request
	at += "/request"
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
	if given > 0 && (lengths || len(t.Lengths) > 0 || hasBody && r.MaxOutputTokens != nil) {
		c.add(CodeConflict, at, "remove the lengths, or the body", "the lengths of a body are found as the server does, and are given here too")
	}
	if hasBody && r.Model != "" {
		c.add(CodeConflict, at+"/model", "remove it", "the body names the model")
	}
	if given == 0 && len(t.Lengths) == 0 && r.InputTokens == nil && r.TokenIDs == nil {
		c.add(CodeRequest, at, "add input_tokens", "the request has no length")
	}
	if len(t.Lengths) > 0 && (r.InputTokens != nil || r.TokenIDs != nil) {
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

// model is the model of a test, nil if the plan does not have it.
func (c *checker) model(t *Test) *plan.Model { return modelOf(c.body, t.Request.modelID(c.body)) }

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
		if n := len(points(m, t, r)) * max(t.Repeat, 1); n > maxDecisions {
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
		c.names(at, e, m)
	}
}

// names holds the ids of an expectation against those of the model.
func (c *checker) names(at string, e *Expectation, m *plan.Model) {
	known := c.known(m)
	check := func(kind, pointer, id string, list []string) {
		if !slices.Contains(list, id) {
			c.problems = append(c.problems, Problem{Code: CodeUnknown, Pointer: pointer, Wrong: id, Known: list,
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
	buckets, all []string
	engines      map[plan.Role][]string
}

func (c *checker) known(m *plan.Model) names {
	n := names{engines: make(map[plan.Role][]string)}
	for i := range m.Buckets {
		n.buckets = append(n.buckets, m.Buckets[i].ID)
	}
	for _, e := range m.Engines() {
		n.all = append(n.all, e.ID)
		n.engines[e.Role] = append(n.engines[e.Role], e.ID)
	}
	return n
}
