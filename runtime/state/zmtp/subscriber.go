package zmtp

import (
	"context"
	"fmt"
	"time"
)

// Subscriber keeps one subscription alive: it dials, subscribes, reads, and
// begins again after a failure.
type Subscriber struct {
	// Address is host and port of the publisher. Required.
	Address string
	// Topic is the prefix of wanted messages.
	Topic string
	// Options configures each connection.
	Options Options
	// MinBackoff and MaxBackoff bound the pause between attempts, which doubles;
	// 0 is 50 ms and 2 s.
	MinBackoff, MaxBackoff time.Duration
	// Jitter draws a number below n for the pause; nil adds none. It spreads the
	// routers that lost the same engine.
	Jitter func(n int64) int64
	// Message is called for each message, on the goroutine of Run. The parts are
	// valid during the call. An error drops the connection. Required.
	Message func(ctx context.Context, parts [][]byte) error
	// Up is called after each successful connection, before its first message, and
	// may fail it. Down is called after the end of a connection or a failed
	// attempt; its error ends Run. Both may be nil.
	Up   func(ctx context.Context) error
	Down func(ctx context.Context, err error) error
}

// Run subscribes until ctx ends, and returns why it ended.
func (s *Subscriber) Run(ctx context.Context) error {
	pause := s.min()
	for {
		established, err := s.live(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.Down != nil {
			if err := s.Down(ctx, err); err != nil {
				return err
			}
		}
		if established {
			pause = s.min()
		}
		if err := sleep(ctx, pause+s.jitter(pause)); err != nil {
			return err
		}
		pause = min(2*pause, s.max())
	}
}

// live is the life of one connection. established says whether a message came:
// a peer that accepts and drops connections must not be hammered.
func (s *Subscriber) live(ctx context.Context) (established bool, err error) {
	c, err := Dial(ctx, SUB, s.Address, s.Options)
	if err != nil {
		return false, err
	}
	defer c.Close()
	if err := c.Subscribe(s.Topic); err != nil {
		return false, fmt.Errorf("zmtp: subscribe: %w", err)
	}
	if s.Up != nil {
		if err := s.Up(ctx); err != nil {
			return false, err
		}
	}
	for {
		parts, err := c.Read(ctx)
		if err != nil {
			return established, err
		}
		established = true
		if err := s.Message(ctx, parts); err != nil {
			return established, err
		}
	}
}

func (s *Subscriber) min() time.Duration {
	if s.MinBackoff > 0 {
		return s.MinBackoff
	}
	return 50 * time.Millisecond
}

func (s *Subscriber) max() time.Duration {
	if s.MaxBackoff > 0 {
		return s.MaxBackoff
	}
	return 2 * time.Second
}

// jitter is at most half of the pause.
func (s *Subscriber) jitter(pause time.Duration) time.Duration {
	if s.Jitter == nil || pause < 2 {
		return 0
	}
	return time.Duration(s.Jitter(int64(pause / 2)))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
