package tokens

import "shunt/runtime/tokens/template"

// Forwarding says whether the ids of a request may be sent along to an engine,
// which uses them as they are, and if not, why.
type Forwarding uint8

// The reasons, in the order in which they are looked for.
const (
	// Forwarded means that the ids are those that the engine would compute.
	Forwarded Forwarding = iota + 1
	// Disabled means that there is no chat template that can be rendered, or
	// that the operator switched forwarding off.
	Disabled
	// NoMessages means that the body has no array of messages.
	NoMessages
	// CallerInputIDs means that the client sent ids of its own, which stay.
	CallerInputIDs
	// Tools means that tools, functions or calls of them are involved, which
	// engines rewrite before they render.
	Tools
	// NonTextContent means that some content is not a string, or is missing.
	NonTextContent
	// ReasoningContent means that the history holds reasoning, which engines
	// keep or drop by the model.
	ReasoningContent
	// RoleRewrite means that a system message is not the first, or that two user
	// messages follow each other; some engines reorder or merge them.
	RoleRewrite
	// TemplateControls means that the request changes how the engine renders.
	TemplateControls
	// AssistantContinuation means that the last message is the assistant's, to
	// be continued.
	AssistantContinuation
	// TokenizeFailed means that there are no ids.
	TokenizeFailed
)

var forwardingNames = [...]string{
	"unknown", "forwarded", "disabled", "no_messages", "caller_input_ids", "tools", "non_text_content",
	"reasoning_content", "role_rewrite", "template_controls", "assistant_continuation", "tokenize_failed",
}

// String returns the name that metrics use.
func (f Forwarding) String() string { return forwardingNames[f] }

// Forwarding decides by the request alone whether its ids may be forwarded;
// enabled is false if there is no usable chat template or the operator does not
// want it.
func (c *Chat) Forwarding(enabled bool) Forwarding {
	switch {
	case !enabled:
		return Disabled
	case !c.hasMessages:
		return NoMessages
	case c.inputIDs.given():
		return CallerInputIDs
	case c.usesTools():
		return Tools
	case c.some(func(m *template.Dict) bool { return !isText(m, "content") }):
		return NonTextContent
	case c.some(func(m *template.Dict) bool { return !empty(m, "reasoning_content") }):
		return ReasoningContent
	case c.rolesRewritten():
		return RoleRewrite
	case c.controls:
		return TemplateControls
	case c.continues || c.lastRole() == "assistant":
		return AssistantContinuation
	}
	return Forwarded
}

// some reports whether a message has a property. One that is no object has every
// property that keeps it from being forwarded.
func (c *Chat) some(is func(m *template.Dict) bool) bool {
	for _, m := range c.messages {
		if d := m.Dict(); d == nil || is(d) {
			return true
		}
	}
	return false
}

// usesTools reports whether the request offers, calls or answers tools.
func (c *Chat) usesTools() bool {
	if filled(c.tools) || filled(c.functions) {
		return true
	}
	for _, v := range c.messages {
		m := v.Dict()
		if m == nil {
			continue // told as content that is no text
		}
		if role(m) == "tool" {
			return true
		}
		for _, key := range []string{"tools", "tool_calls", "function_call"} {
			if v, ok := m.Get(key); ok && filled(v) {
				return true
			}
		}
	}
	return false
}

// filled reports whether a value is there and is not empty.
func filled(v template.Value) bool { return v.Truth() }

// isText reports whether a member is a string.
func isText(m *template.Dict, key string) bool {
	v, ok := m.Get(key)
	if !ok {
		return false
	}
	_, ok = v.Text()
	return ok
}

// empty reports whether a member is missing or null.
func empty(m *template.Dict, key string) bool {
	v, ok := m.Get(key)
	return !ok || v.IsNone()
}

// role returns the role of a message, "" if it has none.
func role(m *template.Dict) string {
	v, _ := m.Get("role")
	s, _ := v.Text()
	return s
}

// lastRole returns the role of the last message.
func (c *Chat) lastRole() string {
	if len(c.messages) == 0 {
		return ""
	}
	if m := c.messages[len(c.messages)-1].Dict(); m != nil {
		return role(m)
	}
	return ""
}

// rolesRewritten expects that all messages are objects.
func (c *Chat) rolesRewritten() bool {
	previous := ""
	for i, v := range c.messages {
		r := role(v.Dict())
		if r == "system" && i > 0 || r == "user" && previous == "user" {
			return true
		}
		previous = r
	}
	return false
}
