package enginetest

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
)

// Outcome says how a recorded request ended.
type Outcome string

// The outcomes of a request.
const (
	InProgress Outcome = "in_progress" // not ended yet
	Completed  Outcome = "completed"   // answered to the end
	Rejected   Outcome = "rejected"    // refused: malformed, too long, queue full
	Failed     Outcome = "failed"      // prefill and decode did not meet
	Cancelled  Outcome = "cancelled"   // the client closed the connection
	Aborted    Outcome = "aborted"     // ended by /abort_request
	Faulted    Outcome = "faulted"     // ended by an injected fault
)

// Request is what an engine received on one of its POST endpoints.
type Request struct {
	Seq     int // counts from 1 in order of arrival
	Method  string
	Path    string
	Header  http.Header
	Body    []byte
	RID     string // the request's own id, or the one the engine gave it
	Room    int64  // bootstrap room; meaningful when HasRoom
	HasRoom bool
	Outcome Outcome
	Status  int // status sent, 0 when the head was never sent
	Tokens  int // tokens generated so far
}

// recorder keeps the latest requests, at most limit of them.
type recorder struct {
	limit int

	mu       sync.Mutex
	seq      int
	requests []*Request
	aborted  []string
}

// add records a request and returns it; update it only through edit.
func (r *recorder) add(req *http.Request, body []byte) *Request {
	rec := &Request{
		Method: req.Method, Path: req.URL.Path, Header: req.Header.Clone(),
		Body: body, Outcome: InProgress,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	rec.Seq = r.seq
	if r.limit < 0 {
		return rec
	}
	if len(r.requests) == r.limit {
		r.requests = slices.Delete(r.requests, 0, 1)
	}
	r.requests = append(r.requests, rec)
	return rec
}

// edit changes a record under the lock that readers use.
func (r *recorder) edit(rec *Request, change func(*Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(rec)
}

// abort records the rid of an abort call.
func (r *recorder) abort(rid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit < 0 {
		return
	}
	if len(r.aborted) == r.limit {
		r.aborted = slices.Delete(r.aborted, 0, 1)
	}
	r.aborted = append(r.aborted, rid)
}

// snapshot returns deep copies, oldest first.
func (r *recorder) snapshot() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Request, len(r.requests))
	for i, rec := range r.requests {
		out[i] = *rec
		out[i].Header = rec.Header.Clone()
		out[i].Body = bytes.Clone(rec.Body)
	}
	return out
}

func (r *recorder) abortedRIDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.aborted)
}
