package legacy

import (
	"cmp"
	"math"
	"slices"
)

// Stage is what a domain is for. Whole requests use prefill domains too.
type Stage string

// The stages.
const (
	Prefill Stage = "prefill"
	Decode  Stage = "decode"
)

// Mode is how estimates order domains.
type Mode string

// The modes; the zero value is Disabled.
const (
	Disabled   Mode = "disabled"
	SLOFirst   Mode = "slo_first"
	BestEffort Mode = "best_effort"
)

// Global is the id of the domain of all engines.
const Global = "global"

// Spec is a bucket of one stage. Nil is unset; bounds are inclusive.
type Spec struct {
	ID      string
	Stage   Stage
	Rank    uint32
	Members []string

	MinExtend, MaxExtend     *uint64
	MinSequence, MaxSequence *uint64
	MaxContext               *uint64
	MaxPending               *uint64
	TTFT                     *uint64
	TPS                      *float64
}

// Config is a bucket file.
type Config struct {
	Specs             []Spec
	TTFTMode, TPSMode Mode
}

// Request is what selection knows of a request; nil is unknown.
type Request struct {
	Input  uint64
	Output *uint64
	// TTFT and TPS are the request's targets.
	TTFT *uint64
	TPS  *float64
	// Key is the session or the routing key, empty without one.
	Key string
}

// Peak is the expected length at the end, the input alone when the output is
// unknown. It saturates.
func Peak(input uint64, output *uint64) uint64 {
	if output == nil {
		return input
	}
	if input > math.MaxUint64-*output {
		return math.MaxUint64
	}
	return input + *output
}

// Domain is a bucket with its live engines, in the order of the fleet.
type Domain struct {
	ID      string
	Engines []string
	// MaxPending is the budget of waiting uncached tokens, nil for none.
	MaxPending *uint64
}

// Domains lists the domains that a request fits, in the order they are tried.
// Fleet are the healthy engines of the stage.
func (c *Config) Domains(stage Stage, r Request, fleet []string) []Domain {
	return c.domains(stage, r, fleet, rules{fits: (*Spec).fits, order: (*Spec).order})
}

// rules are those that a change replaces.
type rules struct {
	fits  func(*Spec, Request) bool
	order func(a, b *Spec) int
}

func (c *Config) domains(stage Stage, r Request, fleet []string, by rules) []Domain {
	if !c.configures(stage) {
		return live([]Domain{{ID: Global, Engines: fleet}})
	}
	var specs []Spec
	for _, s := range c.Specs {
		if s.Stage == stage && by.fits(&s, r) {
			specs = append(specs, s)
		}
	}
	slices.SortFunc(specs, func(a, b Spec) int { return by.order(&a, &b) })
	var out []Domain
	for _, s := range c.preferred(stage, specs, r) {
		out = append(out, s.domain(fleet))
	}
	return live(out)
}

func (c *Config) configures(stage Stage) bool {
	return c != nil && slices.ContainsFunc(c.Specs, func(s Spec) bool { return s.Stage == stage })
}

func (s *Spec) domain(fleet []string) Domain {
	return Domain{ID: s.ID, Engines: Members(s.Members, fleet), MaxPending: s.MaxPending}
}

func (s *Spec) order(other *Spec) int {
	return cmp.Or(cmp.Compare(s.Rank, other.Rank), cmp.Compare(s.ID, other.ID))
}

// fits reports whether a bucket takes the request.
func (s *Spec) fits(r Request) bool {
	if s.Stage == Prefill {
		return within(r.Input, s.MinExtend, s.MaxExtend) && within(r.Input, nil, s.MaxContext)
	}
	if r.Output == nil {
		return s.MinSequence == nil && s.MaxSequence == nil && within(r.Input, nil, s.MaxContext)
	}
	peak := Peak(r.Input, r.Output)
	return within(peak, s.MinSequence, s.MaxSequence) && within(peak, nil, s.MaxContext)
}

func within(n uint64, lo, hi *uint64) bool { return (lo == nil || n >= *lo) && (hi == nil || n <= *hi) }

// preferred moves buckets that meet the request's target to the front, or to
// the back for best_effort, which keeps fast buckets for requests that need them.
func (c *Config) preferred(stage Stage, specs []Spec, r Request) []Spec {
	mode := c.TTFTMode
	if stage == Decode {
		mode = c.TPSMode
	}
	if mode == "" || mode == Disabled {
		return specs
	}
	var eligible, degraded []Spec
	for _, s := range specs {
		if s.eligible(r) {
			eligible = append(eligible, s)
		} else {
			degraded = append(degraded, s)
		}
	}
	if mode == SLOFirst {
		return append(eligible, degraded...)
	}
	return append(degraded, eligible...)
}

func (s *Spec) eligible(r Request) bool {
	if s.Stage == Prefill {
		return r.TTFT == nil || s.TTFT != nil && *s.TTFT <= *r.TTFT
	}
	return r.TPS == nil || s.TPS != nil && *s.TPS >= *r.TPS
}

// Members are the engines of the fleet that a bucket lists: the order of the
// fleet, exact names, each once.
func Members(listed, fleet []string) []string {
	var out []string
	for _, e := range fleet {
		if slices.Contains(listed, e) {
			out = append(out, e)
		}
	}
	return out
}

// live drops domains without engines.
func live(all []Domain) []Domain {
	return slices.DeleteFunc(all, func(d Domain) bool { return len(d.Engines) == 0 })
}
