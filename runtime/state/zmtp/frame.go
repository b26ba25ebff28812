package zmtp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Frame flags of ZMTP 3.0. All other bits are reserved and must be zero.
const (
	flagMore    = 1 << 0
	flagLong    = 1 << 1
	flagCommand = 1 << 2
)

// Defaults of Limits, and the step in which a frame's memory grows: a peer that
// announces much and sends little costs one step.
const (
	DefaultMaxMessage = 32 << 20
	DefaultMaxParts   = 16
	growStep          = 1 << 20
	keepBuffer        = 4 << 20
)

// Limits bounds what a peer may send. Zero fields take the defaults.
type Limits struct {
	// MaxMessage is the sum of the parts of one message, in bytes.
	MaxMessage int
	// MaxParts is the number of parts of one message.
	MaxParts int
}

func (l Limits) withDefaults() Limits {
	if l.MaxMessage <= 0 {
		l.MaxMessage = DefaultMaxMessage
	}
	if l.MaxParts <= 0 {
		l.MaxParts = DefaultMaxParts
	}
	return l
}

// reader splits a stream into frames and collects them into one buffer, which
// is used again for the next message.
type reader struct {
	src    *bufio.Reader
	limits Limits
	buf    []byte
	ends   []int
	parts  [][]byte
}

// header reads the flags and the announced length of a frame.
func (r *reader) header() (flags byte, size int, err error) {
	flags, err = r.src.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 {
		return 0, 0, fmt.Errorf("zmtp: frame flags %#02x are reserved", flags)
	}
	if flags&flagCommand != 0 && flags&flagMore != 0 {
		return 0, 0, fmt.Errorf("zmtp: a command frame has the more flag")
	}
	if flags&flagLong == 0 {
		n, err := r.src.ReadByte()
		return flags, int(n), unexpected(err)
	}
	var b [8]byte
	if _, err := io.ReadFull(r.src, b[:]); err != nil {
		return 0, 0, unexpected(err)
	}
	n := binary.BigEndian.Uint64(b[:])
	if n > uint64(r.limits.MaxMessage) {
		return 0, 0, fmt.Errorf("zmtp: a frame of %d bytes exceeds the limit of %d", n, r.limits.MaxMessage)
	}
	return flags, int(n), nil
}

// body appends the frame's bytes to the buffer.
func (r *reader) body(size int) error {
	if len(r.buf)+size > r.limits.MaxMessage {
		return fmt.Errorf("zmtp: a message exceeds the limit of %d bytes", r.limits.MaxMessage)
	}
	for size > 0 {
		n := min(size, growStep)
		at := len(r.buf)
		if cap(r.buf)-at < n {
			r.buf = append(r.buf, make([]byte, n)...)
		}
		r.buf = r.buf[:at+n]
		if _, err := io.ReadFull(r.src, r.buf[at:]); err != nil {
			return unexpected(err)
		}
		size -= n
	}
	return nil
}

// reset forgets the last message, and its memory if it was unusually large.
func (r *reader) reset() {
	if cap(r.buf) > keepBuffer {
		r.buf = nil
	}
	r.buf, r.ends, r.parts = r.buf[:0], r.ends[:0], r.parts[:0]
}

// collect cuts the buffer into the parts of the message.
func (r *reader) collect() [][]byte {
	from := 0
	for _, end := range r.ends {
		r.parts = append(r.parts, r.buf[from:end:end])
		from = end
	}
	return r.parts
}

// unexpected turns an end in the middle of a frame into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendFrame appends one frame to dst.
func appendFrame(dst []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		dst = append(dst, flags|flagLong)
		dst = binary.BigEndian.AppendUint64(dst, uint64(len(body)))
	} else {
		dst = append(dst, flags, byte(len(body)))
	}
	return append(dst, body...)
}
