package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/server"
)

// scripted is an engine below HTTP: it reads a request, says something and hangs
// up, unless it is to stay on the line.
func scripted(t *testing.T, say string, stay bool) (url string, end func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				io.Copy(io.Discard, req.Body)
			}
			io.WriteString(conn, say)
			if stay && err == nil && req.URL.Path != "/abort_request" {
				conn.Read(make([]byte, 1)) // until the router gives up
			}
			conn.Close()
		}
	}()
	return "http://" + ln.Addr().String(), func() { ln.Close(); <-ended }
}

// TestOddAnswers is what engines say that no engine should say.
func TestOddAnswers(t *testing.T) {
	f := func(say, buffered, stream string) {
		t.Helper()
		for body, want := range map[string]string{bufferedChat: buffered, streamedChat: stream} {
			url, end := scripted(t, say, strings.HasSuffix(say, "..."))
			r := newRig(t)
			r.replan(func(g *server.Generation) {
				g.Settings.Timeouts.Request, g.Settings.Timeouts.StreamIdle = 200*time.Millisecond, 200*time.Millisecond
			})
			if err := r.fleet.Apply("m", fleet.BreakerConfig{Threshold: 1, CoolDown: time.Hour},
				[]fleet.Spec{{ID: "S", URL: url, Role: fleet.Plain}}); err != nil {
				t.Fatal(err)
			}
			a, err := r.post(context.Background(), body)
			if err != nil || a.String() != want || r.leaks(a) {
				t.Errorf("%.60q stream=%t: got %s, %v, want %s\n%v %.200s", say, body == streamedChat, a, err, want, a.header, a.body)
			}
			if got := r.metric("shunt_panics_total"); got != "0" {
				t.Errorf("%.60q: %s panics", say, got)
			}
			r.settle()
			r.close()
			end()
		}
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	f("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+ok+"Content-Length: 2\r\n\r\n{}", "200 ok", "200 ok")
	f(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 10_000), "502 upstream_unreachable", "502 upstream_unreachable")
	f("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n...", "502 upstream_unreachable", "502 upstream_unreachable")
	f("HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n", "502 upstream_unreachable", "502 upstream_unreachable")
	f("HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n", "502 upstream_unreachable", "502 upstream_unreachable")
	f("HTTP/1.1 999 High\r\nContent-Length: 0\r\n\r\n", "999 verbatim", "999 verbatim")
	f("HTTP/1.1 204 No Content\r\n\r\n", "204 verbatim", "204 verbatim")
	f("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", "304 verbatim", "304 verbatim")
	f("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "302 verbatim", "302 verbatim")
	f(ok+"X: "+strings.Repeat("x", 1<<20)+"\r\n\r\n{}", "502 upstream_unreachable", "502 upstream_unreachable")
	f(ok+"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "502 upstream_unreachable", "502 upstream_unreachable")
	f(ok+"Content-Le", "502 upstream_unreachable", "502 upstream_unreachable")
	f(ok+"Content-Length: 9\r\n\r\n{}", "502 upstream_body_incomplete", "200 cut")
	f(ok+"\r\n{}", "200 ok", "200 ok") // ends with the connection
	f(ok+"Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\n{}\r\n0\r\nX-T: 1\r\n\r\n", "200 ok", "200 ok")
	f(ok+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "502 upstream_body_incomplete", "200 cut")
	f(ok+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "502 upstream_body_incomplete", "200 cut")
	f(ok+"Content-Type: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", "200 ok", "200 ok")
	f("HTTP/1.1 500 No\r\nContent-Type: text/\x01html\r\nContent-Length: 2\r\n\r\n{}", "502 upstream_unreachable", "502 upstream_unreachable")
	f(ok+"Transfer-Encoding: chunked\r\n\r\n...", "504 upstream_timeout", "200 cut")
}

// TestEarlyAnswer: an engine may refuse before it has read the body.
func TestEarlyAnswer(t *testing.T) {
	r, end := handmade(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		io.WriteString(w, "too large")
	})
	defer end()
	large := fmt.Sprintf(`{"model":"m","messages":%q}`, strings.Repeat("x", 3<<20))
	if a := r.chat(large); a.String() != "413 verbatim" || a.body != "too large" {
		t.Errorf("%s %s", a, a.body)
	}
}
