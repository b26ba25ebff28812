package enginetest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Topics of what is published.
const (
	eventTopic = "kv-events"
	loadTopic  = "load"
)

// rank is one independent cache and what it publishes, as one data-parallel rank
// of an engine.
type rank struct {
	number int
	form   form
	events *socket // nil without events
	replay *socket // nil without replay
	loads  *socket // nil without published loads

	mu      sync.Mutex
	cache   *cache
	seq     int64
	history [][]byte // the payloads of the last batches
	keep    int
	loadSeq int64
}

// form is how an engine hashes blocks and writes its events.
type form struct {
	chain   func(p prompt, size int) []int64
	stored  func(hashes []int64, from, n, size int, q prompt) []byte
	removed func(hashes []int64) []byte
}

func formOf(o Options) form {
	if o.VLLM {
		return form{vllmChain(o.HashSeed), vllmStored, vllmRemoved}
	}
	return form{sglangChain, storedEvent, removedEvent}
}

// publishers are the ranks of an engine for as long as the simulated process
// lives: a restart makes new ones on the same ports.
type publishers struct {
	block int // tokens in a block
	ranks []*rank
	// The ports of rank 0; rank r is at the r-th port behind. 0 is none.
	events, replay, loads int
}

// portRoom is how many consecutive ports an engine takes at least, so that it can
// come back with more ranks.
const portRoom = 4

// openPublishers opens the sockets of all ranks. Ports of 0 are chosen.
func openPublishers(o Options, block, ranks int, p publishers) (*publishers, error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, err
	}
	out := &publishers{block: block, events: p.events, replay: p.replay, loads: p.loads}
	for i := range ranks {
		out.ranks = append(out.ranks, &rank{
			number: i, form: formOf(o), keep: o.ReplayBatches, cache: newCache(block, o.CacheTokens/ranks/block),
		})
	}
	for _, group := range []struct {
		wanted bool
		port   *int
		kind   string
		water  int
		socket func(*rank) **socket
	}{
		{o.Events, &out.events, "PUB", o.HighWater, func(r *rank) **socket { return &r.events }},
		{o.Replay, &out.replay, "ROUTER", o.HighWater, func(r *rank) **socket { return &r.replay }},
		{o.PublishLoads, &out.loads, "PUB", 8, func(r *rank) **socket { return &r.loads }},
	} {
		if !group.wanted {
			continue
		}
		open := func(r *rank, port int) error {
			var answer func([][]byte, func(...[]byte) error) error
			if group.kind == "ROUTER" {
				answer = r.serveReplay
			}
			s, err := listenSocket(group.kind, net.JoinHostPort(host, strconv.Itoa(port)), group.water, answer)
			*group.socket(r) = s
			return err
		}
		if err := out.openRange(host, group.port, open, func(r *rank) **socket { return group.socket(r) }); err != nil {
			out.close()
			return nil, err
		}
	}
	return out, nil
}

// openRange opens a socket for each rank on consecutive ports. A range that is
// chosen here has room for more ranks.
func (p *publishers) openRange(host string, base *int, open func(*rank, int) error, at func(*rank) **socket) error {
	if *base != 0 {
		for i, r := range p.ranks {
			if err := open(r, *base+i); err != nil {
				return err
			}
		}
		return nil
	}
	var last error
	for range 100 {
		port, err := freeRange(host, max(portRoom, len(p.ranks)))
		if err != nil {
			last = err
			continue
		}
		for i, r := range p.ranks {
			if err = open(r, port+i); err != nil {
				break
			}
		}
		if err == nil {
			*base = port
			return nil
		}
		last = err
		for _, r := range p.ranks {
			if s := at(r); *s != nil {
				(*s).close()
				*s = nil
			}
		}
	}
	return fmt.Errorf("no range of free ports found: %w", last)
}

// Where chosen ranges lie: below the ports that systems give to outgoing
// connections and to listeners without a port of their own, which would take a
// port of the range while the cache is stopped. Ranges begin at multiples of
// portRoom, so that those of several engines do not overlap by a part.
const (
	firstPort = 12_000
	endPort   = 32_000
)

// freeRange finds consecutive ports that nobody listens on.
func freeRange(host string, n int) (int, error) {
	port := firstPort + rand.IntN((endPort-firstPort)/portRoom)*portRoom
	for i := range n {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port+i)))
		if err != nil {
			return 0, fmt.Errorf("port %d: %w", port+i, err)
		}
		defer l.Close()
	}
	return port, nil
}

func (p *publishers) close() {
	for _, r := range p.ranks {
		for _, s := range []*socket{r.events, r.replay, r.loads} {
			if s != nil {
				s.close()
			}
		}
	}
}

// describe is the kv_events member of /server_info.
func (p *publishers) describe() any {
	if p == nil || p.events == 0 {
		return nil
	}
	d := map[string]any{
		"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": p.events, "topic": eventTopic,
		"block_size": p.block, "dp_size": len(p.ranks),
	}
	if p.replay != 0 {
		d["replay_endpoint_port_base"] = p.replay
	}
	if p.loads != 0 {
		d["load_endpoint_port_base"], d["load_topic"] = p.loads, loadTopic
	}
	return d
}

// choose returns the rank that holds most of a prompt, the first of equals that
// holds the least.
func (p *publishers) choose(q prompt) (*rank, int) {
	hashes := p.ranks[0].form.chain(q, p.block)
	best, depth, held := p.ranks[0], -1, 0
	for _, r := range p.ranks {
		r.mu.Lock()
		d, h := r.cache.match(hashes), len(r.cache.blocks)
		r.mu.Unlock()
		if d > depth || d == depth && h < held {
			best, depth, held = r, d, h
		}
	}
	return best, depth * p.block
}

// matched returns how many tokens of a prompt the rank has in its cache.
func (r *rank) matched(q prompt) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cache.match(r.form.chain(q, r.cache.size)) * r.cache.size
}

// store caches a computed prompt and publishes what changed.
func (r *rank) store(q prompt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hashes := r.form.chain(q, r.cache.size)
	from, stored, removed := r.cache.insert(hashes)
	var events [][]byte
	if len(removed) > 0 {
		events = append(events, r.form.removed(removed))
	}
	if len(stored) > 0 {
		events = append(events, r.form.stored(hashes, from, len(stored), r.cache.size, q))
	}
	r.publish(events...)
}

// clear empties the cache.
func (r *rank) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cache = newCache(r.cache.size, r.cache.limit)
	r.publish(packString(packString(packMap(nil, 1), "type"), "AllBlocksCleared"))
}

// publish sends one batch of events. Called with mu held.
func (r *rank) publish(events ...[]byte) {
	if len(events) == 0 || r.events == nil {
		return
	}
	payload := packFloat(packArray(nil, 3), float64(time.Now().UnixMicro())/1e6)
	payload = packArray(payload, len(events))
	for _, e := range events {
		payload = append(payload, e...)
	}
	payload = packUint(payload, uint64(r.number))
	r.history = append(r.history, payload)
	if len(r.history) > r.keep {
		r.history = r.history[len(r.history)-r.keep:]
	}
	r.events.publish([]byte(eventTopic), binary.BigEndian.AppendUint64(nil, uint64(r.seq)), payload)
	r.seq++
}

// serveReplay answers an empty part and a sequence number with every batch from
// there on that is still kept, and an end marker.
func (r *rank) serveReplay(question [][]byte, send func(...[]byte) error) error {
	if len(question) != 2 || len(question[1]) != 8 {
		return nil // an engine ignores what it does not understand
	}
	from := int64(binary.BigEndian.Uint64(question[1]))
	r.mu.Lock()
	first := r.seq - int64(len(r.history))
	history := append([][]byte(nil), r.history...)
	r.mu.Unlock()
	number := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	for i, payload := range history {
		if seq := first + int64(i); seq >= from {
			if err := send(nil, number(seq), payload); err != nil {
				return err
			}
		}
	}
	return send(nil, number(-1), nil)
}

func storedEvent(hashes []int64, from, n, size int, q prompt) []byte {
	members := 7
	if q.salt != "" {
		members++
	}
	if q.lora != "" {
		members++
	}
	b := packString(packString(packMap(nil, members), "type"), "BlockStored")
	b = packArray(packString(b, "block_hashes"), n)
	for _, h := range hashes[from : from+n] {
		b = packInt(b, h)
	}
	b = packString(b, "parent_block_hash")
	if from == 0 {
		b = packNil(b)
	} else {
		b = packInt(b, hashes[from-1])
	}
	b = packArray(packString(b, "token_ids"), n*size)
	for _, t := range q.tokens[from*size : (from+n)*size] {
		b = packUint(b, uint64(t))
	}
	b = packUint(packString(b, "block_size"), uint64(size))
	b = packNil(packString(b, "lora_id"))
	b = packString(packString(b, "medium"), "GPU")
	if q.salt != "" {
		b = packString(packString(b, "cache_salt"), q.salt)
	}
	if q.lora != "" {
		b = packString(packString(b, "lora_name"), q.lora)
	}
	return b
}

func removedEvent(hashes []int64) []byte {
	b := packString(packString(packMap(nil, 3), "type"), "BlockRemoved")
	b = packArray(packString(b, "block_hashes"), len(hashes))
	for _, h := range hashes {
		b = packInt(b, h)
	}
	return packString(packString(b, "medium"), "GPU")
}
