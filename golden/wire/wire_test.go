package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"shunt/runtime/fleet"
	"shunt/runtime/state/load"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/indexer"
	"shunt/runtime/state/prefix/indexer/indexerpb"
	"shunt/runtime/state/prefix/wire"
	"shunt/runtime/state/zmtp"
)

// read decodes a file of vectors strictly, so that a misspelt field is noticed.
func read[T any](t *testing.T, name string) T {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var v T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestEvents(t *testing.T) {
	type event struct {
		Kind      string  `json:"kind"`
		Hashes    []int64 `json:"hashes"`
		Parent    *int64  `json:"parent"`
		BlockSize int     `json:"block_size"`
		Medium    int     `json:"medium"`
	}
	type vector struct {
		Name, Payload string
		Rank          int
		Time          float64
		Events        []event
	}
	kinds := []string{"", "stored", "removed", "cleared"}
	for _, v := range read[[]vector](t, "events.json") {
		var b wire.Batch
		if err := b.Decode(unhex(t, v.Payload)); err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		same := b.Rank == v.Rank && b.Time == v.Time && len(b.Events) == len(v.Events)
		for i, e := range b.Events {
			w := v.Events[i]
			same = same && kinds[e.Kind] == w.Kind && slices.Equal(e.Hashes, w.Hashes) &&
				e.HasParent == (w.Parent != nil) && (w.Parent == nil || *w.Parent == e.Parent) &&
				e.BlockSize == w.BlockSize && int(e.Medium) == w.Medium
		}
		if !same {
			t.Errorf("%s: %+v", v.Name, b)
		}
	}
}

func TestHashes(t *testing.T) {
	type vector struct {
		Name, Scheme, Salt, LoRA, Seed string
		BlockSize                      int `json:"block_size"`
		Bigram                         bool
		Tokens                         []uint32
		Hashes                         []int64
	}
	for _, v := range read[[]vector](t, "hashes.json") {
		h := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: v.BlockSize, Bigram: v.Bigram, Seed: v.Seed}
		if v.Scheme == "vllm" {
			h.Scheme = prefix.VLLM
		}
		if got := h.Append(nil, prefix.Prompt{Tokens: v.Tokens, Salt: v.Salt, LoRA: v.LoRA}); !slices.Equal(got, v.Hashes) {
			t.Errorf("%s: %v, want %v", v.Name, got, v.Hashes)
		}
	}
}

func TestLoadReports(t *testing.T) {
	type vector struct {
		Name, Payload  string
		Counts, Native []uint64
	}
	for _, v := range read[[]vector](t, "loadstat.json") {
		r, err := load.DecodeStat(unhex(t, v.Payload))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		var native []uint64
		if x := r.Extension; x != nil {
			native = []uint64{x.WaitingUncached, x.Total, x.MaxRunning, x.PrefillTokens, x.PrefillBusyUS}
		}
		if !slices.Equal([]uint64{r.Running, r.Waiting, r.Used, r.Capacity}, v.Counts) || !slices.Equal(native, v.Native) {
			t.Errorf("%s: %+v", v.Name, r)
		}
	}
}

// TestQueueTime derives 20,000 tokens a second and 204.8 ms from two reports.
func TestQueueTime(t *testing.T) {
	f := new(fleet.Fleet)
	defer f.Close()
	if err := f.Apply("m", fleet.BreakerConfig{}, []fleet.Spec{{ID: "a", URL: "http://a", Role: fleet.Plain}}); err != nil {
		t.Fatal(err)
	}
	e, table := f.Engines("m")[0], new(load.Table)
	put := func(tokens, busy uint64) {
		table.Put(e, 0, load.Report{Capacity: 1, Extension: &load.Extension{
			WaitingUncached: 4096, MaxRunning: 1, PrefillTokens: tokens, PrefillBusyUS: busy,
		}}, time.Unix(1, 0))
	}
	put(10000, 2000000)
	put(30000, 3000000)
	if l := e.Load(); !l.HasQueue || l.QueueMS != 204.8 {
		t.Errorf("queue time %v", l.QueueMS)
	}
}

type indexerVectors struct {
	Request, Response, Apply string
	Framed                   string `json:"framed_request"`
}

func TestIndexerMessages(t *testing.T) {
	v := read[indexerVectors](t, "indexer.json")
	f := func(m proto.Message, want string) {
		t.Helper()
		got, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil || hex.EncodeToString(got) != want {
			t.Errorf("%x, %v; want %s", got, err, want)
		}
	}
	hashes := []int64{-3488128144981237669, 5674439469042975057}
	f(&indexerpb.MatchExternalKvPrefixRequest{Hashes: hashes}, v.Request)
	f(&indexerpb.MatchExternalKvPrefixResponse{
		Matches:          []*indexerpb.ExternalKvPrefixMatch{{WorkerAddress: "http://10.0.0.1:30000", MatchedPrefixBlocks: 2, WorkerId: "worker-0"}},
		BestPrefixBlocks: 2, BlocksRead: 2,
	}, v.Response)
	f(&indexerpb.ApplyExternalKvBatchRequest{
		WorkerId: "worker-0", Seq: 7, WorkerAddress: "http://10.0.0.1:30000",
		Actions: []*indexerpb.ExternalKvAction{{
			Type:   indexerpb.ExternalKvActionType_EXTERNAL_KV_ACTION_TYPE_REPORT,
			Tier:   indexerpb.ExternalKvTier_EXTERNAL_KV_TIER_HBM,
			Hashes: hashes,
		}},
	}, v.Apply)
}

// TestIndexerOnTheWire lets the client call a plain HTTP/2 handler, which sees
// the framed request byte for byte and answers with the vector's response.
func TestIndexerOnTheWire(t *testing.T) {
	v := read[indexerVectors](t, "indexer.json")
	var path, body, timeout string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		path, body, timeout = r.URL.Path, hex.EncodeToString(raw), r.Header.Get("Grpc-Timeout")
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		answer := unhex(t, v.Response)
		_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(answer))}, answer...))
		w.Header().Set("Grpc-Status", "0")
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	n := new(prefix.Namespace)
	n.Propose("a", prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 4})
	c, err := indexer.New(indexer.Options{Endpoints: []string{s.URL}, Limit: indexer.NewLimit(0), Namespace: n, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out, err := c.Lookup(t.Context(), prefix.Prompt{Tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8}})
	if err != nil || out.Best != 2 || len(out.Matches) != 1 || out.Matches[0] != (prefix.Match{Address: "http://10.0.0.1:30000", Blocks: 2}) {
		t.Errorf("%+v, %v", out, err)
	}
	if path != "/kv_indexer.v1.KVIndexer/MatchExternalKvPrefix" || body != v.Framed || timeout == "" {
		t.Errorf("path %s, body %s, deadline %q", path, body, timeout)
	}
}

// TestReplayRequest compares the frames of a replay request, after the
// handshake, with the vector.
func TestReplayRequest(t *testing.T) {
	v := read[struct {
		Sequences []struct {
			Number int64
			Frame  string
		}
		Replay []string `json:"replay_from_1"`
	}](t, "frames.json")
	for _, s := range v.Sequences {
		var n int64
		for _, b := range unhex(t, s.Frame) {
			n = n<<8 | int64(b)
		}
		if n != s.Number {
			t.Errorf("frame %s is %d, want %d", s.Frame, n, s.Number)
		}
	}
	ours, theirs := net.Pipe()
	got := make(chan []byte, 1)
	go func() {
		g := make([]byte, 64)
		g[0], g[9], g[10] = 0xFF, 0x7F, 3
		copy(g[12:], "NULL")
		in := bufio.NewReader(theirs)
		_, _ = io.ReadFull(in, make([]byte, 64))
		_, _ = theirs.Write(g)
		head, _ := in.Peek(2)
		if len(head) == 2 {
			_, _ = in.Discard(2 + int(head[1]))
		}
		_, _ = theirs.Write(append([]byte{4, 28}, "\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"...))
		rest := make([]byte, 12)
		_, _ = io.ReadFull(in, rest)
		got <- rest
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := zmtp.Dial(ctx, zmtp.DEALER, "", zmtp.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer theirs.Close()
	if err := c.Send(unhex(t, v.Replay[0]), unhex(t, v.Replay[1])); err != nil {
		t.Fatal(err)
	}
	want := append([]byte{1, 0, 0, 8}, unhex(t, v.Replay[1])...)
	if rest := <-got; !bytes.Equal(rest, want) {
		t.Errorf("frames %x, want %x", rest, want)
	}
}
