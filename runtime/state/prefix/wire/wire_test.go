package wire_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"shunt/runtime/state/prefix/wire"
)

// show writes a batch as one line, so that cases compare as text.
func show(b *wire.Batch) string {
	var s []string
	for _, e := range b.Events {
		switch e.Kind {
		case wire.Stored:
			parent := "root"
			if e.HasParent {
				parent = fmt.Sprint(e.Parent)
			}
			s = append(s, fmt.Sprintf("store %v under %s size %d medium %d group %d", e.Hashes, parent, e.BlockSize, e.Medium, e.Group))
		case wire.Removed:
			s = append(s, fmt.Sprintf("remove %v medium %d group %d", e.Hashes, e.Medium, e.Group))
		case wire.Cleared:
			s = append(s, "clear")
		}
	}
	return fmt.Sprintf("%g rank %d: %s", b.Time, b.Rank, strings.Join(s, "; "))
}

// batch wraps events, given as msgpack, into a batch array.
func batch(events ...[]byte) []byte {
	p := msgp.AppendArrayHeader(nil, 3)
	p = msgp.AppendFloat64(p, 1.5)
	p = msgp.AppendArrayHeader(p, uint32(len(events)))
	for _, e := range events {
		p = append(p, e...)
	}
	return msgp.AppendInt(p, 0)
}

// value appends strings, integers, nil and lists of them as msgpack.
func value(p []byte, v any) []byte {
	switch v := v.(type) {
	case list:
		p = msgp.AppendArrayHeader(p, uint32(len(v)))
		for _, x := range v {
			p = value(p, x)
		}
		return p
	case fields:
		p = msgp.AppendMapHeader(p, uint32(len(v)/2))
		for _, x := range v {
			p = value(p, x)
		}
		return p
	}
	p, err := msgp.AppendIntf(p, v)
	if err != nil {
		panic(err)
	}
	return p
}

type list []any

// fields are the keys and values of a map in turn, so that the order is fixed
// and a key may be repeated.
type fields []any

func pack(v any) []byte { return value(nil, v) }

func TestForms(t *testing.T) {
	f := func(payload []byte, want string) {
		t.Helper()
		var b wire.Batch
		if err := b.Decode(payload); err != nil {
			t.Errorf("%x: %v", payload, err)
		} else if got := show(&b); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	id := make([]byte, 32)
	id[31] = 7
	f(batch(), "1.5 rank 0: ")
	f(pack(list{2, list{}}), "2 rank -1: ")
	f(pack(list{2.0, list{}, nil, "more", list{1}}), "2 rank -1: ")
	f(pack(fields{"type", "KVEventBatch", "events", list{list{"AllBlocksCleared"}}, "ts", 3.0, "data_parallel_rank", 4}), "3 rank 4: clear")
	f(batch(pack(list{"BlockStored", list{1, uint64(math.MaxUint64), id}, nil, list{5}, 1})),
		"1.5 rank 0: store [1 -1 7] under root size 1 medium 0 group 0")
	f(batch(pack(list{"BlockStored", list{1}, -5, list{5}, 1, nil, "GPU", fields{"cache_salt", "x"}})),
		"1.5 rank 0: store [1] under -5 size 1 medium 1 group 0")
	f(batch(pack(list{"BlockRemoved", list{1}}), pack(list{"BlockRemoved", list{}, "DISK"})),
		"1.5 rank 0: remove [1] medium 0 group 0; remove [] medium 3 group 0")
	// Keys in any order, unknown ones skipped, tokens as pairs.
	f(batch(pack(fields{"block_size", 2, "later", fields{"a", list{nil}}, "token_ids", list{list{1, 2}, list{300, 70000}}, "block_hashes", list{9}, "type", "BlockStored", "group_idx", 1, "medium", "STORAGE"})),
		"1.5 rank 0: store [9] under root size 2 medium 3 group 1")
	f(batch(pack(fields{"type", "BlockRemoved", "block_hashes", list{9}, "medium", "TAPE"})),
		"1.5 rank 0: remove [9] medium 5 group 0")
}

func TestRefusals(t *testing.T) {
	f := func(payload []byte, want string) {
		t.Helper()
		var b wire.Batch
		if err := b.Decode(payload); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: error %v, want %q", payload[:min(len(payload), 60)], err, want)
		}
	}
	announce := func(key string, header []byte) []byte {
		e := msgp.AppendMapHeader(nil, 2)
		e = msgp.AppendString(msgp.AppendString(e, "type"), "BlockStored")
		return batch(append(msgp.AppendString(e, key), header...))
	}
	f(nil, "a batch is an array or a map")
	f(pack(list{1.0}), "has no events")
	f(pack(fields{"ts", 1.0}), "has no events")
	f(pack(fields{"events", list{}, "events", list{}}), "events twice")
	f(pack(list{math.NaN(), list{}}), "not finite")
	f(append(batch(), 0), "1 bytes after the batch")
	f(batch(pack(list{})), "no tag")
	f(batch(pack("x")), "an event is a map or an array")
	f(batch(pack(list{"BlockMoved", 1})), `unknown kind of event "BlockMoved"`)
	f(batch(pack(fields{"block_hashes", list{1}})), "missing: type")
	f(batch(pack(fields{"type", "BlockRemoved"})), "missing: block_hashes")
	f(batch(pack(fields{"type", "BlockStored", "block_hashes", list{1}, "block_size", 4})), "missing: token_ids")
	f(batch(pack(list{"BlockStored", list{1}, nil, list{}})), "missing: block_size")
	f(batch(pack(fields{"type", "BlockRemoved", "block_hashes", list{1}, "block_hashes", list{2}})), "appears twice")
	f(batch(pack(list{"BlockRemoved", list{"x"}})), "a hash is an integer or bytes")
	f(batch(pack(list{"BlockRemoved", list{[]byte("short")}})), "too short")
	f(batch(pack(list{"BlockStored", list{1}, nil, list{1}, -1})), "block_size")
	f(batch(pack(list{"BlockStored", list{1}, nil, list{list{1, 2, 3}}, 1})), "a token of 3 parts")
	f(batch(pack(list{"BlockStored", list{1}, nil, list{"x"}, 1})), "a token is an integer")
	f(announce("block_hashes", msgp.AppendArrayHeader(nil, wire.MaxHashes+1)), "65537 hashes announced")
	f(announce("token_ids", msgp.AppendArrayHeader(nil, wire.MaxTokens+1)), "1048577 tokens announced")
	f(announce("block_hashes", msgp.AppendArrayHeader(nil, wire.MaxHashes)), "too few bytes")
	f([]byte{0x92, 0, 0xdd, 0xff, 0xff, 0xff, 0xff}, "4294967295 announced")
}

// TestBatchCap sends many events of the largest size in one message.
func TestBatchCap(t *testing.T) {
	hashes := msgp.AppendArrayHeader(nil, wire.MaxHashes)
	hashes = append(hashes, make([]byte, wire.MaxHashes)...)
	e := append(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "BlockRemoved"), hashes...)
	var b wire.Batch
	if err := b.Decode(batch(slices.Repeat([][]byte{e}, 16)...)); err != nil || b.Blocks() != wire.MaxBatchHashes {
		t.Errorf("%d blocks, %v", b.Blocks(), err)
	}
	if err := b.Decode(batch(slices.Repeat([][]byte{e}, 17)...)); err == nil {
		t.Error("more hashes than the cap were taken")
	}
}

// stored is a batch of n events of one block with 64 tokens each.
func stored(n int) []byte {
	events := make([][]byte, n)
	tokens := make(list, 64)
	for i := range tokens {
		tokens[i] = uint32(1000 + 37*i)
	}
	for i := range events {
		h := int64(uint64(i+1) * 0x9E3779B97F4A7C15)
		events[i] = pack(fields{"type", "BlockStored", "block_hashes", list{h}, "parent_block_hash", h - 1,
			"token_ids", tokens, "block_size", uint8(64), "lora_id", nil, "medium", "GPU"})
	}
	return batch(events...)
}

func TestDecodeReusesMemory(t *testing.T) {
	payload := stored(100)
	var b wire.Batch
	if err := b.Decode(payload); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(20, func() { _ = b.Decode(payload) }); n != 0 {
		t.Errorf("%v allocations on the second decode", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	payload := stored(256)
	var x wire.Batch
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		if err := x.Decode(payload); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/block")
}

// FuzzDecode looks for panics, for counts above the caps, and for a decode that
// depends on what was decoded before.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"93cb3ff80000000000009187a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392d3cf97adeedb59e05bcf4ebfa8a1f3c34151b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da347505500",
		"93cb3ff80000000000009197ab426c6f636b53746f72656492d3cf97adeedb59e05bcf4ebfa8a1f3c34151c098010203040506070804c0a347505500",
		"93cb3ff80000000000009181a474797065b0416c6c426c6f636b73436c656172656400",
	} {
		raw, err := hex.DecodeString(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add(stored(3))
	used := &wire.Batch{}
	if err := used.Decode(stored(5)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var fresh wire.Batch
		err := fresh.Decode(p)
		if again := used.Decode(p); (err == nil) != (again == nil) {
			t.Fatalf("fresh: %v, reused: %v", err, again)
		}
		if err != nil {
			return
		}
		if show(&fresh) != show(used) {
			t.Fatalf("fresh %s\nreused %s", show(&fresh), show(used))
		}
		for _, e := range fresh.Events {
			if len(e.Hashes) > wire.MaxHashes || e.Kind == 0 {
				t.Fatalf("event %+v", e)
			}
		}
	})
}
