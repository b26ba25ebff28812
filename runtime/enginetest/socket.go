package enginetest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Flags of frames in ZeroMQ's wire protocol, ZMTP 3.
const (
	frameMore    = 1
	frameLong    = 2
	frameCommand = 4
)

// maxFrame bounds what a peer may send: subscriptions and questions are small.
const maxFrame = 64 << 10

// writeLimit is how long a peer may take nothing of a message before its
// connection is given up. It keeps the answer to a peer that stopped reading from
// waiting for ever.
const writeLimit = 10 * time.Second

// socket is the listening side of a PUB or ROUTER socket.
type socket struct {
	kind string
	ln   net.Listener
	// highWater is the number of messages that may wait for one subscriber; more
	// are dropped.
	highWater int
	// answer serves one question on a ROUTER socket.
	answer func(question [][]byte, send func(parts ...[]byte) error) error

	wg      sync.WaitGroup
	mu      sync.Mutex
	peers   map[*peer]struct{}
	closed  bool
	dropped int64
}

// peer is one connection.
type peer struct {
	conn net.Conn
	out  chan []byte   // whole messages on the wire
	gone chan struct{} // closed when nothing is written any more

	mu     sync.Mutex
	topics []string // that the peer subscribed to
}

// listenSocket opens a socket; it serves until close.
func listenSocket(kind, addr string, highWater int, answer func([][]byte, func(...[]byte) error) error) (*socket, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &socket{kind: kind, ln: ln, highWater: highWater, answer: answer, peers: map[*peer]struct{}{}}
	s.wg.Go(s.accept)
	return s, nil
}

func (s *socket) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		p := &peer{conn: conn, out: make(chan []byte, s.highWater), gone: make(chan struct{})}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			conn.Close()
			return
		}
		s.peers[p] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() {
			s.talk(p)
			s.mu.Lock()
			delete(s.peers, p)
			s.mu.Unlock()
			conn.Close()
		})
	}
}

// close ends everything at once, as a killed process would.
func (s *socket) close() {
	s.mu.Lock()
	s.closed = true
	for p := range s.peers {
		p.conn.Close()
	}
	s.mu.Unlock()
	s.ln.Close()
	s.wg.Wait()
}

// subscribers counts the subscriptions.
func (s *socket) subscribers() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		p.mu.Lock()
		n += len(p.topics)
		p.mu.Unlock()
	}
	return n
}

// publish sends a message to everybody who subscribed to its topic. It never
// waits: whoever is slow loses it.
func (s *socket) publish(parts ...[]byte) {
	message := appendMessage(nil, parts)
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		if !p.wants(parts[0]) {
			continue
		}
		select {
		case p.out <- message:
		default:
			s.dropped++
		}
	}
}

func (p *peer) wants(topic []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.topics {
		if strings.HasPrefix(string(topic), t) {
			return true
		}
	}
	return false
}

// talk shakes hands, writes what is published and reads what the peer says.
func (s *socket) talk(p *peer) {
	in := bufio.NewReader(p.conn)
	_ = p.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if err := s.handshake(p.conn, in); err != nil {
		return
	}
	_ = p.conn.SetDeadline(time.Time{})
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() { p.write(stop) })
	defer writer.Wait()
	defer close(stop)
	defer p.conn.Close() // a blocked write ends
	for {
		parts, command, err := readMessage(in)
		if err != nil {
			return
		}
		if err := s.heard(p, parts, command); err != nil {
			return
		}
	}
}

// write sends what waits for the peer.
func (p *peer) write(stop <-chan struct{}) {
	// The reader ends, too: without a writer its answers would go nowhere.
	defer p.conn.Close()
	defer close(p.gone)
	for {
		select {
		case m := <-p.out:
			_ = p.conn.SetWriteDeadline(time.Now().Add(writeLimit)) // a closed connection fails below
			if _, err := p.conn.Write(m); err != nil {
				return
			}
		case <-stop:
			return
		}
	}
}

// greet is version 3.1, mechanism NULL.
func greet() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xFF, 0x7F, 3, 1
	copy(g[12:], "NULL")
	return g
}

func (s *socket) handshake(w io.Writer, in *bufio.Reader) error {
	ready := append([]byte("\x05READY\x0bSocket-Type\x00\x00\x00"), byte(len(s.kind)))
	ready = append(ready, s.kind...)
	if _, err := w.Write(appendFrame(greet(), frameCommand, ready)); err != nil {
		return err
	}
	var g [64]byte
	if _, err := io.ReadFull(in, g[:]); err != nil {
		return err
	}
	if g[0] != 0xFF || g[10] < 3 || string(bytes.TrimRight(g[12:32], "\x00")) != "NULL" {
		return errors.New("the peer does not speak ZMTP 3 with NULL")
	}
	parts, command, err := readMessage(in)
	if err == nil && (!command || !bytes.HasPrefix(parts[0], []byte("\x05READY"))) {
		err = errors.New("the peer's first frame is not READY")
	}
	return err
}

// heard deals with one message or command of the peer.
func (s *socket) heard(p *peer, parts [][]byte, command bool) error {
	send := func(frame []byte) error {
		select {
		case p.out <- frame:
			return nil
		case <-p.gone:
			return io.ErrClosedPipe
		}
	}
	body := parts[0]
	switch {
	case command && bytes.HasPrefix(body, []byte("\x04PING")) && len(body) >= 7:
		return send(appendFrame(nil, frameCommand, append([]byte("\x04PONG"), body[7:]...)))
	case command && bytes.HasPrefix(body, []byte("\x09SUBSCRIBE")):
		p.subscribe(string(body[10:]), true)
	case command && bytes.HasPrefix(body, []byte("\x06CANCEL")):
		p.subscribe(string(body[7:]), false)
	case command:
	case s.answer != nil:
		return s.answer(parts, func(parts ...[]byte) error { return send(appendMessage(nil, parts)) })
	case len(body) > 0 && body[0] <= 1:
		p.subscribe(string(body[1:]), body[0] == 1)
	}
	return nil
}

func (p *peer) subscribe(topic string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		p.topics = append(p.topics, topic)
		return
	}
	for i, t := range p.topics {
		if t == topic {
			p.topics = append(p.topics[:i], p.topics[i+1:]...)
			return
		}
	}
}

func appendFrame(dst []byte, flags byte, body []byte) []byte {
	if len(body) < 256 {
		return append(append(dst, flags, byte(len(body))), body...)
	}
	dst = binary.BigEndian.AppendUint64(append(dst, flags|frameLong), uint64(len(body)))
	return append(dst, body...)
}

func appendMessage(dst []byte, parts [][]byte) []byte {
	for i, part := range parts {
		flags := byte(frameMore)
		if i == len(parts)-1 {
			flags = 0
		}
		dst = appendFrame(dst, flags, part)
	}
	return dst
}

// readMessage reads the frames of one message, or one command.
func readMessage(in *bufio.Reader) (parts [][]byte, command bool, err error) {
	for total := 0; ; {
		flags, err := in.ReadByte()
		if err != nil {
			return nil, false, err
		}
		size := make([]byte, 8)
		if flags&frameLong != 0 {
			_, err = io.ReadFull(in, size)
		} else {
			_, err = io.ReadFull(in, size[7:])
		}
		n := binary.BigEndian.Uint64(size)
		if err == nil && (n > maxFrame || total > maxFrame) {
			err = fmt.Errorf("a frame of %d bytes is too large", n)
		}
		if err != nil {
			return nil, false, err
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return nil, false, err
		}
		total += len(body) + 1
		parts = append(parts, body)
		if flags&frameMore == 0 {
			return parts, flags&frameCommand != 0, nil
		}
	}
}
