package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/bucketfile"
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
	// legacy is the id that the older router gave it.
	id, legacy, url, role string
	bootstrap             uint64
	// decided is set when somebody said what the engine does.
	decided bool
	labels  map[string]string
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
	m.engines = append(m.engines, engine{id: id, legacy: id, url: url, line: l, comment: comment})
}

// sameURL reports whether two texts are the URL of one engine.
func sameURL(form, raw string) bool {
	other, err := plan.NormalizeURL(raw)
	return err == nil && other == form
}

// answered takes the engines of the decisions file: what those of the command
// line do, or all there are when Kubernetes was to find them.
func (m *migration) answered() {
	first := make(map[string]diag.Pos)
	for i := range m.answers.Engines {
		a := &m.answers.Engines[i]
		if a.URL == nil || a.Role == nil {
			continue // reported
		}
		url, err := plan.NormalizeURL(a.URL.Value)
		if err != nil {
			m.report.Findings.Add(diag.New(diag.BadDecision, a.Origin.Pos, "", fmt.Sprintf("the engine %q %v", diag.Mask(a.URL.Value), err))).
				Hint = "name the scheme, host and port of the engine alone"
			continue
		}
		if before, twice := first[url]; twice {
			f := m.report.Findings.Add(diag.New(diag.ClashingDecisions, a.Origin.Pos, a.Origin.Pointer, fmt.Sprintf("the engine %s is answered twice", url)))
			f.Hint, f.Related = "keep one of the answers", []diag.Related{{Pos: before, Message: "the first one is here"}}
			continue
		}
		first[url] = a.Origin.Pos
		at := slices.IndexFunc(m.engines, func(e engine) bool { return e.url == url })
		switch {
		case at >= 0:
		case m.line.Has("worker-urls") || !m.line.Has("service-discovery"):
			m.useless(a.Origin.Pos, "the older router has no engine "+diag.Mask(a.URL.Value), "remove it, or name the engine with --worker-urls")
			continue
		default:
			at = len(m.engines)
			m.engines = append(m.engines, engine{id: a.URL.Value, legacy: a.URL.Value, url: url, comment: fmt.Sprintf("decision (%s)", a.Origin.Pos)})
		}
		e := &m.engines[at]
		if e.role, e.decided = a.Role.Value, true; a.ID != nil {
			e.id = a.ID.Value
			if e.line == nil {
				e.legacy = e.id
			}
		}
		if a.BootstrapPort != nil {
			e.bootstrap = a.BootstrapPort.Value
		}
	}
}

// derived takes what the buckets say about engines: an engine of a prefill bucket
// that is paired is a prefill engine.
func (m *migration) derived() {
	for _, b := range m.buckets {
		for _, g := range b.groups {
			for _, id := range g.ids.value {
				e := m.engine(id)
				switch {
				case e == nil || e.role == g.stage:
				case e.role == "":
					e.role = g.stage
				default:
					g.ids.from[0].find(diag.LegacyNoEquivalent, fmt.Sprintf("the engine %s is used as %s here, and is %s", e.legacy, g.stage, e.role),
						"an engine does one thing: correct the bucket, or the answer about the engine")
				}
			}
		}
	}
}

// engine finds an engine by the id that the older router gave it.
func (m *migration) engine(id string) *engine {
	if len(m.byLegacy) != len(m.engines) {
		m.byLegacy = make(map[string]int, len(m.engines))
		for i := range m.engines {
			m.byLegacy[m.engines[i].legacy] = i
		}
	}
	if i, ok := m.byLegacy[id]; ok {
		return &m.engines[i]
	}
	return nil
}

// staged takes what legacy buckets say about engines before the buckets are
// complete: an engine of decode buckets alone is a decode engine.
func (m *migration) staged() {
	prefills, decodes := make(map[string]bool), make(map[string]bool)
	for _, s := range m.file.Specs {
		if s.WorkerIDs == nil {
			continue
		}
		in := prefills
		if s.Stage == bucketfile.Decode {
			in = decodes
		}
		for _, id := range s.WorkerIDs.Value {
			in[id] = true
		}
	}
	for i := range m.engines {
		if e := &m.engines[i]; e.role == "" && decodes[e.legacy] && !prefills[e.legacy] {
			e.role = decode
		}
	}
}

// roles finds out what each engine does, and asks where nothing says it.
func (m *migration) roles() {
	used := make([]bool, len(m.options.Roles))
	m.answered()
	m.ofURL(used)
	m.derived()
	m.staged()
	m.ofAll(used)
	var open []string
	for i := range m.engines {
		e := &m.engines[i]
		if e.role == prefill && e.decided && e.bootstrap == 0 {
			m.found().find(diag.LegacyAdvice, fmt.Sprintf("the prefill engine %s has no bootstrap port, so both engines of a pair are sent null", e.id),
				"say its port, unless the engines know it by themselves")
		}
		unknownPort := e.role == prefill && e.bootstrap == 0 && !e.decided
		if e.role != "" && !unknownPort {
			continue
		}
		open = append(open, e.id)
		q := bucketfile.Open{
			Question: fmt.Sprintf("What does the engine %s do?", e.id), Section: "engines",
			Answer: []string{"url: " + quoted(e.url), "role: TODO"}, Choices: []string{"role: plain, prefill (with a bootstrap_port, mostly 8998) or decode"},
		}
		if unknownPort {
			q.Question = fmt.Sprintf("What is the bootstrap port of the prefill engine %s?", e.id)
			q.Answer = []string{"url: " + quoted(e.url), "role: prefill", "bootstrap_port: TODO"}
			q.Choices = []string{"bootstrap_port: the --disaggregation-bootstrap-port of the engine, 8998 by default"}
		}
		m.ask(q)
	}
	for j, a := range m.options.Roles {
		if !used[j] && (len(m.engines) > 0 || a.URL != "") {
			what := "every engine has an answer already"
			if a.URL != "" {
				what = "no engine has the URL " + diag.Mask(a.URL)
				if slices.ContainsFunc(m.engines, func(e engine) bool { return sameURL(e.url, a.URL) }) {
					what = diag.Mask(a.URL) + " has another answer already"
				}
			}
			m.useless(diag.Pos{}, fmt.Sprintf("the answer --role %s is not needed: %s", a.Role, what), "remove it")
		}
	}
	if len(open) > 0 {
		m.askRoles(open)
	}
}

// useless reports, once, an answer that nothing asked for.
func (m *migration) useless(pos diag.Pos, message, hint string) {
	for _, f := range m.report.Findings {
		if f.Code == diag.UselessDecision && f.Pos == pos && f.Message == message {
			return
		}
	}
	m.report.Findings.Add(diag.New(diag.UselessDecision, pos, "", message)).Hint = hint
}

// ofURL takes the roles of the options that name an engine.
func (m *migration) ofURL(used []bool) {
	for j, a := range m.options.Roles {
		for i := range m.engines {
			if e := &m.engines[i]; a.URL != "" && sameURL(e.url, a.URL) && !e.decided {
				e.role, e.bootstrap, e.decided, used[j] = a.Role, a.BootstrapPort, true, true
			}
		}
	}
}

// ofAll takes the roles of the options for all engines without an answer. The
// buckets may have said already what an engine does, and then the port is what
// the answer adds.
func (m *migration) ofAll(used []bool) {
	for j, a := range m.options.Roles {
		for i := range m.engines {
			e := &m.engines[i]
			if a.URL != "" || e.decided || e.role != "" && e.role != a.Role {
				continue
			}
			e.role, e.bootstrap, e.decided, used[j] = a.Role, a.BootstrapPort, true, true
		}
	}
}

// found is the line of the argument that engines come from.
func (m *migration) found() *Line {
	if m.line.Has("worker-urls") {
		return m.source("worker-urls")
	}
	return m.source("service-discovery")
}

// askRoles reports the engines that a question is open about.
func (m *migration) askRoles(open []string) {
	shown := open
	if len(shown) > 5 {
		shown = append(slices.Clone(shown[:5]), fmt.Sprintf("and %d more", len(open)-5))
	}
	m.found().find(diag.LegacyDecision, "what the engines do, or the bootstrap port of a prefill engine, is not known: the older router asked the engines themselves: "+strings.Join(shown, ", "),
		fmt.Sprintf("say --role plain when all are whole engines, --role prefill:8998 for the port of prefill engines in buckets, --role %s=prefill:PORT for one, or answer engines in the decisions file", open[0]))
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
		m.askEngines()
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
		// Where the engines are listed, it does not matter which namespace had them.
		l.Findings = slices.DeleteFunc(l.Findings, func(f diag.Finding) bool { return f.Code == diag.LegacyOpen })
		l.change(Discovery, "Kubernetes is not asked; the engines are those of the decisions file, and a change of them needs a new plan")
	}
}

// askEngines asks for the engines that Kubernetes would have found.
func (m *migration) askEngines() {
	for _, s := range []struct{ flag, role string }{{"selector", plain}, {"prefill-selector", prefill}, {"decode-selector", decode}} {
		if !m.line.Has(s.flag) {
			continue
		}
		q := bucketfile.Open{
			Question: fmt.Sprintf("Which engines does --%s %s select? Write an entry for each.", s.flag, strings.Join(flags.Terms(m.line.Values(s.flag)), ",")),
			Section:  "engines", Answer: []string{"url: TODO", "role: " + s.role},
		}
		if s.role == prefill {
			q.Answer = append(q.Answer, "bootstrap_port: TODO")
		}
		m.ask(q)
	}
}

// kindOf finds out whether engines are whole or pairs. One model cannot have
// both.
func (m *migration) kindOf() {
	count := make(map[string]int)
	for _, e := range m.engines {
		count[e.role]++
	}
	if m.line.Has("prefill-selector") && count[plain] > 0 {
		m.source("prefill-selector").find(diag.LegacyAdvice, "the selectors are those of prefill and decode engines, and the answers have plain ones", "check the roles under engines in the decisions file")
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
	at := m.at + "/discovery/static/engines"
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
