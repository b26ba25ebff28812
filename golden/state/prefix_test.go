package state_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"shunt/runtime/enginetest"
)

// subscribed waits until the router follows every engine's events and knows every
// engine's load.
func (r *router) subscribed(all []*enginetest.Engine) {
	r.t.Helper()
	for _, e := range all {
		eventually(r.t, "subscription to "+e.ID(), func() (string, bool) {
			n, _ := e.Published()
			return fmt.Sprint(n), n > 0
		})
	}
	r.until("shunt_load_tracked_engines", equals(float64(len(all))))
}

// warmed puts a conversation's first turn somewhere and waits until the router
// knows; it returns the engine.
func (r *router) warmed(first string) string {
	r.t.Helper()
	before := r.metric("shunt_prefix_event_blocks_total")
	a := r.chat("", first)
	if a.status != http.StatusOK || a.in != "exact" {
		r.t.Fatalf("got %+v", a)
	}
	r.until("shunt_prefix_event_blocks_total", above(before))
	return a.engine
}

func TestConversationStaysWithItsPrefix(t *testing.T) {
	all := engines(t, 4, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	b.Server.Log.Level = "debug"
	r := serve(t, b)
	r.subscribed(all)
	first := long("a", 600)
	owner := r.warmed(first)
	for turn := range 5 {
		if a := r.wants("cache_candidate", first, "answer", fmt.Sprintf("turn %d", turn)); a.engine != owner {
			t.Errorf("turn %d went to %s, want %s", turn, a.engine, owner)
		}
	}
	for id, v := range r.cacheEvents() {
		if v.State != "subscribed" || v.Blocks > 30 != (id == owner) {
			t.Errorf("administrators see of %s: %+v; the owner is %s", id, v, owner)
		}
	}
	r.wants("no_cache_candidate", long("b", 600))
	for _, e := range all {
		if s := e.State(); e.ID() == owner && s.CachedTokens < 5*550 {
			t.Errorf("the owner computed again what it had: %+v", s)
		}
	}
	if text := r.log.String(); !strings.Contains(text, `\"cache\":{\"lookup\":\"hit\"`) || strings.Contains(text, ":0x") {
		t.Error("the log does not tell the decisions")
	}
	if hits := r.metric(`shunt_cache_decisions_total{model="m",decision="hit"}`); hits != 5 {
		t.Errorf("%v hits", hits)
	}
}

// TestPublisherDies kills a publisher and starts another in its place, with an
// empty cache: what the dead one held must never be believed again.
func TestPublisherDies(t *testing.T) {
	f := func(name string, replay bool) {
		t.Run(name, func(t *testing.T) {
			all := engines(t, 3, func(o *enginetest.Options) { o.Replay = replay })
			b := body(t, all, cacheAware())
			b.State.Prefix = local()
			r := serve(t, b)
			r.subscribed(all)
			first := long("a", 600)
			owner := r.warmed(first)
			r.wants("cache_candidate", first, "x", "y")
			for _, e := range all {
				if e.ID() == owner {
					e.StopCache()
					if err := e.RestartCache(blockSize, 1); err != nil {
						t.Fatal(err)
					}
				}
			}
			r.until("shunt_prefix_index_owned_blocks", equals(0))
			r.subscribed(all)
			r.wants("no_cache_candidate", first, "x", "y")
			r.warmed(long("b", 600))
			r.wants("cache_candidate", long("b", 600), "x", "z")
		})
	}
	f("with replay", true)
	f("without replay", false)
}

// TestFlood publishes far more than a subscriber can take, through a high-water
// mark of a few batches. Afterwards the router owns no more than the engine holds,
// and it served all the while.
func TestFlood(t *testing.T) {
	f := func(name string, replay bool) {
		t.Run(name, func(t *testing.T) {
			const cached = 64 // blocks
			all := engines(t, 2, func(o *enginetest.Options) {
				o.Replay, o.HighWater, o.ReplayBatches, o.CacheTokens = replay, 4, 100, cached*blockSize
			})
			b := body(t, all, cacheAware())
			b.State.Prefix = local()
			r := serve(t, b)
			r.subscribed(all)
			var flood sync.WaitGroup
			rng := rand.New(rand.NewPCG(1, 2))
			flood.Go(func() {
				for range 20_000 {
					tokens := make([]uint32, 2*blockSize)
					for i := range tokens {
						tokens[i] = rng.Uint32()
					}
					all[0].CachePrompt(tokens)
				}
			})
			for i := range 50 {
				if a := r.chat("", long(fmt.Sprint(i), 100)); a.status != http.StatusOK {
					t.Errorf("during the flood: %+v", a)
				}
			}
			flood.Wait()
			if _, dropped := all[0].Published(); dropped == 0 {
				t.Fatal("nothing was dropped, so nothing is tested")
			}
			// The next batch shows the last gap.
			all[0].CachePrompt(make([]uint32, 2*blockSize))
			r.until("shunt_prefix_gaps_total", above(0))
			r.until("shunt_prefix_index_owned_blocks", func(v float64) bool { return v <= 2*cached })
			if v := r.metric("shunt_prefix_index_bytes"); v > 64<<20 {
				t.Errorf("the index has %v bytes", v)
			}
		})
	}
	f("with replay", true)
	f("without replay", false)
}

// TestEngineChanges restarts an engine with other blocks, then with more ranks.
func TestEngineChanges(t *testing.T) {
	all := engines(t, 1, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	r := serve(t, b)
	r.subscribed(all)
	first := long("a", 800)
	f := func(block, ranks int) {
		t.Helper()
		if err := all[0].RestartCache(block, ranks); err != nil {
			t.Fatal(err)
		}
		eventually(t, "subscriptions", func() (string, bool) {
			n, _ := all[0].Published()
			return fmt.Sprint(n), n == ranks
		})
		r.until("shunt_prefix_index_owned_blocks", equals(0))
		r.until("shunt_prefix_index_owners", equals(float64(ranks)))
		r.warmed(first)
		r.wants("cache_candidate", first, "x", "y")
		r.until("shunt_load_report_age_seconds", above(0))
	}
	r.warmed(first)
	r.wants("cache_candidate", first, "x", "y")
	f(32, 1)
	f(32, 3)
	f(8, 1)
}

// TestReloadKeepsWhatItKnows swaps plans: the index stays, an engine that left
// takes its blocks along, and what cannot change is refused.
func TestReloadKeepsWhatItKnows(t *testing.T) {
	all := engines(t, 3, nil)
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	r := serve(t, b)
	r.subscribed(all)
	first := long("a", 600)
	owner := r.warmed(first)

	b.Server.MaxBodyBytes *= 2
	write(t, r.file, b)
	if status, text := r.reload(); status != http.StatusOK {
		t.Fatalf("reload: %d %s", status, text)
	}
	if a := r.wants("cache_candidate", first, "x", "y"); a.engine != owner {
		t.Errorf("after the reload %s, before %s", a.engine, owner)
	}

	b.State.Prefix.Local.MaxBlocks++
	write(t, r.file, b)
	if status, text := r.reload(); status != http.StatusConflict {
		t.Errorf("another size of the index: %d %s", status, text)
	}
	b.State.Prefix.Local.MaxBlocks--

	var rest []*enginetest.Engine
	for _, e := range all {
		if e.ID() != owner {
			rest = append(rest, e)
		}
	}
	next := body(t, rest, cacheAware())
	next.State.Prefix, next.Models[0].Tokenizer = local(), b.Models[0].Tokenizer
	write(t, r.file, next)
	if status, text := r.reload(); status != http.StatusOK {
		t.Fatalf("reload: %d %s", status, text)
	}
	r.until("shunt_prefix_index_owned_blocks", equals(0))
	r.until("shunt_prefix_index_owners", equals(2))
	r.wants("no_cache_candidate", first, "x", "y")
}
