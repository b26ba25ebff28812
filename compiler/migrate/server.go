package migrate

import (
	"fmt"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/compiler/migrate/argv"
	"shunt/schema/plan"
)

// server writes the listeners, timeouts, shutdown and log.
func (m *migration) server() {
	m.listen()
	m.timeouts()
	m.shutdown()
	m.log()
}

// sameDefault is the note of a default that need not be written.
const sameDefault = "the default is the same, so nothing is written"

func (m *migration) listen() {
	host, port := m.source("host"), m.source("port")
	if !m.usable("host") || !m.usable("port") {
		return
	}
	at := uint64(30000)
	if v := m.line.Value("port"); v != nil {
		at = v.Number
	}
	addr := fmt.Sprintf("%s:%d", m.line.Text("host", "127.0.0.1"), at)
	if err := plan.CheckListen(addr); err != nil {
		host.find(diag.LegacyValue, fmt.Sprintf("the router cannot listen on %q: it %v", addr, err), "write a name or an address, an IPv6 address in brackets")
		return
	}
	if addr == config.DefaultListen && !m.line.Has("host") && !m.line.Has("port") {
		host.note(sameDefault)
		port.note(sameDefault)
		return
	}
	m.put("/server/listen", text(addr), host, port)
	// The admin listener has the port after the default one. It must not be that
	// of the clients.
	if strings.HasSuffix(addr, ":30001") {
		m.put("/server/admin", text("127.0.0.1:30002"), m.fixed("no listener for operators", "the default port 30001 is taken by the clients' listener"))
	}
}

// maxSeconds is the longest duration of a configuration, a year.
const maxSeconds = plan.MaxDurationMS / 1000

// seconds returns a timeout. It is false when it is not known or cannot be said.
func (m *migration) seconds(name string, def uint64) (uint64, *Line, bool) {
	l := m.source(name)
	if !m.usable(name) {
		return 0, l, false
	}
	n := def
	if v := m.line.Value(name); v != nil {
		n = v.Number
	}
	switch {
	case n == 0:
		l.find(diag.LegacyNoEquivalent, fmt.Sprintf("--%s 0 ends every request at once", name), "write a number from 1")
		return 0, l, false
	case n > maxSeconds:
		l.change(Timeouts, "the longest duration is a year, which is written instead of %d s", n)
		n = maxSeconds
	}
	return n, l, true
}

func duration(seconds uint64) *node { return text(fmt.Sprintf("%ds", seconds)) }

func (m *migration) timeouts() {
	stale, staleLine, known := m.seconds("stale-request-timeout-secs", config.DefaultStaleTimeoutMS/1000)
	if !known {
		stale = maxSeconds
	}
	// bounded keeps a step within the life of the request.
	bounded := func(name string, def uint64) (uint64, *Line, bool) {
		n, l, ok := m.seconds(name, def)
		if ok && n > stale {
			l.change(Timeouts, "--stale-request-timeout-secs ends every request after %d s, so that is written instead of %d s", stale, n)
			n = stale
		}
		return n, l, ok
	}
	write := func(name, field string, n uint64, l *Line, ok bool, def uint64) {
		switch {
		case ok && n == def && !m.line.Has(name):
			l.note(sameDefault)
		case ok:
			m.put("/server/"+field, duration(n), l)
		}
	}
	request, l, ok := bounded("request-timeout-secs", config.DefaultRequestTimeoutMS/1000)
	write("request-timeout-secs", "request_timeout", request, l, ok, config.DefaultRequestTimeoutMS/1000)
	if ok && request < config.DefaultConnectTimeoutMS/1000 {
		m.put("/server/connect_timeout", duration(request), m.fixed("5 s to connect to an engine", "it may not be longer than the request"))
	}
	if known && ok && stale != request {
		m.put("/server/header_timeout", duration(stale),
			m.fixed("no limit of the wait for the head of a stream", "only --stale-request-timeout-secs ended it, and so it stays; without this the limit would be request_timeout"))
	}
	idle, l, ok := bounded("stream-idle-timeout-secs", config.DefaultStreamIdleTimeoutMS/1000)
	write("stream-idle-timeout-secs", "stream_idle_timeout", idle, l, ok, config.DefaultStreamIdleTimeoutMS/1000)
	write("stale-request-timeout-secs", "stale_timeout", stale, staleLine, known, config.DefaultStaleTimeoutMS/1000)
}

// shutdown retains the pause, and the wait for requests in flight, which only the
// lives of the requests bounded. A declared grace period bounds that wait, as the
// end of the process did.
func (m *migration) shutdown() {
	const pauseDefault = 30
	pauseLine, graceLine := m.source("shutdown-drain-secs"), m.source("termination-grace-secs")
	if !m.usable("shutdown-drain-secs") || !m.usable("termination-grace-secs") || !m.usable("stale-request-timeout-secs") {
		return
	}
	pause, life := uint64(pauseDefault), uint64(config.DefaultStaleTimeoutMS/1000)
	if v := m.line.Value("shutdown-drain-secs"); v != nil {
		pause = v.Number
	}
	if v := m.line.Value("stale-request-timeout-secs"); v != nil {
		life = min(max(v.Number, 1), maxSeconds)
	}
	m.put("/server/drain_delay", duration(pause), pauseLine)
	v := m.line.Value("termination-grace-secs")
	if v != nil && v.Number > pause && v.Number-pause < life {
		m.put("/server/drain_timeout", duration(v.Number-pause), graceLine)
		graceLine.change(Shutdown, "it only served a warning; now requests in flight are cut in order %d s after the pause, when the process would have been ended", v.Number-pause)
		return
	}
	if v != nil {
		graceLine.raise(Carried)
		graceLine.note("it only served a warning of the older router, and nothing is written")
	} else {
		graceLine.note("nothing depended on it but a warning")
	}
	if v == nil && m.grace > pause && m.grace-pause < life {
		m.put("/server/drain_timeout", duration(m.grace-pause), m.fixed(fmt.Sprintf("what the pause leaves of terminationGracePeriodSeconds %d", m.grace),
			"requests in flight are cut in order when the process would have been ended"))
		return
	}
	m.put("/server/drain_timeout", duration(life),
		m.fixed("no limit of the wait for requests in flight", "none lives longer than --stale-request-timeout-secs, so that is as good as no limit; without this they would be cut after 30s"))
}

// environment takes the variables into account that the older router reads.
func (m *migration) environment(env []argv.Env) {
	for _, e := range env {
		l := &Line{Source: e.Name + "=" + shellWord(diag.Mask(e.Value)), Pos: e.Pos}
		if e.Hidden || diag.SecretName(e.Name) {
			l.Source = e.Name + "=***"
		}
		switch {
		case e.Name == "RUST_LOG":
			m.rustLog, m.level = l, e.Value
			if e.Hidden {
				l.find(diag.LegacyOpen, "the value of RUST_LOG is not known", "write --log-level in its place")
			}
		case e.Name == "HF_TOKEN" || e.Name == "HF_HOME":
			l.change(Tokenization, "tokenizers are not downloaded, so nothing reads it")
		case strings.HasPrefix(e.Name, "SGLANG_ROUTER_") || strings.HasPrefix(e.Name, "RADIXARK_"):
			l.find(diag.LegacyOtherVersion, e.Name+" is read by another version of the router", "write the argument that it stands for, or remove it")
		default:
			continue
		}
		m.report.Lines = append(m.report.Lines, l)
	}
}

// log retains the level of the process and the format. A variable overrides the
// level.
func (m *migration) log() {
	l, directives := m.source("log-level"), m.line.Text("log-level", config.DefaultLogLevel)
	usable := m.usable("log-level")
	if m.rustLog != nil {
		if l.Outcome != Defaulted {
			l.raise(Carried)
		}
		l.note("RUST_LOG overrides it")
		l, directives, usable = m.rustLog, m.level, !m.rustLog.Findings.HasErrors()
	}
	if usable {
		m.logLevel(l, directives)
	}
	format := m.source("log-format")
	switch {
	case !m.line.Has("log-format"):
		format.note(sameDefault)
	case m.usable("log-format"):
		m.put("/server/log/format", text(m.line.Text("log-format", "")), format)
	}
}

// logLevel writes the level of directives such as "info,hyper=warn".
func (m *migration) logLevel(l *Line, directives string) {
	level, others := "", []string(nil)
	for _, d := range strings.Split(directives, ",") {
		switch d = strings.TrimSpace(d); {
		case d == "":
		case strings.ContainsAny(d, "=[{"):
			others = append(others, d)
		default:
			level = strings.ToLower(d)
		}
	}
	switch level {
	case "debug", "info", "warn", "error":
	case "trace":
		l.change(Logging, "the most detailed level is debug, which is written instead of trace")
		level = "debug"
	case "off":
		l.change(Logging, "errors are always logged, so error is written instead of off")
		level = "error"
	case "":
		l.change(Logging, "without a level for the whole process the older router logged errors alone, so error is written")
		level = "error"
	default:
		l.find(diag.LegacyNoEquivalent, fmt.Sprintf("%q is no level of a log", level), "write debug, info, warn or error")
		return
	}
	if len(others) > 0 {
		l.change(Logging, "there is one level for the whole process; %s is left out", strings.Join(others, ","))
	}
	if l.Outcome == Defaulted {
		l.note(sameDefault)
		return
	}
	m.put("/server/log/level", text(level), l)
}
