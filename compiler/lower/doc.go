// Package lower turns a checked configuration into the body of a plan: defaults
// in, names resolved, buckets in try order, breakpoints and requirements derived.
// It also says where each value was written.
//
// Lower cannot fail. If a checked configuration gave a body that plan.Validate
// refuses, a rule would be missing in compiler/check. The package imports only
// the two sides that it connects, keeps nothing, and is safe for concurrent use.
package lower
