package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// field bits say which required fields an event had.
const (
	hasTag = 1 << iota
	hasHashes
	hasTokens
	hasBlockSize
)

func (b *Batch) readEvent(p []byte, e *Event) ([]byte, error) {
	switch kind := msgp.NextType(p); kind {
	case msgp.MapType:
		return b.readEventMap(p, e)
	case msgp.ArrayType:
		return b.readEventArray(p, e)
	default:
		return p, fmt.Errorf("an event is a map or an array, not %s", kind)
	}
}

// readEventMap takes the keys in any order, and skips those it does not know.
func (b *Batch) readEventMap(p []byte, e *Event) ([]byte, error) {
	n, p, err := msgp.ReadMapHeaderBytes(p)
	if err != nil {
		return p, err
	}
	seen := 0
	for range n {
		var key []byte
		if key, p, err = msgp.ReadStringZC(p); err != nil {
			return p, err
		}
		var bit int
		if bit, p, err = b.readField(string(key), p, e); err != nil {
			return p, fmt.Errorf("%s: %w", key[:min(len(key), 40)], err)
		}
		if bit != 0 && seen&bit != 0 {
			return p, fmt.Errorf("%s appears twice", key)
		}
		seen |= bit
	}
	return p, e.complete(seen)
}

func (b *Batch) readField(key string, p []byte, e *Event) (bit int, rest []byte, err error) {
	switch key {
	case "type":
		p, err = readTag(p, e)
		return hasTag, p, err
	case "block_hashes":
		p, err = b.readHashes(p, e)
		return hasHashes, p, err
	case "parent_block_hash":
		p, err = readParent(p, e)
	case "token_ids":
		p, err = skipTokens(p)
		return hasTokens, p, err
	case "block_size":
		p, err = readBlockSize(p, e)
		return hasBlockSize, p, err
	case "medium":
		p, err = readMedium(p, e)
	case "group_idx":
		p, err = readGroup(p, e)
	default:
		p, err = msgp.Skip(p)
	}
	return 0, p, err
}

// readEventArray reads the positional form. Of Stored it knows the first seven
// elements; position eight had two meanings, so it and what follows is skipped.
func (b *Batch) readEventArray(p []byte, e *Event) ([]byte, error) {
	n, p, err := msgp.ReadArrayHeaderBytes(p)
	if err != nil {
		return p, err
	}
	if n == 0 {
		return p, fmt.Errorf("an event has no tag")
	}
	if p, err = readTag(p, e); err != nil {
		return p, err
	}
	seen, keys := hasTag, e.Kind.positions()
	used := min(n-1, uint32(len(keys)))
	for _, key := range keys[:used] {
		var bit int
		if bit, p, err = b.readField(key, p, e); err != nil {
			return p, fmt.Errorf("%s: %w", key, err)
		}
		seen |= bit
	}
	if p, err = skipN(p, n-1-used); err != nil {
		return p, err
	}
	return p, e.complete(seen)
}

// positions names the elements after the tag.
func (k Kind) positions() []string {
	switch k {
	case Stored:
		return []string{"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium"}
	case Removed:
		return []string{"block_hashes", "medium"}
	}
	return nil
}

// complete demands the required fields of the event's kind.
func (e *Event) complete(seen int) error {
	need := hasTag
	switch e.Kind {
	case Stored:
		need |= hasHashes | hasTokens | hasBlockSize
	case Removed:
		need |= hasHashes
	case Cleared:
	}
	if missing := need &^ seen; missing != 0 {
		return fmt.Errorf("a required field is missing: %s", fieldName(missing))
	}
	return nil
}

func fieldName(bits int) string {
	switch {
	case bits&hasTag != 0:
		return "type"
	case bits&hasHashes != 0:
		return "block_hashes"
	case bits&hasTokens != 0:
		return "token_ids"
	}
	return "block_size"
}

func readTag(p []byte, e *Event) ([]byte, error) {
	tag, p, err := msgp.ReadStringZC(p)
	if err != nil {
		return p, err
	}
	switch string(tag) {
	case "BlockStored":
		e.Kind = Stored
	case "BlockRemoved":
		e.Kind = Removed
	case "AllBlocksCleared":
		e.Kind = Cleared
	default:
		return p, fmt.Errorf("unknown kind of event %q", tag[:min(len(tag), 40)])
	}
	return p, nil
}

func (b *Batch) readHashes(p []byte, e *Event) ([]byte, error) {
	n, p, err := msgp.ReadArrayHeaderBytes(p)
	if err != nil {
		return p, err
	}
	switch {
	case n > MaxHashes:
		return p, fmt.Errorf("%d hashes announced, at most %d are taken", n, MaxHashes)
	case int(n) > len(p):
		return p, msgp.ErrShortBytes
	case len(b.hashes)+int(n) > MaxBatchHashes:
		return p, fmt.Errorf("the batch has more than %d hashes", MaxBatchHashes)
	}
	from := len(b.hashes)
	for range n {
		var h int64
		if h, p, err = readHash(p); err != nil {
			return p, err
		}
		b.hashes = append(b.hashes, h)
	}
	e.Hashes = b.hashes[from:len(b.hashes):len(b.hashes)]
	return p, nil
}

// Lead bytes of the integer forms that hashes have almost always.
const (
	leadUint64 = 0xcf
	leadInt64  = 0xd3
)

// readHash takes signed and unsigned integers by their bits, and of byte
// strings the last eight.
func readHash(p []byte) (int64, []byte, error) {
	if len(p) >= 9 && (p[0] == leadUint64 || p[0] == leadInt64) {
		return int64(binary.BigEndian.Uint64(p[1:])), p[9:], nil
	}
	switch kind := msgp.NextType(p); kind {
	case msgp.IntType:
		return msgp.ReadInt64Bytes(p)
	case msgp.UintType:
		n, p, err := msgp.ReadUint64Bytes(p)
		return int64(n), p, err
	case msgp.BinType:
		raw, p, err := msgp.ReadBytesZC(p)
		if err != nil {
			return 0, p, err
		}
		if len(raw) < 8 {
			return 0, p, fmt.Errorf("a hash of %d bytes is too short", len(raw))
		}
		return int64(binary.BigEndian.Uint64(raw[len(raw)-8:])), p, nil
	default:
		return 0, p, fmt.Errorf("a hash is an integer or bytes, not %s", kind)
	}
}

func readParent(p []byte, e *Event) ([]byte, error) {
	if msgp.IsNil(p) {
		return msgp.ReadNilBytes(p)
	}
	h, p, err := readHash(p)
	e.Parent, e.HasParent = h, err == nil
	return p, err
}

func readBlockSize(p []byte, e *Event) ([]byte, error) {
	n, p, err := msgp.ReadUint64Bytes(p)
	if err != nil {
		return p, err
	}
	if n > math.MaxInt32 {
		return p, fmt.Errorf("%d tokens in a block are too many", n)
	}
	e.BlockSize = int(n)
	return p, nil
}

func readMedium(p []byte, e *Event) ([]byte, error) {
	if msgp.IsNil(p) {
		return msgp.ReadNilBytes(p)
	}
	s, p, err := msgp.ReadStringZC(p)
	if err != nil {
		return p, err
	}
	switch string(s) {
	case "GPU":
		e.Medium = Device
	case "CPU_PINNED", "CPU":
		e.Medium = Host
	case "DISK", "STORAGE":
		e.Medium = Disk
	case "EXTERNAL":
		e.Medium = External
	default:
		e.Medium = Unknown
	}
	return p, nil
}

func readGroup(p []byte, e *Event) ([]byte, error) {
	if msgp.IsNil(p) {
		return msgp.ReadNilBytes(p)
	}
	n, p, err := msgp.ReadInt32Bytes(p)
	e.Group = int(n)
	return p, err
}

// skipTokens steps over the token ids, which are informational: integers, or
// pairs of them. It is the bulk of every message, so the plain forms are stepped
// over by their lead byte alone.
func skipTokens(p []byte) ([]byte, error) {
	n, p, err := msgp.ReadArrayHeaderBytes(p)
	if err != nil {
		return p, err
	}
	if n > MaxTokens {
		return p, fmt.Errorf("%d tokens announced, at most %d are taken", n, MaxTokens)
	}
	for range n {
		if len(p) == 0 {
			return p, msgp.ErrShortBytes
		}
		size := uintSize(p[0])
		if size == 0 {
			if p, err = skipPair(p); err != nil {
				return p, err
			}
			continue
		}
		if len(p) < size {
			return p, msgp.ErrShortBytes
		}
		p = p[size:]
	}
	return p, nil
}

// uintSize is the length of an unsigned integer up to 32 bits, by its lead
// byte; 0 for anything else.
func uintSize(lead byte) int {
	switch {
	case lead < 0x80:
		return 1
	case lead == 0xcd:
		return 3
	case lead == 0xce:
		return 5
	case lead == 0xcc:
		return 2
	}
	return 0
}

// skipPair steps over an integer of an unusual form or a pair of integers.
func skipPair(p []byte) ([]byte, error) {
	switch kind := msgp.NextType(p); kind {
	case msgp.IntType, msgp.UintType:
		return msgp.Skip(p)
	case msgp.ArrayType:
		n, p, err := msgp.ReadArrayHeaderBytes(p)
		if err != nil {
			return p, err
		}
		if n != 2 {
			return p, fmt.Errorf("a token of %d parts; pairs are the only composed ones", n)
		}
		for range n {
			if k := msgp.NextType(p); k != msgp.IntType && k != msgp.UintType {
				return p, fmt.Errorf("a pair of tokens holds %s", k)
			}
			if p, err = msgp.Skip(p); err != nil {
				return p, err
			}
		}
		return p, nil
	default:
		return p, fmt.Errorf("a token is an integer or a pair, not %s", kind)
	}
}
