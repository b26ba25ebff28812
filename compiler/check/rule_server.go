package check

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"shunt/compiler/config"
	"shunt/compiler/diag"
	"shunt/schema/plan"
)

// ruleAddresses refuses listeners that cannot start, and an admin listener that
// other hosts reach.
func ruleAddresses(r *rules) {
	s := &r.cfg.Server
	listen, admin := config.Or(s.Listen, config.DefaultListen), config.Or(s.Admin, config.DefaultAdmin)
	good := r.address("/server/listen", s.Listen)
	if admin == config.Off {
		return
	}
	if !r.address("/server/admin", s.Admin) {
		return
	}
	if !plan.IsLoopback(admin) && s.Admin != nil {
		r.add(diag.ExposedAdmin, "/server/admin", fmt.Sprintf("the admin listener %q is reachable from other hosts", admin)).
			Hint = "use a loopback address such as 127.0.0.1:30001; there is no token for other hosts"
	}
	if good && clash(listen, admin) {
		path, other := "/server/admin", "/server/listen"
		if s.Admin == nil {
			path, other = other, path
		}
		f := r.add(diag.AddressClash, path, fmt.Sprintf("listen %q and admin %q need the same port", listen, admin))
		f.Hint = "give them different ports"
		if s.Admin != nil && s.Listen != nil {
			r.also(f, other, "the other one is here")
		}
	}
}

// address checks a listen address that is written. It is false for one that
// nothing more can be said about.
func (r *rules) address(path string, addr *string) bool {
	if addr == nil {
		return true
	}
	if !r.intact(path) {
		return false
	}
	if err := plan.CheckListen(*addr); err != nil {
		r.add(diag.BadAddress, path, fmt.Sprintf("%q %v", *addr, err)).Hint = "write it like 127.0.0.1:30000"
		return false
	}
	return true
}

// clash reports whether two listeners cannot both start. A listener on every
// address takes the port of each; port 0 is always free.
func clash(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	if portA != portB || portA == "0" {
		return false
	}
	wild := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "" || ip != nil && ip.IsUnspecified()
	}
	return hostA == hostB || wild(hostA) || wild(hostB)
}

// durationAt is a duration of the configuration, its default and its bounds in
// milliseconds.
type durationAt struct {
	path      string
	value     *config.Duration
	def       int64
	low, high int64
}

func (d durationAt) ms() int64 { return config.MSOr(d.value, d.def) }

// ruleServerRanges holds durations and sizes to their ranges; the schema checks
// only their spelling.
func ruleServerRanges(r *rules) {
	s := &r.cfg.Server
	const day365 = plan.MaxDurationMS
	list := []durationAt{
		{"/server/request_timeout", s.RequestTimeout, 1, 1, day365},
		{"/server/connect_timeout", s.ConnectTimeout, 1, 1, day365},
		{"/server/header_timeout", s.HeaderTimeout, 1, 1, day365},
		{"/server/stream_idle_timeout", s.StreamIdleTimeout, 1, 1, day365},
		{"/server/stale_timeout", s.StaleTimeout, 1, 1, day365},
		{"/server/drain_delay", s.DrainDelay, 0, 0, plan.MaxDrainMS},
		{"/server/drain_timeout", s.DrainTimeout, 1, 1, day365},
		{"/state/load/freshness", r.cfg.State.Load.Freshness, 1, 1, day365},
		{"/state/load/poll_interval", r.cfg.State.Load.PollInterval, 1, 1, day365},
	}
	if p := r.cfg.State.Prefix; p != nil && p.Remote != nil {
		list = append(list, durationAt{"/state/prefix/remote/query_timeout", p.Remote.QueryTimeout, 1, 1, day365})
	}
	if a := r.cfg.State.Affinity; a != nil {
		list = append(list, durationAt{"/state/affinity/idle", a.Idle, 1, 1, day365}, durationAt{"/state/affinity/sweep", a.Sweep, 1, 1, day365})
		if a.Redis != nil {
			list = append(list, durationAt{"/state/affinity/redis/timeout", a.Redis.Timeout, 1, 1, day365})
		}
	}
	r.size("/server/max_body", s.MaxBody)
	for _, m := range r.models {
		list = append(list, durationAt{m.at + "/breaker/cool_down", m.Breaker.CoolDown, 1, 1, day365})
		if t := m.Tokenizer; t != nil && t.Engine != nil {
			list = append(list, durationAt{m.at + "/tokenizer/engine/timeout", t.Engine.Timeout, 1, 1, day365})
			r.size(m.at+"/tokenizer/engine/max_body", t.Engine.MaxBody)
		}
	}
	for _, d := range list {
		if n := d.ms(); (n < d.low || n > d.high) && r.intact(d.path) {
			r.add(diag.OutOfRange, d.path, fmt.Sprintf("%s is outside %s to %s", *d.value, words(d.low), words(d.high)))
		}
	}
}

// size holds the size of a body to its range.
func (r *rules) size(path string, s *config.Size) {
	if s == nil || !r.intact(path) {
		return
	}
	if n := s.Bytes(); n < plan.MinBodyBytes || n > plan.MaxBodyBytes {
		r.add(diag.OutOfRange, path, fmt.Sprintf("%s is outside 1KiB to 1GiB", *s))
	}
}

// words writes milliseconds in the largest unit that holds them exactly.
func words(ms int64) string {
	switch {
	case ms > 0 && ms%3_600_000 == 0:
		return fmt.Sprintf("%dh", ms/3_600_000)
	case ms%1000 == 0:
		return fmt.Sprintf("%ds", ms/1000)
	}
	return fmt.Sprintf("%dms", ms)
}

// ruleTimeoutOrder refuses a step that may take longer than the whole it is part
// of: a connection is part of the wait for a head and of a buffered request, and
// everything is part of the life of a request. A wait for a head and a buffered
// request are of different requests, so neither bounds the other. Each whole that
// is too short is reported once.
func ruleTimeoutOrder(r *rules) {
	s := &r.cfg.Server
	request := durationAt{"/server/request_timeout", s.RequestTimeout, config.DefaultRequestTimeoutMS, 0, 0}
	stale := durationAt{"/server/stale_timeout", s.StaleTimeout, config.DefaultStaleTimeoutMS, 0, 0}
	connect := durationAt{"/server/connect_timeout", s.ConnectTimeout, config.DefaultConnectTimeoutMS, 0, 0}
	header := durationAt{"/server/header_timeout", s.HeaderTimeout, request.ms(), 0, 0}
	idle := durationAt{"/server/stream_idle_timeout", s.StreamIdleTimeout, config.DefaultStreamIdleTimeoutMS, 0, 0}
	steps := []durationAt{request, header, idle}
	if s.HeaderTimeout == nil {
		steps = []durationAt{request, idle} // the other one is the same
	}
	r.tooShort(stale, steps)
	if header.ms() < request.ms() {
		r.tooShort(header, []durationAt{connect})
	} else {
		r.tooShort(request, []durationAt{connect})
	}
}

// tooShort reports a whole that is shorter than some of its steps: at the step
// when it is one that is written, at the whole otherwise.
func (r *rules) tooShort(whole durationAt, steps []durationAt) {
	steps = slices.DeleteFunc(steps, func(d durationAt) bool {
		return d.ms() <= whole.ms() || !r.intact(d.path) || !r.intact(whole.path) || d.value == nil && whole.value == nil
	})
	if len(steps) == 0 {
		return
	}
	var f *diag.Finding
	at, others := whole, steps
	if one := steps[0]; len(steps) == 1 && one.value != nil || whole.value == nil {
		at, others = one, append(slices.Clone(steps[1:]), whole)
	}
	if len(steps) == 1 {
		f = r.add(diag.TimeoutOrder, at.path, fmt.Sprintf("%s is longer than %s", steps[0].name(), whole.name()))
	} else {
		var names []string
		for _, d := range steps {
			names = append(names, d.name())
		}
		f = r.add(diag.TimeoutOrder, at.path, fmt.Sprintf("%s is shorter than %s", whole.name(), series(names)))
	}
	f.Hint = "raise the outer timeout or lower the inner one"
	for _, d := range others {
		if d.value != nil {
			r.also(f, d.path, fmt.Sprintf("%s is here", d.path[strings.LastIndexByte(d.path, '/')+1:]))
		}
	}
}

// series lists words as a sentence does.
func series(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// name is the field and its value, marked when that is a default.
func (d durationAt) name() string {
	field := d.path[strings.LastIndexByte(d.path, '/')+1:]
	if d.value == nil {
		return fmt.Sprintf("%s (default %s)", field, words(d.def))
	}
	return fmt.Sprintf("%s (%s)", field, *d.value)
}
