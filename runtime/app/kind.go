package app

import (
	"context"
	"math/rand/v2"
	"net/url"
	"sync/atomic"

	"shunt/runtime/fleet"
	"shunt/runtime/state/engineinfo"
	"shunt/runtime/state/prefix"
	"shunt/runtime/state/prefix/feed"
	"shunt/schema/plan"
)

// sameKind reports whether two models' engines run the same and hash alike.
func sameKind(a, b *plan.EngineKind) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && equal(a.Hashing, b.Hashing)
}

// said is what a plan says about the events of a model's engines, by engine. It is
// nil where engines are asked.
type said struct {
	blockSize int
	events    map[string]engineinfo.Info
}

func newSaid(m *plan.Model) *said {
	if m.Engine == nil || m.Engine.Hashing == nil {
		return nil
	}
	s := &said{blockSize: int(m.Engine.Hashing.BlockSize), events: make(map[string]engineinfo.Info)}
	for _, e := range m.Engines() {
		k := e.KVEvents
		if k == nil {
			continue
		}
		host := k.Host
		if u, err := url.Parse(e.URL); err == nil && host == "" {
			host = u.Hostname()
		}
		info := engineinfo.Info{
			Publishes: true, Host: host, Port: int(k.Port), Topic: k.Topic, BlockSize: s.blockSize, Ranks: int(k.Ranks),
		}
		if k.ReplayPort != nil {
			info.ReplayPort = int(*k.ReplayPort)
		}
		s.events[e.ID] = info
	}
	return s
}

// eventFeed makes the feed of a model's cache events. What vLLM engines do not say
// themselves comes from the plan in force.
func (s *services) eventFeed(m *plan.Model, index *prefix.Index, space *prefix.Namespace, in *atomic.Pointer[said]) *feed.Feed {
	o := feed.Options{
		Model: m.ID, Index: index, Namespace: space, Describe: s.describe,
		Log: s.log, Metrics: s.set, Jitter: rand.Int64N,
	}
	if m.Engine != nil && m.Engine.Hashing != nil {
		o.Scheme, o.Seed = prefix.VLLM, m.Engine.Hashing.Seed
		o.Describe = func(_ context.Context, e *fleet.Engine) (engineinfo.Info, error) {
			if now := in.Load(); now != nil {
				return now.events[e.ID()], nil
			}
			return engineinfo.Info{}, nil
		}
	}
	return feed.New(o)
}
