package app

import (
	"fmt"
	"net/http"
	"time"

	"shunt/runtime/assemble"
	"shunt/runtime/prepare"
	"shunt/runtime/server"
	"shunt/runtime/tokens"
	"shunt/runtime/tokens/ask"
	"shunt/schema/plan"
)

// tokenizer is a loaded model of tokens, shared by all that name the same path, or
// the engines of one model that are asked.
type tokenizer struct {
	path  string
	model *tokens.Model

	engines *ask.Client
	client  *http.Client
}

func (t *tokenizer) end() {
	if t != nil && t.client != nil {
		t.client.CloseIdleConnections()
	}
}

// tokenizer loads what a model needs to tokenize, unless it is loaded.
func (d *draft) tokenizer(m *plan.Model, n *modelState) error {
	if m.Tokenizer == nil || len(m.Requires.Tokens) == 0 {
		return nil
	}
	if m.Tokenizer.Engine != nil {
		n.tokenizer = d.s.ask(m)
		return nil
	}
	path := m.Tokenizer.Path
	for _, all := range []map[string]*modelState{d.models, d.s.models} {
		for _, other := range all {
			if other.tokenizer != nil && other.tokenizer.model != nil && other.tokenizer.path == path {
				n.tokenizer = other.tokenizer
				return nil
			}
		}
	}
	files, err := tokens.Find(path)
	if err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	model, err := tokens.Load(files, tokens.Options{Now: time.Now})
	if err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	if err := model.TemplateError(); err != nil {
		d.s.log.Warn("no usable chat template: lengths are estimated", "model", m.ID, "path", path, "error", err)
	}
	n.tokenizer = &tokenizer{path: path, model: model}
	return nil
}

// served is what the server needs to know about a model besides its resolver.
func (d *draft) served(m *plan.Model) *server.Model {
	out := &server.Model{Prefix: len(m.Requires.PrefixSource) > 0, Sampling: assemble.Sampling(m.Sampling)}
	if a := m.Affinity; a != nil {
		out.SessionHeader, out.RoutingKeyHeader = a.SessionID, a.RoutingKey
	}
	if t := d.models[m.ID].tokenizer; t != nil {
		model := t.model
		if model != nil && m.RunsVLLM() {
			model = model.DropInputIDs()
		}
		out.Tokenizer = &prepare.Tokenizer{Model: model, Engines: t.engines, Limit: d.s.tokens, Forward: m.Tokenizer.ForwardInputIDs}
	}
	return out
}
