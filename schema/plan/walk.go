package plan

import (
	"cmp"
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

// Place is a line of a source file.
type Place struct {
	File string
	Line int
}

// Places returns where each value was written, by its pointer below body. A value
// that is not there is a default or derived. Words that do not have the form of
// Origins.Lines are left out; nothing depends on them.
func (p *Provenance) Places() map[string]Place {
	out := make(map[string]Place, 8*len(p.Origins))
	for i := range p.Origins {
		for word := range strings.SplitSeq(p.Origins[i].Lines, " ") {
			member, at, _ := strings.Cut(word, ":")
			number, index, _ := strings.Cut(at, "@")
			source, err := strconv.Atoi(cmp.Or(index, "0"))
			line, err2 := strconv.Atoi(number)
			if err == nil && err2 == nil && source >= 0 && source < len(p.Sources) {
				out[p.Origins[i].At+"/"+member] = Place{p.Sources[source].Path, line}
			}
		}
	}
	return out
}
