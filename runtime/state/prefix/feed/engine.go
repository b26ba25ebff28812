package feed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"shunt/runtime/fleet"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/zmtp"
)

// following is one engine being followed, and its subscriptions.
type following struct {
	f      *Feed
	engine *fleet.Engine
	// ask has room for one request to ask the engine again.
	ask chan struct{}

	info engineinfo.Info
	// failed is when the engine began not to answer, zero while it does.
	failed time.Time
	ranks  []*rank
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// again requests that the engine is asked again, because it may have restarted.
func (x *following) again() {
	select {
	case x.ask <- struct{}{}:
	default:
	}
}

// serve is the task of one engine.
func (f *Feed) serve(ctx context.Context, e *fleet.Engine) {
	x := &following{f: f, engine: e, ask: make(chan struct{}, 1)}
	f.note(x, State{Text: Asking})
	defer f.forget(e)
	defer x.end()
	failures := 0
	for ctx.Err() == nil {
		state := x.update(ctx)
		if ctx.Err() != nil {
			return
		}
		f.note(x, state)
		pause := f.o.Recheck
		if x.failed.IsZero() {
			failures = 0
		} else {
			// It may be about to come back as another.
			pause = min(f.o.Recheck/30<<min(failures, 10), f.o.Recheck)
			failures++
		}
		x.wait(ctx, pause)
	}
}

// wait returns after the pause, or when the engine should be asked again.
func (x *following) wait(ctx context.Context, pause time.Duration) {
	if j := x.f.o.Jitter; j != nil {
		pause += time.Duration(j(int64(pause/4) + 1))
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-x.ask:
	}
}

// update asks the engine, and makes the subscriptions what it says.
func (x *following) update(ctx context.Context) State {
	info, err := x.f.o.Describe(ctx, x.engine)
	if err != nil {
		return x.unanswered(err)
	}
	x.failed = time.Time{}
	if x.stop != nil && info == x.info {
		if n, odd := x.misconfigured(); odd {
			return State{Text: Refused, Ranks: len(x.ranks), Detail: fmt.Sprintf(
				"publishes blocks of %d tokens; the configuration says %d", n, info.BlockSize)}
		}
		state := State{Text: Subscribed, Ranks: len(x.ranks)}
		if n := x.connected(); n < len(x.ranks) {
			state.Detail = fmt.Sprintf("%d of %d ranks are connected", n, len(x.ranks))
		}
		return state
	}
	x.end()
	if !info.Publishes {
		return State{Text: Silent}
	}
	bigram, unsure := prefix.Bigram(info.Speculative)
	h := prefix.Hashing{Scheme: x.f.o.Scheme, Seed: x.f.o.Seed, BlockSize: info.BlockSize, Bigram: bigram && x.f.o.Scheme == prefix.SGLang}
	if agreed, _ := x.f.o.Namespace.Propose(x.engine.URL(), h); !agreed {
		x.f.counts.refused.Inc()
		other, _ := x.f.o.Namespace.Hashing()
		return State{Text: Refused, Detail: fmt.Sprintf(
			"blocks of %d tokens (bigram %t); the other engines of the model have %d (bigram %t)",
			h.BlockSize, h.Bigram, other.BlockSize, other.Bigram)}
	}
	x.begin(ctx, info)
	state := State{Text: Subscribed, Ranks: len(x.ranks)}
	if unsure {
		state.Detail = fmt.Sprintf("speculative algorithm %q is not known; its blocks are taken as plain", info.Speculative)
	}
	return state
}

// unanswered judges an engine that does not say where its sockets are. What is
// subscribed stays, since the sockets have their own judgement; but an engine
// that is silent in every way holds no block, and no decision about them.
func (x *following) unanswered(err error) State {
	if x.failed.IsZero() {
		x.failed = time.Now()
	}
	if x.stop != nil && (x.connected() > 0 || time.Since(x.failed) < x.f.o.Recheck) {
		return State{Text: Subscribed, Detail: err.Error(), Ranks: len(x.ranks)}
	}
	x.end()
	return State{Text: Unknown, Detail: err.Error()}
}

// misconfigured tells the size of published blocks that is not the configured one,
// if there is one and the engine cannot be asked for it.
func (x *following) misconfigured() (size int64, odd bool) {
	if x.f.o.Scheme != prefix.VLLM {
		return 0, false
	}
	for _, r := range x.ranks {
		if n := r.odd.Load(); n != fits {
			return n, true
		}
	}
	return 0, false
}

// connected counts the ranks whose sockets are.
func (x *following) connected() int {
	n := 0
	for _, r := range x.ranks {
		if r.connected.Load() {
			n++
		}
	}
	return n
}

// begin subscribes to every rank whose port exists.
func (x *following) begin(ctx context.Context, info engineinfo.Info) {
	x.info = info
	sub, stop := context.WithCancel(ctx)
	x.stop = stop
	if x.f.o.Index == nil {
		return
	}
	for i := range info.Ranks {
		address := info.Address(info.Port, i)
		if address == "" {
			x.f.o.Log.Warn("a rank's event port is out of range", "engine", x.engine.ID(), "rank", i)
			continue
		}
		r := &rank{x: x, number: i, replayAddress: info.Address(info.ReplayPort, i), owner: x.f.o.Index.Attach(x.engine.URL(), i)}
		r.live.Store(true)
		r.odd.Store(fits)
		r.seen.last.Store(-1)
		r.seen.lag.Store(-1)
		x.ranks = append(x.ranks, r)
		s := &zmtp.Subscriber{
			Address: address, Topic: info.Topic, Options: x.f.o.ZMTP, Jitter: x.f.o.Jitter,
			Message: r.message, Up: r.up, Down: r.down,
		}
		x.wg.Go(func() { _ = s.Run(sub) })
	}
	x.f.subscribed(x.engine, x.ranks)
}

// end takes the engine out, in this order: events still queued are void, the
// subscriptions end, and only then its blocks go; so nothing is added behind.
func (x *following) end() {
	if x.stop == nil {
		return
	}
	owners := make([]*prefix.Owner, 0, len(x.ranks))
	for _, r := range x.ranks {
		r.live.Store(false)
		owners = append(owners, r.owner)
	}
	x.f.subscribed(x.engine, nil)
	x.stop()
	x.wg.Wait()
	if x.f.o.Index != nil {
		x.f.o.Index.Detach(owners...)
	}
	x.f.o.Namespace.Withdraw(x.engine.URL())
	x.stop, x.ranks = nil, nil
}
