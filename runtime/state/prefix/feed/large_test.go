package feed

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"github.com/tinylib/msgp/msgp"

	"shunt/runtime/state/prefix"
)

// TestLargeBatchesWait: of batches that fill megabytes only a few wait for the index,
// and they do not hold the others up.
func TestLargeBatchesWait(t *testing.T) {
	f := New(Options{Model: "m", Namespace: new(prefix.Namespace), Metrics: metrics.NewSet(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	r := &rank{x: &following{f: f}, seed: maphash.MakeSeed()}
	payload := func(hashes int) []byte {
		b := msgp.AppendArrayHeader(nil, 2)
		b = msgp.AppendFloat64(b, 1)
		b = msgp.AppendArrayHeader(b, uint32(hashes/50_000+1))
		for n := hashes; n >= 0; n -= 50_000 {
			b = msgp.AppendArrayHeader(b, 2)
			b = msgp.AppendString(b, "BlockRemoved")
			b = msgp.AppendArrayHeader(b, uint32(min(n, 50_000)))
			for range min(n, 50_000) {
				b = msgp.AppendInt64(b, 1)
			}
		}
		return b
	}
	large, small := payload(200_000), payload(1)
	for n := range int64(mostLarge) {
		if err := r.forward(t.Context(), n, large); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.forward(ended, mostLarge, large); !errors.Is(err, context.Canceled) {
		t.Errorf("one more large batch: %v", err)
	}
	if err := r.forward(t.Context(), mostLarge, small); err != nil {
		t.Errorf("a small batch: %v", err)
	}
	if len(f.queue) != mostLarge+1 || len(f.free) != cap(f.free)-len(f.queue) {
		t.Errorf("%d wait, %d are free", len(f.queue), len(f.free))
	}
	apply, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.apply(apply)
	}()
	if err := r.forward(t.Context(), mostLarge+1, large); err != nil {
		t.Error(err)
	}
	stop()
	<-done
}
