// Package source reads configurations written in YAML, JSON or CUE into one
// tree that knows the position of every key and value.
//
// Reading is hermetic: nothing but the named inputs is read, no environment,
// no network, no clock. YAML, JSON and CUE that is only data are read in this
// process. CUE with code in it is a program that can run for ever, so it is
// refused unless the caller allows it, and then runs in a limited child process
// (see ChildMain).
//
// Several inputs are unified as CUE unifies data: objects merge, lists of equal
// length merge element by element, and scalars must be equal. No input
// overrides another, so their order has no meaning.
//
// A Tree is immutable once Read returned it and safe for concurrent use.
package source
