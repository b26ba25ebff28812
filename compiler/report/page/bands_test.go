package page

import (
	"math"
	"testing"

	"shunt/schema/plan"
)

// maxInteger is the largest number of a plan.
const maxInteger = 1<<53 - 1

func bounded(low, high, room int64) plan.Bucket {
	b := plan.Bucket{ID: "b", Min: &low}
	if high < math.MaxInt64 {
		b.Max = &high
	}
	if room < math.MaxInt64 {
		b.MaxContextTokens = &room
	}
	return b
}

// TestScale: longer is never further left, bounds are on the axis, and doubling
// is the same distance everywhere.
func TestScale(t *testing.T) {
	for _, bounds := range [][2]int64{{1, 1}, {1, 2}, {4096, 131072}, {1000, 1 << 40}, {1 << 52, maxInteger}, {0, 0}} {
		m := &plan.Model{Buckets: []plan.Bucket{bounded(0, bounds[0], bounds[1])}}
		s := newScale(m)
		last := -1
		for n := int64(0); n < math.MaxInt64/3; n += 1 + n/7 {
			x := s.x(n)
			if x < last || x < labelWidth || s.left != labelWidth || x > drawingWidth-14 {
				t.Fatalf("%v: %d is at %d after %d", bounds, n, x, last)
			}
			last = x
		}
		if s.x(bounds[1]) >= drawingWidth-14 && bounds[1] < maxInteger {
			t.Errorf("%v: no room after the largest bound", bounds)
		}
		step := s.x(1<<(s.low+1)) - s.x(1<<s.low)
		for p := s.low + 1; p < s.high && p < 61; p++ {
			if d := s.x(1<<(p+1)) - s.x(1<<p) - step; d < -1 || d > 1 {
				t.Errorf("%v: step %d is %d wider", bounds, p, d)
			}
		}
	}
}

// TestBand: the parts of a band follow each other, and what has no end reaches
// the end.
func TestBand(t *testing.T) {
	s := newScale(&plan.Model{Buckets: []plan.Bucket{bounded(0, 4096, 8192)}})
	f := func(b plan.Bucket, open, roomOpen bool, sub string) {
		t.Helper()
		got := newBand(&b, s)
		if got.Open != open || got.RoomOpen != roomOpen || got.Sub != sub || got.X+got.Width != got.RoomX {
			t.Errorf("got %+v", got)
		}
		if end := got.RoomX + got.RoomWidth; (open || roomOpen) != (end == drawingWidth-14) {
			t.Errorf("ends at %d", end)
		}
	}
	const none = math.MaxInt64
	f(bounded(0, 4096, 8192), false, false, "to 4k in, 8k context")
	f(bounded(0, none, 8192), false, false, "to 8k in, 8k context")
	f(bounded(100, 4096, none), false, true, "100 to 4k")
	f(bounded(0, none, none), true, false, "any length")
	f(bounded(2048, none, none), true, false, "from 2k")
}

func TestNumbers(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(grouped(0), "0")
	f(grouped(999), "999")
	f(grouped(-1000), "-1,000")
	f(grouped(-100), "-100")
	f(grouped(1234567), "1,234,567")
	f(brief(4096), "4k")
	f(brief(1<<20), "1M")
	f(brief(4097), "4,097")
	f(words("a_ms", []byte("90000")), "90 s")
	f(words("a_ms", []byte("0")), "0 ms")
	f(words("max_body_bytes", []byte("33554432")), "32 MiB")
	f(words("x", []byte(`["a","b"]`)), "a, b")
	f(words("x", []byte(`[]`)), "none")
	f(words("x", []byte("0.25")), "0.25")
	f(words("admin", []byte(`""`)), "off")
	f(shortened("äöü", 2), "ä…")
}
