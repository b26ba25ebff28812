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
// range of lengths.
type testCase struct {
	test    *Test
	index   int
	name    string
	pointer string
	// lengths are decided one after the other in one world; a request that has
	// its length elsewhere has the one length 0.
	lengths []int64
	row     *Row // nil without one
	wants   []want
}

// want is an expectation with its place.
type want struct {
	*Expectation
	pointer string
}

// cases splits a test.
func cases(i int, t *Test, body *plan.Body) []testCase {
	at := testPointer(i)
	base := testCase{test: t, index: i, name: t.Name, pointer: at}
	if t.Expect != nil {
		base.wants = []want{{t.Expect, at + "/expect"}}
	}
	if len(t.Lengths) == 0 {
		if len(t.Request.InputTokens) < 2 {
			base.lengths = append([]int64{}, t.Request.InputTokens...)
			if len(base.lengths) == 0 {
				base.lengths = []int64{0}
			}
			return []testCase{base}
		}
		return base.each(t.Request.InputTokens)
	}
	var out []testCase
	for j := range t.Lengths {
		r := &t.Lengths[j]
		c := base
		c.row, c.pointer = r, rowPointer(i, j)
		c.wants = append(slices.Clip(base.wants), want{r.expectation(), c.pointer})
		if r.InputTokens != nil {
			out = append(out, c.each(r.InputTokens)...)
			continue
		}
		c.name += "/" + strconv.FormatInt(max(r.From, 1), 10) + ".."
		if r.To != 0 {
			c.name += strconv.FormatInt(r.To, 10)
		}
		c.name += r.peakName()
		if m := modelOf(body, t.Request.modelID(body)); m != nil {
			c.lengths = points(m, t, r)
		} else {
			c.lengths = []int64{max(r.From, 1)}
		}
		out = append(out, c)
	}
	return out
}

// each makes a case of every length.
func (c testCase) each(lengths []int64) []testCase {
	out := make([]testCase, len(lengths))
	for k, n := range lengths {
		out[k] = c
		out[k].lengths = []int64{n}
		out[k].name += "/" + strconv.FormatInt(n, 10)
		if c.row != nil {
			out[k].name += c.row.peakName()
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
func peak(t *Test, r *Row) (output, peak *int64) {
	if r != nil && (r.MaxOutputTokens != nil || r.ExpectedPeakTokens != nil) {
		return r.MaxOutputTokens, r.ExpectedPeakTokens
	}
	return t.Request.MaxOutputTokens, t.Request.ExpectedPeakTokens
}

// points are the lengths of a range at which the candidates can change, with
// their neighbours and the ends. Between two of them that follow each other all
// lengths have the same candidates.
func points(m *plan.Model, t *Test, r *Row) []int64 {
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

// facts are those of a case at a length, or the refusal of the request. An error
// is a request that nobody can send.
func (c *testCase) facts(ctx context.Context, body *plan.Body, length int64) (r simulate.Request, no *refusal, err error) {
	t := &c.test.Request
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
		r.MaxOutputTokens, r.ExpectedPeakTokens = peak(c.test, c.row)
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
