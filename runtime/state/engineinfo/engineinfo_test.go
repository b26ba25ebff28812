package engineinfo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shunt/runtime/state/engineinfo"
)

func TestParse(t *testing.T) {
	f := func(text, problem string, want engineinfo.Info) {
		t.Helper()
		got, err := engineinfo.Parse("http://[fd00::1]:30000", []byte(text))
		if problem == "" && (err != nil || got != want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if problem != "" && (!errors.Is(err, engineinfo.ErrRefused) || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
	base := engineinfo.Info{Publishes: true, Host: "fd00::1", Port: 5557, BlockSize: 64, Ranks: 2}
	f(`{}`, "", engineinfo.Info{})
	f(`{"kv_events":null,"speculative_algorithm":"EAGLE"}`, "", engineinfo.Info{Speculative: "EAGLE"})
	f(`{"kv_events":{"publisher":"null"}}`, "", engineinfo.Info{})
	f(`{"kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"block_size":64,"dp_size":2}}`, "", base)
	f(`{"kv_events":{"publisher":"zmq","endpoint_host":"[::]","endpoint_port_base":5557,"block_size":64,"dp_size":2}}`, "", base)
	other := base
	other.Host, other.Topic, other.LoadPort, other.LoadTopic, other.ReplayPort = "fd00::9", "kv", 5559, "load", 5561
	f(`{"kv_events":{"publisher":"zmq","endpoint_host":"[fd00::9]","endpoint_port_base":5557,"block_size":64,"dp_size":2,"topic":"kv",
		"load_endpoint_port_base":5559,"load_topic":"load","replay_endpoint_port_base":5561}}`, "", other)
	f(`{"kv_events":{"publisher":"nats"}}`, `publisher "nats"`, base)
	f(`{"kv_events":{"publisher":"zmq","endpoint_port_base":70000}}`, "port 70000", base)
	f(`{"kv_events":{"publisher":"zmq","endpoint_port_base":1,"block_size":0}}`, "block size 0", base)
	f(`{"kv_events":{"publisher":"zmq","endpoint_port_base":1,"block_size":1,"dp_size":100000}}`, "100000 data-parallel ranks", base)
	f(`{"kv_events":{"publisher":"zmq","endpoint_port_base":1,"replay_endpoint_port_base":-1}}`, "replay port -1", base)
	f(`{"kv_events":`, "final", base)
}

func TestAddress(t *testing.T) {
	i := engineinfo.Info{Host: "fd00::1"}
	for _, c := range []struct {
		base, rank int
		want       string
	}{{5557, 3, "[fd00::1]:5560"}, {0, 3, ""}, {65535, 0, "[fd00::1]:65535"}, {65535, 1, ""}} {
		if got := i.Address(c.base, c.rank); got != c.want {
			t.Errorf("%d+%d: %q, want %q", c.base, c.rank, got, c.want)
		}
	}
}

func TestFetchRetries(t *testing.T) {
	f := func(asked int32, problem string, answers ...int) {
		t.Helper()
		var n atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code := answers[min(int(n.Add(1)), len(answers))-1]
			if code == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"speculative_algorithm":"NEXTN"}`)
		}))
		defer s.Close()
		fetcher := engineinfo.Fetcher{Pause: time.Millisecond}
		info, err := fetcher.Fetch(t.Context(), s.URL)
		if problem == "" && (err != nil || info.Speculative != "NEXTN") || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%v: %+v, %v", answers, info, err)
		}
		if n.Load() != asked {
			t.Errorf("%v: asked %d times, want %d", answers, n.Load(), asked)
		}
	}
	f(1, "", 200)
	f(3, "", 503, 0, 200)
	f(3, "status 500", 500)
	f(1, "status 404", 404)
}

func TestFetchEndsWithContext(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	fetcher := engineinfo.Fetcher{Pause: time.Hour}
	if _, err := fetcher.Fetch(ctx, s.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"kv_events":{"publisher":"zmq","endpoint_host":"[","endpoint_port_base":1,"block_size":1,"dp_size":1}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := engineinfo.Parse("http://a:1", raw)
		if err == nil && i.Publishes && (i.Host == "" || i.BlockSize < 1 || i.Ranks < 1 || i.Address(i.Port, 0) == "") {
			t.Errorf("%+v", i)
		}
	})
}
