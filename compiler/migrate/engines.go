package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/flags"
	"shunt/schema/plan"
)

// The roles of engines, and the kinds of deployments.
const (
	plain   = "plain"
	prefill = "prefill"
	decode  = "decode"
	pd      = "pd"
)

// RoleAnswer says what an engine does. The older router asked each engine itself,
// so no command line has it.
type RoleAnswer struct {
	// URL is empty for all engines that have no answer of their own.
	URL  string
	Role string
	// BootstrapPort is that of a prefill engine, 0 for none.
	BootstrapPort uint64
}

// ParseRole reads an answer: ROLE or URL=ROLE, with :PORT behind prefill for the
// bootstrap port.
func ParseRole(s string) (RoleAnswer, error) {
	var a RoleAnswer
	cut := strings.LastIndexByte(s, '=')
	a.URL, a.Role = s[:max(cut, 0)], s[cut+1:]
	if cut == 0 {
		return a, errors.New("the URL before = is empty")
	}
	role, port, ported := strings.Cut(a.Role, ":")
	a.Role = role
	if !slices.Contains([]string{plain, prefill, decode}, role) {
		return a, fmt.Errorf("%q is not plain, prefill or decode", role)
	}
	if !ported {
		return a, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || role != prefill {
		return a, errors.New("only prefill has a bootstrap port, as in prefill:8998")
	}
	a.BootstrapPort = n
	return a, nil
}

// engine is one engine of the configuration.
type engine struct {
	id, url, role string
	bootstrap     uint64
	labels        map[string]string
	// line is the argument or answer that names it.
	line *Line
	// comment is the origin of the engine.
	comment string
}

// engineList collects the engines and what they do.
func (m *migration) engineList() {
	for _, g := range m.line.All("worker-urls") {
		for _, v := range g.Values {
			if !v.Bad {
				m.listed(v)
			}
		}
	}
	m.roles()
	if m.line.Has("worker-urls") {
		m.source("worker-urls").raise(Carried)
	}
	m.discovery()
	m.kindOf()
}

// listed adds an engine of --worker-urls. Its id is its URL, as it always was.
func (m *migration) listed(v flags.Value) {
	id, l := strings.TrimSpace(v.Text), m.byElement[v.At]
	url, err := plan.NormalizeURL(id)
	if err != nil {
		l.find(diag.LegacyNoEquivalent, fmt.Sprintf("the engine %q %v", diag.Mask(id), err), "name the scheme, host and port of the engine alone")
		return
	}
	comment := fmt.Sprintf("--worker-urls (%s)", m.line.Args[v.At].Pos)
	if url != id {
		l.note("%s is written %s", id, url)
	}
	m.engines = append(m.engines, engine{id: id, url: url, line: l, comment: comment})
}

// roles takes the answers to what each engine does.
func (m *migration) roles() {
	used := make([]bool, len(m.options.Roles))
	var open []string
	for i := range m.engines {
		e := &m.engines[i]
		for pass := 0; pass < 2 && e.role == ""; pass++ {
			for j, a := range m.options.Roles {
				url, err := plan.NormalizeURL(a.URL)
				if pass == 0 && err == nil && url == e.url || pass == 1 && a.URL == "" {
					e.role, e.bootstrap, used[j] = a.Role, a.BootstrapPort, true
					break
				}
			}
		}
		if e.role == "" {
			open = append(open, e.id)
		}
	}
	for j, a := range m.options.Roles {
		if !used[j] {
			what := "every engine has an answer already"
			if a.URL != "" {
				what = "no engine has the URL " + a.URL
			}
			m.report.Findings.Add(diag.New(diag.LegacyDecision, diag.Pos{}, "", fmt.Sprintf("the answer --role %s is not needed: %s", a.Role, what))).
				Hint = "remove it"
		}
	}
	if len(open) > 0 {
		m.askRoles(open)
	}
}

// askRoles reports the engines whose role is not known.
func (m *migration) askRoles(open []string) {
	shown := open
	if len(shown) > 5 {
		shown = append(slices.Clone(shown[:5]), fmt.Sprintf("and %d more", len(open)-5))
	}
	l := m.source("worker-urls")
	l.find(diag.LegacyDecision, "what the engines do is not known: the older router asked them itself: "+strings.Join(shown, ", "),
		fmt.Sprintf("say --role plain when all are whole engines, else --role %s=prefill:BOOTSTRAP_PORT and so on, or answer engines in the decisions file", open[0]))
}

// discovery takes the arguments of Kubernetes discovery, which a configuration
// does not have: its engines are a list that somebody has to write.
func (m *migration) discovery() {
	if !m.line.Has("service-discovery") {
		return
	}
	l := m.source("service-discovery")
	known := len(m.engines) > 0 && !m.line.Has("worker-urls")
	if !known {
		l.find(diag.LegacyDecision, "the engines are not known: the older router asked Kubernetes, and a configuration lists them",
			"list them under engines in the decisions file, and compile a new plan when they change")
	}
	for _, name := range []string{"service-discovery", "service-discovery-namespace", "selector", "prefill-selector", "decode-selector"} {
		if !m.line.Has(name) {
			continue
		}
		l := m.source(name)
		if !known && name != "service-discovery" {
			l.find(diag.LegacyDecision, "it selects engines that are not known", "list them under engines in the decisions file")
			continue
		}
		l.change(Discovery, "Kubernetes is not asked; the engines are those of the decisions file, and a change of them needs a new plan")
	}
}

// kindOf finds out whether engines are whole or pairs. One model cannot have
// both.
func (m *migration) kindOf() {
	count := make(map[string]int)
	for _, e := range m.engines {
		count[e.role]++
	}
	switch pairs := count[prefill] + count[decode]; {
	case count[plain] > 0 && pairs > 0:
		m.report.Findings.Add(diag.New(diag.LegacyNoEquivalent, diag.Pos{}, "",
			fmt.Sprintf("the model has %d plain engines and %d of pairs, and the older router refuses the second kind", count[plain], pairs))).
			Hint = "give the model engines of one kind"
	case count[plain] > 0:
		m.kind = plain
	case pairs > 0:
		m.kind = pd
		for _, role := range []string{prefill, decode} {
			if count[role] == 0 && count[""] == 0 {
				m.report.Findings.Add(diag.New(diag.LegacyNoEquivalent, diag.Pos{}, "", "the model has no "+role+" engine, so no pair can be formed")).
					Hint = "name the " + role + " engines too"
			}
		}
	}
}

// writeEngines writes the list of engines.
func (m *migration) writeEngines() {
	const at = "/models/0/discovery/static/engines"
	list := m.root.at(at)
	list.kind = listNode
	for i, e := range m.engines {
		n := &node{}
		id := text(e.id)
		id.comment = e.comment
		n.put("id", id)
		n.put("url", text(e.url))
		if e.role == "" {
			n.todo = append(n.todo, "role: plain, prefill or decode")
		} else {
			n.put("role", text(e.role))
		}
		if e.bootstrap > 0 {
			n.put("bootstrap_port", number(e.bootstrap))
		}
		if len(e.labels) > 0 {
			labels := &node{}
			for _, key := range slices.Sorted(maps.Keys(e.labels)) {
				labels.put(key, text(e.labels[key]))
			}
			n.put("labels", labels)
		}
		list.kids = append(list.kids, n)
		pointer := fmt.Sprintf("%s/%d", at, i)
		if e.line != nil {
			e.line.Targets = append(e.line.Targets, pointer)
			m.origins[pointer] = e.line
		}
	}
}
