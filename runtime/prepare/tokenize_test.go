package prepare_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"shunt/runtime/prepare"
	"shunt/runtime/tokens/tokenstest"
)

func TestTokenize(t *testing.T) {
	model := tokenstest.Contents(t)
	f := func(limit *prepare.TokenLimit, forward bool, body, trust, forwarding string, length int64, sent bool) {
		t.Helper()
		var r prepare.Request
		if err := r.Parse([]byte(body)); err != nil {
			t.Fatal(err)
		}
		tok := prepare.Tokenizer{Model: model, Limit: limit, Forward: forward}
		got, err := tok.Tokenize(t.Context(), &r)
		if err != nil || got.Trust != trust || got.Forwarding != forwarding || got.Length != length || got.Forward != sent {
			t.Errorf("%s: got %+v, %v", body, got, err)
		}
		if got.Estimated() != (trust == "estimate") {
			t.Errorf("%s: ids %v", body, got.IDs)
		}
	}
	roomy := prepare.NewTokenLimit(0, 0)
	const hello = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	f(roomy, true, hello, "exact", "forwarded", 5, true)
	f(roomy, false, hello, "exact", "disabled", 5, false)
	f(roomy, true, `{"model":"m","input_ids":[1,2,3]}`, "exact", "no_messages", 3, false)
	f(roomy, true, `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function"}]}`, "rendered", "tools", 5, false)
	f(roomy, true, `{"model":"m","messages":[],"messages":[]}`, "estimate", "tokenize_failed", 10, false)
	f(prepare.NewTokenLimit(1, 10), true, hello, "estimate", "tokenize_failed", int64(len(hello)/4), false)
}

// TestTokenizeWaits fills the one slot and gives the next request up.
func TestTokenizeWaits(t *testing.T) {
	var r prepare.Request
	if err := r.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a", 1000) + `"}]}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tok := prepare.Tokenizer{Model: tokenstest.Contents(t), Limit: prepare.NewTokenLimit(1, 0)}
	for range 5 { // a slot that a cancelled request kept would show
		if _, err := tok.Tokenize(ctx, &r); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	if got, err := tok.Tokenize(t.Context(), &r); err != nil || got.Length != 1000 {
		t.Errorf("got %+v, %v", got, err)
	}
}
