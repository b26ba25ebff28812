package template

// test is what stands behind "is" in a template.
type test func(v Value, a *args) (bool, error)

// testNamed returns a test, or nil.
func testNamed(name string) test {
	switch name {
	case "defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping", "iterable", "sequence", "callable":
		return func(v Value, a *args) (bool, error) {
			_, err := a.need(0)
			return isKind(name, v), err
		}
	case "odd", "even":
		return func(v Value, a *args) (bool, error) {
			_, err := a.need(0)
			if err == nil && !v.whole() {
				err = failed("%s of %s", name, v.kind)
			}
			return (v.num%2 != 0) == (name == "odd"), err
		}
	case "divisibleby":
		return func(v Value, a *args) (bool, error) {
			p, err := a.need(1, "num")
			if err != nil || !v.whole() || !p[0].whole() || p[0].num == 0 {
				return false, failed("divisibleby takes integers other than 0")
			}
			return v.num%p[0].num == 0, nil
		}
	case "sameas":
		return func(v Value, a *args) (bool, error) {
			p, err := a.need(1, "other")
			if err == nil && v.kind != none && v.kind != boolean || p[0].kind != none && p[0].kind != boolean {
				return false, unsupported("sameas of other values than booleans and None")
			}
			return v.kind == p[0].kind && v.num == p[0].num, err
		}
	case "lower", "upper":
		return func(v Value, a *args) (bool, error) {
			if _, err := a.need(0); err != nil {
				return false, err
			}
			s, err := v.print()
			if err != nil {
				return false, err
			}
			return cased(s, name == "upper"), nil
		}
	case "in":
		return func(v Value, a *args) (bool, error) {
			p, err := a.need(1, "seq")
			if err != nil {
				return false, err
			}
			return contains(p[0], v)
		}
	}
	op := comparisonNamed(name)
	if op == "" {
		return nil
	}
	return func(v Value, a *args) (bool, error) {
		p, err := a.need(1, "other")
		if err != nil {
			return false, err
		}
		return holds(op, v, p[0])
	}
}

// comparisonNamed returns the operator that a test stands for.
func comparisonNamed(name string) string {
	switch name {
	case "eq", "equalto", "==":
		return "=="
	case "ne", "!=":
		return "!="
	case "lt", "lessthan", "<":
		return "<"
	case "le", "<=":
		return "<="
	case "gt", "greaterthan", ">":
		return ">"
	case "ge", ">=":
		return ">="
	}
	return ""
}

// isKind answers the tests that ask what a value is. A boolean is a number and not an
// integer; what is undefined can be iterated over.
func isKind(name string, v Value) bool {
	switch name {
	case "defined":
		return v.kind != undefined
	case "undefined":
		return v.kind == undefined
	case "none":
		return v.kind == none
	case "boolean":
		return v.kind == boolean
	case "true":
		return v.kind == boolean && v.num == 1
	case "false":
		return v.kind == boolean && v.num == 0
	case "integer":
		return v.kind == integer || v.kind == big
	case "float":
		return v.kind == float
	case "number":
		return v.numeric() || v.kind == big
	case "string":
		return v.kind == text
	case "mapping":
		return v.kind == mapping
	case "callable":
		return v.kind == function
	case "iterable":
		return v.kind == text || v.kind == sequence || v.kind == mapping || v.kind == undefined
	}
	return v.kind == text || v.kind == sequence && v.list.form != generator || v.kind == mapping || v.kind == undefined
}

// cased reports whether a text has cased characters and all of them are upper,
// or lower.
func cased(s string, up bool) bool {
	some := false
	for _, r := range s {
		switch {
		case isUpper(r):
			if !up {
				return false
			}
			some = true
		case isLower(r):
			if up {
				return false
			}
			some = true
		}
	}
	return some
}
