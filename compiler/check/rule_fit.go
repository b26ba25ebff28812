package check

import (
	"fmt"
	"math"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleBounds tells of policies that are to compare more engines than there are.
func ruleBounds(r *rules) {
	for _, m := range r.sounds() {
		// The largest group that runs each written policy.
		largest := make(map[*config.Policy]int)
		for i := range m.groups {
			g := &m.groups[i]
			if p := m.policy(g); p != nil {
				largest[p] = max(largest[p], len(g.members.engines))
			}
		}
		for _, p := range m.policies() {
			n := largest[p.Policy]
			if n < 2 || config.Or(p.CandidateMinWorkers, 0) > config.Or(p.CandidateMaxWorkers, config.DefaultCandidateMax) {
				continue // nothing is compared, it is that of a catch-all bucket, or an error
			}
			for _, b := range [...]config.Limit{
				{Name: "choices", Value: p.Choices},
				{Name: "min_load_choices", Value: p.MinLoadChoices},
				{Name: "candidate_min_workers", Value: p.CandidateMinWorkers},
			} {
				if b.Value != nil && *b.Value > int64(n) && r.intact(p.at) {
					r.add(diag.OversizedBound, p.at+"/"+b.Name, fmt.Sprintf("%s is %d, and the largest group of the policy has %s", b.Name, *b.Value, count(n, "engine"))).
						Hint = fmt.Sprintf("lower %s, or add engines", b.Name)
				}
			}
		}
	}
}

// count writes a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ruleMatchLength warns about cache_aware in a bucket whose inputs are all too
// short for a match that counts.
func ruleMatchLength(r *rules) {
	for _, m := range r.sounds() {
		short := several{}
		for i := range m.groups {
			g := &m.groups[i]
			p, longest := m.policy(g), m.capacity(g.bucket)
			if p == nil || p.Type != cacheAware || g.stage == plan.Decode || longest == math.MaxInt64 {
				continue
			}
			least := config.Or(p.MinMatchedTokens, config.DefaultMinMatchedTokens)
			if least <= longest || !short.next() {
				continue
			}
			name := fmt.Sprintf("min_matched_tokens (%d)", least)
			if p.MinMatchedTokens == nil {
				name = fmt.Sprintf("min_matched_tokens (default %d)", least)
			}
			message := fmt.Sprintf("%s is above the longest input of bucket %q, %d tokens, so cache_aware never finds a match", name, m.buckets()[g.bucket].ID, longest)
			switch {
			case g.Policy == nil:
				r.addKey(diag.NeverHits, g.at, message).Hint = "give the group a policy of its own with a lower min_matched_tokens, or without cache_aware"
			case p.MinMatchedTokens == nil:
				r.add(diag.NeverHits, g.at+"/policy/type", message).Hint = "write a lower min_matched_tokens, or use power_of_two"
			default:
				r.add(diag.NeverHits, g.at+"/policy/min_matched_tokens", message).Hint = "lower min_matched_tokens, or use power_of_two"
			}
		}
		short.finish(r, "group")
	}
}

// ruleTokenLimit warns about a limit on used tokens that one request of the
// bucket can reach.
func ruleTokenLimit(r *rules) {
	for _, m := range r.sounds() {
		filled := several{}
		for i := range m.groups {
			g := &m.groups[i]
			p, context := m.policy(g), m.buckets()[g.bucket].MaxContextTokens
			if p == nil || p.Admission.MaxKVTokens == nil || context == nil {
				continue
			}
			limit := *p.Admission.MaxKVTokens
			if limit == 0 || limit >= *context || !filled.next() {
				continue
			}
			message := fmt.Sprintf("max_kv_tokens %d is below max_context_tokens %d of bucket %q, so one long request shuts the engine", limit, *context, m.buckets()[g.bucket].ID)
			var f *diag.Finding
			if g.Policy == nil {
				f = r.addKey(diag.OneRequestLimit, g.at, message)
			} else {
				f = r.add(diag.OneRequestLimit, g.at+"/policy/admission/max_kv_tokens", message)
			}
			f.Hint = "raise the limit to several times the context capacity, or remove it"
			r.also(f, m.bucketAt(g.bucket)+"/max_context_tokens", "max_context_tokens is here")
		}
		filled.finish(r, "group")
	}
}

// ruleQueueGate warns about a soft gate on queues that is not below the hard
// limit.
func ruleQueueGate(r *rules) {
	for i := range r.models {
		for _, p := range r.models[i].policies() {
			gate, limit := p.WorkerQueueLimit, p.Admission.MaxWaitingRequests
			if gate == nil || limit == nil || *limit == 0 || *gate < *limit || !r.intact(p.at) {
				continue
			}
			f := r.add(diag.SoftGate, p.at+"/worker_queue_limit", fmt.Sprintf("worker_queue_limit %d is not below max_waiting_requests %d, so an engine is refused before it is avoided", *gate, *limit))
			f.Hint = "lower worker_queue_limit, or raise or remove max_waiting_requests"
			r.also(f, p.at+"/admission/max_waiting_requests", "the hard limit is here")
		}
	}
}

// ruleDecodePending warns about a limit on waiting prefill where nothing is
// prefilled.
func ruleDecodePending(r *rules) {
	for i := range r.models {
		for _, p := range r.models[i].policies() {
			path := p.at + "/admission/max_pending_prefill_tokens"
			if p.decode && p.Admission.MaxPendingPrefillTokens != nil && r.intact(path) {
				r.addKey(diag.DecodePending, path, "decode engines have no pending prefill, so max_pending_prefill_tokens never refuses one").
					Hint = "move it to the prefill group, or limit max_running_requests or max_kv_tokens"
			}
		}
	}
}
