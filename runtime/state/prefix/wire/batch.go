package wire

import (
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// Caps on what one message may announce. The first two are those of the
// reference reader; the others bound the memory of one batch.
const (
	MaxHashes      = 65536
	MaxTokens      = 1048576
	MaxEvents      = 65536
	MaxBatchHashes = 1 << 20
)

// Kind is what happened to blocks.
type Kind uint8

// The kinds of events.
const (
	Stored Kind = iota + 1
	Removed
	Cleared
)

// Medium is where a block lies. Engines that name none mean the device.
type Medium uint8

// The media. Unknown is a name that no engine we know uses.
const (
	None Medium = iota
	Device
	Host
	Disk
	External
	Unknown
)

// Event is one event of a batch.
type Event struct {
	Kind   Kind
	Medium Medium
	// Hashes are the blocks. Those of Stored form a chain: each is the child of
	// the one before it.
	Hashes []int64
	// Parent is the parent of the first stored block, if HasParent; a chain
	// without one begins a prompt.
	Parent    int64
	HasParent bool
	// BlockSize is the number of tokens in each stored block.
	BlockSize int
	// Group is the KV cache group; 0 where the engine has one or names none.
	Group int
}

// Batch is one decoded message. Its memory is reused by the next Decode.
type Batch struct {
	// Time is the engine's clock at publication, seconds since the epoch.
	Time float64
	// Rank is what the publisher says about itself, -1 for nothing. The socket
	// is the identity; this is for logs.
	Rank   int
	Events []Event

	hashes []int64
}

// Blocks counts the block hashes of all events.
func (b *Batch) Blocks() int { return len(b.hashes) }

// Size is about how many bytes the batch occupies.
func (b *Batch) Size() int { return 64 + 64*cap(b.Events) + 8*cap(b.hashes) }

// Decode replaces the batch by the content of a payload. On an error the batch
// is not to be used: its events may be incomplete.
func (b *Batch) Decode(payload []byte) error {
	b.Time, b.Rank = 0, -1
	b.Events, b.hashes = b.Events[:0], b.hashes[:0]
	var err error
	switch kind := msgp.NextType(payload); kind {
	case msgp.ArrayType:
		payload, err = b.decodeArray(payload)
	case msgp.MapType:
		payload, err = b.decodeMap(payload)
	default:
		return fmt.Errorf("kv events: a batch is an array or a map, not %s", kind)
	}
	if err != nil {
		return fmt.Errorf("kv events: %w", err)
	}
	if len(payload) > 0 {
		return fmt.Errorf("kv events: %d bytes after the batch", len(payload))
	}
	return nil
}

// decodeArray reads [time, events, rank, ...].
func (b *Batch) decodeArray(p []byte) ([]byte, error) {
	n, p, err := msgp.ReadArrayHeaderBytes(p)
	if err != nil {
		return p, err
	}
	if n < 2 {
		return p, fmt.Errorf("a batch of %d elements has no events", n)
	}
	if p, err = b.readTime(p); err != nil {
		return p, err
	}
	if p, err = b.readEvents(p); err != nil {
		return p, err
	}
	if n > 2 {
		if p, err = b.readRank(p); err != nil {
			return p, err
		}
	}
	return skipN(p, n-min(n, 3))
}

// decodeMap reads {"ts", "events", "data_parallel_rank" or "attn_dp_rank"}.
func (b *Batch) decodeMap(p []byte) ([]byte, error) {
	n, p, err := msgp.ReadMapHeaderBytes(p)
	if err != nil {
		return p, err
	}
	found := false
	for range n {
		var key []byte
		if key, p, err = msgp.ReadStringZC(p); err != nil {
			return p, err
		}
		switch string(key) {
		case "ts":
			p, err = b.readTime(p)
		case "events":
			if found {
				return p, fmt.Errorf("a batch has its events twice")
			}
			found = true
			p, err = b.readEvents(p)
		case "data_parallel_rank", "attn_dp_rank":
			p, err = b.readRank(p)
		default:
			p, err = msgp.Skip(p)
		}
		if err != nil {
			return p, err
		}
	}
	if !found {
		return p, fmt.Errorf("a batch has no events")
	}
	return p, nil
}

func (b *Batch) readTime(p []byte) ([]byte, error) {
	var err error
	switch msgp.NextType(p) {
	case msgp.Float64Type, msgp.Float32Type:
		b.Time, p, err = msgp.ReadFloat64Bytes(p)
	default:
		var n int64
		n, p, err = msgp.ReadInt64Bytes(p)
		b.Time = float64(n)
	}
	if err != nil {
		return p, fmt.Errorf("time: %w", err)
	}
	if math.IsNaN(b.Time) || math.IsInf(b.Time, 0) {
		return p, fmt.Errorf("time is not finite")
	}
	return p, nil
}

func (b *Batch) readRank(p []byte) ([]byte, error) {
	if msgp.IsNil(p) {
		return msgp.ReadNilBytes(p)
	}
	n, p, err := msgp.ReadInt32Bytes(p)
	if err != nil {
		return p, fmt.Errorf("rank: %w", err)
	}
	b.Rank = int(n)
	return p, nil
}

func (b *Batch) readEvents(p []byte) ([]byte, error) {
	n, p, err := msgp.ReadArrayHeaderBytes(p)
	if err != nil {
		return p, fmt.Errorf("events: %w", err)
	}
	// An event takes two bytes at least, so the length bounds the count, too.
	if n > MaxEvents || int(n) > len(p)/2 {
		return p, fmt.Errorf("events: %d announced, %d bytes follow, at most %d are taken", n, len(p), MaxEvents)
	}
	for i := range n {
		var e Event
		if p, err = b.readEvent(p, &e); err != nil {
			return p, fmt.Errorf("event %d: %w", i, err)
		}
		b.Events = append(b.Events, e)
	}
	return p, nil
}

// skipN steps over n values.
func skipN(p []byte, n uint32) ([]byte, error) {
	var err error
	for ; n > 0; n-- {
		if p, err = msgp.Skip(p); err != nil {
			return p, err
		}
	}
	return p, nil
}
