package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync/atomic"
	"time"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/wire"
	"shunt/runtime/state/zmtp"
)

// endMarker is the sequence number that ends a replay, and that a live publisher
// never reaches.
const endMarker = -1

// fits says that no block of another size than the engine's was published.
const fits = -1

// rank is one subscription. Its fields belong to the subscription's goroutine,
// except live and owner, which the applier reads.
type rank struct {
	x             *following
	number        int
	replayAddress string // empty if the engine offers no replay
	owner         *prefix.Owner
	live          atomic.Bool
	seen          seen

	// known says that last is the sequence number of the last batch, and print the
	// fingerprint of its payload, which has the publisher's clock in it: the same
	// number with another payload is another life of the publisher.
	known bool
	last  int64
	print uint64
	// sent is the last number seen live on this connection, -1 for none. Numbers
	// above it and not above last came by replay already.
	sent int64
	seed maphash.Seed
	ups  int
	// odd is the block size that did not fit and was asked about, fits for none. Only
	// the subscription changes it.
	odd atomic.Int64
	// lost is when the connection was lost, zero before the first one and while
	// there is one; connected says so to others.
	lost      time.Time
	connected atomic.Bool
	warned    time.Time // of a batch that was not understood
}

// seen is what admin views read of a rank.
type seen struct {
	last, gaps, lost, resets, lag atomic.Int64 // lag in nanoseconds
}

func (r *rank) state() RankState {
	blocks, _ := r.owner.Held()
	return RankState{
		Rank: r.number, Connected: r.connected.Load(), Last: r.seen.last.Load(), Gaps: r.seen.gaps.Load(),
		Lost: r.seen.lost.Load(), Resets: r.seen.resets.Load(), Blocks: blocks, Lag: time.Duration(r.seen.lag.Load()),
	}
}

// up runs on each new connection. The publisher may have said much meanwhile, or
// be another process: what was said is replayed, or nothing is believed.
func (r *rank) up(ctx context.Context) error {
	if r.ups == 0 {
		r.seed = maphash.MakeSeed()
	} else {
		r.x.f.counts.reconnects.Inc()
		r.x.again()
	}
	r.ups++
	r.sent = -1
	r.lost = time.Time{}
	r.odd.Store(fits)
	r.connected.Store(true)
	if r.replayAddress == "" {
		if r.known {
			return r.reset(ctx)
		}
		return nil
	}
	if !r.known {
		return r.warm(ctx, -1)
	}
	return r.repair(ctx, -1)
}

// down runs after each lost connection and each failed attempt. A publisher that
// stays away may have removed everything meanwhile, so what it said is believed
// for as long as the pause between two questions, and then no more.
func (r *rank) down(ctx context.Context, err error) error {
	r.x.f.counts.failures.Inc()
	r.x.f.o.Log.Debug("event subscription interrupted", "engine", r.x.engine.ID(), "rank", r.number, "error", err)
	r.connected.Store(false)
	if r.lost.IsZero() {
		r.lost = time.Now()
	}
	if r.known && time.Since(r.lost) >= r.x.f.o.Recheck {
		return r.reset(ctx)
	}
	return nil
}

// message takes one live message: topic, sequence and payload, or the last two.
func (r *rank) message(ctx context.Context, parts [][]byte) error {
	if len(parts) == 3 {
		parts = parts[1:]
	}
	if len(parts) != 2 || len(parts[0]) != 8 {
		r.x.f.counts.malformed.Inc()
		return nil
	}
	seq := int64(binary.BigEndian.Uint64(parts[0]))
	if seq < 0 {
		r.known = false
		return r.reset(ctx)
	}
	if err := r.arrange(ctx, seq, parts[1]); err != nil {
		return err
	}
	if r.known && seq <= r.last {
		r.sent = seq
		return nil // replayed before
	}
	r.sent = seq
	return r.forward(ctx, seq, parts[1])
}

// arrange brings the rank to where a live batch may be applied next, or to where
// it is recognised as one that was replayed.
func (r *rank) arrange(ctx context.Context, seq int64, payload []byte) error {
	switch {
	case !r.known || seq == r.last+1:
		return nil
	case seq > r.last:
		r.x.f.counts.gaps.Inc()
		r.x.f.counts.lost.Add(int(seq - r.last - 1))
		r.seen.gaps.Add(1)
		r.seen.lost.Add(seq - r.last - 1)
		if r.replayAddress == "" {
			r.x.f.counts.replay("none")
			return r.reset(ctx)
		}
		// The payload is only valid until the next read, but replays are read from
		// another connection.
		return r.repair(ctx, seq)
	case seq > r.sent && (seq != r.last || maphash.Bytes(r.seed, payload) == r.print):
		return nil
	}
	// The number went back: the publisher restarted behind the same connection.
	r.x.again()
	if err := r.reset(ctx); err != nil || r.replayAddress == "" || seq == 0 {
		return err
	}
	return r.warm(ctx, seq)
}

// reset forgets everything that the rank holds, in order with its batches.
func (r *rank) reset(ctx context.Context) error {
	r.known = false
	r.seen.last.Store(-1)
	r.seen.resets.Add(1)
	r.x.f.counts.resets.Inc()
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	b.Events = append(b.Events[:0], wire.Event{Kind: wire.Cleared})
	r.x.f.queue <- item{rank: r, batch: b}
	return nil
}

// take waits for a free batch. Every batch in flight came from here, so the
// queue has room for it.
func (r *rank) take(ctx context.Context) (*wire.Batch, error) {
	select {
	case b := <-r.x.f.free:
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// forward decodes a batch and hands it over. A batch that cannot be decoded is a
// lost one: with it may go a removal, so the rank starts from nothing.
func (r *rank) forward(ctx context.Context, seq int64, payload []byte) error {
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	if err := b.Decode(payload); err != nil {
		r.x.f.release(b)
		r.x.f.counts.undecodable.Inc()
		r.garbled(err)
		err := r.reset(ctx)
		r.took(seq, payload)
		return err
	}
	large := b.Size() > largeBatch
	if large {
		select {
		case r.x.f.large <- struct{}{}:
		case <-ctx.Done():
			r.x.f.release(b)
			return context.Cause(ctx)
		}
	}
	r.judge(b)
	r.took(seq, payload)
	r.x.f.queue <- item{rank: r, batch: b, large: large}
	return nil
}

// garbled tells of a batch that was not understood. An engine may send nothing else, so
// only one in the pause between two questions is a warning.
func (r *rank) garbled(err error) {
	level := slog.LevelDebug
	if now := time.Now(); r.warned.IsZero() || now.Sub(r.warned) >= r.x.f.o.Recheck {
		level, r.warned = slog.LevelWarn, now
	}
	r.x.f.o.Log.Log(context.Background(), level, "cache events not understood",
		"engine", r.x.engine.ID(), "rank", r.number, "error", err)
}

// took notes a batch as the last one.
func (r *rank) took(seq int64, payload []byte) {
	r.known, r.last, r.print = true, seq, maphash.Bytes(r.seed, payload)
	r.seen.last.Store(seq)
}

// judge looks for blocks of a size that the engine is not known to have. One that
// can be asked is asked again, since it may be another by now. vLLM does not tell:
// the configuration is wrong, and no hash is that of a prompt.
func (r *rank) judge(b *wire.Batch) {
	known, vllm := int64(r.x.info.BlockSize), r.x.f.o.Scheme == prefix.VLLM
	for i := range b.Events {
		e := &b.Events[i]
		size, odd := int64(e.BlockSize), r.odd.Load()
		if vllm {
			// Once is enough, until there is another connection: every size but one is wrong.
			if e.Kind != wire.Stored || e.Group > 0 || size == known || odd != fits {
				continue
			}
		} else if size <= max(known, odd) {
			continue
		}
		// It is asked once: it may just be wrong.
		r.odd.Store(size)
		r.x.again()
		return
	}
}

// errEnough ends a replay that has brought what was wanted. The publisher goes on
// sending what came live as well, and it drops replies, the end marker among
// them, when they are not read fast enough.
var errEnough = errors.New("the replay has reached the live messages")

// errBroken says that a replay does not continue what is known.
var errBroken = errors.New("the replay does not continue what was received")

// maxRounds bounds how often one gap is asked for, and maxReplays for how long, in
// times of one replay: a publisher may go on for ever.
const (
	maxRounds  = 32
	maxReplays = 4
)

// repair replays what followed the last batch, up to and without one number, -1
// for everything there is. If anything is amiss the rank is reset.
func (r *rank) repair(ctx context.Context, until int64) error {
	end := time.Now().Add(maxReplays * r.x.f.o.ReplayTimeout)
	for range maxRounds {
		before := r.last
		err := r.proven(ctx, until)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !r.known:
			// A replayed batch could not be decoded, and the rank was reset.
		case err == nil && (until < 0 || r.last == until-1):
			r.x.f.counts.replay("repaired")
			return nil
		case r.last > before && time.Now().Before(end):
			// The publisher drops replies that are not read fast enough. What came is
			// good, so the rest is asked for.
			continue
		}
		if err == nil || errors.Is(err, errBroken) {
			r.x.f.counts.replay("incomplete")
		} else {
			r.x.f.counts.replay("failed")
		}
		break
	}
	if err := r.reset(ctx); err != nil {
		return err
	}
	if until < 0 {
		// Another life, perhaps: what it offers is taken from its beginning.
		return r.warm(ctx, until)
	}
	return nil
}

// proven is one replay that begins with the last batch itself, which proves that
// the publisher is the same.
func (r *rank) proven(ctx context.Context, until int64) error {
	proven := false
	err := r.replay(ctx, r.last, func(seq int64, payload []byte) error {
		switch {
		case until >= 0 && seq >= until:
			return errEnough
		case !proven && seq == r.last && maphash.Bytes(r.seed, payload) == r.print:
			proven = true
			return nil
		case !proven || seq != r.last+1:
			return errBroken
		}
		return r.forward(ctx, seq, payload)
	})
	if err == nil && !proven {
		return errBroken
	}
	return err
}

// warm replays the history that a publisher offers, up to and without one
// number, -1 for all. A hole in it is a new beginning.
func (r *rank) warm(ctx context.Context, until int64) error {
	err := r.replay(ctx, 0, func(seq int64, payload []byte) error {
		if until >= 0 && seq >= until {
			return errEnough
		}
		if r.known && seq != r.last+1 {
			if err := r.reset(ctx); err != nil {
				return err
			}
		}
		return r.forward(ctx, seq, payload)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && (until < 0 || r.known && r.last == until-1) {
		r.x.f.counts.replay("warmed")
		return nil
	}
	r.x.f.counts.replay("cold")
	if r.known {
		return r.reset(ctx)
	}
	return nil
}

// replay asks for the batches from a number on and passes each to take.
func (r *rank) replay(ctx context.Context, from int64, take func(seq int64, payload []byte) error) error {
	short, cancel := context.WithTimeout(ctx, r.x.f.o.ReplayTimeout)
	defer cancel()
	c, err := zmtp.Dial(short, zmtp.DEALER, r.replayAddress, r.x.f.o.ZMTP)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Send(nil, binary.BigEndian.AppendUint64(nil, uint64(from))); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	for {
		parts, err := c.Read(short)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		// Engines differ in what stands before: delimiter, topic, both.
		n := len(parts)
		if n < 2 || len(parts[n-2]) != 8 {
			return fmt.Errorf("replay: a reply of %d parts has no sequence number", n)
		}
		seq := int64(binary.BigEndian.Uint64(parts[n-2]))
		if seq == endMarker {
			return nil
		}
		if err := take(seq, parts[n-1]); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
