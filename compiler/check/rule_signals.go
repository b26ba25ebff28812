package check

import (
	"fmt"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// settingOf is the last step of a path, with what it belongs to where the step
// alone says little.
func settingOf(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if strings.HasPrefix(path, "/state/") && strings.Count(path, "/") == 2 {
		return "state." + name
	}
	return name
}

// ruleSampling holds sampling parameters to what engines accept.
func ruleSampling(r *rules) {
	for _, m := range r.models {
		at := m.at + "/sampling"
		if m.Sampling == nil || !r.intact(at) {
			continue
		}
		if len(m.Sampling.Params) == 0 {
			r.addKey(diag.SamplingDomain, at+"/params", "params is empty, so sampling has no effect").Hint = "remove sampling, or add a parameter"
		}
		conflict := plan.Conflict(config.Or(m.Sampling.Conflict, config.DefaultConflict))
		for _, name := range plan.SamplingNames {
			p, ok := m.Sampling.Params[name]
			if !ok {
				continue
			}
			param := plan.SamplingParam{Name: name, Value: p.Value, Min: p.Min, Max: p.Max}
			if err := param.Check(conflict); err != nil {
				r.add(diag.SamplingDomain, at+"/params/"+name, fmt.Sprintf("%s: %v", name, err)).
					Hint = "shunt explain SH0225 lists what engines accept"
			}
		}
	}
}

// ruleCacheSignal tells what a cache_aware policy has to go by.
func ruleCacheSignal(r *rules) {
	named := r.cfg.State.Prefix != nil
	for _, m := range r.models {
		if !r.intact(m.at) {
			continue
		}
		for _, p := range m.policies() {
			if p.Type != cacheAware || p.decode {
				continue
			}
			if m.Tokenizer == nil {
				r.add(diag.NoTokens, p.at+"/type", fmt.Sprintf("cache_aware finds no prefix without tokens, and model %q has no tokenizer", m.ID)).
					Hint = "add a tokenizer to the model; until then the policy picks by load, as on a miss"
			}
			if !named {
				named = true // once is enough
				r.add(diag.DefaultIndex, p.at+"/type", fmt.Sprintf("no state.prefix is written, so each router keeps an index of its own of up to %d blocks", config.DefaultMaxBlocks)).
					Hint = "write state: {prefix: {local: {}}} if that is meant, or name a remote index"
			}
			break // one for each model
		}
	}
}

// ruleTargets warns about an order by estimates that no bucket has.
func ruleTargets(r *rules) {
	for _, m := range r.models {
		if !r.intact(m.at) {
			continue
		}
		r.target(&m, "ttft_slo", m.TTFTSLO, "ttft_ms", func(b *config.Bucket) bool { return b.TTFTMS != nil })
		r.target(&m, "tps_slo", m.TPSSLO, "tokens_per_second", func(b *config.Bucket) bool { return b.TokensPerSecond != nil })
	}
}

func (r *rules) target(m *modelAt, field string, mode *string, estimate string, has func(*config.Bucket) bool) {
	if mode == nil || *mode == config.DefaultSLO {
		return
	}
	for i := range m.buckets() {
		if has(&m.buckets()[i]) {
			return
		}
	}
	r.add(diag.NoEstimates, m.at+"/"+field, fmt.Sprintf("%s %s changes nothing, because no bucket has %s", field, *mode, estimate)).
		Hint = fmt.Sprintf("add %s to the buckets, or disable %s", estimate, field)
}
