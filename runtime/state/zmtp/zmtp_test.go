package zmtp_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shunt/runtime/state/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func texts(parts [][]byte) []string {
	var s []string
	for _, p := range parts {
		s = append(s, string(p))
	}
	return s
}

// serve runs script against the first connection of a listener.
func serve(t *testing.T, minor byte, kind string, script func(*peer)) string {
	t.Helper()
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		if p := accept(t, l, kind, minor); p != nil {
			script(p)
			p.nc.Close()
		}
	})
	t.Cleanup(wg.Wait)
	return l.Addr().String()
}

func TestReadMessages(t *testing.T) {
	long := strings.Repeat("x", 300)
	addr := serve(t, 1, "PUB", func(p *peer) {
		if _, body := p.read(); string(body) != "\x01kv" {
			t.Errorf("subscription %q", body)
		}
		p.send("kv", "00000001", long)
		p.write(frame(4, []byte("\x04PING\x00\x00ctx")))
		p.send("")
		if flags, body := p.read(); flags != 4 || string(body) != "\x04PONGctx" {
			t.Errorf("answer to a ping: %d %q", flags, body)
		}
	})
	c, err := zmtp.Dial(t.Context(), zmtp.SUB, addr, zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Subscribe("kv"); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"kv", "00000001", long}, {""}} {
		parts, err := c.Read(t.Context())
		if err != nil || !slices.Equal(texts(parts), want) {
			t.Fatalf("message %q, %v; want %q", parts, err, want)
		}
	}
	if _, err := c.Read(t.Context()); err == nil {
		t.Error("no error after the peer left")
	}
}

func TestRefusals(t *testing.T) {
	f := func(name, kind string, o zmtp.Options, want string, script func(*peer)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			addr := serve(t, 0, kind, script)
			c, err := zmtp.Dial(t.Context(), zmtp.SUB, addr, o)
			if err == nil {
				defer c.Close()
				_, err = c.Read(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
	small := zmtp.Options{Limits: zmtp.Limits{MaxMessage: 1000, MaxParts: 2}}
	f("socket type", "ROUTER", small, `a SUB socket cannot talk to "ROUTER"`, func(*peer) {})
	f("announced length", "PUB", small, "exceeds the limit of 1000", func(p *peer) {
		p.write([]byte{2, 0x7F, 0, 0, 0, 0, 0, 0, 0})
	})
	f("sum of parts", "PUB", small, "exceeds the limit of 1000", func(p *peer) {
		p.send(strings.Repeat("a", 600), strings.Repeat("b", 600))
	})
	f("parts", "PUB", small, "more than 2 parts", func(p *peer) { p.send("1", "2", "3") })
	f("flags", "PUB", small, "reserved", func(p *peer) { p.write([]byte{0x80, 0}) })
	f("cut off", "PUB", small, "unexpected EOF", func(p *peer) { p.write([]byte{0, 9, 'x'}) })
	f("command with more", "PUB", small, "more flag", func(p *peer) { p.write([]byte{5, 0}) })
	f("empty command", "PUB", small, "cut off", func(p *peer) { p.write([]byte{4, 0}) })
	f("error command", "PUB", small, "reports", func(p *peer) { p.write(frame(4, []byte("\x05ERROR\x03bad"))) })
}

func TestNotZMTP(t *testing.T) {
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		nc, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		_, _ = nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		_, _ = nc.Read(make([]byte, 64))
	})
	defer wg.Wait()
	_, err := zmtp.Dial(t.Context(), zmtp.SUB, l.Addr().String(), zmtp.Options{})
	if err == nil || !strings.Contains(err.Error(), "does not speak ZMTP 3") {
		t.Errorf("error %v", err)
	}
}

// TestSilence covers a peer that answers nothing at all: at the handshake, and
// after it.
func TestSilence(t *testing.T) {
	l := listen(t)
	_, err := zmtp.Dial(t.Context(), zmtp.SUB, l.Addr().String(), zmtp.Options{HandshakeTimeout: 20 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("handshake with a silent peer: %v", err)
	}
	hold := make(chan struct{})
	addr := serve(t, 1, "PUB", func(p *peer) {
		if flags, body := p.read(); flags != 4 || string(body) != "\x04PING\x00\x00" {
			t.Errorf("got %d %q, want a ping", flags, body)
		}
		<-hold
	})
	defer close(hold)
	c, err := zmtp.Dial(t.Context(), zmtp.SUB, addr, zmtp.Options{Idle: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "did not answer a ping") {
		t.Errorf("error %v", err)
	}
}

func TestCancelEndsRead(t *testing.T) {
	hold := make(chan struct{})
	addr := serve(t, 0, "PUB", func(*peer) { <-hold })
	defer close(hold)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := zmtp.Dial(ctx, zmtp.SUB, addr, zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
}

func TestSubscriberReconnects(t *testing.T) {
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, text := range []string{"first", "second", "third"} {
			p := accept(t, l, "XPUB", 1)
			if p == nil {
				return
			}
			p.read()
			p.send(text)
			p.nc.Close()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	ups, downs := 0, 0
	s := zmtp.Subscriber{
		Address: l.Addr().String(), MinBackoff: time.Millisecond,
		Message: func(_ context.Context, parts [][]byte) error {
			if got = append(got, texts(parts)...); len(got) == 3 {
				cancel()
			}
			return nil
		},
		Up:   func(context.Context) error { ups++; return nil },
		Down: func(context.Context, error) error { downs++; return nil },
	}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	wg.Wait()
	if !slices.Equal(got, []string{"first", "second", "third"}) || ups != 3 || downs != 2 {
		t.Errorf("messages %q, %d connections, %d ends", got, ups, downs)
	}
}

func TestDealerAsksAndReads(t *testing.T) {
	addr := serve(t, 0, "ROUTER", func(p *peer) {
		_, empty := p.read()
		_, seq := p.read()
		if len(empty) != 0 || string(seq) != "\x00\x00\x00\x00\x00\x00\x00\x07" {
			t.Errorf("request %q %q", empty, seq)
		}
		p.send("", "topic", "seq", "payload")
	})
	c, err := zmtp.Dial(t.Context(), zmtp.DEALER, addr, zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(nil, []byte("\x00\x00\x00\x00\x00\x00\x00\x07")); err != nil {
		t.Fatal(err)
	}
	parts, err := c.Read(t.Context())
	if err != nil || !slices.Equal(texts(parts), []string{"", "topic", "seq", "payload"}) {
		t.Errorf("reply %q, %v", parts, err)
	}
}

// FuzzPeer feeds arbitrary bytes after a valid greeting: no panic, no hang, and
// never more memory than the limits allow.
func FuzzPeer(f *testing.F) {
	ready := frame(4, []byte("\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"))
	f.Add(append(slices.Clone(ready), frame(0, []byte("x"))...))
	f.Add(append(slices.Clone(ready), frame(4, []byte("\x04PING\x00\x00"))...))
	f.Add(append(slices.Clone(ready), 2, 0, 0, 0, 0, 0, 1, 0, 0))
	f.Add([]byte{4, 6, 5, 'R', 'E', 'A', 'D', 'Y'})
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			g := make([]byte, 64)
			g[0], g[9], g[10] = 0xFF, 0x7F, 3
			copy(g[12:], "NULL")
			_, _ = theirs.Write(append(g, data...))
			theirs.Close()
		})
		wg.Go(func() {
			b := make([]byte, 256)
			for {
				if _, err := theirs.Read(b); err != nil {
					return
				}
			}
		})
		c, err := zmtp.Dial(t.Context(), zmtp.SUB, "", zmtp.Options{
			Limits: zmtp.Limits{MaxMessage: 1 << 16, MaxParts: 4},
			Dial:   func(context.Context, string, string) (net.Conn, error) { return ours, nil },
		})
		for err == nil {
			var parts [][]byte
			if parts, err = c.Read(t.Context()); err == nil && len(parts) > 4 {
				t.Errorf("%d parts", len(parts))
			}
		}
		ours.Close()
		wg.Wait()
	})
}
