package feed_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// publisher is one rank of an engine: a PUB socket with numbered batches and,
// if wanted, a ROUTER socket that replays them. It is written for these tests.
type publisher struct {
	t           *testing.T
	live, again net.Listener
	wg          sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool // true for subscribers
	seq     uint64
	history [][]byte
	joined  chan struct{} // one for each subscription
	closed  bool
	clock   float64
	limit   int  // replies to one replay request, 0 for all
	endless bool // replays go on after the history, until the peer leaves
}

func newPublisher(t *testing.T, address string, replay bool, clock float64) *publisher {
	t.Helper()
	p := &publisher{t: t, conns: map[net.Conn]bool{}, joined: make(chan struct{}, 100), clock: clock}
	p.live = listen(t, address)
	p.wg.Go(func() { p.accept(p.live, "PUB") })
	if replay {
		p.again = listen(t, "127.0.0.1:0")
		p.wg.Go(func() { p.accept(p.again, "ROUTER") })
	}
	t.Cleanup(p.close)
	return p
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// close ends the publisher as a killed process would.
func (p *publisher) close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.live.Close()
	if p.again != nil {
		p.again.Close()
	}
	p.wg.Wait()
}

// drop cuts the connections and goes on listening.
func (p *publisher) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *publisher) accept(l net.Listener, kind string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[c] = false
		closed := p.closed
		p.mu.Unlock()
		if closed {
			c.Close()
		}
		p.wg.Go(func() {
			p.talk(c, kind)
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
			c.Close()
		})
	}
}

func (p *publisher) talk(c net.Conn, kind string) {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xFF, 0x7F, 3, 1
	copy(g[12:], "NULL")
	ready := append([]byte("\x05READY\x0bSocket-Type\x00\x00\x00"), byte(len(kind)))
	in := bufio.NewReader(c)
	if _, err := c.Write(append(g, frame(4, append(ready, kind...))...)); err != nil {
		return
	}
	if _, err := io.ReadFull(in, g); err != nil {
		return
	}
	for {
		flags, body, err := readFrame(in)
		if err != nil {
			return
		}
		switch {
		case flags&4 != 0:
		case kind == "PUB":
			p.mu.Lock()
			p.conns[c] = true
			p.mu.Unlock()
			p.joined <- struct{}{}
		case len(body) == 8:
			p.replay(c, binary.BigEndian.Uint64(body))
		}
	}
}

func (p *publisher) replay(c net.Conn, from uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := 0
	for i, payload := range p.history {
		if uint64(i) >= from && payload != nil && (p.limit == 0 || sent < p.limit) {
			sent++
			_, _ = c.Write(message("", "topic", seqFrame(uint64(i)), string(payload)))
		}
	}
	for i := max(p.seq, from); p.endless && len(p.history) > 0; i++ {
		if _, err := c.Write(message("", "topic", seqFrame(i), string(p.history[0]))); err != nil {
			return
		}
	}
	_, _ = c.Write(message("", "", seqFrame(1<<64-1), ""))
}

// publish numbers a batch of events and sends it to every subscriber.
func (p *publisher) publish(events ...[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock++
	b := msgp.AppendArrayHeader(nil, 3)
	b = msgp.AppendFloat64(b, p.clock)
	b = msgp.AppendArrayHeader(b, uint32(len(events)))
	for _, e := range events {
		b = append(b, e...)
	}
	p.send(msgp.AppendInt(b, 0))
}

// send needs the lock.
func (p *publisher) send(payload []byte) {
	for c, subscribed := range p.conns {
		if subscribed {
			_, _ = c.Write(message("topic", seqFrame(p.seq), string(payload)))
		}
	}
	p.history = append(p.history, payload)
	p.seq++
}

// lose numbers and keeps a batch as publish does, but nobody receives it live.
func (p *publisher) lose(events ...[]byte) {
	p.mu.Lock()
	held := p.conns
	p.conns = map[net.Conn]bool{}
	p.mu.Unlock()
	p.publish(events...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = held
}

func seqFrame(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

func message(parts ...string) []byte {
	var b []byte
	for i, s := range parts {
		var flags byte
		if i < len(parts)-1 {
			flags = 1
		}
		b = append(b, frame(flags, []byte(s))...)
	}
	return b
}

func frame(flags byte, body []byte) []byte {
	if len(body) < 256 {
		return append([]byte{flags, byte(len(body))}, body...)
	}
	return append(binary.BigEndian.AppendUint64([]byte{flags | 2}, uint64(len(body))), body...)
}

func readFrame(in *bufio.Reader) (flags byte, body []byte, err error) {
	if flags, err = in.ReadByte(); err != nil {
		return 0, nil, err
	}
	n, err := in.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	body = make([]byte, n)
	_, err = io.ReadFull(in, body)
	return flags, body, err
}

// stored, removed and cleared are events.
func stored(size int, parent any, hashes ...int64) []byte {
	e := msgp.AppendMapHeader(nil, 5)
	e = msgp.AppendString(msgp.AppendString(e, "type"), "BlockStored")
	e = list(msgp.AppendString(e, "block_hashes"), hashes)
	e = msgp.AppendString(e, "parent_block_hash")
	if h, ok := parent.(int64); ok {
		e = msgp.AppendInt64(e, h)
	} else {
		e = msgp.AppendNil(e)
	}
	e = msgp.AppendArrayHeader(msgp.AppendString(e, "token_ids"), 0)
	return msgp.AppendInt(msgp.AppendString(e, "block_size"), size)
}

func removed(hashes ...int64) []byte {
	e := msgp.AppendMapHeader(nil, 2)
	e = msgp.AppendString(msgp.AppendString(e, "type"), "BlockRemoved")
	return list(msgp.AppendString(e, "block_hashes"), hashes)
}

func list(e []byte, hashes []int64) []byte {
	e = msgp.AppendArrayHeader(e, uint32(len(hashes)))
	for _, h := range hashes {
		e = msgp.AppendInt64(e, h)
	}
	return e
}
