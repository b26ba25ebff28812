package tokens

import (
	"context"
	"errors"
	"time"

	"shunt/runtime/tokens/bpe"
	"shunt/runtime/tokens/template"
)

// bytesPerToken estimates lengths where there are no ids.
const bytesPerToken = 4

// Options are the surroundings and bounds of a model.
type Options struct {
	// Now is the clock of templates that write the date. nil stands for none:
	// such templates are not rendered.
	Now func() time.Time
	// MaxBytes is the longest body, and the longest rendered text, that is
	// tokenized; longer ones are estimated. 0 stands for 8 MiB.
	MaxBytes int
	// CacheWords is that of bpe.Options.
	CacheWords int
	// MaxSteps bounds a rendering; 0 stands for the default of the template
	// package, about a second.
	MaxSteps int
	// DropInputIDs says that the engines pass over ids that clients send, so that
	// the messages alone decide the prompt.
	DropInputIDs bool
}

const defaultMaxBytes = 8 << 20

// Model is one model's tokenizer and chat template.
type Model struct {
	tokenizer *bpe.Tokenizer
	// templates by name; "" stands for the one that is used without tools.
	templates map[string]*template.Template
	refused   error // why there are none
	special   *template.Dict
	options   Options
}

// Trust says what ids or a length rest on.
type Trust uint8

const (
	// Exact ids are those that the engine computes or was given.
	Exact Trust = iota + 1
	// Rendered ids come from the model's own template and tokenizer, but the
	// engine may rewrite such a request before it renders it.
	Rendered
	// Estimated means that there are no ids, only a length by the size of the
	// body.
	Estimated
)

var trustNames = [...]string{"unknown", "exact", "rendered", "estimate"}

func (t Trust) String() string { return trustNames[t] }

// Source says where a length comes from.
type Source struct {
	Trust Trust
	// Tokens is the length, at least 1.
	Tokens int64
	// Forwarding says whether the ids may be sent along, and if not, why.
	Forwarding Forwarding
	// Err is why there are no ids; nil if there are. It is for logs.
	Err error
}

// Exact reports whether the length is the engine's own.
func (s Source) Exact() bool { return s.Trust == Exact }

// TemplateError tells why the model has no usable chat template, or nil.
func (m *Model) TemplateError() error { return m.refused }

// DropInputIDs returns the same model for engines that pass over ids that clients
// send. What is large is shared.
func (m *Model) DropInputIDs() *Model {
	n := *m
	n.options.DropInputIDs = true
	return &n
}

// Tokenizer gives access to the tokenizer, for plain prompts.
func (m *Model) Tokenizer() *bpe.Tokenizer { return m.tokenizer }

// Count is Encode without the ids.
func (m *Model) Count(ctx context.Context, body []byte) (Source, error) {
	_, source, err := m.Encode(ctx, nil, body)
	return source, err
}

// Encode appends the ids of the prompt that a chat request makes to dst. Without
// ids the source is an estimate that says why. The error is ErrBody, or that of
// the context; everything else only makes the answer an estimate.
func (m *Model) Encode(ctx context.Context, dst []uint32, body []byte) ([]uint32, Source, error) {
	from := len(dst)
	if len(body) > m.options.MaxBytes {
		return dst, Estimate(len(body), TokenizeFailed, bpe.ErrTooLong), nil
	}
	chat, err := ReadChat(string(body))
	if err != nil {
		return dst, Source{}, err
	}
	if m.options.DropInputIDs {
		chat.DropInputIDs()
	}
	forwarding := chat.Forwarding(m.refused == nil)
	if chat.inputIDs.valid {
		return append(dst, chat.inputIDs.ids...), Source{Trust: Exact, Tokens: int64(len(chat.inputIDs.ids)), Forwarding: forwarding}, nil
	}
	text, err := m.Render(ctx, chat)
	if err == nil {
		dst, err = m.tokenizer.Encode(ctx, dst, text, false)
	}
	switch {
	case ctx.Err() != nil:
		return dst[:from], Source{}, ctx.Err()
	case err == nil && len(dst) == from:
		err = errors.New("the prompt is empty")
	}
	if err != nil {
		if forwarding == Forwarded {
			forwarding = TokenizeFailed
		}
		return dst[:from], Estimate(len(body), forwarding, err), nil
	}
	source := Source{Trust: Rendered, Tokens: int64(len(dst) - from), Forwarding: forwarding}
	if forwarding == Forwarded {
		source.Trust = Exact
	}
	return dst, source, nil
}

// Estimate is a length by the size of a body alone, and why there is nothing better.
func Estimate(size int, f Forwarding, err error) Source {
	return Source{Trust: Estimated, Tokens: max(1, int64(size/bytesPerToken)), Forwarding: f, Err: err}
}

var (
	errOwnTemplate = errors.New("the request brings its own chat template")
	errNoMessages  = errors.New("no messages")
	errOwnIDs      = errors.New("input_ids that are no list of ids")
)

// Render writes the text of a chat request.
func (m *Model) Render(ctx context.Context, c *Chat) (string, error) {
	switch {
	case m.refused != nil:
		return "", m.refused
	case !c.hasMessages:
		return "", errNoMessages
	case c.inputIDs.present:
		return "", errOwnIDs
	case c.ownTemplate:
		return "", errOwnTemplate
	}
	t := m.templates[""]
	if named, ok := m.templates["tool_use"]; ok && !c.tools.IsNone() {
		t = named
	}
	vars, tail, err := c.variables(m.special, t.TakesParts())
	if err != nil {
		return "", err
	}
	o := template.Options{MaxOutput: m.options.MaxBytes, MaxSteps: m.options.MaxSteps}
	if m.options.Now != nil {
		o.Now = m.options.Now()
	}
	text, err := t.Render(ctx, vars, o)
	return text + tail, err
}
