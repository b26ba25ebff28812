package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// FaultKind says how an engine misbehaves.
type FaultKind string

// The kinds of faults. "Before the head" means before the engine did any work,
// so a prefill engine has not met its decode engine. "After the head" and
// mid-stream faults happen when generation has begun, so a prefill engine has
// handed its cache over.
const (
	// Refuse closes the listener and every idle connection: new connections
	// are refused. It lasts for Fault.For, or until ClearFaults.
	Refuse FaultKind = "refuse"
	// Status answers Fault.Status at once, by default 500.
	Status FaultKind = "status"
	// HangBeforeHead reads the request and never answers.
	HangBeforeHead FaultKind = "hang_before_head"
	// HangAfterHead sends the head and then nothing.
	HangAfterHead FaultKind = "hang_after_head"
	// HangMidStream stops after Fault.Tokens tokens, or in the middle of a
	// buffered body, and keeps the connection open.
	HangMidStream FaultKind = "hang_mid_stream"
	// CutBeforeHead resets the connection after the request was read.
	CutBeforeHead FaultKind = "cut_before_head"
	// CutAfterHead sends the head and closes the connection.
	CutAfterHead FaultKind = "cut_after_head"
	// CutMidStream closes the connection after Fault.Tokens tokens, or in the
	// middle of a buffered body.
	CutMidStream FaultKind = "cut_mid_stream"
	// ErrorEvent ends a stream with an error event after Fault.Tokens tokens.
	// A buffered request is answered with 500 instead.
	ErrorEvent FaultKind = "error_event"
	// Slow adds Fault.Delay before the head and before each token.
	Slow FaultKind = "slow"
	// Garbage answers 200 with a body that is neither JSON nor events.
	Garbage FaultKind = "garbage"
	// GarbageHead answers with bytes that are not HTTP.
	GarbageHead FaultKind = "garbage_head"
)

// faultKinds lists every kind, for messages and validation.
func faultKinds() []FaultKind {
	return []FaultKind{
		Refuse, Status, HangBeforeHead, HangAfterHead, HangMidStream, CutBeforeHead,
		CutAfterHead, CutMidStream, ErrorEvent, Slow, Garbage, GarbageHead,
	}
}

// Fault is one way to misbehave and the requests that it hits. Only Kind is
// required.
type Fault struct {
	Kind FaultKind
	// Path is the only endpoint that is hit. Empty means the endpoints that
	// generate: /v1/chat/completions, /v1/completions and /generate.
	Path string
	// After is how many matching requests pass unharmed first.
	After int
	// Times is how many requests are hit. Zero means all until ClearFaults.
	Times int
	// Status is the status of the Status kind, 400 to 599. Zero means 500.
	Status int
	// Body replaces the body of the Status kind. Empty means an error object
	// like the engine's own.
	Body string
	// Tokens is after how many tokens mid-stream faults strike, but before the
	// end of the answer in any case. Zero means 2.
	Tokens int
	// Delay is the pause of the Slow kind. Zero means 100 ms.
	Delay time.Duration
	// For is how long the Refuse kind lasts. Zero means until ClearFaults.
	For time.Duration
}

// complete fills the defaults of the fault's kind, or says what is wrong.
func (f Fault) complete() (Fault, error) {
	if !slices.Contains(faultKinds(), f.Kind) {
		return f, fmt.Errorf("enginetest: fault kind %q: want one of %q", f.Kind, faultKinds())
	}
	if f.After < 0 || f.Times < 0 || f.Tokens < 0 || f.Delay < 0 || f.For < 0 {
		return f, fmt.Errorf("enginetest: fault %s: negative number", f.Kind)
	}
	if f.Path != "" && !strings.HasPrefix(f.Path, "/") {
		return f, fmt.Errorf("enginetest: fault %s: path %q does not begin with /", f.Kind, f.Path)
	}
	unused := map[string]bool{
		"status": f.Status != 0 && f.Kind != Status,
		"body":   f.Body != "" && f.Kind != Status,
		"delay":  f.Delay != 0 && f.Kind != Slow,
		"for":    f.For != 0 && f.Kind != Refuse,
		"tokens": f.Tokens != 0 && !f.midStream(),
		"after":  f.After != 0 && f.Kind == Refuse,
		"times":  f.Times != 0 && f.Kind == Refuse,
		"path":   f.Path != "" && f.Kind == Refuse,
	}
	for name, wrong := range unused {
		if wrong {
			return f, fmt.Errorf("enginetest: fault %s does not use %q", f.Kind, name)
		}
	}
	setDefault(&f.Status, 500)
	setDefault(&f.Tokens, 2)
	setDefault(&f.Delay, 100*time.Millisecond)
	if f.Status < 400 || f.Status > 599 {
		return f, fmt.Errorf("enginetest: fault status %d: want 400 to 599", f.Status)
	}
	return f, nil
}

// midStream reports whether the fault strikes after a number of tokens.
func (f Fault) midStream() bool {
	return f.Kind == HangMidStream || f.Kind == CutMidStream || f.Kind == ErrorEvent
}

// faults holds the injected faults in the order of injection; the first that
// matches a request hits it.
type faults struct {
	mu   sync.Mutex
	list []Fault
}

func (s *faults) add(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, f)
}

func (s *faults) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

func (s *faults) snapshot() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// take returns the fault that hits a request for path, or the zero Fault. Every
// fault that the request matches before one hits counts it.
func (s *faults) take(path string, generates bool) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		f := &s.list[i]
		if f.Path != path && (f.Path != "" || !generates) {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		hit := *f
		if f.Times == 1 {
			s.list = slices.Delete(s.list, i, i+1)
		} else if f.Times > 1 {
			f.Times--
		}
		return hit
	}
	return Fault{}
}
