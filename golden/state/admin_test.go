package state_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"shunt/runtime/enginetest"
	"shunt/schema/plan"
)

// engineView is an engine of GET /admin/engines, as far as these tests read it.
type engineView struct {
	Model  string `json:"model"`
	ID     string `json:"id"`
	Events *struct {
		State, Detail string
		Blocks        int
		Ranks         []struct {
			Rank         int
			Connected    bool
			LastSequence *int64 `json:"last_sequence"`
			Gaps         int64
			LostBatches  int64    `json:"lost_batches"`
			LagMS        *float64 `json:"lag_ms"`
			Blocks       int
		}
	} `json:"cache_events"`
}

func (r *router) adminEngines() []engineView {
	r.t.Helper()
	resp, err := r.client.Get(r.admin + "/admin/engines")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var v struct{ Engines []engineView }
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("/admin/engines: %d %v", resp.StatusCode, err)
	}
	return v.Engines
}

// TestTwoModels has two models in one process, one of SGLang with two ranks and one
// of vLLM that publishes nothing: the admin view tells each subscription, and the
// gauges of the shared index are those of each model.
func TestTwoModels(t *testing.T) {
	all := engines(t, 2, func(o *enginetest.Options) {
		if o.ID == "e0" {
			o.Ranks = 2
		}
	})
	b := body(t, all[:1], cacheAware())
	b.State.Prefix = local()
	other := body(t, all[1:], cacheAware()).Models[0]
	other.ID, other.Tokenizer = "n", b.Models[0].Tokenizer
	b.Models = append(b.Models, other)
	silent := body(t, all[:1], cacheAware()).Models[0]
	silent.ID = "silent"
	silent.Engine = &plan.EngineKind{Type: plan.VLLM, Hashing: &plan.Hashing{Algorithm: plan.SHA256CBOR, BlockSize: 16, Seed: "0"}}
	silent.Tokenizer = &plan.Tokenizer{Path: b.Models[0].Tokenizer.Path}
	silent.Discovery.Static.Engines[0].URL = "http://127.0.0.1:1"
	b.Models = append(b.Models, silent)
	r := serve(t, b)

	// Batches of different size, so that the models differ.
	for i := range 3 {
		all[0].CachePrompt(prompt(i, 4*blockSize))
	}
	all[1].CachePrompt(prompt(9, 2*blockSize))
	r.until(`shunt_prefix_index_owned_blocks{model="m"}`, equals(12))
	r.until(`shunt_prefix_index_owned_blocks{model="n"}`, equals(2))
	for name, want := range map[string]float64{
		`shunt_prefix_index_owners{model="m"}`: 2, `shunt_prefix_index_owners{model="n"}`: 1,
		`shunt_prefix_index_owners{model="silent"}`: 0, "shunt_prefix_index_owners": 3,
		"shunt_prefix_index_blocks": 14, "shunt_prefix_index_owned_blocks": 14,
	} {
		if v := r.metric(name); v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	views := r.adminEngines()
	if len(views) != 3 {
		t.Fatalf("%d engines", len(views))
	}
	batches := int64(0)
	for _, v := range views {
		e := v.Events
		if e == nil {
			t.Fatalf("%s: no events", v.ID)
		}
		blocks := 0
		for _, k := range e.Ranks {
			blocks += k.Blocks
			if !k.Connected || k.Gaps != 0 || k.LostBatches != 0 || (k.LastSequence == nil) != (k.Blocks == 0) || (k.LagMS == nil) != (k.Blocks == 0) {
				t.Errorf("%s of %s: %+v", v.ID, v.Model, k)
			}
			if k.LastSequence != nil {
				batches += *k.LastSequence + 1
			}
		}
		got := fmt.Sprintf("%s %s, %d blocks, %d ranks with %d", v.Model, e.State, e.Blocks, len(e.Ranks), blocks)
		want := map[string]string{
			"m": "m subscribed, 12 blocks, 2 ranks with 12", "n": "n subscribed, 2 blocks, 1 ranks with 2",
			"silent": "silent publishes nothing, 0 blocks, 0 ranks with 0",
		}[v.Model]
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if batches != 4 {
		t.Errorf("%d batches in all", batches)
	}
}

// prompt is n tokens that begin with a number of their own.
func prompt(own, n int) []uint32 {
	tokens := make([]uint32, n)
	tokens[0] = uint32(own) + 1000
	return tokens
}

// TestAdminTellsGaps loses batches behind a tiny high-water mark.
func TestAdminTellsGaps(t *testing.T) {
	all := engines(t, 1, func(o *enginetest.Options) { o.Replay, o.HighWater = false, 1 })
	b := body(t, all, cacheAware())
	b.State.Prefix = local()
	r := serve(t, b)
	r.subscribed(all)
	eventually(t, "a gap", func() (string, bool) {
		for i := range 500 {
			all[0].CachePrompt(prompt(i, 20*blockSize))
		}
		v := r.adminEngines()[0].Events
		return fmt.Sprintf("%+v", v), len(v.Ranks) == 1 && v.Ranks[0].Gaps > 0 && v.Ranks[0].LostBatches >= v.Ranks[0].Gaps
	})
}
