package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"shunt/runtime/prepare"
	"shunt/runtime/tokens"
	"shunt/schema/plan"
)

// ParseBody takes the facts from the body of a chat request, as the server does.
// If the plan demands tokens, it reads the model's tokenizer; where engines
// tokenize, none is asked here, and the length is estimated. Without messages the
// body is refused, which the server leaves to the engine.
func ParseBody(ctx context.Context, body *plan.Body, data []byte) (Request, error) {
	var parsed prepare.Request
	if err := parsed.Parse(data); err != nil {
		return Request{}, &Refused{fmt.Errorf("body: %w", err)}
	}
	if !hasMessages(data) {
		return Request{}, errors.New("body: it has no messages, so it is not a chat body")
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
		return Request{}, &Refused{fmt.Errorf("body: %w", err)}
	}
	r.InputTokens = input
	if peak > 0 {
		r.ExpectedPeakTokens = &peak
	}
	return r, nil
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
	t := prepare.Tokenizer{Model: model, Limit: prepare.NewTokenLimit(1, 0), Forward: m.Tokenizer.ForwardInputIDs}
	return t.Tokenize(ctx, r)
}
