package assemble

import (
	"errors"
	"fmt"

	"shunt/runtime/policy"
	"shunt/schema/plan"
)

// policy makes the policy of a group.
func (a *assembler) policy(model string, p *plan.Policy) (policy.Policy, error) {
	adm := limits(p.Admission)
	switch p.Type {
	case plan.CacheAware:
		return a.cacheAware(model, p.CacheAware, adm)
	case plan.SessionAware:
		if p.SessionAware == nil {
			return nil, errNoSection
		}
		fallback, err := a.bound(&p.SessionAware.Fallback)
		if err != nil {
			return nil, err
		}
		return &policy.SessionAware{Loads: a.loads, Admission: adm, Bindings: a.Bindings, Fallback: fallback}, nil
	case plan.Sticky:
		if p.Sticky == nil {
			return nil, errNoSection
		}
		fallback, err := a.bound(&p.Sticky.Fallback)
		if err != nil {
			return nil, err
		}
		return &policy.Sticky{Loads: a.loads, Admission: adm, Bindings: a.Bindings, Fallback: fallback}, nil
	}
	return a.simple(p.Type, p.PowerOfTwo, adm)
}

// The plan was not checked, or the caller lacks a service that it requires.
var (
	errNoSection  = errors.New("the policy has no section")
	errNoBindings = errors.New("the policy needs an affinity store")
	errNoPrefixes = errors.New("the policy needs a prefix source")
)

// simple makes a policy that can be a fallback, too.
func (a *assembler) simple(t plan.PolicyType, two *plan.PowerOfTwoTuning, adm policy.Admission) (policy.Policy, error) {
	switch t {
	case plan.RoundRobin:
		return &policy.RoundRobin{Loads: a.loads, Admission: adm}, nil
	case plan.Random:
		return &policy.Random{Loads: a.loads, Admission: adm, IntN: a.IntN}, nil
	case plan.PowerOfTwo:
		if two == nil {
			return nil, errNoSection
		}
		return &policy.PowerOfTwo{Loads: a.loads, Admission: adm, IntN: a.IntN, Choices: int(two.Choices)}, nil
	case plan.LoadBased:
		return &policy.LoadBased{Loads: a.loads, Admission: adm}, nil
	}
	return nil, fmt.Errorf("policy type %q is unknown", t)
}

// fallback makes the policy inside another one. It has no limits, because its
// owner checks what it picks.
func (a *assembler) fallback(f *plan.FallbackPolicy) (policy.Policy, error) {
	p, err := a.simple(f.Type, f.PowerOfTwo, nil)
	if err != nil {
		return nil, fmt.Errorf("fallback: %w", err)
	}
	return p, nil
}

// bound is fallback for a policy that keeps bindings.
func (a *assembler) bound(f *plan.FallbackPolicy) (policy.Policy, error) {
	if a.Bindings == nil {
		return nil, errNoBindings
	}
	return a.fallback(f)
}

func (a *assembler) cacheAware(model string, t *plan.CacheAwareTuning, adm policy.Admission) (policy.Policy, error) {
	if t == nil {
		return nil, errNoSection
	}
	prefixes, err := a.prefixes(model)
	if err != nil {
		return nil, err
	}
	fallback, err := a.fallback(&t.Fallback)
	if err != nil {
		return nil, err
	}
	tuning := policy.CacheTuning{
		MinMatched: t.MinMatchedTokens, MinRatio: t.MinMatchRatio,
		CandidateMin: int(t.CandidateMinWorkers), CandidateMax: int(t.CandidateMaxWorkers), CandidateRatio: t.CandidateRatio,
		SwitchMargin: t.SwitchMarginTokens,
		Guard:        t.PressureGuard, GuardTokens: uint64(t.PressureAbsThresholdTokens), GuardFactor: t.PressureRelThreshold,
		QueueLimit: maxOf(t.WorkerQueueLimit), QueueFloor: maxOf(t.SaturationQueueFloor),
	}
	if t.PressureAbsThresholdMS != nil {
		tuning.GuardMS = policy.Above(*t.PressureAbsThresholdMS)
	}
	return policy.NewCacheAware(policy.CacheOptions{
		Loads: a.loads, Admission: adm, Prefixes: prefixes, Fallback: fallback, Tuning: tuning, Counters: a.Caches[model],
	})
}

// prefixes wraps the source of a model, once for all who share it.
func (a *assembler) prefixes(model string) (policy.Prefixes, error) {
	source := a.Prefixes[model]
	if source == nil {
		return nil, errNoPrefixes
	}
	x := a.indexes[source]
	if x == nil {
		x = &policy.Indexed{Source: source}
		a.indexes[source] = x
	}
	return x, nil
}
