package template

// callable is what a call can call: a macro, a method of a value, or a function.
type callable struct {
	name  string
	macro *macro
	scope *scope // where the macro was defined
	of    Value  // what the method belongs to
	run   func(st *state, a *args) (Value, error)
}

// A body ends early when a statement in it breaks or continues a loop.
func (b body) exec(st *state, sc *scope) (signal, error) {
	for _, s := range b {
		if err := st.charge(1); err != nil {
			return goOn, err
		}
		if sig, err := s.exec(st, sc); sig != goOn || err != nil {
			return sig, err
		}
	}
	return goOn, nil
}

func (w write) exec(st *state, _ *scope) (signal, error) { return goOn, st.write(w.text) }

// What is undefined prints nothing.
func (p print) exec(st *state, sc *scope) (signal, error) {
	v, err := p.x.eval(st, sc)
	if err != nil {
		return goOn, at(p.line, err)
	}
	s, err := v.print()
	if err == nil {
		err = st.write(s)
	}
	return goOn, at(p.line, err)
}

// The value is evaluated before the name exists, so that a name may be set to a
// change of itself.
func (s set) exec(st *state, sc *scope) (signal, error) {
	v, err := s.x.eval(st, sc)
	if err == nil && s.of != "" {
		err = assignMember(sc, s.of, s.to[0], v)
	} else if err == nil {
		err = assign(sc, s.to, v)
	}
	return goOn, at(s.line, err)
}

// assign gives names a value, which is unpacked if there are several.
func assign(sc *scope, to []string, v Value) error {
	if len(to) == 1 {
		sc.set(to[0], v)
		return nil
	}
	items, err := iterate(v)
	if err != nil {
		return err
	}
	if len(items) != len(to) {
		return failed("%d values for %d names", len(items), len(to))
	}
	for i, name := range to {
		sc.set(name, items[i])
	}
	return nil
}

// assignMember changes an attribute of a namespace, the only value that can change.
// Namespaces stay out of each other, so that no value contains itself.
func assignMember(sc *scope, of, name string, v Value) error {
	ns, _ := sc.get(of)
	if ns.kind != namespace {
		return failed("%q is no namespace and cannot be changed", of)
	}
	if v.kind == namespace {
		return unsupported("a namespace in a namespace")
	}
	ns.dict.Set(name, v)
	return nil
}

// What the block writes is the value; names set inside stay inside.
func (s setBlock) exec(st *state, sc *scope) (signal, error) {
	out, err := st.capture(s.body, &scope{parent: sc})
	v := String(out)
	if err == nil && s.filter != nil {
		v, err = s.filter.apply(st, sc, v)
	}
	if err == nil && s.of != "" {
		err = assignMember(sc, s.of, s.to, v)
	} else if err == nil {
		sc.set(s.to, v)
	}
	return goOn, at(s.line, err)
}

// A branch has no scope of its own: what it sets is seen after it.
func (s ifs) exec(st *state, sc *scope) (signal, error) {
	for _, b := range s.branches {
		if b.test != nil {
			v, err := b.test.eval(st, sc)
			if err != nil {
				return goOn, at(b.line, err)
			}
			if !v.Truth() {
				continue
			}
		}
		return b.body.exec(st, sc)
	}
	return goOn, nil
}

// Each round starts with a scope that is empty but for the variables of the loop,
// so nothing that a round sets is seen by the next. One scope serves all rounds
// unless a macro was defined in it, which keeps it.
func (l loop) exec(st *state, sc *scope) (signal, error) {
	v, err := l.over.eval(st, sc)
	if err != nil {
		return goOn, at(l.line, err)
	}
	items, err := iterate(v)
	if err == nil && l.test != nil {
		items, err = l.filter(st, sc, items)
	}
	if err != nil {
		return goOn, at(l.line, err)
	}
	if len(items) == 0 {
		return l.orElse.exec(st, &scope{parent: sc})
	}
	inner := &scope{parent: sc}
	state := new(Dict)
	for i, v := range items {
		if err := st.charge(1); err != nil {
			return goOn, at(l.line, err)
		}
		inner.clear()
		if i > 0 && l.macros { // one of them may still hold the old one
			inner = &scope{parent: sc}
		}
		rounds(state, items, i)
		inner.set("loop", Object(state))
		if err := assign(inner, l.to, v); err != nil {
			return goOn, at(l.line, err)
		}
		sig, err := l.body.exec(st, inner)
		if err != nil {
			return goOn, err
		}
		if sig == breakLoop {
			break
		}
	}
	return goOn, nil
}

// filter keeps the items that pass the test of a loop.
func (l loop) filter(st *state, sc *scope, items []Value) ([]Value, error) {
	var kept []Value
	for _, v := range items {
		if err := st.charge(1); err != nil {
			return nil, err
		}
		inner := &scope{parent: sc}
		if err := assign(inner, l.to, v); err != nil {
			return nil, err
		}
		ok, err := l.test.eval(st, inner)
		if err != nil {
			return nil, err
		}
		if ok.Truth() {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// rounds sets what the variable loop tells in round i.
func rounds(d *Dict, items []Value, i int) {
	n := len(items)
	previous, next := undefinedOf("loop.previtem"), undefinedOf("loop.nextitem")
	if i > 0 {
		previous = items[i-1]
	}
	if i < n-1 {
		next = items[i+1]
	}
	d.keys = append(d.keys[:0], "index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem")
	d.values = append(d.values[:0], Int(int64(i+1)), Int(int64(i)), Bool(i == 0), Bool(i == n-1), Int(int64(n)),
		Int(int64(n-i)), Int(int64(n-i-1)), previous, next)
	d.depth = 1 + max(previous.depth(), next.depth())
}

// A macro sees the variables of the place where it was defined, with the values that
// they have when it is called.
func (m *macro) exec(_ *state, sc *scope) (signal, error) {
	sc.set(m.name, Value{kind: function, call: &callable{name: m.name, macro: m, scope: sc}})
	return goOn, nil
}

// call runs a macro and returns what it writes.
func (m *macro) call(st *state, outer *scope, a *args, caller Value) (Value, error) {
	if st.calls == 0 {
		return Value{}, &RenderError{Kind: TooMuch, Text: "macros call each other too deep"}
	}
	st.calls--
	defer func() { st.calls++ }()
	inner := &scope{parent: outer}
	if caller.kind != absent {
		inner.set("caller", caller)
	} else {
		inner.set("caller", undefinedOf("caller"))
	}
	values, err := a.bind(m.params...)
	if err != nil {
		return Value{}, err
	}
	first := len(m.params) - len(m.defaults)
	for i, v := range values {
		inner.set(m.params[i], v)
		if v.kind == absent {
			inner.set(m.params[i], undefinedOf(m.params[i]))
		}
	}
	for i, v := range values {
		if v.kind != absent || i < first {
			continue
		}
		if v, err = m.defaults[i-first].eval(st, inner); err != nil {
			return Value{}, err
		}
		inner.set(m.params[i], v)
	}
	out, err := st.capture(m.body, inner)
	return String(out), err
}

// The body of the block is a macro that the called one finds under the name caller.
func (c callBlock) exec(st *state, sc *scope) (signal, error) {
	caller := Value{kind: function, call: &callable{name: "caller", macro: c.caller, scope: sc}}
	v, err := c.call.invoke(st, sc, caller)
	if err != nil {
		return goOn, at(c.line, err)
	}
	s, err := v.print()
	if err == nil {
		err = st.write(s)
	}
	return goOn, at(c.line, err)
}

// The filter sees all that the block writes as one text.
func (f filterBlock) exec(st *state, sc *scope) (signal, error) {
	out, err := st.capture(f.body, &scope{parent: sc})
	if err != nil {
		return goOn, err
	}
	v, err := f.filter.apply(st, sc, String(out))
	if err == nil {
		var s string
		if s, err = v.print(); err == nil {
			err = st.write(s)
		}
	}
	return goOn, at(f.line, err)
}

// The values are evaluated outside of the new scope.
func (w with) exec(st *state, sc *scope) (signal, error) {
	inner := &scope{parent: sc}
	for i, x := range w.values {
		v, err := x.eval(st, sc)
		if err != nil {
			return goOn, at(w.line, err)
		}
		inner.set(w.to[i], v)
	}
	return w.body.exec(st, inner)
}

func (j jump) exec(*state, *scope) (signal, error) { return j.signal, nil }
