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
// If the plan demands tokens, it reads the model's tokenizer. Without messages it
// is refused, which the server leaves to the engine.
func ParseBody(ctx context.Context, body *plan.Body, data []byte) (Request, error) {
	var parsed prepare.Request
	if err := parsed.Parse(data); err != nil {
		return Request{}, fmt.Errorf("body: %w", err)
	}
	if !hasMessages(data) {
		return Request{}, errors.New("body: it has no messages, so it is not a chat body")
	}
	r := Request{Model: parsed.Model}
	input, peak, err := parsed.Lengths()
	if m := modelWithTokens(body, r.Model); m != nil {
		t, tokenErr := tokenize(ctx, m, &parsed)
		if tokenErr != nil {
			return Request{}, tokenErr
		}
		r.TokenIDs, r.estimated = t.IDs, t.Estimated()
		input, peak, err = parsed.LengthsOf(t.Length)
	}
	if err != nil {
		return Request{}, fmt.Errorf("body: %w", err)
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
