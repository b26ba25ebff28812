package report

import (
	"fmt"
	"io"
	"strings"

	"shunt/schema/plan"
)

// writeState writes the services that policies share.
func writeState(w io.Writer, s *plan.State) {
	how := "published or polled"
	if s.Load.Transport == plan.LoadPoll {
		how = "polled"
	}
	fmt.Fprintf(w, "  load reports are %s every %s and count for %s\n", how, duration(s.Load.PollIntervalMS), duration(s.Load.FreshnessMS))
	if p := s.Prefix; p != nil && p.Local != nil {
		fmt.Fprintf(w, "  prefix index in this process, up to %d blocks\n", p.Local.MaxBlocks)
	}
	if p := s.Prefix; p != nil && p.Remote != nil {
		fmt.Fprintf(w, "  prefix index at %s, queries up to %s, %d at a time\n", p.Remote.Endpoint, duration(p.Remote.QueryTimeoutMS), p.Remote.MaxInflight)
	}
	if a := s.Affinity; a != nil && a.Memory != nil {
		fmt.Fprintf(w, "  bindings in this process, up to %d, unused ones for %s, swept every %s\n",
			a.Memory.MaxEntries, duration(a.IdleMS), duration(a.Memory.SweepMS))
	}
	if a := s.Affinity; a != nil && a.Redis != nil {
		fmt.Fprintf(w, "  bindings in Redis by %s, unused ones for %s, answers within %s, on failure %s\n",
			a.Redis.URL, duration(a.IdleMS), duration(a.Redis.TimeoutMS), a.Redis.OnFailure)
	}
}

// writeSettings writes what a model has besides engines and buckets.
func writeSettings(w io.Writer, m *plan.Model) {
	if k := m.Engine; k != nil {
		fmt.Fprintf(w, "  engines run %s%s\n", k.Type, hashing(k.Hashing))
	}
	if t := m.Tokenizer; t != nil {
		forwarded := "forwarded where exact"
		if !t.ForwardInputIDs {
			forwarded = "not forwarded"
		}
		if e := t.Engine; e != nil {
			fmt.Fprintf(w, "  engines tokenize, asked for up to %s, %d at a time, bodies up to %d bytes; ids %s\n",
				duration(e.TimeoutMS), e.MaxInflight, e.MaxBodyBytes, forwarded)
		} else {
			fmt.Fprintf(w, "  tokenizer %s, ids %s\n", t.Path, forwarded)
		}
	}
	if s := m.Sampling; s != nil {
		fmt.Fprintf(w, "  sampling %s, other values: %s\n", strings.Join(params(s), ", "), s.Conflict)
	}
	if a := m.Affinity; a != nil && a.SessionID != "" {
		fmt.Fprintf(w, "  sessions by header %s\n", a.SessionID)
	}
	if a := m.Affinity; a != nil && a.RoutingKey != "" {
		fmt.Fprintf(w, "  routing keys by header %s\n", a.RoutingKey)
	}
	if m.SLO != nil {
		fmt.Fprintf(w, "  latency targets: ttft %s, tps %s\n", m.SLO.TTFT, m.SLO.TPS)
	}
}

func hashing(h *plan.Hashing) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf(", blocks of %d tokens hashed by %s with seed %q", h.BlockSize, h.Algorithm, h.Seed)
}

func params(s *plan.Sampling) []string {
	out := make([]string, len(s.Params))
	for i, p := range s.Params {
		if p.Value != nil {
			out[i] = fmt.Sprintf("%s %v", p.Name, *p.Value)
		} else {
			out[i] = fmt.Sprintf("%s %v to %v", p.Name, *p.Min, *p.Max)
		}
	}
	return out
}

func estimates(b *plan.Bucket) string {
	text := ""
	if b.TTFTMS != nil {
		text += fmt.Sprintf(", ttft %d ms", *b.TTFTMS)
	}
	if b.TokensPerSecond != nil {
		text += fmt.Sprintf(", %v tokens/s", *b.TokensPerSecond)
	}
	return text
}

func writeCacheAware(w io.Writer, t *plan.CacheAwareTuning) {
	fmt.Fprintf(w, "        matches from %d tokens and ratio %v; holders %v of the group, %d to %d; margin %d tokens\n",
		t.MinMatchedTokens, t.MinMatchRatio, t.CandidateRatio, t.CandidateMinWorkers, t.CandidateMaxWorkers, t.SwitchMarginTokens)
	guard := "off"
	if t.PressureGuard {
		guard = fmt.Sprintf("above %d tokens", t.PressureAbsThresholdTokens)
		if t.PressureAbsThresholdMS != nil {
			guard += fmt.Sprintf(" or %v ms", *t.PressureAbsThresholdMS)
		}
		guard += fmt.Sprintf(" and factor %v", t.PressureRelThreshold)
	}
	queue := "any queue"
	if t.WorkerQueueLimit != nil {
		queue = fmt.Sprintf("queues below %d", *t.WorkerQueueLimit)
	}
	if t.SaturationQueueFloor != nil {
		queue += fmt.Sprintf(", saturated from %d", *t.SaturationQueueFloor)
	}
	fmt.Fprintf(w, "        pressure guard %s; %s\n", guard, queue)
}
