// Package engineinfo asks an engine where it publishes its cache events and its
// load, and in which block size. A Fetcher is safe for concurrent use.
package engineinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Info is what an engine says about itself.
type Info struct {
	// Publishes says that the fields below are known.
	Publishes bool
	// Host is where the sockets are; IPv6 is not bracketed.
	Host string
	// Port is the event socket of rank 0; rank r is at Port + r. ReplayPort and
	// LoadPort likewise; 0 means that there is none.
	Port, ReplayPort, LoadPort int
	Topic, LoadTopic           string
	// BlockSize is the number of tokens in a published block.
	BlockSize int
	// Ranks is the number of independent caches, each with its own sockets.
	Ranks int
	// Speculative is the speculative decoding algorithm, empty for none.
	Speculative string
}

// Address is host and port of a rank's socket, given the port of rank 0. It is
// empty if there is none, or the port is out of range.
func (i Info) Address(base, rank int) string {
	if base <= 0 || base+rank > 65535 {
		return ""
	}
	return net.JoinHostPort(i.Host, strconv.Itoa(base+rank))
}

// Bounds of a description.
const (
	maxRanks = 4096
	maxBody  = 8 << 20
)

// Fetcher asks engines over HTTP. The zero Fetcher is ready.
type Fetcher struct {
	// Client sends the requests; nil is http.DefaultClient.
	Client *http.Client
	// Timeout bounds one attempt; 0 is 2 s.
	Timeout time.Duration
	// Pause is the time before the second attempt, and doubles; 0 is 100 ms.
	Pause time.Duration
}

// ErrRefused marks an answer that another attempt will not change.
var ErrRefused = errors.New("the engine's answer is final")

// Fetch asks the engine at a base URL. It tries three times.
func (f *Fetcher) Fetch(ctx context.Context, base string) (Info, error) {
	pause := f.Pause
	if pause <= 0 {
		pause = 100 * time.Millisecond
	}
	for attempt := 1; ; attempt++ {
		raw, err := f.get(ctx, base+"/server_info")
		if err == nil {
			return Parse(base, raw)
		}
		if attempt == 3 || errors.Is(err, ErrRefused) {
			return Info{}, fmt.Errorf("server info of %s: %w", base, err)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return Info{}, fmt.Errorf("server info of %s: %w", base, context.Cause(ctx))
		case <-t.C:
		}
		pause *= 2
	}
}

func (f *Fetcher) get(ctx context.Context, target string) ([]byte, error) {
	timeout := f.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return Get(ctx, f.Client, target)
}

// Get reads one JSON document of bounded size from an engine. Answers that are
// not 200, except the server errors, wrap ErrRefused.
func Get(ctx context.Context, client *http.Client, target string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode >= 500:
		return nil, fmt.Errorf("status %d", res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: status %d", ErrRefused, res.StatusCode)
	case len(raw) > maxBody:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrRefused, maxBody)
	}
	return raw, nil
}

// document is the part of /server_info that matters here.
type document struct {
	Speculative *string    `json:"speculative_algorithm"`
	KV          *publisher `json:"kv_events"`
}

type publisher struct {
	Publisher string `json:"publisher"`
	Host      string `json:"endpoint_host"`
	Port      int    `json:"endpoint_port_base"`
	Topic     string `json:"topic"`
	BlockSize int    `json:"block_size"`
	Ranks     int    `json:"dp_size"`
	LoadPort  int    `json:"load_endpoint_port_base"`
	LoadTopic string `json:"load_topic"`
	Replay    int    `json:"replay_endpoint_port_base"`
}

// Parse reads a description. An engine that publishes nothing is no error.
func Parse(base string, raw []byte) (Info, error) {
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return Info{}, fmt.Errorf("server info of %s: %w: %w", base, ErrRefused, err)
	}
	var i Info
	if d.Speculative != nil {
		i.Speculative = *d.Speculative
	}
	p := d.KV
	if p == nil || p.Publisher == "" || p.Publisher == "null" {
		return i, nil
	}
	host, err := p.host(base)
	if err != nil {
		return Info{}, fmt.Errorf("server info of %s: %w: %w", base, ErrRefused, err)
	}
	i.Publishes, i.Host = true, host
	i.Port, i.ReplayPort, i.LoadPort = p.Port, p.Replay, p.LoadPort
	i.Topic, i.LoadTopic = p.Topic, p.LoadTopic
	i.BlockSize, i.Ranks = p.BlockSize, p.Ranks
	return i, nil
}

// host checks the description and resolves a wildcard host to the engine's own.
func (p *publisher) host(base string) (string, error) {
	switch {
	case p.Publisher != "zmq":
		return "", fmt.Errorf("publisher %q is not supported", p.Publisher)
	case p.Port < 1 || p.Port > 65535:
		return "", fmt.Errorf("endpoint port %d is out of range", p.Port)
	case p.LoadPort < 0 || p.LoadPort > 65535 || p.Replay < 0 || p.Replay > 65535:
		return "", fmt.Errorf("load port %d or replay port %d is out of range", p.LoadPort, p.Replay)
	case p.BlockSize < 1 || p.BlockSize > 1<<20:
		return "", fmt.Errorf("block size %d is out of range", p.BlockSize)
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return "", fmt.Errorf("%d data-parallel ranks are out of range", p.Ranks)
	}
	if !slices.Contains([]string{"", "*", "0.0.0.0", "::", "[::]"}, p.Host) {
		if n := len(p.Host); p.Host[0] == '[' && p.Host[n-1] == ']' {
			return p.Host[1 : n-1], nil
		}
		return p.Host, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("the engine's address %q has no host", base)
	}
	return u.Hostname(), nil
}
