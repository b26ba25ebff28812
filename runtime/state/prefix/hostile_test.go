package prefix_test

import (
	"testing"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/wire"
)

// TestTwins: a hash that claims to be everywhere is kept in a few places only, since
// every search for it goes through them all.
func TestTwins(t *testing.T) {
	x := prefix.NewIndex(0)
	o := x.Attach("http://a", 0)
	hashes := make([]int64, wire.MaxHashes)
	for i := range hashes {
		hashes[i] = 7
	}
	o.Apply(&wire.Batch{Events: []wire.Event{
		{Kind: wire.Stored, Hashes: hashes, BlockSize: 1},
		{Kind: wire.Stored, Hashes: []int64{1, 2, 3}, BlockSize: 1},
	}})
	if s := x.Stats(); s.Blocks > 1000 || s.Dropped < wire.MaxHashes-1000 {
		t.Errorf("%+v", s)
	}
	if _, best := x.Match(nil, []int64{1, 2, 3}); best != 3 {
		t.Errorf("%d blocks of what came behind", best)
	}
	o.Apply(&wire.Batch{Events: []wire.Event{{Kind: wire.Removed, Hashes: []int64{7}}}})
	if s := x.Stats(); s.Blocks != 3 || s.Carried != 3 {
		t.Errorf("after the removal %+v", s)
	}
}

// TestClearsInOneBatch: only what follows the last clear of a batch counts, and the
// index is gone through once.
func TestClearsInOneBatch(t *testing.T) {
	x := prefix.NewIndex(0)
	other, o := x.Attach("http://b", 0), x.Attach("http://a", 0)
	store := func(hashes ...int64) wire.Event {
		return wire.Event{Kind: wire.Stored, Hashes: hashes, BlockSize: 1}
	}
	other.Apply(&wire.Batch{Events: []wire.Event{store(1, 2)}})
	o.Apply(&wire.Batch{Events: []wire.Event{store(1, 2, 3)}})
	clear := wire.Event{Kind: wire.Cleared}
	o.Apply(&wire.Batch{Events: []wire.Event{store(4), clear, store(5), clear, store(6, 7), {Kind: wire.Removed, Hashes: []int64{7}}}})
	f := func(address string, want int, hashes ...int64) {
		t.Helper()
		matches, _ := x.Match(nil, hashes)
		got := 0
		for _, m := range matches {
			if m.Address == address {
				got = m.Blocks
			}
		}
		if got != want {
			t.Errorf("%s holds %d of %v, want %d", address, got, hashes, want)
		}
	}
	f("http://a", 0, 1, 2, 3)
	f("http://a", 0, 4)
	f("http://a", 0, 5)
	f("http://a", 1, 6, 7)
	f("http://b", 2, 1, 2)
	if s := x.Stats(); s.Cleared != 1 || s.Blocks != 3 {
		t.Errorf("%+v", s)
	}
}
