package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Type is the socket type that this side announces.
type Type string

// The socket types of this client.
const (
	SUB    Type = "SUB"
	DEALER Type = "DEALER"
)

// peers lists which types may answer a client type.
func (t Type) accepts(peer string) bool {
	switch t {
	case SUB:
		return peer == "PUB" || peer == "XPUB"
	case DEALER:
		return peer == "ROUTER" || peer == "DEALER" || peer == "REP"
	}
	return false
}

// Options configures connections. Zero fields take the documented defaults.
type Options struct {
	Limits Limits
	// Dial opens the transport; nil is a TCP dialer with keep-alive probes.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HandshakeTimeout bounds dialling and handshake together; 0 is 5 s.
	HandshakeTimeout time.Duration
	// Idle is how long a silent peer is left alone: then it is pinged, and after
	// as long again without a byte the connection counts as dead. Peers that
	// announce ZMTP 3.0 know no ping and are left to TCP keep-alive. 0 is 15 s.
	Idle time.Duration
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	if o.HandshakeTimeout <= 0 {
		o.HandshakeTimeout = 5 * time.Second
	}
	if o.Idle <= 0 {
		o.Idle = 15 * time.Second
	}
	if o.Dial == nil {
		d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
		}}
		o.Dial = d.DialContext
	}
	return o
}

// Conn is one connection after its handshake.
type Conn struct {
	nc    net.Conn
	in    reader
	out   []byte
	idle  time.Duration
	armed time.Time   // when the read deadline was last set
	pings bool        // the peer knows PING
	stop  func() bool // undoes the tie to the context
}

// Dial connects and shakes hands as the given socket type. The connection ends
// when ctx does.
func Dial(ctx context.Context, kind Type, address string, o Options) (*Conn, error) {
	o = o.withDefaults()
	short, cancel := context.WithTimeout(ctx, o.HandshakeTimeout)
	defer cancel()
	nc, err := o.Dial(short, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("zmtp: dial %s: %w", address, err)
	}
	c := &Conn{nc: nc, idle: o.Idle}
	c.in = reader{src: bufio.NewReaderSize(nc, 64<<10), limits: o.Limits}
	stop := context.AfterFunc(short, func() { expire(nc) })
	err = c.handshake(kind)
	if !stop() && err == nil {
		err = context.Cause(short)
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("zmtp: handshake with %s: %w", address, contextual(short, err))
	}
	c.stop = context.AfterFunc(ctx, func() { expire(nc) })
	return c, nil
}

// Close ends the connection; a blocked Read returns.
func (c *Conn) Close() error {
	c.stop()
	return c.nc.Close()
}

// expire makes every pending operation of a connection fail at once.
func expire(nc net.Conn) { _ = nc.SetDeadline(time.Unix(1, 0)) }

// contextual prefers the context's reason over the time-out that it caused.
func contextual(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

const greetingLen = 64

// greeting announces version 3.0, mechanism NULL, as a client.
func greeting() []byte {
	g := make([]byte, greetingLen)
	g[0], g[9], g[10] = 0xFF, 0x7F, 3
	copy(g[12:32], "NULL")
	return g
}

func (c *Conn) handshake(kind Type) error {
	if _, err := c.nc.Write(greeting()); err != nil {
		return err
	}
	var g [greetingLen]byte
	// The first eleven bytes tell the version; older peers send no more until
	// they have seen ours, and are refused.
	if _, err := io.ReadFull(c.in.src, g[:11]); err != nil {
		return unexpected(err)
	}
	if g[0] != 0xFF || g[9]&1 == 0 || g[10] < 3 {
		return fmt.Errorf("the peer does not speak ZMTP 3")
	}
	if _, err := io.ReadFull(c.in.src, g[11:]); err != nil {
		return unexpected(err)
	}
	c.pings = g[10] > 3 || g[11] >= 1
	if m := string(bytes.TrimRight(g[12:32], "\x00")); m != "NULL" {
		return fmt.Errorf("the peer demands mechanism %q", m)
	}
	if err := c.write(appendFrame(nil, flagCommand, readyCommand(kind))); err != nil {
		return err
	}
	flags, size, err := c.in.header()
	if err != nil {
		return unexpected(err)
	}
	if flags&flagCommand == 0 || size > 64<<10 {
		return fmt.Errorf("the peer's first frame is not a READY command")
	}
	c.in.reset()
	if err := c.in.body(size); err != nil {
		return err
	}
	return checkReady(kind, c.in.buf)
}

// readyCommand is the body of READY: name, then properties.
func readyCommand(kind Type) []byte {
	b := append([]byte{5}, "READY"...)
	b = appendProperty(b, "Socket-Type", string(kind))
	if kind == DEALER {
		b = appendProperty(b, "Identity", "")
	}
	return b
}

func appendProperty(b []byte, name, value string) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// checkReady demands a socket type that fits ours.
func checkReady(kind Type, body []byte) error {
	name, rest, ok := command(body)
	if !ok || string(name) != "READY" {
		if ok && string(name) == "ERROR" {
			return fmt.Errorf("the peer refused: %q", truncate(rest))
		}
		return fmt.Errorf("the peer's first command is not READY")
	}
	for len(rest) > 0 {
		n := int(rest[0])
		if len(rest) < 1+n+4 {
			return fmt.Errorf("a property of READY is cut off")
		}
		key, rem := rest[1:1+n], rest[1+n:]
		size := binary.BigEndian.Uint32(rem)
		if uint64(size) > uint64(len(rem)-4) {
			return fmt.Errorf("a property of READY is cut off")
		}
		value := rem[4 : 4+size]
		if bytes.EqualFold(key, []byte("Socket-Type")) {
			if !kind.accepts(string(value)) {
				return fmt.Errorf("a %s socket cannot talk to %q", kind, truncate(value))
			}
			return nil
		}
		rest = rem[4+size:]
	}
	return fmt.Errorf("READY has no Socket-Type")
}

// truncate keeps a peer's text short enough for a log line.
func truncate(b []byte) []byte { return b[:min(len(b), 80)] }

// command splits the body of a command frame into name and data.
func command(body []byte) (name, data []byte, ok bool) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return nil, nil, false
	}
	n := 1 + int(body[0])
	return body[1:n], body[n:], true
}

// Subscribe asks a publisher for the messages whose first part starts with the
// topic. The empty topic is all of them.
func (c *Conn) Subscribe(topic string) error {
	return c.write(appendFrame(nil, 0, append([]byte{1}, topic...)))
}

// Send sends one message.
func (c *Conn) Send(parts ...[]byte) error {
	c.out = c.out[:0]
	for i, p := range parts {
		var flags byte
		if i < len(parts)-1 {
			flags = flagMore
		}
		c.out = appendFrame(c.out, flags, p)
	}
	return c.write(c.out)
}

// write sends bytes with a bound on the time, so that a peer that stopped
// reading cannot hold the caller.
func (c *Conn) write(b []byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.writeTimeout())); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	return err
}

func (c *Conn) writeTimeout() time.Duration {
	if c.idle > 0 {
		return c.idle
	}
	return 15 * time.Second
}

// Read returns the parts of the next message. They are valid until the next
// call. Heartbeats are answered on the way. The context must be the one of Dial.
func (c *Conn) Read(ctx context.Context) ([][]byte, error) {
	c.in.reset()
	for {
		if err := c.await(ctx); err != nil {
			return nil, contextual(ctx, err)
		}
		flags, size, err := c.in.header()
		if err != nil {
			return nil, contextual(ctx, err)
		}
		if flags&flagCommand != 0 {
			if err := c.handle(size); err != nil {
				return nil, contextual(ctx, err)
			}
			continue
		}
		if len(c.in.ends) == c.in.limits.MaxParts {
			return nil, fmt.Errorf("zmtp: a message has more than %d parts", c.in.limits.MaxParts)
		}
		if err := c.in.body(size); err != nil {
			return nil, contextual(ctx, err)
		}
		c.in.ends = append(c.in.ends, len(c.in.buf))
		if flags&flagMore == 0 {
			return c.in.collect(), nil
		}
	}
}

// await returns when a frame starts. It pings a peer that is silent for long,
// and gives up on one that does not answer.
func (c *Conn) await(ctx context.Context) error {
	if c.in.src.Buffered() > 0 {
		// The rest of the frame may have to come from the network, and the caller
		// may have been away for longer than the deadline.
		if time.Since(c.armed) > c.idle/4 {
			return c.arm(ctx)
		}
		return ctx.Err()
	}
	for pinged := false; ; pinged = true {
		if err := c.arm(ctx); err != nil {
			return err
		}
		_, err := c.in.src.Peek(1)
		if err == nil {
			// The rest of the frame gets the same time again.
			return c.arm(ctx)
		}
		if ctx.Err() != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if !c.pings {
			continue
		}
		if pinged {
			return fmt.Errorf("zmtp: the peer was silent for %s and did not answer a ping", 2*c.idle)
		}
		// A PING carries a time to live in tenths of a second, 0 for none.
		if err := c.write(appendFrame(nil, flagCommand, []byte("\x04PING\x00\x00"))); err != nil {
			return err
		}
	}
}

// arm sets the read deadline without undoing a cancellation that came between.
func (c *Conn) arm(ctx context.Context) error {
	c.armed = time.Now()
	if err := c.nc.SetReadDeadline(c.armed.Add(c.idle)); err != nil {
		return err
	}
	return ctx.Err()
}

// handle consumes a command: it answers PING and ignores what it does not know.
func (c *Conn) handle(size int) error {
	if size > 64<<10 {
		return fmt.Errorf("zmtp: a command of %d bytes is too large", size)
	}
	at := len(c.in.buf)
	if err := c.in.body(size); err != nil {
		return err
	}
	body := c.in.buf[at:]
	c.in.buf = c.in.buf[:at]
	name, data, ok := command(body)
	switch {
	case !ok:
		return fmt.Errorf("zmtp: a command is cut off")
	case string(name) == "ERROR":
		return fmt.Errorf("zmtp: the peer reports %q", truncate(data))
	case string(name) == "PING" && len(data) >= 2:
		pong := append([]byte("\x04PONG"), data[2:min(len(data), 18)]...)
		return c.write(appendFrame(nil, flagCommand, pong))
	}
	return nil
}
