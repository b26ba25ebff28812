package template

// expr is an expression.
type expr interface {
	eval(st *state, sc *scope) (Value, error)
}

// stmt is a statement. What it writes goes to the state's output.
type stmt interface {
	exec(st *state, sc *scope) (signal, error)
}

// signal says how a statement ended.
type signal uint8

const (
	goOn signal = iota
	breakLoop
	nextRound
)

// The expressions.
type (
	literal struct{ v Value }

	name struct{ id string }

	listExpr struct {
		items []expr
		form  form
	}

	dictExpr struct{ keys, values []expr }

	// member is x.name, which prefers attributes, or x['name'], which prefers
	// items.
	member struct {
		of     expr
		name   string
		dotted bool
	}

	item struct{ of, key expr }

	slice struct{ of, from, to, step expr } // each bound may be nil

	not    struct{ x expr }
	negate struct{ x expr }
	plus   struct{ x expr }

	logic struct {
		or          bool
		left, right expr
	}

	binary struct {
		op          string
		left, right expr
	}

	// compare is a chain: a < b <= c.
	compare struct {
		first expr
		ops   []string
		rest  []expr
	}

	// choice is x if test else other; other may be nil.
	choice struct{ test, x, other expr }

	call struct {
		of   expr
		args arguments
	}

	filtered struct {
		x    expr // nil inside of a filter block
		name string
		run  filter
		args arguments
	}

	tested struct {
		x    expr
		name string
		run  test
		args arguments
		not  bool
	}
)

// arguments are what stands between the parentheses of a call.
type arguments struct {
	values []expr
	names  []string // the last values have these names
}

// The statements.
type (
	body []stmt

	write struct{ text string }

	print struct {
		line int
		x    expr
	}

	// set assigns to names, or to one attribute of a namespace.
	set struct {
		line int
		to   []string
		of   string // the namespace, if there is one
		x    expr
	}

	setBlock struct {
		line   int
		to     string
		of     string
		body   body
		filter *filtered // may be nil
	}

	branch struct {
		line int
		test expr // nil for else
		body body
	}

	ifs struct{ branches []branch }

	loop struct {
		line   int
		to     []string
		over   expr
		test   expr // may be nil
		body   body
		orElse body
		macros bool // some are defined inside
	}

	macro struct {
		name     string
		params   []string
		defaults []expr // of the last params
		body     body
	}

	callBlock struct {
		line   int
		call   *call
		caller *macro
	}

	filterBlock struct {
		line   int
		filter *filtered
		body   body
	}

	// with is a block with a scope of its own.
	with struct {
		line   int
		to     []string
		values []expr
		body   body
	}

	jump struct{ signal signal }
)
