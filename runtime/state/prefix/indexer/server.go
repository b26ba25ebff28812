package indexer

import (
	"context"
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/indexer/indexerpb"
)

// maxStreams is how many calls one connection may have open.
const maxStreams = 64

func connectParams() grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: 2 * time.Second,
	}
}

// Server answers prefix queries from an index. It takes no updates: its index
// follows the engines' events, as a router's does.
type Server struct {
	indexerpb.UnimplementedKVIndexerServer

	index *prefix.Index
	limit *Limit

	matched, empty, refused, invalid *metrics.Counter
}

// NewServer makes a server over an index. The limit bounds the queries it works
// on at a time; nil is a limit of DefaultInFlight. The set counts the queries.
func NewServer(x *prefix.Index, l *Limit, set *metrics.Set) *Server {
	if l == nil {
		l = NewLimit(0)
	}
	counter := func(outcome string) *metrics.Counter {
		return set.GetOrCreateCounter(fmt.Sprintf("shunt_index_queries_total{outcome=%q}", outcome))
	}
	return &Server{index: x, limit: l, matched: counter("matched"), empty: counter("empty"),
		refused: counter("overloaded"), invalid: counter("invalid")}
}

// GRPC is a gRPC server with the protocol's limits that serves s. The caller
// serves and stops it.
func (s *Server) GRPC(more ...grpc.ServerOption) *grpc.Server {
	g := grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage), grpc.MaxConcurrentStreams(maxStreams),
	}, more...)...)
	indexerpb.RegisterKVIndexerServer(g, s)
	return g
}

// MatchExternalKvPrefix answers one query.
func (s *Server) MatchExternalKvPrefix(ctx context.Context, req *indexerpb.MatchExternalKvPrefixRequest) (*indexerpb.MatchExternalKvPrefixResponse, error) {
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	hashes := req.GetHashes()
	if len(hashes) == 0 {
		s.invalid.Inc()
		return nil, status.Error(codes.InvalidArgument, "a query has no hashes")
	}
	if !s.limit.try() {
		s.refused.Inc()
		return nil, status.Error(codes.ResourceExhausted, "too many queries at a time")
	}
	defer s.limit.release()
	if n := int(req.GetMaxBlocks()); n > 0 && n < len(hashes) {
		hashes = hashes[:n]
	}
	matches, best := s.index.Match(nil, hashes)
	if best > 0 {
		s.matched.Inc()
	} else {
		s.empty.Inc()
	}
	res := &indexerpb.MatchExternalKvPrefixResponse{BestPrefixBlocks: uint32(best), BlocksRead: uint32(best)}
	for _, m := range matches {
		res.Matches = append(res.Matches, &indexerpb.ExternalKvPrefixMatch{
			WorkerAddress: m.Address, MatchedPrefixBlocks: uint32(m.Blocks), WorkerId: m.Address,
		})
	}
	return res, nil
}
