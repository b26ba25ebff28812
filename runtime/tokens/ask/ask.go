package ask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"shunt/runtime/tokens"
)

// Options say whom to ask, and the bounds of it.
type Options struct {
	// Next returns the base URL of an engine to ask, if it can another one than
	// the one given; empty if there is none. Required.
	Next func(not string) string
	// Client sends the questions; nil is http.DefaultClient. It must not follow
	// redirects.
	Client *http.Client
	// VLLM says that the engines are vLLM and not SGLang.
	VLLM bool
	// Timeout bounds the wait for the ids of one request; 0 is 500 ms.
	Timeout time.Duration
	// MaxInflight bounds the questions at a time; others wait for their turn within
	// the timeout. 0 is 32.
	MaxInflight int
	// MaxBody is the largest body that is read and asked about, in bytes; 0 is 1 MiB.
	MaxBody int
	// Reading bounds the bodies being read, each of which takes many times its size;
	// nil is no bound.
	Reading Limiter
}

// Limiter admits work on bodies of a size in bytes.
type Limiter interface {
	// Enter waits for its turn until the context ends. Leave follows unless it fails.
	Enter(ctx context.Context, size int64) error
	Leave(size int64)
}

// Client asks the engines of one model.
type Client struct {
	o     Options
	slots chan struct{}
}

// New makes a client.
func New(o Options) *Client {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	if o.Timeout <= 0 {
		o.Timeout = 500 * time.Millisecond
	}
	if o.MaxInflight <= 0 {
		o.MaxInflight = 32
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 1 << 20
	}
	return &Client{o: o, slots: make(chan struct{}, o.MaxInflight)}
}

// Reasons why there are no ids, for metrics and traces.
const (
	NoEngine    = "no_engine"   // none takes requests now
	Overloaded  = "overloaded"  // no turn within the timeout
	Timeout     = "timeout"     // no answer within the timeout
	Unreachable = "unreachable" // no connection, or it broke, or a server error
	Refused     = "refused"     // the engine does not take the question
	Malformed   = "malformed"   // the answer is none, or contradicts itself
	TooLarge    = "too_large"   // the body is above the bound
	Unsupported = "unsupported" // /tokenize would pass over part of the request
)

// Error is why there are no ids.
type Error struct {
	Reason string
	Err    error
}

func (e *Error) Error() string {
	return "asking engines to tokenize: " + e.Reason + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Encode is like that of tokens.Model: it appends the ids of the prompt that a
// chat request makes to dst, and without ids the source is an estimate that says
// why, by an *Error. The question carries the client's authorization, if any.
func (c *Client) Encode(ctx context.Context, dst []uint32, body []byte, authorization string) ([]uint32, tokens.Source, error) {
	short, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	from, forwarding := len(dst), tokens.TokenizeFailed
	q, err := c.read(short, body)
	if err == nil {
		if forwarding = q.forwarding; q.given != nil {
			return append(dst, q.given...), tokens.Source{Trust: tokens.Exact, Tokens: int64(len(q.given)), Forwarding: forwarding}, nil
		}
		if err = q.err; err == nil {
			dst, err = c.ids(short, dst, q.text, authorization)
		}
	}
	switch {
	case ctx.Err() != nil:
		return dst[:from], tokens.Source{}, ctx.Err()
	case errors.Is(err, tokens.ErrBody):
		return dst[:from], tokens.Source{}, err
	case err != nil:
		if forwarding == tokens.Forwarded {
			forwarding = tokens.TokenizeFailed
		}
		return dst[:from], tokens.Estimate(len(body), forwarding, err), nil
	}
	source := tokens.Source{Trust: tokens.Rendered, Tokens: int64(len(dst) - from), Forwarding: forwarding}
	if forwarding == tokens.Forwarded {
		source.Trust = tokens.Exact
	}
	return dst, source, nil
}

// question is what a body asks.
type question struct {
	forwarding tokens.Forwarding
	given      []uint32 // the client's own ids, which nobody is asked about
	text       []byte
	err        error // why there is no text
}

// read makes the question of a body. One that is too large is not looked at.
func (c *Client) read(ctx context.Context, body []byte) (question, error) {
	if len(body) > c.o.MaxBody {
		return question{}, &Error{TooLarge, fmt.Errorf("a body of %d bytes, at most %d are asked about", len(body), c.o.MaxBody)}
	}
	if l := c.o.Reading; l != nil {
		size := int64(len(body))
		if err := l.Enter(ctx, size); err != nil {
			return question{}, &Error{Overloaded, err}
		}
		defer l.Leave(size)
	}
	chat, err := tokens.ReadChat(string(body))
	if err != nil {
		return question{}, err
	}
	if c.o.VLLM {
		chat.DropInputIDs()
	}
	q := question{forwarding: chat.Forwarding(true)}
	if ids, ok := chat.InputIDs(); ok {
		q.given = ids
		return q, nil
	}
	q.text, q.err = ask(body, c.o.VLLM)
	return q, nil
}

// attempts is how many engines are asked about one request.
const attempts = 2

// ids asks one engine, and another one if it could not be reached, until the
// context ends.
func (c *Client) ids(ctx context.Context, dst []uint32, question []byte, authorization string) ([]uint32, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return dst, &Error{Overloaded, fmt.Errorf("%d questions are being asked", c.o.MaxInflight)}
	}
	last := error(&Error{NoEngine, errors.New("no engine takes requests")})
	asked := ""
	for range attempts {
		engine := c.o.Next(asked)
		if engine == "" || engine == asked {
			break
		}
		asked = engine
		out, err := c.one(ctx, dst, engine, question, authorization)
		if err == nil {
			return out, nil
		}
		last = err
		if e, ok := errors.AsType[*Error](err); !ok || e.Reason != Unreachable {
			break
		}
	}
	return dst, last
}

// one asks one engine.
func (c *Client) one(ctx context.Context, dst []uint32, engine string, question []byte, authorization string) ([]uint32, error) {
	fail := func(reason string, err error) ([]uint32, error) {
		if ctx.Err() != nil {
			reason = Timeout
		}
		return dst, &Error{reason, fmt.Errorf("%s: %w", engine, err)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, engine+"/tokenize", bytes.NewReader(question))
	if err != nil {
		return fail(Unreachable, err)
	}
	req.Header.Set("Content-Type", "application/json")
	// A question may be asked twice. Saying so, which sends nothing, makes the
	// client ask again when it met a connection that was just closed.
	req.Header["Idempotency-Key"] = nil
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := c.o.Client.Do(req)
	if err != nil {
		return fail(Unreachable, err)
	}
	defer res.Body.Close()
	limit := answerLimit(len(question))
	raw, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	switch {
	case err != nil:
		return fail(Unreachable, err)
	case res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests:
		return fail(Unreachable, fmt.Errorf("status %d", res.StatusCode))
	case res.StatusCode != http.StatusOK:
		return fail(Refused, fmt.Errorf("status %d", res.StatusCode))
	case int64(len(raw)) > limit:
		return fail(Malformed, fmt.Errorf("an answer of more than %d bytes", limit))
	}
	out, err := readAnswer(dst, raw)
	if err != nil {
		return fail(Malformed, err)
	}
	return out, nil
}

// answerLimit bounds an answer: no prompt has many more tokens than bytes.
func answerLimit(question int) int64 { return int64(question)*12 + 256<<10 }
