package indexer_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/indexer"
	"shunt/runtime/state/prefix/indexer/indexerpb"
	"shunt/runtime/state/prefix/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a gRPC server on a loopback port until the test ends.
func serve(t *testing.T, g *grpc.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		<-done
	})
	return "http://" + l.Addr().String()
}

func tokens(n int) []uint32 {
	t := make([]uint32, n)
	for i := range t {
		t[i] = uint32(i + 1)
	}
	return t
}

func client(t *testing.T, o indexer.Options) *indexer.Client {
	t.Helper()
	if o.Limit == nil {
		o.Limit = indexer.NewLimit(0)
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	o.Namespace = &prefix.Namespace{}
	o.Namespace.Propose("a", prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 4})
	c, err := indexer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRoundTrip(t *testing.T) {
	x := prefix.NewIndex(0)
	h := prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 4}
	for i, blocks := range []int{1, 3} {
		e := wire.Event{Kind: wire.Stored, Hashes: h.Append(nil, prefix.Prompt{Tokens: tokens(4 * blocks)})}
		x.Attach("http://10.0.0."+string(rune('1'+i))+":30000", 0).Apply(&wire.Batch{Events: []wire.Event{e}})
	}
	c := client(t, indexer.Options{Endpoints: []string{serve(t, indexer.NewServer(x, nil, metrics.NewSet()).GRPC())}})
	out, err := c.Lookup(t.Context(), prefix.Prompt{Tokens: tokens(17)})
	want := []prefix.Match{{Address: "http://10.0.0.2:30000", Blocks: 3}, {Address: "http://10.0.0.1:30000", Blocks: 1}}
	if err != nil || out.Status != prefix.Matched || out.Best != 3 || out.QueryBlocks != 5 || len(out.Matches) != 2 || out.Matches[0] != want[0] || out.Matches[1] != want[1] {
		t.Errorf("%+v, %v", out, err)
	}
	out, err = c.Lookup(t.Context(), prefix.Prompt{Tokens: []uint32{9, 9, 9, 9}})
	if err != nil || out.Status != prefix.Empty || out.QueryBlocks != 1 {
		t.Errorf("a prompt nobody holds: %+v, %v", out, err)
	}
	if out, err = c.Lookup(t.Context(), prefix.Prompt{}); err != nil || out.Reason != prefix.NoTokens {
		t.Errorf("no tokens: %+v, %v", out, err)
	}
}

// refusing is a server that fails as told, and counts.
type refusing struct {
	indexerpb.UnimplementedKVIndexerServer
	code  codes.Code
	delay time.Duration
	asked chan int
}

func (r *refusing) MatchExternalKvPrefix(ctx context.Context, req *indexerpb.MatchExternalKvPrefixRequest) (*indexerpb.MatchExternalKvPrefixResponse, error) {
	r.asked <- len(req.GetHashes())
	if r.delay > 0 {
		<-ctx.Done() // what a server says too late is the deadline, whoever notices first
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if r.code == codes.OK {
		return &indexerpb.MatchExternalKvPrefixResponse{}, nil
	}
	return nil, status.Error(r.code, "refused")
}

func refuse(t *testing.T, code codes.Code, delay time.Duration) (string, *refusing) {
	r := &refusing{code: code, delay: delay, asked: make(chan int, 100)}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(indexer.MaxMessage))
	indexerpb.RegisterKVIndexerServer(g, r)
	return serve(t, g), r
}

func TestErrorClasses(t *testing.T) {
	f := func(code codes.Code, reason string) {
		t.Helper()
		endpoint, _ := refuse(t, code, 0)
		out, err := client(t, indexer.Options{Endpoints: []string{endpoint}}).Lookup(t.Context(), prefix.Prompt{Tokens: tokens(4)})
		if reason == "" {
			if e, ok := errors.AsType[*prefix.InvalidError](err); !ok || e.Code != code.String() {
				t.Errorf("%s: %v", code, err)
			}
			return
		}
		if err != nil || out.Status != prefix.Unavailable || out.Reason != reason || out.QueryBlocks != 1 {
			t.Errorf("%s: %+v, %v", code, out, err)
		}
	}
	f(codes.Unavailable, prefix.Unreachable)
	f(codes.DeadlineExceeded, prefix.Timeout)
	f(codes.Canceled, prefix.Timeout)
	f(codes.ResourceExhausted, prefix.Overloaded)
	f(codes.OutOfRange, prefix.TooLarge)
	f(codes.InvalidArgument, "")
	f(codes.Internal, "")
	f(codes.Unimplemented, "")
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	l.Close()
	out, err := client(t, indexer.Options{Endpoints: []string{gone}}).Lookup(t.Context(), prefix.Prompt{Tokens: tokens(4)})
	if err != nil || out.Reason != prefix.Unreachable {
		t.Errorf("%+v, %v", out, err)
	}
	good, _ := refuse(t, codes.OK, 0)
	out, err = client(t, indexer.Options{Endpoints: []string{gone, good}}).Lookup(t.Context(), prefix.Prompt{Tokens: tokens(4)})
	if err != nil || out.Status != prefix.Empty {
		t.Errorf("second replica: %+v, %v", out, err)
	}
}

func TestDeadlineAndLimit(t *testing.T) {
	slow, _ := refuse(t, codes.Internal, time.Hour)
	good, _ := refuse(t, codes.OK, 0)
	out, err := client(t, indexer.Options{Endpoints: []string{slow}, Timeout: 50 * time.Millisecond}).Lookup(t.Context(), prefix.Prompt{Tokens: tokens(4)})
	if err != nil || out.Reason != prefix.Timeout {
		t.Errorf("deadline: %+v, %v", out, err)
	}
	out, err = client(t, indexer.Options{Endpoints: []string{slow, good}, Timeout: 2 * time.Second}).Lookup(t.Context(), prefix.Prompt{Tokens: tokens(4)})
	if err != nil || out.Status != prefix.Empty {
		t.Errorf("a slow replica before a good one: %+v, %v", out, err)
	}
	limit := indexer.NewLimit(1)
	hang, r := refuse(t, codes.Internal, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	first := client(t, indexer.Options{Endpoints: []string{hang}, Limit: limit})
	ended := make(chan error)
	go func() {
		_, err := first.Lookup(ctx, prefix.Prompt{Tokens: tokens(4)})
		ended <- err
	}()
	<-r.asked
	out, err = client(t, indexer.Options{Endpoints: []string{good}, Limit: limit}).Lookup(t.Context(), prefix.Prompt{Tokens: tokens(4)})
	if err != nil || out.Reason != prefix.Overloaded {
		t.Errorf("over the limit: %+v, %v", out, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's own cancellation: %v", err)
	}
}

func TestLongPromptIsCut(t *testing.T) {
	endpoint, r := refuse(t, codes.OK, 0)
	o := indexer.Options{Endpoints: []string{endpoint}, Limit: indexer.NewLimit(0), Namespace: &prefix.Namespace{}, Timeout: time.Minute}
	o.Namespace.Propose("a", prefix.Hashing{Scheme: prefix.SGLang, BlockSize: 1})
	c, err := indexer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out, err := c.Lookup(t.Context(), prefix.Prompt{Tokens: tokens(indexer.MaxHashes + 5)})
	if err != nil || out.QueryBlocks != indexer.MaxHashes+5 || <-r.asked != indexer.MaxHashes {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestEndpoints(t *testing.T) {
	f := func(endpoint, want string) {
		t.Helper()
		c, err := indexer.New(indexer.Options{Endpoints: []string{endpoint}, Limit: indexer.NewLimit(0), Namespace: &prefix.Namespace{}})
		switch {
		case err == nil && want == "":
			c.Close()
		case err == nil || want == "" || !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", endpoint, err, want)
		}
	}
	f("http://10.0.0.1:50051", "")
	f("https://index.example:443", "")
	f("unix:/run/index.sock", "")
	f("10.0.0.1:50051", "endpoint")
	f("http://10.0.0.1", "not scheme://host:port")
	f("ftp://10.0.0.1:1", "the scheme is http, https or unix")
	f("http://u:p@10.0.0.1:1", "not scheme://host:port")
	if _, err := indexer.New(indexer.Options{}); err == nil {
		t.Error("empty options were accepted")
	}
}

func TestServerRefusals(t *testing.T) {
	set := metrics.NewSet()
	x := prefix.NewIndex(0)
	x.Attach("http://a", 0).Apply(&wire.Batch{Events: []wire.Event{{Kind: wire.Stored, Hashes: []int64{1}, BlockSize: 1}}})
	s := indexer.NewServer(x, nil, set)
	_, err := s.MatchExternalKvPrefix(t.Context(), &indexerpb.MatchExternalKvPrefixRequest{})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("no hashes: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err = s.MatchExternalKvPrefix(ctx, &indexerpb.MatchExternalKvPrefixRequest{Hashes: []int64{1}})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("expired: %v", err)
	}
	for _, hash := range []int64{1, 2, 3} {
		if _, err = s.MatchExternalKvPrefix(t.Context(), &indexerpb.MatchExternalKvPrefixRequest{Hashes: []int64{hash}}); err != nil {
			t.Error(err)
		}
	}
	var text strings.Builder
	set.WritePrometheus(&text)
	for _, want := range []string{`outcome="matched"} 1`, `outcome="empty"} 2`, `outcome="invalid"} 1`, `outcome="overloaded"} 0`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, &text)
		}
	}
}
