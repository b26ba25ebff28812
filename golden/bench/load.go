package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// work is what the load generator sends, and on how many connections at once.
type work struct {
	name   string
	stream bool
	// events and pause describe the streams.
	events int
	pause  time.Duration
	conns  int
}

// request is the bytes of one 4 KiB chat request.
func (w *work) request() []byte {
	tail := `"}],"max_tokens":64`
	if w.stream {
		tail += fmt.Sprintf(`,"stream":true,"user":"%d@%s"`, w.events, w.pause)
	}
	body := `{"model":"m","messages":[{"role":"user","content":"`
	body += strings.Repeat("lorem ipsum ", 4096/12)[:4096-len(body)-len(tail)-1] + tail + "}"
	return []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// result is what one target did in one round.
type result struct {
	latencies []time.Duration // request to last byte
	gaps      []time.Duration // event written by the engine to event read here
	failures  int
	elapsed   time.Duration
	cpu       time.Duration
}

func (r *result) rate() float64 { return float64(len(r.latencies)) / r.elapsed.Seconds() }

// quantile of durations, sorting them in place.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

// drive sends work to a target for a time, each connection one request after
// the other.
func drive(ctx context.Context, addr string, w work, d time.Duration) result {
	var mu sync.Mutex
	var all sync.WaitGroup
	var total result
	begin := time.Now()
	for range w.conns {
		all.Go(func() {
			one := client{addr: addr, work: w, request: w.request()}
			for ctx.Err() == nil && time.Since(begin) < d {
				if err := one.do(); err != nil {
					one.failures++
					one.close()
				}
			}
			one.close()
			mu.Lock()
			defer mu.Unlock()
			total.latencies = append(total.latencies, one.latencies...)
			total.gaps = append(total.gaps, one.gaps...)
			total.failures += one.failures
		})
	}
	all.Wait()
	total.elapsed = time.Since(begin)
	return total
}

// client is one connection of the load generator. It speaks just enough HTTP to
// cost little.
type client struct {
	addr    string
	work    work
	request []byte
	conn    net.Conn
	reader  *bufio.Reader
	result
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close() // whatever is left of it is of no interest
		c.conn = nil
	}
}

func (c *client) do() error {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			time.Sleep(time.Millisecond)
			return err
		}
		c.conn, c.reader = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	if err := c.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	begin := time.Now()
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	if err := c.response(); err != nil {
		return err
	}
	c.latencies = append(c.latencies, time.Since(begin))
	return nil
}

// response reads one response and checks that it is complete.
func (c *client) response() error {
	length, ended := -1, false
	for first := true; ; first = false {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first && !bytes.Contains(line, []byte(" 200")) {
			return fmt.Errorf("answer %s", line)
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("connection")) && bytes.Contains(value, []byte("close")):
			ended = true
		}
	}
	err := c.body(length)
	if ended {
		c.close()
	}
	return err
}

func (c *client) body(length int) error {
	if length >= 0 {
		if length != len(answer) {
			return fmt.Errorf("%d bytes, want %d", length, len(answer))
		}
		_, err := c.reader.Discard(length)
		return err
	}
	if err := c.events(bufio.NewReader(httputil.NewChunkedReader(c.reader))); err != nil {
		return err
	}
	_, err := c.reader.Discard(len("\r\n")) // after the last chunk
	return err
}

// events reads a stream to its end and notes how long each event was under way.
func (c *client) events(r *bufio.Reader) error {
	seen := 0
	for {
		line, err := r.ReadSlice('\n')
		if err == io.EOF {
			if seen != c.work.events {
				return fmt.Errorf("%d events, want %d", seen, c.work.events)
			}
			return nil
		}
		if err != nil {
			return err
		}
		_, after, ok := bytes.Cut(line, []byte(`"at":`))
		if !ok {
			continue
		}
		sent, err := strconv.ParseInt(string(bytes.TrimLeft(after[:20], "0")), 10, 64)
		if err != nil {
			return err
		}
		seen++
		c.gaps = append(c.gaps, time.Duration(time.Now().UnixNano()-sent))
	}
}
