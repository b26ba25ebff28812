package lower

import (
	"cmp"
	"slices"
	"strconv"

	"shunt/compiler/config"
	"shunt/schema/plan"
)

// Lower returns the body of a checked configuration and the origins of its
// values. Locate and resolve are asked only for pointers of values that the
// configuration has.
func Lower(c *config.Config, locate Locate, resolve Resolve) (plan.Body, []plan.Origins) {
	t := &tracer{locate: locate, resolve: resolve}
	b := plan.Body{Server: server(&c.Server, t)}
	// The state comes before the models, which say what of it is needed.
	models := &tracer{locate: locate, resolve: resolve}
	for i := range c.Models {
		b.Models = append(b.Models, model(&c.Models[i], i, models))
	}
	b.State = state(&c.State, b.Models, t)
	return b, append(t.out, models.out...)
}

func server(s *config.Server, t *tracer) plan.Server {
	request := config.MSOr(s.RequestTimeout, config.DefaultRequestTimeoutMS)
	out := plan.Server{
		Listen:              config.Or(s.Listen, config.DefaultListen),
		Admin:               config.Or(s.Admin, config.DefaultAdmin),
		MaxBodyBytes:        config.BytesOr(s.MaxBody, config.DefaultMaxBodyBytes),
		RequestTimeoutMS:    request,
		ConnectTimeoutMS:    config.MSOr(s.ConnectTimeout, config.DefaultConnectTimeoutMS),
		HeaderTimeoutMS:     config.MSOr(s.HeaderTimeout, request),
		StreamIdleTimeoutMS: config.MSOr(s.StreamIdleTimeout, config.DefaultStreamIdleTimeoutMS),
		StaleTimeoutMS:      config.MSOr(s.StaleTimeout, config.DefaultStaleTimeoutMS),
		DrainDelayMS:        config.MSOr(s.DrainDelay, config.DefaultDrainDelayMS),
		DrainTimeoutMS:      config.MSOr(s.DrainTimeout, config.DefaultDrainTimeoutMS),
		ExposeDecision:      config.Or(s.ExposeDecision, config.DefaultExposeDecision),
		Log: plan.Log{
			Level:  config.Or(s.Log.Level, config.DefaultLogLevel),
			Format: config.Or(s.Log.Format, config.DefaultLogFormat),
		},
	}
	if out.Admin == config.Off {
		out.Admin = ""
	}
	e := t.element("/server", "/server")
	e.note(s.Listen != nil, "listen", "listen")
	e.note(s.Admin != nil, "admin", "admin")
	e.note(s.MaxBody != nil, "max_body_bytes", "max_body")
	e.note(s.RequestTimeout != nil, "request_timeout_ms", "request_timeout")
	e.note(s.ConnectTimeout != nil, "connect_timeout_ms", "connect_timeout")
	e.note(s.HeaderTimeout != nil, "header_timeout_ms", "header_timeout")
	e.note(s.StreamIdleTimeout != nil, "stream_idle_timeout_ms", "stream_idle_timeout")
	e.note(s.StaleTimeout != nil, "stale_timeout_ms", "stale_timeout")
	e.note(s.DrainDelay != nil, "drain_delay_ms", "drain_delay")
	e.note(s.DrainTimeout != nil, "drain_timeout_ms", "drain_timeout")
	e.note(s.ExposeDecision != nil, "expose_decision", "expose_decision")
	e.note(s.Log.Level != nil, "log/level", "log/level")
	e.note(s.Log.Format != nil, "log/format", "log/format")
	e.end()
	return out
}

func model(m *config.Model, index int, t *tracer) plan.Model {
	at := "/models/" + strconv.Itoa(index)
	// The buckets say which headers are needed, and their origins come after
	// those of the model.
	later := &tracer{locate: t.locate, resolve: t.resolve}
	out := plan.Model{
		ID: m.ID,
		Breaker: plan.Breaker{
			Threshold:  config.Or(m.Breaker.Threshold, config.DefaultBreakerThreshold),
			CoolDownMS: config.MSOr(m.Breaker.CoolDown, config.DefaultBreakerCoolDownMS),
		},
		Discovery: plan.Discovery{Static: &plan.StaticDiscovery{Engines: engines(m, at, later)}},
		Buckets:   buckets(m, at, later),
	}
	e := t.element(at, at)
	e.note(true, "id", "id")
	out.Engine = engineKind(m, out.Buckets, e)
	out.Tokenizer = tokenizer(m, e)
	out.Sampling = sampling(m.Sampling, e)
	out.Requires = plan.Require(index, &out)
	out.Affinity = headers(&m.Affinity, &out.Requires, e)
	out.SLO = slo(m, e)
	e.note(m.Breaker.Threshold != nil, "breaker/threshold", "breaker/threshold")
	e.note(m.Breaker.CoolDown != nil, "breaker/cool_down_ms", "breaker/cool_down")
	e.end()
	t.out = append(t.out, later.out...)
	// The check has bounded the table.
	out.Breakpoints, _ = plan.Breakpoints(out.Buckets, plan.MaxRuns)
	return out
}

// engines sorts by id; the order in the configuration has no meaning.
func engines(m *config.Model, at string, t *tracer) []plan.Engine {
	if m.Discovery.Static == nil {
		return nil
	}
	written := m.Discovery.Static.Engines
	out := make([]plan.Engine, 0, len(written))
	for to, from := range sorted(len(written), func(a, b int) int { return cmp.Compare(written[a].ID, written[b].ID) }) {
		w := &written[from]
		// The check has refused URLs without a normal form.
		url, _ := plan.NormalizeURL(w.URL)
		const list = "/discovery/static/engines/"
		e := t.element(at+list+strconv.Itoa(to), at+list+strconv.Itoa(from))
		e.note(true, "id", "id")
		e.note(true, "url", "url")
		e.note(true, "role", "role")
		e.note(w.BootstrapPort != nil, "bootstrap_port", "bootstrap_port")
		e.note(len(w.Labels) > 0, "labels", "labels")
		out = append(out, plan.Engine{ID: w.ID, URL: url, Role: plan.Role(w.Role), BootstrapPort: w.BootstrapPort, Labels: w.Labels,
			KVEvents: kvEvents(w.KVEvents, e)})
		e.end()
	}
	return out
}

// sorted returns the indexes 0..n-1 in the order of less.
func sorted(n int, compare func(a, b int) int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, compare)
	return out
}
