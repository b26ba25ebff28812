package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// errRoomTaken says that the same side of a room is already present.
var errRoomTaken = errors.New("bootstrap room is already in use")

// rooms are the meeting points of a prefill engine: one per request, where the
// prefill call and the decode engine's connection wait for each other.
type rooms struct {
	mu   sync.Mutex
	open map[int64]*room
}

// room is one meeting point. Either side may arrive first; the prefill side
// settles it exactly once.
type room struct {
	prefill, decode bool          // guarded by rooms.mu
	joined          chan struct{} // closed when both sides are present
	gone            chan struct{} // closed when decode left before the end
	settled         chan struct{} // closed when prefill ended; err tells how
	err             error         // read only after settled is closed
}

// enter joins the room as one of its sides and creates it when needed.
func (s *rooms) enter(id int64, prefill bool) (*room, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.open[id]
	if m == nil {
		m = &room{joined: make(chan struct{}), gone: make(chan struct{}), settled: make(chan struct{})}
		s.open[id] = m
	}
	side := &m.decode
	if prefill {
		side = &m.prefill
	}
	if *side {
		return nil, fmt.Errorf("%w: %d", errRoomTaken, id)
	}
	*side = true
	if m.prefill && m.decode {
		close(m.joined)
	}
	return m, nil
}

// settle is how the prefill side leaves: decode is told err, and the room's
// number is free again.
func (s *rooms) settle(id int64, m *room, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.err = err
	close(m.settled)
	delete(s.open, id)
}

// leave is how the decode side leaves, at whatever point.
func (s *rooms) leave(id int64, m *room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(m.gone)
	if !m.prefill {
		delete(s.open, id)
	}
}

// count returns how many rooms are open.
func (s *rooms) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// awaitDecode waits until the decode engine is present.
func (m *room) awaitDecode(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-m.joined:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return failed("no decode engine came to the bootstrap room within %s", limit)
	}
}

// The lines that the bootstrap server sends to a decode engine, in this order.
const (
	lineJoined = "joined" // both sides are present
	lineReady  = "ready"  // the prompt is computed and its cache handed over
)

// serveRoom is the bootstrap server's only endpoint, POST /rooms/{room}. Its
// answer is a line when both sides are present and another when the cache was
// handed over; an answer that ends before the second line is a failure. The
// connection itself is the decode engine's presence.
func (e *Engine) serveRoom(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("room"), 10, 64)
	if err != nil || id < 0 {
		http.Error(w, "room: want 0 to 2^63-1", http.StatusBadRequest)
		return
	}
	m, err := e.rooms.enter(id, false)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer e.rooms.leave(id, m)
	out := http.NewResponseController(w)
	select {
	case <-m.joined:
	case <-r.Context().Done():
		return
	case <-e.ctx.Done():
		return
	}
	fmt.Fprintln(w, lineJoined)
	if out.Flush() != nil {
		return
	}
	select {
	case <-m.settled:
	case <-r.Context().Done():
		return
	case <-e.ctx.Done():
		return
	}
	if m.err != nil {
		fmt.Fprintln(w, m.err)
		return
	}
	fmt.Fprintln(w, lineReady)
}
