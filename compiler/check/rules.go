package check

import (
	"slices"
	"strconv"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/compiler/source"
	"shunt/schema/plan"
)

// Rules holds a configuration against the rules between its parts and reports
// every violation and every warning, sorted. It may be called for a tree with
// mistakes of shape: those are the third argument, and no rule judges a part
// that a mistake of shape leaves unknown.
func Rules(t *source.Tree, c *config.Config, shape diag.List) diag.List {
	r := newRules(t, c, shape)
	for _, rule := range allRules() {
		rule(r)
	}
	r.list.Sort()
	return r.list
}

// allRules lists the rules. Those that find errors come first, because an
// analysis of the whole means nothing where there are some, and a rule that
// another one looks at comes before it.
func allRules() []func(*rules) {
	return []func(*rules){
		ruleNames, ruleUniqueModels, ruleUniqueBuckets, ruleUniqueEngines, ruleEngineURLs,
		ruleEngineRoles, ruleBootstrapPort, ruleCatchAll,
		ruleOneKind, ruleMembership, ruleRepeatedLabels, ruleLimitOrder, ruleRuns,
		rulePolicyStage, rulePolicyTuning, ruleDefaults,
		ruleAddresses, ruleServerRanges, ruleTimeoutOrder,
		ruleStateServices, ruleTokenizer, ruleEngineKind, ruleEvents, ruleSampling, ruleUnread, ruleCacheSignal, ruleTargets, rulePolling,
		ruleLengthGaps, rulePeakGaps, ruleShadowed, ruleReach, rulePairs, rulePairLabels, ruleAdmission,
		ruleRanges, ruleOneTokenOverlap, ruleOrder, ruleRankOverruled, ruleLostLimits, ruleLimitBypassed,
		ruleBounds, ruleMatchLength, ruleTokenLimit, ruleQueueGate, ruleDecodePending,
		ruleSwitchedOff, ruleEstimates, ruleEmptySections,
		ruleHeaders, ruleUnpaired, ruleSimilarLabels, rulePartialBootstrap, ruleSchemes, ruleHosts, ruleAlike, ruleSpaces,
		ruleDrain, ruleBreaker, ruleBody, ruleExposedDecision, ruleBindings, ruleLookup, ruleLoadTimes, rulePorts,
	}
}

// rules is what the rules share: the configuration, an index of it, and the
// findings so far.
type rules struct {
	tree *source.Tree
	cfg  *config.Config
	list diag.List
	// broken holds the paths of the mistakes of shape, sorted.
	broken []string
	models []modelAt
	// cut and shadowed hold the paths of buckets that a finding names already:
	// as cut off by their context, and as never used. lost holds those of groups
	// without the limits of their default.
	cut, shadowed, lost map[string]bool
}

// modelAt is a model with its place and an index.
type modelAt struct {
	*config.Model
	at string
	// known says that the list of engines has no mistake of shape, idsKnown
	// that it has none that leaves an id open.
	known    bool
	idsKnown bool
	engines  []config.Engine
	// byID has the index of the first engine of each id.
	byID   map[string]int
	groups []groupAt
}

// groupAt is a group that the configuration writes, with its place.
type groupAt struct {
	*config.Group
	at     string
	bucket int
	stage  plan.Role
	// members is never nil.
	members *members
}

func newRules(t *source.Tree, c *config.Config, shape diag.List) *rules {
	r := &rules{tree: t, cfg: c, cut: make(map[string]bool), shadowed: make(map[string]bool), lost: make(map[string]bool)}
	for i := range shape {
		if shape[i].Severity == diag.Error {
			r.broken = append(r.broken, shape[i].Path)
		}
	}
	slices.Sort(r.broken)
	for i := range c.Models {
		r.models = append(r.models, r.index(&c.Models[i], "/models/"+strconv.Itoa(i)))
	}
	return r
}

// index looks a model through once for all rules.
func (r *rules) index(m *config.Model, at string) modelAt {
	out := modelAt{Model: m, at: at, known: m.Discovery.Static != nil && r.intact(at+"/discovery")}
	out.idsKnown = m.Discovery.Static != nil && r.named(at+"/discovery")
	if m.Discovery.Static != nil {
		out.engines = slices.Clone(m.Discovery.Static.Engines)
	}
	for i := range out.engines {
		// Nothing follows from a role that is a mistake.
		if !r.intact(out.engineAt(i) + "/role") {
			out.engines[i].Role = ""
		}
	}
	out.byID = make(map[string]int, len(out.engines))
	for i := range out.engines {
		if _, ok := out.byID[out.engines[i].ID]; !ok {
			out.byID[out.engines[i].ID] = i
		}
	}
	for i := range out.buckets() {
		g := &out.buckets()[i].Groups
		p := out.bucketAt(i) + "/groups/"
		if g.Plain != nil {
			out.groups = append(out.groups, groupAt{Group: g.Plain, at: p + "plain", bucket: i, stage: plan.Plain})
		}
		if g.PD != nil {
			out.groups = append(out.groups,
				groupAt{Group: &g.PD.Prefill, at: p + "pd/prefill", bucket: i, stage: plan.Prefill},
				groupAt{Group: &g.PD.Decode, at: p + "pd/decode", bucket: i, stage: plan.Decode})
		}
	}
	x := newMemberIndex(&out)
	for i := range out.groups {
		out.groups[i].members = x.of(&out.groups[i])
	}
	return out
}

// buckets lists the buckets that the model writes; a catch-all bucket is not
// among them.
func (m *modelAt) buckets() []config.Bucket {
	if m.Buckets == nil {
		return nil
	}
	return *m.Buckets
}

func (m *modelAt) bucketAt(i int) string { return m.at + "/buckets/" + strconv.Itoa(i) }

func (m *modelAt) engineAt(i int) string {
	return m.at + "/discovery/static/engines/" + strconv.Itoa(i)
}

// has reports whether an engine of the model has the role.
func (m *modelAt) has(role plan.Role) bool {
	return slices.ContainsFunc(m.engines, func(e config.Engine) bool { return e.Role == string(role) })
}

// intact reports whether no mistake of shape is at a path or below it.
func (r *rules) intact(path string) bool {
	i, _ := slices.BinarySearch(r.broken, path)
	for ; i < len(r.broken) && strings.HasPrefix(r.broken[i], path); i++ {
		if rest := r.broken[i][len(path):]; rest == "" || rest[0] == '/' {
			return false
		}
	}
	return true
}

// named reports whether all mistakes of shape below a discovery leave the ids of
// its engines known.
func (r *rules) named(discovery string) bool {
	i, _ := slices.BinarySearch(r.broken, discovery)
	for ; i < len(r.broken) && strings.HasPrefix(r.broken[i], discovery); i++ {
		rest, isEngine := strings.CutPrefix(r.broken[i], discovery+"/static/engines/")
		_, field, _ := strings.Cut(rest, "/")
		field, _, _ = strings.Cut(field, "/")
		if !isEngine || field == "" || field == "id" {
			return false
		}
	}
	return true
}

// add reports a finding at the value of a path. The pointer is valid until the
// next one. An object or list is not underlined, since it may have many lines.
func (r *rules) add(code diag.Code, path, message string) *diag.Finding {
	f := r.addAt(code, r.tree.Pos(path), path, message)
	if n := r.tree.Node(path); n == nil || n.Kind == source.Struct || n.Kind == source.List {
		f.End = diag.Pos{}
	}
	return f
}

// addKey reports a finding at the name of the field of a path.
func (r *rules) addKey(code diag.Code, path, message string) *diag.Finding {
	return r.addAt(code, r.tree.KeyPos(path), path, message)
}

func (r *rules) addAt(code diag.Code, pos diag.Pos, path, message string) *diag.Finding {
	f := r.list.Add(diag.New(code, pos, path, message))
	f.End = r.tree.End(pos)
	return f
}

// also adds a second place to a finding.
func (r *rules) also(f *diag.Finding, path, message string) {
	f.Related = append(f.Related, diag.Related{Pos: r.tree.Pos(path), Message: message})
}
