// Package tasks runs one goroutine for each live engine, and ends it when the
// engine goes. A Group is safe for concurrent use.
package tasks

import (
	"context"
	"slices"
	"sync"

	"shunt/runtime/fleet"
)

// Group is the tasks of a changing set of engines.
type Group struct {
	// Task serves one engine until ctx ends, and cleans up after itself before it
	// returns. Required.
	Task func(ctx context.Context, e *fleet.Engine)

	mu      sync.Mutex
	wanted  []*fleet.Engine
	changed chan struct{}
}

// Set makes engines the live ones. It does not wait; engines that stay keep
// their task.
func (g *Group) Set(engines []*fleet.Engine) {
	g.mu.Lock()
	g.wanted = slices.Clone(engines)
	g.mu.Unlock()
	select {
	case g.signal() <- struct{}{}:
	default:
	}
}

func (g *Group) signal() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{}, 1)
	}
	return g.changed
}

// running is one task.
type running struct {
	stop context.CancelFunc
	done chan struct{}
}

// Run serves the engines until ctx ends, and returns when every task has ended.
func (g *Group) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	live := make(map[*fleet.Engine]running)
	for {
		g.mu.Lock()
		wanted := make(map[*fleet.Engine]bool, len(g.wanted))
		for _, e := range g.wanted {
			wanted[e] = true
		}
		g.mu.Unlock()
		for e, r := range live {
			if !wanted[e] {
				r.stop()
			}
		}
		for e, r := range live {
			if !wanted[e] {
				<-r.done
				delete(live, e)
			}
		}
		for e := range wanted {
			if _, ok := live[e]; ok {
				continue
			}
			sub, stop := context.WithCancel(ctx)
			r := running{stop: stop, done: make(chan struct{})}
			live[e] = r
			wg.Go(func() {
				defer stop()
				defer close(r.done)
				g.Task(sub, e)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-g.signal():
		}
	}
}
