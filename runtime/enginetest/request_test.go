package enginetest

import "testing"

func FuzzParse(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"x"}],"max_tokens":3,"n":2}`)
	f.Add(`{"messages":[{"role":"user","content":[{"text":"x"}]}],"bootstrap_room":1,"bootstrap_host":"[::1]"}`)
	f.Add(`{"messages":[{"role":"user"}],"max_tokens":1,"max_tokens":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		in, j, err := parse([]byte(body), chat{})
		if err != nil {
			return
		}
		if err := j.fit(1000, 2000); err != nil {
			return
		}
		if j.maxTokens < 1 || j.promptTokens < 1 || j.promptTokens+j.maxTokens > 1000 {
			t.Errorf("%q: %+v", body, j)
		}
		if err := j.rendezvous(in, Decode); err == nil && (j.bootstrapHost == "" || j.room < 0) {
			t.Errorf("%q: %+v", body, j)
		}
	})
}
