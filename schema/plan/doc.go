// Package plan is the frozen routing plan: its Go types, its one byte form, its
// digest and its strict loader. The compiler writes plans, the runtime reads
// them, and neither imports the other; they meet here.
//
// The types are data only. Every default is in, buckets stand in the order in
// which they are tried, names are resolved. Absent, empty and zero differ:
// worker_ids absent is every engine and [] is none; a limit absent is unchecked
// and 0 admits nothing. Units stand in the names.
//
// The package uses the standard library only and is safe for concurrent use;
// nobody changes a plan after Load or Seal returned it.
package plan
