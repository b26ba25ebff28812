package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"shunt/compiler"
	"shunt/compiler/diag"
	"shunt/runtime/tokens"
	"shunt/schema/plan"
)

// checkTokenizers reads the tokenizers that are on this machine, as shuntd will,
// and reports what it could not use. The compiler itself reads configurations
// only, and a tokenizer may well be elsewhere; then nothing is said.
func checkTokenizers(r *compiler.Result) {
	if r.Plan == nil {
		return
	}
	for i := range r.Plan.Body.Models {
		m := &r.Plan.Body.Models[i]
		if m.Tokenizer == nil || m.Tokenizer.Engine != nil || len(m.Requires.Tokens) == 0 {
			continue
		}
		path := fmt.Sprintf("/models/%d/tokenizer/path", i)
		if f := judgeTokenizer(m); f != nil {
			f.Pos, f.Path = r.Tree.Pos(path), path
			f.End = r.Tree.End(f.Pos)
			r.Findings = append(r.Findings, *f)
		}
	}
	r.Findings.Sort()
	if r.Findings.HasErrors() {
		r.Plan = nil
	}
}

func judgeTokenizer(m *plan.Model) *diag.Finding {
	files, err := tokens.Find(m.Tokenizer.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var model *tokens.Model
	if err == nil {
		// The clock is that of templates that write the date; any will do.
		model, err = tokens.Load(files, tokens.Options{Now: func() time.Time { return time.Time{} }})
	}
	if err != nil {
		f := diag.New(diag.BadTokenizer, diag.Pos{}, "", fmt.Sprintf("the tokenizer of model %q cannot be used: %v", m.ID, err))
		f.Hint = "name a folder with a tokenizer.json of byte-level BPE, or remove tokenizer"
		return &f
	}
	if err := model.TemplateError(); err != nil {
		f := diag.New(diag.NoTemplate, diag.Pos{}, "", fmt.Sprintf("the prompts of model %q are not tokenized: %v", m.ID, err))
		f.Hint = "put the model's tokenizer_config.json or chat_template.jinja beside its tokenizer.json"
		return &f
	}
	return nil
}
