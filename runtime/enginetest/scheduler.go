package enginetest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is a consistent view of what an engine is doing and has done.
type State struct {
	Bootstrapping int // requests that wait for their counterpart
	Waiting       int // requests that wait for a free place
	Running       int // requests that compute or generate
	UsedTokens    int // tokens in the cache

	Received  int // requests that reached a generating endpoint
	Completed int
	Rejected  int
	Failed    int
	Cancelled int
	Aborted   int
	Faulted   int

	PromptTokens    int64         // computed so far
	CachedTokens    int64         // that needed no computing
	PrefillBusy     time.Duration // spent on them
	GeneratedTokens int64
}

// Idle reports whether no request is in progress, not even one that hangs by
// an injected fault.
func (s State) Idle() bool {
	return s.Received == s.Completed+s.Rejected+s.Failed+s.Cancelled+s.Aborted+s.Faulted
}

// scheduler decides which requests may run and keeps the engine's counters.
type scheduler struct {
	maxRunning, maxQueued, kvTokens int

	mu       sync.Mutex
	changed  sync.Cond       // on every change of state
	jobs     map[string]*job // by rid
	queue    []*job          // those that wait for a place, first come first served
	reserved int             // cache tokens that running jobs may come to need
	waitingP int             // prompt tokens of jobs that are not computed yet
	state    State

	// Tokens per second, measured over windows of at least a second.
	windowStart  time.Time
	windowTokens int64
	throughput   float64
}

func newScheduler(o Options) *scheduler {
	s := &scheduler{
		maxRunning: o.MaxRunning, maxQueued: max(o.MaxQueued, 0), kvTokens: o.KVTokens,
		jobs: map[string]*job{},
	}
	s.changed.L = &s.mu
	return s
}

// join takes the job in: it may then be aborted, and counts as waiting or, when
// handshake is set, as bootstrapping.
func (s *scheduler) join(j *job, handshake bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.need() > s.kvTokens {
		return rejected("the request needs %d cache tokens; the engine has %d", j.need(), s.kvTokens)
	}
	if s.jobs[j.rid] != nil {
		return rejected("duplicate request id %q", j.rid)
	}
	present := s.state.Bootstrapping + s.state.Waiting + s.state.Running
	if present >= s.maxRunning+s.maxQueued || s.state.Waiting >= s.maxQueued && !s.fits(j) {
		return &apiError{http.StatusServiceUnavailable, Rejected, "the request queue is full"}
	}
	s.jobs[j.rid] = j
	s.waitingP += j.uncached()
	if handshake {
		s.state.Bootstrapping++
	}
	s.changed.Broadcast()
	return nil
}

// fits reports whether the job could run now. Called with mu held.
func (s *scheduler) fits(j *job) bool {
	return s.state.Running < s.maxRunning && s.reserved+j.need() <= s.kvTokens
}

// acquire waits until the job has a place. It ends the job's handshake.
func (s *scheduler) acquire(ctx context.Context, j *job, handshake bool) error {
	s.mu.Lock()
	if handshake {
		s.state.Bootstrapping--
		j.handshaken = true
	}
	if len(s.queue) == 0 && s.fits(j) {
		s.start(j)
		s.mu.Unlock()
		return nil
	}
	j.placed = make(chan struct{})
	s.queue = append(s.queue, j)
	s.state.Waiting++
	s.changed.Broadcast()
	s.mu.Unlock()
	select {
	case <-j.placed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start gives the job its place. Called with mu held.
func (s *scheduler) start(j *job) {
	j.running = true
	s.state.Running++
	s.reserved += j.need()
	s.state.UsedTokens += j.promptTokens
	s.changed.Broadcast()
}

// leave takes the job out from whatever stage it is in and lets others start.
func (s *scheduler) leave(j *job, handshake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.rid)
	if !j.computed {
		s.waitingP -= j.uncached()
	}
	switch i := slices.Index(s.queue, j); {
	case j.running:
		s.state.Running--
		s.reserved -= j.need()
		s.state.UsedTokens -= j.promptTokens + j.generated
	case i >= 0:
		s.queue = slices.Delete(s.queue, i, i+1)
		s.state.Waiting--
	case handshake && !j.handshaken:
		s.state.Bootstrapping--
	}
	for len(s.queue) > 0 && s.fits(s.queue[0]) {
		next := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		s.state.Waiting--
		s.start(next)
		close(next.placed)
	}
	s.changed.Broadcast()
}

// recount notes anew how much of a waiting job's prompt is cached.
func (s *scheduler) recount(j *job, cached int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitingP -= j.uncached()
	j.cached = cached
	s.waitingP += j.uncached()
}

// computedPrompt books a finished prompt and the time it took.
func (s *scheduler) computedPrompt(j *job, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.computed = true
	s.waitingP -= j.uncached()
	s.state.PromptTokens += int64(j.uncached())
	s.state.CachedTokens += int64(j.promptTokens - j.uncached())
	s.state.PrefillBusy += took
}

// generatedToken books one token of a running job.
func (s *scheduler) generatedToken(j *job, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.generated++
	s.state.UsedTokens++
	s.state.GeneratedTokens++
	s.windowTokens++
	if elapsed := now.Sub(s.windowStart); elapsed >= time.Second {
		// After a silent period the window says nothing about the present.
		s.throughput = 0
		if elapsed < 2*time.Second {
			s.throughput = float64(s.windowTokens) / elapsed.Seconds()
		}
		s.windowStart, s.windowTokens = now, 0
	}
	s.changed.Broadcast()
}

// received counts a request on a generating endpoint.
func (s *scheduler) received() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Received++
	s.changed.Broadcast()
}

// ended counts how such a request ended.
func (s *scheduler) ended(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o {
	case Completed:
		s.state.Completed++
	case Rejected:
		s.state.Rejected++
	case Cancelled:
		s.state.Cancelled++
	case Aborted:
		s.state.Aborted++
	case Faulted:
		s.state.Faulted++
	case Failed, InProgress:
		s.state.Failed++
	}
	s.changed.Broadcast()
}

// abort ends the jobs whose rid begins with prefix, or all, and returns how
// many they were.
func (s *scheduler) abort(prefix string, all bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for rid, j := range s.jobs {
		if all || strings.HasPrefix(rid, prefix) {
			j.cancel(errAborted)
			n++
		}
	}
	return n
}

// wait returns the first state for which ok is true.
func (s *scheduler) wait(ctx context.Context, ok func(State) bool) (State, error) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !ok(s.state) {
		if ctx.Err() != nil {
			return s.state, context.Cause(ctx)
		}
		s.changed.Wait()
	}
	return s.state, nil
}

func (s *scheduler) snapshot() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}
