package enginetest

import (
	"context"
	"hash/fnv"
	"math"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// job is one valid request on its way through the engine.
type job struct {
	rid          string
	model        string
	promptTokens int
	promptHash   uint64
	prompt       prompt
	// cached are the prompt tokens that need no computing, as far as known.
	cached    int
	rank      *rank // whose cache serves the job; nil without
	maxTokens int
	choices   int
	ignoreEOS bool
	stream    bool
	usage     bool // a stream ends with a usage event

	room          int64
	hasRoom       bool
	bootstrapHost string
	bootstrapPort int

	text   string
	cancel context.CancelCauseFunc

	// Owned by the scheduler.
	placed     chan struct{}
	handshaken bool
	running    bool
	computed   bool
	generated  int
}

// need is the most cache tokens that the job may come to use.
func (j *job) need() int { return j.promptTokens + j.maxTokens*j.choices }

// wireRequest is the union of what the generating endpoints accept and the
// simulation heeds. Other members are ignored, as real engines ignore them.
type wireRequest struct {
	RID           *string    `json:"rid"`
	Model         string     `json:"model"`
	Messages      []wireTurn `json:"messages"`
	Prompt        *string    `json:"prompt"`
	Text          *string    `json:"text"`
	InputIDs      []int64    `json:"input_ids"`
	CacheSalt     *string    `json:"cache_salt"`
	LoRAPath      *string    `json:"lora_path"`
	MaxTokens     *int64     `json:"max_tokens"`
	MaxCompletion *int64     `json:"max_completion_tokens"`
	N             *int64     `json:"n"`
	IgnoreEOS     bool       `json:"ignore_eos"`
	Stream        bool       `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	SamplingParams *struct {
		MaxNewTokens *int64 `json:"max_new_tokens"`
		IgnoreEOS    bool   `json:"ignore_eos"`
		N            *int64 `json:"n"`
	} `json:"sampling_params"`
	BootstrapHost *string `json:"bootstrap_host"`
	BootstrapPort *int64  `json:"bootstrap_port"`
	BootstrapRoom *int64  `json:"bootstrap_room"`
}

// wireTurn is one chat message. Content is a string, a list of parts, or null.
type wireTurn struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

// parse reads a request body. The last of repeated members wins, as in the JSON
// reader of real engines; names match exactly.
func parse(body []byte, d dialect) (*wireRequest, *job, error) {
	var in wireRequest
	if err := json.Unmarshal(body, &in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, nil, rejected("malformed request: %v", err)
	}
	text, err := d.prompt(&in)
	if err != nil {
		return nil, nil, err
	}
	j := &job{model: in.Model, stream: in.Stream, choices: 1, ignoreEOS: in.IgnoreEOS}
	j.usage = in.StreamOptions != nil && in.StreamOptions.IncludeUsage
	j.promptTokens, j.promptHash = measure(text, in.InputIDs)
	if in.CacheSalt != nil {
		j.prompt.salt = *in.CacheSalt
	}
	if in.LoRAPath != nil {
		j.prompt.lora = *in.LoRAPath
	}
	j.text = text
	if in.RID != nil {
		j.rid = *in.RID
	}
	limit, n := in.MaxTokens, in.N
	if in.MaxCompletion != nil {
		limit = in.MaxCompletion
	}
	if p := in.SamplingParams; p != nil {
		limit, n, j.ignoreEOS = p.MaxNewTokens, p.N, p.IgnoreEOS
	}
	if n != nil {
		if *n < 1 || *n > 128 {
			return nil, nil, rejected("n is %d: want 1 to 128", *n)
		}
		j.choices = int(*n)
	}
	if limit != nil {
		if *limit < 1 || *limit > math.MaxInt32 {
			return nil, nil, rejected("max_tokens is %d: want 1 to %d", *limit, math.MaxInt32)
		}
		j.maxTokens = int(*limit)
	}
	return &in, j, nil
}

// tokenize finds the tokens of the prompt and what of them is cached.
func (j *job) tokenize(in *wireRequest, body []byte, custom func([]byte) []uint32) {
	switch {
	case in.InputIDs != nil:
		j.prompt.tokens = make([]uint32, len(in.InputIDs))
		for i, id := range in.InputIDs {
			j.prompt.tokens[i] = uint32(id)
		}
		return
	case custom != nil:
		if ids := custom(body); len(ids) > 0 {
			j.prompt.tokens, j.promptTokens = ids, len(ids)
			return
		}
	}
	j.prompt.tokens = textTokens(j.text)
}

// uncached is what is left to compute: always the last token, at least.
func (j *job) uncached() int { return j.promptTokens - min(j.cached, j.promptTokens-1) }

// cachedTokens is what the usage of an answer says, -1 without a cache.
func (j *job) cachedTokens() int {
	if j.rank == nil {
		return -1
	}
	return j.promptTokens - j.uncached()
}

// fit checks the job's length and bounds an open answer by what is left of the
// context.
func (j *job) fit(contextTokens, kvTokens int) error {
	if j.promptTokens >= contextTokens {
		return rejected("the input (%d tokens) is longer than the model's context length (%d tokens)",
			j.promptTokens, contextTokens)
	}
	if j.promptTokens+j.maxTokens > contextTokens {
		return rejected("the requested %d input and %d output tokens exceed the model's context length (%d tokens)",
			j.promptTokens, j.maxTokens, contextTokens)
	}
	if j.maxTokens == 0 {
		left := min(contextTokens-j.promptTokens, (kvTokens-j.promptTokens)/j.choices)
		// An engine that generates until the context is full would never be
		// of use in a test, so an open answer has its own bound.
		j.maxTokens = max(1, min(left, 1024))
	}
	return nil
}

// rendezvous reads the fields that let prefill and decode meet.
func (j *job) rendezvous(in *wireRequest, role Role) error {
	if in.BootstrapRoom != nil {
		if *in.BootstrapRoom < 0 {
			return rejected("bootstrap_room is negative")
		}
		j.room, j.hasRoom = *in.BootstrapRoom, true
	}
	if role == Plain {
		return nil
	}
	if !j.hasRoom {
		return rejected("a %s engine needs a bootstrap_room", role)
	}
	if role == Prefill {
		return nil
	}
	if in.BootstrapHost == nil || *in.BootstrapHost == "" {
		return rejected("a decode engine needs a bootstrap_host")
	}
	// An IPv6 host arrives in brackets.
	j.bootstrapHost = strings.TrimSuffix(strings.TrimPrefix(*in.BootstrapHost, "["), "]")
	j.bootstrapPort = defaultBootstrapPort
	if p := in.BootstrapPort; p != nil {
		if *p < 1 || *p > 65535 {
			return rejected("bootstrap_port is %d: want 1 to 65535", *p)
		}
		j.bootstrapPort = int(*p)
	}
	return nil
}

// measure returns the number of tokens of a prompt and what its answer depends
// on. A token is four bytes of text, rounded up; ids count themselves.
func measure(text string, ids []int64) (int, uint64) {
	h := fnv.New64a()
	if ids != nil {
		for _, id := range ids {
			h.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
		}
		return max(len(ids), 1), h.Sum64()
	}
	h.Write([]byte(text))
	return max((len(text)+3)/4, 1), h.Sum64()
}

// chatPrompt checks the messages and joins their text.
func chatPrompt(in *wireRequest) (string, error) {
	if len(in.Messages) == 0 {
		return "", rejected("messages: at least one is required")
	}
	var b strings.Builder
	for i, m := range in.Messages {
		if m.Role == "" {
			return "", rejected("messages[%d]: role is required", i)
		}
		b.WriteString(m.Role)
		b.WriteByte(':')
		if err := appendContent(&b, m.Content); err != nil {
			return "", rejected("messages[%d]: content: want a string, a list of parts or null", i)
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// appendContent writes the text of a message's content.
func appendContent(b *strings.Builder, content jsontext.Value) error {
	switch content.Kind() {
	case '"':
		var text string
		if err := json.Unmarshal(content, &text); err != nil {
			return err
		}
		b.WriteString(text)
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(content, &parts, jsontext.AllowDuplicateNames(true)); err != nil {
			return err
		}
		for _, p := range parts {
			b.WriteString(p.Text)
		}
	case 'n', 0:
	default:
		return rejected("content")
	}
	return nil
}
