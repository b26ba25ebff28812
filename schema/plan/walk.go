package plan

import (
	"strconv"
	"strings"
)

// StagedGroup is a group with the stage that it serves.
type StagedGroup struct {
	Stage Role
	Group *Group
}

// All lists the groups in the order in which they are asked: the plain one, or
// prefill and then decode.
func (g *Groups) All() []StagedGroup {
	var out []StagedGroup
	if g.Plain != nil {
		out = append(out, StagedGroup{Plain, g.Plain})
	}
	if g.PD != nil {
		out = append(out, StagedGroup{Prefill, &g.PD.Prefill}, StagedGroup{Decode, &g.PD.Decode})
	}
	return out
}

// Member is the name of the group's place below "groups".
func (s StagedGroup) Member() string {
	if s.Stage == Plain {
		return "plain"
	}
	return "pd/" + string(s.Stage)
}

// Engines lists the engines of a model, whatever its discovery.
func (m *Model) Engines() []Engine {
	if m.Discovery.Static == nil {
		return nil
	}
	return m.Discovery.Static.Engines
}

// Matches reports whether e belongs to the group: its stage, membership and
// labels. Health is not a matter of the plan.
func (s StagedGroup) Matches(e *Engine) bool {
	if e.Role != s.Stage {
		return false
	}
	for name, value := range s.Group.Labels {
		if got, ok := e.Labels[name]; !ok || got != value {
			return false
		}
	}
	if s.Group.WorkerIDs == nil {
		return true
	}
	for _, id := range *s.Group.WorkerIDs {
		if id == e.ID {
			return true
		}
	}
	return false
}

// BucketPointer is the JSON pointer of a bucket below body.
func BucketPointer(model, bucket int) string {
	b := make([]byte, 0, 32)
	b = strconv.AppendInt(append(b, "/models/"...), int64(model), 10)
	b = strconv.AppendInt(append(b, "/buckets/"...), int64(bucket), 10)
	return string(b)
}

// Origin returns where the value at a pointer below body was written. It is not
// ok for a default or a derived value.
func (p *Provenance) Origin(pointer string) (file string, line int, ok bool) {
	for i := range p.Origins {
		member, below := strings.CutPrefix(pointer, p.Origins[i].At+"/")
		if !below {
			continue
		}
		if file, line, ok = p.find(p.Origins[i].Lines, member); ok {
			return file, line, true
		}
	}
	return "", 0, false
}

// find looks a member up in the words of one element.
func (p *Provenance) find(lines, member string) (file string, line int, ok bool) {
	for word := range strings.SplitSeq(lines, " ") {
		at, found := strings.CutPrefix(word, member+":")
		if !found {
			continue
		}
		number, index, more := strings.Cut(at, "@")
		source := 0
		if more {
			source, _ = strconv.Atoi(index)
		}
		line, err := strconv.Atoi(number)
		if err != nil || source < 0 || source >= len(p.Sources) {
			return "", 0, false
		}
		return p.Sources[source].Path, line, true
	}
	return "", 0, false
}
