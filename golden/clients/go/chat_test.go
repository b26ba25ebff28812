package clients

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// router returns a client for the running router and the model it serves.
func router(t *testing.T) (openai.Client, string) {
	t.Helper()
	url, model := os.Getenv("SHUNT_URL"), os.Getenv("SHUNT_MODEL")
	if url == "" || model == "" {
		t.Skip("SHUNT_URL and SHUNT_MODEL are not set: no router to test")
	}
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0)), model
}

func chat(model, content string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:     model,
		Messages:  []openai.ChatCompletionMessageParamUnion{openai.UserMessage(content)},
		MaxTokens: openai.Int(10),
	}
}

func TestModels(t *testing.T) {
	client, model := router(t)
	page, err := client.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Data {
		if m.ID == model {
			return
		}
	}
	t.Errorf("no %s among %+v", model, page.Data)
}

func TestBufferedAndStreamedChatAgree(t *testing.T) {
	client, model := router(t)
	whole, err := client.Chat.Completions.New(t.Context(), chat(model, "Say something."))
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 1 {
		t.Fatalf("%+v", whole)
	}
	content := whole.Choices[0].Message.Content
	if n := len(strings.Fields(content)); n != 10 || whole.Choices[0].FinishReason != "length" || whole.Usage.CompletionTokens != 10 {
		t.Errorf("%d words: %+v", n, whole)
	}

	params := chat(model, "Say something.")
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	defer stream.Close()
	var acc openai.ChatCompletionAccumulator
	tokens := 0
	for stream.Next() {
		chunk := stream.Current()
		if !acc.AddChunk(chunk) {
			t.Fatalf("chunk does not continue the answer: %+v", chunk)
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" {
				tokens++
			}
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(acc.Choices) != 1 || acc.Choices[0].Message.Content != content || tokens != 10 ||
		acc.Choices[0].FinishReason != "length" || acc.Usage.CompletionTokens != 10 {
		t.Errorf("%d tokens streamed, want %q: %+v", tokens, content, acc.ChatCompletion)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	client, model := router(t)
	f := func(params openai.ChatCompletionNewParams, status int, code string) {
		t.Helper()
		_, err := client.Chat.Completions.New(t.Context(), params)
		stream := client.Chat.Completions.NewStreaming(t.Context(), params)
		defer stream.Close()
		for stream.Next() {
			t.Errorf("an answer instead of %s: %+v", code, stream.Current())
		}
		for _, err := range []error{err, stream.Err()} {
			var api *openai.Error
			if !errors.As(err, &api) || api.StatusCode != status || api.Code != code || api.Type != "invalid_request_error" {
				t.Errorf("error %v, want status %d and code %s", err, status, code)
			}
		}
	}
	f(chat("no-such-model", "hello"), 404, "model_not_found")
	f(chat(model, strings.Repeat("lorem ", 150_000)), 400, "bad_request")
}
