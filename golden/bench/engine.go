package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// The bodies that the engine answers with. A request says in its user field
// which it wants: buffered, or a stream of so many events at such a distance.
const (
	answer = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		`The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. ` +
		`The quick brown fox jumps over the lazy dog."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":40,"total_tokens":1040}}`
	event = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","at":%020d,"choices":[{"index":0,"delta":{"content":"fox "}}]}` + "\n\n"
	done  = "data: [DONE]\n\n"
)

// serveEngine answers requests on an address as fast as a process can: one
// goroutine a connection, no HTTP library, canned answers. It runs until it is
// killed.
func serveEngine(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go serveConn(c)
	}
}

func serveConn(c net.Conn) {
	defer c.Close() // the peer has gone
	r, w := bufio.NewReaderSize(c, 64<<10), bufio.NewWriter(c)
	fixed := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
	for {
		body, err := readRequest(r)
		if err != nil {
			return
		}
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			w.WriteString(fixed)
		} else if err := stream(w, body); err != nil {
			return
		}
		if w.Flush() != nil {
			return
		}
	}
}

// readRequest reads a request with a Content-Length and returns its body.
func readRequest(r *bufio.Reader) ([]byte, error) {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" && !first {
			break
		}
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "content-length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, err
			}
		}
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	return body, err
}

// stream sends the events that the body asks for as user "COUNT@DURATION", each
// in a chunk of its own with the time at which it left.
func stream(w *bufio.Writer, body []byte) error {
	_, rest, _ := bytes.Cut(body, []byte(`"user":"`))
	wish, _, _ := bytes.Cut(rest, []byte(`"`))
	number, distance, _ := strings.Cut(string(wish), "@")
	count, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(distance)
	if err != nil {
		return err
	}
	w.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for range count {
		if pause > 0 {
			time.Sleep(pause)
		}
		text := fmt.Sprintf(event, time.Now().UnixNano())
		fmt.Fprintf(w, "%x\r\n%s\r\n", len(text), text)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%x\r\n%s\r\n0\r\n\r\n", len(done), done)
	return err
}
