package app

import (
	"net/http"
	"sync/atomic"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/tokens/ask"
	"shunt/schema/plan"
)

// askClient sends questions for tokens. Redirects are answers, so that no question
// goes to anybody but the engines of the plan.
func askClient(inflight int64) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConnsPerHost: int(min(inflight, 256)), IdleConnTimeout: 4 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ask makes the client that asks the engines of a model to tokenize.
func (s *services) ask(m *plan.Model) *tokenizer {
	e := m.Tokenizer.Engine
	client := askClient(e.MaxInflight)
	return &tokenizer{client: client, engines: ask.New(ask.Options{
		Next: turns(s.fleet, m.ID), Client: client, VLLM: m.RunsVLLM(), Timeout: ms(e.TimeoutMS),
		MaxInflight: int(e.MaxInflight), MaxBody: int(e.MaxBodyBytes), Reading: s.tokens,
	})}
}

// turns returns a function that names the engines of a model in turn: those that
// take requests, and decode engines only where there are no others.
func turns(f *fleet.Fleet, model string) func(not string) string {
	var next atomic.Uint64
	return func(not string) string {
		all := f.Engines(model)
		from := next.Add(1)
		last := ""
		for i := range uint64(len(all)) {
			e := all[(from+i)%uint64(len(all))]
			switch {
			case !e.Admits() || e.URL() == not:
			case e.Role() != fleet.Decode:
				return e.URL()
			case last == "":
				last = e.URL()
			}
		}
		return last
	}
}
