package tokens

import (
	"errors"
	"fmt"
	"strings"

	"shunt/runtime/tokens/ordered"
	"shunt/runtime/tokens/template"
)

// ErrBody is a body that is no JSON object, or in which a member that decides the
// prompt stands twice or has a wrong type.
var ErrBody = errors.New("chat request cannot be read")

// ErrTooMany is a body of so many values that it is not read; it is an ErrBody, too.
var ErrTooMany = ordered.ErrTooMany

// maxValues bounds the values of a body, each of which takes about a hundred bytes. It
// is above the ids of the longest prompts.
const maxValues = 1 << 20

// Chat is a chat request, as far as it decides the prompt.
type Chat struct {
	messages    []template.Value
	hasMessages bool
	tools       template.Value
	functions   template.Value
	documents   template.Value
	kwargs      *template.Dict
	inputIDs    idList
	// prompt is add_generation_prompt; it is set unless the request says false.
	prompt    bool
	continues bool
	// controls says that the request changes the rendering.
	controls    bool
	ownTemplate bool
}

// idList is the ids that a client sent.
type idList struct {
	present bool
	ids     []uint32
	valid   bool
}

func (l idList) given() bool { return l.present }

// InputIDs are the ids that the client sent instead of leaving them to the engine,
// if they are one list.
func (c *Chat) InputIDs() ([]uint32, bool) { return c.inputIDs.ids, c.inputIDs.valid }

// DropInputIDs forgets the ids that the client sent, for engines that pass over them.
func (c *Chat) DropInputIDs() { c.inputIDs = idList{} }

// ReadChat reads a request body. Members that do not bear on the prompt are
// passed over. The error wraps ErrBody.
func ReadChat(body string) (*Chat, error) {
	c := &Chat{tools: template.None(), functions: template.None(), documents: template.None(), kwargs: new(template.Dict), prompt: true}
	r := ordered.NewReader(body)
	r.Limit(maxValues)
	seen := make(map[string]bool)
	err := r.Object(func(key string) error {
		read := c.member(key)
		if read == nil {
			return r.Skip()
		}
		if seen[key] {
			return fmt.Errorf("%q stands twice", key)
		}
		seen[key] = true
		v, err := template.Read(r)
		if err != nil || v.IsNone() {
			return err
		}
		if !read(v) {
			return fmt.Errorf("%q has a wrong type", key)
		}
		return nil
	})
	if err == nil {
		err = r.Done()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBody, err)
	}
	return c, nil
}

// member returns what to do with a member that is not null, or nil if it does not
// bear on the prompt.
func (c *Chat) member(key string) func(template.Value) bool {
	switch key {
	case "messages":
		return func(v template.Value) bool {
			c.messages, c.hasMessages = v.Items()
			return true // the engine refuses what is no list
		}
	case "tools":
		return func(v template.Value) bool { c.tools = v; return true }
	case "functions":
		return func(v template.Value) bool { c.functions = v; return true }
	case "documents":
		return func(v template.Value) bool { c.documents, c.controls = v, true; return true }
	case "input_ids":
		return func(v template.Value) bool { c.inputIDs = readIDs(v); return true }
	case "chat_template_kwargs":
		return func(v template.Value) bool {
			c.controls = true
			d := v.Dict()
			if d != nil {
				c.kwargs = d
			}
			return d != nil
		}
	case "chat_template":
		return func(template.Value) bool { c.controls, c.ownTemplate = true, true; return true }
	case "reasoning", "reasoning_effort", "task":
		return func(template.Value) bool { c.controls = true; return true }
	case "add_generation_prompt":
		return func(v template.Value) bool {
			on, ok := v.Bool()
			c.prompt, c.controls = on, c.controls || !on
			return ok
		}
	case "continue_final_message":
		return func(v template.Value) (ok bool) {
			c.continues, ok = v.Bool()
			return ok
		}
	}
	return nil
}

// readIDs takes one list of ids. A list of lists is several prompts, which one list
// of ids cannot stand for.
func readIDs(v template.Value) idList {
	items, ok := v.Items()
	l := idList{present: true, valid: ok && len(items) > 0, ids: make([]uint32, len(items))}
	for i, item := range items {
		n, ok := item.Int()
		if !ok || n < 0 || n > 1<<32-1 {
			l.valid = false // several prompts, or nothing that an engine takes
			break
		}
		l.ids[i] = uint32(n)
	}
	return l
}

// errParts means that a message has content that is not text.
var errParts = errors.New("content other than text")

// variables returns what the template sees, and the text to put behind the
// rendering when the last message is to be continued.
func (c *Chat) variables(special *template.Dict, parts bool) (vars *template.Dict, tail string, err error) {
	vars = special.Clone()
	messages := c.messages
	if c.continues && c.lastRole() == "assistant" {
		last := messages[len(messages)-1].Dict()
		v, _ := last.Get("content")
		if tail, _ = v.Text(); tail == "" && !empty(last, "content") {
			return nil, "", errParts
		}
		messages = messages[:len(messages)-1]
	}
	seen := make([]template.Value, len(messages))
	for i, m := range messages {
		if seen[i], err = message(m, parts); err != nil {
			return nil, "", fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	vars.Set("messages", template.List(seen...))
	vars.Set("tools", c.tools)
	vars.Set("documents", c.documents)
	vars.Set("add_generation_prompt", template.Bool(c.prompt))
	c.kwargs.Each(vars.Set)
	return vars, tail, nil
}

// message prepares a message as engines do: members of null are left out, content
// is a text even where there is none, parts of text become one text unless the
// template reads parts, and arguments of calls are objects.
func message(v template.Value, parts bool) (template.Value, error) {
	m := v.Dict()
	if m == nil {
		return v, errors.New("no object")
	}
	out := new(template.Dict)
	m.Each(func(key string, v template.Value) {
		if !v.IsNone() && key != "content" {
			out.Set(key, v)
		}
	})
	content, err := contentOf(m, parts)
	if err != nil {
		return v, err
	}
	out.Set("content", content)
	if calls, ok := out.Get("tool_calls"); ok && role(m) == "assistant" {
		out.Set("tool_calls", callsOf(calls))
	}
	return template.Object(out), nil
}

// contentOf returns the content as the template gets it.
func contentOf(m *template.Dict, parts bool) (template.Value, error) {
	v, _ := m.Get("content")
	if _, ok := v.Text(); ok {
		return v, nil
	}
	if empty(m, "content") {
		return template.String(""), nil
	}
	items, ok := v.Items()
	if !ok {
		return v, errParts
	}
	var texts []string
	var kept []template.Value
	for _, item := range items {
		part := item.Dict()
		if part == nil {
			return v, errParts
		}
		kind, _ := part.Get("type")
		text, _ := part.Get("text")
		k, _ := kind.Text()
		s, ok := text.Text()
		if !ok || k != "text" && k != "input_text" {
			return v, errParts
		}
		p := new(template.Dict)
		p.Set("type", template.String("text"))
		p.Set("text", text)
		texts, kept = append(texts, s), append(kept, template.Object(p))
	}
	if parts {
		return template.List(kept...), nil
	}
	return template.String(strings.Join(texts, " ")), nil
}

// callsOf turns arguments that are JSON in a string into what they mean.
func callsOf(calls template.Value) template.Value {
	items, ok := calls.Items()
	if !ok {
		return calls
	}
	out := make([]template.Value, len(items))
	for i, item := range items {
		out[i] = item
		call := item.Dict()
		if call == nil {
			continue
		}
		f, _ := call.Get("function")
		if f.Dict() == nil {
			continue
		}
		a, _ := f.Dict().Get("arguments")
		s, ok := a.Text()
		if !ok {
			continue
		}
		parsed, err := template.Parse(s)
		if err != nil {
			continue // the engine refuses it, or passes it on
		}
		function, renewed := f.Dict().Clone(), call.Clone()
		function.Set("arguments", parsed)
		renewed.Set("function", template.Object(function))
		out[i] = template.Object(renewed)
	}
	return template.List(out...)
}

// specialTokens reads the tokens that templates know by name.
func specialTokens(config *template.Dict) *template.Dict {
	out := new(template.Dict)
	for _, key := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
		v, _ := config.Get(key)
		if d := v.Dict(); d != nil { // written out with its properties
			v, _ = d.Get("content")
		}
		if _, ok := v.Text(); ok {
			out.Set(key, v)
		}
	}
	return out
}
