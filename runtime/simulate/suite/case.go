package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"shunt/runtime/simulate"
	"shunt/schema/plan"
)

// maxDecisions bounds the decisions of one row of lengths.
const maxDecisions = 200_000

// Failures before a decision.
const (
	failedModel   = "model_not_found"
	failedRequest = "bad_request"
)

// testCase is what passes or fails by itself: a test, one of its lengths, or a
// range of lengths. Its parts are decided one after the other in one world.
type testCase struct {
	test    *Test
	name    string
	pointer string
	parts   []part
}

// part is a request with some lengths, or one step of a sequence.
type part struct {
	request *Request
	// at is the place of the request.
	at     string
	row    *Row // nil without one
	repeat int
	// lengths are decided one after the other; a request that has its length
	// elsewhere has the one length 0.
	lengths []int64
	wants   []want
	// step is nil for a test without steps.
	step    *Step
	pointer string // of the step
}

// want is an expectation with its place.
type want struct {
	*Expectation
	pointer string
}

// cases splits a test.
func cases(i int, t *Test, body *plan.Body) []testCase {
	at := testPointer(i)
	base := testCase{test: t, name: t.Name, pointer: at}
	if len(t.Steps) > 0 {
		base.parts = steps(i, t)
		return []testCase{base}
	}
	one := part{request: t.Request, at: at + "/request", repeat: max(t.Repeat, 1)}
	if t.Expect != nil {
		one.wants = []want{{t.Expect, at + "/expect"}}
	}
	if len(t.Lengths) == 0 {
		if len(t.Request.InputTokens) < 2 {
			one.lengths = t.Request.lengths()
			base.parts = []part{one}
			return []testCase{base}
		}
		return base.each(one, t.Request.InputTokens)
	}
	m := modelOf(body, t.Request.modelID(body))
	var out []testCase
	for j := range t.Lengths {
		r := &t.Lengths[j]
		c, p := base, one
		c.pointer = rowPointer(i, j)
		p.row, p.wants = r, append(slices.Clip(one.wants), want{r.expectation(), c.pointer})
		if r.InputTokens != nil {
			out = append(out, c.each(p, r.InputTokens)...)
			continue
		}
		c.name += "/" + strconv.FormatInt(max(r.From, 1), 10) + ".."
		if r.To != 0 {
			c.name += strconv.FormatInt(r.To, 10)
		}
		c.name += r.peakName()
		p.lengths = []int64{max(r.From, 1)}
		if m != nil {
			p.lengths = points(m, t.Request, r)
		}
		c.parts = []part{p}
		out = append(out, c)
	}
	return out
}

// steps are the parts of a sequence.
func steps(i int, t *Test) []part {
	out := make([]part, len(t.Steps))
	for j := range t.Steps {
		s := &t.Steps[j]
		p := part{step: s, pointer: stepPointer(i, j), repeat: max(s.Repeat, 1)}
		if s.Request != nil {
			p.request, p.at = s.Request, p.pointer+"/request"
		} else if j > 0 {
			p.request, p.at = out[j-1].request, out[j-1].at
		}
		if p.request != nil {
			p.lengths = p.request.lengths()
		}
		if s.Expect != nil {
			p.wants = []want{{s.Expect, p.pointer + "/expect"}}
		}
		out[j] = p
	}
	return out
}

// lengths are those of the request itself.
func (r *Request) lengths() []int64 {
	if len(r.InputTokens) == 0 {
		return []int64{0}
	}
	return r.InputTokens
}

// decisions is how many a part takes.
func (p *part) decisions() int64 { return int64(len(p.lengths)) * int64(p.repeat) }

// each makes a case of every length.
func (c testCase) each(p part, lengths []int64) []testCase {
	out := make([]testCase, len(lengths))
	for k, n := range lengths {
		out[k] = c
		p.lengths = []int64{n}
		out[k].parts = []part{p}
		out[k].name += "/" + strconv.FormatInt(n, 10)
		if p.row != nil {
			out[k].name += p.row.peakName()
		}
	}
	return out
}

// peakName tells rows of the same lengths apart.
func (r *Row) peakName() string {
	switch {
	case r.MaxOutputTokens != nil:
		return fmt.Sprintf("+%d", *r.MaxOutputTokens)
	case r.ExpectedPeakTokens != nil:
		return fmt.Sprintf("^%d", *r.ExpectedPeakTokens)
	}
	return ""
}

// peak is the output bound and the peak that hold for a row.
func peak(t *Request, r *Row) (output, peak *int64) {
	if r != nil && (r.MaxOutputTokens != nil || r.ExpectedPeakTokens != nil) {
		return r.MaxOutputTokens, r.ExpectedPeakTokens
	}
	return t.MaxOutputTokens, t.ExpectedPeakTokens
}

// points are the lengths of a range at which the candidates can change, with
// their neighbours and the ends. Between two of them that follow each other all
// lengths have the same candidates.
func points(m *plan.Model, t *Request, r *Row) []int64 {
	output, top := peak(t, r)
	edges := []int64{max(r.From, 1)}
	around := func(last int64) { edges = append(edges, last, last+1) }
	for i := range m.Buckets {
		b := &m.Buckets[i]
		if b.Min != nil {
			around(*b.Min - 1)
		}
		if b.Max != nil {
			around(*b.Max)
		}
		if b.MaxContextTokens != nil {
			around(*b.MaxContextTokens)
			if output != nil {
				around(*b.MaxContextTokens - *output)
			}
		}
	}
	if top != nil {
		around(*top)
	}
	to := r.To
	if to == 0 {
		to = slices.Max(edges)
	}
	edges = append(edges, to)
	slices.Sort(edges)
	edges = slices.DeleteFunc(edges, func(n int64) bool { return n < max(r.From, 1) || n > to })
	return slices.Compact(edges)
}

// modelID is the model that a request asks for, as far as it says.
func (r *Request) modelID(body *plan.Body) string {
	if r.Body != nil {
		var chat struct {
			Model string `json:"model"`
		}
		if json.Unmarshal(r.Body, &chat) == nil {
			return chat.Model
		}
		return ""
	}
	if r.Model == "" && len(body.Models) == 1 {
		return body.Models[0].ID
	}
	return r.Model
}

// refusal is an answer that is given before a decision.
type refusal struct {
	kind   string
	status int
	code   string
	detail string
}

func badRequest(err *simulate.Refused) *refusal {
	return &refusal{failedRequest, http.StatusBadRequest, err.Code, err.Error()}
}

// facts are those of a part at a length, or the refusal of the request. An error
// is a request that nobody can send.
func (p *part) facts(ctx context.Context, body *plan.Body, length int64) (r simulate.Request, no *refusal, err error) {
	t := p.request
	id := t.modelID(body)
	m := modelOf(body, id)
	data := []byte(t.Body)
	if t.Prompt != nil {
		if data, err = t.chat(id); err != nil {
			return r, nil, err
		}
	}
	if data != nil {
		r, err = simulate.ParseBody(ctx, body, data)
		if refused, ok := errors.AsType[*simulate.Refused](err); ok {
			return r, badRequest(refused), nil
		}
		if err != nil {
			return r, nil, err
		}
	} else {
		r = simulate.Request{Model: id, InputTokens: length, TokenIDs: t.TokenIDs}
		if length == 0 {
			r.InputTokens = int64(len(t.TokenIDs))
		}
		r.MaxOutputTokens, r.ExpectedPeakTokens = peak(t, p.row)
	}
	r.SessionKey, r.RoutingKey, r.TTFTMS, r.TPS = t.SessionKey, t.RoutingKey, t.TTFTMS, t.TPS
	if m == nil {
		return r, &refusal{failedModel, http.StatusNotFound, failedModel, fmt.Sprintf("the plan has no model %q", id)}, nil
	}
	if t.Headers != nil {
		h := make(http.Header, len(t.Headers))
		for name, value := range t.Headers {
			h.Set(name, value)
		}
		if refused, ok := errors.AsType[*simulate.Refused](r.TakeHeaders(m, h)); ok {
			return r, badRequest(refused), nil
		}
	}
	return r, nil, r.Check()
}

// chat is the body of a request with a prompt.
func (t *Request) chat(model string) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	return json.Marshal(struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens *int64    `json:"max_tokens,omitempty"`
	}{model, []message{{"user", *t.Prompt}}, t.MaxOutputTokens})
}

// escape makes a token of a JSON pointer.
func escape(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}
