package state_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"shunt/runtime/enginetest"
	"shunt/schema/plan"
)

// vllm starts engines that pose as vLLM, which has no /server_info, and a plan that
// says what they do not.
func vllm(t *testing.T, n int, edit func(*enginetest.Options)) ([]*enginetest.Engine, *plan.Body) {
	t.Helper()
	all := engines(t, n, func(o *enginetest.Options) {
		o.VLLM, o.PublishLoads, o.HashSeed, o.Tokenize = true, false, "42", byteTokens
		if edit != nil {
			edit(o)
		}
	})
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	m := &b.Models[0]
	m.Engine = &plan.EngineKind{Type: plan.VLLM, Hashing: &plan.Hashing{Algorithm: plan.SHA256CBOR, BlockSize: blockSize, Seed: "42"}}
	m.Tokenizer.ForwardInputIDs = false
	for i, e := range all {
		events, replay := e.EventPorts()
		k := &plan.KVEvents{Port: int64(events), Ranks: 1}
		if replay != 0 {
			k.ReplayPort = new(int64(replay))
		}
		m.Discovery.Static.Engines[i].KVEvents = k
	}
	return all, b
}

// byteTokens is the tokenizer of the tests, and its template, as an engine has them
// that is not sent ids.
func byteTokens(body []byte) []uint32 {
	var in struct {
		Messages []struct{ Role, Content string }
	}
	if json.Unmarshal(body, &in) != nil {
		return nil
	}
	text := ""
	for _, m := range in.Messages {
		text += "[" + m.Role + ":" + m.Content + "]"
	}
	var ids []uint32
	for _, b := range []byte(text + ">") {
		ids = append(ids, uint32(b))
	}
	return ids
}

// TestVLLM follows a conversation on engines whose events and load are vLLM's.
func TestVLLM(t *testing.T) {
	f := func(name string, tokenizer *plan.Tokenizer) {
		t.Run(name, func(t *testing.T) {
			all, b := vllm(t, 3, nil)
			if tokenizer != nil {
				b.Models[0].Tokenizer = tokenizer
			}
			r := serve(t, b)
			r.subscribed(all)
			first := long("a", 2000)
			owner := r.warmed(first)
			for turn := range 3 {
				if a := r.wants("cache_candidate", first, "answer", fmt.Sprintf("turn %d", turn)); a.engine != owner {
					t.Errorf("turn %d went to %s, want %s", turn, a.engine, owner)
				}
			}
			r.wants("no_cache_candidate", long("b", 2000))
			if v := r.metric("shunt_load_poll_failures_total"); v != 0 {
				t.Errorf("%v polls failed", v)
			}
			for _, e := range all {
				for _, q := range e.Requests() {
					if strings.Contains(string(q.Body), "input_ids") {
						t.Error("vLLM was sent ids")
					}
				}
			}
		})
	}
	f("path", nil)
	f("engine", &plan.Tokenizer{Engine: &plan.EngineTokenizer{TimeoutMS: patience.Milliseconds(), MaxInflight: 4, MaxBodyBytes: 1 << 20}})
}

// TestVLLMRemoteIndex has the index service follow the same engines.
func TestVLLMRemoteIndex(t *testing.T) {
	all, b := vllm(t, 2, nil)
	x := startIndex(t, b)
	b.State.Prefix = remote(x.addr, 20_000)
	r := serve(t, b)
	x.until("shunt_prefix_index_owners", equals(2))
	r.until("shunt_load_tracked_engines", equals(float64(len(all))))
	first := long("a", 600)
	owner := r.chat("", first)
	x.until("shunt_prefix_event_blocks_total", above(0))
	if a := r.wants("cache_candidate", first, "x", "y"); a.engine != owner.engine {
		t.Errorf("got %s, want %s", a.engine, owner.engine)
	}
}

// TestVLLMHashesOtherwise: another seed than the engines' finds nothing and claims
// nothing; another block size is told.
func TestVLLMHashesOtherwise(t *testing.T) {
	all, b := vllm(t, 2, nil)
	b.Models[0].Engine.Hashing.Seed = "43"
	r := serve(t, b)
	r.subscribed(all)
	first := long("a", 600)
	r.warmed(first)
	r.wants("no_cache_candidate", first, "x", "y")

	// The plan is corrected, except for the block size.
	b.Models[0].Engine.Hashing.Seed = "42"
	b.Models[0].Engine.Hashing.BlockSize = 2 * blockSize
	write(t, r.file, b)
	if status, text := r.reload(); status != http.StatusOK {
		t.Fatalf("reload: %d %s", status, text)
	}
	eventually(t, "the other block size is told", func() (string, bool) {
		r.chat("", long("c", 600))
		return "", strings.Contains(r.log.String(), fmt.Sprintf("publishes blocks of %d tokens; the configuration says %d", blockSize, 2*blockSize))
	})
	r.wants("no_cache_candidate", first, "x", "y")

	b.Models[0].Engine.Hashing.BlockSize = blockSize
	write(t, r.file, b)
	if status, text := r.reload(); status != http.StatusOK {
		t.Fatalf("reload: %d %s", status, text)
	}
	eventually(t, "the prefix is found", func() (string, bool) {
		a := r.chat("", first, "x", "y")
		return a.reason, a.reason == "cache_candidate"
	})
}
