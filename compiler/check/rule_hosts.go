package check

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// host is where the URL of an engine leads.
type host struct {
	https bool
	// bare says that the URL names no port.
	bare bool
	// name is in lower case and without brackets.
	name, port string
	ip         net.IP
}

// hostOf reads the URL of an engine, and is false for one that is a mistake.
func hostOf(raw string) (host, bool) {
	if _, err := plan.NormalizeURL(raw); err != nil {
		return host{}, false
	}
	u, err := url.Parse(raw)
	if err != nil {
		return host{}, false
	}
	h := host{https: strings.EqualFold(u.Scheme, "https"), name: strings.ToLower(u.Hostname()), port: u.Port()}
	if h.port == "" {
		h.bare = true
		h.port = "80"
		if h.https {
			h.port = "443"
		}
	}
	h.ip = net.ParseIP(h.name)
	return h, true
}

func (h host) loopback() bool { return h.name == "localhost" || h.ip != nil && h.ip.IsLoopback() }

func (h host) unspecified() bool { return h.ip != nil && h.ip.IsUnspecified() }

// ruleSchemes warns about an engine that is reached by http beside others that
// are reached by https, once for each model.
func ruleSchemes(r *rules) {
	for i := range r.models {
		m := &r.models[i]
		open, secure, n := -1, -1, 0
		for e := range m.engines {
			h, ok := hostOf(m.engines[e].URL)
			switch {
			case !ok || !r.intact(m.engineAt(e)):
			case h.https && secure < 0:
				secure = e
			case !h.https:
				if n++; open < 0 {
					open = e
				}
			}
		}
		if open < 0 || secure < 0 {
			continue
		}
		f := r.add(diag.MixedSchemes, m.engineAt(open)+"/url", fmt.Sprintf("engine %q is reached by http and engine %q by https", m.engines[open].ID, m.engines[secure].ID))
		f.Hint = "use https for all engines of the model"
		if n > 1 {
			f.Hint += fmt.Sprintf("; %s in all are reached by http", count(n, "engine"))
		}
		r.also(f, m.engineAt(secure)+"/url", "the other engine is here")
	}
}

// ruleHosts warns about engines at addresses that lead nowhere, to the router
// itself, or from each host to another place.
func ruleHosts(r *rules) {
	listeners := r.listeners()
	for i := range r.models {
		m := &r.models[i]
		remote := -1
		for e := range m.engines {
			if h, ok := hostOf(m.engines[e].URL); ok && !h.loopback() && !h.unspecified() && r.intact(m.engineAt(e)) {
				remote = e
				break
			}
		}
		odd := several{}
		for e := range m.engines {
			path, id := m.engineAt(e)+"/url", m.engines[e].ID
			h, ok := hostOf(m.engines[e].URL)
			if !ok || !r.intact(path) {
				continue
			}
			switch {
			case h.unspecified():
				if odd.next() {
					r.add(diag.UnspecifiedHost, path, fmt.Sprintf("engine %q is at %s, which is where to listen and not where to connect to", id, h.name)).
						Hint = "write the host name or address of the engine"
				}
			case slices.ContainsFunc(listeners, func(l [2]string) bool { return own(h, l[1]) }):
				if odd.next() {
					l := listeners[slices.IndexFunc(listeners, func(l [2]string) bool { return own(h, l[1]) })]
					r.add(diag.OwnAddress, path, fmt.Sprintf("engine %q is at port %s of this host, where the router itself listens (server.%s, %s)", id, h.port, l[0], l[1])).
						Hint = "correct the URL, or give the router another port with server." + l[0]
				}
			case h.loopback() && remote >= 0:
				if odd.next() {
					f := r.add(diag.MixedLoopback, path, fmt.Sprintf("engine %q is on loopback and engine %q is not", id, m.engines[remote].ID))
					f.Hint = "write the address under which all hosts reach the engine"
					r.also(f, m.engineAt(remote)+"/url", "the other engine is here")
				}
			}
		}
		odd.finish(r, "engine")
	}
}

// listeners has the fields and the addresses of the listeners, written or not.
func (r *rules) listeners() (out [][2]string) {
	s := &r.cfg.Server
	if r.intact("/server/listen") {
		out = append(out, [2]string{"listen", config.Or(s.Listen, config.DefaultListen)})
	}
	if admin := config.Or(s.Admin, config.DefaultAdmin); admin != config.Off && r.intact("/server/admin") {
		out = append(out, [2]string{"admin", admin})
	}
	return out
}

// own reports whether a listener takes connections to an engine's address.
func own(h host, listen string) bool {
	name, port, err := net.SplitHostPort(listen)
	if err != nil || port != h.port || port == "0" {
		return false
	}
	name = strings.ToLower(name)
	ip := net.ParseIP(name)
	switch {
	case name == "" || ip != nil && ip.IsUnspecified():
		return h.loopback()
	case name == "localhost" || ip != nil && ip.IsLoopback():
		return h.name == name || h.name == "localhost" || name == "localhost" && h.loopback()
	}
	return h.name == name
}

// portsWritten is the index of the first engine with a port in its URL that is not
// a default one, and -1 when there is none or those without one are not fewer.
func (m *modelAt) portsWritten() int {
	first, balance := -1, 0
	for i := range m.engines {
		switch h, ok := hostOf(m.engines[i].URL); {
		case !ok:
		case h.bare:
			balance--
		default:
			balance++
			if first < 0 && h.port != "80" && h.port != "443" {
				first = i
			}
		}
	}
	if balance <= 0 {
		return -1
	}
	return first
}

// rulePorts warns about ports that were forgotten, and about bootstrap ports that
// two processes of a host need.
func rulePorts(r *rules) {
	// The path of the engine that has a port of a host, for requests and for
	// bootstraps. Engines on loopback are mostly simulated, and have no such ports.
	serving, meeting := make(map[[2]string]string), make(map[[2]string]string)
	for i := range r.models {
		m := &r.models[i]
		with := m.portsWritten()
		bare := several{}
		for e := range m.engines {
			h, ok := hostOf(m.engines[e].URL)
			path := m.engineAt(e)
			if !ok || !r.intact(path) {
				continue
			}
			if with >= 0 && h.bare && bare.next() {
				f := r.add(diag.MissingPort, path+"/url", fmt.Sprintf("the URL of engine %q has no port, and that of engine %q has one", m.engines[e].ID, m.engines[with].ID))
				f.Hint = fmt.Sprintf("write the port; without one it is %s", h.port)
				r.also(f, m.engineAt(with)+"/url", "the other URL is here")
			}
			if !h.loopback() {
				serving[[2]string{h.name, h.port}] = path
			}
		}
		bare.finish(r, "engine")
	}
	for i := range r.models {
		m := &r.models[i]
		clashes := several{}
		for e := range m.engines {
			h, ok := hostOf(m.engines[e].URL)
			port, path := m.engines[e].BootstrapPort, m.engineAt(e)
			if !ok || h.loopback() || port == nil || !r.intact(path) {
				continue
			}
			key := [2]string{h.name, fmt.Sprint(*port)}
			other, taken := meeting[key]
			if !taken {
				meeting[key] = path
				other, taken = serving[key]
			}
			if taken && clashes.next() {
				f := r.add(diag.BootstrapClash, path+"/bootstrap_port", fmt.Sprintf("port %d of host %s is taken by another engine or another use", *port, h.name))
				f.Hint = "give each prefill engine of a host a bootstrap port of its own"
				r.also(f, other, "it is taken here")
			}
		}
		clashes.finish(r, "port")
	}
}
