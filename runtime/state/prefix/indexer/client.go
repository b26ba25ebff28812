package indexer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/indexer/indexerpb"
)

// Defaults of Options, and limits of the protocol.
const (
	DefaultTimeout  = 100 * time.Millisecond
	DefaultInFlight = 32
	// MaxMessage is the largest message either side takes, in bytes.
	MaxMessage = 8 << 20
	// MaxHashes is how many hashes fit into a query; longer ones are cut, and keep
	// their length as the divisor of ratios.
	MaxHashes = (MaxMessage - 16) / 8
)

// Limit bounds the queries in flight. All clients of a process share one.
type Limit struct{ slots chan struct{} }

// NewLimit admits n queries at a time; 0 or less is DefaultInFlight.
func NewLimit(n int) *Limit {
	if n <= 0 {
		n = DefaultInFlight
	}
	return &Limit{slots: make(chan struct{}, n)}
}

// try takes a slot if one is free. It never waits.
func (l *Limit) try() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *Limit) release() { <-l.slots }

// Options configures a client.
type Options struct {
	// Endpoints are tried in turn when one does not answer: http://host:port,
	// https://host:port or unix:path. At least one is required.
	Endpoints []string
	// Timeout is the deadline of one query over all endpoints; 0 is DefaultTimeout.
	Timeout time.Duration
	// Limit is the process-wide bound. Required.
	Limit *Limit
	// Namespace tells how prompts are hashed. Required.
	Namespace *prefix.Namespace
	// Digests may be nil.
	Digests *prefix.Digests
	// TLS is for https endpoints; nil is the default configuration.
	TLS *tls.Config
}

// Client asks a remote index.
type Client struct {
	options Options
	replica []replica
}

type replica struct {
	conn *grpc.ClientConn
	api  indexerpb.KVIndexerClient
}

var _ prefix.Source = (*Client)(nil)

// New makes a client. It does not connect: that happens with the first query.
func New(o Options) (*Client, error) {
	if len(o.Endpoints) == 0 || o.Limit == nil || o.Namespace == nil {
		return nil, errors.New("indexer: endpoints, limit and namespace are required")
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	c := &Client{options: o}
	for _, e := range o.Endpoints {
		conn, err := dial(e, o.TLS)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.replica = append(c.replica, replica{conn: conn, api: indexerpb.NewKVIndexerClient(conn)})
	}
	return c, nil
}

// Close drops the connections.
func (c *Client) Close() error {
	var errs []error
	for _, r := range c.replica {
		errs = append(errs, r.conn.Close())
	}
	return errors.Join(errs...)
}

func dial(endpoint string, conf *tls.Config) (*grpc.ClientConn, error) {
	target, creds := endpoint, insecure.NewCredentials()
	if !strings.HasPrefix(endpoint, "unix:") {
		u, err := url.Parse(endpoint)
		if err != nil {
			return nil, fmt.Errorf("indexer: endpoint: %w", err)
		}
		if u.Host == "" || u.Port() == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("indexer: endpoint %q is not scheme://host:port", endpoint)
		}
		switch u.Scheme {
		case "http":
		case "https":
			creds = credentials.NewTLS(conf)
		default:
			return nil, fmt.Errorf("indexer: endpoint %q: the scheme is http, https or unix", endpoint)
		}
		target = "dns:///" + u.Host
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		// A redial is never further away than the next second's queries.
		grpc.WithConnectParams(connectParams()))
	if err != nil {
		return nil, fmt.Errorf("indexer: endpoint %q: %w", endpoint, err)
	}
	return conn, nil
}

// Lookup hashes the prompt and asks. A refusal for good is a
// *prefix.InvalidError; everything temporary is an outcome.
func (c *Client) Lookup(ctx context.Context, p prefix.Prompt) (prefix.Outcome, error) {
	h, out, ask := c.options.Namespace.Question(p)
	if !ask {
		return out, nil
	}
	blocks := h.Blocks(len(p.Tokens))
	if !c.options.Limit.try() {
		return prefix.Outcome{Status: prefix.Unavailable, Reason: prefix.Overloaded, QueryBlocks: blocks}, nil
	}
	defer c.options.Limit.release()
	chain := h.Chain(p)
	chain.Reuse(c.options.Digests)
	return c.query(ctx, chain.Append(make([]int64, 0, min(blocks, MaxHashes)), MaxHashes), blocks)
}

func (c *Client) query(ctx context.Context, hashes []int64, blocks int) (prefix.Outcome, error) {
	out := prefix.Outcome{QueryBlocks: blocks}
	req := &indexerpb.MatchExternalKvPrefixRequest{Hashes: hashes}
	end := time.Now().Add(c.options.Timeout)
	for i, r := range c.replica {
		// A replica that hangs leaves the others their share of the time.
		left := time.Until(end) / time.Duration(len(c.replica)-i)
		res, err := attempt(ctx, r.api, req, left)
		if err == nil {
			return answer(res, out), nil
		}
		if ctx.Err() != nil {
			return prefix.Outcome{}, fmt.Errorf("prefix lookup: %w", context.Cause(ctx))
		}
		reason := class(status.Code(err))
		if reason == "" {
			return prefix.Outcome{}, &prefix.InvalidError{Code: status.Code(err).String(), Err: err}
		}
		out.Status, out.Reason = prefix.Unavailable, reason
		if reason == prefix.TooLarge {
			break
		}
	}
	return out, nil
}

func attempt(ctx context.Context, api indexerpb.KVIndexerClient, req *indexerpb.MatchExternalKvPrefixRequest, limit time.Duration) (*indexerpb.MatchExternalKvPrefixResponse, error) {
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return api.MatchExternalKvPrefix(short, req)
}

// class names the temporary failures; empty is a refusal for good.
func class(code codes.Code) string {
	switch code {
	case codes.Unavailable:
		return prefix.Unreachable
	case codes.DeadlineExceeded, codes.Canceled:
		return prefix.Timeout
	case codes.ResourceExhausted:
		return prefix.Overloaded
	case codes.OutOfRange:
		return prefix.TooLarge
	}
	return ""
}

func answer(res *indexerpb.MatchExternalKvPrefixResponse, out prefix.Outcome) prefix.Outcome {
	out.Status = prefix.Empty
	for _, m := range res.GetMatches() {
		if m.GetMatchedPrefixBlocks() == 0 {
			continue
		}
		// Workers may claim more blocks than the prompt has; whoever reads the
		// matches bounds them by the query.
		out.Matches = append(out.Matches, prefix.Match{Address: m.GetWorkerAddress(), Blocks: int(m.GetMatchedPrefixBlocks())})
	}
	if len(out.Matches) > 0 {
		out.Status, out.Best = prefix.Matched, int(res.GetBestPrefixBlocks())
	}
	return out
}
