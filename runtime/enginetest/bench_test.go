package enginetest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"shunt/runtime/enginetest"
)

// BenchmarkChat measures what one request costs client and engine together, so
// that a benchmark of a router knows what is not the router's.
func BenchmarkChat(b *testing.B) {
	content := strings.Repeat("lorem ipsum ", 4096/12)
	f := func(name, members string) {
		b.Run(name, func(b *testing.B) {
			e, err := enginetest.Start(enginetest.Options{OutputTokens: 16, RecordLimit: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			tr := &http.Transport{MaxIdleConnsPerHost: 64}
			defer tr.CloseIdleConnections()
			client := &http.Client{Transport: tr}
			body := `{"model":"m","messages":[{"role":"user","content":"` + content + `"}]` + members + `}`
			b.SetParallelism(8)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					resp, err := client.Post(e.URL()+"/v1/chat/completions", "application/json", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
						b.Error(resp.Status, err)
					}
					resp.Body.Close()
				}
			})
		})
	}
	f("buffered", ``)
	f("stream", `,"stream":true`)
}
