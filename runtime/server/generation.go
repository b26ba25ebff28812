package server

import (
	"slices"

	"shunt/runtime/fleet"
	"shunt/runtime/forward"
	"shunt/runtime/routing"
)

// Generation is everything that one plan decides about serving. It is immutable
// once it was given to Swap.
type Generation struct {
	// Digest and Plan are those of the plan document, for the admin views.
	Digest string
	Plan   []byte
	// Models are the served models by id.
	Models map[string]*Model
	// Order lists the ids of Models as clients see them.
	Order    []string
	Settings Settings
}

// Model is one served model.
type Model struct {
	Resolver *routing.Resolver
	// SessionHeader and RoutingKeyHeader name the headers that carry affinity
	// keys; empty is none.
	SessionHeader, RoutingKeyHeader string
}

// Settings are the limits of serving.
type Settings struct {
	// MaxBody bounds a request body in bytes; 0 is 32 MiB.
	MaxBody  int64
	Timeouts forward.Timeouts
	// ExposeDecision adds the x-shunt-decision header to answers.
	ExposeDecision bool
}

const defaultMaxBody = 32 << 20

func (s *Settings) maxBody() int64 {
	if s.MaxBody > 0 {
		return s.MaxBody
	}
	return defaultMaxBody
}

// ready reports whether every model could be served now.
func (g *Generation) ready() bool {
	for _, m := range g.Models {
		if !m.ready() {
			return false
		}
	}
	return true
}

// ready reports whether, for each kind of bucket that the model has, some bucket
// of the kind has candidates for all its stages.
func (m *Model) ready() bool {
	var plain, pd, plainReady, pdReady bool
	for _, b := range m.Resolver.Buckets {
		switch g := b.Groups.(type) {
		case routing.PlainGroups:
			plain = true
			plainReady = plainReady || len(g.Plain.Engines.Engines()) > 0
		case routing.PDGroups:
			pd = true
			pdReady = pdReady || paired(&g)
		}
		if plain == plainReady && pd == pdReady && plain && pd {
			break
		}
	}
	return plain == plainReady && pd == pdReady
}

// paired reports whether a PD bucket could give a pair.
func paired(g *routing.PDGroups) bool {
	decodes := g.Decode.Engines.Engines()
	return slices.ContainsFunc(g.Prefill.Engines.Engines(), func(p *fleet.Engine) bool {
		return slices.ContainsFunc(decodes, func(d *fleet.Engine) bool {
			return !slices.ContainsFunc(g.MatchLabels, func(l string) bool { return p.Label(l) != d.Label(l) })
		})
	})
}
