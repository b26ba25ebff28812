package enginetest

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// answer is what a dialect renders: the reply as far as it was generated.
type answer struct {
	id           string
	model        string
	created      int64 // seconds since 1970
	promptTokens int
	cachedTokens int // below zero without a cache
	choices      []choice
	usage        bool
}

// choice is one of the n answers to a prompt.
type choice struct {
	source *text
	limit  int
	text   []byte
	tokens int
	finish string // empty while it is generated
}

func (a *answer) completionTokens() (n int) {
	for _, c := range a.choices {
		n += c.tokens
	}
	return n
}

// dialect is how one endpoint reads a prompt and writes an answer. The append
// methods write JSON documents; an event without content is an empty result.
type dialect interface {
	prompt(in *wireRequest) (string, error)
	idPrefix() string
	appendOpen(dst []byte, a *answer, i int) []byte
	appendToken(dst []byte, a *answer, i int, token string) []byte
	appendFinish(dst []byte, a *answer, i int) []byte
	appendUsage(dst []byte, a *answer) []byte
	appendWhole(dst []byte, a *answer) []byte
}

// quote appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(dst []byte, s string) []byte {
	out, _ := jsontext.AppendQuote(dst, s) // the error only reports invalid UTF-8
	return out
}

// appendPreamble writes the members that all OpenAI objects begin with.
func appendPreamble(dst []byte, a *answer, object string) []byte {
	dst = append(dst, `{"id":`...)
	dst = quote(dst, a.id)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, a.created, 10)
	dst = append(dst, `,"model":`...)
	return quote(dst, a.model)
}

// appendTotals writes the usage object.
func appendTotals(dst []byte, a *answer) []byte {
	n := a.completionTokens()
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, int64(a.promptTokens), 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, int64(a.promptTokens+n), 10)
	if a.cachedTokens < 0 {
		return append(dst, `,"prompt_tokens_details":null}`...)
	}
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, int64(a.cachedTokens), 10)
	return append(dst, `}}`...)
}

// chat is /v1/chat/completions.
type chat struct{}

func (chat) prompt(in *wireRequest) (string, error) { return chatPrompt(in) }
func (chat) idPrefix() string                       { return "chatcmpl-" }

func (chat) chunk(dst []byte, a *answer, i int, delta, finish string) []byte {
	dst = appendPreamble(dst, a, "chat.completion.chunk")
	dst = append(dst, `,"choices":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, `,"delta":`...)
	dst = append(dst, delta...)
	dst = append(dst, `,"logprobs":null,"finish_reason":`...)
	dst = appendFinishReason(dst, finish)
	dst = append(dst, `}]`...)
	return appendNoUsage(dst, a)
}

func (c chat) appendOpen(dst []byte, a *answer, i int) []byte {
	return c.chunk(dst, a, i, `{"role":"assistant","content":""}`, "")
}

func (c chat) appendToken(dst []byte, a *answer, i int, token string) []byte {
	return c.chunk(dst, a, i, `{"content":`+string(quote(nil, token))+`}`, "")
}

func (c chat) appendFinish(dst []byte, a *answer, i int) []byte {
	return c.chunk(dst, a, i, `{}`, a.choices[i].finish)
}

func (chat) appendUsage(dst []byte, a *answer) []byte {
	dst = appendPreamble(dst, a, "chat.completion.chunk")
	dst = append(dst, `,"choices":[],"usage":`...)
	return append(appendTotals(dst, a), '}')
}

func (chat) appendWhole(dst []byte, a *answer) []byte {
	dst = appendPreamble(dst, a, "chat.completion")
	dst = append(dst, `,"choices":[`...)
	for i, c := range a.choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, `,"message":{"role":"assistant","content":`...)
		dst = quote(dst, string(c.text))
		dst = append(dst, `},"logprobs":null,"finish_reason":`...)
		dst = appendFinishReason(dst, c.finish)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"usage":`...)
	return append(appendTotals(dst, a), '}')
}

// completions is /v1/completions.
type completions struct{}

func (completions) prompt(in *wireRequest) (string, error) {
	if in.Prompt == nil {
		return "", rejected("prompt: a string is required")
	}
	return *in.Prompt, nil
}
func (completions) idPrefix() string { return "cmpl-" }

func (completions) appendChoice(dst []byte, i int, text, finish string) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, `,"text":`...)
	dst = quote(dst, text)
	dst = append(dst, `,"logprobs":null,"finish_reason":`...)
	dst = appendFinishReason(dst, finish)
	return append(dst, '}')
}

func (c completions) chunk(dst []byte, a *answer, i int, text, finish string) []byte {
	dst = appendPreamble(dst, a, "text_completion")
	dst = append(dst, `,"choices":[`...)
	dst = c.appendChoice(dst, i, text, finish)
	return appendNoUsage(append(dst, ']'), a)
}

func (completions) appendOpen(dst []byte, _ *answer, _ int) []byte { return dst }

func (c completions) appendToken(dst []byte, a *answer, i int, token string) []byte {
	return c.chunk(dst, a, i, token, "")
}

func (c completions) appendFinish(dst []byte, a *answer, i int) []byte {
	return c.chunk(dst, a, i, "", a.choices[i].finish)
}

func (completions) appendUsage(dst []byte, a *answer) []byte {
	dst = appendPreamble(dst, a, "text_completion")
	dst = append(dst, `,"choices":[],"usage":`...)
	return append(appendTotals(dst, a), '}')
}

func (c completions) appendWhole(dst []byte, a *answer) []byte {
	dst = appendPreamble(dst, a, "text_completion")
	dst = append(dst, `,"choices":[`...)
	for i := range a.choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.appendChoice(dst, i, string(a.choices[i].text), a.choices[i].finish)
	}
	dst = append(dst, `],"usage":`...)
	return append(appendTotals(dst, a), '}')
}

// native is /generate. Its events carry the whole text so far.
type native struct{}

func (native) prompt(in *wireRequest) (string, error) {
	if (in.Text == nil) == (in.InputIDs == nil) {
		return "", rejected("exactly one of text and input_ids is required")
	}
	if p := in.SamplingParams; p != nil && p.N != nil && *p.N != 1 {
		return "", rejected("sampling_params.n: only 1 is simulated")
	}
	if in.Text == nil {
		return "", nil
	}
	return *in.Text, nil
}
func (native) idPrefix() string { return "" }

func (native) appendOpen(dst []byte, _ *answer, _ int) []byte { return dst }

func (n native) appendToken(dst []byte, a *answer, _ int, _ string) []byte {
	return n.appendWhole(dst, a)
}

func (n native) appendFinish(dst []byte, a *answer, _ int) []byte { return n.appendWhole(dst, a) }

func (native) appendUsage(dst []byte, _ *answer) []byte { return dst }

func (native) appendWhole(dst []byte, a *answer) []byte {
	c := a.choices[0]
	dst = append(dst, `{"text":`...)
	dst = quote(dst, string(c.text))
	dst = append(dst, `,"meta_info":{"id":`...)
	dst = quote(dst, a.id)
	dst = append(dst, `,"finish_reason":`...)
	if c.finish == "" {
		dst = append(dst, `null`...)
	} else {
		dst = append(dst, `{"type":"`...)
		dst = append(dst, c.finish...)
		dst = append(dst, `"}`...)
	}
	dst = append(dst, `,"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, int64(a.promptTokens), 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, int64(c.tokens), 10)
	return append(dst, `,"cached_tokens":0}}`...)
}

func appendFinishReason(dst []byte, finish string) []byte {
	if finish == "" {
		return append(dst, `null`...)
	}
	return quote(dst, finish)
}

// appendNoUsage ends a chunk. Clients that asked for usage are told with null
// that it comes later.
func appendNoUsage(dst []byte, a *answer) []byte {
	if a.usage {
		dst = append(dst, `,"usage":null`...)
	}
	return append(dst, '}')
}
