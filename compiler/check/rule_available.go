package check

import (
	"fmt"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
)

// The policy types that the schema knows and the runtime does not run yet.
const (
	cacheAware   = "cache_aware"
	sessionAware = "session_aware"
	sticky       = "sticky"
)

// ruleAvailable refuses what is part of the language and not available yet.
func ruleAvailable(r *rules) {
	section := func(code diag.Code, path string, s *config.Section) {
		if s != nil {
			name := path[strings.LastIndexByte(path, '/')+1:]
			if strings.HasPrefix(path, "/state/") {
				name = "state." + name
			}
			r.addKey(code, path, name+" is not available yet").Hint = hintOf(code)
		}
	}
	section(diag.NoPrefixState, "/state/prefix", r.cfg.State.Prefix)
	section(diag.NoAffinityState, "/state/affinity", r.cfg.State.Affinity)
	for _, m := range r.models {
		section(diag.NoTokenizer, m.at+"/tokenizer", m.Tokenizer)
		section(diag.NoSampling, m.at+"/sampling", m.Sampling)
		section(diag.NoAffinityHeaders, m.at+"/affinity", m.Affinity)
		r.slo(m.at+"/ttft_slo", m.TTFTSLO)
		r.slo(m.at+"/tps_slo", m.TPSSLO)
		for i := range m.buckets() {
			section(diag.NoSLO, m.bucketAt(i)+"/ttft_ms", m.buckets()[i].TTFTMS)
			section(diag.NoSLO, m.bucketAt(i)+"/tokens_per_second", m.buckets()[i].TokensPerSecond)
		}
		for _, p := range m.policies() {
			r.available(p)
		}
	}
}

// slo refuses an ordering by service levels; disabled is what happens anyway.
func (r *rules) slo(path string, mode *string) {
	if mode != nil && *mode != "disabled" {
		r.add(diag.NoSLO, path, fmt.Sprintf("%s %s is not available yet", path[strings.LastIndexByte(path, '/')+1:], *mode)).Hint = hintOf(diag.NoSLO)
	}
}

// available refuses a policy that the runtime cannot run yet. On a decode group
// cache_aware never will be; rulePolicyStage says so.
func (r *rules) available(p policyAt) {
	var code diag.Code
	switch p.Type {
	case cacheAware:
		code = diag.NoCacheAware
	case sessionAware:
		code = diag.NoSessionAware
	case sticky:
		code = diag.NoSticky
	}
	if code != "" && !(p.decode && p.Type == cacheAware) {
		r.add(code, p.at+"/type", fmt.Sprintf("policy %s is not available yet", p.Type)).Hint = hintOf(code)
	}
}

// hintOf returns the hint of the table of codes in the form of a finding's.
func hintOf(code diag.Code) string {
	e, _ := diag.Lookup(code)
	if e.Hint == "" {
		return ""
	}
	return strings.ToLower(e.Hint[:1]) + strings.TrimSuffix(e.Hint[1:], ".")
}
