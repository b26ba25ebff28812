// Package check judges a configuration. Shape holds it against the CUE schema:
// CUE gives the verdict, and a walk over the schema explains it, because CUE's
// own errors leave mistakes out and name places badly. Rules holds it against
// the rules between its parts, one file a rule.
//
// Both only read the tree and are safe for concurrent use.
package check
