package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"shunt/runtime/assemble"
	"shunt/runtime/prepare"
	"shunt/runtime/tokens"
	"shunt/schema/plan"
)

// ParseBody takes the facts from the body of a chat request, as the server does,
// after it held the body against the sampling rules of the model.
// If the plan demands tokens, it reads the model's tokenizer; where engines
// tokenize, none is asked here, and the length is estimated. Without messages the
// body is refused, which the server leaves to the engine.
func ParseBody(ctx context.Context, body *plan.Body, data []byte) (Request, error) {
	var parsed prepare.Request
	if err := parsed.Parse(data); err != nil {
		return Request{}, refused("bad_request", err)
	}
	if !hasMessages(data) {
		return Request{}, errors.New("body: it has no messages, so it is not a chat body")
	}
	if rules := samplingOf(body, parsed.Model); rules != nil {
		if v := parsed.Sample(rules); len(v) > 0 {
			return Request{}, refused("sampling_contract_violation", v[0])
		}
	}
	r := Request{Model: parsed.Model}
	input, peak, err := parsed.Lengths()
	switch m := modelWithTokens(body, r.Model); {
	case m == nil:
	case m.Tokenizer.Engine != nil:
		r.estimated, r.source, r.reason = true, tokens.Estimated.String(), notAsked
	default:
		t, tokenErr := tokenize(ctx, m, &parsed)
		if tokenErr != nil {
			return Request{}, tokenErr
		}
		r.TokenIDs, r.estimated, r.source, r.reason = t.IDs, t.Estimated(), t.Trust, t.Reason
		input, peak, err = parsed.LengthsOf(t.Length)
	}
	if err != nil {
		return Request{}, refused("bad_request", err)
	}
	r.InputTokens = input
	if peak > 0 {
		r.ExpectedPeakTokens = &peak
	}
	return r, nil
}

func refused(code string, err error) *Refused {
	return &Refused{Code: code, Err: fmt.Errorf("body: %w", err)}
}

// samplingOf is the sampling rules of a model, nil for none.
func samplingOf(body *plan.Body, id string) *prepare.Sampling {
	for i := range body.Models {
		if m := &body.Models[i]; m.ID == id {
			return assemble.Sampling(m.Sampling)
		}
	}
	return nil
}

// modelWithTokens is the model, if its prompts are tokenized.
func modelWithTokens(body *plan.Body, id string) *plan.Model {
	for i := range body.Models {
		m := &body.Models[i]
		if m.ID == id && m.Tokenizer != nil && len(m.Requires.Tokens) > 0 {
			return m
		}
	}
	return nil
}

// notAsked is why a length is an estimate where the engines tokenize.
const notAsked = "the engines tokenize, and none is asked here"

func tokenize(ctx context.Context, m *plan.Model, r *prepare.Request) (prepare.Tokens, error) {
	files, err := tokens.Find(m.Tokenizer.Path)
	if err != nil {
		return prepare.Tokens{}, fmt.Errorf("tokenizer of model %q: %w", m.ID, err)
	}
	// A template that writes the date gets that of the simulated time.
	model, err := tokens.Load(files, tokens.Options{Now: func() time.Time { return epoch }})
	if err != nil {
		return prepare.Tokens{}, fmt.Errorf("tokenizer of model %q: %w", m.ID, err)
	}
	if m.RunsVLLM() {
		model = model.DropInputIDs()
	}
	t := prepare.Tokenizer{Model: model, Limit: prepare.NewTokenLimit(1, 0), Forward: m.Tokenizer.ForwardInputIDs}
	return t.Tokenize(ctx, r)
}
