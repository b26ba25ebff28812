package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"shunt/runtime/forward"
	"shunt/runtime/prepare"
)

// firstRead bounds what is set aside for a body before any of it has come: its
// announced length is the client's word only.
const firstRead = 64 << 10

// readBody reads the whole body into a buffer with prepare.Slack to spare. The
// scope has bounded the time for it; after a failure that bound stays.
func (sc *scope) readBody(r *http.Request) ([]byte, *forward.Error) {
	limit := sc.gen.Settings.maxBody()
	rc := http.NewResponseController(sc.ResponseWriter)
	if r.ContentLength > limit {
		sc.drain(r, rc, 2*limit)
		return nil, tooLarge()
	}
	body, err := readAll(r.Body, r.ContentLength, limit)
	switch {
	case err == nil:
		// A deadline left behind would look like a client that went away.
		_ = rc.SetReadDeadline(time.Time{})
		return body, nil
	case errors.Is(err, errTooLarge):
		sc.drain(r, rc, limit)
		return nil, tooLarge()
	}
	sc.Header()["Connection"] = []string{"close"}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &forward.Error{Status: http.StatusRequestTimeout, Code: "request_timeout",
			Message: "request body did not arrive in time", Cause: err}
	}
	return nil, badRequest("request body could not be read", err)
}

func tooLarge() *forward.Error {
	return refuse(http.StatusRequestEntityTooLarge, "request_too_large", "request body exceeds the limit")
}

// drainTime bounds how long a refused body is read on.
const drainTime = 2 * time.Second

// drain reads on, up to twice the limit in all, so that a client which sends first
// and reads later sees the refusal and not a broken connection. One that asks
// before it sends is simply told.
func (sc *scope) drain(r *http.Request, rc *http.ResponseController, most int64) {
	sc.Header()["Connection"] = []string{"close"}
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		return
	}
	_ = rc.SetReadDeadline(time.Now().Add(drainTime))
	_, _ = io.CopyN(io.Discard, r.Body, most)
}

var errTooLarge = errors.New("body exceeds the limit")

// readAll reads up to limit bytes. The announced length is -1 if unknown.
func readAll(src io.Reader, announced, limit int64) ([]byte, error) {
	size := int64(firstRead)
	if announced >= 0 {
		size = min(size, announced)
	}
	b := make([]byte, 0, size+prepare.Slack)
	for {
		if len(b) == cap(b)-prepare.Slack {
			// One byte more than announced or allowed proves the excess.
			b = grow(b, announced, limit)
		}
		n, err := src.Read(b[len(b) : cap(b)-prepare.Slack])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// grow makes room: up to the announced length if eight times as much as has come
// reaches it, otherwise for eight times as much.
func grow(b []byte, announced, limit int64) []byte {
	size := 8 * int64(max(len(b), 512))
	if announced >= int64(len(b)) {
		size = min(size, announced+1)
	}
	size = min(size, limit+1)
	return append(make([]byte, 0, size+prepare.Slack), b...)
}
