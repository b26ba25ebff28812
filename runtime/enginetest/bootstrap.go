package enginetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// dialPause is how long a decode engine waits before it contacts an
// unreachable bootstrap server again.
const dialPause = 20 * time.Millisecond

// receive is the decode side of a request: it returns once the prefill engine
// that the request names has handed its cache over, or with the reason why that
// will not happen.
func (e *Engine) receive(ctx context.Context, j *job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := e.opts.BootstrapTimeout
	late := failed("no prefill engine came to bootstrap room %d within %s", j.room, limit)
	timer := time.AfterFunc(limit, func() { cancel(late) })
	defer timer.Stop()
	for {
		err := e.visit(ctx, j, timer)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if !errors.As(err, new(*net.OpError)) {
			return err
		}
		select { // unreachable: the prefill engine may still be starting
		case <-time.After(dialPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// visit goes to the room once. It stops the timer when both sides are present:
// from then on only the end of the connection limits the wait.
func (e *Engine) visit(ctx context.Context, j *job, timer *time.Timer) error {
	address := net.JoinHostPort(j.bootstrapHost, strconv.Itoa(j.bootstrapPort))
	url := fmt.Sprintf("http://%s/rooms/%d", address, j.room)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return rejected("bootstrap_host %q: not a host name", j.bootstrapHost)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(io.LimitReader(resp.Body, 4096))
	first, err := readLine(lines)
	switch {
	case resp.StatusCode == http.StatusConflict:
		return rejected("%s", first)
	case resp.StatusCode != http.StatusOK:
		return failed("bootstrap server of the prefill engine: %s", resp.Status)
	case err != nil || first != lineJoined || !timer.Stop():
		return failed("the prefill engine left the bootstrap room")
	}
	second, err := readLine(lines)
	if err != nil {
		return failed("the prefill engine was lost during the transfer")
	}
	if second != lineReady {
		return failed("prefill: %s", second)
	}
	return nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	return line[:len(line)-1], nil
}
