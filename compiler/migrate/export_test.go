package migrate

import (
	"context"

	"shunt/compiler/migrate/argv"
)

// Unchecked is Migrate without the compilation of what it made, for tests that
// run it very often.
func Unchecked(ctx context.Context, in argv.Invocation, o Options) Result {
	o.unchecked = true
	return Migrate(ctx, in, nil, o)
}
