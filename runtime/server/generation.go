package server

import (
	"shunt/runtime/forward"
	"shunt/runtime/prepare"
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
	// Tokenizer is nil if no decision about the model needs tokens: lengths are
	// then estimated.
	Tokenizer *prepare.Tokenizer
	// Sampling is nil if requests choose freely.
	Sampling *prepare.Sampling
	// Prefix says that some policy looks up who holds a prompt's prefix.
	Prefix bool
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

// unready lists the models that could not be served now.
func (g *Generation) unready() (ids []string) {
	for _, id := range g.Order {
		if !g.Models[id].Resolver.Ready() {
			ids = append(ids, id)
		}
	}
	return ids
}
