package migrate

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"shunt/compiler/diag"
	"shunt/compiler/migrate/argv"
	"shunt/compiler/migrate/bucketfile"
	"shunt/compiler/migrate/flags"
)

// models and discovery are the sections that every configuration file of the
// first versions has, in YAML and in TOML.
var (
	modelsSection    = regexp.MustCompile(`(?m)^("?models"?\s*:|\[\[\s*models\s*\]\])`)
	discoverySection = regexp.MustCompile(`(?m)^("?discovery"?\s*:|\[\s*discovery(\.[a-z0-9_]+)?\s*\])`)
)

// IsConfigFile reports whether a file is probably a configuration file of the
// first versions, which had no command line to speak of.
func IsConfigFile(data []byte) bool { return modelsSection.Match(data) && discoverySection.Match(data) }

// MigrateFile makes a configuration of a configuration file of the first
// versions. Each of its fields stands for an argument of later versions and is
// treated like it.
func MigrateFile(ctx context.Context, doc Document, o Options) Result {
	c, list := bucketfile.ReadConfig(ctx, doc.Name, doc.Data)
	m := newMigration(argv.Invocation{}, o)
	m.report.Findings = nil // those of an empty command line
	f := &configFile{migration: m, config: c}
	f.addFields(c.Fields)
	f.spread(list)
	f.write(ctx) // what has a mistake is absent, and everything else is judged too
	f.decisionsOnly()
	m.leftovers()
	m.fromFile = true
	return Result{Config: m.finish(ctx), Report: m.report, Template: bucketfile.Template(m.open)}
}

// configFile is the state of one MigrateFile. The migration that it holds has the
// report and the configuration; each part of the file has a migration of its own
// that shares both.
type configFile struct {
	*migration
	config  bucketfile.Config
	workers []bucketfile.Worker
}

// addFields makes a line of each field.
func (f *configFile) addFields(list []bucketfile.Field) {
	for _, field := range list {
		if f.fields[field.Pointer] != nil {
			continue
		}
		l := &Line{Source: field.Pointer + " " + clip(field.Raw, maxSource), Pos: field.Pos, Field: field.Pointer, brief: field.Pointer}
		f.fields[field.Pointer] = l
		f.report.Lines = append(f.report.Lines, l)
		f.report.fields = append(f.report.fields, field.Pointer)
	}
}

// spread gives findings to the fields that they are about.
func (f *configFile) spread(list diag.List) {
	for _, x := range list {
		if l := f.fields[x.Path]; l != nil {
			l.Findings = append(l.Findings, x)
		} else {
			f.report.Findings = append(f.report.Findings, x)
		}
	}
}

// decisionsOnly says that a file of that kind takes no decisions about buckets,
// and none about engines that a file of engines has.
func (f *configFile) decisionsOnly() {
	if f.options.Buckets.Data != nil || len(f.options.Pairs) > 0 {
		f.useless(diag.Pos{}, "a configuration file of the first versions has no buckets of one stage", "leave out --bucket-config and --pair")
	}
	const stages = "the answer is about a bucket of one stage, and a configuration file of the first versions has none"
	for _, p := range f.answers.Pairs {
		if p.Origin.Pos.File == f.answers.Name {
			f.useless(p.Origin.Pos, stages, "remove it")
		}
	}
	for _, l := range f.answers.Lone {
		f.useless(l.Origin.Pos, stages, "remove it")
	}
	for _, e := range f.answers.Engines {
		if d := f.config.Discovery; d.Backend != nil && d.Backend.Value != "k8s" {
			f.useless(e.Origin.Pos, "the answer is about an engine, and the file of engines says what there is", "remove it, and correct the file of engines if it is wrong")
		}
	}
	for _, a := range f.options.Roles {
		f.useless(diag.Pos{}, fmt.Sprintf("the answer --role %s is not needed: the file of engines or the decisions file says it", a.Role), "remove it")
	}
}

// write writes the configuration.
func (f *configFile) write(ctx context.Context) {
	f.decide(ctx)
	f.put("/version", number(1))
	server := f.part("")
	server.argument("host", f.config.Host)
	argument(server, "port", f.config.Port)
	server.argument("log-level", f.config.LogLevel)
	server.argument("log-format", f.config.LogFormat)
	argument(server, "request-timeout-secs", f.config.RequestTimeoutSecs)
	argument(server, "stale-request-timeout-secs", f.config.StaleRequestTimeoutSecs)
	server.parse()
	server.listen()
	server.timeouts()
	server.log()
	f.discoverySection(ctx)
	for i := range f.config.Models {
		f.model(i)
	}
	for _, w := range f.workers {
		for pointer, l := range f.fields {
			if strings.HasPrefix(pointer, w.Origin.Pointer+"/") && l.Outcome == "" {
				l.raise(Carried)
				l.note("the engine serves none of the models, so nothing is written")
			}
		}
	}
	f.report.Lines = slices.DeleteFunc(f.report.Lines, func(l *Line) bool {
		return l.implicit && len(l.Targets) == 0 // mostly of arguments that came later
	})
}

// part is the migration of one part of the file: arguments with the fields they
// come from.
type part struct {
	*migration
	args []argv.Arg
	from []*Line
}

// part starts a part of the file that writes the model at a pointer.
func (f *configFile) part(at string) *part {
	sub := *f.migration
	sub.at = at
	sub.given, sub.byElement, sub.absent = make(map[string][]*Line), make(map[int]*Line), make(map[string]*Line)
	sub.engines, sub.kind, sub.byLegacy = nil, "", nil
	return &part{migration: &sub}
}

// argument adds the value of a field as an argument.
func argument[T any](p *part, name string, v *bucketfile.Value[T]) {
	if v == nil {
		return
	}
	p.args = append(p.args, argv.Arg{Text: fmt.Sprintf("--%s=%v", name, v.Value), Pos: v.Origins[0].Pos})
	p.from = append(p.from, p.fields[v.Origins[0].Pointer])
}

func (p *part) argument(name string, v *bucketfile.Value[string]) { argument(p, name, v) }

// parse judges the arguments. What is missing for a whole command line is no
// mistake here.
func (p *part) parse() {
	p.line = flags.Parse(p.args)
	for i := range p.line.Given {
		g := &p.line.Given[i]
		p.account(g, p.from[g.Elements[0]])
	}
}

// model writes one model.
func (f *configFile) model(i int) {
	c := &f.config.Models[i]
	p := f.part(fmt.Sprintf("/models/%d", i))
	p.argument("model-id", c.ID)
	p.argument("tokenizer-path", c.TokenizerPath)
	p.argument("policy", c.Policy)
	if b := c.Breaker; b != nil {
		argument(p, "cb-threshold", b.Threshold)
		if b.Threshold == nil && b.CoolDownSecs != nil {
			p.args = append(p.args, argv.Arg{Text: "--cb-threshold=3"})
			p.from = append(p.from, f.fixed("threshold: 3 of circuit_breaker", "the default of the file"))
		}
		argument(p, "cb-cool-down-secs", b.CoolDownSecs)
	}
	p.parse()
	if a := c.CacheAware; a != nil {
		for _, pointer := range []string{"cache_threshold", "balance_abs_threshold", "balance_rel_threshold"} {
			if l := f.fields[c.Origin.Pointer+"/cache_aware/"+pointer]; l != nil {
				l.find(diag.LegacyOtherVersion, "it belonged to cache_aware_zmq, which cache_aware replaced with other measures", "remove it, and review the tuning of cache_aware in the migrated configuration")
			}
		}
	}
	f.enginesOf(p, c)
	p.migration.model()
	for _, l := range p.given["policy"] {
		if l.Outcome == Renamed {
			l.note("it is the default policy of the model's groups")
		}
	}
	f.report = p.report
	f.open = p.open
}

// discoverySection reads the file of engines, or asks for the engines.
func (f *configFile) discoverySection(ctx context.Context) {
	d := &f.config.Discovery
	k8s := d.Backend != nil && d.Backend.Value == "k8s"
	for pointer, l := range f.fields {
		section, inside := strings.CutPrefix(pointer, "/discovery/")
		if !inside || l.Findings.HasErrors() {
			continue
		}
		switch name, _, _ := strings.Cut(section, "/"); {
		case name == "backend" && !k8s, name == "static_file" && !k8s:
			l.change(Discovery, "the engines are a list in the configuration, and a change of them needs a new plan; the file is not watched")
		case name == "static_file" || name == "k8s" && !k8s:
			l.raise(Carried)
			l.note("the backend is another one, so nothing used it")
		case len(f.answers.Engines) > 0 && len(f.config.Models) == 1:
			l.change(Discovery, "Kubernetes is not asked; the engines are those of the decisions file, and a change of them needs a new plan")
		default:
			l.find(diag.LegacyDecision, "the engines are not known: the older router asked Kubernetes, and a configuration lists them", "list them under engines in the decisions file, for a file of one model")
		}
	}
	if k8s {
		if len(f.answers.Engines) == 0 {
			f.ask(bucketfile.Open{Question: "Which engines does the selector find? Write an entry for each.", Section: "engines", Answer: []string{"url: TODO", "role: TODO"}, Choices: []string{"role: plain, prefill or decode"}})
		}
		return
	}
	f.workersFile(ctx)
}

// workersFile reads the file that lists the engines.
func (f *configFile) workersFile(ctx context.Context) {
	d := &f.config.Discovery
	doc := f.options.Workers
	if doc.Data == nil && d.Path != nil {
		l := f.fields[d.Path.Origins[0].Pointer]
		what := fmt.Sprintf("the file of engines %q is needed", d.Path.Value)
		if f.options.ReadFile != nil {
			data, err := f.options.ReadFile(d.Path.Value)
			if err == nil {
				doc = Document{path.Clean(d.Path.Value), data}
			} else {
				what = fmt.Sprintf("the file of engines cannot be read: %v", err)
			}
		}
		if doc.Data == nil {
			l.find(diag.LegacyDecision, what, "name it with --workers FILE")
			return
		}
	}
	if doc.Data == nil {
		return // reported by its reader
	}
	workers, fields, list := bucketfile.ReadWorkers(ctx, doc.Name, doc.Data)
	f.addFields(fields)
	f.spread(list)
	if !list.HasErrors() {
		f.workers = workers
	}
}

// enginesOf gives a model its engines.
func (f *configFile) enginesOf(p *part, c *bucketfile.ConfigModel) {
	for i := range f.workers {
		w := &f.workers[i]
		if w.ModelIDs != nil && len(w.ModelIDs.Value) > 0 && c.ID != nil && !slices.Contains(w.ModelIDs.Value, c.ID.Value) {
			continue
		}
		line := f.fields[w.URL.Origins[0].Pointer]
		e := engine{id: w.ID.Value, legacy: w.ID.Value, url: strings.TrimSuffix(w.URL.Value, "/"), role: w.Role.Value, decided: true, line: line, comment: origin(f.fields[w.ID.Origins[0].Pointer])}
		if w.BootstrapPort != nil {
			e.bootstrap = w.BootstrapPort.Value
		}
		p.engines = append(p.engines, e)
		for pointer, l := range f.fields {
			if strings.HasPrefix(pointer, w.Origin.Pointer+"/") && l != line {
				l.raise(Carried)
				l.Targets = append(l.Targets, fmt.Sprintf("%s/discovery/static/engines/%d", p.at, len(p.engines)-1))
			}
		}
		line.raise(Carried)
	}
	if len(f.config.Models) == 1 && len(f.workers) == 0 {
		for _, a := range f.answers.Engines {
			if a.URL == nil || a.Role == nil {
				continue
			}
			e := engine{id: a.URL.Value, url: strings.TrimSuffix(a.URL.Value, "/"), role: a.Role.Value, comment: origin(&Line{Source: "decision", Pos: a.Origin.Pos})}
			if a.ID != nil {
				e.id = a.ID.Value
			}
			if a.BootstrapPort != nil {
				e.bootstrap = a.BootstrapPort.Value
			}
			p.engines = append(p.engines, e)
		}
	}
	p.kindOf()
}
