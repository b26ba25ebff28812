package tokens_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shunt/runtime/tokens"
	"shunt/runtime/tokens/bpe"
	"shunt/runtime/tokens/template"
	"shunt/runtime/tokens/tokenstest"
)

// chatTemplate prints everything that a request can decide.
const chatTemplate = `{{ bos_token }}{% if tools %}T{{ tools|tojson }}{% endif %}{% if documents %}D{{ documents|length }}{% endif %}
{%- for m in messages %}[{{ m.role }}:{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}{% if m.name is defined %}({{ m.name }}){% endif %}]{% endfor %}
{%- if add_generation_prompt %}>{% if enable_thinking is false %}!{% endif %}{% endif %}`

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func plainConfig() map[string]any {
	return map[string]any{"chat_template": chatTemplate, "bos_token": map[string]any{"content": "<s>"}, "eos_token": nil}
}

// spelled turns ids back into the text.
func spelled(ids []uint32) string {
	var b strings.Builder
	for _, id := range ids {
		if id == 256 {
			b.WriteString("<s>")
		} else {
			b.WriteByte(byte(id))
		}
	}
	return b.String()
}

func TestEncode(t *testing.T) {
	m := tokenstest.Load(t, tokenstest.Dir(t, plainConfig()), tokens.Options{})
	f := func(body, want string) {
		t.Helper()
		ids, s, err := m.Encode(t.Context(), nil, []byte(body))
		got := s.Trust.String() + " " + s.Forwarding.String() + " " + spelled(ids)
		if s.Err != nil {
			got += s.Err.Error()
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
		if err == nil && s.Trust != tokens.Estimated && s.Tokens != int64(len(ids)) {
			t.Errorf("%s: %d tokens for %d ids", body, s.Tokens, len(ids))
		}
	}
	f(`{"messages":[{"role":"user","content":"hé <s>"}]}`, "exact forwarded <s>[user:hé <s>]>")
	f(`{"model":"x","messages":[{"role":"user","content":"a","name":null}],"tools":null,"stream":true}`, "exact forwarded <s>[user:a]>")
	f(`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"b":1,"a":2}}]}`,
		`rendered tools <s>T[{"type": "function", "function": {"b": 1, "a": 2}}][user:a]>`)
	f(`{"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"enable_thinking":false}}`, "rendered template_controls <s>[user:a]>!")
	f(`{"messages":[{"role":"user","content":"a"}],"add_generation_prompt":false,"documents":[{}]}`, "rendered template_controls <s>D1[user:a]")
	f(`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"x\": [1]}"}}]}]}`,
		`rendered tools <s>[assistant:[{"function": {"name": "f", "arguments": {"x": [1]}}}]]>`)
	f(`{"messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"arguments":"{"}}]}]}`,
		`rendered tools <s>[assistant:[{"function": {"arguments": "{"}}]]>`)
	f(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`, "rendered non_text_content <s>[user:a b]>")
	f(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, "estimate non_text_content messages[0]: content other than text")
	f(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"continue_final_message":true}`, "rendered assistant_continuation <s>[user:a]>b")
	f(`{"messages":[{"role":"user","content":"a"}],"chat_template":"x"}`, "estimate template_controls the request brings its own chat template")
	f(`{"messages":[{"role":"user","content":"a"}],"input_ids":[104,105]}`, "exact caller_input_ids hi")
	f(`{"messages":[{"role":"user","content":"a"}],"input_ids":[[1],[2]]}`, "estimate caller_input_ids input_ids that are no list of ids")
	f(`{"prompt":"a"}`, "estimate no_messages no messages")
	f(`{"messages":[1]}`, "estimate non_text_content messages[0]: no object")
	f(`{"messages":[],"messages":[]}`, `chat request cannot be read: "messages" stands twice`)
	f(`{"messages":[{"content":"\ud800"}]}`, "chat request cannot be read: JSON at byte 31: half of a surrogate pair")
	f(`{"add_generation_prompt":1}`, `chat request cannot be read: "add_generation_prompt" has a wrong type`)
	f(`[]`, "chat request cannot be read: JSON at byte 0: want an object, found an array")
	f(`{"messages":[`+strings.Repeat("0,", 1<<20)+`0]}`,
		"chat request cannot be read: JSON at byte 2097162: too many values, at most 1048576 are read")
	m = m.DropInputIDs()
	f(`{"messages":[{"role":"user","content":"a"}],"input_ids":[104,105]}`, "exact forwarded <s>[user:a]>")
}

func TestForwarding(t *testing.T) {
	f := func(rest, want string) {
		t.Helper()
		c, err := tokens.ReadChat("{" + rest + "}")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Forwarding(true).String(); got != want {
			t.Errorf("%s\n got %s, want %s", rest, got, want)
		}
		if got := c.Forwarding(false); got != tokens.Disabled {
			t.Errorf("%s: switched off, got %s", rest, got)
		}
	}
	const user = `{"role":"user","content":"a"}`
	const answer = `{"role":"assistant","content":"b"}`
	f(`"messages":[`+user+`]`, "forwarded")
	f(`"messages":[{"role":"system","content":""},`+user+`,`+answer+`,`+user+`]`, "forwarded")
	f(`"messages":[`+user+`],"chat_template":null,"tools":[],"functions":null,"reasoning_effort":null`, "forwarded")
	f(`"prompt":"a"`, "no_messages")
	f(`"messages":"a"`, "no_messages")
	f(`"messages":[`+user+`],"input_ids":[1],"tools":[1]`, "caller_input_ids") // the first reason counts
	f(`"messages":[`+user+`],"tools":[{}]`, "tools")
	f(`"messages":[`+user+`],"functions":[{}],"reasoning":{}`, "tools")
	f(`"messages":[{"role":"tool","content":"x"}]`, "tools")
	f(`"messages":[{"role":"assistant","content":null,"tool_calls":[{}]}]`, "tools")
	f(`"messages":[{"role":"assistant","content":"a","function_call":{"name":"f"}}]`, "tools")
	f(`"messages":[{"role":"user","content":null}]`, "non_text_content")
	f(`"messages":[{"role":"user"}]`, "non_text_content")
	f(`"messages":[{"role":"user","content":[]}]`, "non_text_content")
	f(`"messages":[7]`, "non_text_content")
	f(`"messages":[`+user+`,{"role":"assistant","content":"b","reasoning_content":""},`+user+`]`, "reasoning_content")
	f(`"messages":[`+user+`,{"role":"assistant","content":"b","reasoning_content":null},`+user+`]`, "forwarded")
	f(`"messages":[`+user+`,`+user+`]`, "role_rewrite")
	f(`"messages":[`+user+`,{"role":"system","content":"x"}]`, "role_rewrite")
	f(`"messages":[`+user+`],"chat_template":"x"`, "template_controls")
	f(`"messages":[`+user+`],"chat_template_kwargs":{}`, "template_controls")
	f(`"messages":[`+user+`],"reasoning_effort":"low"`, "template_controls")
	f(`"messages":[`+user+`],"task":"x"`, "template_controls")
	f(`"messages":[`+user+`],"add_generation_prompt":false`, "template_controls")
	f(`"messages":[`+user+`],"continue_final_message":true`, "assistant_continuation")
	f(`"messages":[`+user+`,`+answer+`]`, "assistant_continuation")
}

func TestTemplates(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"a"}]}`)
	withTools := []byte(`{"messages":[{"role":"user","content":"a"}],"tools":[{}]}`)
	render := func(m *tokens.Model, body []byte) string {
		ids, s, err := m.Encode(t.Context(), nil, body)
		if err != nil || s.Err != nil {
			t.Errorf("%v %v", err, s.Err)
		}
		return spelled(ids)
	}
	config := map[string]any{"chat_template": []any{
		map[string]any{"name": "default", "template": "plain"},
		map[string]any{"name": "tool_use", "template": "with tools"},
		map[string]any{"name": "rag", "template": "{% include 'never compiled' %}"},
	}}
	dir := tokenstest.Dir(t, config)
	m := tokenstest.Load(t, dir, tokens.Options{})
	if got := render(m, body) + "," + render(m, withTools); got != "plain,with tools" {
		t.Errorf("named templates: %s", got)
	}
	writeFile(t, filepath.Join(dir, "chat_template.jinja"), "{{ strftime_now('%Y') }} of its own\n")
	m = tokenstest.Load(t, filepath.Join(dir, "tokenizer.json"), tokens.Options{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }})
	if got := render(m, body) + "," + render(m, withTools); got != "2026 of its own,2026 of its own" {
		t.Errorf("template of its own: %s", got)
	}
}

func TestWithoutTemplate(t *testing.T) {
	f := func(source any, want string) {
		t.Helper()
		config := plainConfig()
		config["chat_template"] = source
		m := tokenstest.Load(t, tokenstest.Dir(t, config), tokens.Options{})
		if m.TemplateError() == nil || m.TemplateError().Error() != want {
			t.Errorf("got %v, want %s", m.TemplateError(), want)
		}
		s, err := m.Count(t.Context(), []byte(`{"messages":[{"role":"user","content":"a"}]}`))
		if err != nil || s.Trust != tokens.Estimated || s.Forwarding != tokens.Disabled || s.Tokens != 11 || s.Exact() {
			t.Errorf("got %+v, %v", s, err)
		}
	}
	f(nil, "the model has no chat template")
	f("{% include 'x' %}", `template:1:4: tag "include" is not supported`)
}

func TestRenderingFails(t *testing.T) {
	config := plainConfig()
	config["chat_template"] = "{{ raise_exception('no ' ~ messages[0].content) }}"
	m := tokenstest.Load(t, tokenstest.Dir(t, config), tokens.Options{})
	_, s, err := m.Encode(t.Context(), []uint32{7}, []byte(`{"messages":[{"role":"user","content":"a"}]}`))
	e, ok := errors.AsType[*template.RenderError](s.Err)
	if err != nil || s.Forwarding != tokens.TokenizeFailed || !ok || e.Kind != template.Raised || e.Text != "no a" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestBounds(t *testing.T) {
	m := tokenstest.Load(t, tokenstest.Dir(t, plainConfig()), tokens.Options{MaxBytes: 100})
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("a", 200) + `"}]}`
	s, err := m.Count(t.Context(), []byte(body))
	if err != nil || s.Trust != tokens.Estimated || s.Tokens != int64(len(body)/4) || !errors.Is(s.Err, bpe.ErrTooLong) {
		t.Errorf("got %+v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ids, _, err := tokenstest.Load(t, tokenstest.Dir(t, plainConfig()), tokens.Options{}).Encode(ctx, []uint32{1}, []byte(`{"messages":[{"role":"user","content":"`+strings.Repeat("a", 1<<20)+`"}]}`))
	if !errors.Is(err, context.Canceled) || len(ids) != 1 {
		t.Errorf("got %d ids, %v", len(ids), err)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := tokenstest.Dir(t, plainConfig())
	writeFile(t, filepath.Join(dir, "tokenizer.json"), `{"model":{"type":"Unigram"}}`)
	files, err := tokens.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tokens.Load(files, tokens.Options{})
	if _, ok := errors.AsType[*bpe.Unsupported](err); !ok || !strings.HasPrefix(err.Error(), files.Tokenizer+": tokenizer: model.type") {
		t.Errorf("got %v", err)
	}
	if _, err := tokens.Find(filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// FuzzReadChat reads any body and decides about it.
func FuzzReadChat(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}],"tool_calls":[{"function":{"arguments":"{}"}}]}],"input_ids":[1,-1]}`)
	f.Add(`{"messages":[null,1,{"role":1}],"chat_template_kwargs":{"a":1e400},"continue_final_message":true}`)
	f.Fuzz(func(t *testing.T, body string) {
		c, err := tokens.ReadChat(body)
		if err != nil {
			return
		}
		if got := c.Forwarding(true).String(); got == "unknown" {
			t.Errorf("%q: %s", body, got)
		}
	})
}
