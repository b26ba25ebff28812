package enginetest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
)

// What differs when an engine poses as vLLM: the hashes of blocks and the form of
// their events, and the endpoints that report.

// vllmSeed is what is hashed for the parent of first blocks without Options.HashSeed.
const vllmSeed = "vllm-none-hash"

// vllmChain returns the hashes of the full blocks of a prompt as vLLM's sha256_cbor
// makes them: each digest covers the parent's digest, the tokens and, in the first
// block, the salt. What is published of a digest are its last eight bytes.
func vllmChain(seed string) func(p prompt, size int) []int64 {
	head := func(b []byte, major byte, n int) []byte {
		major <<= 5
		switch {
		case n < 24:
			return append(b, major|byte(n))
		case n < 1<<8:
			return append(b, major|24, byte(n))
		case n < 1<<16:
			return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
		}
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	const array, bytes, text, null = 4, 2, 3, 0xf6
	setDefault(&seed, vllmSeed)
	root := sha256.Sum256(append(head(nil, text, len(seed)), seed...))
	return func(p prompt, size int) []int64 {
		parent := root
		hashes := make([]int64, 0, len(p.tokens)/size)
		for i := 0; i+size <= len(p.tokens); i += size {
			b := append(head(head(nil, array, 3), bytes, len(parent)), parent[:]...)
			b = head(b, array, size)
			for _, t := range p.tokens[i : i+size] {
				b = head(b, 0, int(t))
			}
			if i == 0 && p.salt != "" {
				b = append(head(head(b, array, 1), text, len(p.salt)), p.salt...)
			} else {
				b = append(b, null)
			}
			parent = sha256.Sum256(b)
			hashes = append(hashes, int64(binary.BigEndian.Uint64(parent[len(parent)-8:])))
		}
		return hashes
	}
}

// vllmStored is a BlockStored event: unsigned hashes, and members of its own.
func vllmStored(hashes []int64, from, n, size int, q prompt) []byte {
	b := packString(packString(packMap(nil, 9), "type"), "BlockStored")
	b = vllmHashes(packString(b, "block_hashes"), hashes[from:from+n])
	b = packString(b, "parent_block_hash")
	if from == 0 {
		b = packNil(b)
	} else {
		b = packUint(b, uint64(hashes[from-1]))
	}
	b = packArray(packString(b, "token_ids"), n*size)
	for _, t := range q.tokens[from*size : (from+n)*size] {
		b = packUint(b, uint64(t))
	}
	b = packUint(packString(b, "block_size"), uint64(size))
	b = packNil(packString(b, "lora_id"))
	b = packString(packString(b, "medium"), "GPU")
	b = packNil(packString(b, "lora_name"))
	return packUint(packString(b, "group_idx"), 0)
}

func vllmRemoved(hashes []int64) []byte {
	b := packString(packString(packMap(nil, 4), "type"), "BlockRemoved")
	b = vllmHashes(packString(b, "block_hashes"), hashes)
	b = packString(packString(b, "medium"), "GPU")
	return packUint(packString(b, "group_idx"), 0)
}

func vllmHashes(b []byte, hashes []int64) []byte {
	b = packArray(b, len(hashes))
	for _, h := range hashes {
		b = packUint(b, uint64(h))
	}
	return b
}

// vllmMetrics is GET /metrics, as far as routers read it.
func (e *Engine) vllmMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	ranks := e.rankCount()
	for _, m := range []struct {
		name, help string
		value      func(rankLoad) float64
	}{
		{"num_requests_running", "Number of requests in model execution batches.", func(l rankLoad) float64 { return float64(l.running) }},
		{"num_requests_waiting", "Number of requests waiting to be processed.", func(l rankLoad) float64 { return float64(l.waiting) }},
		{"kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", func(l rankLoad) float64 {
			return float64(l.used) / float64(max(l.capacity, 1))
		}},
	} {
		fmt.Fprintf(w, "# HELP vllm:%s %s\n# TYPE vllm:%s gauge\n", m.name, m.help, m.name)
		for rank := range ranks {
			fmt.Fprintf(w, "vllm:%s{engine=\"%d\",model_name=%q} %.1f\n", m.name, rank, e.opts.Model, m.value(e.loadOf(rank, ranks)))
		}
	}
}

// EventPorts returns the ports of the first rank's event and replay sockets, 0 for
// none. An engine that poses as vLLM tells them nowhere else.
func (e *Engine) EventPorts() (events, replay int) {
	e.pubMu.Lock()
	defer e.pubMu.Unlock()
	return e.ports.events, e.ports.replay
}
