package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// model is the model of the example.
const model = "qwen3-32b"

// bytesPerToken is the router's estimate of a request's length: its body size
// divided by this.
const bytesPerToken = 4

// scenario is one request and what must become of it.
type scenario struct {
	title  string
	words  int // of the prompt
	output int // tokens asked for
	// What is expected: a status; for 200 the bucket and the engines that may
	// serve, otherwise the error code.
	status          int
	bucket          string
	prefill, decode []string
	code            string
}

func scenarios() []scenario {
	return []scenario{
		{
			title: "A short chat", words: 12, output: 64, status: http.StatusOK,
			bucket: "short-context", prefill: []string{"P1", "P2"}, decode: []string{"D1", "D2"},
		},
		{
			title: "A long chat", words: 9000, output: 64, status: http.StatusOK,
			bucket: "long-context", prefill: []string{"P3", "P4"}, decode: []string{"D3", "D4"},
		},
		{
			title: "A chat that fits no bucket", words: 150_000, output: 64,
			status: http.StatusBadRequest, code: "bad_request",
		},
	}
}

// requests sends the scenarios one after the other.
func (s *stack) requests(ctx context.Context) error {
	for i, sc := range scenarios() {
		if err := s.scenario(ctx, i+1, sc); err != nil {
			return cause(ctx, fmt.Errorf("%s: %w", strings.ToLower(sc.title), err))
		}
	}
	return nil
}

// scenario shows what the plan says about a request, sends it and compares.
func (s *stack) scenario(ctx context.Context, n int, sc scenario) error {
	body, err := chatBody(sc)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n== %s: %d bytes, about %d tokens, and %d for the answer\n",
		sc.title, len(body), len(body)/bytesPerToken, sc.output)
	if err := s.explain(ctx, n, body, sc.status == http.StatusOK); err != nil {
		return err
	}
	before, err := s.received(ctx)
	if err != nil {
		return err
	}
	resp, err := s.send(ctx, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != sc.status {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("status %d %s, want %d", resp.StatusCode, text, sc.status)
	}
	if sc.status != http.StatusOK {
		err = s.refused(resp, sc)
	} else {
		err = s.streamed(resp, sc)
	}
	if err != nil {
		return err
	}
	after, err := s.received(ctx)
	if err != nil {
		return err
	}
	return s.served(before, after, sc)
}

// chatBody makes a chat of the scenario's size.
func chatBody(sc scenario) ([]byte, error) {
	return json.Marshal(map[string]any{
		"model": model, "stream": true, "max_tokens": sc.output,
		"stream_options": map[string]any{"include_usage": true},
		"messages": []any{map[string]any{
			"role": "user", "content": strings.TrimSpace(strings.Repeat("lorem ", sc.words)),
		}},
	})
}

// explain asks the offline tool what the plan does with the same body. The tool
// exits with 1 when no bucket takes the request.
func (s *stack) explain(ctx context.Context, n int, body []byte, fits bool) error {
	path := filepath.Join(s.dir, fmt.Sprintf("chat-%d.json", n))
	if err := os.WriteFile(path, body, 0o600); err != nil {
		return err
	}
	err := s.tool(ctx, s.path("shunt"), "explain", "--plan", s.plan, "--body", path)
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case fits:
		return err
	case !failed || exit.ExitCode() != 1:
		return fmt.Errorf("shunt explain ended with %v, want exit status 1", err)
	}
	return nil
}

func (s *stack) send(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	fmt.Fprintf(s.out, "   POST /v1/chat/completions\n")
	return http.DefaultClient.Do(req)
}

// refused reads and checks an error.
func (s *stack) refused(resp *http.Response, sc scenario) error {
	var answer struct {
		Error struct{ Type, Code, Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("error body: %w", err)
	}
	fmt.Fprintf(s.out, "   %s, code %s: %s\n", resp.Status, answer.Error.Code, answer.Error.Message)
	if answer.Error.Code != sc.code {
		return fmt.Errorf("code %q, want %q", answer.Error.Code, sc.code)
	}
	return nil
}

// streamed prints a stream as it arrives and checks that it is complete.
func (s *stack) streamed(resp *http.Response, sc scenario) error {
	decision := resp.Header.Get("X-Shunt-Decision")
	fmt.Fprintf(s.out, "   %s, x-shunt-decision: %s\n   ", resp.Status, decision)
	if !strings.Contains(decision, sc.bucket) {
		return fmt.Errorf("the decision does not name bucket %s", sc.bucket)
	}
	began := time.Now()
	var first time.Duration
	chunks, finish, done := 0, "", false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("event %q: %w", data, err)
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" {
				if chunks++; chunks == 1 {
					first = time.Since(began)
				}
				fmt.Fprint(s.out, c.Delta.Content)
			}
			finish += c.FinishReason
		}
	}
	fmt.Fprintln(s.out)
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the stream broke: %w", err)
	}
	fmt.Fprintf(s.out, "   %d tokens, finish_reason %s; %d ms from the first to the last\n",
		chunks, finish, (time.Since(began) - first).Milliseconds())
	if !done || chunks == 0 || finish != "stop" {
		return fmt.Errorf("incomplete stream: %d tokens, finish_reason %q, [DONE] %t", chunks, finish, done)
	}
	return nil
}

// received asks every engine how many requests reached it.
func (s *stack) received(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for _, e := range s.started {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+"/_sim/state", http.NoBody)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		var state struct{ Received int }
		err = json.NewDecoder(resp.Body).Decode(&state)
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("engine %s: %w", e.ID, err)
		}
		counts[e.ID] = state.Received
	}
	return counts, nil
}

// served checks by the engines' own counts who had the request.
func (s *stack) served(before, after map[string]int, sc scenario) error {
	var prefill, decode []string
	for _, e := range s.started {
		for range after[e.ID] - before[e.ID] {
			if e.Role == "prefill" {
				prefill = append(prefill, e.ID)
			} else {
				decode = append(decode, e.ID)
			}
		}
	}
	if sc.status != http.StatusOK {
		if len(prefill)+len(decode) > 0 {
			return fmt.Errorf("engines %v had a request that fits no bucket", append(prefill, decode...))
		}
		fmt.Fprintln(s.out, "   no engine saw it")
		return nil
	}
	if len(prefill) != 1 || len(decode) != 1 || !slices.Contains(sc.prefill, prefill[0]) || !slices.Contains(sc.decode, decode[0]) {
		return fmt.Errorf("served by %v and %v, want one of %v and one of %v", prefill, decode, sc.prefill, sc.decode)
	}
	fmt.Fprintf(s.out, "   engines %s and %s report one request each, as expected: %s with %s\n", prefill[0], decode[0],
		strings.Join(sc.prefill, "|"), strings.Join(sc.decode, "|"))
	return nil
}
