package forward

import (
	"fmt"
	"strings"
	"testing"
)

func TestScanner(t *testing.T) {
	f := func(stream, want string) {
		t.Helper()
		// However the bytes are split, the verdict is the same.
		for size := 1; size <= len(stream); size++ {
			var s scanner
			for rest := stream; rest != ""; {
				n := min(size, len(rest))
				s.feed([]byte(rest[:n]))
				rest = rest[n:]
			}
			if got := fmt.Sprintf("token=%t failed=%t", s.token, s.failed); got != want {
				t.Errorf("%q in chunks of %d: got %s, want %s", stream, size, got, want)
				return
			}
		}
	}
	const nothing, token, failed, both = "token=false failed=false", "token=true failed=false", "token=false failed=true", "token=true failed=true"
	f(": ping\n\n", nothing)
	f("event: error\n", nothing)
	f("data", nothing)
	f("data: {", nothing)
	f("data: {\"id\":1}\n\n", token)
	f("data:{\"id\":1}\n\n", token)
	f("data: [DONE]\n\n", token)
	f("data: {\"error\":{}}\n\n", failed)
	f("data:{\"error\":{}}\n\n", failed)
	f("data:   {   \"error\": {}}\n\n", failed)
	f("event: x\ndata: {\"error\":{}}\r\n\r\n", failed)
	f("data: {\"errors\":1}\n\n", token)
	f("data: {\"erro\":1}\n\n", token)
	f("data: {\"id\":\"data: {\\\"error\\\":1}\"}\n\n", token)
	f("data: {\"id\":1,\"error\":1}\n\n", token)
	f(" data: {\"error\":1}\n", nothing)
	f("xdata: {\"error\":1}\n", nothing)
	f("data: {\"error\":1}\n\ndata: {\"id\":1}\n\n", both)
	f("data: {\"id\":1}\n\ndata: {\"error\":1}\n\n", both)
	f("data:"+strings.Repeat(" ", 40)+"{\"error\":1}\n\n", token)
}

func FuzzScanner(f *testing.F) {
	f.Add("data: {\"error\":1}\n\n", 3)
	f.Add(": x\ndata:  {  \"err", 1)
	f.Fuzz(func(t *testing.T, stream string, at int) {
		if at < 0 || at > len(stream) {
			return
		}
		var whole, split scanner
		whole.feed([]byte(stream))
		split.feed([]byte(stream[:at]))
		split.feed([]byte(stream[at:]))
		if whole != split {
			t.Errorf("%q split at %d: %+v, whole %+v", stream, at, split, whole)
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	chunk := []byte(`data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word"}}]}` + "\n\n")
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	var s scanner
	for b.Loop() {
		s.feed(chunk)
	}
}
