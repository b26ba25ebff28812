package zmtp_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// peer is the publishing side of a connection, written for these tests only.
type peer struct {
	t  *testing.T
	nc net.Conn
	in *bufio.Reader
}

// accept takes one connection and shakes hands as the given type and version.
func accept(t *testing.T, l net.Listener, kind string, minor byte) *peer {
	t.Helper()
	nc, err := l.Accept()
	if err != nil {
		t.Error(err)
		return nil
	}
	p := &peer{t: t, nc: nc, in: bufio.NewReader(nc)}
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xFF, 0x7F, 3, minor
	copy(g[12:], "NULL")
	ready := append([]byte("\x05READY\x0bSocket-Type\x00\x00\x00"), byte(len(kind)))
	p.write(g)
	p.write(frame(4, append(ready, kind...)))
	if _, err := io.ReadFull(p.in, g); err != nil {
		t.Error(err)
	}
	if flags, body := p.read(); flags != 4 || string(body[:6]) != "\x05READY" {
		t.Errorf("the client opened with flags %d, body %q", flags, body)
	}
	return p
}

func frame(flags byte, body []byte) []byte {
	if len(body) < 256 {
		return append([]byte{flags, byte(len(body))}, body...)
	}
	b := binary.BigEndian.AppendUint64([]byte{flags | 2}, uint64(len(body)))
	return append(b, body...)
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.t.Error(err)
	}
}

func (p *peer) send(parts ...string) {
	p.t.Helper()
	for i, s := range parts {
		var flags byte
		if i < len(parts)-1 {
			flags = 1
		}
		p.write(frame(flags, []byte(s)))
	}
}

func (p *peer) read() (flags byte, body []byte) {
	p.t.Helper()
	flags, err := p.in.ReadByte()
	if err != nil {
		p.t.Error(err)
		return 0, nil
	}
	size := uint64(0)
	if flags&2 != 0 {
		var b [8]byte
		_, err = io.ReadFull(p.in, b[:])
		size = binary.BigEndian.Uint64(b[:])
	} else {
		var n byte
		n, err = p.in.ReadByte()
		size = uint64(n)
	}
	if err == nil {
		body = make([]byte, size)
		_, err = io.ReadFull(p.in, body)
	}
	if err != nil {
		p.t.Error(err)
	}
	return flags &^ 2, body
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
