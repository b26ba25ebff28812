package check

import (
	"fmt"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// estimateAt is one of the two kinds of estimates of a model.
type estimateAt struct {
	field, mode string
	on          *string
	// of is the estimate of a bucket, and false without one.
	of func(*config.Bucket) (float64, bool)
}

func (m *modelAt) estimates() [2]estimateAt {
	return [...]estimateAt{
		{"ttft_ms", "ttft_slo", m.TTFTSLO, func(b *config.Bucket) (float64, bool) {
			return float64(config.Or(b.TTFTMS, 0)), b.TTFTMS != nil
		}},
		{"tokens_per_second", "tps_slo", m.TPSSLO, func(b *config.Bucket) (float64, bool) {
			return config.Or(b.TokensPerSecond, 0), b.TokensPerSecond != nil
		}},
	}
}

// ruleEstimates warns about estimates that do not tell buckets apart.
func ruleEstimates(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		if !r.intact(m.at) {
			continue
		}
		for _, e := range m.estimates() {
			if e.on != nil && *e.on != config.DefaultSLO {
				r.estimate(m, e)
			}
		}
	}
}

func (r *rules) estimate(m *modelAt, e estimateAt) {
	var values []float64
	var without []int
	equal := true
	for i := range m.buckets() {
		v, ok := e.of(&m.buckets()[i])
		if !ok {
			without = append(without, i)
			continue
		}
		values = append(values, v)
		equal = equal && v == values[0]
	}
	switch {
	case len(values) == 0:
		// Reported as an order by estimates that no bucket has.
	case len(without) > 0:
		partial := several{}
		for _, i := range without {
			if partial.next() {
				r.add(diag.PartialEstimates, m.bucketAt(i)+"/id", fmt.Sprintf("bucket %q has no %s, so it misses every target of %s", m.buckets()[i].ID, e.field, e.mode)).
					Hint = fmt.Sprintf("add %s to the bucket", e.field)
			}
		}
		partial.finish(r, "bucket")
	case equal && len(values) > 1:
		r.add(diag.EqualEstimates, m.at+"/"+e.mode, fmt.Sprintf("%s changes nothing, because every bucket has the same %s", e.mode, e.field)).
			Hint = "correct the estimates, or disable " + e.mode
	}
}

// ruleSwitchedOff warns about settings beside a switch that turns them off.
func ruleSwitchedOff(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		for _, e := range m.estimates() {
			if e.on == nil || *e.on != config.DefaultSLO {
				continue
			}
			off := several{}
			for b := range m.buckets() {
				if _, ok := e.of(&m.buckets()[b]); ok && off.next() {
					r.switchedOff(m.bucketAt(b)+"/"+e.field, m.at+"/"+e.mode, e.mode+" is disabled")
				}
			}
			off.finish(r, "bucket")
		}
		for _, p := range m.policies() {
			if p.PressureGuard == nil || *p.PressureGuard {
				continue
			}
			for field, written := range p.thresholds() {
				if written {
					r.switchedOff(p.at+"/"+field, p.at+"/pressure_guard", "pressure_guard is false")
				}
			}
		}
	}
}

// thresholds says which settings of the pressure guard are written.
func (p *policyAt) thresholds() map[string]bool {
	return map[string]bool{
		"pressure_abs_threshold_tokens": p.PressureAbsThresholdTokens != nil,
		"pressure_abs_threshold_ms":     p.PressureAbsThresholdMS != nil,
		"pressure_rel_threshold":        p.PressureRelThreshold != nil,
	}
}

func (r *rules) switchedOff(path, by, why string) {
	f := r.addKey(diag.SwitchedOff, path, fmt.Sprintf("%s changes nothing, because %s", settingOf(path), why))
	f.Hint = "turn the switch on, or remove the setting"
	r.also(f, by, "the switch is here")
}

// ruleEmptySections warns about sections that restrict nothing because they are
// empty.
func ruleEmptySections(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		empty := several{}
		check := func(path, what string) {
			n := r.tree.Node(path)
			if n == nil || len(n.Fields)+len(n.Elems) > 0 || n.Kind != source.Struct && n.Kind != source.List || !empty.next() {
				return
			}
			r.addKey(diag.EmptySection, path, fmt.Sprintf("%s is empty, so it %s", path[strings.LastIndexByte(path, '/')+1:], what)).
				Hint = "fill it in or remove it"
		}
		for b := range m.buckets() {
			check(m.bucketAt(b)+"/limits", "takes inputs of any length")
			check(m.bucketAt(b)+"/groups/pd/match_labels", "keeps no engines apart")
		}
		for j := range m.groups {
			check(m.groups[j].at+"/labels", "selects every engine")
		}
		for _, p := range m.policies() {
			check(p.at+"/admission", "refuses nothing")
		}
		empty.finish(r, "section")
	}
}
