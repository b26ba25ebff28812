package check

import (
	"fmt"

	"shunt/compiler/diag"
)

// ruleTokenizer demands exactly one of path and engine of a tokenizer.
func ruleTokenizer(r *rules) {
	for _, m := range r.models {
		t, at := m.Tokenizer, m.at+"/tokenizer"
		if t == nil || !r.intact(at) {
			continue
		}
		r.oneOf(at, "path", t.Path != nil, "engine", t.Engine != nil)
		if t.Path == nil && t.Engine == nil {
			r.addKey(diag.OneService, at, fmt.Sprintf("the tokenizer of model %q has neither path nor engine", m.ID)).
				Hint = "name the model's tokenizer.json as path, or write engine: {} to ask the engines"
		}
	}
}
