package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// heeded are the members of a chat request that decide its prompt, in the order in
// which they are sent.
func heeded() [16]string {
	return [...]string{
		"model", "messages", "tools", "functions", "tool_choice", "documents",
		"chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message",
		"add_special_tokens", "reasoning", "reasoning_effort", "task", "mm_processor_kwargs", "media_io_kwargs",
	}
}

// passedOver reports whether vLLM's /tokenize passes over a member that its chat
// endpoint may write into the prompt, or that decides whether tools are in it.
// SGLang reads the question as it reads a chat request, so it passes over nothing.
func passedOver(member string) bool {
	switch member {
	case "functions", "tool_choice", "documents", "reasoning", "reasoning_effort", "task":
		return true
	}
	return false
}

// ask makes the question about a chat request that was read before: those of its
// members that decide the prompt, byte for byte.
func ask(body []byte, vllm bool) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, &Error{Unsupported, err}
	}
	if m := all["messages"]; len(m) == 0 || m[0] != '[' {
		return nil, &Error{Unsupported, errors.New("no messages")}
	}
	if !vllm && written(all["input_ids"]) {
		return nil, &Error{Unsupported, errors.New("input_ids that are no list of ids")}
	}
	out := []byte{'{'}
	for _, name := range heeded() {
		value := all[name]
		if !written(value) {
			continue
		}
		if vllm && passedOver(name) {
			return nil, &Error{Unsupported, fmt.Errorf("vLLM's /tokenize does not heed %s", name)}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), '"', ':'), value...)
	}
	return append(out, '}'), nil
}

// written reports whether a member is there and is not null.
func written(v json.RawMessage) bool { return len(v) > 0 && v[0] != 'n' }

// readAnswer appends the ids of an answer to dst.
func readAnswer(dst []uint32, raw []byte) ([]uint32, error) {
	var answer struct {
		Tokens json.RawMessage `json:"tokens"`
		Count  *int64          `json:"count"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return dst, err
	}
	from := len(dst)
	dst, err := readIDs(dst, answer.Tokens)
	switch n := len(dst) - from; {
	case err != nil:
		return dst, err
	case n == 0:
		return dst, errors.New("no tokens")
	case answer.Count != nil && *answer.Count != int64(n):
		return dst, fmt.Errorf("%d tokens and a count of %d", n, *answer.Count)
	}
	return dst, nil
}

// readIDs takes a JSON list of whole numbers that fit an id, and nothing else: an
// id that is read as another one would go unnoticed.
func readIDs(dst []uint32, list json.RawMessage) ([]uint32, error) {
	if len(list) < 2 || list[0] != '[' {
		return dst, errors.New("tokens is no list")
	}
	rest := bytes.TrimLeft(list[1:len(list)-1], " \t\r\n")
	for len(rest) > 0 {
		n, digits := uint64(0), 0
		for ; digits < len(rest) && rest[digits]-'0' <= 9 && n <= 1<<32; digits++ {
			n = n*10 + uint64(rest[digits]-'0')
		}
		if digits == 0 || n > 1<<32-1 {
			return dst, fmt.Errorf("token %d is no id", len(dst))
		}
		dst = append(dst, uint32(n))
		rest = bytes.TrimLeft(rest[digits:], " \t\r\n")
		if len(rest) == 0 {
			break
		}
		if rest[0] != ',' { // a fraction or an exponent
			return dst, fmt.Errorf("token %d is no id", len(dst)-1)
		}
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	}
	return dst, nil
}
